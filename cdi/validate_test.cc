#include "cdi/validate.h"

#include <functional>
#include <limits>
#include <string>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What the driver writes for a claim, with one of everything else on top.
Spec Full() {
  Spec spec;
  spec.version = "1.1.0";
  spec.kind = "k8s.npu.huawei.com/claim";
  spec.annotations = {{"npu.huawei.com/claim", "default/a"}};
  spec.container_edits.env = {"ASCEND_VISIBLE_DEVICES=void"};
  Device device;
  device.name = "dab5ab50-d59a-42a6-af16-cfd4628c0f7a-npu-0";
  ContainerEdits& edits = device.container_edits;
  edits.env = {"A=", "B=c=d"};
  edits.device_nodes = {{.path = "/dev/davinci0",
                         .host_path = "/dev/davinci0",
                         .type = "c",
                         .major = 236,
                         .minor = 0,
                         .file_mode = 0660,
                         .permissions = "rw",
                         .uid = 0,
                         .gid = 1000}};
  edits.net_devices = {{"eth0", "eth1"}};
  edits.hooks = {{.hook_name = "poststop", .path = "/bin/x", .args = {"x", ""}, .timeout = 1}};
  edits.mounts = {{.host_path = "/usr/local/dcmi",
                   .container_path = "/usr/local/dcmi",
                   .options = {"ro", "rbind"},
                   .type = "bind"}};
  edits.intel_rdt = IntelRdt{.clos_id = "npu", .schemata = {{"L3:0=f"}}};
  edits.additional_gids = {1000};
  spec.devices = {device};
  return spec;
}

absl::Status WithChange(absl::Status (*validate)(const Spec&),
                        const std::function<void(Spec&)>& change) {
  Spec spec = Full();
  change(spec);
  return validate(spec);
}

ContainerEdits& Edits(Spec& spec) { return spec.devices[0].container_edits; }
DeviceNode& Node(Spec& spec) { return Edits(spec).device_nodes[0]; }
Mount& TheMount(Spec& spec) { return Edits(spec).mounts[0]; }
Hook& TheHook(Spec& spec) { return Edits(spec).hooks[0]; }

TEST(ValidateTest, AGoodSpecPassesBoth) {
  EXPECT_THAT(ValidateForReading(Full()), IsOk());
  EXPECT_THAT(ValidateForWriting(Full()), IsOk());
}

TEST(ValidateTest, TheWriterDoesNotLookAtTheVersion) {
  EXPECT_THAT(WithChange(ValidateForWriting, [](Spec& spec) { spec.version = "nonsense"; }),
              IsOk());
  EXPECT_THAT(WithChange(ValidateForReading, [](Spec& spec) { spec.version = "0.7.0"; }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(StartsWith("cdiVersion: "), HasSubstr("1.1.0"))));
}

struct Violation {
  const char* place;  // begins the message
  std::function<void(Spec&)> change;
};

void ExpectPlaces(absl::Status (*validate)(const Spec&), const std::vector<Violation>& violations) {
  for (const Violation& violation : violations) {
    EXPECT_THAT(WithChange(validate, violation.change),
                StatusIs(absl::StatusCode::kInvalidArgument, StartsWith(violation.place)))
        << violation.place;
  }
}

// Both refuse these, and name the place.
const std::vector<Violation>& Refused() {
  static const auto* violations = new std::vector<Violation>{
      {"kind: ", [](Spec& s) { s.kind = "huawei.com"; }},
      {"kind: vendor", [](Spec& s) { s.kind = "1a.com/npu"; }},
      {"kind: class", [](Spec& s) { s.kind = "a.com/npu_"; }},
      {"containerEdits.env[0]: ", [](Spec& s) { s.container_edits.env[0] = "=x"; }},
      {"devices: ", [](Spec& s) { s.devices.clear(); }},
      {"devices[0].name: ", [](Spec& s) { s.devices[0].name = ""; }},
      {"devices[0].name: ", [](Spec& s) { s.devices[0].name = "a b"; }},
      {"devices[1].name: is there twice", [](Spec& s) { s.devices.push_back(s.devices[0]); }},
      {"devices[1].containerEdits: must not be empty",
       [](Spec& s) { s.devices.push_back({"b", {}, {}}); }},
      {"devices[0].containerEdits.env[1]: ", [](Spec& s) { Edits(s).env[1] = "B"; }},
      {"devices[0].containerEdits.deviceNodes[0].path: ", [](Spec& s) { Node(s).path = ""; }},
      {"devices[0].containerEdits.deviceNodes[0].type: ", [](Spec& s) { Node(s).type = "char"; }},
      {"devices[0].containerEdits.deviceNodes[0].permissions: ",
       [](Spec& s) { Node(s).permissions = "rwx"; }},
      {"devices[0].containerEdits.deviceNodes[0].major: ", [](Spec& s) { Node(s).major = -1; }},
      {"devices[0].containerEdits.deviceNodes[0].minor: ", [](Spec& s) { Node(s).minor = -1; }},
      {"devices[0].containerEdits.hooks[0].hookName: ",
       [](Spec& s) { TheHook(s).hook_name = "PreStart"; }},
      {"devices[0].containerEdits.hooks[0].path: ", [](Spec& s) { TheHook(s).path = ""; }},
      {"devices[0].containerEdits.hooks[0].env[0]: ", [](Spec& s) { TheHook(s).env = {"A"}; }},
      {"devices[0].containerEdits.mounts[0].hostPath: must not be empty",
       [](Spec& s) { TheMount(s).host_path = ""; }},
      {"devices[0].containerEdits.mounts[0].containerPath: must not be empty",
       [](Spec& s) { TheMount(s).container_path = ""; }},
      {"devices[0].containerEdits.intelRdt.closID: ",
       [](Spec& s) { Edits(s).intel_rdt->clos_id = "a/b"; }},
      {"devices[0].containerEdits.intelRdt.closID: ",
       [](Spec& s) { Edits(s).intel_rdt->clos_id = std::string(4096, 'a'); }},
      {"devices[0].containerEdits.netDevices[0].name: ",
       [](Spec& s) { Edits(s).net_devices[0].name = ""; }},
      {"devices[0].containerEdits.netDevices[0].hostInterfaceName: ",
       [](Spec& s) { Edits(s).net_devices[0].host_interface_name = ""; }},
      {"devices[0].containerEdits.netDevices[1].hostInterfaceName: is there twice",
       [](Spec& s) { Edits(s).net_devices.push_back({"eth0", "eth2"}); }},
      {"devices[0].containerEdits.netDevices[1].name: is there twice",
       [](Spec& s) { Edits(s).net_devices.push_back({"eth2", "eth1"}); }},
  };
  return *violations;
}

