#include "test/fault/preload/harness.h"

#include <signal.h>

#include <cstdlib>
#include <sstream>
#include <string_view>
#include <utility>

#include "test/fault/preload/raw.h"

namespace ascend::fault {
namespace {

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  return parts;
}

int ErrorOf(const std::string& name) {
  static constexpr std::pair<const char*, int> kErrors[] = {
      {"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EROFS", EROFS}, {"EDQUOT", EDQUOT}};
  for (const auto& [known, error] : kErrors) {
    if (name == known) return error;
  }
  return 0;
}

[[noreturn]] void Refuse(const std::string& what) {
  const std::string text = "ASCEND_FAULT: " + what + "\n";
  (void)!RawWrite(STDERR_FILENO, text.data(), text.size());
  ::_exit(125);
}

// ".name.0123456789abcdef.tmp" -> ".name.*.tmp": the same in every run.
std::string WithoutRandomPart(std::string path) {
  constexpr std::string_view kSuffix = ".tmp";
  constexpr size_t kDigits = 16;
  const size_t length = kSuffix.size() + kDigits;
  if (path.size() > length &&
      path.compare(path.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0) {
    path.replace(path.size() - length, kDigits, "*");
  }
  return path;
}

}  // namespace

Harness* Harness::Get() {
  // Never destroyed: other threads make calls until the very end.
  static Harness* const harness = []() -> Harness* {
    const char* roots = std::getenv("ASCEND_FAULT_ROOTS");
    if (roots == nullptr) return nullptr;
    const char* fault = std::getenv("ASCEND_FAULT");
    return new Harness(roots, fault != nullptr ? fault : "count",
                       std::getenv("ASCEND_FAULT_TRACE"));
  }();
  return harness;
}

Harness::Harness(const char* roots, const char* fault, const char* trace) : roots_(Split(roots)) {
  static constexpr std::pair<const char*, Mode> kModes[] = {{"count", Mode::kCount},
                                                            {"kill-before", Mode::kKillBefore},
                                                            {"kill-after", Mode::kKillAfter},
                                                            {"fail", Mode::kFail},
                                                            {"short", Mode::kShort},
                                                            {"interrupt", Mode::kInterrupt},
                                                            {"torn", Mode::kTorn},
                                                            {"power", Mode::kPower},
                                                            {"unsynced", Mode::kUnsynced},
                                                            {"full", Mode::kFull},
                                                            {"jump", Mode::kJump}};
  const std::vector<std::string> words = Split(fault);
  bool known = false;
  for (const auto& [name, mode] : kModes) {
    if (words.empty() || words[0] != name) continue;
    known = true;
    mode_ = mode;
  }
  if (!known) Refuse(std::string("unknown fault ") + fault);
  if (mode_ != Mode::kCount) {
    point_ = words.size() > 1 ? std::strtoull(words[1].c_str(), nullptr, 10) : 0;
    if (point_ == 0) Refuse(std::string("no point in ") + fault);
  }
  const std::string last = words.size() > 2 ? words[2] : "";
  if (mode_ == Mode::kFail) {
    error_ = ErrorOf(last);
    if (error_ == 0) Refuse("unknown error " + last);
  }
  if (mode_ == Mode::kJump) jump_ = std::strtoll(last.c_str(), nullptr, 10);
  if (mode_ == Mode::kPower) {
    if (last == "kept") {
      cut_ = PowerCut::kKept;
    } else if (last == "mixed") {
      cut_ = PowerCut::kMixed;
    } else if (last != "lost") {
      Refuse("unknown power cut " + last);
    }
  }
  if (durable() != nullptr) {
    for (const std::string& root : roots_) durable_.AddRoot(root);
  }
  if (trace != nullptr) {
    trace_fd_ = RawOpenAt(AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (trace_fd_ < 0) Refuse(std::string("cannot open ") + trace);
  }
}

bool Harness::Watches(const std::string& path) const {
  for (const std::string& root : roots_) {
    if (path.compare(0, root.size(), root) == 0 &&
        (path.size() == root.size() || path[root.size()] == '/')) {
      return true;
    }
  }
  return false;
}

void Harness::Trace(const std::string& line) const {
  if (trace_fd_ >= 0) (void)!RawWrite(trace_fd_, line.data(), line.size());
}

std::string Harness::Describe(const Call& call) const {
  std::string kind;
  if (call.changes) kind += 'c';
  if (call.needs_room) kind += 'r';
  if (call.writes) kind += 'w';
  if (call.interruptible) kind += 'i';
  if (kind.empty()) kind = "-";
  std::string path = call.path;
  for (const std::string& root : roots_) {
    if (Watches(path) && path.compare(0, root.size(), root) == 0) {
      path.replace(0, root.size(), "<root>");
      break;
    }
  }
  return std::string(call.name) + "\t" + kind + "\t" + step_ + "\t" + WithoutRandomPart(path);
}

Harm Harness::Next(const Call& call) {
  const std::lock_guard lock(mutex_);
  if (paused_) return Harm::kNone;
  uint64_t number = 0;
  if (!IsBackgroundThread()) {
    number = ++count_;
    const std::string text = Describe(call) + "\n";
    if (mode_ == Mode::kCount) Trace("point\t" + std::to_string(number) + "\t" + text);
    if (number == point_) Trace("fault\t" + std::to_string(number) + "\t" + text);
  }
  if (number == point_ && mode_ == Mode::kFull) full_ = true;
  if (full_ && call.needs_room) {
    errno = ENOSPC;
    return Harm::kFail;
  }
  if (number == 0 || number != point_) return Harm::kNone;
  switch (mode_) {
    case Mode::kCount:
    case Mode::kFull:
      return Harm::kNone;
    case Mode::kJump:
      JumpWallClock(jump_);
      return Harm::kNone;
    case Mode::kKillBefore:
      Die();
    case Mode::kPower:
      durable_.Cut(cut_, point_);
      Die();
    case Mode::kKillAfter:
      return Harm::kKillAfter;
    case Mode::kFail:
    case Mode::kUnsynced:
      errno = error_;
      return Harm::kFail;
    case Mode::kInterrupt:
      if (!call.interruptible) return Harm::kNone;
      errno = EINTR;
      return Harm::kFail;
    case Mode::kShort:
      return call.writes ? Harm::kShort : Harm::kNone;
    case Mode::kTorn:
      return call.writes ? Harm::kTorn : Harm::kNone;
  }
  return Harm::kNone;
}

void Harness::Die() {
  while (true) ::kill(::getpid(), SIGKILL);
}

void Harness::SetStep(const char* step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
}

void Harness::SetPaused(bool paused) {
  const std::lock_guard lock(mutex_);
  paused_ = paused;
}

void Harness::Repeated() {
  const std::lock_guard lock(mutex_);
  if (mode_ != Mode::kUnsynced || count_ < point_) return;
  durable_.Cut(PowerCut::kLost, point_);
  Die();
}

void Harness::Heal() {
  const std::lock_guard lock(mutex_);
  full_ = false;
}

}  // namespace ascend::fault
