#include "kubeletplugin/kube/resource_claim.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/strings.h"
#include "nlohmann/json.hpp"

namespace ascend::kube {
namespace {

constexpr absl::string_view kPodClaimName = "resource.kubernetes.io/pod-claim-name";

// Writes the JSON text of the values that it is told, without building them. This keeps what a
// tree would lose: duplicate members, their order and the digits of numbers, so that whoever reads
// the text can be strict.
class JsonTextWriter {
 public:
  explicit JsonTextWriter(std::string* out) : out_(*out) {}

  void Key(const std::string& key) {
    Separate();
    Quote(key);
    out_ += ':';
    after_key_ = true;
  }
  void String(const std::string& value) {
    Separate();
    Quote(value);
    first_ = false;
  }
  void Literal(absl::string_view text) {
    Separate();
    out_.append(text.data(), text.size());
    first_ = false;
  }
  void Open(char bracket) {
    Separate();
    out_ += bracket;
    ++depth_;
    first_ = true;
  }
  // Returns whether that closed the outermost value.
  bool Close(char bracket) {
    out_ += bracket;
    first_ = false;
    return --depth_ == 0;
  }

 private:
  void Separate() {
    if (!first_ && !after_key_) out_ += ',';
    after_key_ = false;
  }
  void Quote(const std::string& text) {
    out_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        absl::StrAppend(&out_, "\\u", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad4));
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string& out_;
  int depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

// Reads a claim in one pass; what the driver does not need, most of the text (managedFields), costs
// no memory.
class ClaimReader {
 public:
  // nlohmann's SAX interface: false stops.
  bool null() {
    if (raw_) return raw_->Literal("null"), true;
    if (ignored_depth_ > 0) return true;
    const Slot slot = TakeSlot();
    return InArray() && slot.kind != Slot::kIgnore ? WrongType(slot) : true;
  }
  bool boolean(bool value) {
    if (raw_) return raw_->Literal(value ? "true" : "false"), true;
    if (ignored_depth_ > 0) return true;
    const Slot slot = TakeSlot();
    if (slot.kind == Slot::kIgnore) return true;
    if (slot.kind != Slot::kBool) return WrongType(slot);
    *slot.flag = value;
    return true;
  }
  bool number_integer(int64_t value) { return Number(absl::AlphaNum(value).Piece()); }
  bool number_unsigned(uint64_t value) { return Number(absl::AlphaNum(value).Piece()); }
  bool number_float(double, const std::string& text) { return Number(text); }
  bool string(std::string& value) {
    if (raw_) return raw_->String(value), true;
    if (ignored_depth_ > 0) return true;
    const Slot slot = TakeSlot();
    if (slot.kind == Slot::kIgnore) return true;
    if (slot.kind != Slot::kString) return WrongType(slot);
    *slot.text = std::move(value);
    return true;
  }
  bool binary(std::vector<uint8_t>&) { return true; }  // JSON has none
  bool start_object(size_t) { return Start(Slot::kObject, '{'); }
  bool end_object() { return End('}'); }
  bool start_array(size_t) { return Start(Slot::kArray, '['); }
  bool end_array() { return End(']'); }
  bool key(std::string& name) {
    if (raw_) return raw_->Key(name), true;
    if (ignored_depth_ == 0) slot_ = MemberSlot(stack_.back().node, FromStd(name));
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    error_ = absl::InvalidArgumentError(absl::StrCat("not valid JSON at byte ", position));
    return false;
  }

  absl::StatusOr<ResourceClaim> Result(bool complete) && {
    if (!complete) return error_;
    if (claim_.name.empty()) return absl::InvalidArgumentError("metadata.name: missing");
    if (claim_.uid.empty()) return absl::InvalidArgumentError("metadata.uid: missing");
    claim_.deletion_requested = !deletion_timestamp_.empty();
    return std::move(claim_);
  }

 private:
  enum class Node {
    kDocument,
    kClaim,
    kMetadata,
    kAnnotations,
    kStatus,
    kAllocation,
    kDevices,
    kResults,
    kResult,
    kConsumedCapacity,
    kConfigs,
    kConfig,
    kRequests,
    kOpaque,
    kConsumers,
    kConsumer,
  };

