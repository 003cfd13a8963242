#include "cdi/replay_host.h"

#include <sys/sysmacros.h>

#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using Json = nlohmann::json;

// No value: there is no such path.
using Entries = std::map<std::string, std::optional<struct stat>>;

std::optional<struct stat> Entry(mode_t mode, dev_t number = 0) {
  struct stat info = {};
  info.st_mode = mode;
  info.st_rdev = number;
  return info;
}

Entries RecordedHost() {
  return {{"/dev/null", Entry(S_IFCHR | 0666, makedev(1, 3))},
          {"/etc/hostname", Entry(S_IFREG | 0644)},
          {"/proc/self/cwd", Entry(S_IFLNK | 0777)},
          {"/dev/davinci99", std::nullopt}};
}

absl::StatusOr<mode_t> TypeBits(const std::string& type) {
  if (type == "c") return S_IFCHR;
  if (type == "b") return S_IFBLK;
  if (type == "p") return S_IFIFO;
  if (type == "file") return S_IFREG;
  if (type == "dir") return S_IFDIR;
  if (type == "link") return S_IFLNK;
  return absl::InvalidArgumentError(absl::StrCat("unknown type \"", type, "\""));
}

absl::StatusOr<unsigned> NumberOf(const Json& entry, const char* key) {
  const auto number = entry.find(key);
  if (number == entry.end()) return 0u;
  if (number->is_number_integer()) {
    const auto value = number->get<int64_t>();
    if (value >= 0 && value <= 0xffffffff) return static_cast<unsigned>(value);
  }
  return absl::InvalidArgumentError(absl::StrCat(key, " must be a number of 32 bits"));
}

absl::StatusOr<std::optional<struct stat>> ParseEntry(const Json& entry) {
  if (entry.is_null()) return std::nullopt;
  const auto type = entry.is_object() ? entry.find("type") : entry.end();
  if (!entry.is_object() || type == entry.end() || !type->is_string()) {
    return absl::InvalidArgumentError("must be null or an object with a type");
  }
  ASCEND_ASSIGN_OR_RETURN(const mode_t bits, TypeBits(type->get<std::string>()));
  ASCEND_ASSIGN_OR_RETURN(const unsigned major_number, NumberOf(entry, "major"));
  ASCEND_ASSIGN_OR_RETURN(const unsigned minor_number, NumberOf(entry, "minor"));
  ASCEND_ASSIGN_OR_RETURN(const unsigned mode, NumberOf(entry, "mode"));
  ASCEND_ASSIGN_OR_RETURN(const unsigned uid, NumberOf(entry, "uid"));
  ASCEND_ASSIGN_OR_RETURN(const unsigned gid, NumberOf(entry, "gid"));
  std::optional<struct stat> info =
      Entry(bits | (mode & ~static_cast<mode_t>(S_IFMT)), makedev(major_number, minor_number));
  info->st_uid = uid;
  info->st_gid = gid;
  return info;
}

}  // namespace

absl::StatusOr<Lstat> ReplayHost(const Json* host) {
  Entries entries = RecordedHost();
  if (host != nullptr) {
    if (!host->is_object()) return absl::InvalidArgumentError("host: must be an object");
    for (const auto& [path, entry] : host->items()) {
      ASCEND_ASSIGN_OR_RETURN(entries[path], ParseEntry(entry), "host: ", path);
    }
  }
  return [entries = std::move(entries)](const std::string& path, struct stat* info) {
    const auto known = entries.find(path);
    if (known == entries.end()) return ::lstat(path.c_str(), info) == 0 ? 0 : errno;
    if (!known->second.has_value()) return ENOENT;
    *info = *known->second;
    return 0;
  };
}

}  // namespace ascend::cdi
