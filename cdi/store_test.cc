#include "cdi/store.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "cdi/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kName[] = "k8s.npu.huawei.com-claim_u1.json";

Spec ClaimSpec(const std::string& value = "1") {
  Spec spec;
  spec.kind = "k8s.npu.huawei.com/claim";
  ContainerEdits edits;
  edits.env = {"VALUE=" + value};
  edits.device_nodes = {{.path = "/dev/davinci0", .type = "c", .major = 236, .file_mode = 0660}};
  spec.devices = {{"u1-npu-0", {}, edits}};
  return spec;
}

class ScopedUmask {
 public:
  explicit ScopedUmask(mode_t mask) : before_(::umask(mask)) {}
  ~ScopedUmask() { ::umask(before_); }

 private:
  const mode_t before_;
};

// Acts as another, unprivileged user if we are root, whom permissions do not stop.
class ScopedUnprivileged {
 public:
  ScopedUnprivileged() : before_(::geteuid()) {
    if (before_ == 0) {
      EXPECT_EQ(::seteuid(65534), 0);
    }
  }
  ~ScopedUnprivileged() {
    if (before_ == 0) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }

 private:
  const uid_t before_;
};

struct stat StatOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info;
}
mode_t ModeOf(const std::string& path) { return StatOf(path).st_mode; }

// The entries of a directory's inotify log.
class InotifyLog {
 public:
  explicit InotifyLog(const std::string& directory) : fd_(::inotify_init1(IN_NONBLOCK)) {
    EXPECT_GE(::inotify_add_watch(fd_.get(), directory.c_str(), IN_ALL_EVENTS & ~IN_ACCESS), 0);
  }
  std::vector<std::pair<uint32_t, std::string>> Read() {
    std::vector<std::pair<uint32_t, std::string>> events;
    alignas(inotify_event) char buffer[8192];
    for (ssize_t length; (length = ::read(fd_.get(), buffer, sizeof(buffer))) > 0;) {
      for (const char* at = buffer; at < buffer + length;) {
        inotify_event event;
        std::memcpy(&event, at, sizeof(event));
        events.emplace_back(event.mask, event.len == 0 ? "" : at + sizeof(event));
        at += sizeof(event) + event.len;
      }
    }
    return events;
  }

 private:
  UniqueFd fd_;
};

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() { EXPECT_THAT(store_.Prepare(), IsOk()); }
  ~StoreTest() override {  // so that they can be removed
    ::chmod(temp_.path().c_str(), 0755);
    ::chmod(dir_.c_str(), 0755);
  }

  TempDir temp_;
  const std::string dir_ = temp_.File("run/cdi");
  const Store store_{{.directory = dir_}};
};

TEST_F(StoreTest, WritesAFileThatRuntimesCanRead) {
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  const std::string text = *ReadFile(JoinPath(dir_, kName));
  EXPECT_THAT(WriteJson(ClaimSpec()), IsOkAndHolds(text));
  EXPECT_EQ(ModeOf(JoinPath(dir_, kName)), S_IFREG | 0644);
  EXPECT_TRUE(store_.Holds(kName, ClaimSpec()));
  EXPECT_THAT(ListDirectory(dir_), IsOkAndHolds(ElementsAre(kName)));
}

TEST_F(StoreTest, ModesDoNotDependOnTheUmask) {
  for (const mode_t mask : {077, 0, 022}) {
    const ScopedUmask umask(mask);
    const std::string directory = temp_.File(absl::StrCat("umask/", mask, "/cdi"));
    const Store store({.directory = directory});
    ASSERT_THAT(store.Prepare(), IsOk());
    ASSERT_THAT(store.Write(kName, ClaimSpec(), {.durable = true}), IsOk());
    EXPECT_EQ(ModeOf(directory), S_IFDIR | 0755);
    EXPECT_EQ(ModeOf(JoinPath(directory, kName)), S_IFREG | 0644);
  }
}

TEST_F(StoreTest, AWatcherSeesOneMoveAndNoOtherSpecFile) {
  InotifyLog log(dir_);
  for (int i = 0; i < 2; ++i) {  // the second replaces a file
    ASSERT_THAT(store_.Write(kName, ClaimSpec(absl::StrCat(i)), {}), IsOk());
    int moves_in = 0;
    for (const auto& [mask, name] : log.Read()) {
      if (absl::EndsWith(name, ".json") || absl::EndsWith(name, ".yaml")) {
        EXPECT_EQ(name, kName);
        // Opened and closed: the look at what is already there.
        EXPECT_EQ(mask & ~uint32_t{IN_OPEN | IN_CLOSE_NOWRITE | IN_MOVED_TO}, 0u) << mask;
      }
      if ((mask & IN_MOVED_TO) != 0) ++moves_in;
    }
    EXPECT_EQ(moves_in, 1);
  }
}

