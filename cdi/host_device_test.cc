#include "cdi/host_device.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cdi {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

// A host with one path.
InjectionOptions Host(const std::string& path, mode_t mode, dev_t number = 0) {
  InjectionOptions options;
  options.lstat = [=](const std::string& asked, struct stat* info) {
    if (asked != path) return ENOENT;
    info->st_mode = mode;
    info->st_rdev = number;
    return 0;
  };
  return options;
}

const InjectionOptions kChip = Host("/dev/davinci0", S_IFCHR | 0660, makedev(236, 7));

TEST(HostDeviceTest, TheHostFillsInEverything) {
  const DeviceNode node = {.path = "/dev/davinci0"};
  const auto complete = CompleteFromHost(node, kChip);
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->node, &node);
  EXPECT_EQ(complete->type, "c");
  EXPECT_EQ(complete->major, 236);
  EXPECT_EQ(complete->minor, 7);
  EXPECT_THAT(complete->file_mode, Optional(0660u));
}

TEST(HostDeviceTest, HostPathIsWhereItLooks) {
  const DeviceNode node = {.path = "/dev/x", .host_path = "/dev/davinci0"};
  EXPECT_THAT(CompleteFromHost(node, kChip), IsOk());
  const DeviceNode other = {.path = "/dev/davinci0", .host_path = "/dev/x"};
  EXPECT_THAT(CompleteFromHost(other, kChip),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"/dev/davinci0\""), HasSubstr("host path \"/dev/x\""),
                             HasSubstr("No such file"))));
}

TEST(HostDeviceTest, TheNodeComesFirst) {
  // A major number alone: only the type is filled in.
  DeviceNode node = {.path = "/dev/davinci0", .major = 9, .minor = 8, .file_mode = 0600};
  auto complete = CompleteFromHost(node, kChip);
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->type, "c");
  EXPECT_EQ(complete->major, 9);
  EXPECT_EQ(complete->minor, 8);
  EXPECT_THAT(complete->file_mode, Optional(0600u));
  // A type alone: the numbers are looked up, the given minor is not kept.
  node = {.path = "/dev/davinci0", .type = "c", .minor = 8};
  complete = CompleteFromHost(node, kChip);
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->major, 236);
  EXPECT_EQ(complete->minor, 7);
}

TEST(HostDeviceTest, CompleteNodeNeedsNoHost) {
  DeviceNode node = {.path = "/dev/gone", .type = "b", .major = 9, .minor = 8};
  auto complete = CompleteFromHost(node, kChip);
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->type, "b");
  EXPECT_EQ(complete->file_mode, std::nullopt);
  // Nor does it matter what is there, but for the mode.
  node.path = "/dev/davinci0";
  complete = CompleteFromHost(node, kChip);
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->type, "b");
  EXPECT_EQ(complete->major, 9);
  EXPECT_THAT(complete->file_mode, Optional(0660u));
  // What is no device gives no mode either.
  complete = CompleteFromHost(node, Host("/dev/davinci0", S_IFREG | 0644));
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->file_mode, std::nullopt);
}

TEST(HostDeviceTest, Fifo) {
  const InjectionOptions host = Host("/run/pipe", S_IFIFO | 0600, makedev(1, 1));
  DeviceNode node = {.path = "/run/pipe"};
  auto complete = CompleteFromHost(node, host);
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->type, "p");
  EXPECT_EQ(complete->major, 0);
  node = {.path = "/run/gone", .type = "p"};
  EXPECT_THAT(CompleteFromHost(node, host), IsOk()) << "has no numbers to look up";
}

TEST(HostDeviceTest, RefusesAnotherType) {
  for (const char* type : {"b", "u"}) {
    const DeviceNode node = {.path = "/dev/davinci0", .type = type};
    EXPECT_THAT(CompleteFromHost(node, kChip),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr("/dev/davinci0"), HasSubstr("of type c"),
                               HasSubstr(std::string("type ") + type))));
  }
}

TEST(HostDeviceTest, RefusesWhatIsNoDevice) {
  for (const mode_t mode : {S_IFREG, S_IFDIR, S_IFLNK, S_IFSOCK}) {
    const DeviceNode node = {.path = "/x"};
    EXPECT_THAT(CompleteFromHost(node, Host("/x", mode | 0644)),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not a device node")));
  }
}

// Whatever the errno: the code says that the host is not as it has to be.
TEST(HostDeviceTest, AnyErrnoIsAFailedPrecondition) {
  for (const int error : {ENOENT, EACCES, ELOOP, EIO}) {
    InjectionOptions options;
    options.lstat = [error](const std::string&, struct stat*) { return error; };
    const DeviceNode node = {.path = "/x"};
    EXPECT_THAT(CompleteFromHost(node, options),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/x")));
  }
}

TEST(HostDeviceTest, OlderReleasesTookNoModeFromTheHost) {
  InjectionOptions options = kChip;
  options.compatibility.no_file_mode_from_host = true;
  const DeviceNode node = {.path = "/dev/davinci0"};
  const auto complete = CompleteFromHost(node, options);
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->file_mode, std::nullopt);
}

TEST(HostDeviceTest, AsksTheRealHostByDefault) {
  const DeviceNode null = {.path = "/dev/null"};
  const auto complete = CompleteFromHost(null, {});
  ASSERT_THAT(complete, IsOk());
  EXPECT_EQ(complete->major, 1);
  EXPECT_EQ(complete->minor, 3);
  TempDir temp;
  ASSERT_EQ(::symlink("/dev/null", temp.File("link").c_str()), 0);
  const DeviceNode link = {.path = temp.File("link")};
  EXPECT_THAT(CompleteFromHost(link, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("not a device node")));
}

}  // namespace
}  // namespace ascend::cdi
