#include "kubeletplugin/paths.h"

#include <string>

#include "absl/strings/match.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kUid[] = "3f2b7d5e-0c1a-4a57-9c1f-6f0a3d1f9b11";

Paths::Options Defaults() {
  return {.kubelet_root = "/var/lib/kubelet",
          .cdi_root = "/var/run/cdi",
          .driver_name = "npu.huawei.com",
          .pod_uid = kUid};
}

TEST(PathsTest, DefaultLayout) {
  const auto paths = Paths::Create(Defaults());
  ASSERT_THAT(paths, IsOk());
  EXPECT_EQ(paths->registration_socket(),
            "/var/lib/kubelet/plugins_registry/npu.huawei.com-3f2b7d5e-0c1a-4a57-9c1f-6f0a3d1f9b11"
            "-reg.sock");
  EXPECT_EQ(
      paths->service_socket(),
      "/var/lib/kubelet/plugins/npu.huawei.com/dra-3f2b7d5e-0c1a-4a57-9c1f-6f0a3d1f9b11.sock");
  EXPECT_EQ(paths->claims_directory(), "/var/lib/kubelet/plugins/npu.huawei.com/claims");
  EXPECT_EQ(paths->cdi_kind(), "k8s.npu.huawei.com/claim");
  EXPECT_EQ(paths->cdi_file("u1"), "k8s.npu.huawei.com-claim_u1.json");
  EXPECT_EQ(paths->cdi_device_id(paths->cdi_device_name("u1", "npu-3", "")),
            "k8s.npu.huawei.com/claim=u1-npu-3");
  EXPECT_EQ(paths->cdi_device_name("u1", "npu-3", "deadbeef-0000"), "u1-npu-3-deadbeef");
}

TEST(PathsTest, OneInstanceHasNoUidInItsSockets) {
  Paths::Options options = Defaults();
  options.pod_uid = "";
  const auto paths = Paths::Create(options);
  ASSERT_THAT(paths, IsOk());
  EXPECT_EQ(paths->registration_socket(),
            "/var/lib/kubelet/plugins_registry/npu.huawei.com-reg.sock");
  EXPECT_EQ(paths->service_socket(), "/var/lib/kubelet/plugins/npu.huawei.com/dra.sock");
}

// Every length around the limit: whatever is accepted fits, whatever is refused says why.
TEST(PathsTest, SocketPathsNeverExceedTheLimit) {
  int accepted = 0, refused = 0;
  for (size_t root = 1; root <= 80; ++root) {
    for (size_t name : {1, 14, 27, 36, 52, 63}) {
      Paths::Options options = Defaults();
      options.kubelet_root = "/" + std::string(root, 'r');
      options.driver_name = std::string(name, 'n');
      const auto paths = Paths::Create(options);
      if (paths.ok()) {
        ++accepted;
        EXPECT_LE(paths->registration_socket().size(), kMaxSocketPath);
        EXPECT_LE(paths->service_socket().size(), kMaxSocketPath);
      } else {
        ++refused;
        EXPECT_THAT(paths, StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr("the limit is 107"), HasSubstr("shorter"))));
      }
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_GT(refused, 0);
}

TEST(PathsTest, RegistrationSocketIsShortenedByHashBeforeItIsRefused) {
  Paths::Options options = Defaults();
  options.kubelet_root = "/data/kubelet-root-dir";  // plain name: 110 bytes
  options.driver_name = "npu.cluster-a.example.org";
  const auto paths = Paths::Create(options);
  ASSERT_THAT(paths, IsOk());
  EXPECT_FALSE(absl::StrContains(paths->registration_socket(), kUid));
  EXPECT_THAT(paths->registration_socket(), HasSubstr("npu.cluster-a.example.org-"));
  // Another pod gets another name.
  options.pod_uid[0] = '4';
  EXPECT_NE(Paths::Create(options)->registration_socket(), paths->registration_socket());
}

TEST(PathsTest, BadInputIsRefused) {
  for (const char* name : {"", "Npu", "npu_x", ".npu", "npu..x", "-npu", "npu/x"}) {
    Paths::Options options = Defaults();
    options.driver_name = name;
    EXPECT_THAT(Paths::Create(options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("driver name")));
  }
  Paths::Options relative = Defaults();
  relative.kubelet_root = "var/lib/kubelet";
  EXPECT_THAT(Paths::Create(relative),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("absolute")));
  Paths::Options uid = Defaults();
  uid.pod_uid = "../x";
  EXPECT_THAT(Paths::Create(uid),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pod UID")));
}

TEST(PathsTest, ClaimOfCdiFileIsTheInverseOfCdiFile) {
  const auto paths = Paths::Create(Defaults());
  ASSERT_THAT(paths, IsOk());
  EXPECT_EQ(paths->claim_of_cdi_file(paths->cdi_file(kUid)), kUid);
  for (const char* name :
       {"k8s.npu.huawei.com-claim_.json", "k8s.npu.huawei.com-claim_u1.yaml", "vendor.json",
        "k8s.npu.huawei.com-claim_..%2f.json", ".k8s.npu.huawei.com-claim_u1.json.x.tmp"}) {
    EXPECT_EQ(paths->claim_of_cdi_file(name), "") << name;
  }
}

TEST(PathsTest, ClaimOfLockIsTheInverseOfClaimLock) {
  const auto paths = Paths::Create(Defaults());
  ASSERT_THAT(paths, IsOk());
  const std::string lock = paths->claim_lock(kUid);
  const std::string directory = paths->locks_directory() + "/";
  ASSERT_TRUE(absl::StartsWith(lock, directory)) << lock;
  EXPECT_EQ(Paths::claim_of_lock(lock.substr(directory.size())), kUid);
  const std::string chip = paths->chip_lock(3);
  EXPECT_EQ(Paths::claim_of_lock(chip.substr(directory.size())), "") << chip;
  for (const char* name : {"", "claim-", "claim-..", "claim-a/b", "claim_u1", ".claim-u1.x.tmp",
                           "u1", "claim-claim_u1"}) {
    EXPECT_EQ(Paths::claim_of_lock(name), "") << name;
  }
}

TEST(PathsTest, ClaimOfDeviceMetadataIsTheInverseOfItsFile) {
  EXPECT_EQ(Paths::claim_of_device_metadata(Paths::device_metadata_file(kUid, "npu")), kUid);
  for (const char* name :
       {"_npu.json", "u1.json", "u1_npu", "../x_npu.json", ".u1_npu.json.x.tmp"}) {
    EXPECT_EQ(Paths::claim_of_device_metadata(name), "") << name;
  }
}

TEST(PathsTest, SafeClaimUids) {
  EXPECT_TRUE(IsSafeClaimUid(kUid));
  for (const char* uid : {"", ".", "..", "a/b", "a\n", "-a", "a-", "a..b", "a b"}) {
    EXPECT_FALSE(IsSafeClaimUid(uid)) << uid;
  }
  EXPECT_FALSE(IsSafeClaimUid(std::string(65, 'a')));
}

}  // namespace
}  // namespace ascend::kubeletplugin
