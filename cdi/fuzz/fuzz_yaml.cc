// Any text as a .yaml file.
#include <cstddef>
#include <cstdint>

#include "cdi/fuzz/spec_checks.h"
#include "cdi/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = ascend::cdi::ReadYaml(text);
  if (!spec.ok()) {
    FUZZ_CHECK(!spec.status().message().empty());
    return 0;
  }
  ascend::cdi::CheckReadSpec(*spec);
  return 0;
}
