// Generation 1: chips by (card, device).
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "vnpu/dcmi/mock/exports.h"
#include "vnpu/dcmi/mock/fault_calls.h"
#include "vnpu/dcmi/mock/fault_events.h"
#include "vnpu/dcmi/mock/getters.h"
#include "vnpu/dcmi/mock/vnpu_calls.h"

namespace mock = ascend::dcmi::mock;
using mock::Chip;
using mock::Family;
using mock::Give;
using mock::GiveIfKnown;
using mock::Phase;
using mock::View;

namespace {

template <typename Work>
int Node(const char* function, Work work) {
  return mock::RunNode(function, 1, Phase::kReady, work);
}

template <typename Work>
int OnChip(const char* function, int card, int device, Work work) {
  return mock::RunChip(function, 1, [=](const View& view) { return view.At(card, device); }, work);
}

// A function that the mock does not have.
int NotYet(const char* function, int card, int device) {
  return OnChip(function, card, device,
                [](const View&, const Chip&) -> int { return DCMI_NOT_SUPPORT; });
}
int NotYet(const char* function) {
  return Node(function, [](const View&) -> int { return DCMI_NOT_SUPPORT; });
}

bool IsManagementUnit(const View& view, int card, int device) {
  const int highest = view.HighestDevice(card);
  return view.node.HasMcu() && highest >= 0 && device == highest + 1;
}

bool HasCard(const View& view, int card) {
  const std::vector<int> cards = view.Cards();
  return std::find(cards.begin(), cards.end(), card) != cards.end();
}

int CardList(const char* function, int* card_num, int* card_list, int list_len) {
  return Node(function, [=](const View& view) -> int {
    const std::vector<int> cards = view.Cards();
    if (card_num == nullptr || card_list == nullptr || list_len < 0 ||
        static_cast<size_t>(list_len) < cards.size()) {
      return DCMI_INVALID_PARAMETER;
    }
    std::copy(cards.begin(), cards.end(), card_list);
    *card_num = static_cast<int>(cards.size());
    return DCMI_OK;
  });
}

dcmi_ip_addr Ip(const std::array<unsigned char, 4>& bytes) {
  dcmi_ip_addr address{};
  std::copy(bytes.begin(), bytes.end(), address.u_addr.ip4);
  address.ip_type = DCMI_IP_V4;
  return address;
}

void Profile(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(std::max(milliseconds, 0)));
}

bool HasHccs(const View& view) {
  return view.node.family == Family::k910B || view.node.family == Family::kA3;
}

}  // namespace

// The node.

int dcmi_init(void) {
  return mock::RunNode(__func__, 1, Phase::kInit, [](const View&) -> int {
    mock::MarkInitialised(1);
    return DCMI_OK;
  });
}

int dcmi_get_dcmi_version(char* ver, unsigned len) {
  return mock::RunNode(__func__, 1, Phase::kAlways, [=](const View& view) {
    return mock::CopyText(view.node.dcmi_version, ver, len);
  });
}

int dcmi_get_driver_version(char* ver, unsigned len) {
  return mock::RunNode(__func__, 1, Phase::kAlways, [=](const View& view) {
    return mock::CopyText(view.node.driver_version, ver, len);
  });
}

int dcmi_get_card_list(int* card_num, int* card_list, int list_len) {
  return CardList(__func__, card_num, card_list, list_len);
}

int dcmi_get_card_num_list(int* card_num, int* card_list, int list_len) {
  return CardList(__func__, card_num, card_list, list_len);
}

int dcmi_get_all_device_count(int* count) {
  return Node(__func__, [=](const View& view) { return Give(count, view.visible.size()); });
}

int dcmi_get_device_num_in_card(int card, int* num) {
  return Node(__func__, [=](const View& view) -> int {
    if (!HasCard(view, card)) return DCMI_DEVICE_NOT_EXIST;
    return Give(num, std::count_if(view.visible.begin(), view.visible.end(),
                                   [=](const Chip* chip) { return chip->card == card; }));
  });
}