TEST(ValidateTest, TheReaderNamesThePlace) { ExpectPlaces(ValidateForReading, Refused()); }
TEST(ValidateTest, TheWriterRefusesWhatTheReaderRefuses) {
  ExpectPlaces(ValidateForWriting, Refused());
}

// The reader must load these, as the reference does; the writer must not write them.
TEST(ValidateTest, TheWriterIsStricter) {
  const std::vector<Violation> violations = {
      {"kind: ", [](Spec& s) { s.kind = "a/npu"; }},
      {"kind: ", [](Spec& s) { s.kind = "HUAWEI.com/npu"; }},
      {"kind: ", [](Spec& s) { s.kind = "huawei_x.com/npu"; }},
      {"kind: ", [](Spec& s) { s.kind = "huawei..com/npu"; }},
      {"kind: ", [](Spec& s) { s.kind = "huawei.com/n"; }},
      {"kind: ", [](Spec& s) { s.kind = "huawei.com/npu.x"; }},
      {"kind: ", [](Spec& s) { s.kind = "huawei.com/" + std::string(64, 'n'); }},
      {"annotations: key \"a/b/c\"", [](Spec& s) { s.annotations = {{"a/b/c", ""}}; }},
      {"annotations[\"a.b/c\"]: ", [](Spec& s) { s.annotations = {{"a.b/c", "x\ny"}}; }},
      {"devices[0].annotations: ", [](Spec& s) { s.devices[0].annotations = {{"", ""}}; }},
      {"containerEdits.env[0]: ", [](Spec& s) { s.container_edits.env[0] = "A=x\ny"; }},
      {"devices[0].name: ", [](Spec& s) { s.devices[0].name = std::string(129, 'a'); }},
      {"devices[0].name: ", [](Spec& s) { s.devices[0].name = "a:b"; }},
      {"devices[0].containerEdits.env[0]: ", [](Spec& s) { Edits(s).env[0] = "A B=1"; }},
      {"devices[0].containerEdits.env[0]: ", [](Spec& s) { Edits(s).env[0] = "A=\x7F"; }},
      {"devices[0].containerEdits.env[0]: ", [](Spec& s) { Edits(s).env[0] = "A=\xC2\x85"; }},
      {"devices[0].containerEdits.env[0]: is not valid UTF-8",
       [](Spec& s) { Edits(s).env[0] = "A=\xFF"; }},
      {"devices[0].containerEdits.deviceNodes[0].path: must be absolute",
       [](Spec& s) { Node(s).path = "dev/x"; }},
      {"devices[0].containerEdits.deviceNodes[0].path: ",
       [](Spec& s) { Node(s).path = "/dev/../etc/x"; }},
      {"devices[0].containerEdits.deviceNodes[0].path: must not be the root",
       [](Spec& s) { Node(s).path = "/"; }},
      {"devices[0].containerEdits.deviceNodes[1].path: is there twice",
       [](Spec& s) {
         const DeviceNode node = Node(s);
         Edits(s).device_nodes = {node, node};
       }},
      {"devices[0].containerEdits.mounts[1].containerPath: is there twice",
       [](Spec& s) {
         Edits(s).mounts = {{.host_path = "/a", .container_path = "/c"},
                            {.host_path = "/b", .container_path = "/c"}};
       }},
      {"devices[0].containerEdits.deviceNodes[0].uid: ", [](Spec& s) { Node(s).uid = 0xFFFFFFFF; }},
      {"devices[0].containerEdits.additionalGids[0]: ",
       [](Spec& s) { Edits(s).additional_gids = {0xFFFFFFFF}; }},
      {"devices[0].containerEdits.intelRdt: must not be empty",
       [](Spec& s) { Edits(s).intel_rdt = IntelRdt(); }},
      {"devices[0].containerEdits.deviceNodes[0].hostPath: ",
       [](Spec& s) { Node(s).host_path = "/dev/x/"; }},
      {"devices[0].containerEdits.deviceNodes[0].major: ",
       [](Spec& s) {
         Node(s).type = "u";
         Node(s).major = 0;
       }},
      {"devices[0].containerEdits.deviceNodes[0].major: ",
       [](Spec& s) { Node(s).major = int64_t{1} << 31; }},
      {"devices[0].containerEdits.deviceNodes[0].minor: ",
       [](Spec& s) { Node(s).minor = std::numeric_limits<int64_t>::max(); }},
      {"devices[0].containerEdits.deviceNodes[0].fileMode: must be given",
       [](Spec& s) { Node(s).file_mode.reset(); }},
      {"devices[0].containerEdits.deviceNodes[0].fileMode: ",
       [](Spec& s) { Node(s).file_mode = 020660; }},
      {"devices[0].containerEdits.deviceNodes[0].permissions: ",
       [](Spec& s) { Node(s).permissions = "none"; }},
      {"devices[0].containerEdits.deviceNodes[0].permissions: ",
       [](Spec& s) { Node(s).permissions = "rwr"; }},
      {"devices[0].containerEdits.hooks[0].path: ", [](Spec& s) { TheHook(s).path = "x"; }},
      {"devices[0].containerEdits.hooks[0].args[1]: ", [](Spec& s) { TheHook(s).args[1] = "\t"; }},
      {"devices[0].containerEdits.hooks[0].timeout: ", [](Spec& s) { TheHook(s).timeout = 0; }},
      {"devices[0].containerEdits.hooks[0].timeout: ", [](Spec& s) { TheHook(s).timeout = -1; }},
      {"devices[0].containerEdits.mounts[0].hostPath: ",
       [](Spec& s) { TheMount(s).host_path = "/a//b"; }},
      {"devices[0].containerEdits.mounts[0].containerPath: ",
       [](Spec& s) { TheMount(s).container_path = "/a/./b"; }},
      {"devices[0].containerEdits.mounts[0].options[1]: ",
       [](Spec& s) { TheMount(s).options[1] = ""; }},
      {"devices[0].containerEdits.mounts[0].type: ", [](Spec& s) { TheMount(s).type = "bi\nnd"; }},
      {"devices[0].containerEdits.intelRdt.closID: ",
       [](Spec& s) { Edits(s).intel_rdt->clos_id = "/"; }},
      {"devices[0].containerEdits.intelRdt.schemata: ",
       [](Spec& s) { Edits(s).intel_rdt->schemata->clear(); }},
      {"devices[0].containerEdits.intelRdt.schemata[0]: ",
       [](Spec& s) { Edits(s).intel_rdt->schemata = {{""}}; }},
      {"devices[0].containerEdits.intelRdt.l3CacheSchema: ",
       [](Spec& s) { Edits(s).intel_rdt->l3_cache_schema = "a\nb"; }},
      {"devices[0].containerEdits.intelRdt.memBwSchema: ",
       [](Spec& s) { Edits(s).intel_rdt->mem_bw_schema = "a\nb"; }},
      {"devices[0].containerEdits.netDevices[0].hostInterfaceName: ",
       [](Spec& s) { Edits(s).net_devices[0].host_interface_name = "a/b"; }},
      {"devices[0].containerEdits.netDevices[0].name: ",
       [](Spec& s) { Edits(s).net_devices[0].name = std::string(16, 'a'); }},
      {"devices[0].containerEdits.additionalGids[1]: ",
       [](Spec& s) { Edits(s).additional_gids.push_back(0); }},
  };
  for (const Violation& violation : violations) {
    EXPECT_THAT(WithChange(ValidateForReading, violation.change), IsOk()) << violation.place;
  }
  ExpectPlaces(ValidateForWriting, violations);
}

TEST(ValidateTest, TheLimitsThemselvesAreAllowed) {
  EXPECT_THAT(WithChange(ValidateForWriting,
                         [](Spec& s) {
                           s.kind = "ab/" + std::string(63, 'n');
                           s.devices[0].name = std::string(128, '0');
                           Node(s).path = "/x";
                           Node(s).major = std::numeric_limits<int32_t>::max();
                           Node(s).file_mode = 0;
                           Edits(s).intel_rdt->clos_id = std::string(4095, 'c');
                           Edits(s).net_devices[0].name = std::string(15, 'e');
                         }),
              IsOk());
  EXPECT_THAT(WithChange(ValidateForWriting,
                         [](Spec& s) {
                           Node(s).type = "u";
                           Node(s).host_path = "";
                           Edits(s).intel_rdt = IntelRdt{.clos_id = "x"};
                         }),
              IsOk());
}

}  // namespace
}  // namespace ascend::cdi
