#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "cdi/document.h"
#include "cdi/document_builder.h"
#include "cdi/json.h"
#include "cdi/text.h"
#include "cdi/validate.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

bool IsSurrogateEscape(absl::string_view escape) {  // from the 'u' on
  return escape.size() >= 3 && (escape[1] == 'd' || escape[1] == 'D') &&
         absl::StrContains("89abcdefABCDEF", escape[2]);
}

// Bytes that CheckText has to look at more closely.
constexpr std::array<bool, 256> kNeedsLook = [] {
  std::array<bool, 256> table{};
  for (int byte = 0; byte < 256; ++byte) table[byte] = byte < 0x20 || byte >= 0x7F || byte == '\\';
  for (const char space : {'\t', '\n', '\r'}) table[space] = false;
  return table;
}();

bool NeedsLook(absl::string_view text) {
  bool found = false;
  for (const char c : text) found |= kNeedsLook[static_cast<unsigned char>(c)];
  return found;
}

// The most characters from a key's opening quote to its colon that YAML allows.
constexpr size_t kMaxKeyLength = 1024;

// How long the keys are in the text, which the parser does not tell. Called only if there may be
// long ones.
absl::Status CheckKeyLengths(absl::string_view text) {
  size_t open = absl::string_view::npos;
  size_t characters = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool continues = (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    if (!continues) ++characters;
    if (open == absl::string_view::npos) {
      if (text[at] == '"') {
        open = at;
        characters = 0;
      }
      continue;
    }
    if (text[at] == '\\') {
      ++at;
      ++characters;
      continue;
    }
    if (text[at] != '"') continue;
    size_t behind = text.find_first_not_of(" \t", at + 1);
    if (behind == absl::string_view::npos) behind = text.size();
    if (absl::StartsWith(text.substr(behind), ":") && characters + (behind - at) > kMaxKeyLength) {
      return TextError(text, open, "a key of more than 1024 characters, which YAML does not allow");
    }
    open = absl::string_view::npos;
  }
  return absl::OkStatus();
}

// For YAML a key ends with its line. JSON has no line breaks inside of strings, so this looks
// between them only.
absl::Status CheckColons(absl::string_view text) {
  constexpr absl::string_view kSpace = " \t\r\n";
  for (size_t colon = text.find(':'); colon != absl::string_view::npos;
       colon = text.find(':', colon + 1)) {
    if (colon == 0 || !absl::StrContains(kSpace, text[colon - 1])) continue;
    const size_t last = text.find_last_not_of(kSpace, colon - 1);
    const size_t space = last == absl::string_view::npos ? 0 : last + 1;
    if (text.substr(space, colon - space).find_first_of("\r\n") == absl::string_view::npos)
      continue;
    return TextError(text, colon, "not on the line of the key, which YAML does not allow");
  }
  return absl::OkStatus();
}

// Outside of brackets YAML allows no tab at the beginning of a line.
absl::Status CheckOuterTabs(absl::string_view text) {
  constexpr absl::string_view kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  const size_t end =
      std::min(text.find_first_of("\r\n", text.find_last_not_of(kSpace) + 1), text.size());
  size_t tab = text.substr(0, begin).find('\t');
  if (tab == absl::string_view::npos) tab = text.find('\t', end);
  if (tab == absl::string_view::npos) return absl::OkStatus();
  return TextError(text, tab, "a tab at the beginning of a line, which YAML does not allow");
}

