#include "cdi/spec_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "cdi/document.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr absl::string_view kJson =
    R"({"cdiVersion":"0.3.0","kind":"a.b/c","devices":[{"name":"x","containerEdits":{"env":["A=1"]}}]})";
constexpr absl::string_view kYaml =
    "cdiVersion: 0.3.0\nkind: a.b/c\ndevices: [{name: x, containerEdits: {env: [A=1]}}]\n";

class SpecFileTest : public testing::Test {
 protected:
  std::string Write(absl::string_view name, absl::string_view content, mode_t mode = 0644) {
    std::string path = directory_.File(name);
    AtomicWriteOptions options;
    options.mode = mode;
    options.durable = false;
    EXPECT_THAT(WriteFileAtomically(path, content, options), IsOk());
    return path;
  }

  TempDir directory_;
};

auto Fails(absl::StatusCode code, const std::string& path, const char* problem) {
  return StatusIs(code, AllOf(HasSubstr(path), HasSubstr(problem)));
}

TEST(IsSpecFileNameTest, TakesExactExtensions) {
  for (const char* name : {"a.json", "a.yaml", ".a.json", ".json", "a.b.yaml"}) {
    EXPECT_TRUE(IsSpecFileName(name)) << name;
  }
  for (const char* name : {"", "json", "a.yml", "a.JSON", "a.json.tmp", "a.json~", "a.yaml "}) {
    EXPECT_FALSE(IsSpecFileName(name)) << name;
  }
}

TEST_F(SpecFileTest, ReadsBothKinds) {
  const std::string json = Write("s.json", kJson);
  const absl::StatusOr<SpecFile> first = ReadSpecFile(json);
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->path, json);
  EXPECT_EQ(first->spec.devices[0].name, "x");
  EXPECT_THAT(first->findings, IsEmpty());
  const absl::StatusOr<SpecFile> second = ReadSpecFile(Write("s.yaml", kYaml));
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(second->spec, first->spec);
}

TEST_F(SpecFileTest, ReadsByExtensionOnly) {
  const std::string yaml_in_json = Write("s.json", kYaml);
  EXPECT_THAT(ReadSpecFile(yaml_in_json),
              Fails(absl::StatusCode::kInvalidArgument, yaml_in_json, ": line 1, column 1: "));
  EXPECT_THAT(ReadSpecFile(Write("s.yaml", kJson)), IsOk());
  const std::string other = Write("s.yml", kYaml);
  EXPECT_THAT(ReadSpecFile(other), Fails(absl::StatusCode::kInvalidArgument, other, ".yaml"));
}

TEST_F(SpecFileTest, ErrorsNameFileAndPlace) {
  const std::string path = Write("s.yaml", "cdiVersion: 0.3.0\nkind: a.b/c\ndevices: [~]\n");
  EXPECT_THAT(ReadSpecFile(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                           path + ": devices[0]: must be an object, not null"));
}

TEST_F(SpecFileTest, OnlyRegularFiles) {
  const std::string directory = directory_.File("d.json");
  ASSERT_EQ(::mkdir(directory.c_str(), 0755), 0);
  EXPECT_THAT(ReadSpecFile(directory),
              Fails(absl::StatusCode::kFailedPrecondition, directory, "not a regular file"));

  const std::string fifo = directory_.File("f.yaml");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0644), 0);
  EXPECT_THAT(ReadSpecFile(fifo),
              Fails(absl::StatusCode::kFailedPrecondition, fifo, "not a regular file"));

  const std::string socket_path = directory_.File("s.json");
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket_path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  EXPECT_THAT(ReadSpecFile(socket_path),
              Fails(absl::StatusCode::kFailedPrecondition, socket_path, "not a regular file"));

  const std::string device = directory_.File("null.json");
  ASSERT_EQ(::symlink("/dev/null", device.c_str()), 0);
  EXPECT_THAT(ReadSpecFile(device),
              Fails(absl::StatusCode::kFailedPrecondition, device, "not a regular file"));
}

