#include "vnpu/dcmi/mock/getters.h"

#include <algorithm>
#include <cstring>

#include "vnpu/dcmi/mock/vnpu_calls.h"

namespace ascend::dcmi::mock {
namespace {

template <typename Char, size_t kSize>
void CopyField(const std::string& text, Char (&field)[kSize]) {
  const size_t length = std::min(text.size(), kSize - 1);
  std::memset(field, 0, kSize);
  std::memcpy(field, text.data(), length);
}

}  // namespace

int CopyText(const std::string& text, char* buffer, size_t size) {
  if (buffer == nullptr || size <= text.size()) return DCMI_INVALID_PARAMETER;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return DCMI_OK;
}

int GetChipInfo(const Chip& chip, dcmi_chip_info_v2* info) {
  if (info == nullptr) return DCMI_INVALID_PARAMETER;
  CopyField(chip.chip_type, info->chip_type);
  CopyField(chip.chip_name, info->chip_name);
  CopyField(chip.chip_version, info->chip_ver);
  CopyField(chip.npu_name, info->npu_name);
  info->aicore_cnt = chip.aicore_count;
  return DCMI_OK;
}

int GetPcieInfo(const Chip& chip, dcmi_pcie_info_all* info) {
  if (info == nullptr) return DCMI_INVALID_PARAMETER;
  *info = {.venderid = chip.pci.vendor_id,
           .subvenderid = chip.pci.subsystem_vendor_id,
           .deviceid = chip.pci.device_id,
           .subdeviceid = chip.pci.subsystem_device_id,
           .domain = static_cast<int>(chip.pci.domain),
           .bdf_busid = chip.pci.bus,
           .bdf_deviceid = chip.pci.device,
           .bdf_funcid = chip.pci.function};
  return DCMI_OK;
}

int GetBoardInfo(const Chip& chip, dcmi_board_info* info) {
  if (info == nullptr) return DCMI_INVALID_PARAMETER;
  *info = {chip.board_id, chip.pcb_id, chip.bom_id, chip.slot_id};
  return DCMI_OK;
}

int GetElabel(const Chip& chip, dcmi_elabel_info* info) {
  if (info == nullptr) return DCMI_INVALID_PARAMETER;
  *info = {};
  CopyField(chip.product_name, info->product_name);
  CopyField(chip.product_type, info->model);
  CopyField("Huawei", info->manufacturer);
  CopyField(chip.serial, info->serial_number);
  return DCMI_OK;
}

int GetDie(const Chip& chip, dcmi_die_type type, dcmi_die_id* die) {
  if (die == nullptr) return DCMI_INVALID_PARAMETER;
  const DieId* id = nullptr;
  if (type == DCMI_DIE_NDIE) id = &chip.ndie;
  if (type == DCMI_DIE_VDIE) id = &chip.vdie;
  if (type == DCMI_DIE_DDIE) id = &chip.ddie;
  if (id == nullptr) return DCMI_INVALID_PARAMETER;
  std::copy(id->begin(), id->end(), die->soc_die);
  return DCMI_OK;
}

int GetPower(const View& view, const Chip& chip, int* deciwatt) {
  if (deciwatt == nullptr) return DCMI_INVALID_PARAMETER;
  // 310P cards measure power in their management unit only; of an A3 module, die 0 tells.
  if (view.node.family == Family::k310P) return DCMI_NOT_SUPPORT;
  if (view.node.family == Family::kA3 && chip.device != 0) return DCMI_NOT_SUPPORT;
  return GiveIfKnown(deciwatt, chip.power_deciwatt);
}

int GetHbm(const View& view, const Chip& chip, dcmi_hbm_info* info) {
  if (info == nullptr) return DCMI_INVALID_PARAMETER;
  if (!view.node.HasHbm() || !chip.memory.hbm) return DCMI_NOT_SUPPORT;
  *info = {.memory_size = chip.memory.total_mib,
           .freq = chip.memory.frequency_mhz,
           .memory_usage = chip.memory.used_mib,
           .temp = chip.memory.temperature,
           .bandwith_util_rate = chip.memory.bandwidth_percent};
  return DCMI_OK;
}

int GetUtilization(const Chip& chip, int type, unsigned* percent) {
  if (percent == nullptr) return DCMI_INVALID_PARAMETER;
  const auto found = chip.utilization.find(type);
  if (found == chip.utilization.end()) return DCMI_NOT_SUPPORT;
  *percent = found->second;
  return DCMI_OK;
}

int GetTopology(const View& view, const Chip& one, const Chip& other, int* type) {
  if (type == nullptr) return DCMI_INVALID_PARAMETER;
  const bool a3 = view.node.family == Family::kA3;
  if (view.node.family != Family::k910B && !a3) return DCMI_NOT_SUPPORT;
  if (!one.physical_id.has_value() || !other.physical_id.has_value()) return DCMI_INNER_ERR;
  if (&one == &other) {
    *type = DCMI_TOPO_SELF;
  } else if (a3) {
    *type = *one.physical_id / 2 == *other.physical_id / 2 ? DCMI_TOPO_SIO : DCMI_TOPO_HCCS_SW;
  } else {
    *type = *one.physical_id / 8 == *other.physical_id / 8 ? DCMI_TOPO_HCCS : DCMI_TOPO_SYS;
  }
  return DCMI_OK;
}

int GetDeviceInfo(const View& view, const Chip& chip, dcmi_main_cmd command, unsigned sub_command,
                  void* buffer, unsigned* size) {
  if (buffer == nullptr || size == nullptr) return DCMI_INVALID_PARAMETER;
  const bool a3 = view.node.family == Family::kA3;
  if (command == DCMI_CMD_CHIP_INF && sub_command == DCMI_SUB_CHIP_SPOD) {
    if (!chip.super_pod.has_value()) return DCMI_NOT_SUPPORT;
    const SuperPod& pod = *chip.super_pod;
    return CopyStructure(dcmi_spod_info{.sdid = pod.sdid,
                                        .super_pod_size = pod.size,
                                        .super_pod_id = pod.id,
                                        .server_index = pod.server_index,
                                        .chassis_id = pod.chassis_id,
                                        .super_pod_type = pod.type},
                         buffer, size);
  }
  if (command == DCMI_CMD_VDEV_MNG) return GetVnpuInfo(view, chip, sub_command, buffer, size);
  // Link counters stand at zero: the mock has no traffic.
  if (command == DCMI_CMD_HCCS && (a3 || view.node.family == Family::k910B)) {
    if (sub_command == DCMI_SUB_HCCS_STATISTIC) {
      return CopyStructure(dcmi_hccs_statistic_info{}, buffer, size);
    }
    if (sub_command == DCMI_SUB_HCCS_STATISTIC_U64) {
      return CopyStructure(dcmi_hccs_statistic_info_u64{}, buffer, size);
    }
  }
  if (command == DCMI_CMD_SIO && sub_command == DCMI_SUB_SIO_CRC && a3) {
    return CopyStructure(dcmi_sio_crc_err_statistics_info{}, buffer, size);
  }
  return DCMI_NOT_SUPPORT;
}

}  // namespace ascend::dcmi::mock
