#include "cdi/cmd/releases.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace ascend::cdi::cmd {
namespace {

constexpr int kAny = std::numeric_limits<int>::max();
constexpr size_t kParts = 3;

// First and last release that a text means; what it leaves open is anything.
struct Span {
  std::vector<int> first;
  std::vector<int> last;
};

bool ParseSpan(absl::string_view text, Span* span) {
  absl::ConsumePrefix(&text, "v");
  const bool open_end = absl::ConsumeSuffix(&text, "+");
  absl::ConsumeSuffix(&text, ".x");
  for (absl::string_view part : absl::StrSplit(text, '.')) {
    int number;
    if (!absl::SimpleAtoi(part, &number) || number < 0) return false;
    span->first.push_back(number);
  }
  if (span->first.size() > kParts) return false;
  if (!open_end) span->last = span->first;
  span->first.resize(kParts, 0);
  span->last.resize(kParts, kAny);
  return true;
}

}  // namespace

bool InRange(absl::string_view range, absl::string_view version) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(range, absl::MaxSplits('-', 1));
  Span from, to, asked;
  if (!ParseSpan(ends.first, &from)) return false;
  if (!ParseSpan(ends.second.empty() ? ends.first : ends.second, &to)) return false;
  if (version.empty()) return true;
  return ParseSpan(version, &asked) && from.first <= asked.last && asked.first <= to.last;
}

bool IsRelease(absl::string_view runtime_range, absl::string_view runtime) {
  const std::pair<absl::string_view, absl::string_view> known =
      absl::StrSplit(runtime_range, absl::MaxSplits(' ', 1));
  const std::pair<absl::string_view, absl::string_view> asked =
      absl::StrSplit(runtime, absl::MaxSplits(' ', 1));
  return absl::EqualsIgnoreCase(known.first, asked.first) && InRange(known.second, asked.second);
}

}  // namespace ascend::cdi::cmd
