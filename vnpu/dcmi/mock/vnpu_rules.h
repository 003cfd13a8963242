// By which rules the hardware makes vNPUs: what fits beside what, and under which id. Free of
// files and locks; vnpu_state.h keeps what was made.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_RULES_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_RULES_H_

#include <optional>
#include <string>
#include <vector>

#include "vnpu/dcmi/mock/node.h"

namespace ascend::dcmi::mock {

class Object;  // json_object.h

struct Vnpu {
  int id = 0;
  int physical_id = 0;  // of its chip
  std::string template_name;
  int vgroup = -1;  // -1 = none
  unsigned status = 0;
  bool container_used = false;
  bool busy = false;  // cannot be destroyed
};

struct VnpuWish {
  std::string template_name;
  std::optional<int> id, vgroup;
};

// The object "vnpu" of node.json. Throws std::runtime_error.
VnpuRules ParseVnpuRules(Object& object);

// The ids that the chip's vNPUs can have begin here.
int FirstVnpuId(int physical_id);

// What the vNPU will be that `wish` asks for on a chip with `existing` ones (those of other chips
// do not count). Returns a code of abi.h; *made only counts with 0.
int PlanVnpu(const VnpuRules& rules, int physical_id, const std::vector<Vnpu>& existing,
             const VnpuWish& wish, Vnpu* made);

// What a chip has altogether: the budget, and zero for what it does not name.
VnpuAmounts BudgetAmounts(const VnpuRules& rules);
// What the vNPUs of a chip have taken of it. A template that the rules no longer know takes
// nothing.
VnpuAmounts UsedAmounts(const VnpuRules& rules, int physical_id, const std::vector<Vnpu>& existing);
// One bit for each vGroup in use.
unsigned VGroupBitmap(int physical_id, const std::vector<Vnpu>& existing);

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_VNPU_RULES_H_
