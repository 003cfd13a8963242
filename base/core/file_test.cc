#include "base/core/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>

#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Sets the umask for one scope; it belongs to the whole process.
class ScopedUmask {
 public:
  explicit ScopedUmask(mode_t mask) : before_(::umask(mask)) {}
  ~ScopedUmask() { ::umask(before_); }

 private:
  const mode_t before_;
};

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info.st_mode;
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() : dir_fd_(std::move(OpenDirectory(dir_.path()).value())) {}

  TempDir dir_;
  UniqueFd dir_fd_;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  const std::string content("a\0b\n", 4);
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), content), IsOk());
  EXPECT_THAT(ReadFile(dir_.File("f")), IsOkAndHolds(content));
  EXPECT_THAT(ReadFileAt(dir_fd_.get(), "f"), IsOkAndHolds(content));
}

TEST_F(FileTest, ReadsAnEmptyFileAndAProcFile) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), ""), IsOk());
  EXPECT_THAT(ReadFile(dir_.File("f")), IsOkAndHolds(std::string()));
  EXPECT_THAT(ReadFile("/proc/self/comm"), IsOkAndHolds(HasSubstr("\n")));  // st_size is 0
}

TEST_F(FileTest, ReadingAMissingFileNamesThePath) {
  EXPECT_THAT(ReadFile(dir_.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_.File("none"))));
  EXPECT_THAT(ReadFileAt(dir_fd_.get(), "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_.File("none"))));
}

TEST_F(FileTest, TheSizeLimitIsExact) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), std::string(20000, 'x')), IsOk());
  EXPECT_THAT(ReadFile(dir_.File("f"), 20000), IsOkAndHolds(std::string(20000, 'x')));
  EXPECT_THAT(ReadFile(dir_.File("f"), 19999),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr(dir_.File("f")), HasSubstr("19999"))));
  EXPECT_THAT(ReadFile(dir_.File("f"), 0), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(FileTest, ReadingAnythingButAFileNeitherBlocksNorOpensIt) {
  ASSERT_EQ(::mkfifo(dir_.File("fifo").c_str(), 0600), 0);
  ASSERT_EQ(::symlink("fifo", dir_.File("link").c_str()), 0);
  ASSERT_EQ(::mkdir(dir_.File("d").c_str(), 0700), 0);
  for (const std::string& path :
       {dir_.File("fifo"), dir_.File("link"), dir_.File("d"), std::string("/dev/null")}) {
    EXPECT_THAT(ReadFile(path), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(path)));
  }
  EXPECT_THAT(ReadFileAt(dir_fd_.get(), "fifo"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(FileTest, ReadFollowsALinkToAFile) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), "x"), IsOk());
  ASSERT_EQ(::symlink("f", dir_.File("link").c_str()), 0);
  EXPECT_THAT(ReadFile(dir_.File("link")), IsOkAndHolds(std::string("x")));
}

TEST_F(FileTest, AtFunctionsStayInTheirDirectory) {
  ASSERT_THAT(MakeDirectories(dir_.File("d")), IsOk());
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), "x"), IsOk());
  const UniqueFd sub = std::move(OpenDirectory(dir_.File("d")).value());
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("../f"), dir_.File("f"),
        std::string("a/b"), std::string("f\0g", 3)}) {
    EXPECT_THAT(ReadFileAt(sub.get(), name), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
    EXPECT_THAT(WriteFileAtomicallyAt(sub.get(), name, "y"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(dir_.File("d"))))
        << name;
    EXPECT_THAT(RemoveFileAt(sub.get(), name, false), StatusIs(absl::StatusCode::kInvalidArgument))
        << name;
  }
  EXPECT_THAT(ReadFile(dir_.File("f")), IsOkAndHolds(std::string("x")));
}

TEST_F(FileTest, OpenDirectoryRefusesLinksAndFiles) {
  ASSERT_EQ(::symlink(dir_.path().c_str(), dir_.File("link").c_str()), 0);
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), ""), IsOk());
  EXPECT_THAT(OpenDirectory(dir_.File("link")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("symbolic link")));
  EXPECT_THAT(OpenDirectory(dir_.File("link/")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("symbolic link")));
  EXPECT_THAT(OpenDirectory(dir_.File("f")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not a directory")));
  EXPECT_THAT(OpenDirectory(dir_.File("none")), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(OpenDirectory(dir_.path() + "//"), IsOk());
  EXPECT_THAT(OpenDirectory("/"), IsOk());
}

TEST_F(FileTest, TheModeIsExactWhateverTheUmask) {
  for (const mode_t mask : {0, 022, 077}) {
    const ScopedUmask umask(mask);
    for (const mode_t mode : {0600, 0644, 0666}) {
      ASSERT_THAT(WriteFileAtomically(dir_.File("f"), "x", {.mode = mode}), IsOk());
      EXPECT_EQ(ModeOf(dir_.File("f")), S_IFREG | mode) << mask;
    }
  }
}

TEST_F(FileTest, AWriteLeavesNothingElseBehind) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), "old"), IsOk());
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), "new", {.durable = false}), IsOk());
  EXPECT_THAT(ReadFile(dir_.File("f")), IsOkAndHolds(std::string("new")));
  EXPECT_THAT(ListDirectory(dir_fd_.get()), IsOkAndHolds(ElementsAre("f")));
}

