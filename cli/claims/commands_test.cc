#include "cli/claims/commands.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "cli/claims/test_node.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CommandsTest : public ::testing::Test {
 protected:
  int List(bool json = false) {
    Clear();
    return ListClaims(node_.Read(), {.text = text_, .errors = errors_, .json = json});
  }
  int Show(const std::string& claim, bool json = false) {
    Clear();
    return ShowClaim(node_.Read(), claim, {.text = text_, .errors = errors_, .json = json});
  }
  int Verify(bool json = false) {
    Clear();
    return VerifyClaims(node_.Read(), {.text = text_, .errors = errors_, .json = json});
  }
  void Clear() {
    text_.str("");
    errors_.str("");
  }
  nlohmann::json Json() const { return nlohmann::json::parse(text_.str()); }

  TestNode node_;
  std::ostringstream text_, errors_;
};

TEST_F(CommandsTest, AnEmptyNode) {
  EXPECT_EQ(List(), kExitOk);
  EXPECT_EQ(text_.str(), "No claim is prepared on this node.\n");
  EXPECT_EQ(List(/*json=*/true), kExitOk);
  EXPECT_EQ(text_.str(), "[]\n");
  EXPECT_EQ(Verify(), kExitOk);
  EXPECT_EQ(text_.str(), "0 records, 0 findings\n");
}

TEST_F(CommandsTest, ListShowsEveryState) {
  auto ok = TestNode::Record("ok", {0, 1});
  ok.devices[1].requests = {"npu", "second"};
  node_.Prepare(ok);
  auto old = TestNode::Record("old", {2});
  old.boot_id = "another";
  node_.Prepare(old);
  node_.WriteRecord(TestNode::Record("missing", {3}));
  node_.WriteFile(node_.RecordPath("uid-bad"), "garbage\n");
  EXPECT_EQ(List(), kExitOk);
  EXPECT_EQ(text_.str(),
            "CLAIM            UID          DEVICES        REQUESTS    BOOT   STATE\n"
            "default/missing  uid-missing  npu-3          npu         this   CDI file missing\n"
            "default/ok       uid-ok       npu-0,npu-1    npu,second  this   ok\n"
            "default/old      uid-old      npu-2          npu         other  other boot\n"
            "-                uid-bad      any free chip  -           -      unreadable\n");
  EXPECT_EQ(List(/*json=*/true), kExitOk);
  const nlohmann::json list = Json();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[1]["name"], "ok");
  EXPECT_EQ(list[1]["devices"][1]["requests"], nlohmann::json({"npu", "second"}));
  EXPECT_EQ(list[2]["state"], "other boot");
  EXPECT_EQ(list[3]["uid"], "uid-bad");
  EXPECT_NE(list[3]["error"], "");
}

TEST_F(CommandsTest, ListShowsWhatAnUnreadableRecordWithholds) {
  // The devices can be told from the CDI file.
  node_.WriteCdiFile(TestNode::Record("cdi", {6, 5}));
  node_.WriteFile(node_.RecordPath("uid-cdi"), "garbage\n");
  // They can be told from the record, of a later format; there is no CDI file.
  const std::string text = SerializeRecord(TestNode::Record("new", {3}));
  const std::string line = absl::StrReplaceAll(text.substr(0, text.find('\n')),
                                               {{"\"formatVersion\":1", "\"formatVersion\":9"}});
  node_.WriteFile(node_.RecordPath("uid-new"),
                  absl::StrCat(line, "\ncrc32c:",
                               absl::Hex(kubeletplugin::Crc32c(line), absl::kZeroPad8), "\n"));
  // They cannot be told: the CDI file is damaged too.
  node_.WriteFile(node_.RecordPath("uid-lost"), "garbage\n");
  node_.WriteFile(node_.CdiPath("lost"), "{");
  EXPECT_EQ(List(), kExitOk);
  EXPECT_EQ(text_.str(),
            "CLAIM  UID       DEVICES        REQUESTS  BOOT  STATE\n"
            "-      uid-cdi   chips 5,6      -         -     unreadable\n"
            "-      uid-lost  any free chip  -         -     unreadable\n"
            "-      uid-new   chip 3         -         -     unreadable\n");
  EXPECT_EQ(List(/*json=*/true), kExitOk);
  const nlohmann::json list = Json();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0]["withheld"], nlohmann::json({{"chips", {5, 6}}, {"anyFreeChip", false}}));
  EXPECT_EQ(list[1]["withheld"]["chips"], nlohmann::json::array());
  EXPECT_EQ(list[1]["withheld"]["anyFreeChip"], true);
  EXPECT_EQ(list[2]["withheld"]["chips"], nlohmann::json::array({3}));
}

TEST_F(CommandsTest, WithoutABootIdNothingIsSaidOfIt) {
  node_.Prepare(TestNode::Record("a", {0}));
  NodeFilesOptions options = node_.options();
  options.boot_id_file = "/nonexistent";
  const auto files = ReadNodeFiles(options);
  ASSERT_THAT(files, IsOk());
  EXPECT_EQ(ListClaims(*files, {.text = text_, .errors = errors_}), kExitOk);
  EXPECT_THAT(text_.str(), HasSubstr("unknown  ok\n"));
}

