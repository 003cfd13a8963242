#include "cdi/registry.h"

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

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(20);

using Names = std::vector<std::string>;

Names DevicesOf(const Snapshot& snapshot) {
  Names names;
  for (const auto& [name, entry] : snapshot.devices()) names.push_back(entry.device->name);
  return names;
}

std::string SpecText(const std::string& device) {
  return absl::StrCat(R"({"cdiVersion":"0.5.0","kind":"huawei.com/npu","devices":[{"name":")",
                      device, R"(","containerEdits":{"env":["A=1"]}}]})");
}

void Write(const std::string& path, const std::string& device) {
  std::ofstream file(path);
  file << SpecText(device);
  file.close();
  ASSERT_TRUE(file.good()) << path;
}

void Rename(const std::string& from, const std::string& to) {
  ASSERT_EQ(::rename(from.c_str(), to.c_str()), 0) << from;
}

// A registry whose callback lets a test wait for a state.
class Watched {
 public:
  explicit Watched(std::vector<std::string> directories) {
    Registry::Options options;
    options.directories = std::move(directories);
    options.on_change = [this](const std::shared_ptr<const Snapshot>& snapshot) {
      MutexLock lock(&mutex_);
      last_ = snapshot;
      ++calls_;
      called_.SignalAll();
    };
    auto registry = Registry::Open(std::move(options));
    EXPECT_THAT(registry, IsOk());
    if (registry.ok()) registry_ = *std::move(registry);
  }

  Registry& registry() { return *registry_; }

  int calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }

  // Waits until the callback was told of exactly these devices, which by then are also what
  // snapshot() gives.
  bool Reaches(const Names& devices) {
    const absl::Time deadline = absl::Now() + kPatience;
    {
      MutexLock lock(&mutex_);
      while (last_ == nullptr || DevicesOf(*last_) != devices) {
        if (absl::Now() >= deadline) return false;
        called_.WaitFor(&mutex_, deadline - absl::Now());
      }
    }
    return DevicesOf(*registry_->snapshot()) == devices;
  }

 private:
  Mutex mutex_;
  CondVar called_;
  std::shared_ptr<const Snapshot> last_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Registry> registry_;  // last: its thread uses the others
};

class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    EXPECT_THAT(MakeDirectories(dir_), IsOk());
    EXPECT_THAT(MakeDirectories(temp_.File("outside")), IsOk());
  }

  TempDir temp_;
  const std::string dir_ = temp_.File("etc/cdi");
  const std::string outside_ = temp_.File("outside/spec");
};

TEST_F(RegistryTest, ScansBeforeItReturns) {
  Write(dir_ + "/a.json", "a");
  for (const bool watch : {false, true}) {
    const auto registry = Registry::Open({.directories = {dir_}, .watch = watch});
    ASSERT_THAT(registry, IsOk());
    EXPECT_THAT(DevicesOf(*(*registry)->snapshot()), ElementsAre("a"));
  }
}

TEST_F(RegistryTest, RefreshSeesWhatIsThere) {
  const auto registry = Registry::Open({.directories = {dir_}, .watch = false});
  ASSERT_THAT(registry, IsOk());
  const auto before = (*registry)->snapshot();
  EXPECT_THAT(before->devices(), IsEmpty());
  EXPECT_EQ((*registry)->Refresh(), before);
  Write(dir_ + "/a.json", "a");
  EXPECT_EQ((*registry)->snapshot(), before) << "nobody watches";
  const auto after = (*registry)->Refresh();
  EXPECT_THAT(DevicesOf(*after), ElementsAre("a"));
  EXPECT_EQ((*registry)->snapshot(), after);
  EXPECT_THAT(before->devices(), IsEmpty());
}

TEST_F(RegistryTest, SeesARenameWithinTheDirectory) {
  Watched watched({dir_});
  Write(dir_ + "/.a.tmp", "a");
  Rename(dir_ + "/.a.tmp", dir_ + "/a.json");
  EXPECT_TRUE(watched.Reaches({"a"}));
  Write(dir_ + "/.a.tmp", "b");
  Rename(dir_ + "/.a.tmp", dir_ + "/a.json");
  EXPECT_TRUE(watched.Reaches({"b"}));
}

TEST_F(RegistryTest, SeesAWriteInPlace) {
  Watched watched({dir_});
  Write(dir_ + "/a.json", "a");
  EXPECT_TRUE(watched.Reaches({"a"}));
  Write(dir_ + "/a.json", "b");
  EXPECT_TRUE(watched.Reaches({"b"}));
}

