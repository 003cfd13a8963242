#include "cdi/cmd/commands.h"

#include <fstream>
#include <sstream>

#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr char kSpec[] = R"({"cdiVersion": "0.5.0", "kind": "huawei.com/npu",
  "containerEdits": {"env": ["ASCEND_VISIBLE_DEVICES=void"]},
  "devices": [
    {"name": "0", "containerEdits": {"env": ["NPU=0"]}},
    {"name": "1", "containerEdits": {"env": ["NPU=1"]}}]})";

class CommandsTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = dir_.File(name);
    std::ofstream(path) << text;
    return path;
  }
  std::shared_ptr<const Snapshot> Scanned() { return Scan({dir_.path()}); }
  Output Human() { return {text_, errors_}; }
  Output ForScripts() { return {text_, errors_, true}; }
  std::string Text() { return text_.str(); }
  std::string Errors() { return errors_.str(); }
  Json AsJson() { return Json::parse(Text()); }

  TempDir dir_;
  std::ostringstream text_, errors_;
};

TEST_F(CommandsTest, ListShowsDevicesWithTheirFilesAndNamesBadFiles) {
  const std::string path = Write("npu.json", kSpec);
  const std::string bad = Write("bad.json", "{");
  EXPECT_EQ(List(*Scanned(), {}, Human()), kExitOk);
  EXPECT_EQ(Text(), "DEVICE            FILE\nhuawei.com/npu=0  " + path + "\nhuawei.com/npu=1  " +
                        path + "\n");
  EXPECT_THAT(Errors(), HasSubstr(bad));
}

TEST_F(CommandsTest, ListAsJson) {
  const std::string path = Write("npu.json", kSpec);
  const std::string bad = Write("bad.json", "{");
  EXPECT_EQ(List(*Scanned(), {}, ForScripts()), kExitOk);
  const Json json = AsJson();
  EXPECT_EQ(json["devices"][1], Json({{"name", "huawei.com/npu=1"}, {"file", path}}));
  EXPECT_EQ(json["errors"][0]["path"], bad);
  EXPECT_THAT(Errors(), IsEmpty());
}

TEST_F(CommandsTest, ListFiltersByVendorAndClass) {
  Write("npu.json", kSpec);
  EXPECT_EQ(List(*Scanned(), {.vendor = "nvidia.com", .device_class = ""}, Human()), kExitOk);
  EXPECT_THAT(Text(), IsEmpty());
  EXPECT_THAT(Errors(), HasSubstr("no devices"));
  EXPECT_EQ(List(*Scanned(), {.vendor = "huawei.com", .device_class = "npu"}, Human()), kExitOk);
  EXPECT_THAT(Text(), HasSubstr("huawei.com/npu=0"));
}

TEST_F(CommandsTest, ShowPrintsOneDeviceWithTheCommonEdits) {
  Write("npu.json", kSpec);
  EXPECT_EQ(Show(*Scanned(), {"huawei.com/npu=1"}, ForScripts()), kExitOk);
  const Json spec = AsJson()[0]["spec"];
  EXPECT_EQ(spec["devices"].size(), 1u);
  EXPECT_EQ(spec["devices"][0]["name"], "1");
  EXPECT_EQ(spec["containerEdits"]["env"][0], "ASCEND_VISIBLE_DEVICES=void");
}

TEST_F(CommandsTest, ShowOfAnUnknownDeviceSaysNo) {
  Write("npu.json", kSpec);
  EXPECT_EQ(Show(*Scanned(), {"huawei.com/npu=0", "huawei.com/npu=7"}, Human()), kExitNo);
  EXPECT_THAT(Text(), HasSubstr("huawei.com/npu=0"));
  EXPECT_THAT(Errors(), HasSubstr("no device huawei.com/npu=7"));
  EXPECT_EQ(Show(*Scanned(), {"/dev/davinci0"}, Human()), kExitNo);
  EXPECT_THAT(Errors(), HasSubstr("a name is like"));
}

TEST_F(CommandsTest, ValidateNamesFilePlaceAndRule) {
  const std::string good = Write("npu.json", kSpec);
  const std::string bad = Write("bad.yaml",
                                "cdiVersion: 0.5.0\nkind: huawei.com/npu\n"
                                "devices: [{name: x, containerEdits: {}}]\n");
  EXPECT_EQ(Validate({good, bad}, false, Human()), kExitNo);
  EXPECT_THAT(Text(), StartsWith(good + ": valid, cdiVersion 0.5.0, 2 devices\n"));
  EXPECT_THAT(Errors(), HasSubstr(bad));
  EXPECT_THAT(Errors(), HasSubstr("devices[0].containerEdits"));
  EXPECT_EQ(Validate({good}, false, Human()), kExitOk);
}

TEST_F(CommandsTest, ValidateStrictIsStricter) {
  const std::string file = Write("npu.json",
                                 R"({"cdiVersion": "0.3.0", "kind": "huawei.com/npu", "devices": [
      {"name": "a", "containerEdits": {"deviceNodes": [{"path": "relative"}]}}]})");
  EXPECT_EQ(Validate({file}, false, Human()), kExitOk);
  EXPECT_EQ(Validate({file}, true, ForScripts()), kExitNo);
  EXPECT_THAT(Text(), HasSubstr("relative"));
}