// device_id_max counts the management unit, as documented for 910B: device 0 is the NPU, 1 the MCU.
int dcmi_get_device_id_in_card(int card, int* device_id_max, int* mcu_id, int* cpu_id) {
  return Node(__func__, [=](const View& view) -> int {
    if (device_id_max == nullptr || mcu_id == nullptr || cpu_id == nullptr) {
      return DCMI_INVALID_PARAMETER;
    }
    if (!HasCard(view, card)) return DCMI_DEVICE_NOT_EXIST;
    const int highest = view.HighestDevice(card);
    *device_id_max = view.node.HasMcu() ? highest + 1 : highest;
    *mcu_id = view.node.HasMcu() ? highest + 1 : -1;
    *cpu_id = -1;
    return DCMI_OK;
  });
}

int dcmi_get_vdevice_mode(int* mode) {
  return Node(__func__, [=](const View& view) { return mock::GetVdeviceMode(view, mode); });
}

int dcmi_set_vdevice_mode(int mode) {
  return Node(__func__, [=](const View& view) { return mock::SetVdeviceMode(view, mode); });
}

int dcmi_get_vnpu_config_recover_mode(unsigned* mode) {
  return Node(__func__, [=](const View& view) { return mock::GetVnpuRecovery(view, mode); });
}

int dcmi_set_vnpu_config_recover_mode(unsigned mode) {
  return Node(__func__, [=](const View& view) { return mock::SetVnpuRecovery(view, mode); });
}

int dcmi_get_multi_die_policy(enum dcmi_multi_die_policy* policy) {
  return Node(__func__, [=](const View& view) -> int {
    if (policy == nullptr) return DCMI_INVALID_PARAMETER;
    if (!view.node.dies_independent.has_value()) return DCMI_NOT_SUPPORT;
    *policy = *view.node.dies_independent ? DCMI_MULTI_DIE_INDEPENDENT : DCMI_MULTI_DIE_UNION;
    return DCMI_OK;
  });
}

// The numbers of a chip.

int dcmi_get_device_type(int card_id, int device_id, enum dcmi_unit_type* type) {
  const auto find = [=](const View& view) -> const Chip* {
    if (!IsManagementUnit(view, card_id, device_id)) return view.At(card_id, device_id);
    // Lives and dies with the card's chips.
    for (const Chip* chip : view.visible) {
      if (chip->card == card_id) return chip;
    }
    return nullptr;
  };
  return mock::RunChip(__func__, 1, find, [=](const View& view, const Chip&) -> int {
    return Give(type, IsManagementUnit(view, card_id, device_id) ? DCMI_UNIT_MCU : DCMI_UNIT_NPU);
  });
}

int dcmi_get_device_logic_id(int* logic_id, int card_id, int device_id) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return Give(logic_id, view.LogicId(chip));
  });
}

int dcmi_get_device_phyid_from_logicid(unsigned logic, unsigned* phy) {
  return mock::RunChip(
      __func__, 1, [=](const View& view) { return view.ByLogicId(logic); },
      [=](const View&, const Chip& chip) -> int {
        if (!chip.physical_id.has_value()) return DCMI_INNER_ERR;
        return Give(phy, *chip.physical_id);
      });
}

int dcmi_get_device_logicid_from_phyid(unsigned phy, unsigned* logic) {
  return mock::RunChip(
      __func__, 1, [=](const View& view) { return view.ByPhysicalId(phy); },
      [=](const View& view, const Chip& chip) { return Give(logic, view.LogicId(chip)); });
}

int dcmi_get_card_id_device_id_from_logicid(int* card, int* dev, unsigned logic) {
  return mock::RunChip(
      __func__, 1, [=](const View& view) { return view.ByLogicId(logic); },
      [=](const View&, const Chip& chip) -> int {
        const int code = Give(card, chip.card);
        return code != DCMI_OK ? code : Give(dev, chip.device);
      });
}

int dcmi_get_card_id_device_id_from_phyid(int* card, int* dev, unsigned phy) {
  return mock::RunChip(
      __func__, 1, [=](const View& view) { return view.ByPhysicalId(phy); },
      [=](const View&, const Chip& chip) -> int {
        const int code = Give(card, chip.card);
        return code != DCMI_OK ? code : Give(dev, chip.device);
      });
}

// Identity.

