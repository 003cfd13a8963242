#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "cdi/registry.h"
#include "cdi/scanner.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

std::string SpecText(const std::string& kind, const std::vector<std::string>& devices,
                     const std::string& env = "A=1") {
  std::vector<std::string> list;
  for (const std::string& device : devices) {
    list.push_back(
        absl::StrCat(R"({"name":")", device, R"(","containerEdits":{"env":[")", env, R"("]}})"));
  }
  return absl::StrCat(R"({"cdiVersion":"0.5.0","kind":")", kind, R"(","devices":[)",
                      absl::StrJoin(list, ","), "]}");
}

std::vector<std::string> DevicesOf(const Snapshot& snapshot) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : snapshot.devices()) names.push_back(name);
  return names;
}

std::vector<std::string> FilesOf(const Snapshot& snapshot) {
  std::vector<std::string> paths;
  for (const auto& file : snapshot.files()) paths.push_back(file->path);
  return paths;
}

class ScanTest : public ::testing::Test {
 protected:
  ScanTest() {
    for (const std::string& directory : {low_, high_}) {
      EXPECT_THAT(MakeDirectories(directory), IsOk());
    }
  }

  static void Write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.close();
    ASSERT_TRUE(file.good()) << path;
  }

  std::shared_ptr<const Snapshot> ScanBoth() { return Scan({low_, high_}); }

  TempDir temp_;
  const std::string low_ = temp_.File("low");
  const std::string high_ = temp_.File("high");
};

TEST_F(ScanTest, FindsDevicesOfAllFiles) {
  Write(low_ + "/b.json", SpecText("huawei.com/npu", {"0", "1"}));
  Write(low_ + "/a.json", SpecText("vendor.example/gpu", {"x"}));
  Write(high_ + "/.hidden.json", SpecText("huawei.com/npu", {"2"}));
  const auto snapshot = ScanBoth();
  EXPECT_THAT(DevicesOf(*snapshot), ElementsAre("huawei.com/npu=0", "huawei.com/npu=1",
                                                "huawei.com/npu=2", "vendor.example/gpu=x"));
  EXPECT_THAT(FilesOf(*snapshot),
              ElementsAre(low_ + "/a.json", low_ + "/b.json", high_ + "/.hidden.json"));
  EXPECT_THAT(snapshot->Vendors(), ElementsAre("huawei.com", "vendor.example"));
  EXPECT_THAT(snapshot->Classes(), ElementsAre("gpu", "npu"));
  EXPECT_THAT(snapshot->errors(), IsEmpty());

  const Snapshot::Entry* entry = snapshot->Find("huawei.com/npu=1");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->device->name, "1");
  EXPECT_EQ(entry->file->path, low_ + "/b.json");
  EXPECT_EQ(snapshot->Find("huawei.com/npu=3"), nullptr);
  EXPECT_EQ(snapshot->Find(""), nullptr);
}

TEST_F(ScanTest, ReadsYaml) {
  Write(low_ + "/a.yaml",
        "cdiVersion: 0.5.0\nkind: v.example/c\ndevices:\n- name: a\n  containerEdits:\n"
        "    env: [A=1]\n");
  EXPECT_THAT(DevicesOf(*ScanBoth()), ElementsAre("v.example/c=a"));
}

TEST_F(ScanTest, LooksAtNoOtherNamesAndNoSubdirectories) {
  const std::string text = SpecText("huawei.com/npu", {"0"});
  ASSERT_THAT(MakeDirectories(low_ + "/sub"), IsOk());
  for (const char* name : {"a.yml", "a.JSON", "a.json.tmp", "json", "a.json~", "sub/a.json"}) {
    Write(absl::StrCat(low_, "/", name), text);
  }
  const auto snapshot = ScanBoth();
  EXPECT_THAT(snapshot->files(), IsEmpty());
  EXPECT_THAT(snapshot->errors(), IsEmpty());
}

TEST_F(ScanTest, WhatIsNoRegularFileNeitherBlocksNorDisturbs) {
  ASSERT_THAT(MakeDirectories(low_ + "/directory.json"), IsOk());
  ASSERT_EQ(::mkfifo((low_ + "/fifo.json").c_str(), 0600), 0);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = low_ + "/socket.json";
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::symlink("/nowhere", (low_ + "/nowhere.json").c_str()), 0);
  ASSERT_EQ(::symlink("loop.json", (low_ + "/loop.json").c_str()), 0);
  ASSERT_EQ(::symlink("/dev/zero", (low_ + "/zero.json").c_str()), 0);
  Write(low_ + "/spec.json", SpecText("huawei.com/npu", {"0"}));
  for (int i = 0; i < 2; ++i) {
    const auto snapshot = ScanBoth();
    EXPECT_THAT(DevicesOf(*snapshot), ElementsAre("huawei.com/npu=0"));
    // A directory is no file; the others are files that cannot be loaded.
    std::vector<std::string> paths;
    for (const auto& [where, errors] : snapshot->errors()) {
      paths.push_back(where);
      EXPECT_EQ(errors.size(), 1u) << where;
      EXPECT_THAT(std::string(errors[0].message()), HasSubstr(where));
    }
    EXPECT_THAT(paths, ElementsAre(low_ + "/fifo.json", low_ + "/loop.json", low_ + "/nowhere.json",
                                   low_ + "/socket.json", low_ + "/zero.json"));
  }
}