TEST_F(CommandsTest, ValidateReportsFindingsOfTheFileItself) {
  const std::string file = Write("npu.json", kSpec);
  ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
  EXPECT_EQ(Validate({file}, false, Human()), kExitOk);
  EXPECT_THAT(Text(), HasSubstr("note: "));
}

TEST_F(CommandsTest, MinimumVersionOfOneFileIsOneWord) {
  const std::string file = Write("npu.json", kSpec);
  EXPECT_EQ(PrintMinimumVersions({file}, Human()), kExitOk);
  EXPECT_EQ(Text(), "0.5.0\n");  // the device's name begins with a digit
  EXPECT_EQ(PrintMinimumVersions({dir_.File("none.json")}, Human()), kExitError);
  EXPECT_THAT(Errors(), HasSubstr("none.json"));
}

TEST_F(CommandsTest, CompatSaysWhoRefuses) {
  const std::string file = Write("npu.json", kSpec);
  EXPECT_EQ(PrintCompatibility({file}, "containerd", Human()), kExitOk);
  EXPECT_THAT(Text(), HasSubstr("containerd 1.7.0-1.7.11: accepted"));
  EXPECT_EQ(PrintCompatibility({file}, "", Human()), kExitOk);  // no question, no answer
  text_.str("");
  EXPECT_EQ(PrintCompatibility({file}, "containerd 1.7.1", Human()), kExitOk);
  EXPECT_THAT(Text(), Not(HasSubstr("podman")));
  EXPECT_EQ(PrintCompatibility({file}, "podman", Human()), kExitNo);
  EXPECT_THAT(Text(), HasSubstr("podman 4.1-4.2: refused: knows no cdiVersion 0.5.0"));
  EXPECT_EQ(PrintCompatibility({file}, "lxd", Human()), kExitUsage);
  EXPECT_THAT(Errors(), HasSubstr("no release of lxd"));
}

TEST_F(CommandsTest, InjectPrintsTheConfiguration) {
  Write("npu.json", kSpec);
  std::istringstream config(R"({"ociVersion": "1.2.0", "process": {"env": ["PATH=/bin"]}})");
  EXPECT_EQ(InjectDevices(*Scanned(), {"huawei.com/npu=1"}, "", config, Human()), kExitOk);
  EXPECT_EQ(AsJson()["process"]["env"],
            Json({"PATH=/bin", "ASCEND_VISIBLE_DEVICES=void", "NPU=1"}));
  EXPECT_THAT(Text(), StartsWith("{\n  \"ociVersion\"")) << "the order of what came in";
}

TEST_F(CommandsTest, InjectPrintsNothingOnAFailure) {
  const std::string bad = Write("bad.json", "{");
  std::istringstream config("{}");
  EXPECT_EQ(InjectDevices(*Scanned(), {"huawei.com/npu=1"}, "", config, Human()), kExitNo);
  EXPECT_THAT(Text(), IsEmpty());
  EXPECT_THAT(Errors(), HasSubstr("huawei.com/npu=1"));
  EXPECT_THAT(Errors(), HasSubstr(bad));  // may be why it does not resolve
  std::istringstream text("no json");
  EXPECT_EQ(InjectDevices(*Scanned(), {}, "", text, Human()), kExitNo);
  EXPECT_THAT(Errors(), HasSubstr("not JSON"));
  std::istringstream empty("{}");
  EXPECT_EQ(InjectDevices(*Scanned(), {}, "1.x", empty, Human()), kExitUsage);
}

TEST_F(CommandsTest, ReplayCountsAndNamesWhatFails) {
  const std::string file =
      Write("cases.jsonl",
            R"({"id": "good", "op": "parse-qualified", "text": "a.b/c=d", "expect": {"ok": true, )"
            R"("vendor": "a.b", "class": "c", "name": "d", "parseDevice": ["a.b", "c", "d"]}})"
            "\n"
            R"({"id": "bad", "op": "parse-qualified", "text": "a.b/c=d", "expect": {"ok": false, )"
            R"("vendor": "", "class": "", "name": "a.b/c=d"}})"
            "\n");
  EXPECT_EQ(Replay({file}, Human()), kExitNo);
  EXPECT_THAT(Text(), EndsWith("1 passed, 1 failed\n"));
  EXPECT_THAT(Text(), HasSubstr("bad: "));
  EXPECT_THAT(Text(), Not(HasSubstr("good")));
}

TEST_F(CommandsTest, ReplayOfSomethingElseIsAnError) {
  EXPECT_EQ(Replay({dir_.File("none.jsonl")}, Human()), kExitError);
  EXPECT_THAT(Errors(), HasSubstr("none.jsonl"));
  const std::string file = Write("cases.jsonl", "{}\nno json\n");
  EXPECT_EQ(Replay({file}, Human()), kExitNo);
  EXPECT_THAT(Text(), EndsWith("0 passed, 2 failed\n"));
  EXPECT_THAT(Text(), HasSubstr(file + ":2"));
}

}  // namespace
}  // namespace ascend::cdi::cmd
