#include "cdi/cmd/json_text.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "cdi/document_path.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using Json = nlohmann::ordered_json;

// Looks at a document without keeping it. Every method returns false to stop the parser.
class Checker : public nlohmann::json_sax<Json> {
 public:
  explicit Checker(absl::string_view text) : text_(text) {}
  const absl::Status& status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t& token) override {
    // The parser makes a floating point number of an integer that is too large.
    if (token.find_first_of(".eE") != std::string::npos) return true;
    return Fail(absl::StrCat("the number ", Quote(token), " is too large"));
  }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(size_t) override { return Open(); }
  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) {
      return Fail(absl::StrCat("the key ", Quote(key), " is there twice"));
    }
    if (keys_.back().size() <= kMaxJsonMembers) return true;
    return Fail(absl::StrCat("an object has more than ", kMaxJsonMembers, " members"));
  }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    const size_t offset = std::min(position == 0 ? 0 : position - 1, text_.size());
    const absl::string_view before = text_.substr(0, offset);
    const size_t newline = before.rfind('\n');
    const size_t column = newline == absl::string_view::npos ? offset : offset - newline - 1;
    return Fail(absl::StrCat("line ", std::count(before.begin(), before.end(), '\n') + 1,
                             ", column ", column + 1, ": not JSON"));
  }

 private:
  bool Fail(std::string problem) {
    status_ = absl::InvalidArgumentError(problem);
    return false;
  }
  bool Open() {
    keys_.emplace_back();
    if (keys_.size() <= kMaxJsonDepth) return true;
    return Fail(absl::StrCat("nested deeper than ", kMaxJsonDepth, " levels"));
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  const absl::string_view text_;
  std::vector<std::set<std::string>> keys_;  // of the open objects; arrays have none
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Json> ParseJsonText(absl::string_view text) {
  // The parser takes it for the end of the text.
  if (text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError("there is a NUL in the text");
  }
  Checker checker(text);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &checker)) return checker.status();
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

}  // namespace ascend::cdi::cmd