TEST_F(StoreTest, IdenticalContentIsNotWrittenAgain) {
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  const ino_t inode = StatOf(JoinPath(dir_, kName)).st_ino;
  InotifyLog log(dir_);
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  EXPECT_EQ(StatOf(JoinPath(dir_, kName)).st_ino, inode);
  for (const auto& [mask, name] : log.Read()) {
    EXPECT_EQ(mask & (IN_CREATE | IN_MOVED_TO | IN_MODIFY), 0u) << name;
  }
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {.rewrite_identical = true}), IsOk());
  EXPECT_THAT(log.Read(), testing::Contains(Pair(IN_MOVED_TO, kName)));
}

TEST_F(StoreTest, WhatLooksIdenticalButIsNotOurFileIsReplaced) {
  const std::string path = JoinPath(dir_, kName);
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_FALSE(store_.Holds(kName, ClaimSpec()));
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  EXPECT_EQ(ModeOf(path), S_IFREG | 0644);

  ASSERT_EQ(::rename(path.c_str(), temp_.File("planted").c_str()), 0);
  ASSERT_EQ(::symlink(temp_.File("planted").c_str(), path.c_str()), 0);
  EXPECT_FALSE(store_.Holds(kName, ClaimSpec()));
  ASSERT_THAT(store_.Write(kName, ClaimSpec("2"), {}), IsOk());
  EXPECT_EQ(ModeOf(path), S_IFREG | 0644);
  EXPECT_THAT(ReadFile(temp_.File("planted")), IsOkAndHolds(*WriteJson(ClaimSpec())));

  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0644), 0);
  EXPECT_FALSE(store_.Holds(kName, ClaimSpec()));
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  EXPECT_TRUE(store_.Holds(kName, ClaimSpec()));
}

TEST_F(StoreTest, ARefusedSpecChangesNothing) {
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  Spec bad = ClaimSpec();
  bad.devices[0].container_edits.device_nodes[0].path = "dev/x";
  EXPECT_THAT(store_.Write(kName, bad, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(JoinPath(dir_, kName)),
                             HasSubstr("devices[0].containerEdits.deviceNodes[0].path"))));
  EXPECT_TRUE(store_.Holds(kName, ClaimSpec()));
  EXPECT_FALSE(store_.Holds(kName, bad));
  EXPECT_THAT(ListDirectory(dir_), IsOkAndHolds(ElementsAre(kName)));
}

TEST_F(StoreTest, BadFileNamesAreRefused) {
  for (const std::string& name :
       {std::string(), std::string(".json"), std::string("a"), std::string("a.yaml"),
        std::string("a.JSON"), std::string(".a.json"), std::string("../a.json"),
        std::string("a/b.json"), std::string("a\n.json"), std::string("a\0.json", 7),
        std::string(229, 'a') + ".json"}) {
    EXPECT_THAT(store_.Write(name, ClaimSpec(), {}), StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
    EXPECT_THAT(store_.Remove(name), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
    EXPECT_FALSE(store_.Holds(name, ClaimSpec()));
  }
  EXPECT_THAT(store_.Write(std::string(228, 'a') + ".json", ClaimSpec(), {}), IsOk());
}

TEST_F(StoreTest, AReaderNeverSeesHalfAFile) {
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_THAT(store_.Write(kName, ClaimSpec(std::string(1 + i % 3 * 1000, 'x')), {}), IsOk());
    }
    done = true;
  });
  int reads = 0;
  while (!done) {
    const absl::StatusOr<std::string> text = ReadFile(JoinPath(dir_, kName));
    ASSERT_THAT(text, IsOk());
    ASSERT_THAT(ReadJson(*text), IsOk());
    ++reads;
  }
  writer.join();
  EXPECT_GT(reads, 0);
  EXPECT_THAT(ListDirectory(dir_), IsOkAndHolds(ElementsAre(kName)));
}

TEST_F(StoreTest, RemovesItsFileOnly) {
  ASSERT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  ASSERT_THAT(store_.Write("k8s.npu.huawei.com-claim_u12.json", ClaimSpec(), {}), IsOk());
  EXPECT_THAT(store_.Remove(kName), IsOk());
  EXPECT_THAT(store_.Remove(kName), IsOk());
  EXPECT_FALSE(store_.Holds(kName, ClaimSpec()));
  EXPECT_THAT(ListDirectory(dir_), IsOkAndHolds(ElementsAre("k8s.npu.huawei.com-claim_u12.json")));
}

TEST_F(StoreTest, ListsSpecFilesOfAPrefix) {
  for (const char* name : {"p_b.json", "p_a.json", "q_a.json", "p_c.yaml", "p_d.json.tmp",
                           ".p_e.json.0123456789abcdef.tmp"}) {
    ASSERT_THAT(WriteFileAtomically(JoinPath(dir_, name), "x"), IsOk());
  }
  EXPECT_THAT(store_.List("p_"), IsOkAndHolds(ElementsAre("p_a.json", "p_b.json")));
  EXPECT_THAT(store_.List(""), IsOkAndHolds(ElementsAre("p_a.json", "p_b.json", "q_a.json")));
}

