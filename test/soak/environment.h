// Numbers that a run is given by the environment.
#ifndef ASCEND_DRA_TEST_SOAK_ENVIRONMENT_H_
#define ASCEND_DRA_TEST_SOAK_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace ascend::soak {

// The variable's value, or `otherwise` if it is not set or no number.
inline int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  int64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

}  // namespace ascend::soak

#endif  // ASCEND_DRA_TEST_SOAK_ENVIRONMENT_H_