TEST_F(ScanTest, FollowsLinksToFiles) {
  Write(temp_.File("elsewhere"), SpecText("huawei.com/npu", {"0"}));
  ASSERT_EQ(::symlink(temp_.File("elsewhere").c_str(), (low_ + "/a.json").c_str()), 0);
  const auto snapshot = ScanBoth();
  ASSERT_THAT(DevicesOf(*snapshot), ElementsAre("huawei.com/npu=0"));
  EXPECT_THAT(snapshot->files()[0]->findings, ElementsAre(HasSubstr("symlink")));
}

TEST_F(ScanTest, AnInvalidFileHarmsNoOther) {
  Write(low_ + "/a.json", "{");
  Write(low_ + "/b.json", R"({"cdiVersion":"0.5.0","kind":"huawei.com/npu","devices":[
    {"name":"good","containerEdits":{"env":["A=1"]}},{"name":"bad","containerEdits":{}}]})");
  Write(low_ + "/c.json", SpecText("huawei.com/npu", {"0"}));
  Write(low_ + "/d.json", "");
  const auto snapshot = ScanBoth();
  EXPECT_THAT(DevicesOf(*snapshot), ElementsAre("huawei.com/npu=0"));
  EXPECT_THAT(
      snapshot->errors(),
      ElementsAre(
          Pair(low_ + "/a.json", ElementsAre(StatusIs(absl::StatusCode::kInvalidArgument,
                                                      HasSubstr(low_ + "/a.json: line 1")))),
          Pair(low_ + "/b.json", ElementsAre(StatusIs(absl::StatusCode::kInvalidArgument,
                                                      HasSubstr("devices[1].containerEdits")))),
          Pair(low_ + "/d.json", ElementsAre(StatusIs(absl::StatusCode::kInvalidArgument)))));
}

TEST_F(ScanTest, LaterDirectoryWins) {
  Write(low_ + "/a.json", SpecText("huawei.com/npu", {"0", "1"}, "A=low"));
  Write(high_ + "/a.json", SpecText("huawei.com/npu", {"0"}, "A=high"));
  const auto snapshot = ScanBoth();
  EXPECT_EQ(snapshot->Find("huawei.com/npu=0")->device->container_edits.env[0], "A=high");
  EXPECT_EQ(snapshot->Find("huawei.com/npu=1")->device->container_edits.env[0], "A=low");
  EXPECT_THAT(snapshot->errors(), IsEmpty());
  EXPECT_EQ(Scan({high_, low_})->Find("huawei.com/npu=0")->device->container_edits.env[0], "A=low");
}

TEST_F(ScanTest, TheSameDirectoryTwiceIsNoConflict) {
  Write(low_ + "/a.json", SpecText("huawei.com/npu", {"0"}));
  const auto snapshot = Scan({low_, low_});
  EXPECT_THAT(DevicesOf(*snapshot), ElementsAre("huawei.com/npu=0"));
  EXPECT_THAT(snapshot->errors(), IsEmpty());
}

TEST_F(ScanTest, ConflictInOneDirectoryRemovesTheDeviceOnly) {
  Write(low_ + "/a.json", SpecText("huawei.com/npu", {"0", "1"}));
  Write(low_ + "/b.json", SpecText("huawei.com/npu", {"0", "2"}));
  Write(low_ + "/c.json", SpecText("huawei.com/npu", {"0"}));
  const auto snapshot = ScanBoth();
  EXPECT_THAT(DevicesOf(*snapshot), ElementsAre("huawei.com/npu=1", "huawei.com/npu=2"));
  EXPECT_EQ(snapshot->files().size(), 3u);
  const auto conflict = [this](const std::string& later) {
    return StatusIs(absl::StatusCode::kAlreadyExists,
                    absl::StrCat("conflicting device \"huawei.com/npu=0\" (specs \"", low_, "/",
                                 later, "\", \"", low_, "/a.json\")"));
  };
  // The first of the files is told about each of the others.
  EXPECT_THAT(
      snapshot->errors(),
      ElementsAre(Pair(low_ + "/a.json", ElementsAre(conflict("b.json"), conflict("c.json"))),
                  Pair(low_ + "/b.json", ElementsAre(conflict("b.json"))),
                  Pair(low_ + "/c.json", ElementsAre(conflict("c.json")))));
}

