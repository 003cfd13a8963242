#include "base/core/directory_watch.h"

#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"

namespace ascend {
namespace {

using std::chrono::milliseconds;

// A burst ends when nothing came for kQuiet; a steady stream is reported every kLongestBurst.
constexpr milliseconds kQuiet(5);
constexpr milliseconds kLongestBurst(100);
// How soon to try again when the kernel had no room for a watch.
constexpr milliseconds kRetryArming(1000);

constexpr int kMaxLinks = 40;  // as in the kernel

constexpr uint32_t kTargetEvents = IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM |
                                   IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;
// IN_ATTRIB: a directory that could not be searched before may be searchable now.
constexpr uint32_t kParentEvents =
    IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;
constexpr uint32_t kEntryEvents =
    IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;

constexpr absl::string_view kWatchesHint = " (raise fs.inotify.max_user_watches)";

absl::string_view InitHint(int error) {
  if (error != EMFILE) return "";
  return " (raise fs.inotify.max_user_instances, or the process's limit of open files)";
}

std::deque<std::string> Components(absl::string_view path) {
  return absl::StrSplit(path, '/', absl::SkipEmpty());
}

std::string ParentOf(const std::string& directory) {
  const size_t slash = directory.rfind('/');
  return slash == 0 ? "/" : directory.substr(0, slash);
}

}  // namespace

// The way to each directory is walked component by component, links included, and every directory
// that is passed gets a watch for the one name that matters in it. So whatever step of the way
// changes, the walk is repeated.
class DirectoryWatch::Impl {
 public:
  Impl(std::vector<std::string> paths, std::function<void()> on_change)
      : paths_(std::move(paths)), targets_(paths_.size(), -1), on_change_(std::move(on_change)) {}
  ~Impl() { Stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  absl::Status Start() {
    inotify_ = UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!inotify_.valid()) {
      const int error = errno;
      return Annotate(ErrnoToStatus(error, "inotify_init1"),
                      absl::StrCat("watch ", absl::StrJoin(paths_, ", "), InitHint(error)));
    }
    stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
    if (!stop_.valid()) {
      const int error = errno;
      return ErrnoToStatus(error, absl::StrCat("watch ", absl::StrJoin(paths_, ", "), ": eventfd"));
    }
    ASCEND_RETURN_IF_ERROR(Arm());
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

 private:
  struct Watched {
    std::set<std::string> names;  // on the way: entries that the way goes through
    bool is_target = false;
  };
  using WatchMap = std::map<int, Watched>;  // by watch descriptor

  void Stop() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    while (::write(stop_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
  }

  void Run() {
    while (true) {
      bool changed = false;
      if (!Wait(&changed)) return;
      if (changed) on_change_();
    }
  }

  // Waits for events and takes in the whole burst. False: stop.
  bool Wait(bool* changed) {
    const milliseconds timeout = fully_armed_ ? milliseconds(-1) : kRetryArming;
    pollfd fds[] = {{stop_.get(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}};
    if (Poll(fds, 2, timeout) == 0) {
      *changed = Rearm();
      return true;
    }
    if (fds[0].revents != 0) return false;
    bool any = false;
    *changed = Drain(&any);
    // Noise of other entries in a directory on the way must not start a burst.
    if (!*changed) return true;
    // The rest of the burst is left to gather: waking for each of its events would cost more.
    const auto deadline = std::chrono::steady_clock::now() + kLongestBurst;
    while (std::chrono::steady_clock::now() < deadline) {
      if (Poll(fds, 1, kQuiet) != 0) return false;
      any = false;
      *changed |= Drain(&any);
      if (!any) break;  // the burst is over
    }
    return true;
  }

  // As ::poll, without its interruptions.
  static int Poll(pollfd* fds, nfds_t count, milliseconds timeout) {
    while (true) {
      const int ready = ::poll(fds, count, static_cast<int>(timeout.count()));
      if (ready >= 0) return ready;
      if (errno != EINTR) return 0;
    }
  }

  // Reads what is there, if `any`thing. True if the directory, or what is in it, changed.
  bool Drain(bool* any) {
    bool changed = false;
    bool rearm = false;
    alignas(inotify_event) char buffer[16 * (sizeof(inotify_event) + NAME_MAX + 1)];
    while (true) {
      const ssize_t length = ::read(inotify_.get(), buffer, sizeof(buffer));
      if (length < 0 && errno == EINTR) continue;
      if (length <= 0) break;
      *any = true;
      for (const char* at = buffer; at < buffer + length;) {
        inotify_event event;
        std::memcpy(&event, at, sizeof(event));
        const std::string name(at + sizeof(event));  // NUL-terminated, empty without a name
        at += sizeof(event) + event.len;
        Handle(event, event.len == 0 ? std::string() : name, &changed, &rearm);
      }
    }
    if (rearm) changed |= Rearm();
    return changed;
  }

  void Handle(const inotify_event& event, const std::string& name, bool* changed, bool* rearm) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) {
      *changed = *rearm = true;
      return;
    }
    const auto watched = watches_.find(event.wd);
    if (watched == watches_.end()) return;  // of a watch that was given up
    if ((event.mask & IN_IGNORED) != 0) {
      watches_.erase(watched);
      *rearm = true;
      return;
    }
    if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) != 0) {
      *rearm = true;
      return;
    }
    if (watched->second.names.count(name) != 0) {
      *rearm = true;
      // Also what came and went before anybody looked has changed: it may have held something.
      if ((event.mask & kEntryEvents) != 0) *changed = true;
    }
    if (watched->second.is_target && (event.mask & kEntryEvents) != 0) *changed = true;
  }

