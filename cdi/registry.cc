#include "cdi/registry.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "base/core/directory_watch.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "cdi/scanner.h"

namespace ascend::cdi {

class Registry::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)), scanner_(options_.directories) {}

  absl::Status Start() {
    // Watched first, so that no change falls between; what it sees meanwhile waits for the lock.
    MutexLock scanning(&scan_mutex_);
    if (options_.watch) {
      const std::vector<std::string>& directories =
          options_.directories.empty() ? DefaultDirectories() : options_.directories;
      ASCEND_ASSIGN_OR_RETURN(watch_, DirectoryWatch::Start(directories, [this] { TakeIn(); }));
    }
    notified_ = ScanNow();
    return absl::OkStatus();
  }

  std::shared_ptr<const Snapshot> snapshot() const {
    MutexLock lock(&snapshot_mutex_);
    return snapshot_;
  }

  std::shared_ptr<const Snapshot> Refresh() {
    MutexLock scanning(&scan_mutex_);
    return ScanNow();
  }

 private:
  std::shared_ptr<const Snapshot> ScanNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(scan_mutex_) {
    std::shared_ptr<const Snapshot> scanned = scanner_.Scan();
    MutexLock lock(&snapshot_mutex_);
    snapshot_ = scanned;
    return scanned;
  }

  // On the thread of the watch.
  void TakeIn() {
    std::shared_ptr<const Snapshot> scanned;
    {
      MutexLock scanning(&scan_mutex_);
      scanned = ScanNow();
      if (std::exchange(notified_, scanned) == scanned) return;
    }
    if (options_.on_change) options_.on_change(scanned);
  }

  const Options options_;
  Mutex scan_mutex_;
  Scanner scanner_ ABSL_GUARDED_BY(scan_mutex_);
  std::shared_ptr<const Snapshot> notified_ ABSL_GUARDED_BY(scan_mutex_);  // to on_change
  mutable Mutex snapshot_mutex_ ABSL_ACQUIRED_AFTER(scan_mutex_);
  std::shared_ptr<const Snapshot> snapshot_ ABSL_GUARDED_BY(snapshot_mutex_);
  std::unique_ptr<DirectoryWatch> watch_;  // last: its thread uses the others
};

absl::StatusOr<std::unique_ptr<Registry>> Registry::Open(Options options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  ASCEND_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Registry>(new Registry(std::move(impl)));
}

Registry::Registry(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Registry::~Registry() = default;

std::shared_ptr<const Snapshot> Registry::snapshot() const { return impl_->snapshot(); }
std::shared_ptr<const Snapshot> Registry::Refresh() { return impl_->Refresh(); }

}  // namespace ascend::cdi
