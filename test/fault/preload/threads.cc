// Which threads count: not those that the program starts while ascend_fault_background(1) holds.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "test/fault/preload/harness.h"

namespace ascend::fault {
namespace {

std::atomic<bool> background_now{false};
thread_local bool background_thread = false;

struct Start {
  void* (*run)(void*);
  void* argument;
};

void* RunInBackground(void* start) {
  const Start copy = *static_cast<Start*>(start);
  delete static_cast<Start*>(start);
  background_thread = true;
  return copy.run(copy.argument);
}

using PthreadCreate = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

}  // namespace

void SetBackground(bool background) { background_now = background; }
bool IsBackgroundThread() { return background_thread; }

}  // namespace ascend::fault

extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
  using ascend::fault::PthreadCreate;
  static const auto next = reinterpret_cast<PthreadCreate>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (!ascend::fault::background_now) return next(thread, attributes, run, argument);
  auto* start = new (std::nothrow) ascend::fault::Start{run, argument};
  if (start == nullptr) return EAGAIN;
  const int result = next(thread, attributes, ascend::fault::RunInBackground, start);
  if (result != 0) delete start;
  return result;
}
