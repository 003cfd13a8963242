// Which product a chip is, and what only the product tells: names, sizes, topology tables.
//
// Sources: the family rules and board ids of MindCluster's device plugin and of the public driver
// sources; topology from Huawei's product documents. Board ids overlap between families (0x28 and
// 0x29 are boards of A2 and of 950), so the family comes first and the board second.
#ifndef ASCEND_DRA_VNPU_FAMILY_H_
#define ASCEND_DRA_VNPU_FAMILY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "vnpu/chip.h"

namespace ascend::vnpu {

// `chip_name` as the library prints it. kUnknown if no rule applies.
Family DetectFamily(absl::string_view chip_name, uint32_t board_id);

// "910B3"; on products that split the name: "Ascend910" and "9392" give "Ascend910_9392".
std::string ModelName(absl::string_view chip_name, absl::string_view npu_name);

// The N of /dev/davinciN.
int NodeNumber(Family family, int physical_id, int logic_id);

// On-chip memory is HBM, not DDR.
bool HasHbm(Family family);

// The size a product is sold with. 310P reports what is left beside the driver (21527 of 24576 MB);
// every other product reports its nominal size.
int64_t NominalMemoryMib(Family family, int64_t reported_mib);

// Chips with the same non-empty answer are fully connected by HCCS. From tables, because the
// library answers topology queries on 910B and A3 only: 910A two rings of 4; 910B a mesh of 8, two
// of them in a box of 16, none on boards without HCCS; A3 all dies of the node. Uncertain: 910A
// cards (not modules) have no HCCS and cannot be told apart here.
std::string HccsGroup(Family family, uint32_t board_id, int physical_id);

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_FAMILY_H_