TEST_F(RegistryTest, SeesARenameFromAnotherDirectory) {
  Watched watched({dir_});
  Write(outside_, "a");
  Rename(outside_, dir_ + "/a.json");
  EXPECT_TRUE(watched.Reaches({"a"}));
}

TEST_F(RegistryTest, SeesAHardLink) {
  Watched watched({dir_});
  Write(outside_, "a");
  ASSERT_EQ(::link(outside_.c_str(), (dir_ + "/a.json").c_str()), 0);
  EXPECT_TRUE(watched.Reaches({"a"}));
}

TEST_F(RegistryTest, SeesAnUnnamedFileGetItsName) {
  Watched watched({dir_});
  const UniqueFd fd(::open(dir_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644));
  if (!fd.valid() && errno == EOPNOTSUPP) GTEST_SKIP() << "no O_TMPFILE here";
  ASSERT_TRUE(fd.valid());
  const std::string text = SpecText("a");
  ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ASSERT_EQ(::linkat(AT_FDCWD, absl::StrCat("/proc/self/fd/", fd.get()).c_str(), AT_FDCWD,
                     (dir_ + "/a.json").c_str(), AT_SYMLINK_FOLLOW),
            0);
  EXPECT_TRUE(watched.Reaches({"a"}));
}

TEST_F(RegistryTest, SeesASymbolicLink) {
  Watched watched({dir_});
  Write(outside_, "a");
  ASSERT_EQ(::symlink(outside_.c_str(), (dir_ + "/a.json").c_str()), 0);
  EXPECT_TRUE(watched.Reaches({"a"}));
}

// There is no event in the directory for it, but any later event and Refresh() take it in.
TEST_F(RegistryTest, TakesInAChangedTargetOfASymbolicLinkLater) {
  Write(outside_, "a");
  ASSERT_EQ(::symlink(outside_.c_str(), (dir_ + "/a.json").c_str()), 0);
  Watched watched({dir_});
  Write(outside_, "b");
  EXPECT_THAT(DevicesOf(*watched.registry().snapshot()), ElementsAre("a"));
  EXPECT_THAT(DevicesOf(*watched.registry().Refresh()), ElementsAre("b"));
  Write(outside_, "c");
  Write(dir_ + "/other.json", "d");
  EXPECT_TRUE(watched.Reaches({"c", "d"}));
}

TEST_F(RegistryTest, SeesRemovalAndRenameToAnotherName) {
  Write(dir_ + "/a.json", "a");
  Write(dir_ + "/b.json", "b");
  Watched watched({dir_});
  ASSERT_EQ(::unlink((dir_ + "/a.json").c_str()), 0);
  EXPECT_TRUE(watched.Reaches({"b"}));
  Rename(dir_ + "/b.json", dir_ + "/b.json.off");
  EXPECT_TRUE(watched.Reaches({}));
  Rename(dir_ + "/b.json.off", dir_ + "/c.json");
  EXPECT_TRUE(watched.Reaches({"b"}));
  Rename(dir_ + "/c.json", outside_);
  EXPECT_TRUE(watched.Reaches({}));
}

TEST_F(RegistryTest, SeesTheDirectoryDeletedAndCreatedAgain) {
  Write(dir_ + "/a.json", "a");
  Watched watched({dir_});
  for (const char* device : {"b", "c"}) {
    std::filesystem::remove_all(dir_);
    EXPECT_TRUE(watched.Reaches({}));
    ASSERT_THAT(MakeDirectories(dir_), IsOk());
    Write(dir_ + "/.tmp", device);
    Rename(dir_ + "/.tmp", dir_ + "/a.json");
    EXPECT_TRUE(watched.Reaches({device}));
  }
}

TEST_F(RegistryTest, SeesTheDirectoryReplacedByARename) {
  Write(dir_ + "/a.json", "a");
  Watched watched({dir_});
  ASSERT_THAT(MakeDirectories(temp_.File("new")), IsOk());
  Write(temp_.File("new/a.json"), "b");
  Rename(dir_, temp_.File("old"));
  Rename(temp_.File("new"), dir_);
  EXPECT_TRUE(watched.Reaches({"b"}));
}

TEST_F(RegistryTest, WaitsForADirectoryThatIsMissing) {
  const std::string missing = temp_.File("var/run/cdi");
  Watched watched({dir_, missing});
  ASSERT_THAT(MakeDirectories(missing), IsOk());
  Write(missing + "/a.json", "a");
  EXPECT_TRUE(watched.Reaches({"a"}));
  Write(dir_ + "/b.json", "b");
  EXPECT_TRUE(watched.Reaches({"a", "b"}));
}

