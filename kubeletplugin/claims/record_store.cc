#include "kubeletplugin/claims/record_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/paths.h"

namespace ascend::kubeletplugin {

RecordStore::RecordStore(std::string directory) : directory_(std::move(directory)) {}

absl::Status RecordStore::Prepare() {
  ASCEND_RETURN_IF_ERROR(MakeDirectories(directory_, 0700, /*durable=*/true));
  ASCEND_ASSIGN_OR_RETURN(UniqueFd directory, OpenDirectory(directory_));
  ASCEND_RETURN_IF_ERROR(RemoveStaleTempFiles(directory.get(), "", kStaleTempFileAge));
  // What an instance before wrote or removed, and could not sync.
  return SyncOpenDirectory(directory.get());
}

absl::Status RecordStore::SyncOpenDirectory(int dir_fd) const {
  while (::fsync(dir_fd) != 0) {
    const int error = errno;
    if (error != EINTR) return ErrnoToStatus(error, absl::StrCat("fsync ", directory_));
  }
  return absl::OkStatus();
}

RecordStore::FileIdentity RecordStore::FileIdentity::Of(const struct stat& info) {
  return {.inode = info.st_ino,
          .size = info.st_size,
          .mtime_ns = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec,
          .ctime_ns = info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
}

const RecordStore::Cached* RecordStore::FindCached(const std::string& claim_uid,
                                                   const struct stat& info) const {
  const auto cached = cache_.find(claim_uid);
  return cached != cache_.end() && cached->second.identity == FileIdentity::Of(info)
             ? &cached->second
             : nullptr;
}

void RecordStore::Forget(const std::string& claim_uid) {
  MutexLock lock(&mutex_);
  cache_.erase(claim_uid);
}

absl::StatusOr<std::shared_ptr<const ClaimRecord>> RecordStore::ReadLocked(
    int dir_fd, const std::string& claim_uid) {
  struct stat info;
  if (::fstatat(dir_fd, claim_uid.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    const int error = errno;
    cache_.erase(claim_uid);
    return ErrnoToStatus(error, absl::StrCat("record ", JoinPath(directory_, claim_uid)));
  }
  if (const Cached* cached = FindCached(claim_uid, info)) return cached->record;

  const std::string path = JoinPath(directory_, claim_uid);
  const absl::StatusOr<std::string> bytes = ReadFileAt(dir_fd, claim_uid);
  if (absl::IsFailedPrecondition(bytes.status()) || absl::IsOutOfRange(bytes.status())) {
    return absl::DataLossError(bytes.status().message());  // no file, or far too large: no record
  }
  // Another failure to read says nothing about the bytes (too many open files, a bad moment of the
  // disk): it is not remembered.
  ASCEND_RETURN_IF_ERROR(bytes.status()).With("record");
  absl::StatusOr<std::shared_ptr<const ClaimRecord>> result;
  std::vector<std::string> salvaged;
  if (absl::StatusOr<ClaimRecord> record = ParseRecord(*bytes); !record.ok()) {
    result = Annotate(record.status(), path);
    salvaged = SalvageDeviceNames(*bytes);
  } else if (record->claim_uid != claim_uid) {
    result =
        absl::DataLossError(absl::StrCat(path, ": the record is of claim UID ", record->claim_uid));
  } else {
    result = std::make_shared<const ClaimRecord>(*std::move(record));
  }
  cache_.insert_or_assign(claim_uid, Cached{FileIdentity::Of(info), result, std::move(salvaged)});
  return result;
}

absl::StatusOr<std::shared_ptr<const ClaimRecord>> RecordStore::Read(const std::string& claim_uid) {
  struct stat info;
  const std::string path = JoinPath(directory_, claim_uid);
  if (::lstat(path.c_str(), &info) == 0) {
    MutexLock lock(&mutex_);
    if (const Cached* cached = FindCached(claim_uid, info)) return cached->record;
  }
  ASCEND_ASSIGN_OR_RETURN(UniqueFd directory, OpenDirectory(directory_));
  MutexLock lock(&mutex_);
  return ReadLocked(directory.get(), claim_uid);
}

absl::StatusOr<bool> RecordStore::Contains(const std::string& claim_uid) const {
  const std::string path = JoinPath(directory_, claim_uid);
  struct stat info;
  if (::lstat(path.c_str(), &info) == 0) return true;
  const int error = errno;
  if (error == ENOENT) return false;
  return ErrnoToStatus(error, absl::StrCat("record ", path));
}

absl::StatusOr<RecordStore::Contents> RecordStore::ReadAll() {
  ASCEND_ASSIGN_OR_RETURN(UniqueFd directory, OpenDirectory(directory_));
  ASCEND_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(directory.get()));
  Contents contents;
  std::set<std::string> present;
  MutexLock lock(&mutex_);
  for (const std::string& name : names) {
    if (!IsSafeClaimUid(name)) continue;  // a temporary; sweeping it is Prepare's business
    present.insert(name);
    absl::StatusOr<std::shared_ptr<const ClaimRecord>> record = ReadLocked(directory.get(), name);
    if (record.ok()) {
      contents.records.push_back(*std::move(record));
    } else if (!absl::IsNotFound(record.status())) {  // removed since it was listed
      const auto cached = cache_.find(name);
      contents.unreadable.push_back(
          {name, record.status(),
           cached == cache_.end() ? std::vector<std::string>() : cached->second.salvaged_devices});
    }
  }
  for (auto it = cache_.begin(); it != cache_.end();) {
    it = present.count(it->first) != 0 ? std::next(it) : cache_.erase(it);
  }
  return contents;
}

absl::Status RecordStore::Observed(const std::function<absl::Status()>& write) {
  const absl::Duration start = Clock::Real().Monotonic();
  absl::Status status = write();
  if (!status.ok()) {
    MutexLock lock(&sync_mutex_);
    unsynced_ = true;
  }
  if (observe_) observe_(status, Clock::Real().Monotonic() - start);
  return status;
}

absl::Status RecordStore::Sync() {
  MutexLock lock(&sync_mutex_);  // also while it syncs: nobody may rely on what is not through
  if (!unsynced_) return absl::OkStatus();
  ASCEND_ASSIGN_OR_RETURN(UniqueFd directory, OpenDirectory(directory_));
  ASCEND_RETURN_IF_ERROR(SyncOpenDirectory(directory.get()));
  unsynced_ = false;
  return absl::OkStatus();
}

absl::Status RecordStore::Write(const ClaimRecord& record) {
  if (!IsSafeClaimUid(record.claim_uid)) {
    return absl::InvalidArgumentError(
        absl::StrCat("claim UID \"", record.claim_uid, "\" cannot be a file name"));
  }
  return Observed([&]() -> absl::Status {
    ASCEND_ASSIGN_OR_RETURN(UniqueFd directory, OpenDirectory(directory_));
    struct stat info = {};
    const absl::Status written =
        WriteFileAtomicallyAt(directory.get(), record.claim_uid, SerializeRecord(record),
                              {.mode = 0600, .durable = true, .info = &info});
    if (!written.ok() || info.st_ino == 0) {
      Forget(record.claim_uid);  // the old one, none or the new one: the disk tells
      return written;
    }
    MutexLock lock(&mutex_);
    cache_.insert_or_assign(
        record.claim_uid,
        Cached{FileIdentity::Of(info), std::make_shared<const ClaimRecord>(record), {}});
    return written;
  });
}

absl::Status RecordStore::Remove(const std::string& claim_uid) {
  if (!IsSafeClaimUid(claim_uid)) return absl::OkStatus();  // no record can have that name
  return Observed([&]() -> absl::Status {
    Forget(claim_uid);
    ASCEND_ASSIGN_OR_RETURN(UniqueFd directory, OpenDirectory(directory_));
    return RemoveFileAt(directory.get(), claim_uid, /*durable=*/true);
  });
}

}  // namespace ascend::kubeletplugin
