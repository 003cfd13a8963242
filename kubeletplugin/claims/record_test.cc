#include "kubeletplugin/claims/record.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ClaimRecord Example() {
  ClaimRecord record;
  record.claim_namespace = "default";
  record.claim_name = "job-1";
  record.claim_uid = "3f2b7d5e-0c1a-4a57-9c1f-6f0a3d1f9b11";
  record.boot_id = "b00t";
  RecordedDevice device;
  device.requests = {"npu", "second"};
  device.pool = "node-1";
  device.device = "npu-3";
  device.cdi_device = "3f2b7d5e-0c1a-4a57-9c1f-6f0a3d1f9b11-npu-3";
  device.chips = {{.physical_id = 3,
                   .node_number = 3,
                   .family = vnpu::Family::k910B,
                   .uuid = "14036E64-00E04F1D-1223F2B2-84528485-104301E2",
                   .pci_bus_id = "0000:c1:00.0",
                   .roce_address = "29.17.151.115"}};
  device.published.name = "npu-3";
  device.published.attributes = {{"type", std::string("npu")},
                                 {"physicalID", int64_t{3}},
                                 {"driverVersion", kube::Version{"25.5.1"}},
                                 {"flag", true}};
  device.published.capacity = {{"memory", "64Gi"}};
  record.devices = {device};
  return record;
}

std::string WithChecksum(const std::string& line) {
  return absl::StrCat(line, "\ncrc32c:", absl::Hex(Crc32c(line), absl::kZeroPad8), "\n");
}

TEST(RecordTest, ChecksumIsCrc32c) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);  // check value of the algorithm
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(RecordTest, RoundTrip) {
  EXPECT_THAT(ParseRecord(SerializeRecord(Example())), IsOkAndHolds(Example()));
  ClaimRecord empty = Example();
  empty.devices.clear();
  EXPECT_THAT(ParseRecord(SerializeRecord(empty)), IsOkAndHolds(empty));
  ClaimRecord admin = Example();
  admin.devices[0].admin_access = true;
  admin.devices[0].share_id = "deadbeef-0000-4000-8000-000000000000";
  EXPECT_THAT(ParseRecord(SerializeRecord(admin)), IsOkAndHolds(admin));
}

ClaimRecord Divided() {
  ClaimRecord record = Example();
  RecordedDevice& device = record.devices[0];
  device.device = device.published.name = "npu-3-vir01-2";
  device.vnpu =
      RecordedVnpu{.template_name = "vir01", .index = 2, .vgroups = {1}, .id = 150, .vgroup = 3};
  device.published.consumes_counters = {
      {.name = "npu-3", .counters = {{"aicore", "1"}, {"memory", "3Gi"}}}};
  return record;
}

TEST(RecordTest, RoundTripOfParts) {
  EXPECT_FALSE(Example().has_managed_vnpus());
  EXPECT_TRUE(Divided().has_managed_vnpus());
  EXPECT_THAT(ParseRecord(SerializeRecord(Divided())), IsOkAndHolds(Divided()));
  ClaimRecord intent = Divided();
  intent.state = ClaimState::kStarted;
  intent.devices[0].vnpu->id = intent.devices[0].vnpu->vgroup = -1;
  intent.devices[0].vnpu->begun = true;
  intent.devices[0].vnpu->wanted_id = 151;
  intent.devices[0].vnpu->ids_before = {148, 150};
  EXPECT_THAT(ParseRecord(SerializeRecord(intent)), IsOkAndHolds(intent));
  intent.state = ClaimState::kReleased;
  EXPECT_THAT(ParseRecord(SerializeRecord(intent)), IsOkAndHolds(intent));
  ClaimRecord fixed = Divided();
  fixed.devices[0].vnpu->managed = false;
  EXPECT_THAT(ParseRecord(SerializeRecord(fixed)), IsOkAndHolds(fixed));
  EXPECT_FALSE(fixed.has_managed_vnpus());
}

