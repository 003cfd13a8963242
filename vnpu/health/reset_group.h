// Which chips go down together when one of them is reset, and how long they take to start again.
//
// From product tables: no call of the library tells it. Where it cannot be told for sure it is the
// larger group, for who is in it must not be in use. Uncertain: that the brother of an A3 module is
// the other one of physical ids 4k to 4k + 3, and that 910A cards without HCCS go down in fours.
#ifndef ASCEND_DRA_VNPU_HEALTH_RESET_GROUP_H_
#define ASCEND_DRA_VNPU_HEALTH_RESET_GROUP_H_

#include <set>

#include "absl/time/time.h"
#include "vnpu/chip.h"

namespace ascend::vnpu {

// Physical ids of the chips that are reset with this one, itself among them; also of places of the
// group at which `inventory` has no chip, for a chip that was lost may be held all the same. Empty
// if the inventory does not have the chip.
//   310P  both chips of a card (Duo)      910A  the ring of four
//   910B  the mesh of eight; all chips of the node if nothing tells the mesh
//   A3    the module and its brother      310, 310B, 950  the chip alone
//   a family that nobody knows: all chips of the node
std::set<int> ResetGroup(const Inventory& inventory, int physical_id);

// For how long a chip may take from its reset until it has started.
absl::Duration BootWait(Family family);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_HEALTH_RESET_GROUP_H_
