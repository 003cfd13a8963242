#include "cdi/yaml_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/core/status_macros.h"
#include "cdi/text.h"

namespace ascend::cdi {
namespace {

constexpr char32_t kLineSeparator = 0x2028;
constexpr char32_t kParagraphSeparator = 0x2029;

absl::string_view SkipAnchorAndTag(absl::string_view text) {
  while (!text.empty()) {
    if (text[0] == '&' || text[0] == '!') {
      text.remove_prefix(std::min(text.find_first_of(" \t\r\n,[]{}"), text.size()));
    } else if (text[0] == '#') {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
    } else if (absl::StrContains(" \t\r\n", text[0])) {
      text.remove_prefix(1);
    } else {
      break;
    }
  }
  return text;
}

// `scalar` begins behind the opening quote.
absl::string_view ProblemInDoubleQuotes(absl::string_view scalar) {
  for (size_t at = 0; at < scalar.size(); ++at) {
    if (scalar[at] == '"') return "";
    if (scalar[at] != '\\') continue;
    ++at;
    if (at == scalar.size()) break;
    if (scalar[at] == '/') return "the escape \\/ is unknown to YAML 1.1";
    // yaml-cpp decodes these to single bytes.
    if (scalar[at] == 'N' || scalar[at] == '_') return "the escapes \\N and \\_ are not supported";
  }
  return "the closing quote is missing";
}

absl::string_view ProblemInSingleQuotes(absl::string_view scalar) {
  for (size_t at = 0; at < scalar.size(); ++at) {
    if (scalar[at] != '\'') continue;
    ++at;
    if (at == scalar.size() || scalar[at] != '\'') return "";
  }
  return "the closing quote is missing";
}

// `scalar` begins with | or >. yaml-cpp 0.7 gets these two wrong.
absl::string_view ProblemInBlock(absl::string_view scalar, bool has_properties) {
  if (has_properties) return "an anchor or tag before a block scalar is not supported";
  const absl::string_view header = scalar.substr(0, scalar.find_first_of(" \t\r\n#"));
  if (scalar[0] == '>' && absl::StrContains(header, '+')) {
    return "folded text that keeps its last line breaks (>+) is not supported";
  }
  return "";
}

absl::Status CheckCharacters(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\n' || text[at] == '\t' || (text[at] >= 0x20 && text[at] < 0x7F)) {
      ++at;
      continue;
    }
    char32_t character;
    const size_t length = DecodeUtf8(text.substr(at), &character);
    if (length == 0) return TextError(text, at, "not valid UTF-8");
    if (character == '\r') {
      if (!absl::StartsWith(text.substr(at + 1), "\n")) {
        return TextError(text, at, "carriage return without a line feed");
      }
    } else if (IsControlCharacter(character)) {
      return TextError(text, at, "raw control character");
    } else if (character == kLineSeparator || character == kParagraphSeparator) {
      return TextError(text, at, "raw line or paragraph separator");
    }
    at += length;
  }
  return absl::OkStatus();
}

// The reference's parser knows YAML 1.1, and refuses what else a file says that it is.
absl::string_view ProblemInDirective(absl::string_view line) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words[0] == "%TAG") return "";
  if (words[0] != "%YAML") return "unknown directive";
  return words.size() == 2 && words[1] == "1.1" ? "" : "the only version known is %YAML 1.1";
}

// Up to the end of the first document.
absl::Status CheckDirectives(absl::string_view text) {
  bool directives = false;
  bool in_document = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const absl::string_view line = absl::StripAsciiWhitespace(text.substr(at, end - at));
    const bool separator = absl::StartsWith(text.substr(at), "---");
    if (text[at] == '%') {
      if (in_document) return TextError(text, at, "a directive inside of the document");
      const absl::string_view problem = ProblemInDirective(line);
      if (!problem.empty()) return TextError(text, at, problem);
      directives = true;
    } else if (in_document) {
      if (separator || absl::StartsWith(text.substr(at), "...")) break;
    } else if (!line.empty() && line[0] != '#') {
      if (directives && !separator) return TextError(text, at, "--- must follow a directive");
      in_document = true;
    }
    at = end + 1;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckYamlText(absl::string_view text) {
  ASCEND_RETURN_IF_ERROR(CheckCharacters(text));
  return CheckDirectives(text);
}

ScalarSource LookAtScalar(absl::string_view text, size_t offset) {
  const absl::string_view node = text.substr(std::min(offset, text.size()));
  const absl::string_view scalar = SkipAnchorAndTag(node);
  if (scalar.empty()) return {true, ""};
  switch (scalar[0]) {
    case '"':
      return {false, ProblemInDoubleQuotes(scalar.substr(1))};
    case '\'':
      return {false, ProblemInSingleQuotes(scalar.substr(1))};
    case '|':
    case '>':
      return {false, ProblemInBlock(scalar, scalar.size() != node.size())};
    default:
      return {true, ""};
  }
}

}  // namespace ascend::cdi
