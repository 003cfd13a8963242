// The files in a mock node's state directory: read at any time, replaced as a whole under one lock.
//
// Like the library, this depends on nothing but the C++ library; exceptions are std::runtime_error
// and name the file.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_STATE_FILE_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_STATE_FILE_H_

#include <string>

namespace ascend::dcmi::mock {

// "state" in the node's directory.
std::string StateDirectory(const std::string& node_directory);
void MakeStateDirectory(const std::string& node_directory);

[[noreturn]] void FailAt(const std::string& path, const std::string& what);

// Empty if there is no such file.
std::string ReadText(const std::string& path);
// False if that was not possible; then nothing has changed. The caller holds the lock.
bool ReplaceText(const std::string& path, const std::string& text);
// Adds to the end, in one piece. False if that was not possible.
bool AppendText(const std::string& path, const std::string& text);

// The lock of a state directory, which must be there. Held until destroyed, or until the process
// ends.
class StateLock {
 public:
  explicit StateLock(const std::string& node_directory);
  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  const int fd_;
};

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_STATE_FILE_H_
