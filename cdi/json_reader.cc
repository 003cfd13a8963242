#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "cdi/document.h"
#include "cdi/document_path.h"
#include "cdi/json.h"
#include "cdi/text.h"
#include "cdi/validate.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

absl::Status ErrorAt(absl::string_view text, size_t offset, absl::string_view problem) {
  const absl::string_view before = text.substr(0, offset);
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t newline = before.rfind('\n');
  const size_t column = newline == absl::string_view::npos ? offset : offset - newline - 1;
  return absl::InvalidArgumentError(
      absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", problem));
}

bool IsSurrogateEscape(absl::string_view escape) {  // from the 'u' on
  return escape.size() >= 3 && (escape[1] == 'd' || escape[1] == 'D') &&
         absl::StrContains("89abcdefABCDEF", escape[2]);
}

// What a YAML parser refuses although it is JSON. The parser cannot tell: it hands out strings
// after decoding.
absl::Status CheckText(absl::string_view text) {
  if (text.size() > kMaxDocumentSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("larger than ", kMaxDocumentSize, " bytes: ", text.size()));
  }
  if (absl::StartsWith(text, "\xEF\xBB\xBF")) return ErrorAt(text, 0, "byte order mark");
  bool in_string = false;
  for (size_t at = 0; at < text.size();) {
    char32_t character;
    const size_t length = DecodeUtf8(text.substr(at), &character);
    if (length == 0) return ErrorAt(text, at, "not valid UTF-8");
    // The JSON parser takes NUL for the end of the text.
    const bool space = character == '\t' || character == '\n' || character == '\r';
    if (IsControlCharacter(character) && !space) {
      return ErrorAt(text, at, "raw control character");
    }
    if (character == '"') in_string = !in_string;
    at += length;
    if (character != '\\' || !in_string || at == text.size()) continue;
    if (text[at] == '/') return ErrorAt(text, at - 1, "the escape \\/ is unknown to YAML");
    if (text[at] == 'u' && IsSurrogateEscape(text.substr(at))) {
      return ErrorAt(text, at - 1, "escaped surrogates are unknown to YAML");
    }
    // The escaped character; if it is not ASCII, the JSON parser says so.
    if (static_cast<unsigned char>(text[at]) < 0x80) ++at;
  }
  return absl::OkStatus();
}

// Builds the tree. Every method returns false to stop the parser, and then status() says why.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TreeBuilder(absl::string_view text) : text_(text) {}

  const absl::Status& status() const { return status_; }
  Value TakeTree() { return std::move(root_); }

  bool null() override { return Put({}); }
  bool boolean(bool value) override { return Put({value}); }
  bool number_integer(number_integer_t value) override { return Put({int64_t{value}}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Put({static_cast<int64_t>(value)});
    }
    return Put({uint64_t{value}});
  }
  bool number_float(number_float_t value, const string_t&) override { return Put({value}); }
  bool string(string_t& value) override { return Put({std::move(value)}); }
  bool binary(binary_t&) override { return false; }  // not in JSON text

  bool start_object(size_t) override { return Open({Value::Object()}); }
  bool key(string_t& key) override {
    if (!open_.back().keys.insert(key).second) {
      return Fail(Here().Member(key).Error("the key is there twice"));
    }
    std::get<Value::Object>(open_.back().value->data).push_back({std::move(key), {}});
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open({Value::Array()}); }
  bool end_array() override { return Close(); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": the
    // position is given our way, the rest is for people.
    absl::string_view problem = error.what();
    const size_t colon = problem.find(": ");
    if (absl::StrContains(problem, "] parse error at ") && colon != absl::string_view::npos) {
      problem.remove_prefix(colon + 2);
    }
    return Fail(ErrorAt(text_, position == 0 ? 0 : std::min(position - 1, text_.size()), problem));
  }

 private:
  struct Container {
    Value* value;
    std::set<std::string> keys;  // of an object
  };

  bool Fail(absl::Status status) {
    status_ = std::move(status);
    return false;
  }

  // The place for the next value. The pointers to open containers stay valid: only the innermost
  // one grows.
  Value* Place() {
    if (open_.empty()) return &root_;
    Value& parent = *open_.back().value;
    if (auto* array = std::get_if<Value::Array>(&parent.data)) return &array->emplace_back();
    return &std::get<Value::Object>(parent.data).back().value;
  }

  bool Put(Value value) {
    *Place() = std::move(value);
    return true;
  }

  bool Open(Value value) {
    if (open_.size() == kMaxDocumentDepth) {
      return Fail(Here().Error("nested deeper than ", kMaxDocumentDepth, " levels"));
    }
    Value* place = Place();
    *place = std::move(value);
    open_.push_back({place, {}});
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  // The path of the innermost open container.
  DocumentPath Here() const {
    DocumentPath path;
    for (size_t i = 0; i + 1 < open_.size(); ++i) {
      const Value& value = *open_[i].value;
      if (const auto* array = std::get_if<Value::Array>(&value.data)) {
        path = path.Element(array->size() - 1);
      } else {
        path = path.Member(std::get<Value::Object>(value.data).back().key);
      }
    }
    return path;
  }

  const absl::string_view text_;
  Value root_;
  std::vector<Container> open_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Spec> ReadJson(absl::string_view text) {
  ASCEND_RETURN_IF_ERROR(CheckText(text));
  TreeBuilder builder(text);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    return builder.status();
  }
  ASCEND_ASSIGN_OR_RETURN(Spec spec, DecodeSpec(builder.TakeTree()));
  ASCEND_RETURN_IF_ERROR(ValidateForReading(spec));
  return spec;
}

}  // namespace ascend::cdi