int dcmi_get_device_chip_info(int card_id, int device_id, struct dcmi_chip_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    dcmi_chip_info_v2 longer;
    mock::GetChipInfo(chip, &longer);
    std::memcpy(info, &longer, sizeof(*info));  // the newer one only adds a tail
    return DCMI_OK;
  });
}

int dcmi_get_device_chip_info_v2(int card_id, int device_id, struct dcmi_chip_info_v2* info) {
  return OnChip(__func__, card_id, device_id,
                [=](const View&, const Chip& chip) { return mock::GetChipInfo(chip, info); });
}

int dcmi_get_device_pcie_info(int card_id, int device_id, struct dcmi_pcie_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    *info = {.deviceid = chip.pci.device_id,
             .venderid = chip.pci.vendor_id,
             .subvenderid = chip.pci.subsystem_vendor_id,
             .subdeviceid = chip.pci.subsystem_device_id,
             .bdf_deviceid = chip.pci.device,
             .bdf_busid = chip.pci.bus,
             .bdf_funcid = chip.pci.function};
    return DCMI_OK;
  });
}

int dcmi_get_device_pcie_info_v2(int card_id, int device_id, struct dcmi_pcie_info_all* info) {
  return OnChip(__func__, card_id, device_id,
                [=](const View&, const Chip& chip) { return mock::GetPcieInfo(chip, info); });
}

int dcmi_get_device_board_info(int card_id, int device_id, struct dcmi_board_info* info) {
  return OnChip(__func__, card_id, device_id,
                [=](const View&, const Chip& chip) { return mock::GetBoardInfo(chip, info); });
}

int dcmi_get_mainboard_id(int card_id, int device_id, unsigned* id) {
  return OnChip(__func__, card_id, device_id,
                [=](const View&, const Chip& chip) { return Give(id, chip.mainboard_id); });
}

int dcmi_get_product_type(int card_id, int device_id, char* str, int buf_size) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) -> int {
    if (view.node.HasHbm()) return DCMI_NOT_SUPPORT;
    if (buf_size < 0) return DCMI_INVALID_PARAMETER;
    return mock::CopyText(chip.product_type, str, static_cast<size_t>(buf_size));
  });
}

int dcmi_get_card_elabel_v2(int card, struct dcmi_elabel_info* info) {
  return OnChip(__func__, card, 0,
                [=](const View&, const Chip& chip) { return mock::GetElabel(chip, info); });
}

int dcmi_get_device_elabel_info(int card_id, int device_id, struct dcmi_elabel_info* info) {
  return OnChip(__func__, card_id, device_id,
                [=](const View&, const Chip& chip) { return mock::GetElabel(chip, info); });
}

int dcmi_get_device_die_v2(int card_id, int device_id, enum dcmi_die_type type,
                           struct dcmi_die_id* die) {
  return OnChip(__func__, card_id, device_id,
                [=](const View&, const Chip& chip) { return mock::GetDie(chip, type, die); });
}

int dcmi_get_device_boot_status(int card_id, int device_id, enum dcmi_boot_status* status) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return mock::GetBootStatus(view, chip, status);
  });
}

int dcmi_get_npu_work_mode(int card, unsigned char* mode) {
  return OnChip(__func__, card, 0, [=](const View& view, const Chip&) -> int {
    if (view.node.HasHbm()) return DCMI_NOT_SUPPORT;
    return Give(mode, 0);  // AMP
  });
}

int dcmi_get_affinity_cpu_info_by_device_id(int card_id, int device_id, char* cpus, int* length) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) -> int {
    // 0x15 is the A3 mainboard that knows.
    if (view.node.family != Family::k910B &&
        !(view.node.family == Family::kA3 && chip.mainboard_id == 0x15)) {
      return DCMI_NOT_SUPPORT;
    }
    if (length == nullptr) return DCMI_INVALID_PARAMETER;
    const int code = mock::CopyText(chip.cpu_affinity, cpus, DCMI_CPU_AFFINITY_LEN);
    if (code == DCMI_OK) *length = static_cast<int>(chip.cpu_affinity.size());
    return code;
  });
}