TEST_F(ScanTest, ConflictHidesTheNameInAllDirectories) {
  for (const std::string& conflicting : {low_, high_}) {
    SCOPED_TRACE(conflicting);
    const std::string& other = conflicting == low_ ? high_ : low_;
    Write(conflicting + "/a.json", SpecText("huawei.com/npu", {"0"}));
    Write(conflicting + "/b.json", SpecText("huawei.com/npu", {"0"}));
    Write(other + "/a.json", SpecText("huawei.com/npu", {"0"}));
    const auto snapshot = ScanBoth();
    EXPECT_THAT(snapshot->devices(), IsEmpty());
    EXPECT_EQ(snapshot->errors().size(), 2u);
    ::unlink((conflicting + "/b.json").c_str());
  }
}

TEST_F(ScanTest, MissingDirectoryIsEmpty) {
  Write(high_ + "/a.json", SpecText("huawei.com/npu", {"0"}));
  const auto snapshot = Scan({temp_.File("missing"), high_, temp_.File("missing/too")});
  EXPECT_THAT(DevicesOf(*snapshot), ElementsAre("huawei.com/npu=0"));
  EXPECT_THAT(snapshot->errors(), IsEmpty());
}

TEST_F(ScanTest, UnreadableDirectoryIsRecordedAndTheScanGoesOn) {
  Write(temp_.File("file"), "");
  Write(high_ + "/a.json", SpecText("huawei.com/npu", {"0"}));
  const std::string below_file = temp_.File("file/cdi");
  const auto snapshot = Scan({temp_.File("file"), below_file, high_});
  EXPECT_THAT(DevicesOf(*snapshot), ElementsAre("huawei.com/npu=0"));
  EXPECT_THAT(snapshot->errors(), ElementsAre(Pair(temp_.File("file"), testing::SizeIs(1)),
                                              Pair(below_file, testing::SizeIs(1))));
}