  // True if a path leads to another directory than before, or to one after none, or to none.
  // A failure is retried after a while: nobody could do anything about it.
  bool Rearm() {
    const std::vector<int> before = targets_;
    fully_armed_ = Arm().ok();
    return targets_ != before;
  }

  // Walks the paths. Each directory is watched before the next component is looked up in it, so a
  // change behind the walk's back shows up as an event.
  absl::Status Arm() {
    WatchMap armed;
    absl::Status status;
    for (size_t i = 0; i < paths_.size(); ++i) {
      const absl::StatusOr<int> target = Walk(paths_[i], &armed);
      targets_[i] = target.value_or(-1);
      status.Update(target.status());
    }
    for (const auto& [wd, unused] : watches_) {
      if (armed.count(wd) == 0) ::inotify_rm_watch(inotify_.get(), wd);
    }
    watches_ = std::move(armed);
    return status;
  }

  // The watch descriptor of the directory, -1 if there is none.
  absl::StatusOr<int> Walk(const std::string& path, WatchMap* armed) {
    std::deque<std::string> rest = Components(path);
    std::string directory = "/";
    int links = 0;
    while (!rest.empty()) {
      const std::string name = rest.front();
      rest.pop_front();
      if (name == ".") continue;
      if (name == "..") {
        directory = ParentOf(directory);
        continue;
      }
      // A directory on the way that may be passed but not read cannot be watched; go on.
      ASCEND_ASSIGN_OR_RETURN(const int wd, Watch(directory, kParentEvents), "watch ", path);
      if (wd >= 0) (*armed)[wd].names.insert(name);

      const std::string entry = JoinPath(directory, name);
      struct stat info;
      if (::lstat(entry.c_str(), &info) != 0) return -1;
      if (S_ISDIR(info.st_mode)) {
        directory = entry;
        continue;
      }
      if (!S_ISLNK(info.st_mode) || ++links > kMaxLinks) return -1;
      char target[PATH_MAX];
      const ssize_t length = ::readlink(entry.c_str(), target, sizeof(target));
      if (length <= 0) return -1;
      const absl::string_view link(target, static_cast<size_t>(length));
      if (absl::StartsWith(link, "/")) directory = "/";
      std::deque<std::string> components = Components(link);
      rest.insert(rest.begin(), components.begin(), components.end());
    }
    ASCEND_ASSIGN_OR_RETURN(const int wd, Watch(directory, kTargetEvents), "watch ", path);
    if (wd >= 0) (*armed)[wd].is_target = true;
    return wd;
  }

  // -1 if the directory is not there or may not be read; an error if the kernel has no room.
  absl::StatusOr<int> Watch(const std::string& directory, uint32_t events) {
    // One directory may be passed more than once, hence IN_MASK_ADD.
    const int wd =
        ::inotify_add_watch(inotify_.get(), directory.c_str(), events | IN_ONLYDIR | IN_MASK_ADD);
    if (wd >= 0) return wd;
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR || error == EACCES) return -1;
    return ErrnoToStatus(
        error, absl::StrCat("inotify_add_watch ", directory, error == ENOSPC ? kWatchesHint : ""));
  }

  const std::vector<std::string> paths_;
  std::vector<int> targets_;  // the watches of the directories, -1 where there is none
  const std::function<void()> on_change_;
  UniqueFd inotify_;
  UniqueFd stop_;
  // Below, and targets_: used by Start(), then by the thread alone.
  WatchMap watches_;
  bool fully_armed_ = true;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<DirectoryWatch>> DirectoryWatch::Start(
    std::string path, std::function<void()> on_change) {
  return Start(std::vector<std::string>{std::move(path)}, std::move(on_change));
}

absl::StatusOr<std::unique_ptr<DirectoryWatch>> DirectoryWatch::Start(
    std::vector<std::string> paths, std::function<void()> on_change) {
  for (const std::string& path : paths) {
    if (absl::StartsWith(path, "/")) continue;
    return absl::InvalidArgumentError(absl::StrCat("watch ", path, ": not an absolute path"));
  }
  auto impl = std::make_unique<Impl>(std::move(paths), std::move(on_change));
  ASCEND_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<DirectoryWatch>(new DirectoryWatch(std::move(impl)));
}

DirectoryWatch::DirectoryWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DirectoryWatch::~DirectoryWatch() = default;

}  // namespace ascend
