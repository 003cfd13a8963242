// A ResourceSlice that the API accepts, to start from.
#ifndef ASCEND_DRA_TEST_SIM_TEST_SLICES_H_
#define ASCEND_DRA_TEST_SIM_TEST_SLICES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace ascend::sim {

inline nlohmann::json MakeSlice(int devices, const std::string& name = "slice-1",
                                const std::string& node = "node-1") {
  nlohmann::json list = nlohmann::json::array();
  for (int i = 0; i < devices; ++i) list.push_back({{"name", absl::StrCat("npu-", i)}});
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"driver", "npu.huawei.com"},
            {"nodeName", node},
            {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
            {"devices", list}}}};
}

inline nlohmann::json MakeTaint(const std::string& effect) {
  return {{"key", "npu.huawei.com/unhealthy"}, {"value", "critical"}, {"effect", effect}};
}

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_TEST_SLICES_H_