int dcmi_get_topo_info_by_device_id(int card1, int dev1, int card2, int dev2, int* topo_type) {
  return OnChip(__func__, card1, dev1, [=](const View& view, const Chip& one) -> int {
    const Chip* const other = view.At(card2, dev2);
    if (other == nullptr) return DCMI_DEVICE_NOT_EXIST;
    return mock::GetTopology(view, one, *other, topo_type);
  });
}

int dcmi_get_netdev_brother_device(int card_id, int device_id, int* brother_card_id) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) -> int {
    if (view.node.family != Family::kA3) return DCMI_NOT_SUPPORT;
    return Give(brother_card_id, chip.card ^ 1);
  });
}

// State.

int dcmi_get_device_health(int card_id, int device_id, unsigned* health) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return mock::GetHealth(view, chip, health);
  });
}

int dcmi_get_device_errorcode_v2(int card_id, int device_id, int* count, unsigned* list,
                                 unsigned list_len) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return mock::GetErrorCodes(view, chip, count, list, list_len);
  });
}

int dcmi_get_device_errorcode_string(int card_id, int device_id, unsigned code, unsigned char* info,
                                     int buf_size) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip&) -> int {
    if (buf_size < 0) return DCMI_INVALID_PARAMETER;
    return mock::CopyText(mock::FaultText(view, code), reinterpret_cast<char*>(info),
                          static_cast<size_t>(buf_size));
  });
}

int dcmi_get_device_network_health(int card_id, int device_id,
                                   enum dcmi_rdfx_detect_result* result) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (!chip.roce.has_value()) return DCMI_NOT_SUPPORT;
    return Give(result, chip.network_health);
  });
}

int dcmi_get_device_ip(int card_id, int device_id, enum dcmi_port_type port_type, int port_id,
                       struct dcmi_ip_addr* ip, struct dcmi_ip_addr* mask) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (ip == nullptr || mask == nullptr) return DCMI_INVALID_PARAMETER;
    if (!chip.roce.has_value() || port_type != DCMI_PORT_ROCE) return DCMI_NOT_SUPPORT;
    if (port_id != 0) return DCMI_INVALID_PARAMETER;
    *ip = Ip(chip.roce->address);
    *mask = Ip(chip.roce->mask);
    return DCMI_OK;
  });
}

int dcmi_get_device_gateway(int card_id, int device_id, enum dcmi_port_type port_type, int port_id,
                            struct dcmi_ip_addr* gateway) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (gateway == nullptr) return DCMI_INVALID_PARAMETER;
    if (!chip.roce.has_value() || port_type != DCMI_PORT_ROCE) return DCMI_NOT_SUPPORT;
    if (port_id != 0) return DCMI_INVALID_PARAMETER;
    *gateway = Ip(chip.roce->gateway);
    return DCMI_OK;
  });
}

int dcmi_get_device_outband_channel_state(int card_id, int device_id, int* state) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip&) {
    return Give(state, view.node.reset.outband ? 1 : 0);
  });
}

int dcmi_get_device_share_enable(int card_id, int device_id, int* flag) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip&) -> int {
    const Family family = view.node.family;
    if (family != Family::k310P && family != Family::k910B && family != Family::kA3) {
      return DCMI_NOT_SUPPORT;
    }
    return Give(flag, 0);
  });
}

// Telemetry.

int dcmi_get_device_temperature(int card_id, int device_id, int* celsius) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) {
    return GiveIfKnown(celsius, chip.temperature);
  });
}

int dcmi_get_device_voltage(int card_id, int device_id, unsigned* centivolt) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) {
    return GiveIfKnown(centivolt, chip.voltage_centivolt);
  });
}

int dcmi_get_device_power_info(int card_id, int device_id, int* deciwatt) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return mock::GetPower(view, chip, deciwatt);
  });
}

int dcmi_mcu_get_power_info(int card, int* deciwatt) {
  return OnChip(__func__, card, 0, [=](const View& view, const Chip& chip) -> int {
    if (!view.node.HasMcu()) return DCMI_NOT_SUPPORT;
    return GiveIfKnown(deciwatt, chip.power_deciwatt);
  });
}