TEST(RecordTest, WrongMembersOfPartsAreNamed) {
  std::string line = SerializeRecord(Divided());
  line.resize(line.find('\n'));
  for (const auto& [from, to, name] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {R"("template":"vir01")", R"("template":1)", "vnpu.template"},
           {R"("index":2)", R"("index":"2")", "vnpu.index"},
           {R"("vgroups":[1])", R"("vgroups":["1"])", "vnpu.vgroups"},
           {R"("managed":true)", R"("managed":1)", "vnpu.managed"},
           {R"("id":150)", R"("id":[])", "vnpu.id"}}) {
    ASSERT_THAT(line, HasSubstr(from));
    EXPECT_THAT(ParseRecord(WithChecksum(absl::StrReplaceAll(line, {{from, to}}))),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(name)));
  }
}

std::string Golden(const std::string& name) {
  absl::StatusOr<std::string> bytes =
      ReadFile(absl::StrCat(ASCEND_DRA_TESTDATA, "/records/", name));
  EXPECT_THAT(bytes, IsOk());
  return bytes.value_or("");
}

ClaimRecord ExampleModule() {
  ClaimRecord record;
  record.claim_namespace = "monitoring";
  record.claim_name = "watch";
  record.claim_uid = "3f2b7d5e-0c1a-4a57-9c1f-6f0a3d1f9b11";
  record.boot_id = "b00t";
  RecordedDevice device;
  device.requests = {"all"};
  device.pool = "node-1";
  device.device = "npu-2-3";
  device.share_id = "deadbeef-0000-4000-8000-000000000000";
  device.admin_access = true;
  device.cdi_device = "3f2b7d5e-0c1a-4a57-9c1f-6f0a3d1f9b11-npu-2-3-deadbeef";
  device.chips = {{.physical_id = 2, .node_number = 2, .family = vnpu::Family::kA3},
                  {.physical_id = 3, .node_number = 3, .family = vnpu::Family::kA3}};
  device.published.name = "npu-2-3";
  record.devices = {device};
  return record;
}

// Every member that format version 1 has.
ClaimRecord ExampleOfAllMembers() {
  ClaimRecord record = Example();
  record.pod_claim_name = "npu";
  record.prepared_at = "2026-11-30T10:00:00Z";
  RecordedDevice& device = record.devices[0];
  device.share_id = "deadbeef-0000-4000-8000-000000000000";
  device.consumed_capacity = {{"memory", "16Gi"}};
  device.admin_access = true;
  device.subrequests = {"npu/large"};
  device.shared_use_expected = true;
  device.cdi_device += "-deadbeef";
  return record;
}

// REC-01, REC-02: what released versions wrote is read, and this one still writes the same bytes,
// checksum included, which those versions can read.
TEST(RecordTest, GoldenFiles) {
  ClaimRecord empty = Example();
  empty.devices.clear();
  const std::vector<std::pair<std::string, ClaimRecord>> goldens = {
      {"v1/chip", Example()},
      {"v1/module", ExampleModule()},
      {"v1/empty", empty},
      {"v1/all-members", ExampleOfAllMembers()}};
  for (const auto& [name, record] : goldens) {
    EXPECT_THAT(ParseRecord(Golden(name)), IsOkAndHolds(record)) << name;
    EXPECT_EQ(SerializeRecord(record), Golden(name)) << name;
  }
}

// REC-01: a field that is added later does not look like damage to this version.
TEST(RecordTest, GoldenFileWithFieldsOfALaterVersion) {
  absl::StatusOr<ClaimRecord> record = ParseRecord(Golden("v1-later-fields/chip"));
  ASSERT_THAT(record, IsOk());
  record->unknown_members.clear();
  EXPECT_EQ(*record, Example());
}

// REC-02: what a newer version wrote is still there after this one wrote the record again.
TEST(RecordTest, UnknownFieldsSurviveARewrite) {
  const std::string golden = Golden("v1-later-fields/chip");
  absl::StatusOr<ClaimRecord> record = ParseRecord(golden);
  ASSERT_THAT(record, IsOk());
  EXPECT_FALSE(record->unknown_members.empty());
  record->boot_id = "another";
  const std::string rewritten = SerializeRecord(*record);
  EXPECT_THAT(ParseRecord(rewritten), IsOkAndHolds(*record));
  // The same document but for what was changed.
  const auto document = [](const std::string& bytes) {
    return nlohmann::json::parse(bytes.substr(0, bytes.find('\n')));
  };
  nlohmann::json expected = document(golden);
  expected["bootID"] = "another";
  EXPECT_EQ(document(rewritten), expected);
}

