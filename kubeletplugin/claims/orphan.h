// What the driver removes because it belongs to no live claim.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_ORPHAN_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_ORPHAN_H_

namespace ascend::kubeletplugin {

enum class Orphan {
  kCdiFile,    // of a claim without a record, with what else was written for it
  kClaimLock,  // of a claim without a record, after a while
  kClaim,      // a prepared claim that is proved to be dead
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_ORPHAN_H_
