// Mutated cases of cdi/testdata: whatever a case asks for, the library answers, and twice the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cdi/replay.h"
#include "nlohmann/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto test_case =
      nlohmann::json::parse(data, data + size, nullptr, /*allow_exceptions=*/false);
  if (test_case.is_discarded()) return 0;
  const auto first = ascend::cdi::ReplayCase(test_case);
  const auto second = ascend::cdi::ReplayCase(test_case);
  if (first.ok() != second.ok() || (first.ok() && *first != *second)) std::abort();
  return 0;
}
