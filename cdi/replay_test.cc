#include "cdi/replay.h"

#include <string>
#include <vector>

#include "base/core/status_matchers.h"
#include "cdi/json_difference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(JsonDifferencesTest, NamesTheSmallestPart) {
  const Json expected = Json::parse(R"({"a": {"b/c": [1, 2]}, "gone": null, "n": 1})");
  const Json got = Json::parse(R"({"a": {"b/c": [1, 3, 4]}, "new~": true, "n": 1.0})");
  EXPECT_THAT(
      JsonDifferences(expected, got),
      ElementsAre("/a/b~1c/1: expected 2, got 3", "/a/b~1c/2: expected nothing, got 4",
                  "/gone: expected null, got nothing", "/new~0: expected nothing, got true"));
  EXPECT_THAT(JsonDifferences(expected, expected), IsEmpty());
  EXPECT_THAT(JsonDifferences(1, "1", "/x"), ElementsAre("/x: expected 1, got \"1\""));
}

TEST(JsonDifferencesTest, SurvivesBytesThatAreNoText) {
  EXPECT_THAT(JsonDifferences("\xff", std::string(1000, 'x')),
              ElementsAre(HasSubstr("... (1002 bytes)")));
}

const char kSpec[] =
    R"({"cdiVersion": "0.5.0", "kind": "huawei.com/npu",
        "devices": [{"name": "a", "containerEdits": {"deviceNodes": [{"path": "/dev/davinci0"}]}}]})";

Json InjectCase(const std::string& result) {
  Json test = {{"op", "inject"},
               {"dirs", Json::array({{{"s.json", kSpec}}})},
               {"devices", {"huawei.com/npu=a"}},
               {"oci", Json::object()}};
  test["expect"] = Json::parse(result);
  return test;
}

TEST(ReplayTest, SaysWhatDiffers) {
  const Json test = {{"op", "transient-name"},
                     {"args", {"v", "c", "a/b"}},
                     {"expect", {{"ok", true}, {"name", "v-c_a/b"}}}};
  EXPECT_THAT(ReplayCase(test),
              IsOkAndHolds(ElementsAre("/name: expected \"v-c_a/b\", got \"v-c_a_b\"")));
}

TEST(ReplayTest, SaysWhyItRefuses) {
  const Json test = {{"op", "spec"},
                     {"file", "x.json"},
                     {"text", "{}"},
                     {"expect", {{"ok", true}, {"minVersion", "0.3.0"}, {"canonical", {}}}}};
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(ElementsAre(HasSubstr("cdiVersion"))));
}

TEST(ReplayTest, BringsItsOwnHost) {
  Json test = InjectCase(R"({"ok": true, "listDevices": ["huawei.com/npu=a"], "fileErrors": [],
    "oci": {"ociVersion": "", "linux": {
      "devices": [{"path": "/dev/davinci0", "type": "c", "major": 236, "minor": 7,
                   "fileMode": 432}],
      "resources": {"devices": [{"allow": true, "type": "c", "major": 236, "minor": 7,
                                 "access": "rwm"}]}}}})");
  test["host"] =
      Json::parse(R"({"/dev/davinci0": {"type": "c", "major": 236, "minor": 7, "mode": 432}})");
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(IsEmpty()));
  test["host"]["/dev/davinci0"]["minor"] = 8;
  EXPECT_THAT(ReplayCase(test),
              IsOkAndHolds(ElementsAre("/oci/linux/devices/0/minor: expected 7, got 8",
                                       "/oci/linux/resources/devices/0/minor: expected 7, got 8")));
  test["host"]["/dev/davinci0"] = nullptr;
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(ElementsAre(HasSubstr("/dev/davinci0"))));
  test["host"]["/dev/davinci0"] = {{"type", "file"}};
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(ElementsAre(HasSubstr("not a device node"))));
  for (const Json& wrong : {Json(1), Json::object(), Json{{"type", "x"}, {"mode", 0}},
                            Json{{"type", "c"}, {"mode", -1}}, Json{{"type", "c"}, {"uid", "0"}}}) {
    test["host"]["/dev/davinci0"] = wrong;
    EXPECT_THAT(ReplayCase(test),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("host: /dev/davinci0")));
  }
}

