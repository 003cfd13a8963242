// The answers about one chip that both generations give, under either one's name.
//
// Each fills its output and returns a code of abi.h: -8001 for a null pointer, -8255 where the
// product does not have the reading. The product rules follow the DCMI documentation and what its
// public users found out.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_GETTERS_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_GETTERS_H_

#include <cstring>

#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/runtime.h"

namespace ascend::dcmi::mock {

int CopyText(const std::string& text, char* buffer, size_t size);

int GetChipInfo(const Chip& chip, dcmi_chip_info_v2* info);
int GetPcieInfo(const Chip& chip, dcmi_pcie_info_all* info);
int GetBoardInfo(const Chip& chip, dcmi_board_info* info);
int GetElabel(const Chip& chip, dcmi_elabel_info* info);
int GetDie(const Chip& chip, dcmi_die_type type, dcmi_die_id* die);
int GetPower(const View& view, const Chip& chip, int* deciwatt);
int GetHbm(const View& view, const Chip& chip, dcmi_hbm_info* info);
int GetUtilization(const Chip& chip, int type, unsigned* percent);
int GetTopology(const View& view, const Chip& one, const Chip& other, int* type);
int GetDeviceInfo(const View& view, const Chip& chip, dcmi_main_cmd command, unsigned sub_command,
                  void* buffer, unsigned* size);

// Copies a structure into a caller's buffer of *size bytes, as dcmi_get_device_info does.
template <typename T>
int CopyStructure(const T& value, void* buffer, unsigned* size) {
  if (*size < sizeof(value)) return DCMI_INVALID_PARAMETER;
  std::memcpy(buffer, &value, sizeof(value));
  *size = sizeof(value);
  return DCMI_OK;
}

// *out = value, or -8001 if `out` is null.
template <typename T, typename Value>
int Give(T* out, const Value& value) {
  if (out == nullptr) return DCMI_INVALID_PARAMETER;
  *out = static_cast<T>(value);
  return DCMI_OK;
}

// The same for a reading that a node may not describe.
template <typename T, typename Value>
int GiveIfKnown(T* out, const std::optional<Value>& value) {
  if (out == nullptr) return DCMI_INVALID_PARAMETER;
  if (!value.has_value()) return DCMI_NOT_SUPPORT;
  *out = static_cast<T>(*value);
  return DCMI_OK;
}

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_GETTERS_H_