// What a YAML parser refuses although it is JSON. The parser cannot tell: it hands out strings
// after decoding.
absl::Status CheckText(absl::string_view text) {
  if (text.size() > kMaxDocumentSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("larger than ", kMaxDocumentSize, " bytes: ", text.size()));
  }
  ASCEND_RETURN_IF_ERROR(CheckOuterTabs(text));
  ASCEND_RETURN_IF_ERROR(CheckColons(text));
  if (!NeedsLook(text)) return absl::OkStatus();
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) return TextError(text, 0, "byte order mark");
  bool in_string = false;
  for (size_t at = 0; at < text.size();) {
    char32_t character;
    const size_t length = DecodeUtf8(text.substr(at), &character);
    if (length == 0) return TextError(text, at, "not valid UTF-8");
    // The JSON parser takes NUL for the end of the text.
    const bool space = character == '\t' || character == '\n' || character == '\r';
    if (IsControlCharacter(character) && !space) {
      return TextError(text, at, "raw control character");
    }
    if (character == '"') in_string = !in_string;
    at += length;
    if (character != '\\' || !in_string || at == text.size()) continue;
    if (text[at] == '/') return TextError(text, at - 1, "the escape \\/ is unknown to YAML");
    if (text[at] == 'u' && IsSurrogateEscape(text.substr(at))) {
      return TextError(text, at - 1, "escaped surrogates are unknown to YAML");
    }
    // The escaped character; if it is not ASCII, the JSON parser says so.
    if (static_cast<unsigned char>(text[at]) < 0x80) ++at;
  }
  return absl::OkStatus();
}

// Hands the parser's events to the builder. Every method returns false to stop the parser, and then
// status() says why. Not derived from nlohmann::json_sax: the parser is a template, and calls that
// are not virtual are faster.
class JsonEvents {
 public:
  using Json = nlohmann::json;

  explicit JsonEvents(absl::string_view text) : text_(text) {}

  const absl::Status& status() const { return status_; }
  Value TakeDocument() { return std::move(builder_).Take(); }

  bool null() { return Put(Value::Null()); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(Json::number_integer_t value) { return Put(int64_t{value}); }
  bool number_unsigned(Json::number_unsigned_t value) {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Put(static_cast<int64_t>(value));
    }
    return Put(uint64_t{value});
  }
  bool number_float(Json::number_float_t value, const std::string&) { return Put(value); }
  bool string(std::string& value) { return Put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // not in JSON text

  bool start_object(size_t) { return Check(builder_.OpenObject()); }
  bool key(std::string& key) {
    // An escape is up to six times as long as what it stands for.
    if (key.size() > kMaxKeyLength / 6 && !keys_checked_) {
      keys_checked_ = true;
      if (!Check(CheckKeyLengths(text_))) return false;
    }
    return Check(builder_.Key(std::move(key)));
  }
  bool end_object() { return Close(); }
  bool start_array(size_t) { return Check(builder_.OpenArray()); }
  bool end_array() { return Close(); }

  bool parse_error(size_t position, const std::string&, const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": the
    // position is given our way, the rest is for people.
    absl::string_view problem = error.what();
    const size_t colon = problem.find(": ");
    if (absl::StrContains(problem, "] parse error at ") && colon != absl::string_view::npos) {
      problem.remove_prefix(colon + 2);
    }
    // What was read last is cut anywhere, also within a character.
    problem = problem.substr(0, problem.find("; last read: "));
    return Check(
        TextError(text_, position == 0 ? 0 : std::min(position - 1, text_.size()), problem));
  }

 private:
  template <typename T>
  bool Put(T data) {
    builder_.Put(std::move(data));
    return true;
  }
  bool Close() {
    builder_.Close();
    return true;
  }
  bool Check(absl::Status status) {
    status_ = std::move(status);
    return status_.ok();
  }

  const absl::string_view text_;
  DocumentBuilder builder_;
  bool keys_checked_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Spec> ReadJson(absl::string_view text) {
  ASCEND_RETURN_IF_ERROR(CheckText(text));
  JsonEvents events(text);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &events)) return events.status();
  ASCEND_ASSIGN_OR_RETURN(Spec spec, DecodeSpec(events.TakeDocument()));
  ASCEND_RETURN_IF_ERROR(ValidateForReading(spec));
  return spec;
}

}  // namespace ascend::cdi
