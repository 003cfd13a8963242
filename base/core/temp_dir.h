// A directory of a test's own, removed with all it holds when the object goes.
#ifndef ASCEND_DRA_BASE_CORE_TEMP_DIR_H_
#define ASCEND_DRA_BASE_CORE_TEMP_DIR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace ascend {

class TempDir {
 public:
  TempDir();
  // In memory where the system has such a place, else as above: for tests that write so much that
  // the disk would be what they measure.
  static TempDir InMemory();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  // Short enough for a unix socket below it.
  const std::string& path() const { return path_; }
  std::string File(absl::string_view name) const;

 private:
  explicit TempDir(const char* parent);
  std::string path_;
};

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_TEMP_DIR_H_
