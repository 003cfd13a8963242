#include "base/core/temp_dir.h"

#include <stdlib.h>

#include <filesystem>

#include "base/core/file.h"

namespace ascend {

TempDir::TempDir() {
  char name[] = "/tmp/ascend-XXXXXX";
  if (::mkdtemp(name) == nullptr) abort();
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::File(absl::string_view name) const { return JoinPath(path_, name); }

}  // namespace ascend