  // What belongs at the place of the next value.
  struct Slot {
    enum Kind { kIgnore, kString, kBool, kObject, kArray, kRaw };
    Kind kind = kIgnore;
    absl::string_view name;       // a literal
    Node node = Node::kDocument;  // kObject, kArray
    std::string* text = nullptr;  // kString, kRaw
    bool* flag = nullptr;         // kBool
  };
  static Slot String(absl::string_view name, std::string* text) {
    return {.kind = Slot::kString, .name = name, .text = text};
  }
  static Slot Object(absl::string_view name, Node node) {
    return {.kind = Slot::kObject, .name = name, .node = node};
  }
  static Slot Array(absl::string_view name, Node node) {
    return {.kind = Slot::kArray, .name = name, .node = node};
  }

  struct Frame {
    Node node;
    absl::string_view name;  // in its parent
    bool is_array;
    int64_t next_index = 0;
  };

  Slot MemberSlot(Node object, absl::string_view name) {
    switch (object) {
      case Node::kClaim:
        if (name == "metadata") return Object("metadata", Node::kMetadata);
        if (name == "status") return Object("status", Node::kStatus);
        break;
      case Node::kMetadata:
        if (name == "name") return String("name", &claim_.name);
        if (name == "namespace") return String("namespace", &claim_.namespace_name);
        if (name == "uid") return String("uid", &claim_.uid);
        if (name == "deletionTimestamp") return String("deletionTimestamp", &deletion_timestamp_);
        if (name == "annotations") return Object("annotations", Node::kAnnotations);
        break;
      case Node::kAnnotations:
        if (name == kPodClaimName) return String(kPodClaimName, &claim_.pod_claim_name);
        break;
      case Node::kStatus:
        if (name == "allocation") return Object("allocation", Node::kAllocation);
        if (name == "reservedFor") return Array("reservedFor", Node::kConsumers);
        break;
      case Node::kAllocation:
        if (name == "devices") return Object("devices", Node::kDevices);
        break;
      case Node::kDevices:
        if (name == "results") return Array("results", Node::kResults);
        if (name == "config") return Array("config", Node::kConfigs);
        break;
      case Node::kResult: {
        DeviceResult& result = claim_.allocation->results.back();
        if (name == "request") return String("request", &result.request);
        if (name == "driver") return String("driver", &result.driver);
        if (name == "pool") return String("pool", &result.pool);
        if (name == "device") return String("device", &result.device);
        if (name == "shareID") return String("shareID", &result.share_id);
        if (name == "adminAccess") {
          return {.kind = Slot::kBool, .name = "adminAccess", .flag = &result.admin_access};
        }
        if (name == "consumedCapacity") return Object("consumedCapacity", Node::kConsumedCapacity);
        break;
      }
      case Node::kConsumedCapacity:
        return String("quantity",
                      &claim_.allocation->results.back().consumed_capacity[std::string(name)]);
      case Node::kConfig:
        if (name == "source") return String("source", &config_source_);
        if (name == "requests") return Array("requests", Node::kRequests);
        if (name == "opaque") return Object("opaque", Node::kOpaque);
        break;
      case Node::kOpaque: {
        OpaqueConfig& config = claim_.allocation->config.back();
        if (name == "driver") return String("driver", &config.driver);
        if (name == "parameters") {
          return {.kind = Slot::kRaw, .name = "parameters", .text = &config.parameters_json};
        }
        break;
      }
      case Node::kConsumer: {
        ClaimConsumer& consumer = claim_.reserved_for.back();
        if (name == "apiGroup") return String("apiGroup", &consumer.api_group);
        if (name == "resource") return String("resource", &consumer.resource);
        if (name == "name") return String("name", &consumer.name);
        if (name == "uid") return String("uid", &consumer.uid);
        break;
      }
      default:
        break;
    }
    return {};
  }

