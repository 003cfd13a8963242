// Builds a document from the events of a parser. JSON and YAML readers share it, so they agree on
// nesting and on keys that are there twice.
#ifndef ASCEND_DRA_CDI_DOCUMENT_BUILDER_H_
#define ASCEND_DRA_CDI_DOCUMENT_BUILDER_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "cdi/document.h"

namespace ascend::cdi {

// Which keys an object has: a look along the few that objects have, a hash table for many, so that
// hostile input takes no quadratic time.
class KeySet {
 public:
  KeySet() = default;
  explicit KeySet(const Value::Object& object);
  bool Contains(const Value::Object& object, absl::string_view key) const;
  // After the key was appended to the object.
  void Added(const Value::Object& object);

 private:
  absl::flat_hash_set<std::string> hashed_;  // used from kFew members on
};

// Events come in the order of the text. Errors are kInvalidArgument and name the place; after one
// the builder is of no more use.
class DocumentBuilder {
 public:
  // In an object every value comes after its key.
  absl::Status Key(std::string key);
  // `data`: anything that Value::data can hold.
  template <typename T>
  void Put(T data) {
    Place().data = std::move(data);
  }
  // What follows until Close() goes into the new container.
  absl::Status OpenArray();
  absl::Status OpenObject();
  // Returns the innermost container, which may still be changed until the next event.
  Value& Close();

  // "<path of the innermost open container>: <problem>".
  absl::Status Error(absl::string_view problem) const;

  size_t depth() const { return open_.size(); }
  Value Take() && { return std::move(root_); }

 private:
  struct Container {
    Value* value;
    KeySet keys;
  };

  // The place for the next value. The pointers to open containers stay valid: only the innermost
  // one grows.
  Value& Place() {
    if (open_.empty()) return root_;
    Value& parent = *open_.back().value;
    if (auto* array = std::get_if<Value::Array>(&parent.data)) return array->emplace_back();
    return std::get<Value::Object>(parent.data).back().value;
  }
  absl::Status TooDeep() const;
  std::string PathOfInnermost() const;

  Value root_;
  std::vector<Container> open_;
};

}  // namespace ascend::cdi

#endif  // ASCEND_DRA_CDI_DOCUMENT_BUILDER_H_
