#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/core/status_macros.h"
#include "cdi/document.h"
#include "cdi/document_builder.h"
#include "cdi/document_path.h"
#include "cdi/text.h"
#include "cdi/validate.h"
#include "cdi/yaml.h"
#include "cdi/yaml_text.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace ascend::cdi {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr absl::string_view kMergeKey = "<<";
constexpr absl::string_view kCoreTags = "tag:yaml.org,2002:";
// What anchors and aliases may add to a document, in bytes of memory: the few lines of a "billion
// laughs" file must not become gigabytes.
constexpr size_t kMaxCopied = kMaxDocumentSize;

struct Extent {
  size_t bytes = sizeof(Value);
  size_t depth = 0;
};

void Measure(const Value& value, size_t depth, Extent* extent) {
  if (const auto* text = std::get_if<std::string>(&value.data)) {
    extent->bytes += text->size();
  } else if (const auto* plain = std::get_if<PlainScalar>(&value.data)) {
    extent->bytes += plain->text.size();
  } else if (const auto* array = std::get_if<Value::Array>(&value.data)) {
    extent->depth = std::max(extent->depth, depth + 1);
    extent->bytes += array->size() * sizeof(Value);
    for (const Value& element : *array) Measure(element, depth + 1, extent);
  } else if (const auto* object = std::get_if<Value::Object>(&value.data)) {
    extent->depth = std::max(extent->depth, depth + 1);
    extent->bytes += object->size() * sizeof(Member);
    for (const Member& member : *object) {
      extent->bytes += member.key.size();
      Measure(member.value, depth + 1, extent);
    }
  }
}

absl::Status ErrorAt(const YAML::Mark& mark, absl::string_view problem) {
  if (mark.is_null()) return absl::InvalidArgumentError(problem);
  return absl::InvalidArgumentError(
      absl::StrCat("line ", mark.line + 1, ", column ", mark.column + 1, ": ", problem));
}

// Hands the parser's events to the builder, with aliases and merge keys resolved.
class YamlEvents : public YAML::EventHandler {
 public:
  // Thrown by the events: yaml-cpp knows no other way to stop it.
  struct Stop {
    absl::Status status;
  };

  explicit YamlEvents(absl::string_view text) : text_(text) {}

