// A claim as kubelet names it to a driver.
#ifndef ASCEND_DRA_TEST_SIM_CLAIM_REF_H_
#define ASCEND_DRA_TEST_SIM_CLAIM_REF_H_

#include <string>
#include <vector>

namespace ascend::sim {

struct ClaimRef {
  std::string namespace_name = "default";
  std::string name;
  std::string uid;
  std::vector<std::string> devices;  // what AllocateClaim chose, in the order of the results
};

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_CLAIM_REF_H_
