#include "vnpu/dcmi/mock/vnpu_kernel.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/core/directory_watch.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "vnpu/dcmi/mock/node.h"
#include "vnpu/dcmi/mock/tree.h"
#include "vnpu/dcmi/mock/vnpu_edit.h"

namespace ascend::dcmi::mock {
namespace {

constexpr absl::string_view kPrefix = "vdavinci";

absl::StatusOr<VnpuNodes> NodeTiming(const std::string& node_directory) {
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(NodeFile(node_directory)));
  Node node;
  std::string error;
  if (!ParseNode(text, &node, &error)) return absl::InvalidArgumentError(error);
  return node.vnpu_nodes;
}

}  // namespace

class VnpuKernel::Impl {
 public:
  explicit Impl(VnpuKernelOptions options)
      : options_(std::move(options)), dev_(JoinPath(options_.root, "dev")) {}

  ~Impl() {
    watch_.reset();
    {
      MutexLock lock(&mutex_);
      ending_ = true;
      wake_.SignalAll();
    }
    if (late_nodes_.joinable()) late_nodes_.join();
  }

  absl::Status Start() {
    ASCEND_RETURN_IF_ERROR(MakeDirectories(dev_));
    // The watch first: what changes after the look at the state is not missed.
    ASCEND_ASSIGN_OR_RETURN(
        watch_, DirectoryWatch::Start(
                    {StateDirectory(options_.node_directory), options_.node_directory}, [this] {
                      MutexLock lock(&mutex_);
                      Report(Follow());
                      wake_.SignalAll();
                    }));
    MutexLock lock(&mutex_);
    ASCEND_RETURN_IF_ERROR(Follow());
    late_nodes_ = std::thread([this] { MakeLateNodes(); });
    return absl::OkStatus();
  }

 private:
  static void Report(const absl::Status& status) {
    if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  }

  std::string PathOf(int id) const { return JoinPath(dev_, absl::StrCat(kPrefix, id)); }

  bool IsOurs(const std::string& path) const {
    struct stat info;
    if (lstat(path.c_str(), &info) != 0) return false;
    return options_.device_nodes ? S_ISCHR(info.st_mode) && major(info.st_rdev) == options_.major
                                 : S_ISREG(info.st_mode);
  }

  absl::StatusOr<std::set<int>> NodesThereAre() const {
    std::set<int> ids;
    ASCEND_ASSIGN_OR_RETURN(const auto names, ListDirectory(dev_));
    for (absl::string_view name : names) {
      int id = 0;
      const std::string path = JoinPath(dev_, name);
      if (absl::StartsWith(name, kPrefix) && absl::SimpleAtoi(name.substr(kPrefix.size()), &id) &&
          IsOurs(path)) {
        ids.insert(id);
      }
    }
    return ids;
  }

  absl::Status Make(int id) const {
    if (options_.device_nodes) {
      return MakeDeviceNode(PathOf(id), makedev(options_.major, static_cast<unsigned>(id)));
    }
    if (access(PathOf(id).c_str(), F_OK) == 0) {
      return absl::AlreadyExistsError(
          absl::StrCat(PathOf(id), " exists and is not of a mock node: is there real hardware?"));
    }
    return WriteFileAtomically(PathOf(id), "", {.mode = 0660, .durable = false});
  }

  // Removes and makes nodes by the state; those that are not due yet are left for later.
  absl::Status Follow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    next_ = absl::InfiniteFuture();
    ASCEND_ASSIGN_OR_RETURN(const VnpuState state, VnpusOf(options_.node_directory));
    ASCEND_ASSIGN_OR_RETURN(const VnpuNodes timing, NodeTiming(options_.node_directory));
    ASCEND_ASSIGN_OR_RETURN(const std::set<int> there, NodesThereAre());
    std::set<int> wanted;
    for (const Vnpu& vnpu : state.vnpus) wanted.insert(vnpu.id);
    for (const int id : there) {
      if (wanted.count(id) == 0 && unlink(PathOf(id).c_str()) != 0) {
        return ErrnoToStatus(errno, PathOf(id));
      }
    }
    const absl::Time now = absl::Now();
    std::map<int, absl::Time> since;
    for (const int id : wanted) {
      if (there.count(id) != 0) continue;
      const auto seen = since_.find(id);
      since[id] = seen != since_.end() ? seen->second : now;
      if (timing.never) continue;
      const absl::Time due = since[id] + absl::Milliseconds(timing.delay_ms);
      if (due <= now) {
        ASCEND_RETURN_IF_ERROR(Make(id));
      } else {
        next_ = std::min(next_, due);
      }
    }
    since_ = std::move(since);
    return absl::OkStatus();
  }

  void MakeLateNodes() {
    MutexLock lock(&mutex_);
    while (!ending_) {
      const absl::Duration wait = next_ - absl::Now();
      if (wait > absl::ZeroDuration()) {
        wake_.WaitFor(&mutex_, wait);
        continue;
      }
      Report(Follow());
    }
  }

  const VnpuKernelOptions options_;
  const std::string dev_;
  Mutex mutex_;
  CondVar wake_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // When a vNPU without a node was first seen, and when the next node is due.
  std::map<int, absl::Time> since_ ABSL_GUARDED_BY(mutex_);
  absl::Time next_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::unique_ptr<DirectoryWatch> watch_;
  std::thread late_nodes_;
};

VnpuKernel::VnpuKernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VnpuKernel::~VnpuKernel() = default;

absl::StatusOr<std::unique_ptr<VnpuKernel>> VnpuKernel::Start(const VnpuKernelOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  ASCEND_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<VnpuKernel>(new VnpuKernel(std::move(impl)));
}

}  // namespace ascend::dcmi::mock
