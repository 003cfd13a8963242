// The directory of claim records. The disk is the truth: another instance of the plugin may write
// and remove records at any time, so every call looks there; what is read again is only what is
// not the very file that this store read or wrote last. Thread-safe.
#ifndef ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RECORD_STORE_H_
#define ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RECORD_STORE_H_

#include <sys/stat.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/core/mutex.h"
#include "kubeletplugin/claims/record.h"

namespace ascend::kubeletplugin {

// A record that cannot be read. Its bytes stay where they are.
struct UnreadableRecord {
  std::string claim_uid;  // the file's name
  absl::Status error;
  std::vector<std::string> devices;  // as far as it can still be told from it
};

class RecordStore {
 public:
  struct Contents {
    std::vector<std::shared_ptr<const ClaimRecord>> records;  // by claim UID
    std::vector<UnreadableRecord> unreadable;
  };

  // A temporary that is older than any write takes belongs to nobody any more.
  static constexpr absl::Duration kStaleTempFileAge = absl::Minutes(10);

  explicit RecordStore(std::string directory);

  // Creates the directory (0700), removes temporaries of a writer that crashed, and makes durable
  // what it left.
  absl::Status Prepare();

  // kNotFound if the claim has no record; kDataLoss if it is damaged, kUnimplemented if it is of a
  // newer format; another code if it could not be looked at this time. As cheap as Contains() for
  // what this store wrote itself.
  absl::StatusOr<std::shared_ptr<const ClaimRecord>> Read(const std::string& claim_uid);

  // Whether the claim has a record, readable or not.
  absl::StatusOr<bool> Contains(const std::string& claim_uid) const;

  // All records. Files that did not change since the last call are not read again.
  absl::StatusOr<Contents> ReadAll();

  // Durable when it returns. A failure leaves the old record, none, or the new one that a power cut
  // may still take back: Sync() before it is relied on.
  absl::Status Write(const ClaimRecord& record);

  // Durable when it returns; a claim without a record is a success.
  absl::Status Remove(const std::string& claim_uid);

  // Makes durable what failed Write() and Remove() calls of this process left; returns at once if
  // none failed.
  absl::Status Sync();

  // Told of every Write() and Remove() that reached the disk, or failed to. Set before the first.
  using WriteObserver = std::function<void(const absl::Status& status, absl::Duration duration)>;
  void SetWriteObserver(WriteObserver observer) { observe_ = std::move(observer); }

  const std::string& directory() const { return directory_; }

 private:
  // What tells one version of a file from the next: a record is only ever replaced by rename.
  struct FileIdentity {
    static FileIdentity Of(const struct stat& info);
    uint64_t inode = 0;
    int64_t size = 0;
    int64_t mtime_ns = 0;
    int64_t ctime_ns = 0;
    friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
  };
  struct Cached {
    FileIdentity identity;
    absl::StatusOr<std::shared_ptr<const ClaimRecord>> record;
    std::vector<std::string> salvaged_devices;  // of an unreadable one
  };

  // What was remembered of the file of this identity; null if nothing, or of another one.
  const Cached* FindCached(const std::string& claim_uid, const struct stat& info) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const std::string& claim_uid);
  absl::StatusOr<std::shared_ptr<const ClaimRecord>> ReadLocked(int dir_fd,
                                                                const std::string& claim_uid)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status SyncOpenDirectory(int dir_fd) const;
  absl::Status Observed(const std::function<absl::Status()>& write);

  const std::string directory_;
  WriteObserver observe_;
  Mutex sync_mutex_;
  bool unsynced_ ABSL_GUARDED_BY(sync_mutex_) = false;
  Mutex mutex_;
  std::map<std::string, Cached> cache_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_CLAIMS_RECORD_STORE_H_
