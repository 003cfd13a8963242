// Small files, read and written whole. All functions are thread-safe; every error names the path.
// Where a `name` in a directory is asked for, it is one component: "", ".", ".." and anything with
// a slash is kInvalidArgument.
#ifndef ASCEND_DRA_BASE_CORE_FILE_H_
#define ASCEND_DRA_BASE_CORE_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/core/unique_fd.h"

namespace ascend {

inline constexpr size_t kDefaultMaxFileSize = 1 << 20;

// The whole content of a regular file. kNotFound if there is none, kOutOfRange if it is larger
// than `max_size` bytes, kFailedPrecondition if it is not a regular file (a FIFO would block).
absl::StatusOr<std::string> ReadFile(const std::string& path,
                                     size_t max_size = kDefaultMaxFileSize);
absl::StatusOr<std::string> ReadFileAt(int dir_fd, const std::string& name,
                                       size_t max_size = kDefaultMaxFileSize);
// The same; `info` gets what fstat() says of the very file that is read.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_size, struct stat* info);

// Opens a directory for the *At functions. Never follows a symlink in the last component.
absl::StatusOr<UniqueFd> OpenDirectory(const std::string& path);

struct AtomicWriteOptions {
  mode_t mode = 0600;   // set exactly, whatever the umask
  bool durable = true;  // fsync the file and its directory before returning
  // Gets what fstat() says of the new file in its place, for whoever wants to know it again; zeros
  // if that cannot be told. Null = nobody.
  struct stat* info = nullptr;
};

// Replaces `name` in the directory: readers see the old or the new content, never a mixture, also
// after a power cut (`durable`). The bytes go to a temporary `.<name>.<random>.tmp` in the same
// directory, which a failure removes again; a crash may leave one behind (RemoveStaleTempFiles).
absl::Status WriteFileAtomicallyAt(int dir_fd, const std::string& name, absl::string_view content,
                                   const AtomicWriteOptions& options = {});
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content,
                                 const AtomicWriteOptions& options = {});

// Removes what crashed WriteFileAtomically calls left in the directory. `name_prefix` limits it to
// temporaries of names that begin so; younger ones than `min_age` may belong to a writer at work in
// another process.
absl::Status RemoveStaleTempFiles(int dir_fd, absl::string_view name_prefix,
                                  absl::Duration min_age);

// Removes a file; one that is not there is a success. `durable` also syncs the directory.
absl::Status RemoveFileAt(int dir_fd, const std::string& name, bool durable);

// Names in the directory without "." and "..", sorted.
absl::StatusOr<std::vector<std::string>> ListDirectory(int dir_fd);
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Creates the directory and its missing parents. A directory that it creates gets exactly `mode`.
// `durable` syncs the parent of each that it creates: without that a power cut may take the
// directory, with all that was written durably inside.
absl::Status MakeDirectories(const std::string& path, mode_t mode = 0755, bool durable = false);

// `directory`/`name` with exactly one slash between.
std::string JoinPath(absl::string_view directory, absl::string_view name);

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_FILE_H_
