#include "base/core/temp_dir.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/core/file.h"

namespace ascend {

TempDir::TempDir() : TempDir("/tmp") {}

TempDir::TempDir(const char* parent) : path_(JoinPath(parent, "ascend-XXXXXX")) {
  if (::mkdtemp(path_.data()) == nullptr) abort();
}

TempDir TempDir::InMemory() {
  constexpr char kMemory[] = "/dev/shm";
  return TempDir(::access(kMemory, W_OK | X_OK) == 0 ? kMemory : "/tmp");
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::File(absl::string_view name) const { return JoinPath(path_, name); }

}  // namespace ascend