TEST_F(SpecFileTest, MissingFiles) {
  const std::string missing = directory_.File("missing.json");
  EXPECT_THAT(ReadSpecFile(missing), Fails(absl::StatusCode::kNotFound, missing, ""));
  const std::string dangling = directory_.File("dangling.json");
  ASSERT_EQ(::symlink("nothing", dangling.c_str()), 0);
  EXPECT_THAT(ReadSpecFile(dangling), Fails(absl::StatusCode::kNotFound, dangling, ""));
  const std::string loop = directory_.File("loop.json");
  ASSERT_EQ(::symlink("loop.json", loop.c_str()), 0);
  EXPECT_THAT(ReadSpecFile(loop), Fails(absl::StatusCode::kInternal, loop, ""));
}

TEST_F(SpecFileTest, UnreadableFile) {
  const std::string path = Write("s.json", kJson, 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  // Root may read everything.
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  const absl::StatusOr<SpecFile> file = ReadSpecFile(path);
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_THAT(file, Fails(absl::StatusCode::kPermissionDenied, path, ""));
}

TEST_F(SpecFileTest, SizeIsLimitedBeforeParsing) {
  for (const char* name : {"s.json", "s.yaml"}) {
    const std::string path = Write(name, "");
    ASSERT_EQ(::truncate(path.c_str(), 100 << 20), 0);
    EXPECT_THAT(ReadSpecFile(path), Fails(absl::StatusCode::kOutOfRange, path, "larger than"));
  }
  const std::string path = Write("t.yaml", std::string(kMaxYamlSize + 1, '\n'));
  EXPECT_THAT(ReadSpecFile(path), Fails(absl::StatusCode::kOutOfRange, path, "larger than"));
}

TEST_F(SpecFileTest, FindingsAreNoErrors) {
  const std::string target = Write("s.json", kJson);
  const std::string link = directory_.File("link.json");
  ASSERT_EQ(::symlink("s.json", link.c_str()), 0);
  absl::StatusOr<SpecFile> file = ReadSpecFile(link);
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->findings, ElementsAre(StartsWith("a symlink")));

  file = ReadSpecFile(Write("w.json", kJson, 0664));
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->findings, ElementsAre(StartsWith("mode 0664: others than its owner")));

  file = ReadSpecFile(Write("r.json", kJson, 0600));
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->findings, ElementsAre(StartsWith("mode 0600: rootless")));

  // Only root can give a file away.
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(target.c_str(), 1234, 1234), 0);
    file = ReadSpecFile(target);
    ASSERT_THAT(file, IsOk());
    EXPECT_THAT(file->findings, ElementsAre("owned by user 1234"));
  }
}

TEST_F(SpecFileTest, AFileThatIsReplacedIsTheOldOrTheNewOne) {
  const std::string path = Write("s.json", kJson);
  const std::string longer = std::string(200000, ' ') + std::string(kJson);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      Write("s.json", longer);
      Write("s.json", kJson);
    }
  });
  for (int i = 0; i < 200; ++i) EXPECT_THAT(ReadSpecFile(path), IsOk());
  stop = true;
  writer.join();
}

TEST_F(SpecFileTest, AFileThatShrinksUnderTheReaderIsNoCrash) {
  const std::string longer = std::string(200000, ' ') + std::string(kJson);
  const std::string path = Write("s.json", longer);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      const UniqueFd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
      EXPECT_EQ(::write(file.get(), longer.data(), longer.size()),
                static_cast<ssize_t>(longer.size()));
    }
  });
  for (int i = 0; i < 200; ++i) {
    const absl::StatusOr<SpecFile> file = ReadSpecFile(path);
    if (!file.ok()) {
      EXPECT_THAT(file, StatusIs(absl::StatusCode::kInvalidArgument));
    }
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace ascend::cdi
