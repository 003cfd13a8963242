#include "vnpu/discovery.h"

#include <stdlib.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/library.h"
#include "vnpu/dcmi/mock/test_node.h"
#include "vnpu/fake_dcmi.h"
#include "vnpu/family.h"

namespace ascend::vnpu {
namespace {

using ::ascend::dcmi::mock::TestNode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A library of the test's own on a shipped node, and what discovery makes of it.
class Subject {
 public:
  explicit Subject(absl::string_view name) : node(name) {
    auto library = dcmi::Library::Open({TestNode::CopyLibrary(directory_.path())});
    EXPECT_THAT(library, IsOk());
    library_ = *std::move(library);
    EXPECT_THAT(library_->Initialise(), IsOk());
    options.sysfs_root = JoinPath(node.Root(), "sys");
    options.hccn_conf = JoinPath(node.Root(), "etc/hccn.conf");
    options.ascend_root = JoinPath(node.Root(), "usr/local/Ascend");
  }

  absl::StatusOr<Inventory> Try() { return Discover(*library_, options); }
  Inventory Run() {
    absl::StatusOr<Inventory> inventory = Try();
    EXPECT_THAT(inventory, IsOk());
    return inventory.ok() ? *std::move(inventory) : Inventory();
  }

  TestNode node;
  DiscoveryOptions options;

