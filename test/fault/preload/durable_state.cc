#include "test/fault/preload/durable_state.h"

#include <dirent.h>

#include <cstddef>
#include <cstring>
#include <set>

#include "test/fault/preload/raw.h"

namespace ascend::fault {
namespace {

struct KernelEntry {  // linux_dirent64, which no header gives
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[1];
};

std::string Join(const std::string& directory, const std::string& name) {
  std::string path = directory;
  path += '/';
  path += name;
  return path;
}

std::set<std::string> Names(const std::string& directory) {
  std::set<std::string> names;
  const int fd =
      RawOpenAt(AT_FDCWD, directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return names;
  alignas(KernelEntry) char buffer[8192];
  for (long got = 0; (got = ::syscall(SYS_getdents64, fd, buffer, sizeof(buffer))) > 0;) {
    for (long at = 0; at < got;) {
      uint16_t length = 0;
      std::memcpy(&length, buffer + at + offsetof(KernelEntry, length), sizeof(length));
      const std::string name(buffer + at + offsetof(KernelEntry, name));
      if (name != "." && name != "..") names.insert(name);
      at += length;
    }
  }
  RawClose(fd);
  return names;
}

void RemoveTree(const std::string& path) {
  if (RawUnlinkAt(AT_FDCWD, path.c_str(), 0) == 0) return;
  for (const std::string& name : Names(path)) RemoveTree(Join(path, name));
  RawUnlinkAt(AT_FDCWD, path.c_str(), AT_REMOVEDIR);
}

void Put(const std::string& path, const std::string& bytes, mode_t mode) {
  RawUnlinkAt(AT_FDCWD, path.c_str(), 0);
  const int fd = RawOpenAt(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (RawWrite(fd, bytes.data(), bytes.size()) < 0) RawUnlinkAt(AT_FDCWD, path.c_str(), 0);
  ::syscall(SYS_fchmod, fd, mode);
  RawClose(fd);
}

void Truncate(const std::string& path, size_t divisor) {
  struct stat info;
  if (RawStatAt(AT_FDCWD, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
  const off_t size = divisor == 0 ? 0 : info.st_size / static_cast<off_t>(divisor);
  ::syscall(SYS_truncate, path.c_str(), size);
}

}  // namespace

void DurableState::AddRoot(const std::string& root) {
  roots_[root] = true;
  MakeDurable(root);
}

void DurableState::MakeDurable(const std::string& directory) {
  Listing listing = List(directory);
  for (const auto& [name, entry] : listing) {
    const std::string path = Join(directory, name);
    if (entry.directory) {
      MakeDurable(path);
      continue;
    }
    File& file = files_[entry.file];
    file.bytes = RawReadFile(path);
    file.dirty = false;
  }
  durable_[directory] = std::move(listing);
}

DurableState::FileId DurableState::IdOf(int fd) {
  struct stat info;
  if (RawFstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  const auto [it, is_new] = ids_.try_emplace(Inode(info.st_dev, info.st_ino), last_id_ + 1);
  if (is_new) files_[++last_id_].mode = info.st_mode & 07777;
  return it->second;
}

void DurableState::Created(int fd) {
  struct stat info;
  if (RawFstat(fd, &info) != 0) return;
  ids_.erase(Inode(info.st_dev, info.st_ino));  // of an earlier file with the same number
  IdOf(fd);
}

void DurableState::Written(int fd) {
  if (const FileId id = IdOf(fd); id != 0) files_[id].dirty = true;
}

void DurableState::Synced(int fd, const std::string& path) {
  struct stat info;
  if (RawFstat(fd, &info) != 0) return;
  if (S_ISDIR(info.st_mode)) {
    durable_[path] = List(path);
    return;
  }
  const FileId id = IdOf(fd);
  if (id == 0) return;
  files_[id] = {.bytes = RawReadFile(path), .mode = info.st_mode & 07777, .dirty = false};
}

DurableState::Listing DurableState::List(const std::string& directory) {
  Listing listing;
  for (const std::string& name : Names(directory)) {
    const std::string path = Join(directory, name);
    struct stat info;
    if (RawStatAt(AT_FDCWD, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      listing[name] = {.directory = true, .file = 0};
      continue;
    }
    if (!S_ISREG(info.st_mode)) continue;
    const int fd = RawOpenAt(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    listing[name] = {.directory = false, .file = IdOf(fd)};
    RawClose(fd);
  }
  return listing;
}

void DurableState::Cut(PowerCut cut, uint64_t salt) {
  for (const auto& [root, unused] : roots_) CutDirectory(root, cut, salt);
}

void DurableState::CutDirectory(const std::string& directory, PowerCut cut, uint64_t salt) {
  const Listing live = List(directory);
  const Listing durable = durable_[directory];
  std::set<std::string> names;
  for (const auto& [name, entry] : live) names.insert(name);
  for (const auto& [name, entry] : durable) names.insert(name);
  uint64_t index = salt;
  for (const std::string& name : names) {
    const std::string path = Join(directory, name);
    const auto now = live.find(name);
    const auto then = durable.find(name);
    const bool same = now != live.end() && then != durable.end() && now->second == then->second;
    const bool keep = cut == PowerCut::kKept || (cut == PowerCut::kMixed && ++index % 2 == 0);
    if (same || keep) {
      if (now == live.end()) continue;
      if (now->second.directory) {
        CutDirectory(path, cut, salt);
      } else if (files_[now->second.file].dirty) {
        Truncate(path, cut == PowerCut::kMixed ? 2 : 0);
      }
    } else if (then == durable.end()) {
      RemoveTree(path);
    } else if (then->second.directory) {
      RawMkdirAt(AT_FDCWD, path.c_str(), 0755);
      CutDirectory(path, cut, salt);
    } else {
      const File& file = files_[then->second.file];
      Put(path, file.bytes, file.mode);
    }
  }
}

}  // namespace ascend::fault
