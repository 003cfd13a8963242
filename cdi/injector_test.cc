#include "cdi/injector.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using Json = nlohmann::json;  // compares without the order of members
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Every /dev/davinci<digit> is a character device.
int FakeLstat(const std::string& path, struct stat* info) {
  const std::string prefix = "/dev/davinci";
  if (path.size() != prefix.size() + 1 || path.compare(0, prefix.size(), prefix) != 0) {
    return ENOENT;
  }
  info->st_mode = S_IFCHR | 0660;
  info->st_rdev = makedev(236, static_cast<unsigned>(path.back() - '0'));
  return 0;
}

InjectionOptions Options(const InjectionCompatibility& compatibility = {}) {
  return {.compatibility = compatibility, .lstat = FakeLstat};
}

// The configuration after `edits`, which must succeed.
Json Applied(const ContainerEdits& edits, const std::string& config = "{}",
             const InjectionCompatibility& compatibility = {}) {
  OciConfig result = OciConfig::parse(config);
  EXPECT_THAT(ApplyEdits(edits, result, Options(compatibility)), IsOk());
  return result;
}

TEST(ApplyEditsTest, NothingToDoChangesNothing) {
  EXPECT_EQ(Applied({}), Json::object());
  EXPECT_EQ(Applied({.additional_gids = {0}}), Json::object());
  EXPECT_EQ(Applied({}, R"({"process": null})"), Json::parse(R"({"process": null})"));
}

TEST(ApplyEditsTest, EnvReplacesInPlaceOrAppends) {
  const Json config = Applied({.env = {"A=new", "D=1", "D=2", "E==x=y"}},
                              R"({"process": {"env": ["A=1", "B", "A=2", "C="], "cwd": "/"}})");
  // Of a variable that is there twice, the last one is replaced.
  EXPECT_EQ(
      config,
      Json::parse(
          R"({"process": {"env": ["A=1", "B", "A=new", "C=", "D=2", "E==x=y"], "cwd": "/"}})"));
  EXPECT_EQ(Applied({.env = {"B=1"}}, R"({"process": {"env": ["B"]}})"),
            Json::parse(R"({"process": {"env": ["B=1"]}})"));
}

TEST(ApplyEditsTest, EnvOfOlderReleasesIsAppended) {
  const InjectionCompatibility old = {.append_env = true};
  EXPECT_EQ(Applied({.env = {"A=2", "A=3"}}, R"({"process": {"env": ["A=1"]}})", old),
            Json::parse(R"({"process": {"env": ["A=1", "A=3"]}})"));
  // They did find an entry that is nothing but the key.
  EXPECT_EQ(Applied({.env = {"A=2"}}, R"({"process": {"env": ["A"]}})", old),
            Json::parse(R"({"process": {"env": ["A=2"]}})"));
}

TEST(ApplyEditsTest, DeviceNodesGetACgroupRule) {
  const ContainerEdits edits = {.device_nodes = {{.path = "/dev/davinci0"},
                                                 {.path = "/dev/davinci1", .permissions = "r"},
                                                 {.path = "/dev/davinci2", .permissions = "none"}}};
  EXPECT_EQ(Applied(edits), Json::parse(R"({"linux": {
    "devices": [
      {"path": "/dev/davinci0", "type": "c", "major": 236, "minor": 0, "fileMode": 432},
      {"path": "/dev/davinci1", "type": "c", "major": 236, "minor": 1, "fileMode": 432},
      {"path": "/dev/davinci2", "type": "c", "major": 236, "minor": 2, "fileMode": 432}],
    "resources": {"devices": [
      {"allow": true, "type": "c", "major": 236, "minor": 0, "access": "rwm"},
      {"allow": true, "type": "c", "major": 236, "minor": 1, "access": "r"},
      {"allow": true, "type": "c", "major": 236, "minor": 2}]}}})"));
}

TEST(ApplyEditsTest, UnbufferedDevicesAndFifosGetNoRule) {
  const ContainerEdits edits = {
      .device_nodes = {{.path = "/u", .type = "u", .major = 1}, {.path = "/p", .type = "p"}}};
  EXPECT_EQ(Applied(edits), Json::parse(R"({"linux": {"devices": [
    {"path": "/u", "type": "u", "major": 1, "minor": 0},
    {"path": "/p", "type": "p", "major": 0, "minor": 0}]}})"));
}

