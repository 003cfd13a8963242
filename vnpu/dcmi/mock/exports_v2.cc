// Generation 2 (950): chips by one id, which the mock takes to be the logic id. And the names whose
// prototypes nobody published.
#include <algorithm>

#include "vnpu/dcmi/mock/exports.h"
#include "vnpu/dcmi/mock/fault_calls.h"
#include "vnpu/dcmi/mock/fault_events.h"
#include "vnpu/dcmi/mock/getters.h"

namespace mock = ascend::dcmi::mock;
using mock::Chip;
using mock::Give;
using mock::GiveIfKnown;
using mock::Phase;
using mock::View;

namespace {

template <typename Work>
int OnChip(const char* function, int dev, Work work) {
  return mock::RunChip(
      function, 2, [=](const View& view) { return view.ByLogicId(static_cast<unsigned>(dev)); },
      work);
}

int NotYet(const char* function, int dev) {
  return OnChip(function, dev, [](const View&, const Chip&) -> int { return DCMI_NOT_SUPPORT; });
}

}  // namespace

int dcmiv2_init(void) {
  return mock::RunNode(__func__, 2, Phase::kInit, [](const View&) -> int {
    mock::MarkInitialised(2);
    return DCMI_OK;
  });
}

int dcmiv2_get_device_list(int* device_list, int* device_cnt, int list_len) {
  return mock::RunNode(__func__, 2, Phase::kReady, [=](const View& view) -> int {
    if (device_list == nullptr || device_cnt == nullptr || list_len < 0 ||
        static_cast<size_t>(list_len) < view.visible.size()) {
      return DCMI_INVALID_PARAMETER;
    }
    for (size_t i = 0; i < view.visible.size(); ++i) device_list[i] = static_cast<int>(i);
    *device_cnt = static_cast<int>(view.visible.size());
    return DCMI_OK;
  });
}

int dcmiv2_get_all_device_count(int* count) {
  return mock::RunNode(__func__, 2, Phase::kReady,
                       [=](const View& view) { return Give(count, view.visible.size()); });
}

int dcmiv2_get_chip_phy_id_by_dev_id(int dev, unsigned* phy) {
  return OnChip(__func__, dev, [=](const View&, const Chip& chip) -> int {
    if (!chip.physical_id.has_value()) return DCMI_INNER_ERR;
    return Give(phy, *chip.physical_id);
  });
}

int dcmiv2_get_dev_id_by_chip_phy_id(int phy, unsigned* dev) {
  return mock::RunChip(
      __func__, 2, [=](const View& view) { return view.ByPhysicalId(static_cast<unsigned>(phy)); },
      [=](const View& view, const Chip& chip) { return Give(dev, view.LogicId(chip)); });
}

int dcmiv2_get_device_type(int dev, enum dcmi_unit_type* type) {
  return OnChip(__func__, dev, [=](const View&, const Chip&) { return Give(type, DCMI_UNIT_NPU); });
}

int dcmiv2_get_device_chip_info(int dev, struct dcmi_chip_info_v2* info) {
  return OnChip(__func__, dev,
                [=](const View&, const Chip& chip) { return mock::GetChipInfo(chip, info); });
}

int dcmiv2_get_device_pcie_info(int dev, struct dcmi_pcie_info_all* info) {
  return OnChip(__func__, dev,
                [=](const View&, const Chip& chip) { return mock::GetPcieInfo(chip, info); });
}

int dcmiv2_get_device_board_info(int dev, struct dcmi_board_info* info) {
  return OnChip(__func__, dev,
                [=](const View&, const Chip& chip) { return mock::GetBoardInfo(chip, info); });
}

int dcmiv2_get_mainboard_id(int dev, unsigned* id) {
  return OnChip(__func__, dev,
                [=](const View&, const Chip& chip) { return Give(id, chip.mainboard_id); });
}

int dcmiv2_get_device_elabel_info(int dev, struct dcmi_elabel_info* info) {
  return OnChip(__func__, dev,
                [=](const View&, const Chip& chip) { return mock::GetElabel(chip, info); });
}

int dcmiv2_get_device_die_id(int dev, enum dcmi_die_type type, struct dcmi_die_id* die) {
  return OnChip(__func__, dev,
                [=](const View&, const Chip& chip) { return mock::GetDie(chip, type, die); });
}

