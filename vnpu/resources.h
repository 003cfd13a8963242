// What a chip is divided by: the resources that partition templates take and chips have.
#ifndef ASCEND_DRA_VNPU_RESOURCES_H_
#define ASCEND_DRA_VNPU_RESOURCES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace ascend::vnpu {

// kMemory counts MiB, all others units. pngd is in no table of budgets and limits nothing.
enum class Resource { kAicore, kAicpu, kMemory, kVpc, kVenc, kVdec, kJpegd, kJpege };
inline constexpr std::array kResources = {Resource::kAicore, Resource::kAicpu, Resource::kMemory,
                                          Resource::kVpc,    Resource::kVenc,  Resource::kVdec,
                                          Resource::kJpegd,  Resource::kJpege};
// "aicore", "aicpu", "memory", "vpc", ...: names of counters, capacities and catalog keys.
absl::string_view ResourceName(Resource resource);

// One number per resource; zero where nothing is said.
struct Amounts {
  std::array<int64_t, kResources.size()> values{};

  int64_t& operator[](Resource resource) { return values[static_cast<size_t>(resource)]; }
  int64_t operator[](Resource resource) const { return values[static_cast<size_t>(resource)]; }
  friend bool operator==(const Amounts&, const Amounts&) = default;
};

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_RESOURCES_H_