TEST(RecordTest, OwnRecordsHaveNoUnknownMembers) {
  for (const char* name : {"v1/chip", "v1/module", "v1/empty", "v1/all-members"}) {
    const absl::StatusOr<ClaimRecord> record = ParseRecord(Golden(name));
    ASSERT_THAT(record, IsOk()) << name;
    EXPECT_EQ(record->unknown_members, "") << name;
  }
}

TEST(RecordTest, DevicesOfANewerFormatAreSalvaged) {
  std::string line = SerializeRecord(Example());
  line.resize(line.find('\n'));
  const std::string newer =
      absl::StrReplaceAll(line, {{"\"formatVersion\":1", "\"formatVersion\":2"}});
  EXPECT_THAT(SalvageDeviceNames(WithChecksum(newer)), ElementsAre("npu-3"));
  // Damaged bytes prove nothing, nor does a device without a name.
  EXPECT_THAT(SalvageDeviceNames(newer), IsEmpty());
  EXPECT_THAT(
      SalvageDeviceNames(WithChecksum(absl::StrReplaceAll(newer, {{"\"device\"", "\"divice\""}}))),
      IsEmpty());
  for (const char* odd : {"[]", "{}", "{\"devices\":3}", "{\"devices\":[3]}", "null", "{"}) {
    EXPECT_THAT(SalvageDeviceNames(WithChecksum(odd)), IsEmpty()) << odd;
  }
}

// REC-03
TEST(RecordTest, EveryFlippedByteIsNoticed) {
  const std::string good = SerializeRecord(Example());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x01);
    EXPECT_THAT(ParseRecord(bad), StatusIs(absl::StatusCode::kDataLoss)) << "byte " << i;
  }
}

// REC-03
TEST(RecordTest, EveryTruncationIsNoticed) {
  const std::string good = SerializeRecord(Example());
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_THAT(ParseRecord(good.substr(0, length)), StatusIs(absl::StatusCode::kDataLoss))
        << "length " << length;
  }
  EXPECT_THAT(ParseRecord(good + "x"), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(RecordTest, UnknownFieldsAreNoDamage) {
  std::string line = SerializeRecord(Example());
  line.resize(line.find('\n'));
  const std::string with_field =
      absl::StrReplaceAll(line, {{"\"state\"", "\"addedLater\":{\"x\":[1]},\"state\""}});
  ASSERT_NE(with_field, line);
  absl::StatusOr<ClaimRecord> record = ParseRecord(WithChecksum(with_field));
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ(record->unknown_members, "{\"addedLater\":{\"x\":[1]}}");
  record->unknown_members.clear();
  EXPECT_EQ(*record, Example());
}

TEST(RecordTest, WrongMembersAreNamed) {
  std::string line = SerializeRecord(Example());
  line.resize(line.find('\n'));
  const auto parse_with = [&](absl::string_view from, absl::string_view to) {
    return ParseRecord(WithChecksum(absl::StrReplaceAll(line, {{from, to}})));
  };
  EXPECT_THAT(parse_with("\"physicalID\":3,", "\"physicalID\":\"3\","),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("physicalID is no integer")));
  EXPECT_THAT(parse_with("\"uid\"", "\"uxd\""),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("claim.uid is missing")));
  EXPECT_THAT(parse_with("\"devices\":[", "\"devices\":[[],"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is no object")));
  EXPECT_THAT(ParseRecord(WithChecksum("[]")), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseRecord(WithChecksum("{")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("no JSON")));
}

TEST(RecordTest, NewerFormatIsToldFromDamage) {
  std::string line = SerializeRecord(Example());
  line.resize(line.find('\n'));
  EXPECT_THAT(ParseRecord(WithChecksum(
                  absl::StrReplaceAll(line, {{"\"formatVersion\":1", "\"formatVersion\":2"}}))),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("newer driver")));
  EXPECT_THAT(ParseRecord(WithChecksum(absl::StrReplaceAll(line, {{"Completed", "Paused"}}))),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("state Paused")));
}

}  // namespace
}  // namespace ascend::kubeletplugin