TEST_F(CommandsTest, ShowTellsEverything) {
  auto record = TestNode::Record("a", {4});
  record.devices[0].admin_access = true;
  record.devices[0].share_id = "5d2a";
  record.devices[0].chips[0].roce_address = "29.17.1.5";
  node_.Prepare(record);
  for (const char* name : {"a", "default/a", "uid-a"}) {
    EXPECT_EQ(Show(name), kExitOk) << name;
    EXPECT_THAT(
        text_.str(),
        AllOf(HasSubstr("Claim: default/a\nUID: uid-a\n"),
              HasSubstr("Boot: this-boot (this boot)\n"),
              HasSubstr("CDI file: " + node_.CdiPath("a") + "\n"),
              HasSubstr("Record: " + node_.RecordPath("uid-a") + "\n"),
              HasSubstr("Device: node-1/npu-4\n"), HasSubstr("Share: 5d2a\n"),
              HasSubstr("Admin access: yes\n"), HasSubstr("CDI device: uid-a-npu-4\n"),
              HasSubstr("Chip: 4 (/dev/davinci4)\n"), HasSubstr("UUID: UUID-4\n"),
              HasSubstr("PCI bus: 0000:c4:00.0\n"), HasSubstr("RoCE address: 29.17.1.5\n")));
  }
  EXPECT_EQ(Show("uid-a", /*json=*/true), kExitOk);
  const nlohmann::json claim = Json();
  EXPECT_EQ(claim["cdiFile"]["path"], node_.CdiPath("a"));
  EXPECT_EQ(claim["cdiFile"]["present"], true);
  EXPECT_EQ(claim["cdiFile"]["devices"], nlohmann::json({"uid-a-npu-4"}));
  EXPECT_EQ(claim["thisBoot"], true);
  EXPECT_EQ(claim["devices"][0]["chips"][0]["uuid"], "UUID-4");
  EXPECT_EQ(claim["devices"][0]["adminAccess"], true);
}

TEST_F(CommandsTest, ShowOfWhatIsNotThere) {
  node_.Prepare(TestNode::Record("a", {4}));
  EXPECT_EQ(Show("b"), kExitCannotRead);
  EXPECT_EQ(text_.str(), "");
  EXPECT_THAT(errors_.str(), AllOf(HasSubstr("claim \"b\" has no record in "),
                                   HasSubstr("not prepared on this node")));
  auto other = TestNode::Record("a", {5});
  other.claim_namespace = "team";
  other.claim_uid = "uid-other";
  node_.Prepare(other);
  EXPECT_EQ(Show("a"), kExitUsage);
  EXPECT_THAT(errors_.str(),
              AllOf(HasSubstr("default/a (uid-a)"), HasSubstr("team/a (uid-other)")));
  EXPECT_EQ(Show("team/a"), kExitOk);
}

TEST_F(CommandsTest, ShowOfAnUnreadableRecord) {
  node_.WriteCdiFile(TestNode::Record("bad", {6}));
  node_.WriteFile(node_.RecordPath("uid-bad"), "garbage\n");
  EXPECT_EQ(Show("uid-bad"), kExitFindings);
  EXPECT_THAT(text_.str(),
              AllOf(HasSubstr("Unreadable: "), HasSubstr("CDI device: uid-bad-npu-6")));
  EXPECT_EQ(Show("uid-bad", /*json=*/true), kExitFindings);
  EXPECT_EQ(Json()["cdiFile"]["devices"][0], "uid-bad-npu-6");
}

TEST_F(CommandsTest, NamesReachNoTerminalAsTheyAre) {
  auto record = TestNode::Record("a", {4});
  record.claim_name =
      "evil\x1b[2J\n\xc2\x9b"
      "1m";
  record.devices[0].chips[0].uuid = "not UTF-8: \xff";
  node_.Prepare(record);
  for (const bool json : {false, true}) {
    List(json);
    EXPECT_THAT(text_.str(), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x9b"))));
    Show("uid-a", json);
    EXPECT_THAT(text_.str(),
                AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x9b")), Not(HasSubstr("\xff"))));
  }
  List();
  EXPECT_THAT(text_.str(), HasSubstr("default/evil\\x1b[2J\\n\\xc2\\x9b"
                                     "1m"));
  EXPECT_EQ(Show("\x1b[2J"), kExitCannotRead);
  EXPECT_THAT(errors_.str(), Not(HasSubstr("\x1b")));
}

TEST_F(CommandsTest, VerifySaysWhatToDo) {
  node_.WriteRecord(TestNode::Record("a", {0}));
  EXPECT_EQ(Verify(), kExitFindings);
  EXPECT_THAT(text_.str(), AllOf(HasSubstr("cdi_file_missing: " + node_.CdiPath("a") + "\n"),
                                 HasSubstr("  claim:   default/a\n"), HasSubstr("  do:      "),
                                 HasSubstr("1 record, 1 finding\n")));
  EXPECT_EQ(Verify(/*json=*/true), kExitFindings);
  EXPECT_EQ(Json()["records"], 1);
  EXPECT_EQ(Json()["findings"][0]["kind"], "cdi_file_missing");
  EXPECT_EQ(Json()["findings"][0]["uid"], "uid-a");
}

TEST_F(CommandsTest, NothingIsChanged) {
  node_.Prepare(TestNode::Record("a", {0}));
  node_.WriteFile(node_.RecordPath("uid-bad"), "garbage\n");
  node_.WriteFile(node_.RecordPath(".uid-a.123.tmp"), "", absl::Hours(1));
  node_.WriteFile(node_.LockPath("claim-uid-x"), "", absl::Hours(1));
  node_.WriteCdiFile(TestNode::Record("orphan", {1}));
  const std::string before = node_.Fingerprint();
  List();
  Show("a");
  EXPECT_EQ(Verify(), kExitFindings);
  EXPECT_EQ(node_.Fingerprint(), before);
}

}  // namespace
}  // namespace ascend::cli
