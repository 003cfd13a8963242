#include "cdi/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"
#include "cdi/document.h"
#include "cdi/document_path.h"
#include "cdi/json.h"
#include "cdi/name.h"

namespace ascend::cdi {
namespace {

constexpr mode_t kDirectoryMode = 0755;
constexpr mode_t kFileMode = 0644;  // rootless runtimes read it too
constexpr absl::string_view kExtension = ".json";
constexpr int kWriteAttempts = 5;

absl::Status CheckFileName(const std::string& name) {
  if (!absl::EndsWith(name, kExtension) || name.size() == kExtension.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("CDI file name ", Quote(name), " must end in ", kExtension));
  }
  if (name[0] == '.' || name.size() > kMaxFileNameLength) {
    return absl::InvalidArgumentError(absl::StrCat("CDI file name ", Quote(name),
                                                   " must not begin with a dot or be longer than ",
                                                   kMaxFileNameLength, " bytes"));
  }
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '/' || byte < 0x20 || byte == 0x7F) {
      return absl::InvalidArgumentError(absl::StrCat(
          "CDI file name ", Quote(name), " must not hold slashes or control characters"));
    }
  }
  return absl::OkStatus();
}

// Whoever can write a CDI file is root on the node.
absl::Status CheckOwnerAndMode(int dir_fd, const std::string& directory) {
  struct stat info;
  if (::fstat(dir_fd, &info) != 0) {
    const int error = errno;
    return ErrnoToStatus(error, directory);
  }
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat("CDI directory ", directory, " belongs to user ", info.st_uid,
                     ": make root its owner (chown root ", directory, ")"));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return absl::PermissionDeniedError(
        absl::StrFormat("CDI directory %s may be written by others (mode %04o): take that right "
                        "away (chmod go-w %s)",
                        directory, info.st_mode & 07777, directory));
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> OpenOrCreate(const Store::Options& options) {
  absl::StatusOr<UniqueFd> fd = OpenDirectory(options.directory);
  if (absl::IsNotFound(fd.status())) {
    const absl::Status made = MakeDirectories(options.directory, kDirectoryMode);
    if (!made.ok()) {
      return absl::Status(
          made.code(), absl::StrCat("CDI directory ", options.directory,
                                    " is missing and cannot be created (", made.message(),
                                    "): create it with mode 0755, or mount it into the container"));
    }
    fd = OpenDirectory(options.directory);
  }
  if (!fd.ok()) return Annotate(fd.status(), "CDI directory");
  if (options.check_directory_mode) {
    ASCEND_RETURN_IF_ERROR(CheckOwnerAndMode(fd->get(), options.directory));
  }
  return fd;
}

// Whether there is a regular file of our mode that holds exactly `text`.
bool FileHolds(int dir_fd, const std::string& name, const std::string& text) {
  struct stat info;
  if (::fstatat(dir_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode) ||
      (info.st_mode & 07777) != kFileMode) {
    return false;
  }
  const absl::StatusOr<std::string> content = ReadFileAt(dir_fd, name, kMaxDocumentSize);
  return content.ok() && *content == text;
}

}  // namespace

Store::Store(Options options) : options_(std::move(options)) {}

absl::Status Store::Prepare() const {
  ASCEND_ASSIGN_OR_RETURN(const UniqueFd fd, OpenOrCreate(options_));
  if (::faccessat(fd.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    const int error = errno;
    return absl::PermissionDeniedError(absl::StrCat(
        ErrnoToStatus(error, absl::StrCat("CDI directory ", directory(), " is not writable"))
            .message(),
        ": run as its owner and mount it read-write, or use another directory that the container "
        "runtime reads (cdi_spec_dirs)"));
  }
  return absl::OkStatus();
}

absl::Status Store::Write(const std::string& file_name, const Spec& spec,
                          const WriteOptions& options) const {
  ASCEND_RETURN_IF_ERROR(CheckFileName(file_name));
  ASCEND_ASSIGN_OR_RETURN(const std::string text, WriteJson(spec), "CDI file ",
                          JoinPath(directory(), file_name));
  absl::Status written;
  for (int attempt = 0; attempt < kWriteAttempts; ++attempt) {
    const absl::StatusOr<UniqueFd> fd = OpenOrCreate(options_);
    if (fd.ok() && !options.rewrite_identical && FileHolds(fd->get(), file_name, text)) {
      return absl::OkStatus();
    }
    written = fd.ok() ? WriteFileAtomicallyAt(fd->get(), file_name, text,
                                              {.mode = kFileMode, .durable = options.durable})
                      : fd.status();
    // Somebody who empties the directory took it, or the temporary file, away under our hands.
    if (!absl::IsNotFound(written)) break;
  }
  return written;
}

absl::Status Store::Remove(const std::string& file_name) const {
  ASCEND_RETURN_IF_ERROR(CheckFileName(file_name));
  const absl::StatusOr<UniqueFd> fd = OpenDirectory(directory());
  if (absl::IsNotFound(fd.status())) return absl::OkStatus();
  if (!fd.ok()) return Annotate(fd.status(), "CDI directory");
  return RemoveFileAt(fd->get(), file_name, /*durable=*/false);
}

absl::StatusOr<std::vector<std::string>> Store::List(const std::string& prefix) const {
  std::vector<std::string> names;
  const absl::StatusOr<UniqueFd> fd = OpenDirectory(directory());
  if (absl::IsNotFound(fd.status())) return names;
  if (!fd.ok()) return Annotate(fd.status(), "CDI directory");
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(fd->get()));
  for (const std::string& entry : entries) {
    if (absl::StartsWith(entry, prefix) && absl::EndsWith(entry, kExtension)) {
      names.push_back(entry);
    }
  }
  return names;
}

bool Store::Holds(const std::string& file_name, const Spec& spec) const {
  const absl::StatusOr<std::string> text = WriteJson(spec);
  const absl::StatusOr<UniqueFd> fd = OpenDirectory(directory());
  return text.ok() && fd.ok() && CheckFileName(file_name).ok() &&
         FileHolds(fd->get(), file_name, *text);
}

absl::Status Store::RemoveStaleTempFiles(const std::string& prefix, absl::Duration min_age) const {
  const absl::StatusOr<UniqueFd> fd = OpenDirectory(directory());
  if (absl::IsNotFound(fd.status())) return absl::OkStatus();
  if (!fd.ok()) return Annotate(fd.status(), "CDI directory");
  return ascend::RemoveStaleTempFiles(fd->get(), prefix, min_age);
}

}  // namespace ascend::cdi
