#include "vnpu/dcmi/mock/state_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace ascend::dcmi::mock {
namespace {

int OpenLock(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) FailAt(path, std::strerror(errno));
  while (flock(fd, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    close(fd);
    FailAt(path, std::strerror(error));
  }
  return fd;
}

}  // namespace

std::string StateDirectory(const std::string& node_directory) { return node_directory + "/state"; }

void MakeStateDirectory(const std::string& node_directory) {
  const std::string directory = StateDirectory(node_directory);
  if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    FailAt(directory, std::strerror(errno));
  }
}

void FailAt(const std::string& path, const std::string& what) {
  throw std::runtime_error(path + ": " + what);
}

std::string ReadText(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream && errno != ENOENT && errno != ENOTDIR) FailAt(path, std::strerror(errno));
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

bool ReplaceText(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp";  // one writer at a time: the lock is held
  std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (stream && rename(temporary.c_str(), path.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

bool AppendText(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  const ssize_t written = write(fd, text.data(), text.size());
  close(fd);
  return written == static_cast<ssize_t>(text.size());
}

StateLock::StateLock(const std::string& node_directory)
    : fd_(OpenLock(StateDirectory(node_directory) + "/.lock")) {}

StateLock::~StateLock() { close(fd_); }

}  // namespace ascend::dcmi::mock
