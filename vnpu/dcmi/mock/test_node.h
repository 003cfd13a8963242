// A mock node of a test's own, which the mock library in this process sees while the object lives.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_TEST_NODE_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_TEST_NODE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/core/temp_dir.h"
#include "base/core/unique_fd.h"
#include "nlohmann/json_fwd.hpp"
#include "vnpu/dcmi/mock/edit.h"

namespace ascend::dcmi::mock {

class TestNode {
 public:
  // A copy of a shipped node. One at a time: the library finds it by the process's environment.
  explicit TestNode(absl::string_view shipped_name);
  ~TestNode();
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;

  const std::string& directory() const { return directory_.path(); }
  // A tree without device nodes, made at the first call.
  const std::string& Root();

  void Set(int physical_id, const std::vector<std::string>& assignments);
  void Call(const CallEdit& edit);
  // Any other change.
  void Edit(const std::function<void(nlohmann::json&)>& change);
  void Write(absl::string_view node_json);

  static std::vector<std::string> ShippedNames();
  static std::string LibraryPath();
  // A copy of the library below `directory`, which loads as one that was never initialised.
  // `hidden` names are not in its symbol table.
  static std::string CopyLibrary(const std::string& directory,
                                 const std::vector<std::string>& hidden = {});

 private:
  TempDir directory_;
  std::string root_;
};

// Tells when a file of a directory was read: after an edit, that a call has seen it.
class ReadWatch {
 public:
  explicit ReadWatch(const std::string& directory);
  void Wait() const;

 private:
  const UniqueFd fd_;
};

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_TEST_NODE_H_
