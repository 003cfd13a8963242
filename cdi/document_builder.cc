#include "cdi/document_builder.h"

#include "absl/strings/str_cat.h"
#include "cdi/document_path.h"

namespace ascend::cdi {
namespace {

constexpr size_t kFew = 16;
constexpr size_t kTypicalMembers = 4;

absl::Status ErrorAt(absl::string_view path, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(path, path.empty() ? "" : ": ", problem));
}

}  // namespace

KeySet::KeySet(const Value::Object& object) {
  if (object.size() < kFew) return;
  for (const Member& member : object) hashed_.insert(member.key);
}

bool KeySet::Contains(const Value::Object& object, absl::string_view key) const {
  if (!hashed_.empty()) return hashed_.contains(key);
  for (const Member& member : object) {
    if (member.key == key) return true;
  }
  return false;
}

void KeySet::Added(const Value::Object& object) {
  if (!hashed_.empty()) {
    hashed_.insert(object.back().key);
  } else if (object.size() == kFew) {
    for (const Member& member : object) hashed_.insert(member.key);
  }
}

absl::Status DocumentBuilder::Key(std::string key) {
  Container& innermost = open_.back();
  auto& object = std::get<Value::Object>(innermost.value->data);
  if (innermost.keys.Contains(object, key)) {
    std::string path = PathOfInnermost();
    AppendMember(key, &path);
    return ErrorAt(path, "the key is there twice");
  }
  object.push_back({std::move(key), {}});
  innermost.keys.Added(object);
  return absl::OkStatus();
}

absl::Status DocumentBuilder::OpenArray() {
  if (open_.size() == kMaxDocumentDepth) return TooDeep();
  Value& place = Place();
  place.data.emplace<Value::Array>();
  open_.push_back({&place, {}});
  return absl::OkStatus();
}

absl::Status DocumentBuilder::OpenObject() {
  if (open_.size() == kMaxDocumentDepth) return TooDeep();
  Value& place = Place();
  place.data.emplace<Value::Object>().reserve(kTypicalMembers);
  open_.push_back({&place, {}});
  return absl::OkStatus();
}

Value& DocumentBuilder::Close() {
  Value& closed = *open_.back().value;
  open_.pop_back();
  return closed;
}

absl::Status DocumentBuilder::Error(absl::string_view problem) const {
  return ErrorAt(PathOfInnermost(), problem);
}

absl::Status DocumentBuilder::TooDeep() const {
  return Error(absl::StrCat("nested deeper than ", kMaxDocumentDepth, " levels"));
}

std::string DocumentBuilder::PathOfInnermost() const {
  std::string path;
  for (size_t i = 0; i + 1 < open_.size(); ++i) {
    const Value& value = *open_[i].value;
    if (const auto* array = std::get_if<Value::Array>(&value.data)) {
      AppendElement(array->size() - 1, &path);
    } else {
      AppendMember(std::get<Value::Object>(value.data).back().key, &path);
    }
  }
  return path;
}

}  // namespace ascend::cdi