TEST(ApplyEditsTest, DeviceNodesBelongToTheProcessUnlessTheySayOtherwise) {
  const ContainerEdits edits = {
      .device_nodes = {{.path = "/a", .type = "u", .major = 1},
                       {.path = "/b", .type = "u", .major = 1, .uid = 0, .gid = 5}}};
  const Json devices =
      Applied(edits, R"({"process": {"user": {"uid": 1000, "gid": 2000}}})")["linux"]["devices"];
  EXPECT_EQ(devices[0]["uid"], 1000);
  EXPECT_EQ(devices[0]["gid"], 2000);
  EXPECT_EQ(devices[1]["uid"], 0);
  EXPECT_EQ(devices[1]["gid"], 5);
  EXPECT_FALSE(Applied(edits)["linux"]["devices"][0].contains("uid"));
}

TEST(ApplyEditsTest, DeviceNodeReplacesThoseOfItsPath) {
  const ContainerEdits edits = {.device_nodes = {{.path = "/a", .type = "p"}}};
  const auto paths = [&](const std::string& devices) {
    std::string result;
    const Json config = Applied(edits, R"({"linux": {"devices": )" + devices + "}}");
    for (const Json& device : config["linux"]["devices"]) {
      absl::StrAppend(&result, device["path"].get<std::string>(),
                      device.contains("type") ? "! " : " ");
    }
    return result;
  };
  EXPECT_EQ(paths(R"([{"path": "/a"}, {"path": "/b"}])"), "/b /a! ");
  EXPECT_EQ(paths(R"([{"path": "/a"}, {"path": "/b"}, {"path": "/a"}, {"path": "/c"}])"),
            "/b /a! /c ");
  EXPECT_EQ(paths(R"([{"path": "/a"}, {"path": "/a"}, {"path": "/a"}])"), "/a! /a ");
}

TEST(ApplyEditsTest, NetDevices) {
  EXPECT_EQ(Applied({.net_devices = {{"eth0", "e0"}, {"eth2", "e2"}}},
                    R"({"linux": {"netDevices": {"eth0": {"name": "x", "y": 1}, "eth1": {}}}})"),
            Json::parse(R"({"linux": {"netDevices": {"eth0": {"name": "e0"}, "eth1": {},
                                                      "eth2": {"name": "e2"}}}})"));
}

std::string Destinations(const Json& config) {
  std::string result;
  for (const Json& mount : config["mounts"]) {
    absl::StrAppend(&result, mount.value("destination", ""), " ");
  }
  return result;
}

ContainerEdits MountEdits(const std::vector<std::string>& paths) {
  ContainerEdits edits;
  for (const std::string& path : paths) edits.mounts.push_back({"/host", path, {}, ""});
  return edits;
}

TEST(ApplyEditsTest, MountsAreSortedByDepth) {
  const char config[] = R"({"mounts": [{"destination": "/z"}, {"destination": "/a/b/c"},
      {"destination": "/proc"}, {"destination": "/"}, {}]})";
  EXPECT_EQ(Destinations(Applied(MountEdits({"/y/1", "/b"}), config)),
            " /z /proc / /b /y/1 /a/b/c ");
  EXPECT_EQ(
      Destinations(Applied(MountEdits({"/y/1", "/b"}), config, {.sort_mounts_by_name = true})),
      " / /b /proc /z /y/1 /a/b/c ");
  // Nothing is sorted for the sake of something else.
  EXPECT_EQ(Destinations(Applied({.env = {"A=1"}}, config)), "/z /a/b/c /proc /  ");
}

TEST(ApplyEditsTest, DepthIsThatOfTheCleanPath) {
  // In this order they have 0, 1, 1, 1, 1, 2, 2 and 3 slashes when cleaned.
  const std::vector<std::string> paths = {"a",     "/b/",       "a/b",     "//c/.",
                                          "/../d", "/e/x/../y", "../../a", "/f/g/h"};
  std::string expected;
  for (const std::string& path : paths) absl::StrAppend(&expected, path, " ");
  const std::vector<std::string> reversed(paths.rbegin(), paths.rend());
  // Stable: within a depth the order of the input.
  EXPECT_EQ(Destinations(Applied(MountEdits(paths))), expected);
  EXPECT_EQ(Destinations(Applied(MountEdits(reversed))),
            "a /../d //c/. a/b /b/ ../../a /e/x/../y /f/g/h ");
}

TEST(ApplyEditsTest, MountReplacesTheFirstOfItsDestination) {
  const Json config = Applied({.mounts = {{"/h", "/a", {"ro", "rbind"}, "bind"}}},
                              R"({"mounts": [{"destination": "/a", "source": "1"},
                                             {"destination": "/a", "source": "2"}]})");
  EXPECT_EQ(config, Json::parse(R"({"mounts": [
    {"destination": "/a", "source": "2"},
    {"destination": "/a", "source": "/h", "type": "bind", "options": ["ro", "rbind"]}]})"));
}

