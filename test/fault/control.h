// What a program that runs under the preloaded harness (preload/harness.h) tells it. Without the
// library each function does nothing.
#ifndef ASCEND_DRA_TEST_FAULT_CONTROL_H_
#define ASCEND_DRA_TEST_FAULT_CONTROL_H_

#include <string>

namespace ascend::fault {

// What the program does now, for the trace.
void BeginStep(const std::string& step);
// The disk has room again.
void HealFault();
// An operation that failed was repeated with success: what it promised must last.
void OperationRepeated();

// Calls made meanwhile do not count and are not harmed.
class Uncounted {
 public:
  Uncounted();
  ~Uncounted();
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
};

// Threads made meanwhile never count.
class BackgroundThreads {
 public:
  BackgroundThreads();
  ~BackgroundThreads();
  BackgroundThreads(const BackgroundThreads&) = delete;
  BackgroundThreads& operator=(const BackgroundThreads&) = delete;
};

}  // namespace ascend::fault

#endif  // ASCEND_DRA_TEST_FAULT_CONTROL_H_