// The trait allows a refusal, but no third result.
TEST(ReplayTest, UsesTheFreedomOfATrait) {
  Json test = {{"op", "spec"}, {"file", "x.json"}, {"text", "not JSON"}};
  test["expect"] = Json::parse(R"({"ok": true, "minVersion": "0.3.0", "canonical": {}})");
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(::testing::SizeIs(1)));
  test["traits"] = {"valid-json-refused"};
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(::testing::SizeIs(1)));
  test["traits"] = {"loose-json"};
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(IsEmpty()));
  test["text"] = kSpec;
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(::testing::Not(IsEmpty())));
}

TEST(ReplayTest, FreedomToRefuseAFileOfAnInjection) {
  Json test = InjectCase(R"({"ok": true, "oci": {}, "listDevices": ["huawei.com/npu=a"],
                             "fileErrors": []})");
  test["dirs"][0]["s.json"] = "not JSON";
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(::testing::Not(IsEmpty())));
  test["traits"] = {"yaml"};
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(IsEmpty()));
}

TEST(ReplayTest, ExpandsLongStrings) {
  const Json test = Json::parse(R"({"op": "transient-name", "repeat": {"@X@": ["ab", 3]},
    "args": ["v", "c", "@X@"], "expect": {"ok": true, "name": "v-c_ababab"}})");
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(IsEmpty()));
}

TEST(ReplayTest, RefusesWhatIsNoCase) {
  for (const char* text :
       {"[]", "{}", R"({"op": "x", "expect": {"ok": true}})",
        R"({"op": "spec", "file": "a.txt", "text": "", "expect": {"ok": true}})",
        R"({"op": "spec", "file": "a.json", "expect": {"ok": true}})",
        R"({"op": "transient-name", "args": ["a"], "expect": {"ok": true}})",
        R"({"op": "transient-name", "args": ["a", "b", 1], "expect": {"ok": true}})",
        R"({"op": "transient-name", "args": ["a", "b", "c"], "expect": {}})",
        R"({"op": "transient-name", "args": ["a", "b", "c"], "expect": {"ok": true},
            "repeat": {"a": ["b", 99999999999]}})",
        R"({"op": "transient-name", "args": ["a", "b", "c"], "expect": {"ok": true},
            "repeat": {"": ["b", 1]}})",
        R"({"op": "inject", "dirs": [{"../x.json": ""}], "devices": [], "oci": {},
            "expect": {"ok": true}})",
        R"({"op": "inject", "dirs": [1], "devices": [], "oci": {}, "expect": {"ok": true}})",
        R"({"op": "inject", "dirs": [], "devices": [], "oci": 5, "expect": {"ok": true}})"}) {
    EXPECT_THAT(ReplayCase(Json::parse(text)), StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

TEST(ReplayTest, OlderVersions) {
  Json test = InjectCase(R"({"ok": false, "listDevices": ["huawei.com/npu=a"], "fileErrors": [],
                             "unresolved": []})");
  test["host"] = {{"/dev/davinci0", nullptr}};
  EXPECT_THAT(ReplayCase(test, {.version = "v0.5.4"}), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(ReplayCase(test, {.version = "v0.5"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("v0.5")));
  test["byVersion"] = Json::parse(
      R"([{"versions": ["v0.5.4"], "expect": {"ok": false, "listDevices": [],
                                              "fileErrors": [{"file": "d0/s.json"}]}}])");
  EXPECT_THAT(RecordedVersions(test), ElementsAre("v0.5.4"));
  EXPECT_THAT(ReplayCase(test, {.version = "v0.5.4"}), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(ReplayCase(test), IsOkAndHolds(IsEmpty()));
  const Json name = {{"op", "transient-name"},
                     {"args", {"v", "c", "a"}},
                     {"expect", {{"ok", true}, {"name", "v-c_a"}}}};
  EXPECT_THAT(ReplayCase(name, {.version = "v0.5.4"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace ascend::cdi