 private:
  TempDir directory_;
  std::unique_ptr<dcmi::Library> library_;
};

const Chip* Find(const Inventory& inventory, int physical_id) {
  for (const Chip& chip : inventory.chips) {
    if (chip.physical_id == physical_id) return &chip;
  }
  return nullptr;
}

std::vector<int> PhysicalIds(const Inventory& inventory) {
  std::vector<int> ids;
  ids.reserve(inventory.chips.size());
  for (const Chip& chip : inventory.chips) ids.push_back(chip.physical_id);
  return ids;
}

absl::string_view PolicyName(MultiDiePolicy policy) {
  switch (policy) {
    case MultiDiePolicy::kUnion:
      return "union";
    case MultiDiePolicy::kIndependent:
      return "independent";
    case MultiDiePolicy::kUnknown:
      break;
  }
  return "unknown";
}

template <typename T>
std::string Text(const std::optional<T>& value) {
  return value.has_value() ? absl::StrCat(*value) : "-";
}

std::string BusyText(const Chip& chip) {
  if (!chip.busy.has_value()) return "unknown";
  return chip.busy->empty() ? "no" : absl::StrJoin(*chip.busy, " ");
}

std::string Text(const Inventory& inventory) {
  std::string text = absl::StrFormat(
      "library %s, dcmi %s, driver %s, firmware %s, multi-die policy %s\n",
      LibraryStateName(inventory.library), inventory.dcmi_version, inventory.driver_version,
      inventory.firmware_version, PolicyName(inventory.multi_die_policy));
  for (const Chip& chip : inventory.chips) {
    absl::StrAppend(
        &text,
        absl::StrFormat("chip %d logic %d card %d device %d node %d\n"
                        "  %s %s board 0x%02x cores %d cpus %d memory %d health %s\n"
                        "  uuid %s serial %s\n  pci %s root %s numa %s roce %s\n",
                        chip.physical_id, chip.logic_id, chip.card_id, chip.device_id,
                        chip.node_number, FamilyName(chip.family), chip.model, chip.board_id,
                        chip.aicore_count, chip.aicpu_count, chip.memory_mib,
                        HealthName(chip.health), chip.uuid, chip.serial, chip.pci_bus_id,
                        chip.pcie_root, Text(chip.numa_node), chip.roce_address),
        absl::StrFormat("  hccs [%s] module [%s] peer %s super-pod %s server %s busy %s\n",
                        chip.hccs_group, chip.module, Text(chip.module_peer_physical_id),
                        Text(chip.super_pod_id), Text(chip.super_pod_server), BusyText(chip)));
  }
  for (const SkippedChip& chip : inventory.skipped) {
    absl::StrAppend(&text, "skipped ", chip.card_id, ".", chip.device_id, ": ", chip.reason, "\n");
  }
  return text;
}

// Run with ASCEND_UPDATE_GOLDENS=1 to accept a change, and review the diff.
class DiscoveryGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DiscoveryGoldenTest, FindsWhatTheNodeHas) {
  Subject subject(GetParam());
  const std::string actual = Text(subject.Run());
  const std::string path = absl::StrCat(ASCEND_TEST_DATA, "/inventory/", GetParam(), ".txt");
  if (getenv("ASCEND_UPDATE_GOLDENS") != nullptr) {
    ASSERT_THAT(WriteFileAtomically(path, actual, {.mode = 0644}), IsOk());
  }
  EXPECT_THAT(ReadFile(path), IsOkAndHolds(actual));
}

INSTANTIATE_TEST_SUITE_P(ShippedNodes, DiscoveryGoldenTest,
                         ::testing::ValuesIn(TestNode::ShippedNames()), [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(DiscoveryTest, ShipsElevenNodes) { EXPECT_THAT(TestNode::ShippedNames(), SizeIs(11)); }

// What each failing call costs the chip it fails for. Calls that are not named cost nothing.
const std::map<std::string, std::function<void(Chip&)>> kCosts = {
    {"dcmi_get_device_pcie_info_v2",
     [](Chip& chip) {
       chip.pci_bus_id = chip.pcie_root = "";
       chip.numa_node.reset();
     }},
    {"dcmi_get_device_board_info", [](Chip& chip) { chip.board_id = 0; }},
    {"dcmi_get_device_die_v2", [](Chip& chip) { chip.uuid = ""; }},
    {"dcmi_get_device_health", [](Chip& chip) { chip.health = Health::kUnknown; }},
    {"dcmi_get_device_hbm_info", [](Chip& chip) { chip.memory_mib = 0; }},
    {"dcmi_get_device_aicpu_info", [](Chip& chip) { chip.aicpu_count = 0; }},
    {"dcmi_get_device_resource_info", [](Chip& chip) { chip.busy.reset(); }},
    {"dcmi_get_device_elabel_info", [](Chip& chip) { chip.serial = ""; }},
};
const std::set<std::string> kSkips = {"dcmi_get_device_type", "dcmi_get_device_logic_id",
                                      "dcmi_get_device_phyid_from_logicid"};

TEST(DiscoveryTest, AFailingCallHidesOnlyItsChipOrAttribute) {
  Subject subject("8x910B3");
  const Inventory baseline = subject.Run();
  ASSERT_THAT(baseline.chips, SizeIs(8));
  const char* const kFunctions[] = {
#define ASCEND_NAME(name, parameters) #name,
      ASCEND_DCMI_V1_FUNCTIONS(ASCEND_NAME)
#undef ASCEND_NAME
  };
  for (const std::string function : kFunctions) {
    // Replaces the one before.
    subject.node.Edit([&](nlohmann::json& json) {
      json["calls"] = {{function, {{"physicalID", 3}, {"return", -8005}}}};
    });
    Inventory expected = baseline;
    if (kSkips.count(function) > 0) {
      expected.chips.erase(expected.chips.begin() + 3);
      const Inventory actual = subject.Run();
      ASSERT_THAT(actual.skipped, SizeIs(1)) << function;
      EXPECT_EQ(actual.skipped[0].card_id, 3);
      EXPECT_EQ(actual.skipped[0].device_id, 0);
      EXPECT_THAT(actual.skipped[0].reason, HasSubstr(function)) << "names the call";
      expected.skipped = actual.skipped;
    } else if (const auto cost = kCosts.find(function); cost != kCosts.end()) {
      cost->second(expected.chips[3]);
    }
    EXPECT_EQ(Text(subject.Run()), Text(expected)) << function;
  }
  // Everything at once.
  subject.node.Edit([](nlohmann::json& json) {
    json["calls"] = {{"*", {{"physicalID", 3}, {"return", -8009}}}};
  });
  const Inventory without = subject.Run();
  EXPECT_THAT(PhysicalIds(without), ElementsAre(0, 1, 2, 4, 5, 6, 7));
  EXPECT_THAT(without.skipped, SizeIs(1));
}

TEST(DiscoveryTest, SeesWhoUsesAChip) {
  Subject subject("8x910B3");
  EXPECT_EQ(Find(subject.Run(), 2)->busy, std::vector<int>());
  for (const int pid : {4242, 17}) {
    ASSERT_THAT(dcmi::mock::SetProcess(subject.node.directory(), 2, pid, 1), IsOk());
  }
  const Inventory inventory = subject.Run();
  EXPECT_EQ(Find(inventory, 2)->busy, (std::vector<int>{17, 4242})) << "in one order";
  EXPECT_EQ(Find(inventory, 3)->busy, std::vector<int>());
  // One process may be listed for each of its contexts; its memory is no change of the inventory.
  subject.node.Edit([](nlohmann::json& json) {
    json["chips"][2]["processes"].push_back({{"pid", 17}, {"memoryBytes", 99}});
  });
  EXPECT_EQ(subject.Run(), inventory);
  // A dropped chip is not asked: its calls may hang.
  subject.node.Set(2, {"health=absent"});
  EXPECT_EQ(Find(subject.Run(), 2)->busy, std::nullopt);
}

TEST(DiscoveryTest, WithoutItsNameAChipIsOfferedAsUnknown) {
  Subject subject("8x910B3");
  for (const char* function : {"dcmi_get_device_chip_info_v2", "dcmi_get_device_chip_info"}) {
    subject.node.Call({.function = function, .physical_id = 3, .return_code = -8005});
  }
  const Inventory inventory = subject.Run();
  const Chip* const chip = Find(inventory, 3);
  ASSERT_NE(chip, nullptr);
  EXPECT_EQ(chip->family, Family::kUnknown);
  EXPECT_EQ(chip->model, "");
  EXPECT_EQ(chip->aicore_count, 0);
  EXPECT_EQ(chip->memory_mib, 65536) << "found by asking";
  EXPECT_EQ(chip->hccs_group, "");
}

TEST(DiscoveryTest, FailsOnlyIfTheCardsCannotBeListed) {
  Subject subject("8x910B3");
  subject.node.Call({.function = "dcmi_get_card_list", .return_code = -8005});
  EXPECT_THAT(subject.Try(),
              StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("cards"), HasSubstr("-8005"))));
  ASSERT_THAT(dcmi::mock::ClearCalls(subject.node.directory()), IsOk());
  subject.node.Call({.function = "dcmi_get_device_id_in_card", .return_code = -8005});
  subject.node.Call({.function = "dcmi_get_device_num_in_card", .return_code = -8005});
  const Inventory inventory = subject.Run();
  EXPECT_THAT(inventory.chips, IsEmpty());
  EXPECT_THAT(inventory.skipped, SizeIs(8));
}

TEST(DiscoveryTest, ANodeMayHaveNoChip) {
  Subject subject("8x910B3");
  subject.node.Edit([](nlohmann::json& json) { json["chips"] = nlohmann::json::array(); });
  const Inventory inventory = subject.Run();
  EXPECT_THAT(inventory.chips, IsEmpty());
  EXPECT_THAT(inventory.skipped, IsEmpty());
  EXPECT_EQ(inventory.library, LibraryState::kReady);
}

TEST(DiscoveryTest, PhysicalIdsMayBeShuffledAndSparse) {
  Subject subject("8x910B3");
  const std::vector<int> ids = {12, 3, 40, 7, 0, 63, 5, 9};
  subject.node.Edit([&](nlohmann::json& json) {
    for (size_t i = 0; i < ids.size(); ++i) json["chips"][i]["physicalID"] = ids[i];
  });
  const Inventory inventory = subject.Run();
  EXPECT_THAT(PhysicalIds(inventory), ElementsAre(0, 3, 5, 7, 9, 12, 40, 63));
  for (size_t i = 0; i < ids.size(); ++i) {
    const Chip* const chip = Find(inventory, ids[i]);
    ASSERT_NE(chip, nullptr);
    EXPECT_EQ(chip->node_number, ids[i]);
    EXPECT_EQ(chip->card_id, static_cast<int>(i));
    EXPECT_EQ(chip->logic_id, static_cast<int>(i));
  }
}

TEST(DiscoveryTest, RepackedLogicIdsDoNotMoveChips) {
  Subject subject("8x910B3");
  const Inventory before = subject.Run();
  subject.node.Set(2, {"present=false"});
  const Inventory after = subject.Run();
  EXPECT_THAT(PhysicalIds(after), ElementsAre(0, 1, 3, 4, 5, 6, 7));
  for (const Chip& chip : after.chips) {
    Chip old = *Find(before, chip.physical_id);
    EXPECT_EQ(chip.logic_id, chip.physical_id > 2 ? old.logic_id - 1 : old.logic_id);
    old.logic_id = chip.logic_id;
    EXPECT_EQ(chip, old);
  }
  subject.node.Set(2, {"present=true"});
  EXPECT_EQ(Text(subject.Run()), Text(before));
}

TEST(DiscoveryTest, AChipWithoutPhysicalIdIsNeverNamedByItsPosition) {
  Subject subject("8x910B3");
  subject.node.Edit([](nlohmann::json& json) { json["chips"][4].erase("physicalID"); });
  const Inventory inventory = subject.Run();
  EXPECT_THAT(PhysicalIds(inventory), ElementsAre(0, 1, 2, 3, 5, 6, 7));
  EXPECT_THAT(inventory.skipped,
              ElementsAre(AllOf(Field(&SkippedChip::card_id, 4),
                                Field(&SkippedChip::reason, HasSubstr("physical id")))));
}

TEST(DiscoveryTest, OfTwoChipsWithOnePhysicalIdTheFirstCounts) {
  Subject subject("8x910B3");
  subject.node.Edit([](nlohmann::json& json) { json["chips"][6]["physicalID"] = 1; });
  const Inventory inventory = subject.Run();
  EXPECT_THAT(PhysicalIds(inventory), ElementsAre(0, 1, 2, 3, 4, 5, 7));
  EXPECT_EQ(Find(inventory, 1)->card_id, 1);
  EXPECT_THAT(inventory.skipped,
              ElementsAre(AllOf(Field(&SkippedChip::card_id, 6),
                                Field(&SkippedChip::reason, HasSubstr("physical id 1")))));
}

TEST(DiscoveryTest, AnAllZeroDieIdIsNone) {
  Subject subject("8x910B3");
  subject.node.Set(0, {"die.vdie=00000000-00000000-00000000-00000000-00000000"});
  EXPECT_EQ(Find(subject.Run(), 0)->uuid, "");
}

TEST(DiscoveryTest, RoceAddressComesFromHccnConfIfNotFromTheLibrary) {
  Subject subject("8x910B3");
  ASSERT_THAT(WriteFileAtomically(subject.options.hccn_conf,
                                  "# comment\naddress_0=10.9.9.9\n address_1 = 10.9.9.1 \nbroken"),
              IsOk());
  EXPECT_EQ(Find(subject.Run(), 0)->roce_address, "10.52.33.10") << "the library first";
  subject.node.Set(0, {"roce=null"});
  subject.node.Call({.function = "dcmi_get_device_ip", .physical_id = 1, .return_code = -8005});
  subject.node.Set(2, {"roce=null"});
  subject.node.Set(3, {"roce.address=0.0.0.0"});
  const Inventory inventory = subject.Run();
  EXPECT_EQ(Find(inventory, 0)->roce_address, "10.9.9.9");
  EXPECT_EQ(Find(inventory, 1)->roce_address, "10.9.9.1");
  EXPECT_EQ(Find(inventory, 2)->roce_address, "");
  EXPECT_EQ(Find(inventory, 3)->roce_address, "");
}

TEST(DiscoveryTest, DoesWithoutSysfsAndVersionFiles) {
  Subject subject("1x950PR");
  subject.options = {.sysfs_root = "/nonexistent",
                     .hccn_conf = "/nonexistent/hccn.conf",
                     .ascend_root = "/nonexistent"};
  const Inventory inventory = subject.Run();
  ASSERT_THAT(inventory.chips, SizeIs(1));
  EXPECT_EQ(inventory.chips[0].pci_bus_id, "0000:61:00.0");
  EXPECT_EQ(inventory.chips[0].pcie_root, "");
  EXPECT_EQ(inventory.chips[0].numa_node, std::nullopt);
  EXPECT_EQ(inventory.driver_version, "");
}

TEST(DiscoveryTest, NumaNodeMinusOneIsUnknown) {
  Subject subject("1x950PR");
  const std::string file =
      JoinPath(subject.options.sysfs_root, "bus/pci/devices/0000:61:00.0/numa_node");
  ASSERT_THAT(WriteFileAtomically(file, "-1\n"), IsOk());
  EXPECT_EQ(subject.Run().chips[0].numa_node, std::nullopt);
}

TEST(DiscoveryTest, A3DiesFollowTheMultiDiePolicy) {
  Subject subject("16xA3");
  EXPECT_EQ(Find(subject.Run(), 6)->module_peer_physical_id, 7);
  subject.node.Edit([](nlohmann::json& json) { json["multiDiePolicy"] = "independent"; });
  Inventory inventory = subject.Run();
  EXPECT_EQ(inventory.multi_die_policy, MultiDiePolicy::kIndependent);
  EXPECT_EQ(Find(inventory, 6)->module_peer_physical_id, std::nullopt);
  EXPECT_EQ(Find(inventory, 6)->module, Find(inventory, 7)->module);
  // A driver without the policy works as with union.
  subject.node.Edit([](nlohmann::json& json) { json.erase("multiDiePolicy"); });
  inventory = subject.Run();
  EXPECT_EQ(inventory.multi_die_policy, MultiDiePolicy::kUnknown);
  EXPECT_EQ(Find(inventory, 7)->module_peer_physical_id, 6);
  // One die that fails leaves the other with its peer named.
  subject.node.Call({.function = "dcmi_get_device_type", .physical_id = 6, .return_code = -8005});
  inventory = subject.Run();
  EXPECT_EQ(Find(inventory, 6), nullptr);
  EXPECT_EQ(Find(inventory, 7)->module_peer_physical_id, 6);
}

TEST(DiscoveryTest, NodeNumberIsTheLogicIdOn950) {
  Subject subject("1x950PR");
  subject.node.Edit([](nlohmann::json& json) {
    nlohmann::json second = json["chips"][0];
    json["chips"][0]["physicalID"] = 6;
    second["physicalID"] = 2;
    second["card"] = 1;
    json["chips"].push_back(second);
  });
  const Inventory inventory = subject.Run();
  EXPECT_EQ(Find(inventory, 6)->node_number, 0);
  EXPECT_EQ(Find(inventory, 2)->node_number, 1);
}

class PartitioningTest : public ::testing::Test {
 protected:
  Inventory Run() {
    absl::StatusOr<Inventory> inventory = Discover(dcmi_, options_);
    EXPECT_THAT(inventory, IsOk());
    return inventory.ok() ? *std::move(inventory) : Inventory();
  }
  void Fail(absl::string_view failing_method, int card, absl::Status status) {
    dcmi_.Before([=](absl::string_view method, dcmi::ChipAddress chip) {
      return method == failing_method && chip.card == card ? status : absl::OkStatus();
    });
  }