TEST(ApplyEditsTest, BindMountsAreMappedUnderAUserNamespace) {
  const ContainerEdits edits = {.mounts = {{"/h", "/a", {"bind", "ro"}, ""},
                                           {"/h", "/b", {"rbind"}, ""},
                                           {"/h", "/c", {}, "bind"},
                                           {"/h", "/d", {}, "tmpfs"},
                                           {"/h", "/e", {"bind", "ridmap"}, ""},
                                           {"/h", "/f", {"rbind"}, "bind"}}};
  const char mapped[] = R"({"linux": {"namespaces": [{"type": "user"}], "uidMappings": [{}],
                                      "gidMappings": [{}]}})";
  const char unmapped[] = R"({"linux": {"namespaces": [{"type": "user"}]}})";
  const auto options = [&](const char* config, const InjectionCompatibility& compatibility) {
    std::string result;
    const Json applied = Applied(edits, config, compatibility);
    for (const Json& mount : applied["mounts"]) {
      absl::StrAppend(&result, mount.value("options", Json::array()).dump());
    }
    return result;
  };
  const std::string with = R"(["bind","ro","idmap"]["rbind","ridmap"]["idmap"][])"
                           R"(["bind","ridmap"]["rbind","ridmap"])";
  const std::string without = R"(["bind","ro"]["rbind"][][]["bind","ridmap"]["rbind"])";
  EXPECT_EQ(options(mapped, {}), with);
  EXPECT_EQ(options(unmapped, {}), without);
  EXPECT_EQ(options("{}", {}), without);
  EXPECT_EQ(options(unmapped, {.idmap_without_mappings = true}), with);
  EXPECT_EQ(options(mapped, {.no_idmap = true}), without);
}

TEST(ApplyEditsTest, HooksAreAppended) {
  EXPECT_EQ(Applied({.hooks = {{"poststop", "/1", {"1", "x"}, {"A=1"}, 0},
                               {"prestart", "/2"},
                               {"poststop", "/3"}}},
                    R"({"hooks": {"poststop": [{"path": "/0"}], "prestart": null}})"),
            Json::parse(R"({"hooks": {
              "poststop": [{"path": "/0"},
                           {"path": "/1", "args": ["1", "x"], "env": ["A=1"], "timeout": 0},
                           {"path": "/3"}],
              "prestart": [{"path": "/2"}]}})"));
}

TEST(ApplyEditsTest, IntelRdtIsReplacedWhole) {
  ContainerEdits edits;
  edits.intel_rdt = IntelRdt{.clos_id = "c",
                             .l3_cache_schema = "L3:0=f",
                             .mem_bw_schema = "MB:0=70",
                             .schemata = std::vector<std::string>{"L2:0=1"},
                             .enable_monitoring = true};
  const char config[] = R"({"linux": {"intelRdt": {"closID": "old", "other": 1}}})";
  EXPECT_EQ(Applied(edits, config), Json::parse(R"({"linux": {"intelRdt": {
    "closID": "c", "l3CacheSchema": "L3:0=f", "memBwSchema": "MB:0=70", "schemata": ["L2:0=1"],
    "enableMonitoring": true}}})"));
  edits.intel_rdt = IntelRdt{};
  EXPECT_EQ(Applied(edits, config), Json::parse(R"({"linux": {"intelRdt": {}}})"));
}

TEST(ApplyEditsTest, AdditionalGidsAreAddedOnce) {
  EXPECT_EQ(Applied({.additional_gids = {5, 0, 7, 5, 9}},
                    R"({"process": {"user": {"uid": 1, "additionalGids": [9]}}})"),
            Json::parse(R"({"process": {"user": {"uid": 1, "additionalGids": [9, 5, 7]}}})"));
}

