// The mock as a client sees it: through dlopen and the C ABI.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/fault_edit.h"
#include "vnpu/dcmi/mock/test_node.h"
#include "vnpu/dcmi/mock/vnpu_edit.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::ElementsAre;

// The library's functions by name, from an instance of its own. Stays loaded, as with any client:
// a call may still run in it.
class MockLibrary {
 public:
  MockLibrary() : handle_(dlopen(TestNode::CopyLibrary(directory_.path()).c_str(), RTLD_NOW)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  template <typename Function>
  Function Get(const char* name) const {
    void* const symbol = dlsym(handle_, name);
    EXPECT_NE(symbol, nullptr) << name;
    return reinterpret_cast<Function>(symbol);
  }

 private:
  TempDir directory_;
  void* const handle_;
};

#define FN(library, name) library.Get<name##_fn>(#name)

std::vector<int> Cards(const MockLibrary& library) {
  int count = 0, list[DCMI_MAX_CARD_NUM];
  EXPECT_EQ(FN(library, dcmi_get_card_list)(&count, list, DCMI_MAX_CARD_NUM), DCMI_OK);
  return std::vector<int>(list, list + count);
}

unsigned PhysicalOfLogic(const MockLibrary& library, unsigned logic) {
  unsigned physical = 0;
  EXPECT_EQ(FN(library, dcmi_get_device_phyid_from_logicid)(logic, &physical), DCMI_OK);
  return physical;
}

TEST(MockLibraryTest, ListsNoCardsBeforeInit) {
  TestNode node("8x910B3");
  MockLibrary library;
  int count = 0, list[64];
  EXPECT_EQ(FN(library, dcmi_get_card_list)(&count, list, 64), DCMI_INNER_ERR);
  char version[64];
  EXPECT_EQ(FN(library, dcmi_get_driver_version)(version, sizeof(version)), DCMI_OK);
  EXPECT_STREQ(version, "25.5.1");
  EXPECT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  EXPECT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  EXPECT_THAT(Cards(library), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(MockLibraryTest, RefusesBadArguments) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  int count = 0, list[64];
  EXPECT_EQ(FN(library, dcmi_get_card_list)(&count, list, 7), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(FN(library, dcmi_get_card_list)(nullptr, list, 64), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(FN(library, dcmi_get_card_list)(&count, nullptr, 64), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(FN(library, dcmi_get_device_health)(0, 0, nullptr), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(FN(library, dcmi_get_device_chip_info_v2)(0, 0, nullptr), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(FN(library, dcmi_get_device_die_v2)(0, 0, DCMI_DIE_VDIE, nullptr),
            DCMI_INVALID_PARAMETER);
  unsigned health = 0;
  EXPECT_EQ(FN(library, dcmi_get_device_health)(8, 0, &health), DCMI_DEVICE_NOT_EXIST);
  char version[4];
  EXPECT_EQ(FN(library, dcmi_get_driver_version)(version, sizeof(version)), DCMI_INVALID_PARAMETER);
}

TEST(MockLibraryTest, PutsOutputsFirstWhereTheAbiDoes) {
  TestNode node("2x300I-sparse");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  int logic = -1, card = -1, device = -1;
  EXPECT_EQ(FN(library, dcmi_get_device_logic_id)(&logic, 5, 0), DCMI_OK);
  EXPECT_EQ(logic, 1);
  EXPECT_EQ(FN(library, dcmi_get_card_id_device_id_from_logicid)(&card, &device, 1), DCMI_OK);
  EXPECT_EQ(card, 5);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(FN(library, dcmi_get_card_id_device_id_from_phyid)(&card, &device, 0), DCMI_OK);
  EXPECT_EQ(card, 4);
}

TEST(MockLibraryTest, SeesChipsGoAndComeBackUnderTheSameNumbers) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  node.Set(3, {"present=false"});
  EXPECT_THAT(Cards(library), ElementsAre(0, 1, 2, 4, 5, 6, 7));
  EXPECT_EQ(PhysicalOfLogic(library, 3), 4u) << "logic ids close ranks";
  unsigned health = 0;
  EXPECT_EQ(FN(library, dcmi_get_device_health)(3, 0, &health), DCMI_DEVICE_NOT_EXIST);
  node.Set(3, {"present=true", "health=absent", "errorCodes=[2162757633]"});
  EXPECT_EQ(Cards(library).size(), 8u);
  EXPECT_EQ(PhysicalOfLogic(library, 3), 3u);
  EXPECT_EQ(FN(library, dcmi_get_device_health)(3, 0, &health), DCMI_OK);
  EXPECT_EQ(health, DCMI_HEALTH_ABSENT);
  int count = 0;
  unsigned codes[DCMI_MAX_ERROR_CODES];
  EXPECT_EQ(FN(library, dcmi_get_device_errorcode_v2)(3, 0, &count, codes, DCMI_MAX_ERROR_CODES),
            DCMI_OK);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(codes[0], 2162757633u);
}

TEST(MockLibraryTest, UnionHidesTheModuleOfAMissingDie) {
  TestNode node("16xA3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  node.Set(5, {"present=false"});
  EXPECT_THAT(Cards(library), ElementsAre(0, 1, 3, 4, 5, 6, 7));
  node.Edit([](nlohmann::json& json) { json["multiDiePolicy"] = "independent"; });
  EXPECT_EQ(Cards(library).size(), 8u);
  int count = 0;
  EXPECT_EQ(FN(library, dcmi_get_all_device_count)(&count), DCMI_OK);
  EXPECT_EQ(count, 15);
}

TEST(MockLibraryTest, AnswersWithForcedCodesForOneChipOrAll) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  const auto health = FN(library, dcmi_get_device_health);
  unsigned value = 0;
  node.Call({.function = "dcmi_get_device_health", .physical_id = 3, .return_code = -8012});
  EXPECT_EQ(health(3, 0, &value), -8012);
  EXPECT_EQ(health(2, 0, &value), DCMI_OK);
  node.Call({.function = "dcmi_get_device_health", .return_code = -8009});
  EXPECT_EQ(health(3, 0, &value), -8012) << "what is about the chip goes first";
  EXPECT_EQ(health(2, 0, &value), -8009);
  node.Call({.function = "dcmi_get_device_health", .physical_id = 3});
  EXPECT_EQ(health(3, 0, &value), -8009);
  ASSERT_THAT(ClearCalls(node.directory()), IsOk());
  EXPECT_EQ(health(3, 0, &value), DCMI_OK);
  node.Call({.function = "*", .card = 1, .return_code = -8006});
  EXPECT_EQ(health(1, 0, &value), -8006);
  EXPECT_EQ(health(2, 0, &value), DCMI_OK);
  node.Edit([](nlohmann::json& json) { json["hiddenSymbols"] = {"dcmi_get_device_health"}; });
  EXPECT_EQ(health(2, 0, &value), DCMI_FUNCTION_NOT_FOUND);
}

TEST(MockLibraryTest, TakesAsLongAsTold) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  node.Call({.function = "dcmi_get_device_health", .delay_ms = 60});
  const auto start = std::chrono::steady_clock::now();
  unsigned value = 0;
  EXPECT_EQ(FN(library, dcmi_get_device_health)(0, 0, &value), DCMI_OK);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(60));
}

TEST(MockLibraryTest, HangsUntilToldOtherwise) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  const auto health = FN(library, dcmi_get_device_health);
  node.Call({.function = "dcmi_get_device_health", .hang = true});
  const ReadWatch watch(node.directory());
  std::future<int> answer = std::async(std::launch::async, [health] {
    unsigned value = 0;
    return health(0, 0, &value);
  });
  watch.Wait();  // the call has read that it shall hang
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  int logic = -1;
  EXPECT_EQ(FN(library, dcmi_get_device_logic_id)(&logic, 2, 0), DCMI_OK)
      << "other calls go on meanwhile";
  ASSERT_THAT(ClearCalls(node.directory()), IsOk());
  EXPECT_EQ(answer.get(), DCMI_TIME_OUT);
}

TEST(MockLibraryTest, ServesThreadsWhileTheNodeChanges) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  const auto health = FN(library, dcmi_get_device_health);
  std::vector<std::future<void>> callers;
  callers.reserve(4);
  for (int card = 0; card < 4; ++card) {
    callers.push_back(std::async(std::launch::async, [health, card] {
      for (int i = 0; i < 200; ++i) {
        unsigned value = 0;
        const int code = health(card, 0, &value);
        EXPECT_TRUE(code == DCMI_OK || (card == 1 && code == DCMI_DEVICE_NOT_EXIST)) << code;
      }
    }));
  }
  for (int i = 0; i < 10; ++i) node.Set(1, {i % 2 == 0 ? "present=false" : "present=true"});
  for (auto& caller : callers) caller.get();
}

TEST(MockLibraryDeathTest, CrashesTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  TestNode node("8x910B3");
  node.Call({.function = "dcmi_init", .crash = true});
  EXPECT_DEATH(
      {
        MockLibrary library;
        FN(library, dcmi_init)();
      },
      "");
}

TEST(MockLibraryTest, FailsWithoutANodeAndRecovers) {
  TestNode node("8x910B3");
  const std::string good = *ReadFile(node.directory() + "/node.json");
  MockLibrary library;
  node.Write("{\"chips\": 3}");
  EXPECT_EQ(FN(library, dcmi_init)(), DCMI_INNER_ERR);
  node.Write("not json");
  EXPECT_EQ(FN(library, dcmi_init)(), DCMI_INNER_ERR);
  ASSERT_EQ(unlink((node.directory() + "/node.json").c_str()), 0);
  EXPECT_EQ(FN(library, dcmi_init)(), DCMI_INNER_ERR);
  node.Write(good);
  EXPECT_EQ(FN(library, dcmi_init)(), DCMI_OK);
}

TEST(MockLibraryTest, SpeaksOnlyGeneration2On950) {
  TestNode node("1x950PR");
  MockLibrary library;
  EXPECT_EQ(FN(library, dcmi_init)(), DCMI_NOT_SUPPORT);
  unsigned health = 7;
  EXPECT_EQ(FN(library, dcmi_get_device_health)(0, 0, &health), DCMI_NOT_SUPPORT);
  int list[8], count = 0;
  EXPECT_EQ(FN(library, dcmiv2_get_device_list)(list, &count, 8), DCMI_INNER_ERR) << "before init";
  ASSERT_EQ(FN(library, dcmiv2_init)(), DCMI_OK);
  EXPECT_EQ(FN(library, dcmiv2_get_device_list)(list, &count, 8), DCMI_OK);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(list[0], 0);
  EXPECT_EQ(FN(library, dcmiv2_get_device_list)(list, &count, 0), DCMI_INVALID_PARAMETER);
  dcmi_chip_info_v2 info{};
  EXPECT_EQ(FN(library, dcmiv2_get_device_chip_info)(0, &info), DCMI_OK);
  EXPECT_STREQ(reinterpret_cast<char*>(info.chip_name), "Ascend950PR");
  EXPECT_STREQ(reinterpret_cast<char*>(info.npu_name), "9579");
  EXPECT_EQ(FN(library, dcmiv2_get_device_health)(0, &health), DCMI_OK);
  EXPECT_EQ(FN(library, dcmiv2_get_device_health)(1, &health), DCMI_DEVICE_NOT_EXIST);
}

TEST(MockLibraryTest, KnowsWhatProductsLack) {
  MockLibrary library;
  int value = 0;
  unsigned mode = 0;
  dcmi_hbm_info hbm{};
  dcmi_get_memory_info_stru ddr{};
  dcmi_multi_die_policy policy{};
  {
    TestNode node("4x310P3");
    ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
    EXPECT_EQ(FN(library, dcmi_get_device_hbm_info)(1, 0, &hbm), DCMI_NOT_SUPPORT);
    EXPECT_EQ(FN(library, dcmi_get_device_memory_info_v3)(1, 0, &ddr), DCMI_OK);
    EXPECT_EQ(ddr.memory_size, 21527u);
    EXPECT_EQ(FN(library, dcmi_get_device_power_info)(1, 0, &value), DCMI_NOT_SUPPORT);
    EXPECT_EQ(FN(library, dcmi_mcu_get_power_info)(1, &value), DCMI_OK);
    EXPECT_EQ(value, 140);
    EXPECT_EQ(FN(library, dcmi_get_topo_info_by_device_id)(1, 0, 2, 0, &value), DCMI_NOT_SUPPORT);
    EXPECT_EQ(FN(library, dcmi_get_device_network_health)(
                  1, 0, reinterpret_cast<dcmi_rdfx_detect_result*>(&value)),
              DCMI_NOT_SUPPORT);
    char type[DCMI_PRODUCT_TYPE_LEN];
    EXPECT_EQ(FN(library, dcmi_get_product_type)(1, 0, type, sizeof(type)), DCMI_OK);
    EXPECT_STREQ(type, "Atlas 300I Pro");
  }
  {
    TestNode node("16xA3");
    EXPECT_EQ(FN(library, dcmi_get_device_power_info)(0, 0, &value), DCMI_OK);
    EXPECT_EQ(FN(library, dcmi_get_device_power_info)(0, 1, &value), DCMI_NOT_SUPPORT);
    EXPECT_EQ(FN(library, dcmi_get_topo_info_by_device_id)(0, 0, 0, 1, &value), DCMI_OK);
    EXPECT_EQ(value, DCMI_TOPO_SIO);
    EXPECT_EQ(FN(library, dcmi_get_topo_info_by_device_id)(0, 0, 1, 1, &value), DCMI_OK);
    EXPECT_EQ(value, DCMI_TOPO_HCCS_SW);
    EXPECT_EQ(FN(library, dcmi_get_multi_die_policy)(&policy), DCMI_OK);
    EXPECT_EQ(policy, DCMI_MULTI_DIE_UNION);
    EXPECT_EQ(FN(library, dcmi_get_vnpu_config_recover_mode)(&mode), DCMI_NOT_SUPPORT);
    dcmi_spod_info pod{};
    unsigned size = sizeof(pod) - 1;
    EXPECT_EQ(
        FN(library, dcmi_get_device_info)(0, 0, DCMI_CMD_CHIP_INF, DCMI_SUB_CHIP_SPOD, &pod, &size),
        DCMI_INVALID_PARAMETER);
    size = sizeof(pod) + 64;
    EXPECT_EQ(
        FN(library, dcmi_get_device_info)(0, 0, DCMI_CMD_CHIP_INF, DCMI_SUB_CHIP_SPOD, &pod, &size),
        DCMI_OK);
    EXPECT_EQ(size, sizeof(pod));
    EXPECT_EQ(pod.super_pod_size, 384u);
  }
  {
    TestNode node("8x910B3");
    EXPECT_EQ(FN(library, dcmi_get_device_hbm_info)(0, 0, &hbm), DCMI_OK);
    EXPECT_EQ(hbm.memory_size, 65536u);
    EXPECT_EQ(FN(library, dcmi_get_device_memory_info_v3)(0, 0, &ddr), DCMI_NOT_SUPPORT);
    EXPECT_EQ(FN(library, dcmi_get_multi_die_policy)(&policy), DCMI_NOT_SUPPORT);
    EXPECT_EQ(FN(library, dcmi_get_topo_info_by_device_id)(0, 0, 7, 0, &value), DCMI_OK);
    EXPECT_EQ(value, DCMI_TOPO_HCCS);
    dcmi_ecc_info ecc{};
    EXPECT_EQ(FN(library, dcmi_get_device_ecc_info)(0, 0, DCMI_ECC_DDR, &ecc), DCMI_NOT_SUPPORT);
    EXPECT_EQ(FN(library, dcmi_get_device_ecc_info)(0, 0, DCMI_ECC_HBM, &ecc), DCMI_OK);
    EXPECT_EQ(FN(library, dcmi_create_vdevice)(0, 0, nullptr, nullptr), DCMI_INVALID_PARAMETER);
    dcmi_unit_type type{};
    EXPECT_EQ(FN(library, dcmi_get_device_type)(0, 1, &type), DCMI_OK);
    EXPECT_EQ(type, DCMI_UNIT_MCU);
  }
}

// Answers of the calls about vNPUs that the driver's wrapper does not show.

dcmi_create_vdev_res_stru Wish(const char* name) {
  dcmi_create_vdev_res_stru wish{.vdev_id = DCMI_VDEV_AUTOMATIC, .vfg_id = DCMI_VDEV_AUTOMATIC};
  strncpy(wish.template_name, name, sizeof(wish.template_name) - 1);
  return wish;
}

int Create(const MockLibrary& library, int card, const char* name, unsigned* id = nullptr) {
  dcmi_create_vdev_res_stru wish = Wish(name);
  dcmi_create_vdev_out out{};
  const int code = FN(library, dcmi_create_vdevice)(card, 0, &wish, &out);
  if (id != nullptr) *id = out.vdev_id;
  return code;
}

template <typename T>
int VdevInfo(const MockLibrary& library, int card, unsigned sub_command, T* value) {
  unsigned size = sizeof(*value);
  return FN(library, dcmi_get_device_info)(card, 0, DCMI_CMD_VDEV_MNG, sub_command, value, &size);
}

unsigned VnpuCount(const MockLibrary& library, int card) {
  dcmi_soc_total_resource total{};
  EXPECT_EQ(VdevInfo(library, card, DCMI_SUB_VDEV_TOTAL, &total), DCMI_OK);
  return total.vdev_num;
}

TEST(MockLibraryTest, RefusesBadArgumentsAboutVnpus) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  const auto create = FN(library, dcmi_create_vdevice);
  dcmi_create_vdev_res_stru wish = Wish("vir05_1c_16g");
  dcmi_create_vdev_out out{};
  EXPECT_EQ(create(0, 0, nullptr, &out), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(create(0, 0, &wish, nullptr), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(create(8, 0, &wish, &out), DCMI_DEVICE_NOT_EXIST);
  EXPECT_EQ(create(0, 1, &wish, &out), DCMI_DEVICE_NOT_EXIST) << "the management unit";
  wish.vdev_id = 99;
  EXPECT_EQ(create(0, 0, &wish, &out), DCMI_INVALID_PARAMETER);
  std::memset(wish.template_name, 'v', sizeof(wish.template_name));
  EXPECT_EQ(create(0, 0, &wish, &out), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(VnpuCount(library, 0), 0u);
  dcmi_soc_total_resource total{};
  unsigned size = sizeof(total) - 1;
  EXPECT_EQ(FN(library, dcmi_get_device_info)(0, 0, DCMI_CMD_VDEV_MNG, DCMI_SUB_VDEV_TOTAL, &total,
                                              &size),
            DCMI_INVALID_PARAMETER);
  dcmi_vdev_query_stru query{.vdev_id = 100};
  EXPECT_EQ(VdevInfo(library, 0, DCMI_SUB_VDEV_ONE, &query), DCMI_DEVICE_NOT_EXIST);
  size = sizeof(query) - 1;
  EXPECT_EQ(
      FN(library, dcmi_get_device_info)(0, 0, DCMI_CMD_VDEV_MNG, DCMI_SUB_VDEV_ONE, &query, &size),
      DCMI_INVALID_PARAMETER);
  EXPECT_EQ(VdevInfo(library, 0, DCMI_SUB_VDEV_SRIOV, &query), DCMI_NOT_SUPPORT);
  EXPECT_EQ(FN(library, dcmi_get_vdevice_mode)(nullptr), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(FN(library, dcmi_set_vdevice_mode)(2), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(FN(library, dcmi_get_vnpu_config_recover_mode)(nullptr), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(FN(library, dcmi_set_vnpu_config_recover_mode)(2), DCMI_INVALID_PARAMETER);
}

TEST(MockLibraryTest, DestroysAllOfAChip) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  for (const int card : {0, 0, 1}) ASSERT_EQ(Create(library, card, "vir05_1c_16g"), DCMI_OK);
  const auto destroy = FN(library, dcmi_set_destroy_vdevice);
  ASSERT_THAT(SetOnVnpu(node.directory(), 101, {"busy=true"}), IsOk());
  EXPECT_EQ(destroy(0, 0, DCMI_VDEV_ALL), DCMI_RESOURCE_OCCUPIED);
  ASSERT_THAT(SetOnVnpu(node.directory(), 101, {"busy=false"}), IsOk());
  EXPECT_EQ(destroy(0, 0, DCMI_VDEV_ALL), DCMI_OK);
  EXPECT_EQ(destroy(0, 0, DCMI_VDEV_ALL), DCMI_OK) << "none left to destroy";
  EXPECT_EQ(VnpuCount(library, 0), 0u);
  EXPECT_EQ(VnpuCount(library, 1), 1u);
}

TEST(MockLibraryTest, TellsActivityOnlyOn310P) {
  MockLibrary library;
  {
    TestNode node("4x310P3");
    ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
    unsigned id = 0;
    ASSERT_EQ(Create(library, 1, "vir02", &id), DCMI_OK);
    dcmi_vdev_query_stru query{.vdev_id = id};
    EXPECT_EQ(VdevInfo(library, 1, DCMI_SUB_VDEV_ACTIVITY, &query), DCMI_OK);
    EXPECT_EQ(query.query_info.computing.vdev_memory_total, 6144u * 1024);
    dcmi_soc_free_resource free{};
    EXPECT_EQ(VdevInfo(library, 1, DCMI_SUB_VDEV_FREE, &free), DCMI_OK);
    EXPECT_EQ(free.vfg_num, 3u);
    EXPECT_EQ(free.vfg_bitmap, 0b1110u);
  }
  {
    TestNode node("8x910B3");
    ASSERT_EQ(Create(library, 0, "vir05_1c_16g"), DCMI_OK);
    dcmi_vdev_query_stru query{.vdev_id = 100};
    EXPECT_EQ(VdevInfo(library, 0, DCMI_SUB_VDEV_ACTIVITY, &query), DCMI_NOT_SUPPORT);
    EXPECT_EQ(VdevInfo(library, 0, DCMI_SUB_VDEV_ONE, &query), DCMI_OK);
    EXPECT_STREQ(query.query_info.name, "vir05_1c_16g");
  }
}

TEST(MockLibraryTest, ProductsWithoutVnpusSaySo) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  node.Edit([](nlohmann::json& json) {
    json.erase("vnpu");
    json["family"] = "310B";
  });
  EXPECT_EQ(Create(library, 0, "vir02"), DCMI_NOT_SUPPORT);
  EXPECT_EQ(FN(library, dcmi_set_destroy_vdevice)(0, 0, 100), DCMI_NOT_SUPPORT);
  dcmi_soc_total_resource total{};
  EXPECT_EQ(VdevInfo(library, 0, DCMI_SUB_VDEV_TOTAL, &total), DCMI_NOT_SUPPORT);
  int mode = 0;
  unsigned recovery = 0;
  EXPECT_EQ(FN(library, dcmi_get_vdevice_mode)(&mode), DCMI_NOT_SUPPORT);
  EXPECT_EQ(FN(library, dcmi_set_vdevice_mode)(0), DCMI_NOT_SUPPORT);
  EXPECT_EQ(FN(library, dcmi_get_vnpu_config_recover_mode)(&recovery), DCMI_NOT_SUPPORT);
  EXPECT_EQ(FN(library, dcmi_set_vnpu_config_recover_mode)(0), DCMI_NOT_SUPPORT);
  node.Edit([](nlohmann::json& json) { json["family"] = "310"; });
  EXPECT_EQ(Create(library, 0, "vir02"), DCMI_NOT_SUPPORT);
  EXPECT_EQ(FN(library, dcmi_get_vdevice_mode)(&mode), DCMI_OK);
  EXPECT_EQ(FN(library, dcmi_get_vnpu_config_recover_mode)(&recovery), DCMI_NOT_SUPPORT);
}

TEST(MockLibraryTest, ClientsSeeOneAnothersVnpus) {
  TestNode node("8x910B3");
  MockLibrary one, other;
  ASSERT_EQ(FN(one, dcmi_init)(), DCMI_OK);
  ASSERT_EQ(FN(other, dcmi_init)(), DCMI_OK);
  ASSERT_EQ(Create(one, 0, "vir10_3c_32g"), DCMI_OK);
  EXPECT_EQ(VnpuCount(other, 0), 1u);
  ASSERT_EQ(Create(other, 0, "vir10_3c_32g"), DCMI_OK);
  EXPECT_EQ(Create(one, 0, "vir05_1c_16g"), DCMI_INNER_ERR);
  EXPECT_EQ(FN(one, dcmi_set_destroy_vdevice)(0, 0, 101), DCMI_OK);
  EXPECT_EQ(VnpuCount(other, 0), 1u);
}

TEST(MockLibraryTest, ABrokenStateIsAnInnerError) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  ASSERT_EQ(Create(library, 0, "vir10_3c_32g"), DCMI_OK);
  ASSERT_THAT(WriteFileAtomically(node.directory() + "/state/vnpus.json", "{", {.durable = false}),
              IsOk());
  EXPECT_EQ(Create(library, 0, "vir10_3c_32g"), DCMI_INNER_ERR);
  dcmi_soc_total_resource total{};
  EXPECT_EQ(VdevInfo(library, 0, DCMI_SUB_VDEV_TOTAL, &total), DCMI_INNER_ERR);
}

TEST(MockLibraryTest, MisbehavesAfterItsWork) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  const std::string name = "dcmi_create_vdevice";
  node.Call({.function = name, .return_code = -8005, .after_work = true});
  EXPECT_EQ(Create(library, 0, "vir05_1c_16g"), -8005);
  EXPECT_EQ(VnpuCount(library, 0), 1u);
  node.Call({.function = name, .return_code = -8005});
  EXPECT_EQ(Create(library, 0, "vir05_1c_16g"), -8005);
  EXPECT_EQ(VnpuCount(library, 0), 1u) << "and without its work";
  node.Call({.function = name, .delay_ms = 60, .after_work = true});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Create(library, 0, "vir05_1c_16g"), DCMI_OK);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(60));
  EXPECT_EQ(VnpuCount(library, 0), 2u);
  node.Call({.function = "dcmi_set_destroy_vdevice", .return_code = -8006, .after_work = true});
  EXPECT_EQ(FN(library, dcmi_set_destroy_vdevice)(0, 0, 101), -8006);
  EXPECT_EQ(VnpuCount(library, 0), 1u);
}

TEST(MockLibraryTest, DiesRightAfterACreate) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  node.Call({.function = "dcmi_create_vdevice", .crash = true, .after_work = true});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Create(library, 0, "vir05_1c_16g");
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it survived";
  EXPECT_EQ(VnpuCount(library, 0), 1u);
}

