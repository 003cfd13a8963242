#include "kubeletplugin/claims/host_files.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_host.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = HostFiles::Kind;

class HostFilesTest : public ::testing::Test {
 protected:
  TempDir dir_;
  FakeHost host_{dir_.File("host")};
  HostFiles files_{host_.root()};
};

TEST_F(HostFilesTest, Kinds) {
  host_.File("/etc/file");
  host_.Directory("/etc/dir");
  host_.Link("/etc/link", "file");
  host_.Directory("/run");
  ASSERT_EQ(::mkfifo((host_.root() + "/run/fifo").c_str(), 0600), 0);
  EXPECT_EQ(files_.Look("/etc/file").kind, Kind::kFile);
  EXPECT_EQ(files_.Look("/etc/dir").kind, Kind::kDirectory);
  EXPECT_EQ(files_.Look("/etc/link").kind, Kind::kSymlink);
  EXPECT_EQ(files_.Look("/run/fifo").kind, Kind::kOther);
  EXPECT_EQ(files_.Look("/etc/none").kind, Kind::kMissing);
  EXPECT_EQ(files_.Look("/none/file").kind, Kind::kMissing);
  EXPECT_EQ(files_.Look("/etc/file/below").kind, Kind::kMissing);
  EXPECT_EQ(files_.Look("/").kind, Kind::kDirectory);
}

TEST_F(HostFilesTest, NumbersOfCharacterDevices) {
  if (!FakeHost::CanMakeNodes()) GTEST_SKIP() << "mknod is refused: needs root with CAP_MKNOD";
  host_.Node("/dev/davinci3", 236, 3);
  const HostFiles::Entry entry = files_.Look("/dev/davinci3");
  EXPECT_EQ(entry.kind, Kind::kCharacterDevice);
  EXPECT_EQ(major(entry.device_number), 236u);
  EXPECT_EQ(minor(entry.device_number), 3u);
}

TEST_F(HostFilesTest, FollowLeadsToTheEnd) {
  host_.File("/data/real/file");
  host_.Link("/a", "b");
  host_.Link("/b", "data/real");
  EXPECT_EQ(files_.Follow("/a").kind, Kind::kDirectory);
  EXPECT_EQ(files_.Follow("/a/file").kind, Kind::kFile);
  // Links in parents are followed by Look, too: only the end of the path is taken as it is.
  EXPECT_EQ(files_.Look("/a/file").kind, Kind::kFile);
  EXPECT_EQ(files_.Look("/a").kind, Kind::kSymlink);
}

TEST_F(HostFilesTest, AbsoluteLinksCountFromThePrefix) {
  host_.File("/opt/driver/version.info", "of the host");
  host_.Link("/usr/local/driver", "/opt/driver");
  EXPECT_EQ(files_.Follow("/usr/local/driver").kind, Kind::kDirectory);
  EXPECT_THAT(files_.Read("/usr/local/driver/version.info"), IsOkAndHolds("of the host"));
  // The container's own file of that name does not count: this one exists outside the prefix.
  host_.Link("/etc/passwd-link", "/etc/passwd");
  EXPECT_FALSE(files_.Exists("/etc/passwd-link"));
}

TEST_F(HostFilesTest, DotDotStaysBelowThePrefix) {
  host_.File("/etc/file");
  host_.Link("/etc/up", "../../../../etc/file");
  EXPECT_EQ(files_.Follow("/etc/up").kind, Kind::kFile);
  EXPECT_EQ(files_.Follow("/../../etc/./file").kind, Kind::kFile);
  // "above" lies beside the prefix, not below it.
  EXPECT_FALSE(files_.Exists("/../host"));
}

TEST_F(HostFilesTest, DanglingLinksAndLoopsAreMissing) {
  host_.Link("/dangling", "/nowhere");
  host_.Link("/loop/a", "b");
  host_.Link("/loop/b", "a");
  host_.Link("/self", "self/x");
  EXPECT_EQ(files_.Follow("/dangling").kind, Kind::kMissing);
  EXPECT_EQ(files_.Follow("/loop/a").kind, Kind::kMissing);
  EXPECT_EQ(files_.Follow("/self").kind, Kind::kMissing);
  EXPECT_EQ(files_.Look("/self/x").kind, Kind::kMissing);
  EXPECT_EQ(files_.Look("/dangling").kind, Kind::kSymlink);
}

TEST_F(HostFilesTest, LongChainsAreFollowedUpToALimit) {
  host_.File("/file");
  host_.Link("/link1", "file");
  for (int i = 2; i <= 20; ++i) {
    host_.Link("/link" + std::to_string(i), "link" + std::to_string(i - 1));
  }
  EXPECT_TRUE(files_.Exists("/link16"));
  EXPECT_FALSE(files_.Exists("/link17"));
}

TEST_F(HostFilesTest, ListIsSortedAndEmptyWhenMissing) {
  host_.File("/dev/uburma/b");
  host_.File("/dev/uburma/a");
  host_.Link("/dev/link", "/dev/uburma");
  EXPECT_THAT(files_.List("/dev/uburma"), ElementsAre("a", "b"));
  EXPECT_THAT(files_.List("/dev/link"), ElementsAre("a", "b"));
  EXPECT_THAT(files_.List("/dev/none"), IsEmpty());
  EXPECT_THAT(files_.List("/dev/uburma/a"), IsEmpty());
}

TEST_F(HostFilesTest, ReadNamesWhatIsMissing) {
  EXPECT_THAT(files_.Read("/etc/none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/etc/none")));
  host_.Directory("/etc/dir");
  EXPECT_THAT(files_.Read("/etc/dir"), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(HostFilesTest, TheWholeFileSystemIsAPrefixToo) {
  HostFiles root("/");
  EXPECT_EQ(root.Look("/dev/null").kind, Kind::kCharacterDevice);
  EXPECT_EQ(root.Look("/").kind, Kind::kDirectory);
}

TEST_F(HostFilesTest, OnePassLooksOnce) {
  host_.File("/usr/lib/a");
  host_.Link("/lib", "usr/lib");
  const HostFiles pass = files_.OnePass();
  EXPECT_TRUE(pass.Exists("/lib/a"));
  EXPECT_FALSE(pass.Exists("/lib/b"));
  host_.File("/usr/lib/b");
  host_.Remove("/lib");
  EXPECT_TRUE(pass.Exists("/lib/a")) << "from memory";
  EXPECT_FALSE(pass.Exists("/lib/b")) << "from memory";
  EXPECT_TRUE(pass.Exists("/usr/lib/../lib/a"));
  // The next pass, and whoever makes none, sees what is there now.
  EXPECT_FALSE(files_.OnePass().Exists("/lib/a"));
  EXPECT_TRUE(files_.OnePass().Exists("/usr/lib/b"));
  EXPECT_FALSE(files_.Exists("/lib/a"));
  EXPECT_TRUE(files_.Exists("/usr/lib/b"));
}

TEST_F(HostFilesTest, PathsThatEndInDots) {
  host_.File("/etc/a/file");
  host_.Link("/link", "etc/a");
  EXPECT_EQ(files_.Look("/etc/a/.").kind, Kind::kDirectory);
  EXPECT_EQ(files_.Look("/link/..").kind, Kind::kDirectory);
  EXPECT_EQ(files_.Look("/link/../a/file").kind, Kind::kFile) << "'..' counts from the target";
  EXPECT_EQ(files_.Look("/../..").kind, Kind::kDirectory);
}

}  // namespace
}  // namespace ascend::kubeletplugin
