// The library's words for fault codes, asked for once.
#ifndef ASCEND_DRA_VNPU_FAULT_TEXTS_H_
#define ASCEND_DRA_VNPU_FAULT_TEXTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "base/core/mutex.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::vnpu {

// Thread-safe.
class FaultTexts {
 public:
  FaultTexts() = default;
  FaultTexts(const FaultTexts&) = delete;
  FaultTexts& operator=(const FaultTexts&) = delete;

  // Asks the library the first time that this chip has this code. Empty: it has no words for it.
  std::string Of(dcmi::Dcmi& dcmi, dcmi::ChipAddress chip, uint64_t code);

 private:
  using Key = std::tuple<int, int, uint64_t>;  // card, device, code
  Mutex mutex_;
  std::map<Key, std::string> texts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_FAULT_TEXTS_H_