TEST_F(FileTest, AWriteReplacesAPlantedLinkInsteadOfFollowingIt) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("victim"), "x"), IsOk());
  ASSERT_EQ(::symlink("victim", dir_.File("f").c_str()), 0);
  ASSERT_THAT(WriteFileAtomicallyAt(dir_fd_.get(), "f", "y"), IsOk());
  EXPECT_THAT(ReadFile(dir_.File("victim")), IsOkAndHolds(std::string("x")));
  EXPECT_TRUE(S_ISREG(ModeOf(dir_.File("f"))));
}

TEST_F(FileTest, AFailedRenameRemovesTheTemporary) {
  ASSERT_THAT(MakeDirectories(dir_.File("f/in-the-way")), IsOk());
  EXPECT_THAT(
      WriteFileAtomically(dir_.File("f"), "x"),
      StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr(dir_.File("f")), HasSubstr("rename"))));
  EXPECT_THAT(ListDirectory(dir_.path()), IsOkAndHolds(ElementsAre("f")));
}

TEST_F(FileTest, AFailedWriteLeavesTheOldContent) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), "old"), IsOk());
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomically(dir_.File("f"), std::string(1000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr(dir_.File("f"))));
  EXPECT_THAT(ReadFile(dir_.File("f")), IsOkAndHolds(std::string("old")));
  EXPECT_THAT(ListDirectory(dir_.path()), IsOkAndHolds(ElementsAre("f")));
}

TEST_F(FileTest, WritingIntoAMissingDirectoryNamesThePath) {
  EXPECT_THAT(WriteFileAtomically(dir_.File("none/f"), "x"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_.File("none/f"))));
}

TEST_F(FileTest, WritingIntoARemovedDirectoryFails) {
  ASSERT_THAT(MakeDirectories(dir_.File("d")), IsOk());
  const UniqueFd sub = std::move(OpenDirectory(dir_.File("d")).value());
  ASSERT_EQ(::rmdir(dir_.File("d").c_str()), 0);
  EXPECT_THAT(WriteFileAtomicallyAt(sub.get(), "f", "x"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(FileTest, AReaderSeesTheOldOrTheNewContent) {
  const std::string a(50000, 'a');
  const std::string b(70000, 'b');
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), a), IsOk());
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 300; ++i) {
      EXPECT_THAT(WriteFileAtomically(dir_.File("f"), i % 2 == 0 ? b : a, {.durable = false}),
                  IsOk());
    }
    done = true;
  });
  while (!done) {
    const absl::StatusOr<std::string> read = ReadFile(dir_.File("f"));
    EXPECT_THAT(read, IsOk());
    EXPECT_TRUE(read.ok() && (*read == a || *read == b));
  }
  writer.join();
}

TEST_F(FileTest, SweepsStaleTemporariesOfItsPrefixOnly) {
  const std::string random = ".0123456789abcdef.tmp";
  for (const std::string& name :
       {".mine-1" + random, ".mine-2.json" + random, ".other" + random, "mine" + random,
        std::string(".mine-1.0123456789ABCDEF.tmp"), std::string(".mine-1.tmp"),
        std::string("mine-1"), std::string(".mine-1.0123456789abcdef.json")}) {
    ASSERT_THAT(WriteFileAtomically(dir_.File(name), "x"), IsOk());
  }
  ASSERT_THAT(MakeDirectories(dir_.File(".mine-d" + random)), IsOk());
  ASSERT_EQ(::symlink("mine-1", dir_.File(".mine-l" + random).c_str()), 0);
  ASSERT_THAT(RemoveStaleTempFiles(dir_fd_.get(), "mine-", absl::ZeroDuration()), IsOk());
  EXPECT_THAT(
      ListDirectory(dir_fd_.get()),
      IsOkAndHolds(ElementsAre(".mine-1.0123456789ABCDEF.tmp", ".mine-1.0123456789abcdef.json",
                               ".mine-1.tmp", ".mine-d" + random, ".mine-l" + random,
                               ".other" + random, "mine-1", "mine" + random)));
}