int dcmiv2_get_topo_info_by_device_id(int dev1, int dev2, int* topo_type) {
  return OnChip(__func__, dev1, [=](const View& view, const Chip& one) -> int {
    const Chip* const other = view.ByLogicId(static_cast<unsigned>(dev2));
    if (other == nullptr) return DCMI_DEVICE_NOT_EXIST;
    return mock::GetTopology(view, one, *other, topo_type);
  });
}

int dcmiv2_get_device_health(int dev, unsigned* health) {
  return OnChip(__func__, dev, [=](const View& view, const Chip& chip) {
    return mock::GetHealth(view, chip, health);
  });
}

int dcmiv2_get_device_error_code_list(int dev, int* count, unsigned* list, unsigned list_len) {
  return OnChip(__func__, dev, [=](const View& view, const Chip& chip) {
    return mock::GetErrorCodes(view, chip, count, list, list_len);
  });
}

int dcmiv2_get_device_power_info(int dev, int* deciwatt) {
  return OnChip(__func__, dev, [=](const View& view, const Chip& chip) {
    return mock::GetPower(view, chip, deciwatt);
  });
}

int dcmiv2_get_device_temperature(int dev, int* celsius) {
  return OnChip(__func__, dev, [=](const View&, const Chip& chip) {
    return GiveIfKnown(celsius, chip.temperature);
  });
}

int dcmiv2_get_device_hbm_info(int dev, struct dcmi_hbm_info* info) {
  return OnChip(__func__, dev,
                [=](const View& view, const Chip& chip) { return mock::GetHbm(view, chip, info); });
}

int dcmiv2_get_device_utilization_rate(int dev, int type, unsigned* percent) {
  return OnChip(__func__, dev, [=](const View&, const Chip& chip) {
    return mock::GetUtilization(chip, type, percent);
  });
}

int dcmiv2_get_device_boot_status(int dev, enum dcmi_boot_status* status) {
  return OnChip(__func__, dev, [=](const View& view, const Chip& chip) {
    return mock::GetBootStatus(view, chip, status);
  });
}

int dcmiv2_get_device_info(int dev, enum dcmi_main_cmd command, unsigned sub_cmd, void* buf,
                           unsigned* size) {
  return OnChip(__func__, dev, [=](const View& view, const Chip& chip) {
    return mock::GetDeviceInfo(view, chip, command, sub_cmd, buf, size);
  });
}

// Events and resets.

int dcmiv2_subscribe_fault_event(int dev, struct dcmi_event_filter filter,
                                 dcmi_fault_event_callback handler) {
  const auto subscribe = [=](const View& view, const Chip* chip) {
    return mock::SubscribeFaults(view, chip, filter, handler);
  };
  if (dev == -1) {  // every chip
    return mock::RunNode(__func__, 2, Phase::kReady,
                         [=](const View& view) { return subscribe(view, nullptr); });
  }
  return OnChip(__func__, dev,
                [=](const View& view, const Chip& chip) { return subscribe(view, &chip); });
}

int dcmiv2_pre_reset_device(int dev) { return OnChip(__func__, dev, mock::PrepareReset); }
int dcmiv2_rescan_device(int dev) { return OnChip(__func__, dev, mock::Rescan); }

int dcmiv2_reset_device(int dev, enum dcmi_reset_channel channel) {
  return OnChip(__func__, dev, [=](const View& view, const Chip& chip) {
    return mock::ResetChip(view, chip, channel);
  });
}

// What the mock does not do.

int dcmiv2_get_device_component_list(int dev, enum dcmi_component_type*, unsigned) {
  return NotYet(__func__, dev);
}

#define ASCEND_MOCK_UNTYPED(name)                                              \
  int name(void) {                                                             \
    return mock::RunNode(__func__, __func__[4] == 'v' ? 2 : 1, Phase::kReady,  \
                         [](const View&) -> int { return DCMI_NOT_SUPPORT; }); \
  }
ASCEND_DCMI_UNTYPED_FUNCTIONS(ASCEND_MOCK_UNTYPED)
#undef ASCEND_MOCK_UNTYPED
