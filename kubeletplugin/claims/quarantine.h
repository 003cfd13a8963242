// Chips of claims whose records cannot be read. Nobody else may have them until the record is gone:
// a pod may run on them.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_QUARANTINE_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_QUARANTINE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

struct Quarantine {
  // Physical id -> the record that names it: readable in part, or through the claim's CDI file.
  std::map<int, UnreadableRecord> chips;
  // Records that do not tell their chips. Any chip that no readable record holds may be theirs.
  std::vector<UnreadableRecord> unknown;

  bool empty() const { return chips.empty() && unknown.empty(); }
  // The record because of which this chip is withheld from other claims than `claim_uid`; null if
  // it is not. `held` = a readable record holds the chip.
  const UnreadableRecord* Find(int physical_id, const std::string& claim_uid, bool held) const;
};

// The chips that this record names, or the claim's CDI file; empty if they cannot be told.
std::set<int> ChipsOf(const UnreadableRecord& record, const Paths& paths);

// Reads CDI files. Records that could not be read for another reason than their content (a full
// table of open files, say) are treated alike: nothing is known of them at this moment.
Quarantine FindQuarantine(const std::vector<UnreadableRecord>& unreadable, const Paths& paths);

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_QUARANTINE_H_
