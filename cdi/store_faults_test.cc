// Every system call of a write fails once, with a full disk and with an I/O error: the file that is
// there stays as it was or is replaced whole, and nothing half-written is left behind.
//
// The linker puts the functions below in the place of the C library's (--wrap).
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>

#include "absl/strings/match.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "cdi/json.h"
#include "cdi/store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

// The call that fails, counted over all wrapped functions; 0 = none.
int fail_at = 0;
int fail_with = 0;
int calls = 0;
const char* failed = nullptr;

bool Fails(const char* function) {
  if (++calls != fail_at) return false;
  failed = function;
  errno = fail_with;
  return true;
}

}  // namespace

extern "C" {
int __real_openat(int dir, const char* path, int flags, ...);
ssize_t __real_write(int fd, const void* data, size_t size);
int __real_fchmod(int fd, mode_t mode);
int __real_fsync(int fd);
int __real_renameat(int old_dir, const char* old_name, int new_dir, const char* new_name);
int __real_close(int fd);

int __wrap_openat(int dir, const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  return Fails("openat") ? -1 : __real_openat(dir, path, flags, mode);
}
// A full disk takes half of the data before it is full.
ssize_t __wrap_write(int fd, const void* data, size_t size) {
  if (!Fails("write")) return __real_write(fd, data, size);
  if (size > 1 && __real_write(fd, data, size / 2) < 0) return -1;
  errno = fail_with;
  return -1;
}
int __wrap_fchmod(int fd, mode_t mode) { return Fails("fchmod") ? -1 : __real_fchmod(fd, mode); }
int __wrap_fsync(int fd) { return Fails("fsync") ? -1 : __real_fsync(fd); }
int __wrap_renameat(int old_dir, const char* old_name, int new_dir, const char* new_name) {
  return Fails("renameat") ? -1 : __real_renameat(old_dir, old_name, new_dir, new_name);
}
// A close that fails has closed all the same.
int __wrap_close(int fd) {
  const int result = __real_close(fd);
  return Fails("close") ? -1 : result;
}
}

namespace ascend::cdi {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

Spec SpecOf(const std::string& variable) {
  Spec spec;
  spec.kind = "huawei.com/npu";
  spec.devices = {{.name = "npu-0", .annotations = {}, .container_edits = {.env = {variable}}}};
  return spec;
}

struct Fault {
  int error;
  const char* name;
};

class StoreFaultsTest : public ::testing::TestWithParam<Fault> {
 protected:
  StoreFaultsTest() : store_({.directory = dir_.path()}) {}
  ~StoreFaultsTest() override { fail_at = 0; }

  absl::Status WriteFailingAt(int call, const Spec& spec) {
    calls = 0;
    failed = nullptr;
    fail_with = GetParam().error;
    fail_at = call;
    const absl::Status status = store_.Write("a.json", spec, {.durable = true});
    fail_at = 0;
    return status;
  }

  std::string Content() {
    const absl::StatusOr<std::string> text = ReadFile(dir_.File("a.json"));
    return text.ok() ? *text : "";
  }

  TempDir dir_;
  Store store_;
};

TEST_P(StoreFaultsTest, AWriteThatFailsLeavesTheOldOrTheNewFile) {
  const std::string old_text = *WriteJson(SpecOf("A=old"));
  const std::string new_text = *WriteJson(SpecOf("A=new"));
  std::vector<std::string> seen;
  for (int call = 1;; ++call) {
    ASSERT_THAT(store_.Write("a.json", SpecOf("A=old"), {}), IsOk());
    const absl::Status status = WriteFailingAt(call, SpecOf("A=new"));
    if (failed == nullptr) {  // all calls have had their turn
      EXPECT_THAT(status, IsOk());
      break;
    }
    seen.emplace_back(failed);
    EXPECT_THAT(Content(), AnyOf(Eq(old_text), Eq(new_text))) << failed;
    EXPECT_THAT(*ListDirectory(dir_.path()), ElementsAre("a.json")) << failed;
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(dir_.path())) << failed;
      // Writing again is all it takes.
      EXPECT_THAT(store_.Write("a.json", SpecOf("A=new"), {}), IsOk());
    }
    EXPECT_EQ(Content(), new_text) << failed;
  }
  EXPECT_THAT(seen,
              IsSupersetOf({"openat", "write", "fchmod", "fsync", "close", "renameat", "fsync"}));
}

TEST_P(StoreFaultsTest, AFirstWriteThatFailsLeavesNothingOrTheWholeFile) {
  const std::string text = *WriteJson(SpecOf("A=new"));
  for (int call = 1;; ++call) {
    ASSERT_THAT(store_.Remove("a.json"), IsOk());
    const absl::Status status = WriteFailingAt(call, SpecOf("A=new"));
    if (failed == nullptr) break;
    EXPECT_THAT(Content(), AnyOf(IsEmpty(), Eq(text))) << failed;
    EXPECT_EQ(ListDirectory(dir_.path())->size(), Content().empty() ? 0u : 1u) << failed;
    EXPECT_TRUE(status.ok() || absl::StrContains(status.message(), dir_.path())) << status;
  }
}

INSTANTIATE_TEST_SUITE_P(Errors, StoreFaultsTest,
                         ::testing::Values(Fault{ENOSPC, "FullDisk"}, Fault{EIO, "InputOutput"},
                                           Fault{EDQUOT, "Quota"}, Fault{EROFS, "ReadOnly"}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace ascend::cdi
