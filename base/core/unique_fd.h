// Owner of one file descriptor; closes it when destroyed.
#ifndef ASCEND_DRA_BASE_CORE_UNIQUE_FD_H_
#define ASCEND_DRA_BASE_CORE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace ascend {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { Reset(); }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_CORE_UNIQUE_FD_H_
