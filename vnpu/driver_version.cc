#include "vnpu/driver_version.h"

#include <cstddef>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ascend::vnpu {
namespace {

// Runs of digits and runs of letters, in lower case; what stands between them is spelling. Ends at
// the first space: what follows is a build, or a remark. Empty without a digit at its start.
std::vector<std::string> Parts(absl::string_view version) {
  version = absl::StripAsciiWhitespace(version);
  if (!absl::ConsumePrefix(&version, "v")) absl::ConsumePrefix(&version, "V");
  std::vector<std::string> parts;
  if (version.empty() || !absl::ascii_isdigit(version.front())) return parts;
  for (size_t i = 0; i < version.size() && !absl::ascii_isspace(version[i]);) {
    const bool digits = absl::ascii_isdigit(version[i]);
    std::string part;
    while (i < version.size() && absl::ascii_isalnum(version[i]) &&
           absl::ascii_isdigit(version[i]) == digits) {
      part += absl::ascii_tolower(version[i++]);
    }
    if (part.empty()) {
      ++i;  // a separator
      continue;
    }
    const size_t zeros = digits ? part.find_first_not_of('0') : 0;
    parts.push_back(zeros == std::string::npos ? "0" : part.substr(zeros));
  }
  while (parts.size() > 1 && parts.back() == "0") parts.pop_back();
  return parts;
}

}  // namespace

bool MayBeSameVersion(absl::string_view one, absl::string_view other) {
  const std::vector<std::string> a = Parts(one);
  const std::vector<std::string> b = Parts(other);
  return a.empty() || b.empty() || a == b;
}

std::string DriverVersionProblem(absl::string_view running, absl::string_view installed) {
  if (MayBeSameVersion(running, installed)) return "";
  return absl::StrCat("driver ", running, " is running, the package on the node is ", installed,
                      ": restart the node (or install the package again)");
}

}  // namespace ascend::vnpu
