#include "cdi/json_difference.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxShown = 200;

std::string Show(const Json* value) {
  if (value == nullptr) return "nothing";
  // Replaces what is not valid UTF-8; the default would throw.
  std::string text = value->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kMaxShown) return text;
  const size_t size = text.size();
  text.resize(kMaxShown);
  return absl::StrCat(text, "... (", size, " bytes)");
}

class Comparison {
 public:
  // Null: there is nothing at this place.
  void Compare(const Json* expected, const Json* got, const std::string& pointer) {
    if (expected != nullptr && got != nullptr) {
      if (*expected == *got) return;
      if (expected->is_object() && got->is_object())
        return CompareObjects(*expected, *got, pointer);
      if (expected->is_array() && got->is_array()) return CompareArrays(*expected, *got, pointer);
    }
    differences.push_back(
        absl::StrCat(pointer, ": expected ", Show(expected), ", got ", Show(got)));
  }

  std::vector<std::string> differences;

 private:
  static const Json* Find(const Json& object, const std::string& key) {
    const auto member = object.find(key);
    return member == object.end() ? nullptr : &*member;
  }

  void CompareObjects(const Json& expected, const Json& got, const std::string& pointer) {
    const auto place = [&](const std::string& key) {
      return absl::StrCat(pointer, "/", absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}}));
    };
    for (const auto& [key, value] : expected.items()) Compare(&value, Find(got, key), place(key));
    for (const auto& [key, value] : got.items()) {
      if (Find(expected, key) == nullptr) Compare(nullptr, &value, place(key));
    }
  }

  void CompareArrays(const Json& expected, const Json& got, const std::string& pointer) {
    const size_t size = std::max(expected.size(), got.size());
    for (size_t i = 0; i < size; ++i) {
      Compare(i < expected.size() ? &expected[i] : nullptr, i < got.size() ? &got[i] : nullptr,
              absl::StrCat(pointer, "/", i));
    }
  }
};

}  // namespace

std::vector<std::string> JsonDifferences(const Json& expected, const Json& got,
                                         const std::string& pointer) {
  Comparison comparison;
  comparison.Compare(&expected, &got, pointer);
  return std::move(comparison.differences);
}

}  // namespace ascend::cdi