  TempDir directory_;
  const DiscoveryOptions options_ = {.sysfs_root = directory_.path(),
                                     .hccn_conf = directory_.File("hccn.conf"),
                                     .ascend_root = directory_.path()};
  FakeDcmi dcmi_{2};
};

TEST_F(PartitioningTest, ListsTheVnpusOfAChipInWholeNumbers) {
  dcmi_.Edit([](auto& chips) {
    FakeDcmi::FakeChip& chip = chips.at({1, 0});
    chip.total = {.aicore = 20, .memory_mib = 65536, .aicpu = 7, .vpc = 9, .venc = -1, .vdec = 1.5};
    chip.vnpus[117] = {.id = 117, .template_name = "vir10_3c_32g", .status = 1};
    chip.vnpus[116] = {.id = 116,
                       .template_name = "vir05_1c_16g",
                       .container_used = true,
                       .vgroup = 3,
                       .resources = {.aicore = 4.6, .memory_mib = 15360, .aicpu = -1, .jpegd = .4}};
  });
  const Inventory inventory = Run();
  ASSERT_THAT(inventory.chips, SizeIs(2));
  EXPECT_EQ(inventory.chips[1].partitioning_error, "");
  ASSERT_TRUE(inventory.chips[1].partitioning.has_value());
  const Partitioning& found = *inventory.chips[1].partitioning;
  Amounts total;
  total[Resource::kAicore] = 20;
  total[Resource::kMemory] = 65536;
  total[Resource::kAicpu] = 7;
  total[Resource::kVpc] = 9;
  total[Resource::kVdec] = 2;
  EXPECT_EQ(found.total, total);
  Amounts taken;
  taken[Resource::kAicore] = 5;
  taken[Resource::kMemory] = 15360;
  EXPECT_THAT(found.vnpus,
              ElementsAre(Vnpu{.id = 116,
                               .template_name = "vir05_1c_16g",
                               .vgroup = 3,
                               .container_used = true,
                               .amounts = taken},
                          Vnpu{.id = 117, .template_name = "vir10_3c_32g", .normal = false}));
  EXPECT_EQ(inventory.chips[0].partitioning->vnpus, std::vector<Vnpu>());
}

TEST_F(PartitioningTest, AProductWithoutVnpusIsNoFault) {
  Fail("Vnpus", 0, absl::UnimplementedError("dcmi_get_device_info returned -8255"));
  const Inventory inventory = Run();
  ASSERT_THAT(inventory.chips, SizeIs(2));
  EXPECT_EQ(inventory.chips[0].partitioning, std::nullopt);
  EXPECT_EQ(inventory.chips[0].partitioning_error, "");
  EXPECT_TRUE(inventory.chips[1].partitioning.has_value());
}

TEST_F(PartitioningTest, AFailedListIsNotAnEmptyOne) {
  Fail("Vnpus", 0, absl::InternalError("dcmi_get_device_info returned -8005"));
  const Inventory inventory = Run();
  ASSERT_THAT(inventory.chips, SizeIs(2));
  EXPECT_EQ(inventory.chips[0].partitioning, std::nullopt);
  EXPECT_THAT(inventory.chips[0].partitioning_error, HasSubstr("-8005"));
  EXPECT_TRUE(inventory.chips[1].partitioning.has_value());
}

TEST_F(PartitioningTest, AVnpuThatCannotBeAskedAboutIsStillListed) {
  dcmi_.Add(0, {.id = 100, .template_name = "vir05_1c_16g"});
  Fail("Vnpu", 0, absl::InternalError("dcmi_get_device_info returned -8005"));
  const Inventory inventory = Run();
  ASSERT_THAT(inventory.chips, SizeIs(2));
  ASSERT_TRUE(inventory.chips[0].partitioning.has_value());
  EXPECT_THAT(inventory.chips[0].partitioning->vnpus,
              ElementsAre(Vnpu{.id = 100, .normal = false}));
}

TEST_F(PartitioningTest, TellsTheModesOfTheNode) {
  EXPECT_EQ(Run().vdevice_mode, VdeviceMode::kContainer);
  EXPECT_EQ(Run().vnpu_recovery, false);
  dcmi_.SetModes(dcmi::VdeviceMode::kVm, true);
  EXPECT_EQ(Run().vdevice_mode, VdeviceMode::kVm);
  EXPECT_EQ(Run().vnpu_recovery, true);
  dcmi_.SetModes(absl::UnimplementedError("no"), absl::InternalError("no"));
  EXPECT_EQ(Run().vdevice_mode, VdeviceMode::kUnknown);
  EXPECT_EQ(Run().vnpu_recovery, std::nullopt);
}

// Somebody is at some chips.
class Taken : public ReadingTurns {
 public:
  bool TryTake(dcmi::ChipAddress chip) override {
    if (taken.contains({chip.card, chip.device})) return false;
    ++held;
    return true;
  }
  void Release(dcmi::ChipAddress /*chip*/) override { --held; }
  std::string Stuck(dcmi::ChipAddress /*chip*/) const override { return stuck; }

