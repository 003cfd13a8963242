// How the parts of Library call the C functions. Private to them.
#ifndef ASCEND_DRA_VNPU_DCMI_LIBRARY_CALLS_H_
#define ASCEND_DRA_VNPU_DCMI_LIBRARY_CALLS_H_

#include <string.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/core/mutex.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/dcmi.h"
#include "vnpu/dcmi/library.h"
#include "vnpu/dcmi/status.h"

namespace ascend::dcmi {

// The resolved functions under their C names; null = this version of the library lacks it.
struct Library::Functions {
#define ASCEND_MEMBER(name, parameters) name##_fn name = nullptr;
  ASCEND_DCMI_V1_FUNCTIONS(ASCEND_MEMBER)
  ASCEND_DCMI_V2_FUNCTIONS(ASCEND_MEMBER)
#undef ASCEND_MEMBER
  // Not behind a lock of the calls: whoever looks must not wait for one that hangs.
  std::atomic<bool> initialised = false;
  std::atomic<Generation> generation = Generation::kCards;
};

// The library's state is the process's and its thread-safety is undocumented, so the locks are the
// process's as well: one per chip, so that a chip that hangs delays no other one, one per chip for
// the test of its port, one for what is about the node, one for what is about two chips, one for
// the subscription. Never destroyed: a call may still hang at exit.
Mutex& NodeMutex();
Mutex& PairMutex();
Mutex& ChipMutex(ChipAddress chip);
Mutex& NetworkMutex(ChipAddress chip);
Mutex& SubscriptionMutex();

// An out-parameter with zeroed slack behind it: newer libraries know longer structures.
template <typename T>
struct Out {
  T value{};
  unsigned char slack[128] = {};
};

template <typename Function, typename... Arguments>
absl::Status Call(Mutex& mutex, absl::string_view name, Function function, Arguments... arguments) {
  if (function == nullptr) return StatusFromCode(DCMI_FUNCTION_NOT_FOUND, name);
  MutexLock lock(&mutex);
  return StatusFromCode(function(arguments...), name);
}

// A call that is serialised by `mutex`.
#define DCMI_CALL(mutex, function, ...) \
  Call(mutex, #function, functions_->function __VA_OPT__(, ) __VA_ARGS__)

// Picks the generation's function for one chip.
#define DCMI_CHIP_CALL(v1, v2, chip, ...)                                                  \
  (generation() == Generation::kCards                                                      \
       ? DCMI_CALL(ChipMutex(chip), v1, chip.card, chip.device __VA_OPT__(, ) __VA_ARGS__) \
       : DCMI_CALL(ChipMutex(chip), v2, chip.card __VA_OPT__(, ) __VA_ARGS__))

// Text of a fixed field, which need not end in NUL.
template <typename Char, size_t kSize>
std::string FieldText(const Char (&field)[kSize]) {
  const char* text = reinterpret_cast<const char*>(field);
  return std::string(absl::StripAsciiWhitespace(absl::string_view(text, strnlen(text, kSize))));
}

inline absl::Status NotInThisGeneration(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat("dcmiv2 has no query for ", what));
}

}  // namespace ascend::dcmi

#endif  // ASCEND_DRA_VNPU_DCMI_LIBRARY_CALLS_H_
