#include "base/core/directory_watch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(20);

// Counts the calls of a watch.
class Observer {
 public:
  explicit Observer(const std::string& path) {
    absl::StatusOr<std::unique_ptr<DirectoryWatch>> watch = DirectoryWatch::Start(path, [this] {
      MutexLock lock(&mutex_);
      ++calls_;
      called_.SignalAll();
    });
    EXPECT_THAT(watch, IsOk());
    if (watch.ok()) watch_ = *std::move(watch);
  }

  int calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }

  // Runs `action` and returns whether a call followed it.
  bool SeesAfter(const std::function<void()>& action) {
    const int before = calls();
    action();
    const absl::Time deadline = absl::Now() + kPatience;
    MutexLock lock(&mutex_);
    while (calls_ == before && absl::Now() < deadline) {
      called_.WaitFor(&mutex_, deadline - absl::Now());
    }
    return calls_ != before;
  }

  void Stop() { watch_.reset(); }

 private:
  Mutex mutex_;
  CondVar called_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<DirectoryWatch> watch_;
};

void Touch(const std::string& path, const std::string& text = "x") {
  std::ofstream file(path);
  file << text;
  ASSERT_TRUE(file.good()) << path;
}

void Rename(const std::string& from, const std::string& to) {
  ASSERT_EQ(::rename(from.c_str(), to.c_str()), 0) << from;
}

void MakeDir(const std::string& path) { ASSERT_THAT(MakeDirectories(path), IsOk()); }
void RemoveAll(const std::string& path) { std::filesystem::remove_all(path); }

class DirectoryWatchTest : public ::testing::Test {
 protected:
  DirectoryWatchTest() { MakeDir(dir_); }

  // So many events, without a load on the disk. Two files, as the kernel merges equal events.
  void WriteTimes(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string path = dir_ + (i % 2 == 0 ? "/even" : "/odd");
      const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      ASSERT_TRUE(fd.valid()) << path;
    }
  }

  TempDir temp_;
  const std::string dir_ = temp_.File("p/q/d");
};

TEST_F(DirectoryWatchTest, SeesEveryKindOfChange) {
  Touch(temp_.File("elsewhere"));
  Observer observer(dir_);
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a", "other"); }));
  EXPECT_TRUE(observer.SeesAfter([&] { Rename(dir_ + "/a", dir_ + "/b"); }));
  EXPECT_TRUE(observer.SeesAfter([&] { Rename(dir_ + "/b", temp_.File("b")); }));
  EXPECT_TRUE(observer.SeesAfter([&] { Rename(temp_.File("b"), dir_ + "/b"); }));
  EXPECT_TRUE(observer.SeesAfter([&] { ::unlink((dir_ + "/b").c_str()); }));
  EXPECT_TRUE(observer.SeesAfter([&] { MakeDir(dir_ + "/sub"); }));
  EXPECT_TRUE(observer.SeesAfter([&] { ::symlink("x", (dir_ + "/l").c_str()); }));
  EXPECT_TRUE(
      observer.SeesAfter([&] { ::link(temp_.File("elsewhere").c_str(), (dir_ + "/h").c_str()); }));
  EXPECT_TRUE(
      observer.SeesAfter([&] { EXPECT_THAT(WriteFileAtomically(dir_ + "/w", "x"), IsOk()); }));
}

TEST_F(DirectoryWatchTest, ADirectoryThatAppearsLater) {
  RemoveAll(temp_.File("p"));
  Observer observer(dir_);
  EXPECT_TRUE(observer.SeesAfter([&] { MakeDir(dir_); }));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
}

TEST_F(DirectoryWatchTest, ADirectoryThatAppearsStepByStep) {
  RemoveAll(temp_.File("p"));
  Observer observer(dir_);
  MakeDir(temp_.File("p"));
  MakeDir(temp_.File("p/q"));
  EXPECT_TRUE(observer.SeesAfter([&] { MakeDir(dir_); }));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
}

