#include "cli/claims/findings.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "cli/claims/test_node.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ascend::cli {
namespace {

using kubeletplugin::ClaimRecord;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class FindingsTest : public ::testing::Test {
 protected:
  // "kind uid" of each.
  std::vector<std::string> Kinds() {
    findings_ = FindProblems(node_.Read());
    std::vector<std::string> kinds;
    for (const Finding& finding : findings_) {
      EXPECT_NE(finding.path, "");
      EXPECT_NE(finding.problem, "");
      EXPECT_NE(finding.remedy, "");
      kinds.push_back(finding.kind);
      if (!finding.uid.empty()) absl::StrAppend(&kinds.back(), " ", finding.uid);
    }
    return kinds;
  }

  TestNode node_;
  std::vector<Finding> findings_;
};

TEST_F(FindingsTest, NothingIsWrong) {
  node_.Prepare(TestNode::Record("a", {0, 1}));
  node_.Prepare(TestNode::Record("b", {2}));
  node_.WriteFile(node_.LockPath("claim-uid-a"), "", absl::Hours(24));  // of a live claim
  node_.WriteFile(node_.LockPath("chip-0"), "", absl::Hours(24));
  node_.WriteFile(node_.LockPath("claim-"), "", absl::Hours(24));  // names no claim
  // Others' files in the CDI directory.
  node_.WriteFile(node_.root() + "/cdi/vendor.json", "garbage", absl::Hours(24));
  node_.WriteFile(node_.root() + "/cdi/.vendor.json.1.tmp", "", absl::Hours(24));
  EXPECT_THAT(Kinds(), IsEmpty());
}

TEST_F(FindingsTest, RecordsThatCannotBeRead) {
  const ClaimRecord record = TestNode::Record("a", {0});
  node_.Prepare(record);
  const std::string path = node_.RecordPath("uid-a");
  const auto text = ReadFile(path);
  ASSERT_THAT(text, IsOk());

  node_.WriteFile(path, absl::StrReplaceAll(*text, {{"npu-0", "npu-7"}}));
  EXPECT_THAT(Kinds(), ElementsAre("record_unreadable uid-a"));
  EXPECT_THAT(findings_[0].problem, HasSubstr("checksum"));
  EXPECT_THAT(findings_[0].remedy, HasSubstr(path));

  node_.WriteFile(path, text->substr(0, text->size() / 2));
  EXPECT_THAT(Kinds(), ElementsAre("record_unreadable uid-a"));
  node_.WriteFile(path, "");
  EXPECT_THAT(Kinds(), ElementsAre("record_unreadable uid-a"));

  // Of another claim.
  node_.WriteFile(path, SerializeRecord(TestNode::Record("b", {0})));
  EXPECT_THAT(Kinds(), ElementsAre("record_unreadable uid-a"));
  EXPECT_THAT(findings_[0].problem, HasSubstr("uid-b"));

  // Of a later format.
  std::string json = absl::StrReplaceAll(text->substr(0, text->find('\n')),
                                         {{"\"formatVersion\":1", "\"formatVersion\":9"}});
  node_.WriteFile(
      path, absl::StrCat(json, "\ncrc32c:", absl::Hex(kubeletplugin::Crc32c(json), absl::kZeroPad8),
                         "\n"));
  EXPECT_THAT(Kinds(), ElementsAre("record_unreadable uid-a"));
  EXPECT_THAT(findings_[0].remedy, HasSubstr("newer version"));
}

TEST_F(FindingsTest, CdiFiles) {
  const ClaimRecord record = TestNode::Record("a", {0, 1});
  node_.Prepare(record);
  ASSERT_EQ(::unlink(node_.CdiPath("a").c_str()), 0);
  EXPECT_THAT(Kinds(), ElementsAre("cdi_file_missing uid-a"));
  EXPECT_EQ(findings_[0].path, node_.CdiPath("a"));
  EXPECT_THAT(findings_[0].remedy, Not(HasSubstr("delete")));

  node_.WriteFile(node_.CdiPath("a"), "{");
  EXPECT_THAT(Kinds(), ElementsAre("cdi_file_unreadable uid-a"));
  // The driver restores what is missing, not what is there.
  EXPECT_THAT(findings_[0].remedy, StartsWith("delete it"));

  const auto differs = [&](const ClaimRecord& written) {
    node_.WriteCdiFile(written);
    EXPECT_THAT(Kinds(), ElementsAre("cdi_file_differs uid-a"));
    EXPECT_THAT(findings_[0].remedy, StartsWith("delete it"));
    return findings_.empty() ? "" : findings_[0].problem;
  };
  ClaimRecord other = record;
  other.devices.pop_back();
  EXPECT_EQ(differs(other), "it has no device uid-a-npu-1");
  other = record;
  other.devices[1].chips[0].node_number = 7;
  EXPECT_EQ(differs(other), "its device uid-a-npu-1 lacks /dev/davinci1");
  other = record;
  other.devices.push_back(TestNode::Device(5, "uid-a"));
  EXPECT_EQ(differs(other), "it gives what the record does not: /dev/davinci5");
  // A device without chips is none of the record's business.
  other = record;
  other.devices.push_back(TestNode::Device(6, "uid-a"));
  other.devices[2].chips.clear();
  other.devices[2].chips.push_back(other.devices[0].chips[0]);
  node_.WriteCdiFile(other);
  EXPECT_THAT(Kinds(), IsEmpty());
}

TEST_F(FindingsTest, AChipHeldTwice) {
  node_.Prepare(TestNode::Record("a", {0, 1}));
  node_.Prepare(TestNode::Record("b", {1, 2}));
  EXPECT_THAT(Kinds(), ElementsAre("chip_held_twice uid-b"));
  EXPECT_THAT(findings_[0].problem,
              HasSubstr("chip 1 is also held by claim default/a (UID uid-a)"));

  // A monitor may look at any chip.
  ClaimRecord monitor = TestNode::Record("b", {1, 2});
  for (auto& device : monitor.devices) device.admin_access = true;
  node_.Prepare(monitor);
  EXPECT_THAT(Kinds(), IsEmpty());

  // Two shares of a device are two things; a share and the whole device are not.
  ClaimRecord first = TestNode::Record("a", {1}), second = TestNode::Record("b", {1});
  first.devices[0].share_id = "share-1";
  second.devices[0].share_id = "share-2";
  node_.Prepare(first);
  node_.Prepare(second);
  EXPECT_THAT(Kinds(), IsEmpty());
  second.devices[0].share_id = "";
  node_.Prepare(second);
  EXPECT_THAT(Kinds(), ElementsAre("chip_held_twice uid-b"));
}

TEST_F(FindingsTest, LeftoversCountOnceTheyAreOld) {
  const std::vector<std::string> files = {
      node_.RecordPath(".uid-a.x1y2.tmp"),
      node_.root() + "/cdi/.k8s.npu.huawei.com-claim_uid-a.json.x1y2.tmp",
      node_.LockPath("claim-uid-gone"),
  };
  for (const std::string& file : files) node_.WriteFile(file, "", absl::Minutes(1));
  EXPECT_THAT(Kinds(), IsEmpty());  // somebody may be at work
  for (const std::string& file : files) node_.WriteFile(file, "", absl::Hours(1));
  node_.WriteCdiFile(TestNode::Record("orphan", {1}));
  node_.WriteFile(node_.RecordPath("notes for later"), "");
  EXPECT_THAT(Kinds(), ElementsAre("cdi_file_orphaned uid-orphan", "lock_stale uid-gone",
                                   "temporary_stale", "temporary_stale", "file_unknown"));
}

TEST_F(FindingsTest, AnUnreadableRecordKeepsItsCdiFileAndLock) {
  node_.Prepare(TestNode::Record("a", {0}));
  node_.WriteFile(node_.RecordPath("uid-a"), "garbage\n");
  node_.WriteFile(node_.LockPath("claim-uid-a"), "", absl::Hours(1));
  EXPECT_THAT(Kinds(), ElementsAre("record_unreadable uid-a"));
}

TEST_F(FindingsTest, WhatCannotBeReadIsAnError) {
  NodeFilesOptions options = node_.options();
  options.paths.kubelet_root = node_.root() + "/elsewhere";
  EXPECT_THAT(ReadNodeFiles(options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("--kubelet-root")));
  options = node_.options();
  options.paths.driver_name = "Not A Name";
  EXPECT_THAT(ReadNodeFiles(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Not A Name")));
  // Without a CDI directory every claim's file is missing.
  node_.WriteRecord(TestNode::Record("a", {0}));
  options = node_.options();
  options.paths.cdi_root = node_.root() + "/elsewhere";
  const auto files = ReadNodeFiles(options);
  ASSERT_THAT(files, IsOk());
  EXPECT_EQ(FindProblems(*files).at(0).kind, "cdi_file_missing");
}

}  // namespace
}  // namespace ascend::cli
