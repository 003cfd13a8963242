#include "kubeletplugin/claims/record_store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ClaimRecord Record(const std::string& uid, int chip = 0) {
  ClaimRecord record;
  record.claim_namespace = "default";
  record.claim_name = "claim-" + uid;
  record.claim_uid = uid;
  record.boot_id = "boot";
  RecordedDevice device;
  device.requests = {"npu"};
  device.pool = "node-1";
  device.device = "npu-" + std::to_string(chip);
  device.cdi_device = uid + "-" + device.device;
  device.chips = {{.physical_id = chip, .node_number = chip, .family = vnpu::Family::k910B}};
  device.published.name = device.device;
  record.devices = {device};
  return record;
}

class RecordStoreTest : public ::testing::Test {
 protected:
  RecordStoreTest() { EXPECT_THAT(store_.Prepare(), IsOk()); }
  std::vector<std::string> Uids(RecordStore& store) {
    absl::StatusOr<RecordStore::Contents> contents = store.ReadAll();
    EXPECT_THAT(contents, IsOk());
    std::vector<std::string> uids;
    for (const auto& record : contents->records) uids.push_back(record->claim_uid);
    return uids;
  }
  std::string File(const std::string& uid) const { return JoinPath(store_.directory(), uid); }

  TempDir dir_;
  RecordStore store_{dir_.File("plugin/claims")};
};

