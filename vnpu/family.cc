#include "vnpu/family.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ascend::vnpu {
namespace {

constexpr std::array<uint32_t, 9> kA3Boards = {0xb0, 0xb1, 0xb2, 0xb3, 0xb4,
                                               0x81, 0x83, 0xd1, 0xd3};
// A300I Duo A2 cards and the 800I A2 64G without HCCS.
constexpr std::array<uint32_t, 3> k910BBoardsWithoutHccs = {0x28, 0x29, 0x37};

template <size_t kSize>
bool Contains(const std::array<uint32_t, kSize>& boards, uint32_t board) {
  return std::find(boards.begin(), boards.end(), board) != boards.end();
}

// `name` begins with `prefix` and a digit: "910B3", "A2G1".
bool PrefixAndDigit(absl::string_view name, absl::string_view prefix) {
  return absl::StartsWith(name, prefix) && name.size() > prefix.size() &&
         absl::ascii_isdigit(static_cast<unsigned char>(name[prefix.size()]));
}

}  // namespace

Family DetectFamily(absl::string_view chip_name, uint32_t board_id) {
  if (Contains(kA3Boards, board_id)) return Family::kA3;
  if (absl::StartsWith(chip_name, "Ascend950")) return Family::k950;
  // Only A3 prints this name; it decides where the board did not answer or is a new one.
  if (chip_name == "Ascend910") return Family::kA3;
  if (absl::StartsWith(chip_name, "310P") || absl::StartsWith(chip_name, "I2")) {
    return Family::k310P;
  }
  if (absl::StrContains(chip_name, "310B")) return Family::k310B;
  if (absl::StrContains(chip_name, "310")) return Family::k310;
  if (PrefixAndDigit(chip_name, "910B") || PrefixAndDigit(chip_name, "A2G")) return Family::k910B;
  if (absl::StartsWith(chip_name, "910")) return Family::k910A;
  return Family::kUnknown;
}

std::string ModelName(absl::string_view chip_name, absl::string_view npu_name) {
  if (npu_name.empty() || npu_name == chip_name || chip_name.empty()) {
    return std::string(chip_name);
  }
  return absl::StrCat(chip_name, "_", npu_name);
}

int NodeNumber(Family family, int physical_id, int logic_id) {
  return family == Family::k950 ? logic_id : physical_id;
}

bool HasHbm(Family family) {
  return family == Family::k910A || family == Family::k910B || family == Family::kA3 ||
         family == Family::k950;
}

int64_t NominalMemoryMib(Family family, int64_t reported_mib) {
  if (family == Family::k310P) {
    // The driver keeps about an eighth of the memory for itself.
    for (const int64_t size : {24576, 49152}) {
      if (reported_mib <= size && reported_mib >= size * 3 / 4) return size;
    }
  }
  return reported_mib;
}

std::string HccsGroup(Family family, uint32_t board_id, int physical_id) {
  switch (family) {
    case Family::k910A:
      return absl::StrCat("hccs-", physical_id / 4);
    case Family::k910B:
      if (Contains(k910BBoardsWithoutHccs, board_id)) return "";
      return absl::StrCat("hccs-", physical_id / 8);
    case Family::kA3:
      return "hccs-0";
    default:
      return "";
  }
}

}  // namespace ascend::vnpu
