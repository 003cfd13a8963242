// Any text as a .json file.
#include <cstddef>
#include <cstdint>

#include "cdi/fuzz/spec_checks.h"
#include "cdi/json.h"
#include "cdi/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = ascend::cdi::ReadJson(text);
  if (!spec.ok()) {
    FUZZ_CHECK(!spec.status().message().empty());
    return 0;
  }
  ascend::cdi::CheckReadSpec(*spec);
  // Runtimes read the file by a YAML parser: it must not mean anything else to one.
  const auto by_yaml = ascend::cdi::ReadYaml(text);
  FUZZ_CHECK(!by_yaml.ok() || *by_yaml == *spec);
  return 0;
}