TEST_F(StoreTest, SweepsTemporariesOfItsPrefix) {
  for (const char* name : {".p_a.json.0123456789abcdef.tmp", ".q_a.json.0123456789abcdef.tmp"}) {
    ASSERT_THAT(WriteFileAtomically(JoinPath(dir_, name), "x"), IsOk());
  }
  ASSERT_THAT(store_.RemoveStaleTempFiles("p_", absl::ZeroDuration()), IsOk());
  EXPECT_THAT(ListDirectory(dir_), IsOkAndHolds(ElementsAre(".q_a.json.0123456789abcdef.tmp")));
}

TEST_F(StoreTest, ADirectoryThatVanishedComesBackWithTheNextWrite) {
  ASSERT_EQ(::rmdir(dir_.c_str()), 0);
  EXPECT_THAT(store_.List(""), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(store_.Remove(kName), IsOk());
  EXPECT_THAT(store_.RemoveStaleTempFiles("", absl::ZeroDuration()), IsOk());
  EXPECT_FALSE(store_.Holds(kName, ClaimSpec()));
  EXPECT_THAT(store_.Write(kName, ClaimSpec(), {}), IsOk());
  EXPECT_TRUE(store_.Holds(kName, ClaimSpec()));
}

// Somebody empties the directory, or removes it, while files are written.
TEST_F(StoreTest, WritesWhileTheDirectoryIsEmptied) {
  std::atomic<int> written = 0;
  constexpr int kFiles = 1500;
  std::thread cleaner([&] {
    // At most once per file: against somebody who never rests, nobody could write.
    for (int seen = 0; seen < kFiles; seen = written) {
      for (const std::string& name :
           ListDirectory(store_.directory()).value_or(std::vector<std::string>())) {
        ::unlink(JoinPath(store_.directory(), name).c_str());
      }
      ::rmdir(store_.directory().c_str());
      while (written == seen) std::this_thread::yield();
    }
  });
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_THAT(store_.Write(kName, ClaimSpec(absl::StrCat(i)), {.durable = false}), IsOk());
    ++written;
  }
  cleaner.join();
}

TEST_F(StoreTest, AReadOnlyDirectorySaysWhatToDo) {
  ASSERT_EQ(::chmod(temp_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(dir_.c_str(), 0555), 0);
  const ScopedUnprivileged unprivileged;
  EXPECT_THAT(store_.Prepare(), StatusIs(absl::StatusCode::kPermissionDenied,
                                         AllOf(HasSubstr(dir_), HasSubstr("not writable"),
                                               HasSubstr("mount it read-write"))));
  EXPECT_THAT(store_.Write(kName, ClaimSpec(), {}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(dir_)));
}

TEST_F(StoreTest, AMissingDirectoryThatCannotBeCreatedSaysWhatToDo) {
  ASSERT_EQ(::chmod(temp_.path().c_str(), 0555), 0);
  const ScopedUnprivileged unprivileged;
  const Store store({.directory = temp_.File("none/cdi")});
  EXPECT_THAT(store.Prepare(), StatusIs(absl::StatusCode::kPermissionDenied,
                                        AllOf(HasSubstr(temp_.File("none/cdi")),
                                              HasSubstr("missing"), HasSubstr("create it"))));
}

TEST_F(StoreTest, ADirectoryThatOthersMayWriteToIsRefused) {
  for (const mode_t mode : {0775, 0757, 01777}) {
    ASSERT_EQ(::chmod(dir_.c_str(), mode), 0);
    for (const absl::Status& status : {store_.Prepare(), store_.Write(kName, ClaimSpec(), {})}) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kPermissionDenied,
                                   AllOf(HasSubstr(dir_), HasSubstr("chmod go-w"))));
    }
    const Store trusting({.directory = dir_, .check_directory_mode = false});
    EXPECT_THAT(trusting.Prepare(), IsOk());
    EXPECT_THAT(trusting.Write(kName, ClaimSpec(), {}), IsOk());
    EXPECT_THAT(store_.Remove(kName), IsOk());  // taking away is always right
  }
}

TEST_F(StoreTest, AForeignDirectoryIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(::chown(dir_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(store_.Prepare(), StatusIs(absl::StatusCode::kPermissionDenied,
                                         AllOf(HasSubstr("65534"), HasSubstr("chown root"))));
}

TEST_F(StoreTest, ALinkOrAFileInPlaceOfTheDirectoryIsRefused) {
  ASSERT_EQ(::symlink(dir_.c_str(), temp_.File("link").c_str()), 0);
  ASSERT_THAT(WriteFileAtomically(temp_.File("file"), ""), IsOk());
  for (const char* name : {"link", "link/", "file"}) {
    const Store store({.directory = temp_.File(name)});
    EXPECT_THAT(store.Prepare(), StatusIs(absl::StatusCode::kFailedPrecondition)) << name;
    EXPECT_THAT(store.Write(kName, ClaimSpec(), {}),
                StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(store.Remove(kName), StatusIs(absl::StatusCode::kFailedPrecondition));
    EXPECT_THAT(store.List(""), StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

}  // namespace
}  // namespace ascend::cdi
