#include "vnpu/chip.h"

#include <utility>

namespace ascend::vnpu {
namespace {

template <typename Enum>
using Names = std::pair<Enum, absl::string_view>;

constexpr Names<Family> kFamilies[] = {{Family::kUnknown, "unknown"}, {Family::k310, "310"},
                                       {Family::k310B, "310B"},       {Family::k310P, "310P"},
                                       {Family::k910A, "910A"},       {Family::k910B, "910B"},
                                       {Family::kA3, "A3"},           {Family::k950, "950"}};

constexpr Names<Health> kHealths[] = {{Health::kUnknown, "unknown"},   {Health::kOk, "ok"},
                                      {Health::kMinor, "minor"},       {Health::kMajor, "major"},
                                      {Health::kCritical, "critical"}, {Health::kAbsent, "absent"}};

constexpr Names<FaultSeverity> kFaultSeverities[] = {{FaultSeverity::kUnknown, "unknown"},
                                                     {FaultSeverity::kWarning, "warning"},
                                                     {FaultSeverity::kMinor, "minor"},
                                                     {FaultSeverity::kMajor, "major"},
                                                     {FaultSeverity::kCritical, "critical"}};

constexpr Names<NetworkHealth> kNetworkHealths[] = {{NetworkHealth::kUnknown, "unknown"},
                                                    {NetworkHealth::kOk, "ok"},
                                                    {NetworkHealth::kDown, "down"}};

constexpr Names<LibraryState> kLibraryStates[] = {{LibraryState::kMissing, "missing"},
                                                  {LibraryState::kStarting, "starting"},
                                                  {LibraryState::kReady, "ready"},
                                                  {LibraryState::kNotResponding, "not-responding"},
                                                  {LibraryState::kFailed, "failed"}};

template <typename Enum, size_t kSize>
absl::string_view NameOf(const Names<Enum> (&names)[kSize], Enum value, Enum fallback) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return NameOf(names, fallback, fallback);
}

template <typename Enum, size_t kSize>
Enum ValueOf(const Names<Enum> (&names)[kSize], absl::string_view name, Enum fallback) {
  for (const auto& [value, candidate] : names) {
    if (candidate == name) return value;
  }
  return fallback;
}

}  // namespace

absl::string_view FamilyName(Family family) { return NameOf(kFamilies, family, Family::kUnknown); }
Family FamilyFromName(absl::string_view name) { return ValueOf(kFamilies, name, Family::kUnknown); }

absl::string_view HealthName(Health health) { return NameOf(kHealths, health, Health::kUnknown); }
Health HealthFromName(absl::string_view name) { return ValueOf(kHealths, name, Health::kUnknown); }

absl::string_view FaultSeverityName(FaultSeverity severity) {
  return NameOf(kFaultSeverities, severity, FaultSeverity::kUnknown);
}
FaultSeverity FaultSeverityFromName(absl::string_view name) {
  return ValueOf(kFaultSeverities, name, FaultSeverity::kUnknown);
}

absl::string_view NetworkHealthName(NetworkHealth health) {
  return NameOf(kNetworkHealths, health, NetworkHealth::kUnknown);
}
NetworkHealth NetworkHealthFromName(absl::string_view name) {
  return ValueOf(kNetworkHealths, name, NetworkHealth::kUnknown);
}

absl::string_view LibraryStateName(LibraryState state) {
  return NameOf(kLibraryStates, state, LibraryState::kFailed);
}
LibraryState LibraryStateFromName(absl::string_view name) {
  return ValueOf(kLibraryStates, name, LibraryState::kFailed);
}

absl::string_view VdeviceModeName(VdeviceMode mode) {
  switch (mode) {
    case VdeviceMode::kContainer:
      return "container";
    case VdeviceMode::kVm:
      return "vm";
    case VdeviceMode::kUnknown:
      break;
  }
  return "";
}

VdeviceMode VdeviceModeFromName(absl::string_view name) {
  for (const VdeviceMode mode : {VdeviceMode::kContainer, VdeviceMode::kVm}) {
    if (name == VdeviceModeName(mode)) return mode;
  }
  return VdeviceMode::kUnknown;
}

}  // namespace ascend::vnpu
