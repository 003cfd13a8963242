// Reads members out of a JSON document; errors name the member by its path.
//
//   const JsonReader root(document);
//   ASCEND_RETURN_IF_ERROR(root.Object("spec", [&](const JsonReader& spec) {
//     return spec.Read("nodeName", &node_name);   // error: "spec.nodeName: not a string"
//   }));
//
// A member that is absent or null is skipped: Read() leaves its target alone. An element of an
// array may not be null.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_JSON_READER_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_JSON_READER_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::kube {

// Refers to the document and to the readers of the parents: pass it down, do not keep it.
class JsonReader {
 public:
  explicit JsonReader(const nlohmann::json& root) : value_(root) {}

  absl::Status Read(const char* key, std::string* out) const {
    const nlohmann::json* member = Find(key);
    if (member == nullptr) return absl::OkStatus();
    if (!member->is_string()) return WrongType(key, "a string");
    *out = member->get_ref<const std::string&>();
    return absl::OkStatus();
  }
  absl::Status Read(const char* key, bool* out) const {
    const nlohmann::json* member = Find(key);
    if (member == nullptr) return absl::OkStatus();
    if (!member->is_boolean()) return WrongType(key, "a boolean");
    *out = member->get<bool>();
    return absl::OkStatus();
  }
  absl::Status Read(const char* key, int64_t* out) const {
    const nlohmann::json* member = Find(key);
    if (member == nullptr) return absl::OkStatus();
    if (!member->is_number_integer() ||
        (member->is_number_unsigned() &&
         member->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})) {
      return WrongType(key, "a 64-bit integer");
    }
    *out = member->get<int64_t>();
    return absl::OkStatus();
  }

  bool Has(const char* key) const { return Find(key) != nullptr; }

  // `read`: (const JsonReader& object) -> absl::Status.
  template <typename F>
  absl::Status Object(const char* key, F&& read) const {
    const nlohmann::json* member = Find(key);
    if (member == nullptr) return absl::OkStatus();
    const JsonReader reader(*member, this, key, -1);
    if (!member->is_object()) return reader.Error("not an object");
    return read(reader);
  }

  // An object of strings under free names.
  absl::Status Read(const char* key, std::map<std::string, std::string>* out) const {
    return Object(key, [&](const JsonReader& map) -> absl::Status {
      for (const auto& [name, member] : map.value_.items()) {
        if (!member.is_string()) {
          return JsonReader(member, &map, name, -1).Error("not a string");
        }
        (*out)[name] = member.get<std::string>();
      }
      return absl::OkStatus();
    });
  }

  // An array of objects. `read`: (const JsonReader& element) -> absl::Status.
  template <typename F>
  absl::Status Objects(const char* key, F&& read) const {
    const nlohmann::json* member = Find(key);
    if (member == nullptr) return absl::OkStatus();
    if (!member->is_array()) return WrongType(key, "an array");
    int64_t index = 0;
    for (const nlohmann::json& element : *member) {
      const JsonReader reader(element, this, key, index++);
      if (!element.is_object()) return reader.Error("not an object");
      ASCEND_RETURN_IF_ERROR(read(reader));
    }
    return absl::OkStatus();
  }

  // An object whose members are objects under free names.
  // `read`: (const std::string& name, const JsonReader& member) -> absl::Status.
  template <typename F>
  absl::Status ObjectMap(const char* key, F&& read) const {
    return Object(key, [&](const JsonReader& map) -> absl::Status {
      for (const auto& [name, member] : map.value_.items()) {
        const JsonReader reader(member, &map, name, -1);
        if (!member.is_object()) return reader.Error("not an object");
        ASCEND_RETURN_IF_ERROR(read(name, reader));
      }
      return absl::OkStatus();
    });
  }

  // kInvalidArgument "<path of this value>: <what>".
  absl::Status Error(absl::string_view what) const {
    const std::string path = Path();
    return absl::InvalidArgumentError(path.empty() ? std::string(what)
                                                   : absl::StrCat(path, ": ", what));
  }

 private:
  JsonReader(const nlohmann::json& value, const JsonReader* parent, absl::string_view key,
             int64_t index)
      : value_(value), parent_(parent), key_(key), index_(index) {}

  const nlohmann::json* Find(const char* key) const {
    if (!value_.is_object()) return nullptr;
    const auto it = value_.find(key);
    return it == value_.end() || it->is_null() ? nullptr : &*it;
  }

  absl::Status WrongType(const char* key, absl::string_view wanted) const {
    return JsonReader(value_, this, key, -1).Error(absl::StrCat("not ", wanted));
  }

  std::string Path() const {
    if (parent_ == nullptr) return "";
    std::string path = parent_->Path();
    absl::StrAppend(&path, path.empty() ? "" : ".", key_);
    if (index_ >= 0) absl::StrAppend(&path, "[", index_, "]");
    return path;
  }

  const nlohmann::json& value_;
  const JsonReader* parent_ = nullptr;
  absl::string_view key_;
  int64_t index_ = -1;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_JSON_READER_H_