TEST_F(RecordStoreTest, TellsOfEveryWrite) {
  std::vector<absl::Status> told;
  store_.SetWriteObserver([&](const absl::Status& status, absl::Duration duration) {
    EXPECT_GT(duration, absl::ZeroDuration());
    told.push_back(status);
  });
  ASSERT_THAT(store_.Write(Record("a", 1)), IsOk());
  ASSERT_THAT(store_.Remove("a"), IsOk());
  ASSERT_EQ(::rmdir(store_.directory().c_str()), 0);
  EXPECT_FALSE(store_.Write(Record("a", 1)).ok());
  ASSERT_EQ(told.size(), 3u);
  EXPECT_THAT(told[0], IsOk());
  EXPECT_THAT(told[1], IsOk());
  EXPECT_THAT(told[2], StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(RecordStoreTest, WritesReadsAndRemoves) {
  EXPECT_THAT(store_.Read("a"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("a")));
  ASSERT_THAT(store_.Write(Record("a", 1)), IsOk());
  ASSERT_THAT(store_.Write(Record("b", 2)), IsOk());
  ASSERT_THAT(store_.Read("a"), IsOk());
  EXPECT_EQ(**store_.Read("a"), Record("a", 1));
  EXPECT_THAT(Uids(store_), ElementsAre("a", "b"));
  ASSERT_THAT(store_.Remove("a"), IsOk());
  EXPECT_THAT(store_.Remove("a"), IsOk());
  EXPECT_THAT(store_.Read("a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Uids(store_), ElementsAre("b"));
}

// CDI-20 (the part about records).
TEST_F(RecordStoreTest, ModesDoNotDependOnTheUmask) {
  for (const mode_t mask : {mode_t{0}, mode_t{0077}}) {
    const mode_t old = ::umask(mask);
    RecordStore store(dir_.File("other-" + std::to_string(mask)));
    EXPECT_THAT(store.Prepare(), IsOk());
    EXPECT_THAT(store.Write(Record("a")), IsOk());
    ::umask(old);
    struct stat info;
    ASSERT_EQ(::stat(store.directory().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
    ASSERT_EQ(::stat(JoinPath(store.directory(), "a").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0600u);
  }
}

TEST_F(RecordStoreTest, ARecordIsParsedOncePerVersion) {
  ASSERT_THAT(store_.Write(Record("a", 1)), IsOk());
  const auto first = store_.Read("a");
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(store_.Read("a")->get(), first->get());
  EXPECT_EQ(store_.ReadAll()->records[0].get(), first->get());
  ASSERT_THAT(store_.Write(Record("a", 2)), IsOk());
  EXPECT_EQ(**store_.Read("a"), Record("a", 2));
  EXPECT_EQ(**first, Record("a", 1));  // who holds the old one keeps it
}

// What it wrote itself it knows, as long as that is what lies on the disk.
TEST_F(RecordStoreTest, WhatItWroteIsNotReadAgain) {
  ASSERT_THAT(store_.Write(Record("a", 1)), IsOk());
  ASSERT_THAT(store_.Write(Record("b", 2)), IsOk());
  RecordStore other(store_.directory());
  struct rlimit before, none;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  none = before;
  none.rlim_cur = 0;  // not a file can be opened
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto known = store_.Read("a");
  const auto unknown = other.Read("a");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_THAT(known, IsOk());
  EXPECT_EQ(**known, Record("a", 1));
  EXPECT_FALSE(unknown.ok());

  ASSERT_THAT(other.Write(Record("a", 3)), IsOk());
  EXPECT_EQ(**store_.Read("a"), Record("a", 3));
  ASSERT_THAT(WriteFileAtomically(File("b"), "damaged"), IsOk());
  EXPECT_THAT(store_.Read("b"), StatusIs(absl::StatusCode::kDataLoss));
  ASSERT_THAT(store_.Write(Record("b", 4)), IsOk());
  ASSERT_THAT(other.Remove("b"), IsOk());
  EXPECT_THAT(store_.Read("b"), StatusIs(absl::StatusCode::kNotFound));
}

// ORD-13: two instances on one directory, and files that come and go behind a store's back.
TEST_F(RecordStoreTest, SeesWhatOthersDo) {
  RecordStore other(store_.directory());
  EXPECT_THAT(Uids(store_), IsEmpty());
  EXPECT_THAT(store_.Contains("a"), IsOkAndHolds(false));
  ASSERT_THAT(other.Write(Record("a", 1)), IsOk());
  EXPECT_THAT(Uids(store_), ElementsAre("a"));
  EXPECT_THAT(store_.Contains("a"), IsOkAndHolds(true));
  ASSERT_THAT(other.Write(Record("a", 2)), IsOk());
  EXPECT_EQ(**store_.Read("a"), Record("a", 2));
  ASSERT_THAT(other.Remove("a"), IsOk());
  EXPECT_THAT(store_.Read("a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Uids(store_), IsEmpty());
  ASSERT_THAT(other.Write(Record("a", 3)), IsOk());
  EXPECT_EQ(**store_.Read("a"), Record("a", 3));
  std::filesystem::remove_all(store_.directory());
  EXPECT_THAT(store_.Contains("a"), IsOkAndHolds(false));
  EXPECT_THAT(store_.Read("a"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(store_.ReadAll(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(RecordStoreTest, WhatCannotBeLookedForIsNotTakenForMissing) {
  const std::string file = dir_.File("no-directory");
  ASSERT_THAT(WriteFileAtomically(file, ""), IsOk());
  EXPECT_FALSE(RecordStore(file).Contains("a").ok());
}

// REC-03: a damaged record is reported, its bytes stay, the others are read as ever.
TEST_F(RecordStoreTest, UnreadableRecordsAreSetAside) {
  ASSERT_THAT(store_.Write(Record("good")), IsOk());
  ASSERT_THAT(WriteFileAtomically(File("bad"), "half a rec"), IsOk());
  ASSERT_THAT(WriteFileAtomically(File("empty"), ""), IsOk());
  ASSERT_THAT(WriteFileAtomically(File("foreign"), SerializeRecord(Record("good"))), IsOk());
  ASSERT_EQ(::mkdir(File("directory").c_str(), 0700), 0);
  for (int pass = 0; pass < 2; ++pass) {  // the second is answered from the cache
    absl::StatusOr<RecordStore::Contents> contents = store_.ReadAll();
    ASSERT_THAT(contents, IsOk());
    ASSERT_EQ(contents->records.size(), 1u);
    EXPECT_EQ(contents->records[0]->claim_uid, "good");
    ASSERT_EQ(contents->unreadable.size(), 4u);
    EXPECT_EQ(contents->unreadable[0].claim_uid, "bad");
    EXPECT_THAT(contents->unreadable[0].error,
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(File("bad"))));
    EXPECT_EQ(contents->unreadable[1].claim_uid, "directory");
    EXPECT_EQ(contents->unreadable[2].claim_uid, "empty");
    EXPECT_EQ(contents->unreadable[3].claim_uid, "foreign");
    EXPECT_THAT(contents->unreadable[3].error,
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("of claim UID good")));
    EXPECT_THAT(store_.Read("bad"), StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_THAT(ReadFile(File("bad")), IsOkAndHolds("half a rec"));
  ASSERT_THAT(store_.Remove("bad"), IsOk());
  EXPECT_THAT(store_.Read("bad"), StatusIs(absl::StatusCode::kNotFound));
}

// A bad moment of the process must not turn a good record into a bad one for good.
TEST_F(RecordStoreTest, AFailureToReadIsNotRemembered) {
  RecordStore other(store_.directory());
  ASSERT_THAT(other.Write(Record("a", 1)), IsOk());
  rlimit old;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  // One descriptor is left: for the directory, not for the record in it.
  const int next = ::dup(0);
  ASSERT_GE(next, 0);
  ::close(next);
  rlimit low = old;
  low.rlim_cur = next + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const absl::Status failed = store_.Read("a").status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_THAT(store_.Read("a"), IsOk());
  EXPECT_EQ(**store_.Read("a"), Record("a", 1));
}

TEST_F(RecordStoreTest, PrepareRemovesTemporaries) {
  ASSERT_THAT(store_.Write(Record("a")), IsOk());
  const std::string temporary = File(".b.0123456789abcdef.tmp");
  ASSERT_THAT(WriteFileAtomically(temporary, "half"), IsOk());
  EXPECT_THAT(Uids(store_), ElementsAre("a"));  // no record in any case
  ASSERT_THAT(store_.Prepare(), IsOk());
  EXPECT_TRUE(std::filesystem::exists(temporary));  // another instance may be at it
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, temporary.c_str(), old, 0), 0);
  ASSERT_THAT(store_.Prepare(), IsOk());
  EXPECT_FALSE(std::filesystem::exists(temporary));
  EXPECT_THAT(Uids(store_), ElementsAre("a"));
}

TEST_F(RecordStoreTest, UnsafeUidsNeverBecomeFiles) {
  for (const char* uid : {"", ".", "..", "../x", "a/b", ".a", "a\nb"}) {
    EXPECT_THAT(store_.Write(Record(uid)), StatusIs(absl::StatusCode::kInvalidArgument)) << uid;
    EXPECT_THAT(store_.Remove(uid), IsOk()) << uid;
    EXPECT_FALSE(store_.Read(uid).ok()) << uid;
  }
  EXPECT_THAT(ListDirectory(store_.directory()), IsOkAndHolds(IsEmpty()));
}

TEST_F(RecordStoreTest, WhatIsNoFileOrTooLargeIsNoRecord) {
  ASSERT_EQ(::mkdir(File("directory").c_str(), 0700), 0);
  ASSERT_THAT(WriteFileAtomically(File("large"), ""), IsOk());
  ASSERT_EQ(::truncate(File("large").c_str(), off_t{1} << 40), 0);
  for (const char* uid : {"directory", "large"}) {
    EXPECT_THAT(store_.Read(uid), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(File(uid))));
  }
}

TEST_F(RecordStoreTest, SyncIsDueAfterAFailureOnly) {
  const std::string away = dir_.File("away");
  const std::string directory = store_.directory();
  std::filesystem::rename(directory, away);
  EXPECT_THAT(store_.Sync(), IsOk());
  EXPECT_FALSE(store_.Remove("a").ok());
  EXPECT_FALSE(store_.Sync().ok());
  EXPECT_FALSE(store_.Sync().ok()) << "still due";
  std::filesystem::rename(away, directory);
  EXPECT_THAT(store_.Sync(), IsOk());
  std::filesystem::rename(directory, away);
  EXPECT_THAT(store_.Sync(), IsOk());
}

TEST_F(RecordStoreTest, FailedWriteLeavesTheOldRecord) {
  ASSERT_THAT(store_.Write(Record("a", 1)), IsOk());
  ASSERT_EQ(::mkdir(File("b").c_str(), 0700), 0);  // in the way of a record
  EXPECT_FALSE(store_.Write(Record("b")).ok());
  EXPECT_THAT(ListDirectory(store_.directory()), IsOkAndHolds(ElementsAre("a", "b")));
  EXPECT_EQ(**store_.Read("a"), Record("a", 1));
}

// REC-10, ORD-13: readers meet whole records only, whatever two writers do.
TEST_F(RecordStoreTest, Concurrency) {
  RecordStore other(store_.directory());
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (RecordStore* writer : {&store_, &other}) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < 60; ++i) {
        EXPECT_THAT(writer->Write(Record("a", i % 8)), IsOk());
        if (i % 3 == 0) {
          EXPECT_THAT(writer->Remove("a"), IsOk());
        }
      }
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      RecordStore& reader = t == 0 ? store_ : other;
      while (!stop) {
        const auto record = reader.Read("a");
        EXPECT_TRUE(record.ok() || absl::IsNotFound(record.status())) << record.status();
        const auto contents = reader.ReadAll();
        ASSERT_THAT(contents, IsOk());
        EXPECT_THAT(contents->unreadable, IsEmpty());
      }
    });
  }
  threads[0].join();
  threads[1].join();
  stop = true;
  threads[2].join();
  threads[3].join();
}

}  // namespace
}  // namespace ascend::kubeletplugin