TEST(ApplyEditsTest, AnErrorChangesNothing) {
  // Everything before the bad node would have been applied.
  ContainerEdits edits = {.env = {"A=1"},
                          .device_nodes = {{.path = "/dev/davinci0"}, {.path = "/dev/gone"}}};
  OciConfig config = OciConfig::object();
  EXPECT_THAT(ApplyEdits(edits, config, Options()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/dev/gone")));
  EXPECT_EQ(config, OciConfig::object());

  edits.device_nodes[1].path = "";
  EXPECT_THAT(ApplyEdits(edits, config, Options()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deviceNodes[1].path")));
  EXPECT_EQ(config, OciConfig::object());

  edits.device_nodes.pop_back();
  for (const char* hostile : {"5", "[]", R"({"process": 5})", R"({"process": {"env": [1, 2]}})",
                              R"({"linux": {"devices": "x"}})", R"({"hooks": 1})"}) {
    config = OciConfig::parse(hostile);
    EXPECT_THAT(ApplyEdits(edits, config, Options()), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(config, OciConfig::parse(hostile));
  }
}

TEST(ApplyEditsTest, MembersKeepTheirOrder) {
  OciConfig config = OciConfig::parse(
      R"({"root": {"path": "/"}, "linux": {"seccomp": {}, "cgroupsPath": "/x"}, "annotations": {}})");
  const ContainerEdits edits = {.env = {"A=1"},
                                .device_nodes = {{.path = "/dev/davinci0", .uid = 1, .gid = 2}},
                                .hooks = {{"poststop", "/1", {"1"}, {"B=1"}, 0}},
                                .mounts = {{"/h", "/a", {"ro"}, "bind"}}};
  EXPECT_THAT(ApplyEdits(edits, config, Options()), IsOk());
  EXPECT_EQ(config.dump(),
            R"({"root":{"path":"/"},"linux":{"seccomp":{},"cgroupsPath":"/x","devices":[)"
            R"({"path":"/dev/davinci0","type":"c","major":236,"minor":0,"fileMode":432,"uid":1,)"
            R"("gid":2}],"resources":{"devices":[{"allow":true,"type":"c","major":236,"minor":0,)"
            R"("access":"rwm"}]}},"annotations":{},"process":{"env":["A=1"]},"mounts":[)"
            R"({"destination":"/a","type":"bind","source":"/h","options":["ro"]}],"hooks":{)"
            R"("poststop":[{"path":"/1","args":["1"],"env":["B=1"],"timeout":0}]}})");
}

TEST(ApplyEditsTest, EditsFromCodeAreValidated) {
  OciConfig config = OciConfig::object();
  EXPECT_THAT(ApplyEdits({.hooks = {{"noSuchHook", "/x"}}}, config),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("hooks[0].hookName")));
  EXPECT_THAT(ApplyEdits({.env = {"=1"}}, config), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ApplyEditsTest, StringsNeedNotBeText) {
  OciConfig config = {{"process", {{"env", {"A=\xff"}}}}};
  EXPECT_THAT(ApplyEdits({.env = {"B=\xfe"}}, config), IsOk());
  EXPECT_EQ(config["process"]["env"], OciConfig({"A=\xff", "B=\xfe"}));
}

// ---- Inject()

class InjectTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& devices, const std::string& common) {
    std::ofstream file(temp_.File(name));
    file << R"({"cdiVersion": "1.1.0", "kind": "huawei.com/npu", "devices": )" << devices
         << R"(, "containerEdits": )" << common << "}";
    file.close();
    ASSERT_TRUE(file.good());
    snapshot_ = Scan({temp_.path()});
    ASSERT_THAT(snapshot_->errors(), IsEmpty());
  }

  TempDir temp_;
  std::shared_ptr<const Snapshot> snapshot_ = Scan({temp_.path()});
};

TEST_F(InjectTest, CommonEditsOnceThenEachDevice) {
  Write("a.json",
        R"([{"name": "0", "containerEdits": {"additionalGids": [10]}},
            {"name": "1", "containerEdits": {"additionalGids": [11]}}])",
        R"({"hooks": [{"hookName": "prestart", "path": "/a"}], "additionalGids": [1]})");
  Write("b.json", R"([{"name": "2", "containerEdits": {"hooks": [
                        {"hookName": "prestart", "path": "/2"}]}}])",
        R"({"hooks": [{"hookName": "prestart", "path": "/b"}]})");
  OciConfig config = OciConfig::object();
  // A device that is asked for twice is applied twice.
  ASSERT_THAT(
      Inject(*snapshot_,
             {"huawei.com/npu=1", "huawei.com/npu=2", "huawei.com/npu=0", "huawei.com/npu=2"},
             config, Options()),
      IsOk());
  EXPECT_EQ(Json(config), Json::parse(R"({
    "hooks": {"prestart": [{"path": "/a"}, {"path": "/b"}, {"path": "/2"}, {"path": "/2"}]},
    "process": {"user": {"additionalGids": [1, 11, 10]}}})"));
}

TEST_F(InjectTest, NamesAllThatDoNotResolve) {
  Write("a.json", R"([{"name": "0", "containerEdits": {"env": ["A=1"]}}])", "{}");
  OciConfig config = OciConfig::object();
  const std::vector<std::string> names = {"x", "huawei.com/npu=0", "huawei.com/npu=9", ""};
  EXPECT_THAT(
      Inject(*snapshot_, names, config),
      StatusIs(absl::StatusCode::kNotFound, "unresolvable CDI devices x, huawei.com/npu=9, "));
  EXPECT_EQ(config, OciConfig::object());
  EXPECT_THAT(Unresolved(*snapshot_, names), ElementsAre("x", "huawei.com/npu=9", ""));
  EXPECT_THAT(Unresolved(*snapshot_, {"huawei.com/npu=0"}), IsEmpty());
}

