#include "vnpu/agent/alarm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/runtime/logging.h"

namespace ascend::agent {
namespace {

int NewTimer() {
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (timer < 0) {
    LogError("no timer", {{"error", strerror(errno)}});
    abort();
  }
  return timer;
}

}  // namespace

Alarm::Alarm(std::function<void()> ring)
    : ring_(std::move(ring)), timer_(NewTimer()), thread_([this] { Run(); }) {}

Alarm::~Alarm() {
  stopping_ = true;
  Set(absl::Nanoseconds(1));
  thread_.join();
}

void Alarm::Set(absl::Duration limit) {
  // Zero would mean none; a year stands for "for ever".
  limit = std::clamp(limit, absl::Nanoseconds(1), absl::Hours(24 * 365));
  const itimerspec setting = {.it_interval = {}, .it_value = absl::ToTimespec(limit)};
  timerfd_settime(timer_.get(), 0, &setting, nullptr);
}

void Alarm::Clear() {
  const itimerspec none = {};
  timerfd_settime(timer_.get(), 0, &none, nullptr);
}

void Alarm::Run() {
  while (!stopping_) {
    uint64_t passed = 0;
    if (read(timer_.get(), &passed, sizeof(passed)) != sizeof(passed)) continue;
    if (!stopping_) ring_();
  }
}

}  // namespace ascend::agent
