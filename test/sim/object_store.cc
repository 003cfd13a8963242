#include "test/sim/object_store.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace ascend::sim {
namespace {

using nlohmann::json;

constexpr size_t kMaxEvents = 10000;

const std::vector<ResourceType>& Types() {
  static const auto* types = new std::vector<ResourceType>{
      {"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false},
      {"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false},
      {"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true},
      {"events.k8s.io", "v1", "events", "Event", true},
      {"", "v1", "nodes", "Node", false},
      {"", "v1", "pods", "Pod", true},
  };
  return *types;
}

template <typename Predicate>
const ResourceType* FindType(Predicate predicate) {
  const auto it = absl::c_find_if(Types(), predicate);
  return it == Types().end() ? nullptr : &*it;
}

std::string Now() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
}

std::string Text(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

const json& Member(const json& object, const char* key) {
  static const auto* empty = new json(json::object());
  const auto it = object.find(key);
  return it == object.end() ? *empty : *it;
}

ApiError MakeError(const ResourceType& type, const std::string& name, int code,
                   std::string message) {
  return {.code = code,
          .reason = ReasonOf(code),
          .message = std::move(message),
          .name = name,
          .kind = type.resource,
          .group = type.group};
}

std::string FullName(const ResourceType& type) {
  return type.group.empty() ? type.resource : absl::StrCat(type.resource, ".", type.group);
}

ApiError NotFound(const ResourceType& type, const std::string& name) {
  return MakeError(type, name, 404, absl::StrCat(FullName(type), " \"", name, "\" not found"));
}

ApiError Conflict(const ResourceType& type, const std::string& name, absl::string_view why) {
  return MakeError(
      type, name, 409,
      absl::StrCat("Operation cannot be fulfilled on ", FullName(type), " \"", name, "\": ", why));
}

ApiError BadRequest(const ResourceType& type, const std::string& name, absl::string_view why) {
  return MakeError(type, name, 400, std::string(why));
}

ApiError Invalid(const ResourceType& type, const std::string& name, std::vector<Cause> causes) {
  std::vector<std::string> parts;
  for (const Cause& cause : causes) parts.push_back(absl::StrCat(cause.field, ": ", cause.message));
  const std::string kind =
      type.group.empty() ? type.kind : absl::StrCat(type.kind, ".", type.group);
  ApiError error = MakeError(
      type, name, 422,
      absl::StrCat(
          kind, " \"", name, "\" is invalid: ",
          parts.size() == 1 ? parts[0] : absl::StrCat("[", absl::StrJoin(parts, ", "), "]")));
  error.kind = type.kind;
  error.causes = std::move(causes);
  return error;
}

void CheckText(const json& object, const char* key, size_t limit, bool required,
               std::vector<Cause>* causes) {
  const std::string text = Text(object, key);
  if (text.empty() && required) causes->push_back({"FieldValueRequired", key, "Required value"});
  if (text.size() > limit) {
    causes->push_back({"FieldValueTooLong", key,
                       absl::StrCat("Too long: may not be more than ", limit, " bytes")});
  }
}

std::vector<Cause> ValidateEvent(const json& event) {
  std::vector<Cause> causes;
  CheckText(event, "eventTime", 64, true, &causes);
  CheckText(event, "reportingController", 253, true, &causes);
  CheckText(event, "reportingInstance", 128, true, &causes);
  CheckText(event, "action", 128, true, &causes);
  CheckText(event, "reason", 128, true, &causes);
  CheckText(event, "note", 1024, false, &causes);
  const std::string type = Text(event, "type");
  if (type != "Normal" && type != "Warning") {
    causes.push_back({"FieldValueInvalid", "type",
                      absl::StrCat("Invalid value: \"", type, "\": has invalid value")});
  }
  std::string about = Text(Member(event, "regarding"), "namespace");
  if (about.empty()) about = "default";
  if (Text(Member(event, "metadata"), "namespace") != about) {
    causes.push_back({"FieldValueInvalid", "regarding.namespace",
                      "Invalid value: does not match event.namespace"});
  }
  return causes;
}

std::vector<Cause> ValidateClaim(const json& claim, const json* old) {
  std::vector<Cause> causes;
  const json& spec = Member(claim, "spec");
  const json& requests = Member(Member(spec, "devices"), "requests");
  if (!requests.is_array() || requests.empty() || requests.size() > 32) {
    causes.push_back(
        {"FieldValueInvalid", "spec.devices.requests", "Invalid value: needs 1 to 32 entries"});
  }
  if (old != nullptr && spec != Member(*old, "spec")) {
    causes.push_back({"FieldValueInvalid", "spec", "Invalid value: field is immutable"});
  }
  return causes;
}

}  // namespace

const ResourceType* FindResource(const std::string& group, const std::string& version,
                                 const std::string& resource) {
  return FindType([&](const ResourceType& type) {
    return type.group == group && type.version == version && type.resource == resource;
  });
}

const ResourceType* FindKind(const std::string& api_version, const std::string& kind) {
  return FindType([&](const ResourceType& type) {
    return type.api_version() == api_version && type.kind == kind;
  });
}

const ResourceType* FindPlural(const std::string& resource) {
  return FindType([&](const ResourceType& type) { return type.resource == resource; });
}

std::string ReasonOf(int code) {
  switch (code) {
    case 400:
      return "BadRequest";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "NotFound";
    case 405:
      return "MethodNotAllowed";
    case 409:
      return "Conflict";
    case 410:
      return "Expired";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return "Invalid";
    case 429:
      return "TooManyRequests";
    case 500:
      return "InternalError";
    case 503:
      return "ServiceUnavailable";
    case 504:
      return "Timeout";
    default:
      return "";
  }
}

json ApiError::ToStatus() const {
  json status = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::object()},
                 {"status", "Failure"}, {"message", message}, {"code", code}};
  if (!reason.empty()) status["reason"] = reason;
  json details = json::object();
  if (!name.empty()) details["name"] = name;
  if (!group.empty()) details["group"] = group;
  if (!kind.empty()) details["kind"] = kind;
  for (const Cause& cause : causes) {
    details["causes"].push_back(
        {{"reason", cause.reason}, {"message", cause.message}, {"field", cause.field}});
  }
  if (!details.empty()) status["details"] = details;
  return status;
}

bool Selector::Matches(const json& object) const {
  const json& metadata = Member(object, "metadata");
  if (!namespace_name.empty() && Text(metadata, "namespace") != namespace_name) return false;
  return absl::c_all_of(fields, [&](const auto& field) {
    if (field.first == "metadata.name") return Text(metadata, "name") == field.second;
    if (field.first == "metadata.namespace") return Text(metadata, "namespace") == field.second;
    const json& spec = Member(object, "spec");
    if (field.first == "spec.driver") return Text(spec, "driver") == field.second;
    return Text(spec, "nodeName") == field.second;
  });
}

ApiError ObjectStore::Decode(const ResourceType& type, const json* old, json* object) {
  const std::string name = Text(Member(*object, "metadata"), "name");
  if (Text(*object, "kind") != type.kind || Text(*object, "apiVersion") != type.api_version()) {
    return BadRequest(
        type, name,
        absl::StrCat("the object provided is unrecognized: no kind \"", Text(*object, "kind"),
                     "\" in version \"", Text(*object, "apiVersion"), "\" here"));
  }
  if (type.kind != "ResourceSlice") return {};
  if (const absl::Status status = DecodeSlice(Now(), object); !status.ok()) {
    return BadRequest(type, name,
                      absl::StrCat("ResourceSlice in version \"v1\" cannot be handled as a "
                                   "ResourceSlice: ",
                                   status.message()));
  }
  if (!object->contains("spec")) return {};
  // A field whose feature is off is dropped, unless the stored object uses the feature already.
  const std::string before = old == nullptr ? "" : old->dump();
  if (!device_taints && before.find("\"taints\"") == std::string::npos) DropTaints(object);
  if (!partitionable_devices && before.find("ounters\"") == std::string::npos) DropCounters(object);
  return {};
}

std::vector<Cause> ObjectStore::Validate(const ResourceType& type, const json& object,
                                         const json* old) const {
  if (type.kind == "ResourceSlice") return ValidateSlice(object, old);
  std::vector<Cause> causes;
  const std::string name = Text(Member(object, "metadata"), "name");
  if (!IsDnsSubdomain(name)) {
    causes.push_back(
        {"FieldValueInvalid", "metadata.name",
         absl::StrCat("Invalid value: \"", name, "\": must be a lowercase RFC 1123 subdomain")});
  }
  std::vector<Cause> more;
  if (type.kind == "Event") more = ValidateEvent(object);
  if (type.kind == "ResourceClaim") more = ValidateClaim(object, old);
  causes.insert(causes.end(), more.begin(), more.end());
  return causes;
}

void ObjectStore::Record(const char* event_type, const ResourceType& type, json* object) {
  ++version_;
  (*object)["metadata"]["resourceVersion"] = absl::StrCat(version_);
  events_.push_back({version_, event_type, type.resource, *object});
  if (events_.size() > kMaxEvents) {
    oldest_ = events_.front().version;
    events_.pop_front();
  }
  if (type.resource == "resourceslices") ++slice_writes_;
}

StoreResult ObjectStore::Create(const ResourceType& type, const std::string& namespace_name,
                                json object) {
  if (!object.is_object() || !Member(object, "metadata").is_object()) {
    return {.error = BadRequest(type, "", "the body is not an object")};
  }
  if (ApiError error = Decode(type, nullptr, &object); error.code != 0) return {.error = error};
  if (type.kind == "ResourceClaim") object.erase("status");  // only /status writes it
  json& metadata = object["metadata"];
  const std::string generate = Text(metadata, "generateName");
  if (Text(metadata, "name").empty() && !generate.empty()) {
    metadata["name"] =
        absl::StrCat(generate.substr(0, 58), absl::Dec(next_suffix_++, absl::kZeroPad5));
  }
  const std::string name = Text(metadata, "name");
  if (!Text(metadata, "resourceVersion").empty()) {
    return {.error = BadRequest(type, name,
                                "resourceVersion should not be set on objects to be created")};
  }
  if (type.namespaced) {
    const std::string given = Text(metadata, "namespace");
    if (!given.empty() && given != namespace_name) {
      return {.error = BadRequest(type, name,
                                  "the namespace of the provided object does not match the "
                                  "namespace sent on the request")};
    }
    metadata["namespace"] = namespace_name;
  }
  if (std::vector<Cause> causes = Validate(type, object, nullptr); !causes.empty()) {
    return {.error = Invalid(type, name, std::move(causes))};
  }
  const Key key(type.resource, namespace_name, name);
  if (objects_.count(key) != 0) {
    ApiError error =
        MakeError(type, name, 409, absl::StrCat(FullName(type), " \"", name, "\" already exists"));
    error.reason = "AlreadyExists";
    return {.error = error};
  }
  metadata["uid"] = absl::StrFormat("00000000-0000-4000-8000-%012d", next_uid_++);
  metadata["creationTimestamp"] = Now();
  metadata["generation"] = 1;
  Record("ADDED", type, &object);
  return {.object = objects_[key] = std::move(object)};
}

StoreResult ObjectStore::Update(const ResourceType& type, const std::string& namespace_name,
                                const std::string& name, json object, bool status_only) {
  if (!object.is_object() || !Member(object, "metadata").is_object()) {
    return {.error = BadRequest(type, name, "the body is not an object")};
  }
  const auto it = objects_.find(Key(type.resource, namespace_name, name));
  if (it == objects_.end()) return {.error = NotFound(type, name)};
  const json& old = it->second;
  if (ApiError error = Decode(type, &old, &object); error.code != 0) return {.error = error};
  json& metadata = object["metadata"];
  if (Text(metadata, "name") != name) {
    return {.error = BadRequest(type, name,
                                "the name of the object does not match the name on the URL")};
  }
  const std::string uid = Text(metadata, "uid");
  if (!uid.empty() && uid != Text(old["metadata"], "uid")) {
    return {.error =
                Conflict(type, name,
                         absl::StrCat("Precondition failed: UID in precondition: ", uid,
                                      ", UID in object meta: ", Text(old["metadata"], "uid")))};
  }
  const std::string version = Text(metadata, "resourceVersion");
  if (!version.empty() && version != Text(old["metadata"], "resourceVersion")) {
    return {.error = Conflict(type, name,
                              "the object has been modified; please apply your changes to the "
                              "latest version and try again")};
  }
  if (status_only) {
    json merged = old;
    merged["status"] = Member(object, "status");
    object = std::move(merged);
  } else if (type.kind == "ResourceClaim") {
    object.erase("status");
    if (old.contains("status")) object["status"] = old["status"];
  }
  json& meta = object["metadata"];
  for (const char* key : {"uid", "resourceVersion", "creationTimestamp", "generation"}) {
    meta[key] = old["metadata"][key];
  }
  if (type.namespaced) meta["namespace"] = namespace_name;
  if (std::vector<Cause> causes = Validate(type, object, &old); !causes.empty()) {
    return {.error = Invalid(type, name, std::move(causes))};
  }
  if (object == old) return {.object = old};
  if (Member(object, "spec") != Member(old, "spec")) {
    meta["generation"] = meta["generation"].get<int64_t>() + 1;
  }
  Record("MODIFIED", type, &object);
  return {.object = it->second = std::move(object)};
}

StoreResult ObjectStore::MergePatch(const ResourceType& type, const std::string& namespace_name,
                                    const std::string& name, const json& patch, bool status_only) {
  StoreResult current = Get(type, namespace_name, name);
  if (!current.ok()) return current;
  json object = std::move(current.object);
  object.merge_patch(patch);
  return Update(type, namespace_name, name, std::move(object), status_only);
}

StoreResult ObjectStore::Delete(const ResourceType& type, const std::string& namespace_name,
                                const std::string& name, const Preconditions& preconditions) {
  const auto it = objects_.find(Key(type.resource, namespace_name, name));
  if (it == objects_.end()) return {.error = NotFound(type, name)};
  const json& metadata = it->second["metadata"];
  if (!preconditions.uid.empty() && preconditions.uid != Text(metadata, "uid")) {
    return {.error = Conflict(
                type, name,
                absl::StrCat("Precondition failed: UID in precondition: ", preconditions.uid,
                             ", UID in object meta: ", Text(metadata, "uid")))};
  }
  if (!preconditions.resource_version.empty() &&
      preconditions.resource_version != Text(metadata, "resourceVersion")) {
    return {.error = Conflict(type, name,
                              "Precondition failed: the ResourceVersion in the precondition does "
                              "not match the ResourceVersion in record")};
  }
  json object = std::move(it->second);
  objects_.erase(it);
  Record("DELETED", type, &object);
  return {.object = std::move(object)};
}

StoreResult ObjectStore::Get(const ResourceType& type, const std::string& namespace_name,
                             const std::string& name) const {
  const auto it = objects_.find(Key(type.resource, namespace_name, name));
  if (it == objects_.end()) return {.error = NotFound(type, name)};
  return {.object = it->second};
}

std::vector<json> ObjectStore::List(const ResourceType& type, const Selector& selector) const {
  std::vector<json> found;
  for (auto it = objects_.lower_bound(Key(type.resource, "", ""));
       it != objects_.end() && std::get<0>(it->first) == type.resource; ++it) {
    if (selector.Matches(it->second)) found.push_back(it->second);
  }
  return found;
}

void ObjectStore::Compact() {
  ++version_;  // so that a client which holds the newest version sees it too
  oldest_ = version_;
  events_.clear();
}

std::vector<ObjectStore::Event> ObjectStore::EventsAfter(uint64_t version, const ResourceType& type,
                                                         const Selector& selector) const {
  std::vector<Event> found;
  const auto first = absl::c_lower_bound(
      events_, version + 1, [](const Event& event, uint64_t v) { return event.version < v; });
  for (auto it = first; it != events_.end(); ++it) {
    if (it->resource == type.resource && selector.Matches(it->object)) found.push_back(*it);
  }
  return found;
}

}  // namespace ascend::sim