TEST_F(RegistryTest, FollowsALinkedDirectoryAndALinkedParent) {
  ASSERT_THAT(MakeDirectories(temp_.File("run/one")), IsOk());
  ASSERT_THAT(MakeDirectories(temp_.File("run/two")), IsOk());
  ASSERT_EQ(::symlink("run", temp_.File("var").c_str()), 0);
  ASSERT_EQ(::symlink("one", temp_.File("run/cdi").c_str()), 0);
  Watched watched({temp_.File("var/cdi")});
  Write(temp_.File("run/one/a.json"), "a");
  EXPECT_TRUE(watched.Reaches({"a"}));
  Write(temp_.File("run/two/b.json"), "b");
  ASSERT_EQ(::symlink("two", temp_.File("run/new").c_str()), 0);
  Rename(temp_.File("run/new"), temp_.File("run/cdi"));
  EXPECT_TRUE(watched.Reaches({"b"}));
  Write(temp_.File("run/two/c.json"), "c");
  EXPECT_TRUE(watched.Reaches({"b", "c"}));
}

// What makes no difference to the specs is not reported.
TEST_F(RegistryTest, OtherFilesCauseNoCall) {
  Watched watched({dir_});
  Write(dir_ + "/a.json", "a");
  EXPECT_TRUE(watched.Reaches({"a"}));
  const int before = watched.calls();
  for (int i = 0; i < 20; ++i) Write(absl::StrCat(dir_, "/", i, ".tmp"), "x");
  Write(dir_ + "/b.json", "b");
  EXPECT_TRUE(watched.Reaches({"a", "b"}));
  // Writing in place may be seen twice: first an empty file, which is an error, then a spec.
  EXPECT_LE(watched.calls(), before + 2);
}

TEST_F(RegistryTest, ReportsErrorsAsTheyComeAndGo) {
  Watched watched({dir_});
  Write(dir_ + "/a.json", "a");
  ASSERT_TRUE(watched.Reaches({"a"}));
  {
    std::ofstream file(dir_ + "/.tmp");
    file << "{";
  }
  Rename(dir_ + "/.tmp", dir_ + "/a.json");
  ASSERT_TRUE(watched.Reaches({}));
  EXPECT_EQ(watched.registry().snapshot()->errors().count(dir_ + "/a.json"), 1u);
  Write(dir_ + "/.tmp", "a");
  Rename(dir_ + "/.tmp", dir_ + "/a.json");
  ASSERT_TRUE(watched.Reaches({"a"}));
  EXPECT_THAT(watched.registry().snapshot()->errors(), IsEmpty());
}

TEST_F(RegistryTest, WatchNeedsAbsolutePaths) {
  EXPECT_THAT(Registry::Open({.directories = {"etc/cdi"}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("etc/cdi")));
  EXPECT_THAT(Registry::Open({.directories = {"etc/cdi"}, .watch = false}), IsOk());
}

TEST_F(RegistryTest, SaysWhichLimitIsReached) {
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = Registry::Open({.directories = {dir_}}).status();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_user_instances")));
}

// For ThreadSanitizer: readers, refreshers, a writer and the watch all at once.
TEST_F(RegistryTest, ManyThreads) {
  Watched watched({dir_, temp_.File("missing")});
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        const auto snapshot = watched.registry().snapshot();
        for (const auto& [name, entry] : snapshot->devices()) {
          EXPECT_EQ(snapshot->Find(name), &entry);
          EXPECT_EQ(entry.file->spec.kind, "huawei.com/npu");
        }
        for (const auto& [path, errors] : snapshot->errors()) EXPECT_FALSE(errors[0].ok());
      }
    });
    threads.emplace_back([&] {
      while (!done) EXPECT_NE(watched.registry().Refresh(), nullptr);
    });
  }
  for (int i = 0; i < 50; ++i) {
    const std::string path = absl::StrCat(dir_, "/", i % 5, ".json");
    EXPECT_THAT(WriteFileAtomically(path, i % 7 == 0 ? "{" : SpecText(absl::StrCat("d", i)),
                                    {.mode = 0644, .durable = false}),
                IsOk());
    if (i % 10 == 9) {
      std::filesystem::remove_all(dir_);
      EXPECT_THAT(MakeDirectories(dir_), IsOk());
    }
  }
  Write(dir_ + "/last.json", "last");
  EXPECT_TRUE(watched.Reaches({"last"}));
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ascend::cdi