TEST_F(DirectoryWatchTest, ADirectoryThatIsRemovedAndMadeAgain) {
  Observer observer(dir_);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(observer.SeesAfter([&] { RemoveAll(dir_); }));
    EXPECT_TRUE(observer.SeesAfter([&] { MakeDir(dir_); }));
    EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
  }
}

TEST_F(DirectoryWatchTest, ADirectoryThatIsReplacedAtOnce) {
  Observer observer(dir_);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(observer.SeesAfter([&] {
      ::rmdir(dir_.c_str());
      ::mkdir(dir_.c_str(), 0755);
    }));
    EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
    EXPECT_TRUE(observer.SeesAfter([&] { ::unlink((dir_ + "/a").c_str()); }));
  }
}

TEST_F(DirectoryWatchTest, AParentThatIsRenamedAwayAndReplaced) {
  Observer observer(dir_);
  EXPECT_TRUE(observer.SeesAfter([&] { Rename(temp_.File("p"), temp_.File("away")); }));
  EXPECT_TRUE(observer.SeesAfter([&] { MakeDir(dir_); }));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
  // The old directory is not ours any more. A change in ours ends the wait for its absence.
  const int before = observer.calls();
  Touch(temp_.File("away/q/d/old"));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/b"); }));
  EXPECT_LE(observer.calls(), before + 3);
}

TEST_F(DirectoryWatchTest, ALinkOnTheWayThatIsPointedElsewhere) {
  MakeDir(temp_.File("one/d"));
  MakeDir(temp_.File("two/d"));
  ASSERT_EQ(::symlink("one", temp_.File("current").c_str()), 0);
  Observer observer(temp_.File("current/d"));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(temp_.File("one/d/a")); }));
  EXPECT_TRUE(observer.SeesAfter([&] {
    ASSERT_EQ(::symlink(temp_.File("two").c_str(), temp_.File("next").c_str()), 0);
    Rename(temp_.File("next"), temp_.File("current"));
  }));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(temp_.File("two/d/a")); }));
  // The target of the link goes and comes back.
  EXPECT_TRUE(observer.SeesAfter([&] { RemoveAll(temp_.File("two")); }));
  EXPECT_TRUE(observer.SeesAfter([&] { MakeDir(temp_.File("two/d")); }));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(temp_.File("two/d/a")); }));
}

TEST_F(DirectoryWatchTest, ALinkThatLeadsBackThroughItsOwnDirectory) {
  ASSERT_EQ(::symlink("../q/./d", temp_.File("p/q/link").c_str()), 0);
  Observer observer(temp_.File("p/q/link"));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
}

TEST_F(DirectoryWatchTest, ALoopOfLinksIsAMissingDirectory) {
  ASSERT_EQ(::symlink("loop", temp_.File("loop").c_str()), 0);
  Observer observer(temp_.File("loop"));
  EXPECT_TRUE(observer.SeesAfter([&] {
    ::unlink(temp_.File("loop").c_str());
    MakeDir(temp_.File("loop"));
  }));
}

TEST_F(DirectoryWatchTest, AFileInPlaceOfTheDirectoryIsAMissingDirectory) {
  RemoveAll(dir_);
  Touch(dir_);
  Observer observer(dir_);
  EXPECT_TRUE(observer.SeesAfter([&] {
    ::unlink(dir_.c_str());
    MakeDir(dir_);
  }));
}

TEST_F(DirectoryWatchTest, NeighboursOnTheWayAreIgnored) {
  Observer observer(dir_);
  for (int i = 0; i < 100; ++i) Touch(temp_.File("p/q/neighbour-" + std::to_string(i)));
  for (int i = 0; i < 100; ++i) Touch(temp_.File("neighbour-" + std::to_string(i)));
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
  EXPECT_LE(observer.calls(), 2);  // Touch is two changes: created, written
}

// A watch whose calls do not return before Release().
class HeldObserver {
 public:
  explicit HeldObserver(const std::string& path) {
    absl::StatusOr<std::unique_ptr<DirectoryWatch>> watch = DirectoryWatch::Start(path, [this] {
      MutexLock lock(&mutex_);
      ++calls_;
      changed_.SignalAll();
      while (held_) changed_.Wait(&mutex_);
    });
    EXPECT_THAT(watch, IsOk());
    if (watch.ok()) watch_ = *std::move(watch);
  }

