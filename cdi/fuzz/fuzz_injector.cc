// A spec file and an OCI configuration, divided by the first NUL: the edits of all devices of the
// one are injected into the other.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "cdi/fuzz/check.h"
#include "cdi/injector.h"
#include "cdi/json.h"
#include "cdi/yaml.h"
#include "nlohmann/json.hpp"

namespace {

using ascend::cdi::OciConfig;

// The same on every machine: what kind of device there is follows from the length of the path.
int FakeLstat(const std::string& path, struct stat* info) {
  constexpr mode_t kTypes[] = {S_IFCHR, S_IFBLK, S_IFIFO, S_IFREG, S_IFCHR};
  if (path.size() % 7 == 6) return ENOENT;
  info->st_mode = kTypes[path.size() % 5] | 0640;
  info->st_rdev = makedev(path.size(), 1);
  return 0;
}

void InjectTwice(const ascend::cdi::ContainerEdits& edits, const OciConfig& original,
                 int compatibility) {
  ascend::cdi::InjectionOptions options;
  options.lstat = FakeLstat;
  options.compatibility.append_env = (compatibility & 1) != 0;
  options.compatibility.sort_mounts_by_name = (compatibility & 2) != 0;
  options.compatibility.no_file_mode_from_host = (compatibility & 4) != 0;
  options.compatibility.idmap_without_mappings = (compatibility & 8) != 0;

  OciConfig first = original;
  const absl::Status status = ascend::cdi::ApplyEdits(edits, first, options);
  FUZZ_CHECK(status.ok() || first == original);
  OciConfig second = original;
  FUZZ_CHECK(ascend::cdi::ApplyEdits(edits, second, options) == status);
  FUZZ_CHECK(second == first);
  // What comes out can go in again.
  OciConfig again = first;
  FUZZ_CHECK(!status.ok() || ascend::cdi::ApplyEdits(edits, again, options).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  if (end == absl::string_view::npos) return 0;
  const absl::string_view text = input.substr(0, end);
  const absl::string_view config_text = input.substr(end + 1);
  const OciConfig config =
      OciConfig::parse(config_text.begin(), config_text.end(), nullptr, /*allow_exceptions=*/false);
  if (config.is_discarded()) return 0;
  absl::StatusOr<ascend::cdi::Spec> spec = ascend::cdi::ReadJson(text);
  if (!spec.ok()) spec = ascend::cdi::ReadYaml(text);
  if (!spec.ok()) return 0;

  const int compatibility = static_cast<int>(size % 16);
  InjectTwice(spec->container_edits, config, compatibility);
  for (const ascend::cdi::Device& device : spec->devices) {
    InjectTwice(device.container_edits, config, compatibility);
  }
  return 0;
}
