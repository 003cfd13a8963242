#include "test/fault/control.h"

#include <dlfcn.h>

namespace ascend::fault {
namespace {

template <typename... Arguments>
void Tell(const char* function, Arguments... arguments) {
  if (void* symbol = ::dlsym(RTLD_DEFAULT, function)) {
    reinterpret_cast<void (*)(Arguments...)>(symbol)(arguments...);
  }
}

}  // namespace

void BeginStep(const std::string& step) { Tell("ascend_fault_step", step.c_str()); }
void HealFault() { Tell("ascend_fault_heal"); }
void OperationRepeated() { Tell("ascend_fault_repeated"); }

Uncounted::Uncounted() { Tell("ascend_fault_pause", 1); }
Uncounted::~Uncounted() { Tell("ascend_fault_pause", 0); }

BackgroundThreads::BackgroundThreads() { Tell("ascend_fault_background", 1); }
BackgroundThreads::~BackgroundThreads() { Tell("ascend_fault_background", 0); }

}  // namespace ascend::fault