std::promise<dcmi_event>* promised_event = nullptr;
void KeepEvent(dcmi_event* event) { promised_event->set_value(*event); }

TEST(MockLibraryTest, SubscribesOnceAndFilters) {
  TestNode node("8x910B3");
  MockLibrary library;
  const auto subscribe = FN(library, dcmi_subscribe_fault_event);
  EXPECT_EQ(subscribe(-1, -1, {}, KeepEvent), DCMI_INNER_ERR) << "before init";
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  EXPECT_EQ(subscribe(-1, -1, {}, nullptr), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(subscribe(77, 0, {}, KeepEvent), DCMI_DEVICE_NOT_EXIST);
  std::promise<dcmi_event> promise;
  promised_event = &promise;
  dcmi_event_filter filter{};
  filter.filter_flag = 1 | 2;  // the event id, and this severity and above
  filter.event_id = 0x11;
  filter.severity = 2;
  ASSERT_EQ(subscribe(3, 0, filter, KeepEvent), DCMI_OK);
  EXPECT_EQ(subscribe(-1, -1, {}, KeepEvent), DCMI_RESOURCE_OCCUPIED);
  // Of these, only the last passes; a second one that passes would break the promise.
  ASSERT_THAT(AddFault(node.directory(), 3, {.code = 0x12}), IsOk());
  ASSERT_THAT(AddFault(node.directory(), 3, {.code = 0x11, .severity = "minor"}), IsOk());
  ASSERT_THAT(AddFault(node.directory(), 4, {.code = 0x11}), IsOk());
  ASSERT_THAT(AddFault(node.directory(), 3, {.code = 0x11, .severity = "critical"}), IsOk());
  const dcmi_event event = promise.get_future().get();
  EXPECT_EQ(event.type, DCMI_EVENT_DMS_FAULT);
  EXPECT_EQ(event.event_t.dms_event.deviceid, 3);
  EXPECT_EQ(event.event_t.dms_event.event_id, 0x11u);
  EXPECT_EQ(event.event_t.dms_event.severity, 3);
  EXPECT_EQ(event.event_t.dms_event.assertion, 1);
}

TEST(MockLibraryTest, GivesNoMoreCodesThanAskedFor) {
  TestNode node("8x910B3");
  MockLibrary library;
  ASSERT_EQ(FN(library, dcmi_init)(), DCMI_OK);
  ASSERT_THAT(AddFault(node.directory(), 3, {.code = 1}), IsOk());
  ASSERT_THAT(AddFault(node.directory(), 3, {.code = 2}), IsOk());
  const auto get = FN(library, dcmi_get_device_errorcode_v2);
  int count = 0;
  unsigned list[2] = {};
  EXPECT_EQ(get(3, 0, &count, list, 1), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(get(3, 0, nullptr, list, 2), DCMI_INVALID_PARAMETER);
  EXPECT_EQ(get(3, 0, &count, nullptr, 2), DCMI_INVALID_PARAMETER);
  ASSERT_EQ(get(3, 0, &count, list, 2), DCMI_OK);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(list[1], 2u);
}

}  // namespace
}  // namespace ascend::dcmi::mock