  Value TakeDocument() { return std::move(builder_).Take(); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (ExpectsKey()) Fail(mark, "a key must be a string, not null");
    // yaml-cpp makes one up where the text breaks off.
    if (!open_.empty() && open_.back().key_position == mark.pos) {
      Fail(mark, "no colon after the key");
    }
    PutScalar({}, mark, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    const ScalarSource source = LookAtScalar(text_, static_cast<size_t>(std::max(mark.pos, 0)));
    if (!source.problem.empty()) Fail(mark, source.problem);
    CheckTag(mark, tag, "str");
    const bool plain = source.plain && tag == "?";
    if (ExpectsKey() && plain && text == kMergeKey) {
      open_.back().merge = {mark, open_.back().members};
    }
    Value value;
    if (plain) {
      value.data = PlainScalar{text};
    } else {
      value.data = text;
    }
    PutScalar(std::move(value), mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (anchor >= anchored_.size() || !anchored_[anchor].complete) {
      Fail(mark, "an alias inside of what it stands for");
    }
    const Anchored& target = anchored_[anchor];
    if (open_.size() + target.extent.depth > kMaxDocumentDepth) {
      Fail(mark, absl::StrCat("nested deeper than ", kMaxDocumentDepth, " levels"));
    }
    Spend(target.extent, mark);
    PutScalar(target.value, mark, YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(mark, tag, "seq");
    if (ExpectsKey()) Fail(mark, "a key must be a string, not a sequence");
    Check(builder_.OpenArray());
    open_.push_back({mark, anchor});
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(mark, tag, "map");
    if (ExpectsKey()) Fail(mark, "a key must be a string, not a mapping");
    Check(builder_.OpenObject());
    open_.push_back({mark, anchor, /*is_object=*/true});
  }

  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Merge {
    YAML::Mark mark = YAML::Mark::null_mark();
    size_t member = 0;  // whose key is "<<"
  };
  struct Container {
    YAML::Mark mark;
    YAML::anchor_t anchor = YAML::NullAnchor;
    bool is_object = false;
    bool after_key = false;
    int key_position = -1;  // of the last one, in the text
    size_t members = 0;
    Merge merge;
  };
  // What an anchor names. A copy, as the tree still moves.
  struct Anchored {
    bool complete = false;
    Value value;
    Extent extent;
  };

  [[noreturn]] static void Fail(const YAML::Mark& mark, absl::string_view problem) {
    throw Stop{ErrorAt(mark, problem)};
  }
  static void Check(absl::Status status) {
    if (!status.ok()) throw Stop{std::move(status)};
  }

  bool ExpectsKey() const {
    return !open_.empty() && open_.back().is_object && !open_.back().after_key;
  }

  // A tag may say what is there anyway. Another would need to be known to all readers of the file.
  static void CheckTag(const YAML::Mark& mark, absl::string_view tag, absl::string_view wanted) {
    if (tag == "?" || tag == "!" || tag == absl::StrCat(kCoreTags, wanted)) return;
    Fail(mark, absl::StrCat("the tag must be !!", wanted, " or none, not ", Quote(tag)));
  }

  // A value without events of its own, or a key.
  void PutScalar(Value value, const YAML::Mark& mark, YAML::anchor_t anchor) {
    Remember(value, mark, anchor);
    if (!ExpectsKey()) {
      builder_.Put(std::move(value.data));
      ValueDone();
    } else if (auto* text = std::get_if<std::string>(&value.data)) {
      TakeKey(std::move(*text), mark);
    } else if (auto* plain = std::get_if<PlainScalar>(&value.data)) {
      TakeKey(std::move(plain->text), mark);
    } else {
      Fail(mark, "a key must be a string");
    }
  }

  void TakeKey(std::string key, const YAML::Mark& mark) {
    Check(builder_.Key(std::move(key)));
    open_.back().key_position = mark.pos;
    open_.back().after_key = true;
    ++open_.back().members;
  }

  void ValueDone() {
    if (!open_.empty()) open_.back().after_key = false;
  }

  void Close() {
    const Container closed = open_.back();
    open_.pop_back();
    Value& value = builder_.Close();
    if (!closed.merge.mark.is_null()) {
      MergeMembers(closed.merge, &std::get<Value::Object>(value.data));
    }
    Remember(value, closed.mark, closed.anchor);
    ValueDone();
  }

  void Remember(const Value& value, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    if (anchor >= anchored_.size()) anchored_.resize(anchor + 1);
    Extent extent;
    Measure(value, 0, &extent);
    Spend(extent, mark);
    anchored_[anchor] = {true, value, extent};
  }

  void Spend(const Extent& extent, const YAML::Mark& mark) {
    if (extent.bytes > kMaxCopied - copied_) {
      Fail(mark, absl::StrCat("aliases make more than ", kMaxCopied, " bytes of the document"));
    }
    copied_ += extent.bytes;
  }

  // "<<": the members of a mapping, or of each of a sequence, unless they are there. What comes
  // first wins.
  static void MergeMembers(const Merge& merge, Value::Object* object) {
    const auto member = object->begin() + static_cast<ptrdiff_t>(merge.member);
    Value merged = std::move(member->value);
    object->erase(member);
    KeySet keys(*object);
    if (auto* source = std::get_if<Value::Object>(&merged.data)) {
      AddMissing(std::move(*source), object, &keys);
      return;
    }
    auto* sources = std::get_if<Value::Array>(&merged.data);
    if (sources == nullptr) Fail(merge.mark, "<< must stand for a mapping or a sequence of them");
    for (Value& element : *sources) {
      auto* source = std::get_if<Value::Object>(&element.data);
      if (source == nullptr) Fail(merge.mark, "<< must stand for mappings only");
      AddMissing(std::move(*source), object, &keys);
    }
  }

  static void AddMissing(Value::Object source, Value::Object* object, KeySet* keys) {
    for (Member& member : source) {
      if (keys->Contains(*object, member.key)) continue;
      object->push_back(std::move(member));
      keys->Added(*object);
    }
  }

  const absl::string_view text_;
  DocumentBuilder builder_;
  std::vector<Container> open_;
  std::vector<Anchored> anchored_;  // by the parser's numbers
  size_t copied_ = 0;
};

absl::StatusOr<Value> ParseYaml(absl::string_view text) {
  YamlEvents events(text);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(events)) {
      return absl::InvalidArgumentError("there is no document in the text");
    }
  } catch (const YamlEvents::Stop& stop) {
    return stop.status;
  } catch (const YAML::Exception& error) {
    return ErrorAt(error.mark, error.msg);
  }
  return events.TakeDocument();
}

}  // namespace

absl::StatusOr<Spec> ReadYaml(absl::string_view text) {
  if (text.size() > kMaxYamlSize) {
    return absl::InvalidArgumentError(
        absl::StrCat("larger than ", kMaxYamlSize, " bytes: ", text.size()));
  }
  absl::ConsumePrefix(&text, kByteOrderMark);
  ASCEND_RETURN_IF_ERROR(CheckYamlText(text));
  ASCEND_ASSIGN_OR_RETURN(Value document, ParseYaml(text));
  ASCEND_ASSIGN_OR_RETURN(Spec spec, DecodeSpec(std::move(document)));
  ASCEND_RETURN_IF_ERROR(ValidateForReading(spec));
  return spec;
}

}  // namespace ascend::cdi
