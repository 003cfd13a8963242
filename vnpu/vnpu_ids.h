// How vNPUs of a chip are numbered, the same on every product.
#ifndef ASCEND_DRA_VNPU_VNPU_IDS_H_
#define ASCEND_DRA_VNPU_VNPU_IDS_H_

namespace ascend::vnpu {

// Virtual functions of a chip: no product has more vNPUs on one.
inline constexpr int kMaxVnpusPerChip = 16;
// Of a 310P, numbered from 0; other products have none.
inline constexpr int kMaxVGroups = 4;

// The ids of a chip's vNPUs, which are the N of /dev/vdavinciN, begin here and are
// kMaxVnpusPerChip. Uncertain whether every driver lets them be chosen: what it made of the wish is
// in its answer.
constexpr int FirstVnpuId(int physical_id) { return 100 + kMaxVnpusPerChip * physical_id; }

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_VNPU_IDS_H_