  void Release() {
    MutexLock lock(&mutex_);
    held_ = false;
    changed_.SignalAll();
  }

  // Waits for at least `count` calls in all, and returns how many there were.
  int WaitForCalls(int count) {
    const absl::Time deadline = absl::Now() + kPatience;
    MutexLock lock(&mutex_);
    while (calls_ < count && absl::Now() < deadline) {
      changed_.WaitFor(&mutex_, deadline - absl::Now());
    }
    return calls_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = true;
  std::unique_ptr<DirectoryWatch> watch_;
};

TEST_F(DirectoryWatchTest, AChangeDuringTheCallIsNotLost) {
  HeldObserver observer(dir_);
  MakeDir(dir_ + "/a");
  ASSERT_EQ(observer.WaitForCalls(1), 1);
  MakeDir(dir_ + "/b");
  observer.Release();
  EXPECT_EQ(observer.WaitForCalls(2), 2);
}

// Somebody may have kept something in it, and wants it back.
TEST_F(DirectoryWatchTest, ADirectoryThatCameAndWentBetweenTwoLooks) {
  HeldObserver observer(dir_);
  RemoveAll(dir_);
  ASSERT_EQ(observer.WaitForCalls(1), 1);
  MakeDir(dir_);
  Touch(dir_ + "/a");
  RemoveAll(dir_);
  observer.Release();
  EXPECT_EQ(observer.WaitForCalls(2), 2);
}

TEST_F(DirectoryWatchTest, ABurstIsMerged) {
  HeldObserver observer(dir_);
  MakeDir(dir_ + "/a");
  ASSERT_EQ(observer.WaitForCalls(1), 1);
  WriteTimes(1000);
  observer.Release();
  ASSERT_EQ(observer.WaitForCalls(2), 2);
  MakeDir(dir_ + "/c");
  EXPECT_EQ(observer.WaitForCalls(3), 3);
}

TEST_F(DirectoryWatchTest, AnOverflowOfTheQueueIsAChange) {
  const absl::StatusOr<std::string> limit = ReadFile("/proc/sys/fs/inotify/max_queued_events");
  ASSERT_THAT(limit, IsOk());
  const int events = std::stoi(*limit);
  if (events > 100000) GTEST_SKIP() << "queue of " << events << " events";
  HeldObserver observer(dir_);
  MakeDir(dir_ + "/a");
  ASSERT_EQ(observer.WaitForCalls(1), 1);
  // Nobody reads the queue: it overflows, and what happens to the directory itself is not in it.
  WriteTimes(events + 1);
  RemoveAll(temp_.File("p"));
  MakeDir(dir_);
  observer.Release();
  ASSERT_EQ(observer.WaitForCalls(2), 2);
  MakeDir(dir_ + "/a");  // the new directory is watched
  EXPECT_EQ(observer.WaitForCalls(3), 3);
}

TEST_F(DirectoryWatchTest, NoCallAfterTheEnd) {
  Observer observer(dir_);
  EXPECT_TRUE(observer.SeesAfter([&] { Touch(dir_ + "/a"); }));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) Touch(dir_ + "/b");
  });
  observer.Stop();
  const int calls = observer.calls();
  for (int i = 0; i < 100; ++i) Touch(dir_ + "/c");
  stop = true;
  writer.join();
  EXPECT_EQ(observer.calls(), calls);
}

TEST_F(DirectoryWatchTest, ARelativePathIsRefused) {
  EXPECT_THAT(DirectoryWatch::Start("relative", [] {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("relative")));
}

TEST_F(DirectoryWatchTest, AStartWithoutFileDescriptorsIsAnError) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto watch = DirectoryWatch::Start(dir_, [] {});
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(watch, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(dir_)));
}

}  // namespace
}  // namespace ascend
