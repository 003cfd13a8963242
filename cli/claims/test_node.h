// The files of a node with claims, for tests.
#ifndef ASCEND_DRA_CLI_CLAIMS_TEST_NODE_H_
#define ASCEND_DRA_CLI_CLAIMS_TEST_NODE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/core/temp_dir.h"
#include "cli/claims/node_files.h"
#include "kubeletplugin/claims/record.h"

namespace ascend::cli {

class TestNode {
 public:
  TestNode();

  // Device "npu-<id>" of one chip, under request "npu".
  static kubeletplugin::RecordedDevice Device(int id, const std::string& claim_uid);
  // Claim "default/<name>" with UID "uid-<name>", of this boot.
  static kubeletplugin::ClaimRecord Record(const std::string& name, const std::vector<int>& chips);

  void WriteRecord(const kubeletplugin::ClaimRecord& record) const;
  // As the driver writes it.
  void WriteCdiFile(const kubeletplugin::ClaimRecord& record) const;
  // Both.
  void Prepare(const kubeletplugin::ClaimRecord& record) const;
  // A file of that age, whatever its text.
  void WriteFile(const std::string& path, const std::string& text,
                 absl::Duration age = absl::ZeroDuration()) const;

  std::string RecordPath(const std::string& name) const;
  std::string CdiPath(const std::string& name) const;
  std::string LockPath(const std::string& name) const;

  NodeFilesOptions options() const;
  // Fails the test if it cannot.
  NodeFiles Read() const;
  // Every file with its content and time, to see that nothing was changed.
  std::string Fingerprint() const;
  const std::string& root() const { return dir_.path(); }

 private:
  TempDir dir_;
};

}  // namespace ascend::cli

#endif  // ASCEND_DRA_CLI_CLAIMS_TEST_NODE_H_