  // Elements are created with their slot, so that Enter() finds them at the back.
  Slot ElementSlot(Node array) {
    switch (array) {
      case Node::kResults:
        claim_.allocation->results.emplace_back();
        return Object("", Node::kResult);
      case Node::kConfigs:
        claim_.allocation->config.emplace_back();
        config_source_.clear();
        has_opaque_ = false;
        return Object("", Node::kConfig);
      case Node::kRequests:
        return String("", &claim_.allocation->config.back().requests.emplace_back());
      case Node::kConsumers:
        claim_.reserved_for.emplace_back();
        return Object("", Node::kConsumer);
      default:
        return {};
    }
  }

  bool InArray() const { return !stack_.empty() && stack_.back().is_array; }

  Slot TakeSlot() {
    if (stack_.empty()) return Object("", Node::kClaim);
    if (!InArray()) return std::exchange(slot_, Slot());
    ++stack_.back().next_index;
    return ElementSlot(stack_.back().node);
  }

  bool Number(absl::string_view text) {
    if (raw_) return raw_->Literal(text), true;
    if (ignored_depth_ > 0) return true;
    const Slot slot = TakeSlot();
    return slot.kind == Slot::kIgnore ? true : WrongType(slot);
  }

  bool Start(Slot::Kind kind, char bracket) {
    if (raw_) return raw_->Open(bracket), true;
    if (ignored_depth_ > 0) return ++ignored_depth_, true;
    const Slot slot = TakeSlot();
    if (slot.kind == Slot::kIgnore) return ++ignored_depth_, true;
    if (slot.kind == Slot::kRaw && kind == Slot::kObject) {
      slot.text->clear();
      raw_.emplace(slot.text).Open(bracket);
      return true;
    }
    if (slot.kind != kind) return WrongType(slot);
    stack_.push_back({slot.node, slot.name, kind == Slot::kArray});
    if (slot.node == Node::kAllocation) claim_.allocation.emplace();
    if (slot.node == Node::kOpaque) has_opaque_ = true;
    return true;
  }

  bool End(char bracket) {
    if (raw_) {
      if (raw_->Close(bracket)) raw_.reset();
      return true;
    }
    if (ignored_depth_ > 0) return --ignored_depth_, true;
    const bool valid = stack_.back().node == Node::kConfig ? FinishConfig() : true;
    stack_.pop_back();
    return valid;
  }

  bool FinishConfig() {
    std::vector<OpaqueConfig>& config = claim_.allocation->config;
    if (!has_opaque_) {
      config.pop_back();
    } else if (config_source_ == "FromClass") {
      config.back().source = OpaqueConfig::Source::kClass;
    } else if (config_source_ == "FromClaim") {
      config.back().source = OpaqueConfig::Source::kClaim;
    } else {
      return Fail("source", "neither FromClass nor FromClaim");
    }
    return true;
  }

  bool WrongType(const Slot& slot) {
    static constexpr absl::string_view kWanted[] = {"",          "a string", "a boolean",
                                                    "an object", "an array", "an object"};
    return Fail(slot.name, absl::StrCat("not ", kWanted[slot.kind]));
  }

  // `name`: the member of the innermost object, or empty for the array's current element.
  bool Fail(absl::string_view name, absl::string_view what) {
    std::string path;
    for (const Frame& frame : stack_) {
      if (!frame.name.empty()) absl::StrAppend(&path, path.empty() ? "" : ".", frame.name);
      if (frame.is_array) absl::StrAppend(&path, "[", frame.next_index - 1, "]");
    }
    if (!name.empty()) absl::StrAppend(&path, path.empty() ? "" : ".", name);
    error_ = absl::InvalidArgumentError(path.empty() ? std::string(what)
                                                     : absl::StrCat(path, ": ", what));
    return false;
  }

  ResourceClaim claim_;
  std::string deletion_timestamp_;
  std::string config_source_;  // of the current config entry
  bool has_opaque_ = false;    // the current config entry has it

  std::vector<Frame> stack_;
  Slot slot_;                          // for the value after the key just seen
  int ignored_depth_ = 0;              // inside a value nobody wants
  std::optional<JsonTextWriter> raw_;  // inside a value that is kept as text
  absl::Status error_;
};

}  // namespace

absl::StatusOr<ResourceClaim> ParseResourceClaim(absl::string_view json) {
  ClaimReader reader;
  const bool complete = nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  return std::move(reader).Result(complete);
}

}  // namespace ascend::kube
