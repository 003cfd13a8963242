#include "cdi/oci_config.h"

#include <string>
#include <utility>
#include <vector>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using Json = OciConfig;
using ::testing::HasSubstr;

TEST(OciConfigTest, AcceptsWhatIsAbsentOrNull) {
  EXPECT_THAT(CheckOciConfig(Json::object()), IsOk());
  EXPECT_THAT(CheckOciConfig(Json::parse(R"({"process": null, "mounts": null, "hooks": null,
                                             "linux": null})")),
              IsOk());
  EXPECT_THAT(CheckOciConfig(Json::parse(R"({
        "process": {"env": null, "user": null}, "hooks": {"prestart": null},
        "mounts": [{}, {"destination": null}],
        "linux": {"devices": [{}], "resources": null, "netDevices": null, "namespaces": [{}],
                  "uidMappings": null}})")),
              IsOk());
}

TEST(OciConfigTest, LooksAtNothingElse) {
  EXPECT_THAT(CheckOciConfig(Json::parse(R"({
        "ociVersion": 5, "root": [], "process": {"args": "x", "cwd": 1},
        "mounts": [{"destination": "/a", "options": 1}], "hooks": {"other": 1, "prestart": [1]},
        "linux": {"devices": [{"path": "/a", "major": "x"}], "resources": {"devices": [1]},
                  "intelRdt": 1, "netDevices": {"eth0": 1}, "uidMappings": [1]}})")),
              IsOk());
}

TEST(OciConfigTest, NamesThePlaceOfAWrongType) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"5", "the OCI configuration must be an object"},
      {"null", "the OCI configuration must be an object"},
      {"[]", "the OCI configuration must be an object"},
      {R"({"process": 5})", "process: must be an object"},
      {R"({"process": []})", "process: must be an object"},
      {R"({"process": {"env": {}}})", "process.env: must be an array"},
      {R"({"process": {"env": ["A=1", 2]}})", "process.env[1]: must be a string"},
      {R"({"process": {"env": [null]}})", "process.env[0]: must be a string"},
      {R"({"process": {"user": "root"}})", "process.user: must be an object"},
      {R"({"process": {"user": {"uid": -1}}})", "process.user.uid: must be a number from 0"},
      {R"({"process": {"user": {"uid": "0"}}})", "process.user.uid: must be a number from 0"},
      {R"({"process": {"user": {"gid": 4294967296}}})", "process.user.gid: must be a number"},
      {R"({"process": {"user": {"gid": 1.5}}})", "process.user.gid: must be a number"},
      {R"({"process": {"user": {"additionalGids": 1}}})",
       "process.user.additionalGids: must be an array"},
      {R"({"process": {"user": {"additionalGids": [1, -2]}}})",
       "process.user.additionalGids[1]: must be a number"},
      {R"({"mounts": {}})", "mounts: must be an array"},
      {R"({"mounts": ["/a"]})", "mounts[0]: must be an object"},
      {R"({"mounts": [{"destination": 1}]})", "mounts[0].destination: must be a string"},
      {R"({"hooks": []})", "hooks: must be an object"},
      {R"({"hooks": {"poststop": {}}})", "hooks.poststop: must be an array"},
      {R"({"linux": true})", "linux: must be an object"},
      {R"({"linux": {"devices": {}}})", "linux.devices: must be an array"},
      {R"({"linux": {"devices": [1]}})", "linux.devices[0]: must be an object"},
      {R"({"linux": {"devices": [{"path": []}]}})", "linux.devices[0].path: must be a string"},
      {R"({"linux": {"resources": []}})", "linux.resources: must be an object"},
      {R"({"linux": {"resources": {"devices": {}}}})", "linux.resources.devices: must be an array"},
      {R"({"linux": {"netDevices": []}})", "linux.netDevices: must be an object"},
      {R"({"linux": {"namespaces": "user"}})", "linux.namespaces: must be an array"},
      {R"({"linux": {"namespaces": [{"type": 1}]}})", "linux.namespaces[0].type: must be a string"},
      {R"({"linux": {"uidMappings": {}}})", "linux.uidMappings: must be an array"},
      {R"({"linux": {"gidMappings": {}}})", "linux.gidMappings: must be an array"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(CheckOciConfig(Json::parse(text)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << text;
  }
}

TEST(OciConfigTest, NumbersSetByCodeCount) {
  Json config;
  config["process"]["user"]["uid"] = 1000;  // signed
  config["process"]["user"]["gid"] = 4294967295u;
  EXPECT_THAT(CheckOciConfig(config), IsOk());
  EXPECT_EQ(ProcessUserOf(config).uid, 1000u);
  EXPECT_EQ(ProcessUserOf(config).gid, 4294967295u);
  EXPECT_EQ(ProcessUserOf(Json::object()).uid, 0u);
}

TEST(OciConfigTest, UserNamespace) {
  const auto of = [](const char* section) {
    return UserNamespaceOf(Json{{"linux", Json::parse(section)}});
  };
  EXPECT_EQ(UserNamespaceOf(Json::object()), UserNamespace::kNone);
  EXPECT_EQ(of("{}"), UserNamespace::kNone);
  EXPECT_EQ(of(R"({"namespaces": [{"type": "pid"}], "uidMappings": [{}], "gidMappings": [{}]})"),
            UserNamespace::kNone);
  EXPECT_EQ(of(R"({"namespaces": [{"type": "user"}]})"), UserNamespace::kWithoutMappings);
  EXPECT_EQ(of(R"({"namespaces": [{"type": "user"}], "uidMappings": [{}], "gidMappings": []})"),
            UserNamespace::kWithoutMappings);
  EXPECT_EQ(of(R"({"namespaces": [{"type": "pid"}, {"type": "user"}], "uidMappings": [{}],
                   "gidMappings": [{}]})"),
            UserNamespace::kMapped);
}

TEST(OciConfigTest, AbsentAndNullMembersAreCreated) {
  Json config = Json::parse(R"({"a": null})");
  EXPECT_EQ(FindMember(config, "a"), nullptr);
  EXPECT_EQ(FindMember(config, "b"), nullptr);
  EXPECT_EQ(TextIn(config, "a"), "");
  ArrayIn(ObjectIn(config, "a"), "b").push_back(1);
  EXPECT_EQ(config, Json::parse(R"({"a": {"b": [1]}})"));
}

TEST(OciConfigTest, AnArrayStaysWhereItIsWhenItsObjectGrows) {
  Json config = Json::object();
  Json::array_t& array = ArrayIn(config, "array");
  array.push_back(1);
  for (int i = 0; i < 20; ++i) ValueIn(config, "member" + std::to_string(i)) = i;
  EXPECT_EQ(&ArrayIn(config, "array"), &array);
  EXPECT_EQ(config["array"], Json::parse("[1]"));
  EXPECT_EQ(config.size(), 21u);
  EXPECT_EQ(config["member7"], 7);
  EXPECT_EQ(ValueIn(config, "member7"), 7) << "what is there is found, not added";
}

}  // namespace
}  // namespace ascend::cdi
