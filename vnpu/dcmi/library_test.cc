// The wrapper on the mock library.
#include "vnpu/dcmi/library.h"

#include <sys/stat.h>

#include <chrono>
#include <future>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/mock/test_node.h"
#include "vnpu/dcmi/mock/vnpu_edit.h"

namespace ascend::dcmi {
namespace {

using ::ascend::dcmi::mock::TestNode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::unique_ptr<Library> OpenFresh(const TempDir& directory,
                                   const std::vector<std::string>& hidden = {}) {
  auto library = Library::Open({TestNode::CopyLibrary(directory.path(), hidden)});
  EXPECT_THAT(library, IsOk());
  return *std::move(library);
}

std::unique_ptr<Library> OpenReady(const TempDir& directory,
                                   const std::vector<std::string>& hidden = {}) {
  std::unique_ptr<Library> library = OpenFresh(directory, hidden);
  EXPECT_THAT(library->Initialise(), IsOk());
  return library;
}

TEST(LibraryTest, TellsMissingFromBroken) {
  TempDir directory;
  const std::string missing = directory.File("none.so");
  EXPECT_THAT(Library::Open({missing}), StatusIs(absl::StatusCode::kNotFound, HasSubstr(missing)));
  // A bare name that the loader does not find is missing, too.
  EXPECT_THAT(Library::Open({"libnot-there-at-all.so"}), StatusIs(absl::StatusCode::kNotFound));
  const std::string text = directory.File("text.so");
  ASSERT_THAT(WriteFileAtomically(text, "no library"), IsOk());
  EXPECT_THAT(Library::Open({missing, text}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(text)));
  const std::string other = TestNode::CopyLibrary(directory.path(), {"dcmi_init", "dcmiv2_init"});
  EXPECT_THAT(Library::Open({other}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("dcmi_init")));
  // A broken one does not hide a good one behind it.
  TempDir good;
  EXPECT_THAT(Library::Open({text, TestNode::CopyLibrary(good.path())}), IsOk());
}

TEST(LibraryTest, SearchesWhereDriversInstall) {
  EXPECT_THAT(Library::DefaultPaths(),
              ElementsAre("libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so",
                          "/usr/local/dcmi/libdcmi.so", "/usr/lib64/libdcmi.so"));
}

TEST(LibraryTest, WarnsOfALibraryThatAnyoneCanReplace) {
  TempDir directory;
  const std::string inner = directory.File("inner");
  ASSERT_THAT(MakeDirectories(inner), IsOk());
  const std::string path = TestNode::CopyLibrary(inner);
  auto library = Library::Open({path});
  ASSERT_THAT(library, IsOk());
  EXPECT_EQ((*library)->path(), path);
  EXPECT_THAT((*library)->warnings(), IsEmpty()) << "a sticky /tmp is no danger";
  ASSERT_EQ(chmod(inner.c_str(), 0777), 0);
  library = Library::Open({path});
  ASSERT_THAT(library, IsOk());
  EXPECT_THAT((*library)->warnings(), ElementsAre(HasSubstr(absl::StrCat(inner, " is writable"))));
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  library = Library::Open({path});
  ASSERT_THAT(library, IsOk());
  EXPECT_THAT((*library)->warnings(),
              ElementsAre(HasSubstr(absl::StrCat(path, " is writable")), HasSubstr(inner)));
}

TEST(LibraryTest, NeedsInitialiseWhichMayBeRepeated) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenFresh(directory);
  EXPECT_THAT(library->Cards(), StatusIs(absl::StatusCode::kInternal, HasSubstr("-8005")));
  EXPECT_THAT(library->DriverVersion(), IsOkAndHolds("25.5.1"));
  node.Call({.function = "dcmi_init", .return_code = -8005});
  EXPECT_THAT(library->Initialise(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("dcmi_init returned -8005")));
  ASSERT_THAT(mock::ClearCalls(node.directory()), IsOk());
  EXPECT_THAT(library->Initialise(), IsOk());
  EXPECT_THAT(library->Initialise(), IsOk());
  EXPECT_EQ(library->generation(), Generation::kCards);
  EXPECT_THAT(library->Cards(), IsOkAndHolds(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
}

TEST(LibraryTest, ReadsEverythingOfAChip) {
  TestNode node("8x910B1");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  EXPECT_THAT(library->DcmiVersion(), IsOkAndHolds("25.5.1"));
  const ChipAddress chip{1, 0};
  // The management unit is not offered; a unit that is asked for says what it is.
  EXPECT_THAT(library->Units(1), IsOkAndHolds(ElementsAre(chip)));
  EXPECT_THAT(library->Type(chip), IsOkAndHolds(UnitType::kNpu));
  EXPECT_THAT(library->Type({1, 1}), IsOkAndHolds(UnitType::kMcu));
  EXPECT_THAT(library->LogicId(chip), IsOkAndHolds(1));
  EXPECT_THAT(library->PhysicalId(chip), IsOkAndHolds(1));
  EXPECT_THAT(
      library->Chip(chip),
      IsOkAndHolds(AllOf(Field(&ChipInfo::name, "910B1"), Field(&ChipInfo::type, "Ascend"),
                         Field(&ChipInfo::npu_name, "910B1"), Field(&ChipInfo::version, "V1"),
                         Field(&ChipInfo::aicore_count, 25))));
  EXPECT_THAT(library->Board(chip), IsOkAndHolds(AllOf(Field(&BoardInfo::board_id, 0x30u),
                                                       Field(&BoardInfo::bom_id, 1u))));
  EXPECT_THAT(library->MainboardId(chip), IsOkAndHolds(0u));
  EXPECT_THAT(library->Pci(chip), IsOkAndHolds(AllOf(Field(&PciInfo::bus_id, "0000:01:00.0"),
                                                     Field(&PciInfo::vendor_id, 0x19e5u),
                                                     Field(&PciInfo::device_id, 0xd802u))));
  EXPECT_THAT(library->Die(chip, DieType::kVdie),
              IsOkAndHolds(DieId{0x14036E64, 0x00E04F1D, 0x1223F2B2, 0x84528485, 0x104301E2}));
  EXPECT_THAT(library->SerialNumber(chip), IsOkAndHolds(HasSubstr("2102")));
  EXPECT_THAT(library->Health(chip), IsOkAndHolds(HealthGrade::kOk));
  EXPECT_THAT(library->HbmMemory(chip), IsOkAndHolds(Field(&MemoryInfo::total_mib, 65536)));
  EXPECT_THAT(library->DdrMemory(chip), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->AicpuCount(chip), IsOkAndHolds(6));
  EXPECT_THAT(library->RoceAddress(chip), IsOkAndHolds("29.17.151.115"));
  EXPECT_THAT(library->SuperPod(chip), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->GetMultiDiePolicy(), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(LibraryTest, GradesHealth) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  const std::pair<const char*, HealthGrade> kCases[] = {{"health=1", HealthGrade::kMinor},
                                                        {"health=2", HealthGrade::kMajor},
                                                        {"health=3", HealthGrade::kCritical},
                                                        {"health=absent", HealthGrade::kAbsent},
                                                        {"health=9", HealthGrade::kUnknown}};
  for (const auto& [setting, grade] : kCases) {
    node.Set(2, {setting});
    EXPECT_THAT(library->Health({2, 0}), IsOkAndHolds(grade)) << setting;
  }
  node.Call({.function = "dcmi_get_device_health", .return_code = -8012});
  EXPECT_THAT(library->Health({2, 0}), IsOkAndHolds(HealthGrade::kAbsent)) << "dropped";
  node.Call({.function = "dcmi_get_device_health", .return_code = -8009});
  EXPECT_THAT(library->Health({2, 0}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(LibraryTest, TellsWhoUsesAChip) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  EXPECT_THAT(library->Processes({2, 0}), IsOkAndHolds(IsEmpty()));
  ASSERT_THAT(mock::SetProcess(node.directory(), 2, 4242, int64_t{40} << 30), IsOk());
  ASSERT_THAT(mock::SetProcess(node.directory(), 2, 0, 1), IsOk());
  EXPECT_THAT(library->Processes({2, 0}),
              IsOkAndHolds(ElementsAre(ChipProcess{4242, int64_t{40} << 30}, ChipProcess{0, 1})));
  EXPECT_THAT(library->Processes({3, 0}), IsOkAndHolds(IsEmpty()));
  node.Set(2, {R"(processes=[{"pid": -1, "memoryBytes": 1}])"});
  EXPECT_THAT(library->Processes({2, 0}), IsOkAndHolds(ElementsAre(ChipProcess{0, 1})))
      << "somebody, although nobody knows who";
  EXPECT_THAT(library->Processes({9, 0}), StatusIs(absl::StatusCode::kNotFound));
}

TEST(LibraryTest, TellsAtMost32Processes) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  node.Edit([](nlohmann::json& json) {
    for (int pid = 1; pid <= 33; ++pid) {
      json["chips"][2]["processes"].push_back({{"pid", pid}, {"memoryBytes", pid}});
    }
  });
  const auto processes = library->Processes({2, 0});
  ASSERT_THAT(processes, IsOkAndHolds(SizeIs(32)));
  EXPECT_EQ(processes->back(), (ChipProcess{32, 32}));
}

TEST(LibraryTest, NeverTakesUnknownProcessesForNone) {
  TestNode node("8x910B3");
  TempDir directory;
  EXPECT_THAT(OpenReady(directory, {"dcmi_get_device_resource_info"})->Processes({2, 0}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("FUNCTION_NOT_FOUND")));
  TempDir other;
  std::unique_ptr<Library> library = OpenReady(other);
  node.Call({.function = "dcmi_get_device_resource_info", .return_code = -8009});
  EXPECT_THAT(library->Processes({2, 0}), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(LibraryTest, DoesWithoutMissingSymbols) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library =
      OpenReady(directory,
                {"dcmi_get_card_list", "dcmi_get_device_id_in_card", "dcmi_get_device_chip_info_v2",
                 "dcmi_get_device_elabel_info", "dcmi_get_device_health"});
  EXPECT_THAT(library->Cards(), IsOkAndHolds(ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  EXPECT_THAT(library->Units(3), IsOkAndHolds(ElementsAre(ChipAddress{3, 0})));
  EXPECT_THAT(library->Chip({3, 0}), IsOkAndHolds(Field(&ChipInfo::name, "910B3")));
  EXPECT_THAT(library->SerialNumber({3, 0}), IsOkAndHolds(HasSubstr("2102")));
  EXPECT_THAT(library->Health({3, 0}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("FUNCTION_NOT_FOUND")));
}

TEST(LibraryTest, KnowsBothChipsOfADuoCard) {
  TestNode node("2x300IDuo");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  EXPECT_THAT(library->Cards(), IsOkAndHolds(ElementsAre(4, 6)));
  EXPECT_THAT(library->Units(6), IsOkAndHolds(ElementsAre(ChipAddress{6, 0}, ChipAddress{6, 1})));
  EXPECT_THAT(library->DdrMemory({6, 1}), IsOkAndHolds(Field(&MemoryInfo::total_mib, 44280)));
  EXPECT_THAT(library->HbmMemory({6, 1}), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->RoceAddress({6, 1}), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(LibraryTest, ReadsA3) {
  TestNode node("16xA3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  EXPECT_THAT(library->GetMultiDiePolicy(), IsOkAndHolds(MultiDiePolicy::kUnion));
  EXPECT_THAT(library->SuperPod({7, 1}),
              IsOkAndHolds(
                  AllOf(Field(&SuperPodInfo::size, 384u), Field(&SuperPodInfo::server_index, 8u))));
  node.Edit([](nlohmann::json& json) { json["multiDiePolicy"] = "independent"; });
  EXPECT_THAT(library->GetMultiDiePolicy(), IsOkAndHolds(MultiDiePolicy::kIndependent));
}

TEST(LibraryTest, FallsBackToGeneration2) {
  TestNode node("1x950PR");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  EXPECT_EQ(library->generation(), Generation::kFlat);
  EXPECT_THAT(library->Cards(), IsOkAndHolds(ElementsAre(0)));
  const ChipAddress chip{0, 0};
  EXPECT_THAT(library->Units(0), IsOkAndHolds(ElementsAre(chip)));
  EXPECT_THAT(library->Type(chip), IsOkAndHolds(UnitType::kNpu));
  EXPECT_THAT(library->PhysicalId(chip), IsOkAndHolds(0));
  EXPECT_THAT(library->Chip(chip), IsOkAndHolds(Field(&ChipInfo::npu_name, "9579")));
  EXPECT_THAT(library->Health(chip), IsOkAndHolds(HealthGrade::kOk));
  EXPECT_THAT(library->HbmMemory(chip), IsOkAndHolds(Field(&MemoryInfo::total_mib, 131072)));
  EXPECT_THAT(library->Die(chip, DieType::kDdie), IsOk());
  EXPECT_THAT(library->DriverVersion(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->AicpuCount(chip), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->Processes(chip), StatusIs(absl::StatusCode::kUnimplemented));
  node.Call({.function = "dcmiv2_init", .return_code = -8005});
  TempDir other;
  EXPECT_THAT(OpenFresh(other)->Initialise(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("dcmiv2_init")));
}

TEST(LibraryTest, RefusesNonsenseCounts) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  node.Call({.function = "dcmi_get_card_list", .return_code = 0});  // "OK", and nothing filled in
  EXPECT_THAT(library->Cards(), IsOkAndHolds(IsEmpty()));
  node.Call({.function = "dcmi_get_device_id_in_card", .return_code = -8005});
  node.Call({.function = "dcmi_get_device_num_in_card", .return_code = -8005});
  EXPECT_THAT(library->Units(0), StatusIs(absl::StatusCode::kInternal));
}

TEST(LibraryTest, RunsOneCallAboutAChipAtATime) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  node.Call({.function = "dcmi_get_device_health", .delay_ms = 40});
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::future<absl::Status>> calls;
  calls.reserve(3);
  for (int i = 0; i < 3; ++i) {
    calls.push_back(
        std::async(std::launch::async, [&library] { return library->Health({2, 0}).status(); }));
  }
  for (auto& call : calls) EXPECT_THAT(call.get(), IsOk());
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(3 * 40));
}

TEST(LibraryTest, AHangingChipStopsNobodyElse) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  node.Call({.function = "dcmi_get_device_health", .physical_id = 0, .hang = true});
  const mock::ReadWatch watch(node.directory());
  auto hanging =
      std::async(std::launch::async, [&library] { return library->Health({0, 0}).status(); });
  watch.Wait();  // the call is in the library
  EXPECT_THAT(library->Health({1, 0}), IsOkAndHolds(HealthGrade::kOk));
  EXPECT_THAT(library->Cards(), IsOkAndHolds(SizeIs(8)));
  EXPECT_THAT(library->Topology({0, 0}, {1, 0}), IsOkAndHolds(TopologyType::kHccs));
  EXPECT_EQ(library->generation(), Generation::kCards);
  auto waiting =
      std::async(std::launch::async, [&library] { return library->PhysicalId({0, 0}).status(); });
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout)
      << "one call about a chip at a time";
  ASSERT_THAT(mock::ClearCalls(node.directory()), IsOk());
  EXPECT_THAT(hanging.get(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(waiting.get(), IsOk());
}

TEST(LibraryTest, AHangAboutTheNodeStopsNoChip) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  node.Call({.function = "dcmi_get_card_list", .hang = true});
  const mock::ReadWatch watch(node.directory());
  auto hanging = std::async(std::launch::async, [&library] { return library->Cards().status(); });
  watch.Wait();
  EXPECT_THAT(library->Health({1, 0}), IsOkAndHolds(HealthGrade::kOk));
  ASSERT_THAT(mock::ClearCalls(node.directory()), IsOk());
  EXPECT_THAT(hanging.get(), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(LibraryTest, TellsHowChipsAreJoined) {
  TempDir directory;
  {
    TestNode node("16x910B2C");
    std::unique_ptr<Library> library = OpenReady(directory);
    EXPECT_THAT(library->Topology({0, 0}, {0, 0}), IsOkAndHolds(TopologyType::kSelf));
    EXPECT_THAT(library->Topology({0, 0}, {7, 0}), IsOkAndHolds(TopologyType::kHccs));
    EXPECT_THAT(library->Topology({7, 0}, {8, 0}), IsOkAndHolds(TopologyType::kSys));
    EXPECT_THAT(library->Topology({7, 0}, {16, 0}), StatusIs(absl::StatusCode::kNotFound));
  }
  {
    TestNode node("16xA3");
    std::unique_ptr<Library> library = OpenReady(directory);
    EXPECT_THAT(library->Topology({3, 0}, {3, 1}), IsOkAndHolds(TopologyType::kSio));
    EXPECT_THAT(library->Topology({3, 0}, {4, 0}), IsOkAndHolds(TopologyType::kHccsSwitch));
  }
  {
    TestNode node("8x910A");
    std::unique_ptr<Library> library = OpenReady(directory);
    EXPECT_THAT(library->Topology({0, 0}, {1, 0}), StatusIs(absl::StatusCode::kUnimplemented));
  }
}

TEST(LibraryTest, Generation2HasNoVnpusToMake) {
  TestNode node("1x950PR");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  EXPECT_THAT(library->Topology({0, 0}, {0, 0}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("dcmiv2_get_topo_info")));
  EXPECT_THAT(library->Vnpus({0, 0}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("dcmiv2_get_device_info")));
  EXPECT_THAT(library->FreeVnpuResources({0, 0}), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->Vnpu({0, 0}, 100), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->CreateVnpu({0, 0}, {.template_name = "vir08_3c_30g"}),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->DestroyVnpu({0, 0}, 100), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->GetVdeviceMode(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->SetVdeviceMode(VdeviceMode::kContainer),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->GetVnpuRecovery(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->SetVnpuRecovery(false), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(LibraryTest, RefusesWhatIsNoVnpu) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  EXPECT_THAT(library->CreateVnpu({0, 0}, {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(library->CreateVnpu({0, 0}, {.template_name = std::string(32, 'v')}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("31")));
  EXPECT_THAT(library->CreateVnpu({0, 0}, {.template_name = "vir05_1c_16g", .id = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(library->Vnpu({0, 0}, -1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(library->DestroyVnpu({0, 0}, -1), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(library->DestroyVnpu({0, 0}, 65535),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65535")))
      << "would be every vNPU of the chip";
}

// vNPUs. A chip of 8x910B3 has 20 cores, 7 AI CPUs and 60 of 64 GiB for them.

TEST(LibraryTest, MakesAndDestroysVnpus) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  const ChipAddress chip{5, 0};
  auto total = library->Vnpus(chip);
  ASSERT_THAT(total, IsOk());
  EXPECT_THAT(total->ids, IsEmpty());
  EXPECT_EQ(total->resources.aicore, 20);
  EXPECT_EQ(total->resources.aicpu, 7);
  EXPECT_EQ(total->resources.memory_mib, 65536) << "nominal";
  EXPECT_EQ(total->resources.jpegd, 24);
  EXPECT_EQ(total->vgroups, 0u);

  auto made = library->CreateVnpu(chip, {.template_name = "vir05_1c_16g"});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->id, 180);
  EXPECT_EQ(made->vgroup, -1);
  made = library->CreateVnpu(chip, {.template_name = "vir05_1c_16g", .id = 190});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->id, 190);
  EXPECT_THAT(library->Vnpus(chip), IsOkAndHolds(Field(&VnpuTotal::ids, ElementsAre(180, 190))));
  EXPECT_THAT(library->Vnpus({4, 0}), IsOkAndHolds(Field(&VnpuTotal::ids, IsEmpty())));

  // As seen on such a chip: free 10 cores, 30 GiB, 5 AI CPUs; vpc 5, vdec 2, jpegd 12, jpege 2.
  const auto free = library->FreeVnpuResources(chip);
  ASSERT_THAT(free, IsOk());
  EXPECT_EQ(free->aicore, 10);
  EXPECT_EQ(free->memory_mib, 30 * 1024);
  EXPECT_EQ(free->aicpu, 5);
  EXPECT_EQ(free->vpc, 5);
  EXPECT_EQ(free->venc, 0);
  EXPECT_EQ(free->vdec, 2);
  EXPECT_EQ(free->jpegd, 12);
  EXPECT_EQ(free->jpege, 2);

  const auto info = library->Vnpu(chip, 190);
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->id, 190);
  EXPECT_EQ(info->template_name, "vir05_1c_16g");
  EXPECT_EQ(info->status, 0u);
  EXPECT_FALSE(info->container_used);
  EXPECT_EQ(info->vf_id, 11);
  EXPECT_EQ(info->vgroup, -1);
  EXPECT_EQ(info->resources.aicore, 5);
  EXPECT_EQ(info->resources.memory_mib, 15 * 1024);
  EXPECT_EQ(info->resources.aicpu, 1);
  ASSERT_THAT(mock::SetOnVnpu(node.directory(), 190, {"containerUsed=true", "status=2"}), IsOk());
  EXPECT_THAT(library->Vnpu(chip, 190), IsOkAndHolds(AllOf(Field(&VnpuInfo::container_used, true),
                                                           Field(&VnpuInfo::status, 2u))));
  EXPECT_THAT(library->Vnpu({4, 0}, 190), StatusIs(absl::StatusCode::kNotFound)) << "wrong chip";

  EXPECT_THAT(library->DestroyVnpu({4, 0}, 190), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(library->DestroyVnpu(chip, 190), IsOk());
  EXPECT_THAT(library->DestroyVnpu(chip, 190), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(library->Vnpus(chip), IsOkAndHolds(Field(&VnpuTotal::ids, ElementsAre(180))));
}

TEST(LibraryTest, SaysWhyThereIsNoVnpu) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  const auto create = [&library](const char* name) {
    return library->CreateVnpu({0, 0}, {.template_name = name}).status();
  };
  EXPECT_THAT(create("vir05_1c_8g"), StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(mock::SetProcess(node.directory(), 0, 4242, 1), IsOk());
  EXPECT_THAT(create("vir05_1c_16g"), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(mock::ClearProcesses(node.directory(), 0), IsOk());
  EXPECT_THAT(create("vir10_3c_32g"), IsOk());
  EXPECT_THAT(create("vir10_3c_32g"), IsOk());
  EXPECT_THAT(create("vir05_1c_16g"), StatusIs(absl::StatusCode::kInternal, HasSubstr("-8005")));
  ASSERT_THAT(mock::SetOnVnpu(node.directory(), 101, {"busy=true"}), IsOk());
  EXPECT_THAT(library->DestroyVnpu({0, 0}, 101),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("-8020")));
  EXPECT_THAT(library->Vnpus({0, 0}), IsOkAndHolds(Field(&VnpuTotal::ids, ElementsAre(100, 101))));
  node.Call({.function = "dcmi_set_destroy_vdevice", .return_code = -8013});
  EXPECT_THAT(library->DestroyVnpu({0, 0}, 100), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(LibraryTest, ReadsVGroups) {
  TestNode node("4x310P3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  const ChipAddress chip{2, 0};
  EXPECT_THAT(library->CreateVnpu(chip, {.template_name = "vir02_1c"}),
              IsOkAndHolds(AllOf(Field(&CreatedVnpu::id, 116), Field(&CreatedVnpu::vgroup, 0))));
  EXPECT_THAT(library->CreateVnpu(chip, {.template_name = "vir01", .vgroup = 3}),
              IsOkAndHolds(AllOf(Field(&CreatedVnpu::id, 117), Field(&CreatedVnpu::vgroup, 3))));
  EXPECT_THAT(library->Vnpus(chip), IsOkAndHolds(Field(&VnpuTotal::vgroups, 0b1001u)));
  EXPECT_THAT(library->Vnpu(chip, 117), IsOkAndHolds(Field(&VnpuInfo::vgroup, 3)));
}

TEST(LibraryTest, ChangesModesOnlyWithoutVnpus) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  EXPECT_THAT(library->GetVdeviceMode(), IsOkAndHolds(VdeviceMode::kContainer));
  EXPECT_THAT(library->GetVnpuRecovery(), IsOkAndHolds(true));
  EXPECT_THAT(library->SetVdeviceMode(VdeviceMode::kVm), IsOk());
  EXPECT_THAT(library->GetVdeviceMode(), IsOkAndHolds(VdeviceMode::kVm));
  EXPECT_THAT(library->SetVdeviceMode(VdeviceMode::kContainer), IsOk());
  EXPECT_THAT(library->SetVnpuRecovery(false), IsOk());
  EXPECT_THAT(library->GetVnpuRecovery(), IsOkAndHolds(false));
  ASSERT_THAT(library->CreateVnpu({0, 0}, {.template_name = "vir05_1c_16g"}), IsOk());
  EXPECT_THAT(library->SetVnpuRecovery(true), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(library->SetVdeviceMode(VdeviceMode::kVm),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(library->SetVnpuRecovery(false), IsOk()) << "no change";
  EXPECT_THAT(library->GetVnpuRecovery(), IsOkAndHolds(false));
  EXPECT_THAT(library->GetVdeviceMode(), IsOkAndHolds(VdeviceMode::kContainer));
}

TEST(LibraryTest, A3MakesVnpusOnlyIfEverythingSaysSo) {
  TestNode node("16xA3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  const auto create = [&library] {
    return library->CreateVnpu({1, 1}, {.template_name = "vir06_1c_16g"});
  };
  EXPECT_THAT(create(), StatusIs(absl::StatusCode::kUnimplemented));
  node.Edit([](nlohmann::json& json) { json["vnpu"]["create"] = true; });
  EXPECT_THAT(create(), StatusIs(absl::StatusCode::kUnimplemented)) << "dies go together";
  node.Edit([](nlohmann::json& json) { json["multiDiePolicy"] = "independent"; });
  EXPECT_THAT(create(), IsOkAndHolds(Field(&CreatedVnpu::id, 148)));
  node.Edit([](nlohmann::json& json) { json["vnpu"]["create"] = false; });
  EXPECT_THAT(create(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->Vnpus({1, 1}), IsOkAndHolds(Field(&VnpuTotal::ids, ElementsAre(148))));
  EXPECT_THAT(library->SetVdeviceMode(VdeviceMode::kContainer),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->GetVnpuRecovery(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(library->SetVnpuRecovery(false), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST(LibraryTest, NeverTakesALibraryThatCannotSayForNoVnpus) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory, {"dcmi_create_vdevice"});
  EXPECT_THAT(library->CreateVnpu({0, 0}, {.template_name = "vir05_1c_16g"}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("FUNCTION_NOT_FOUND")));
  node.Call({.function = "dcmi_get_device_info", .return_code = -8009});
  EXPECT_THAT(library->Vnpus({0, 0}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(library->FreeVnpuResources({0, 0}), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(library->Vnpu({0, 0}, 100), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(LibraryTest, ACreateMaySucceedAndFail) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  node.Call({.function = "dcmi_create_vdevice", .return_code = -8005, .after_work = true});
  EXPECT_THAT(library->CreateVnpu({0, 0}, {.template_name = "vir05_1c_16g"}),
              StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(library->Vnpus({0, 0}), IsOkAndHolds(Field(&VnpuTotal::ids, ElementsAre(100))));
}

TEST(LibraryTest, ACreateThatHangsStopsNoOtherChip) {
  TestNode node("8x910B3");
  TempDir directory;
  std::unique_ptr<Library> library = OpenReady(directory);
  node.Call(
      {.function = "dcmi_create_vdevice", .physical_id = 0, .hang = true, .after_work = true});
  const mock::ReadWatch watch(node.directory());
  auto hanging = std::async(std::launch::async, [&library] {
    return library->CreateVnpu({0, 0}, {.template_name = "vir05_1c_16g"}).status();
  });
  watch.Wait();
  EXPECT_THAT(library->CreateVnpu({1, 0}, {.template_name = "vir05_1c_16g"}),
              IsOkAndHolds(Field(&CreatedVnpu::id, 116)));
  EXPECT_THAT(library->DestroyVnpu({1, 0}, 116), IsOk());
  EXPECT_EQ(hanging.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  ASSERT_THAT(mock::ClearCalls(node.directory()), IsOk());
  EXPECT_THAT(hanging.get(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(library->Vnpus({0, 0}), IsOkAndHolds(Field(&VnpuTotal::ids, ElementsAre(100))));
}

}  // namespace
}  // namespace ascend::dcmi
