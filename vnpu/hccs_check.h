// Whether the library contradicts the groups that come from tables (HccsGroup() of family.h).
#ifndef ASCEND_DRA_VNPU_HCCS_CHECK_H_
#define ASCEND_DRA_VNPU_HCCS_CHECK_H_

#include <string>

#include "vnpu/chip.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::vnpu {

// Asks how neighbours in a group are joined, and the first chips of two groups. The first pair that
// does not fit, in words; empty if there is none, or if the library does not tell. May hang where a
// chip has dropped.
std::string HccsContradiction(dcmi::Dcmi& dcmi, const Inventory& inventory);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_HCCS_CHECK_H_
