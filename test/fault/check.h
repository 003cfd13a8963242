// What must hold on a node after a plugin died there, was denied a system call, or lost its power.
#ifndef ASCEND_DRA_TEST_FAULT_CHECK_H_
#define ASCEND_DRA_TEST_FAULT_CHECK_H_

#include <map>
#include <string>

#include "test/fault/answers.h"
#include "test/fault/claims_node.h"

namespace ascend::fault {

// Starts over what is there, prepares and unprepares every claim, and says every invariant that is
// broken (answers.h). False if any is. Afterwards no claim is left.
bool CheckRemains(ClaimsNode& node, const std::map<std::string, Expected>& expected);

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_CHECK_H_