TEST_F(InjectTest, NoNamesChangeNothing) {
  OciConfig config = 5;
  EXPECT_THAT(Inject(*snapshot_, {}, config), IsOk());
  EXPECT_EQ(config, 5);
}

TEST_F(InjectTest, IntelRdtOfTheLastDeviceWins) {
  Write("a.json",
        R"([{"name": "0", "containerEdits": {"intelRdt": {"closID": "zero"}}},
            {"name": "1", "containerEdits": {"intelRdt": {"closID": "one"}}},
            {"name": "2", "containerEdits": {"env": ["A=1"]}}])",
        "{}");
  OciConfig config = OciConfig::object();
  ASSERT_THAT(
      Inject(*snapshot_, {"huawei.com/npu=0", "huawei.com/npu=1", "huawei.com/npu=2"}, config),
      IsOk());
  EXPECT_EQ(config["linux"]["intelRdt"]["closID"], "one");
}

TEST_F(InjectTest, DevicesMayNotGiveOneInterfaceTwice) {
  Write("a.json",
        R"([{"name": "0", "containerEdits": {"netDevices": [
               {"hostInterfaceName": "eth0", "name": "a"}]}},
            {"name": "1", "containerEdits": {"netDevices": [
               {"hostInterfaceName": "eth0", "name": "b"}]}}])",
        "{}");
  const std::vector<std::string> names = {"huawei.com/npu=0", "huawei.com/npu=1"};
  OciConfig config = OciConfig::object();
  EXPECT_THAT(Inject(*snapshot_, names, config),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("together"), HasSubstr("eth0"))));
  EXPECT_EQ(config, OciConfig::object());
  EXPECT_THAT(Inject(*snapshot_, names, config, Options({.repeated_net_devices = true})), IsOk());
  EXPECT_EQ(config["linux"]["netDevices"]["eth0"]["name"], "b");
}

TEST_F(InjectTest, TheSnapshotStaysAsItIs) {
  Write("a.json", R"([{"name": "0", "containerEdits": {"deviceNodes": [
                        {"path": "/dev/davinci0"}]}}])",
        "{}");
  const Spec before = snapshot_->files()[0]->spec;
  for (int i = 0; i < 2; ++i) {
    OciConfig config = OciConfig::object();
    ASSERT_THAT(Inject(*snapshot_, {"huawei.com/npu=0"}, config, Options()), IsOk());
  }
  EXPECT_EQ(snapshot_->files()[0]->spec, before);
  OciConfig config = OciConfig::object();
  InjectionOptions gone;
  gone.lstat = [](const std::string&, struct stat*) { return ENOENT; };
  EXPECT_THAT(Inject(*snapshot_, {"huawei.com/npu=0"}, config, gone),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(CompatibilityOfTest, KnowsEveryRelease) {
  const auto of = [](const char* version) {
    const auto result = CompatibilityOf(version);
    EXPECT_THAT(result, IsOk()) << version;
    if (!result.ok()) return std::string();
    return absl::StrCat(
        result->append_env ? "env " : "", result->sort_mounts_by_name ? "sort " : "",
        result->no_file_mode_from_host ? "mode " : "",
        result->idmap_without_mappings ? "idmap " : "", result->no_idmap ? "no-idmap " : "",
        result->repeated_net_devices ? "net" : "");
  };
  EXPECT_EQ(of("v0.5.4"), "env sort mode no-idmap net");
  EXPECT_EQ(of("0.8.1"), "env sort mode no-idmap net");
  EXPECT_EQ(of("v1.0.1"), "env mode no-idmap net");
  EXPECT_EQ(of("v1.1.0"), "env no-idmap net");
  EXPECT_EQ(of("05ae4b5"), "idmap net");
  EXPECT_EQ(of("v1.1.1"), "idmap net");
  EXPECT_EQ(of("v1.1.2"), "");
  EXPECT_EQ(of("v1.1.10"), "");
  for (const char* wrong : {"", "v", "1.1", "1.1.1.1", "v1.1.x", "1.-1.0", "99999999999.0.0"}) {
    EXPECT_THAT(CompatibilityOf(wrong), StatusIs(absl::StatusCode::kInvalidArgument)) << wrong;
  }
}

}  // namespace
}  // namespace ascend::cdi
