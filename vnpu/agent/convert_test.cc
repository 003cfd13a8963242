#include "vnpu/agent/convert.h"

#include "gmock/gmock.h"

namespace ascend::agent {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Another number for each resource.
vnpu::Amounts AllAmounts(int64_t first) {
  vnpu::Amounts amounts;
  for (const vnpu::Resource resource : vnpu::kResources) amounts[resource] = first++;
  return amounts;
}

vnpu::Inventory FullInventory() {
  vnpu::Chip full{.physical_id = 6,
                  .logic_id = 5,
                  .card_id = 3,
                  .device_id = 1,
                  .node_number = 6,
                  .family = vnpu::Family::kA3,
                  .model = "Ascend910_9392",
                  .board_id = 0xb0,
                  .uuid = "00000001-00000002-00000003-00000004-00000005",
                  .serial = "SN1",
                  .pci_bus_id = "0000:c1:00.0",
                  .pcie_root = "pci0000:c0",
                  .numa_node = 0,
                  .memory_mib = 65536,
                  .aicore_count = 24,
                  .aicpu_count = 7,
                  .health = vnpu::Health::kMinor,
                  .hccs_group = "0",
                  .module = "3",
                  .module_peer_physical_id = 7,
                  .super_pod_id = 0,
                  .super_pod_server = int64_t{1} << 40,
                  .roce_address = "29.17.151.115",
                  .busy = std::vector<int>{0, 4242},
                  .faults = std::vector<vnpu::Fault>{{.code = 0x110001024,
                                                      .active = true,
                                                      .occurrences = uint64_t{1} << 40,
                                                      .severity = vnpu::FaultSeverity::kMajor,
                                                      .text = "UBOE port fault"},
                                                     {.code = 0x81078603}},
                  .faults_error = "no answer",
                  .network = vnpu::NetworkHealth::kDown,
                  .partitioning = vnpu::Partitioning{.total = AllAmounts(100),
                                                     .vnpus = {{.id = 196,
                                                                .template_name = "vir05_1c_16g",
                                                                .vgroup = 2,
                                                                .container_used = true,
                                                                .normal = true,
                                                                .amounts = AllAmounts(1)},
                                                               {.id = 197, .normal = false}}},
                  .partitioning_error = "later no answer",
                  .stuck = "dcmi_create_vdevice has not returned for 10 s"};
  vnpu::Chip bare;
  bare.physical_id = 8;
  vnpu::Chip free = bare;
  free.physical_id = 9;
  free.busy.emplace();
  free.faults.emplace();
  free.partitioning.emplace();
  return {.revision = uint64_t{1} << 60,
          .agent_instance = "abc",
          .library = vnpu::LibraryState::kNotResponding,
          .library_message = "a call did not return",
          .library_path = "/usr/local/dcmi/libdcmi.so",
          .dcmi_version = "7.0",
          .driver_version = "25.5.1",
          .firmware_version = "7.8.0.6.201",
          .version_problem = "restart the node",
          .multi_die_policy = vnpu::MultiDiePolicy::kUnion,
          .vdevice_mode = vnpu::VdeviceMode::kVm,
          .vnpu_recovery = false,
          .chips = {full, bare, free},
          .skipped = {{.card_id = 4, .device_id = 1, .reason = "not an NPU"}}};
}

TEST(ConvertTest, EveryFieldSurvivesTheRoundTrip) {
  EXPECT_EQ(FromProto(ToProto(FullInventory())), FullInventory());
}

TEST(ConvertTest, EveryFieldOfTheMessagesIsFilled) {
  // Catches a field that is added to the messages but not to the conversion.
  const v1alpha1::Inventory message = ToProto(FullInventory());
  const auto expect_all_set = [](const google::protobuf::Message& m) {
    const google::protobuf::Descriptor& type = *m.GetDescriptor();
    for (int i = 0; i < type.field_count(); ++i) {
      const google::protobuf::FieldDescriptor* field = type.field(i);
      const bool is_set = field->is_repeated() ? m.GetReflection()->FieldSize(m, field) > 0
                                               : m.GetReflection()->HasField(m, field);
      EXPECT_TRUE(is_set) << field->full_name();
    }
  };
  expect_all_set(message);
  expect_all_set(message.chips(0));
  expect_all_set(message.chips(0).partitioning());
  expect_all_set(message.chips(0).partitioning().vnpus(0));
  expect_all_set(message.chips(0).faults());
  expect_all_set(message.chips(0).faults().faults(0));
  expect_all_set(message.skipped(0));
}

TEST(ConvertTest, AnEmptyInventorySurvivesTheRoundTrip) {
  EXPECT_EQ(FromProto(ToProto(vnpu::Inventory{})), vnpu::Inventory{});
}

TEST(ConvertTest, AbsentNumbersDoNotBecomeZero) {
  const vnpu::Inventory inventory = FromProto(ToProto(FullInventory()));
  ASSERT_THAT(inventory.chips, SizeIs(3));
  EXPECT_EQ(inventory.chips[0].numa_node, 0);
  EXPECT_EQ(inventory.chips[0].super_pod_id, 0);
  EXPECT_EQ(inventory.chips[1].numa_node, std::nullopt);
  EXPECT_EQ(inventory.chips[1].module_peer_physical_id, std::nullopt);
  EXPECT_EQ(inventory.chips[1].super_pod_id, std::nullopt);
  EXPECT_EQ(inventory.chips[1].super_pod_server, std::nullopt);
  EXPECT_EQ(inventory.chips[1].busy, std::nullopt) << "unknown is not none";
  EXPECT_EQ(inventory.chips[2].busy, std::vector<int>());
  EXPECT_EQ(inventory.chips[1].partitioning, std::nullopt);
  EXPECT_EQ(inventory.chips[2].partitioning, vnpu::Partitioning());
  EXPECT_EQ(inventory.chips[1].faults, std::nullopt) << "unknown is not none";
  EXPECT_EQ(inventory.chips[2].faults, std::vector<vnpu::Fault>());
  EXPECT_EQ(inventory.vnpu_recovery, false);
}

TEST(ConvertTest, ProcessesSurviveTheRoundTrip) {
  const vnpu::ChipProcesses known = {
      .physical_id = 3,
      .known = true,
      .processes = {{.pid = 4242, .name = "python3", .memory_bytes = int64_t{1} << 40}, {}}};
  EXPECT_EQ(FromProto(ToProto(known)), known);
  const vnpu::ChipProcesses unknown = {.physical_id = 4, .error = "no answer"};
  EXPECT_EQ(FromProto(ToProto(unknown)), unknown);
}

TEST(ConvertTest, NamesOfAllEnumeratorsSurvive) {
  using vnpu::Family;
  using vnpu::Health;
  using vnpu::LibraryState;
  using vnpu::MultiDiePolicy;
  for (Family family : {Family::kUnknown, Family::k310, Family::k310B, Family::k310P, Family::k910A,
                        Family::k910B, Family::kA3, Family::k950}) {
    vnpu::Inventory inventory;
    inventory.chips.push_back({.family = family});
    EXPECT_EQ(FromProto(ToProto(inventory)), inventory);
  }
  for (Health health : {Health::kUnknown, Health::kOk, Health::kMinor, Health::kMajor,
                        Health::kCritical, Health::kAbsent}) {
    vnpu::Inventory inventory;
    inventory.chips.push_back({.health = health});
    EXPECT_EQ(FromProto(ToProto(inventory)), inventory);
  }
  for (LibraryState state : {LibraryState::kMissing, LibraryState::kStarting, LibraryState::kReady,
                             LibraryState::kNotResponding, LibraryState::kFailed}) {
    EXPECT_EQ(FromProto(ToProto({.library = state})).library, state);
  }
  for (vnpu::VdeviceMode mode :
       {vnpu::VdeviceMode::kUnknown, vnpu::VdeviceMode::kContainer, vnpu::VdeviceMode::kVm}) {
    EXPECT_EQ(FromProto(ToProto({.vdevice_mode = mode})).vdevice_mode, mode);
  }
  for (vnpu::FaultSeverity severity :
       {vnpu::FaultSeverity::kUnknown, vnpu::FaultSeverity::kWarning, vnpu::FaultSeverity::kMinor,
        vnpu::FaultSeverity::kMajor, vnpu::FaultSeverity::kCritical}) {
    vnpu::Inventory inventory;
    inventory.chips.push_back({.faults = std::vector<vnpu::Fault>{{.severity = severity}}});
    EXPECT_EQ(FromProto(ToProto(inventory)), inventory);
  }
  for (vnpu::NetworkHealth network :
       {vnpu::NetworkHealth::kUnknown, vnpu::NetworkHealth::kOk, vnpu::NetworkHealth::kDown}) {
    vnpu::Inventory inventory;
    inventory.chips.push_back({.network = network});
    EXPECT_EQ(FromProto(ToProto(inventory)), inventory);
  }
  for (MultiDiePolicy policy :
       {MultiDiePolicy::kUnknown, MultiDiePolicy::kUnion, MultiDiePolicy::kIndependent}) {
    EXPECT_EQ(FromProto(ToProto({.multi_die_policy = policy})).multi_die_policy, policy);
  }
}

TEST(ConvertTest, AVnpuSurvivesTheRoundTrip) {
  const vnpu::Inventory inventory = FullInventory();
  for (const vnpu::Vnpu& vnpu : inventory.chips[0].partitioning->vnpus) {
    EXPECT_EQ(FromProto(ToProto(vnpu)), vnpu);
  }
  EXPECT_EQ(FromProto(ToProto(vnpu::Vnpu())), vnpu::Vnpu());
}

TEST(ConvertTest, WhatAnOlderAgentDoesNotSayIsUnknown) {
  v1alpha1::Inventory message;
  message.add_chips()->set_physical_id(1);
  const vnpu::Inventory inventory = FromProto(message);
  EXPECT_EQ(inventory.vdevice_mode, vnpu::VdeviceMode::kUnknown);
  EXPECT_EQ(inventory.vnpu_recovery, std::nullopt);
  ASSERT_THAT(inventory.chips, SizeIs(1));
  EXPECT_EQ(inventory.chips[0].partitioning, std::nullopt);
  EXPECT_EQ(inventory.chips[0].stuck, "");
  EXPECT_EQ(inventory.chips[0].faults, std::nullopt);
  EXPECT_EQ(inventory.chips[0].network, vnpu::NetworkHealth::kUnknown);
  EXPECT_EQ(inventory.version_problem, "");
}

TEST(ConvertTest, UnknownNamesFromANewerAgentAreTolerated) {
  v1alpha1::Inventory message;
  message.set_library_state("hibernating");
  message.set_multi_die_policy("sometimes");
  message.set_vdevice_mode("cloud");
  message.add_chips()->set_family("960");
  message.mutable_chips(0)->set_health("superb");
  message.mutable_chips(0)->set_network("flapping");
  message.mutable_chips(0)->mutable_faults()->add_faults()->set_severity("dreadful");
  auto& total = *message.mutable_chips(0)->mutable_partitioning()->mutable_total();
  total["aicore"] = 20;
  total["qubits"] = 7;

  const vnpu::Inventory inventory = FromProto(message);
  EXPECT_EQ(inventory.library, vnpu::LibraryState::kFailed);
  EXPECT_EQ(inventory.multi_die_policy, vnpu::MultiDiePolicy::kUnknown);
  ASSERT_THAT(inventory.chips, SizeIs(1));
  EXPECT_EQ(inventory.chips[0].family, vnpu::Family::kUnknown);
  EXPECT_EQ(inventory.chips[0].health, vnpu::Health::kUnknown);
  EXPECT_EQ(inventory.chips[0].network, vnpu::NetworkHealth::kUnknown);
  EXPECT_EQ(inventory.chips[0].faults, std::vector<vnpu::Fault>{{}});
  EXPECT_EQ(inventory.vdevice_mode, vnpu::VdeviceMode::kUnknown);
  vnpu::Amounts expected;
  expected[vnpu::Resource::kAicore] = 20;
  ASSERT_TRUE(inventory.chips[0].partitioning.has_value());
  EXPECT_EQ(inventory.chips[0].partitioning->total, expected);
  EXPECT_THAT(inventory.skipped, IsEmpty());
}

}  // namespace
}  // namespace ascend::agent
