#include "cdi/compatibility.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

Spec Read(const std::string& text) {
  const absl::StatusOr<Spec> spec = ReadJson(text);
  EXPECT_THAT(spec, IsOk()) << text;
  return spec.value_or(Spec{});
}

// The line of releases whose library is `library`.
Compatibility Of(const Spec& spec, absl::string_view library) {
  for (const Compatibility& one : Compatible(spec)) {
    if (one.release->library == library) return one;
  }
  ADD_FAILURE() << "no release " << library;
  return {};
}

Spec ClaimFile() {
  return Read(R"({"cdiVersion": "0.5.0", "kind": "k8s.npu.huawei.com/claim", "devices": [
      {"name": "6f6b-npu-0", "containerEdits": {"deviceNodes": [
        {"path": "/dev/davinci0", "hostPath": "/dev/davinci0", "fileMode": 432}]}}]})");
}

TEST(CompatibleTest, PortableFileIsAcceptedFromZeroFiveOn) {
  for (const Compatibility& one : Compatible(ClaimFile())) {
    const bool old = one.release->library == "0.3.2" || one.release->library == "0.4.0";
    EXPECT_EQ(one.accepted, !old) << one.release->library << ": " << one.reason;
    if (!old) {
      EXPECT_THAT(one.reason, IsEmpty());
    }
  }
  EXPECT_EQ(Of(ClaimFile(), "0.4.0").reason, "knows no cdiVersion 0.5.0, only 0.1.0 to 0.4.0");
}

TEST(CompatibleTest, NewerVersionsAreRefusedByOlderRuntimes) {
  Spec spec = ClaimFile();
  spec.version = "1.1.0";
  EXPECT_FALSE(Of(spec, "1.0.x").accepted);
  EXPECT_TRUE(Of(spec, "1.1.0").accepted);
}

TEST(CompatibleTest, WhatAFileUsesBeyondItsVersionIsUnknownToOlderRuntimes) {
  Spec spec = ClaimFile();
  spec.devices.push_back({.name = "last", .annotations = {}, .container_edits = {.env = {"A=1"}}});
  spec.devices[0].name = "first";
  spec.version = "0.4.0";  // loads, as hostPath is looked for in the last device only
  EXPECT_THAT(Of(spec, "0.4.0").reason, HasSubstr("that takes 0.5.0"));
  EXPECT_TRUE(Of(spec, "0.5.4").accepted);
}

TEST(CompatibleTest, LeadingV) {
  Spec spec = ClaimFile();
  spec.version = "v0.5.0";
  EXPECT_THAT(Of(spec, "0.5.0-0.5.3").reason, HasSubstr("\"v\""));
  EXPECT_TRUE(Of(spec, "0.5.4").accepted);
}

TEST(CompatibleTest, ShortNamesNoneAndRootClos) {
  Spec spec = ClaimFile();
  spec.kind = "h/npu";
  EXPECT_THAT(Of(spec, "1.1.0").reason, HasSubstr("one character"));
  EXPECT_TRUE(Of(spec, "1.1.1-1.1.2").accepted);

  spec = ClaimFile();
  spec.devices[0].container_edits.device_nodes[0].permissions = "none";
  EXPECT_THAT(Of(spec, "1.1.0").reason, HasSubstr("\"none\""));
  EXPECT_TRUE(Of(spec, "1.1.1-1.1.2").accepted);

  spec = ClaimFile();
  spec.version = "0.7.0";
  spec.container_edits.intel_rdt = IntelRdt{.clos_id = "/"};
  EXPECT_THAT(Of(spec, "1.0.x").reason, HasSubstr("closID"));
  EXPECT_TRUE(Of(spec, "1.1.0").accepted);
}

TEST(CompatibleTest, RemarksOnWhatAnAcceptingReleaseDoesDifferently) {
  Spec spec = ClaimFile();
  spec.devices[0].container_edits.device_nodes[0].file_mode.reset();
  spec.container_edits.mounts = {{.host_path = "/a", .container_path = "/a"}};
  EXPECT_TRUE(Of(spec, "0.6.x").accepted);
  EXPECT_THAT(Of(spec, "0.6.x").reason, HasSubstr("0666"));
  EXPECT_THAT(Of(spec, "0.6.x").reason, HasSubstr("by name"));
  EXPECT_EQ(Of(spec, "1.0.x").reason, "device nodes without a fileMode become 0666");
  EXPECT_THAT(Of(spec, "1.1.0").reason, IsEmpty());
}

// What the reference library's releases made of the recorded files that v1.1.2 accepts.
TEST(CompatibleTest, AgreesWithRecordedReleases) {
  const std::map<std::string, std::string> lines = {
      {"v0.5.4", "0.5.4"}, {"v0.6.2", "0.6.x"}, {"v0.7.2", "0.7.x"},      {"v0.8.1", "0.8.x"},
      {"v1.0.1", "1.0.x"}, {"v1.1.0", "1.1.0"}, {"v1.1.1", "1.1.1-1.1.2"}};
  std::ifstream stream(absl::StrCat(CDI_TESTDATA, "/spec.jsonl"));
  ASSERT_TRUE(stream.good());
  int compared = 0;
  for (std::string line; std::getline(stream, line);) {
    const Json test = Json::parse(line);
    // Where only the text is strange, not the content, Compatible() cannot see it.
    if (test.contains("traits") || test.contains("repeat") || !test["expect"]["ok"]) continue;
    const absl::StatusOr<Spec> spec = ReadJson(test["text"].get<std::string>());
    if (!spec.ok()) continue;
    for (const auto& [version, library] : lines) {
      Json expect = test["expect"];
      for (const Json& older : test.value("byVersion", Json::array())) {
        const Json& versions = older["versions"];
        if (std::find(versions.begin(), versions.end(), version) != versions.end()) {
          expect = older["expect"];
        }
      }
      // An empty member of a newer version is in the text only, as Compatible() says.
      const std::string error = expect.value("error", "");
      const size_t unknown = error.find("unknown field ");
      if (unknown != std::string::npos &&
          !absl::StrContains(FormatJson(*spec), error.substr(unknown + 14))) {
        continue;
      }
      const Compatibility found = Of(*spec, library);
      EXPECT_EQ(found.accepted, expect["ok"].get<bool>())
          << test["id"] << " with " << version << ": " << found.reason << "\n"
          << expect.dump();
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace ascend::cdi
