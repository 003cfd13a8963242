#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"
#include "cdi/document_path.h"
#include "cdi/name.h"
#include "cdi/registry.h"
#include "cdi/scanner.h"

namespace ascend::cdi {
namespace {

// The coarsest clock among file systems in use: two seconds.
constexpr time_t kSettlingSeconds = 2;

timespec RealTime() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now;
}

bool SameTime(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_mode == b.st_mode &&
         a.st_size == b.st_size && SameTime(a.st_mtim, b.st_mtim) && SameTime(a.st_ctim, b.st_ctim);
}

// Unlike OpenDirectory() it follows a symbolic link, as runtimes do.
absl::StatusOr<UniqueFd> OpenToScan(const std::string& path) {
  int fd;
  do {
    fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd >= 0) return UniqueFd(fd);
  const int error = errno;
  return ErrnoToStatus(error, path);
}

// A later file of the same directory does not replace an earlier one's device, and neither is used.
// Nor is one of another directory then, whatever its precedence: the reference removes the name at
// the end of its scan.
class DeviceTable {
 public:
  explicit DeviceTable(Snapshot::DeviceMap* devices,
                       std::map<std::string, std::vector<absl::Status>>* errors)
      : devices_(*devices), errors_(*errors) {}

  void Add(const std::shared_ptr<const SpecFile>& file, size_t directory) {
    for (const Device& device : file->spec.devices) {
      const auto [place, is_new] =
          devices_.try_emplace(absl::StrCat(file->spec.kind, "=", device.name));
      if (!is_new && directory_of_[&place->second] == directory) {
        Conflict(place->first, *file, *place->second.file);
        continue;
      }
      place->second = {file, &device};
      directory_of_[&place->second] = directory;
    }
  }

  void RemoveConflicting() {
    for (const std::string& name : conflicting_) devices_.erase(name);
  }

 private:
  void Conflict(const std::string& name, const SpecFile& later, const SpecFile& earlier) {
    conflicting_.insert(name);
    const absl::Status error =
        absl::AlreadyExistsError(absl::StrCat("conflicting device ", Quote(name), " (specs ",
                                              Quote(later.path), ", ", Quote(earlier.path), ")"));
    errors_[later.path].push_back(error);
    errors_[earlier.path].push_back(error);
  }

  Snapshot::DeviceMap& devices_;
  std::map<std::string, std::vector<absl::Status>>& errors_;
  absl::flat_hash_map<const Snapshot::Entry*, size_t> directory_of_;
  std::set<std::string> conflicting_;
};

}  // namespace

bool Scanner::Identity::Same(const Identity& other) const {
  return SameFile(link, other.link) && SameFile(file, other.file);
}

bool Scanner::Identity::SettledAt(const timespec& now) const {
  const time_t settled = now.tv_sec - kSettlingSeconds;
  for (const struct stat* info : {&link, &file}) {
    if (info->st_mtim.tv_sec >= settled || info->st_ctim.tv_sec >= settled) return false;
  }
  return true;
}

Scanner::Scanner(std::vector<std::string> directories)
    : Scanner(std::move(directories), RealTime) {}

Scanner::Scanner(std::vector<std::string> directories, Clock clock)
    : directories_(directories.empty() ? DefaultDirectories() : std::move(directories)),
      clock_(std::move(clock)),
      known_(directories_.size()),
      last_(std::make_shared<Snapshot>()) {}

std::shared_ptr<const Snapshot> Scanner::Scan() {
  auto snapshot = std::make_shared<Snapshot>();
  DeviceTable table(&snapshot->devices_, &snapshot->errors_);
  for (size_t i = 0; i < directories_.size(); ++i) {
    const size_t before = snapshot->files_.size();
    ScanDirectory(directories_[i], known_[i], *snapshot);
    for (size_t file = before; file < snapshot->files_.size(); ++file) {
      table.Add(snapshot->files_[file], i);
    }
  }
  table.RemoveConflicting();
  // Files that did not change are the same objects.
  if (snapshot->files_ != last_->files_ || snapshot->errors_ != last_->errors_) last_ = snapshot;
  return last_;
}

void Scanner::ScanDirectory(const std::string& directory, KnownFiles& known, Snapshot& snapshot) {
  KnownFiles before = std::exchange(known, {});
  absl::StatusOr<UniqueFd> fd = OpenToScan(directory);
  if (absl::IsNotFound(fd.status())) return;
  absl::StatusOr<std::vector<std::string>> names =
      fd.ok() ? ListDirectory(fd->get()) : absl::StatusOr<std::vector<std::string>>(fd.status());
  if (!names.ok()) {
    snapshot.errors_[directory].push_back(names.status());
    return;
  }
  for (const std::string& name : *names) {
    if (!IsSpecFileName(name)) continue;
    const std::string path = JoinPath(directory, name);
    // The identity is taken before the content: a change in between shows at the next scan.
    Identity identity = {};
    const timespec now = clock_();
    if (::fstatat(fd->get(), name.c_str(), &identity.link, AT_SYMLINK_NOFOLLOW) != 0 &&
        errno == ENOENT) {
      continue;  // gone since it was listed
    }
    if (S_ISDIR(identity.link.st_mode)) continue;
    identity.file = identity.link;
    // A link that leads nowhere gets its error from the attempt to read it.
    if (S_ISLNK(identity.link.st_mode)) ::fstatat(fd->get(), name.c_str(), &identity.file, 0);

    const auto found = before.find(name);
    const Known* last = found == before.end() ? nullptr : &found->second;
    Loaded loaded = last != nullptr && last->settled && last->identity.Same(identity)
                        ? last->loaded
                        : Load(path, last);
    struct stat gone;
    if (absl::IsNotFound(loaded.status()) &&
        ::fstatat(fd->get(), name.c_str(), &gone, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (loaded.ok()) {
      snapshot.files_.push_back(*loaded);
    } else {
      snapshot.errors_[path].push_back(loaded.status());
      // The content is at fault, not something that may pass.
      if (!absl::IsInvalidArgument(loaded.status())) continue;
    }
    const bool settled = identity.SettledAt(now);
    known.insert_or_assign(name, Known{identity, settled, std::move(loaded)});
  }
}

Scanner::Loaded Scanner::Load(const std::string& path, const Known* before) {
  ASCEND_ASSIGN_OR_RETURN(SpecFile file, ReadSpecFile(path));
  if (before != nullptr && before->loaded.ok()) {
    const SpecFile& known = **before->loaded;
    if (known.spec == file.spec && known.findings == file.findings) return before->loaded;
  }
  return std::make_shared<const SpecFile>(std::move(file));
}

const std::vector<std::string>& DefaultDirectories() {
  static const std::vector<std::string> directories = {"/etc/cdi", "/var/run/cdi"};
  return directories;
}

std::shared_ptr<const Snapshot> Scan(const std::vector<std::string>& directories) {
  return Scanner(directories).Scan();
}

const Snapshot::Entry* Snapshot::Find(absl::string_view qualified_name) const {
  const auto device = devices_.find(qualified_name);
  return device == devices_.end() ? nullptr : &device->second;
}

std::vector<std::string> Snapshot::Vendors() const {
  std::set<std::string> vendors;
  for (const auto& file : files_) vendors.insert(SplitKind(file->spec.kind).vendor);
  return {vendors.begin(), vendors.end()};
}

std::vector<std::string> Snapshot::Classes() const {
  std::set<std::string> classes;
  for (const auto& file : files_) classes.insert(SplitKind(file->spec.kind).device_class);
  return {classes.begin(), classes.end()};
}

}  // namespace ascend::cdi