int dcmi_get_device_utilization_rate(int card_id, int device_id, int type, unsigned* percent) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) {
    return mock::GetUtilization(chip, type, percent);
  });
}

int dcmi_get_device_multi_utilization_rate(int card_id, int device_id,
                                           struct dcmi_multi_utilization_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    if (!HasHccs(view)) return DCMI_NOT_SUPPORT;
    *info = {};
    mock::GetUtilization(chip, DCMI_UTILIZATION_CUBE, &info->aic_util);
    mock::GetUtilization(chip, DCMI_UTILIZATION_VECTOR, &info->aiv_util);
    mock::GetUtilization(chip, DCMI_UTILIZATION_AICORE, &info->aicore_util);
    mock::GetUtilization(chip, DCMI_UTILIZATION_NPU, &info->npu_util);
    return DCMI_OK;
  });
}

int dcmi_get_device_frequency(int card_id, int device_id, enum dcmi_freq_type type, unsigned* mhz) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (mhz == nullptr) return DCMI_INVALID_PARAMETER;
    const auto found = chip.frequency.find(type);
    if (found == chip.frequency.end()) return DCMI_NOT_SUPPORT;
    return Give(mhz, found->second);
  });
}

int dcmi_get_device_hbm_info(int card_id, int device_id, struct dcmi_hbm_info* info) {
  return OnChip(__func__, card_id, device_id,
                [=](const View& view, const Chip& chip) { return mock::GetHbm(view, chip, info); });
}

int dcmi_get_device_memory_info_v2(int card_id, int device_id, struct dcmi_memory_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    const mock::Memory& memory = chip.memory;
    if (memory.hbm || memory.total_mib == 0) return DCMI_NOT_SUPPORT;
    *info = {memory.total_mib, memory.frequency_mhz,
             static_cast<unsigned>(memory.used_mib * 100 / memory.total_mib)};
    return DCMI_OK;
  });
}

int dcmi_get_device_memory_info_v3(int card_id, int device_id,
                                   struct dcmi_get_memory_info_stru* info) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    const mock::Memory& memory = chip.memory;
    if (memory.hbm || memory.total_mib == 0) return DCMI_NOT_SUPPORT;
    *info = {.memory_size = memory.total_mib,
             .memory_available = memory.total_mib - std::min(memory.used_mib, memory.total_mib),
             .freq = memory.frequency_mhz,
             .hugepagesize = 2048,
             .utiliza = static_cast<unsigned>(memory.used_mib * 100 / memory.total_mib)};
    return DCMI_OK;
  });
}

int dcmi_get_device_aicore_info(int card_id, int device_id, struct dcmi_aicore_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    const auto maximum = chip.frequency.find(DCMI_FREQ_AICORE_MAX);
    const auto current = chip.frequency.find(DCMI_FREQ_AICORE_CURRENT);
    if (maximum == chip.frequency.end() || current == chip.frequency.end()) {
      return DCMI_NOT_SUPPORT;
    }
    *info = {maximum->second, current->second};
    return DCMI_OK;
  });
}

int dcmi_get_device_aicpu_info(int card_id, int device_id, struct dcmi_aicpu_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    if (chip.aicpu_count == 0) return DCMI_NOT_SUPPORT;
    *info = {};
    info->aicpu_num = chip.aicpu_count;
    unsigned percent = 0;
    mock::GetUtilization(chip, DCMI_UTILIZATION_AICPU, &percent);
    std::fill_n(info->util_rate, std::min<unsigned>(chip.aicpu_count, DCMI_MAX_CORE_NUM), percent);
    return DCMI_OK;
  });
}

int dcmi_get_device_ecc_info(int card_id, int device_id, enum dcmi_device_type type,
                             struct dcmi_ecc_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    if (type != (chip.memory.hbm ? DCMI_ECC_HBM : DCMI_ECC_DDR)) return DCMI_NOT_SUPPORT;
    *info = {.enable_flag = 1,
             .single_bit_error_cnt = chip.ecc_single_bit_errors,
             .double_bit_error_cnt = chip.ecc_double_bit_errors,
             .total_single_bit_error_cnt = chip.ecc_single_bit_errors,
             .total_double_bit_error_cnt = chip.ecc_double_bit_errors};
    return DCMI_OK;
  });
}

