#include <array>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cdi/document_path.h"
#include "cdi/injector.h"

namespace ascend::cdi {
namespace {

using Release = std::array<int, 3>;

// The commit has what v1.1.1 has, as far as an injection goes.
constexpr absl::string_view kUntaggedCommit = "05ae4b5";
constexpr Release kUntaggedBehavesLike = {1, 1, 1};

bool ParseRelease(absl::string_view text, Release* release) {
  absl::ConsumePrefix(&text, "v");
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  if (parts.size() != release->size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].empty() || parts[i].find_first_not_of("0123456789") != absl::string_view::npos ||
        !absl::SimpleAtoi(parts[i], &(*release)[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<InjectionCompatibility> CompatibilityOf(absl::string_view library_version) {
  Release release = kUntaggedBehavesLike;
  if (library_version != kUntaggedCommit && !ParseRelease(library_version, &release)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no version of the reference library: ", Quote(library_version)));
  }
  InjectionCompatibility compatibility;
  compatibility.append_env = release <= Release{1, 1, 0};
  compatibility.sort_mounts_by_name = release < Release{1, 0, 0};
  compatibility.no_file_mode_from_host = release < Release{1, 1, 0};
  compatibility.idmap_without_mappings = release == Release{1, 1, 1};
  compatibility.no_idmap = release <= Release{1, 1, 0};
  compatibility.repeated_net_devices = release <= Release{1, 1, 1};
  return compatibility;
}

}  // namespace ascend::cdi