TEST_F(FileTest, SweepsWhatACrashedWriterLeft) {
  // The child dies between the write and the rename: its file size limit is hit, SIGXFSZ kills it.
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit small = {100, 100};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const rlimit no_core = {0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    (void)WriteFileAtomically(dir_.File("f"), std::string(1000, 'x'));
    ::_exit(0);
  }
  int result = 0;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  ASSERT_TRUE(WIFSIGNALED(result));
  ASSERT_EQ(ListDirectory(dir_.path())->size(), 1u);
  ASSERT_THAT(RemoveStaleTempFiles(dir_fd_.get(), "f", absl::ZeroDuration()), IsOk());
  EXPECT_THAT(ListDirectory(dir_.path()), IsOkAndHolds(IsEmpty()));
}

TEST_F(FileTest, RemovingIsIdempotentAndNeverFollowsALink) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), "x"), IsOk());
  ASSERT_EQ(::symlink("f", dir_.File("link").c_str()), 0);
  EXPECT_THAT(RemoveFileAt(dir_fd_.get(), "link", /*durable=*/true), IsOk());
  EXPECT_THAT(ListDirectory(dir_.path()), IsOkAndHolds(ElementsAre("f")));
  EXPECT_THAT(RemoveFileAt(dir_fd_.get(), "f", /*durable=*/false), IsOk());
  EXPECT_THAT(RemoveFileAt(dir_fd_.get(), "f", /*durable=*/true), IsOk());
}

TEST_F(FileTest, RemovingADirectoryIsAnErrorWithThePath) {
  ASSERT_THAT(MakeDirectories(dir_.File("d")), IsOk());
  EXPECT_THAT(RemoveFileAt(dir_fd_.get(), "d", false),
              StatusIs(absl::StatusCode::kInternal, HasSubstr(dir_.File("d"))));
}

TEST_F(FileTest, ListsSortedAndAgain) {
  for (const char* name : {"b", "a", ".c"}) {
    ASSERT_THAT(WriteFileAtomically(dir_.File(name), ""), IsOk());
  }
  EXPECT_THAT(ListDirectory(dir_fd_.get()), IsOkAndHolds(ElementsAre(".c", "a", "b")));
  EXPECT_THAT(ListDirectory(dir_fd_.get()), IsOkAndHolds(ElementsAre(".c", "a", "b")));
  EXPECT_THAT(ListDirectory(dir_.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir_.File("none"))));
}

TEST_F(FileTest, MakesDirectoriesWithTheExactMode) {
  const ScopedUmask umask(077);
  ASSERT_THAT(MakeDirectories(dir_.File("a/b//c/"), 0751), IsOk());
  EXPECT_EQ(ModeOf(dir_.File("a")), S_IFDIR | 0751);
  EXPECT_EQ(ModeOf(dir_.File("a/b")), S_IFDIR | 0751);
  EXPECT_EQ(ModeOf(dir_.File("a/b/c")), S_IFDIR | 0751);
  // What exists keeps its mode.
  ASSERT_THAT(MakeDirectories(dir_.File("a/b"), 0700), IsOk());
  EXPECT_EQ(ModeOf(dir_.File("a/b")), S_IFDIR | 0751);
}

TEST_F(FileTest, MakesDirectoriesBelowALink) {
  ASSERT_THAT(MakeDirectories(dir_.File("real")), IsOk());
  ASSERT_EQ(::symlink("real", dir_.File("link").c_str()), 0);
  ASSERT_THAT(MakeDirectories(dir_.File("link/d")), IsOk());
  EXPECT_TRUE(S_ISDIR(ModeOf(dir_.File("real/d"))));
}

TEST_F(FileTest, RefusesToMakeADirectoryWhereSomethingElseIs) {
  ASSERT_THAT(WriteFileAtomically(dir_.File("f"), ""), IsOk());
  ASSERT_EQ(::symlink("nowhere", dir_.File("dangling").c_str()), 0);
  EXPECT_THAT(MakeDirectories(dir_.File("f")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(dir_.File("f"))));
  EXPECT_THAT(MakeDirectories(dir_.File("f/d")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(dir_.File("f"))));
  EXPECT_THAT(MakeDirectories(dir_.File("dangling")),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(MakeDirectories(""), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(JoinPathTest, PutsExactlyOneSlashBetween) {
  EXPECT_EQ(JoinPath("/a", "b"), "/a/b");
  EXPECT_EQ(JoinPath("/a/", "/b"), "/a/b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("/host", "/dev/davinci0"), "/host/dev/davinci0");
  EXPECT_EQ(JoinPath("a", "b/c"), "a/b/c");
}

}  // namespace
}  // namespace ascend