int dcmi_get_device_resource_info(int card_id, int device_id, struct dcmi_proc_mem_info* list,
                                  int* num) {
  return OnChip(__func__, card_id, device_id, [=](const View&, const Chip& chip) -> int {
    if (list == nullptr || num == nullptr) return DCMI_INVALID_PARAMETER;
    const size_t count = std::min<size_t>(chip.processes.size(), DCMI_MAX_PROCESSES);
    for (size_t i = 0; i < count; ++i) {
      list[i] = {chip.processes[i].pid, static_cast<unsigned long>(chip.processes[i].memory_bytes)};
    }
    *num = static_cast<int>(count);
    return DCMI_OK;
  });
}

// Idle links: zero, after the time that the real calls take.
int dcmi_get_pcie_link_bandwidth_info(int card_id, int device_id,
                                      struct dcmi_pcie_link_bandwidth_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip&) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    if (!HasHccs(view)) return DCMI_NOT_SUPPORT;
    Profile(info->profiling_time);
    *info = {.profiling_time = info->profiling_time};
    return DCMI_OK;
  });
}

int dcmi_get_hccs_link_bandwidth_info(int card_id, int device_id,
                                      struct dcmi_hccs_bandwidth_info* info) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip&) -> int {
    if (info == nullptr) return DCMI_INVALID_PARAMETER;
    if (!HasHccs(view)) return DCMI_NOT_SUPPORT;
    Profile(info->profiling_time);
    *info = {.profiling_time = info->profiling_time};
    return DCMI_OK;
  });
}

int dcmi_get_device_info(int card_id, int device_id, enum dcmi_main_cmd command, unsigned sub_cmd,
                         void* buf, unsigned* size) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return mock::GetDeviceInfo(view, chip, command, sub_cmd, buf, size);
  });
}

// vNPUs.

int dcmi_create_vdevice(int card_id, int device_id, struct dcmi_create_vdev_res_stru* vdev,
                        struct dcmi_create_vdev_out* out) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return mock::CreateVnpu(view, chip, vdev, out);
  });
}

int dcmi_set_destroy_vdevice(int card_id, int device_id, unsigned vdev_id) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return mock::DestroyVnpu(view, chip, vdev_id);
  });
}

// Events and resets.

int dcmi_subscribe_fault_event(int card_id, int device_id, struct dcmi_event_filter filter,
                               dcmi_fault_event_callback handler) {
  const auto subscribe = [=](const View& view, const Chip* chip) {
    return mock::SubscribeFaults(view, chip, filter, handler);
  };
  if (card_id == -1 && device_id == -1) {  // every chip
    return Node(__func__, [=](const View& view) { return subscribe(view, nullptr); });
  }
  return OnChip(__func__, card_id, device_id,
                [=](const View& view, const Chip& chip) { return subscribe(view, &chip); });
}

int dcmi_set_device_reset(int card_id, int device_id, enum dcmi_reset_channel channel) {
  return OnChip(__func__, card_id, device_id, [=](const View& view, const Chip& chip) {
    return mock::ResetChip(view, chip, channel);
  });
}

int dcmi_pre_reset_soc(int card_id, int device_id) {
  return OnChip(__func__, card_id, device_id, mock::PrepareReset);
}

int dcmi_set_device_pre_reset(int card_id, int device_id) {
  return OnChip(__func__, card_id, device_id, mock::PrepareReset);
}

int dcmi_rescan_soc(int card_id, int device_id) {
  return OnChip(__func__, card_id, device_id, mock::Rescan);
}

int dcmi_set_device_rescan(int card_id, int device_id) {
  return OnChip(__func__, card_id, device_id, mock::Rescan);
}

// What the mock does not do.

int dcmi_get_fault_event(int card_id, int device_id, int, struct dcmi_event_filter,
                         struct dcmi_event*) {
  return NotYet(__func__, card_id, device_id);
}
int dcmi_set_multi_die_policy(enum dcmi_multi_die_policy) { return NotYet(__func__); }
int dcmi_set_device_share_enable(int card_id, int device_id, int) {
  return NotYet(__func__, card_id, device_id);
}