TEST_F(ScanTest, ForbiddenDirectoryAndFileAreRecorded) {
  Write(low_ + "/a.json", SpecText("huawei.com/npu", {"0"}));
  ASSERT_EQ(::chmod(temp_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod((low_ + "/a.json").c_str(), 0), 0);
  ASSERT_EQ(::chmod(high_.c_str(), 0), 0);
  const bool root = ::geteuid() == 0;  // nothing is forbidden to root
  ASSERT_EQ(root ? ::seteuid(65534) : 0, 0);
  const auto snapshot = ScanBoth();
  ASSERT_EQ(root ? ::seteuid(0) : 0, 0);
  ::chmod(high_.c_str(), 0700);
  const auto forbidden = ElementsAre(StatusIs(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(snapshot->errors(),
              ElementsAre(Pair(high_, forbidden), Pair(low_ + "/a.json", forbidden)));
}

TEST_F(ScanTest, DirectoryMayBeALink) {
  Write(high_ + "/a.json", SpecText("huawei.com/npu", {"0"}));
  ASSERT_EQ(::symlink("high", temp_.File("link").c_str()), 0);
  ASSERT_EQ(::symlink(".", temp_.File("parent").c_str()), 0);
  EXPECT_THAT(DevicesOf(*Scan({temp_.File("link")})), ElementsAre("huawei.com/npu=0"));
  EXPECT_THAT(FilesOf(*Scan({temp_.File("parent/high/")})),
              ElementsAre(temp_.File("parent/high/a.json")));
}

TEST(DefaultDirectoriesTest, AreTheReferencesOnes) {
  EXPECT_THAT(DefaultDirectories(), ElementsAre("/etc/cdi", "/var/run/cdi"));
}

// With a clock that runs `ahead` of the real one, so that files count as written long ago.
class ScannerTest : public ScanTest {
 protected:
  Scanner Make(time_t ahead) {
    return Scanner({low_, high_}, [ahead] {
      timespec now;
      ::clock_gettime(CLOCK_REALTIME, &now);
      now.tv_sec += ahead;
      return now;
    });
  }
  static constexpr time_t kLongAfter = 1000;
};

TEST_F(ScannerTest, KeepsWhatDidNotChange) {
  Write(low_ + "/a.json", SpecText("huawei.com/npu", {"a"}));
  Write(low_ + "/b.json", SpecText("huawei.com/npu", {"b"}));
  Write(low_ + "/bad.json", "{");
  Scanner scanner = Make(kLongAfter);
  const auto first = scanner.Scan();
  EXPECT_EQ(scanner.Scan(), first);

  Write(low_ + "/b.json", SpecText("huawei.com/npu", {"c"}, "A=longer"));
  const auto second = scanner.Scan();
  EXPECT_THAT(DevicesOf(*second), ElementsAre("huawei.com/npu=a", "huawei.com/npu=c"));
  EXPECT_EQ(second->files()[0], first->files()[0]);
  EXPECT_NE(second->files()[1], first->files()[1]);
  EXPECT_EQ(second->errors(), first->errors());
  EXPECT_THAT(DevicesOf(*first), ElementsAre("huawei.com/npu=a", "huawei.com/npu=b"));

  ::unlink((low_ + "/a.json").c_str());
  EXPECT_THAT(DevicesOf(*scanner.Scan()), ElementsAre("huawei.com/npu=c"));
  Write(low_ + "/bad.json", SpecText("huawei.com/npu", {"good"}));
  const auto repaired = scanner.Scan();
  EXPECT_THAT(DevicesOf(*repaired), ElementsAre("huawei.com/npu=c", "huawei.com/npu=good"));
  EXPECT_THAT(repaired->errors(), IsEmpty());
}

// The size and the time of writing may be the same: an inode and its time of change are not.
TEST_F(ScannerTest, SeesAReplacedFileOfTheSameSizeAndTime) {
  const std::string path = low_ + "/a.json";
  Write(path, SpecText("huawei.com/npu", {"a"}));
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  Scanner scanner = Make(kLongAfter);
  scanner.Scan();
  Write(low_ + "/new", SpecText("huawei.com/npu", {"b"}));
  const timespec times[] = {info.st_atim, info.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, (low_ + "/new").c_str(), times, 0), 0);
  ASSERT_EQ(::rename((low_ + "/new").c_str(), path.c_str()), 0);
  EXPECT_THAT(DevicesOf(*scanner.Scan()), ElementsAre("huawei.com/npu=b"));
}

// Two writes within one tick of the file system's clock leave the same size and times behind.
TEST_F(ScannerTest, ReadsFreshFilesAgain) {
  const std::string path = low_ + "/a.json";
  Scanner scanner = Make(0);
  for (int i = 0; i < 200; ++i) {
    const std::string name = i % 2 == 0 ? "a" : "b";
    Write(path, SpecText("huawei.com/npu", {name}));
    ASSERT_THAT(DevicesOf(*scanner.Scan()), ElementsAre("huawei.com/npu=" + name)) << i;
  }
  const auto last = scanner.Scan();
  EXPECT_EQ(scanner.Scan(), last) << "read again, but with the same content";
}

TEST_F(ScannerTest, SeesTheTargetOfALinkChange) {
  Write(temp_.File("x"), SpecText("huawei.com/npu", {"x"}));
  Write(temp_.File("y"), SpecText("huawei.com/npu", {"y"}));
  ASSERT_EQ(::symlink(temp_.File("x").c_str(), (low_ + "/a.json").c_str()), 0);
  Scanner scanner = Make(kLongAfter);
  scanner.Scan();
  Write(temp_.File("x"), SpecText("huawei.com/npu", {"longer"}));
  EXPECT_THAT(DevicesOf(*scanner.Scan()), ElementsAre("huawei.com/npu=longer"));
  ASSERT_EQ(::rename(temp_.File("y").c_str(), temp_.File("x").c_str()), 0);
  EXPECT_THAT(DevicesOf(*scanner.Scan()), ElementsAre("huawei.com/npu=y"));
}

TEST_F(ScannerTest, SeesADirectoryComeAndGo) {
  Scanner scanner({temp_.File("later")});
  EXPECT_THAT(scanner.Scan()->devices(), IsEmpty());
  ASSERT_THAT(MakeDirectories(temp_.File("later")), IsOk());
  Write(temp_.File("later/a.json"), SpecText("huawei.com/npu", {"0"}));
  EXPECT_THAT(DevicesOf(*scanner.Scan()), ElementsAre("huawei.com/npu=0"));
  ASSERT_EQ(::rename(temp_.File("later").c_str(), temp_.File("gone").c_str()), 0);
  EXPECT_THAT(scanner.Scan()->devices(), IsEmpty());
}

// A snapshot outlives the scanner and the files.
TEST_F(ScannerTest, SnapshotsStandAlone) {
  std::shared_ptr<const Snapshot> snapshot;
  {
    TempDir temp;
    Write(temp.File("a.json"), SpecText("huawei.com/npu", {"0"}));
    snapshot = Scan({temp.path()});
  }
  EXPECT_EQ(snapshot->Find("huawei.com/npu=0")->device->container_edits.env[0], "A=1");
}

}  // namespace
}  // namespace ascend::cdi
