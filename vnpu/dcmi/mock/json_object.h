// Strict reading of JSON objects, for the mock's files.
#ifndef ASCEND_DRA_VNPU_DCMI_MOCK_JSON_OBJECT_H_
#define ASCEND_DRA_VNPU_DCMI_MOCK_JSON_OBJECT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "nlohmann/json.hpp"

namespace ascend::dcmi::mock {

using Json = nlohmann::json;

// Reads one object and knows which of its keys were asked for. Errors are std::runtime_error; they
// end in the parser that uses it. `json` must outlive the object.
class Object {
 public:
  Object(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) Fail("is no object");
  }

  template <typename T>
  void Get(const char* key, T* value) {
    if (const Json* found = Find(key)) *value = Convert<T>(*found, key);
  }
  template <typename T>
  void Get(const char* key, std::optional<T>* value) {
    if (const Json* found = Find(key)) *value = Convert<T>(*found, key);
  }
  // Null counts as missing.
  const Json* Find(const char* key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<Object> Child(const char* key) {
    const Json* found = Find(key);
    if (found == nullptr) return std::nullopt;
    return Object(*found, where_ + "." + key);
  }
  const Json& json() const { return json_; }
  const std::string& where() const { return where_; }

  void Finish() const {
    for (const auto& item : json_.items()) {
      if (known_.count(item.key()) == 0) Fail("has the unknown key " + item.key());
    }
  }
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(where_ + " " + what);
  }

 private:
  template <typename T>
  T Convert(const Json& json, const char* key) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) Fail(std::string("needs true or false for ") + key);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) Fail(std::string("needs a string for ") + key);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!json.is_number()) Fail(std::string("needs a number for ") + key);
    } else {
      if (!json.is_number_integer() ||
          (std::is_unsigned_v<T> && json.get<int64_t>() < 0 && !json.is_number_unsigned())) {
        Fail(std::string("needs a whole number for ") + key);
      }
    }
    return json.get<T>();
  }

  const Json& json_;
  const std::string where_;
  std::set<std::string> known_;
};

}  // namespace ascend::dcmi::mock

#endif  // ASCEND_DRA_VNPU_DCMI_MOCK_JSON_OBJECT_H_
