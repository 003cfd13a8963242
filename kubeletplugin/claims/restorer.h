// Brings the directories in line with the claim records: sweeps what belongs to no claim, makes
// missing CDI files anew, and carries on with claims that ended while something of them stayed.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RESTORER_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RESTORER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/directory_watch.h"
#include "base/core/mutex.h"
#include "cdi/store.h"
#include "kubeletplugin/claims/claim_files.h"
#include "kubeletplugin/claims/inventory_source.h"
#include "kubeletplugin/claims/orphan.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

class ClaimRestorer {
 public:
  struct Options {
    std::string boot_id;
    absl::Duration lock_wait;                    // for a claim that is busy, at the start
    absl::Duration restore_retry;                // until what failed is tried again
    std::function<void(Orphan)> orphan_removed;  // null = nobody
    // Carries on with a claim whose record is Released; whether nothing is left of it.
    std::function<bool(const ClaimRecord&)> reap;
  };

  // References must outlive it.
  ClaimRestorer(Options options, const Paths& paths, RecordStore& records, cdi::Store& cdi_store,
                const ClaimFiles& files, InventorySource inventory);
  ~ClaimRestorer();

  // Sweeps, makes the CDI files of all records anew, and from then on, on a thread of its own,
  // restores whichever goes missing. What fails is logged and tried again. Once.
  void Start(const RecordStore::Contents& contents);
  // There may be something to do: look soon.
  void Wake();
  // Begins nothing new.
  void Stop();
  // After Stop(): waits for what is under way.
  void Join();

 private:
  enum class Restore { kAll, kMissing };

  // Removes CDI files and metadata of claims without a record. Whether none is left.
  bool SweepOrphans(const RecordStore::Contents& contents);
  void SweepStaleClaimLocks();
  // Whether every prepared claim has its CDI file now.
  bool RestoreCdiFiles(Restore which);
  // Whether it was written; false if the claim was unprepared meanwhile.
  absl::StatusOr<bool> RestoreCdiFile(const ClaimRecord& listed, Restore which);
  // Whether nothing is left of any.
  bool ReapReleased();
  void Run(bool swept, bool restored);

  const Options options_;
  const Paths& paths_;
  RecordStore& records_;
  cdi::Store& cdi_store_;
  const ClaimFiles& files_;
  const InventorySource inventory_;

  Mutex mutex_;
  CondVar wanted_;
  bool look_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  // Only touched by Start() and then by thread_. By claim UID; keeps the log quiet about what is
  // known already.
  std::map<std::string, absl::Status> failures_;
  bool released_left_ = false;  // at the last look at the records
  std::thread thread_;
  std::unique_ptr<DirectoryWatch> cdi_watch_;
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RESTORER_H_