  std::set<std::pair<int, int>> taken;
  std::string stuck;
  int held = 0;
};

TEST_F(PartitioningTest, AChipThatSomebodyElseIsAtIsAsItWas) {
  dcmi_.Edit([](auto& chips) { chips[{0, 1}].physical_id = 8; });
  Taken turns;
  const absl::StatusOr<Inventory> last = Discover(dcmi_, options_, turns, Inventory());
  ASSERT_THAT(last, IsOk());
  ASSERT_THAT(PhysicalIds(*last), ElementsAre(0, 1, 8));
  for (const int card : {0, 1}) dcmi_.Add(card, {.id = 100 + 16 * card});
  dcmi_.Edit([](auto& chips) { chips[{0, 1}].vnpus[228] = {.id = 228}; });
  dcmi_.SetModes(dcmi::VdeviceMode::kVm, true);
  turns.taken = {{0, 0}, {-1, -1}};

  // Not a single question about the chip, nor about the card whose first it is.
  dcmi_.Before([](absl::string_view method, dcmi::ChipAddress chip) {
    EXPECT_NE(chip, (dcmi::ChipAddress{0, 0})) << method;
    EXPECT_NE(chip, kNodeTurn) << method;
    return absl::OkStatus();
  });
  absl::StatusOr<Inventory> now = Discover(dcmi_, options_, turns, *last);
  ASSERT_THAT(now, IsOk());
  ASSERT_THAT(PhysicalIds(*now), ElementsAre(0, 1, 8));
  EXPECT_EQ(now->chips[0], last->chips[0]);
  EXPECT_THAT(now->chips[1].partitioning->vnpus, SizeIs(1));
  EXPECT_THAT(now->chips[2].partitioning->vnpus, SizeIs(1));
  EXPECT_EQ(now->vdevice_mode, VdeviceMode::kContainer);
  EXPECT_EQ(now->vnpu_recovery, false);

  turns.stuck = "dcmi_create_vdevice has not returned for 10 s";
  now = Discover(dcmi_, options_, turns, *last);
  ASSERT_THAT(now, IsOk());
  Chip expected = last->chips[0];
  expected.stuck = turns.stuck;
  ForgetState(expected, turns.stuck);
  EXPECT_EQ(now->chips[0], expected);
  EXPECT_EQ(now->chips[1].stuck, "");

  // Read again, it is well again.
  dcmi_.Before(nullptr);
  turns.taken.clear();
  now = Discover(dcmi_, options_, turns, *now);
  ASSERT_THAT(now, IsOk());
  EXPECT_EQ(now->chips[0].stuck, "");
  EXPECT_EQ(now->chips[0].health, Health::kOk);
  EXPECT_THAT(now->chips[0].partitioning->vnpus, SizeIs(1));
  EXPECT_EQ(turns.held, 0);
}

TEST_F(PartitioningTest, AChipNeverReadIsNotOfferedUnread) {
  Taken turns;
  turns.taken = {{0, 0}};
  dcmi_.Edit([](auto& chips) { chips[{0, 1}].physical_id = 8; });
  const absl::StatusOr<Inventory> now = Discover(dcmi_, options_, turns, Inventory());
  ASSERT_THAT(now, IsOk());
  EXPECT_THAT(PhysicalIds(*now), ElementsAre(1));
}

}  // namespace
}  // namespace ascend::vnpu
