#include "cdi/oci_config.h"

#include <limits>
#include <string>
#include <utility>

#include "base/core/status_macros.h"
#include "cdi/document_path.h"

namespace ascend::cdi {
namespace {

using Json = OciConfig;

// A member on the way down, or an absent one. A place refers to the one it is in.
class Place {
 public:
  explicit Place(const Json& root) : value_(&root) {}
  Place(const Place& parent, const char* key)
      : path_(parent.path_.Member(key)),
        value_(parent.value_ == nullptr ? nullptr : FindMember(*parent.value_, key)) {}

  bool absent() const { return value_ == nullptr; }
  const Json& value() const { return *value_; }

  const DocumentPath& path() const { return path_; }

 private:
  const DocumentPath path_;
  const Json* value_;
};

absl::Status CheckObject(const Place& place) {
  if (place.absent() || place.value().is_object()) return absl::OkStatus();
  return place.path().Error("must be an object");
}

absl::Status CheckArray(const Place& place) {
  if (place.absent() || place.value().is_array()) return absl::OkStatus();
  return place.path().Error("must be an array");
}

bool IsUint32(const Json& value) {
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  if (value.is_number_unsigned()) return *value.get_ptr<const Json::number_unsigned_t*>() <= kMax;
  if (!value.is_number_integer()) return false;
  // Numbers that were set by code rather than parsed are signed.
  const Json::number_integer_t number = *value.get_ptr<const Json::number_integer_t*>();
  return number >= 0 && static_cast<uint64_t>(number) <= kMax;
}

absl::Status CheckUint32(const Place& place) {
  if (place.absent() || IsUint32(place.value())) return absl::OkStatus();
  return place.path().Error("must be a number from 0 to 4294967295");
}

template <typename Predicate>
absl::Status CheckElements(const Place& place, Predicate has_form, const char* rule) {
  if (place.absent()) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(CheckArray(place));
  for (size_t i = 0; i < place.value().size(); ++i) {
    if (!has_form(place.value()[i])) return place.path().Element(i).Error(rule);
  }
  return absl::OkStatus();
}

// An array of objects whose member `key`, if it is there, is a string.
absl::Status CheckNamedObjects(const Place& place, const char* key) {
  if (place.absent()) return absl::OkStatus();
  ASCEND_RETURN_IF_ERROR(CheckArray(place));
  for (size_t i = 0; i < place.value().size(); ++i) {
    const Json& element = place.value()[i];
    const DocumentPath path = place.path().Element(i);
    if (!element.is_object()) return path.Error("must be an object");
    const Json* name = FindMember(element, key);
    if (name != nullptr && !name->is_string()) {
      return path.Member(key).Error("must be a string");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckProcess(const Place& process) {
  ASCEND_RETURN_IF_ERROR(CheckObject(process));
  ASCEND_RETURN_IF_ERROR(CheckElements(
      Place(process, "env"), [](const Json& value) { return value.is_string(); },
      "must be a string"));
  const Place user(process, "user");
  ASCEND_RETURN_IF_ERROR(CheckObject(user));
  ASCEND_RETURN_IF_ERROR(CheckUint32(Place(user, "uid")));
  ASCEND_RETURN_IF_ERROR(CheckUint32(Place(user, "gid")));
  return CheckElements(Place(user, "additionalGids"), IsUint32,
                       "must be a number from 0 to 4294967295");
}

absl::Status CheckHooks(const Place& hooks) {
  ASCEND_RETURN_IF_ERROR(CheckObject(hooks));
  for (const char* name : kHookNames) ASCEND_RETURN_IF_ERROR(CheckArray(Place(hooks, name)));
  return absl::OkStatus();
}

absl::Status CheckLinux(const Place& section) {
  ASCEND_RETURN_IF_ERROR(CheckObject(section));
  ASCEND_RETURN_IF_ERROR(CheckNamedObjects(Place(section, "devices"), "path"));
  const Place resources(section, "resources");
  ASCEND_RETURN_IF_ERROR(CheckObject(resources));
  ASCEND_RETURN_IF_ERROR(CheckArray(Place(resources, "devices")));
  ASCEND_RETURN_IF_ERROR(CheckObject(Place(section, "netDevices")));
  ASCEND_RETURN_IF_ERROR(CheckNamedObjects(Place(section, "namespaces"), "type"));
  ASCEND_RETURN_IF_ERROR(CheckArray(Place(section, "uidMappings")));
  return CheckArray(Place(section, "gidMappings"));
}

Json& MemberIn(Json& object, absl::string_view key, Json::value_t type) {
  Json& member = ValueIn(object, key);
  if (member.is_null()) member = Json(type);
  return member;
}

// Of a member that CheckUint32 accepted.
uint32_t NumberIn(const Json& object, absl::string_view key) {
  const Json* number = FindMember(object, key);
  return number == nullptr ? 0 : number->get<uint32_t>();
}

}  // namespace

absl::Status CheckOciConfig(const Json& config) {
  if (!config.is_object()) {
    return absl::InvalidArgumentError("the OCI configuration must be an object");
  }
  const Place root(config);
  ASCEND_RETURN_IF_ERROR(CheckProcess(Place(root, "process")));
  ASCEND_RETURN_IF_ERROR(CheckNamedObjects(Place(root, "mounts"), "destination"));
  ASCEND_RETURN_IF_ERROR(CheckHooks(Place(root, "hooks")));
  return CheckLinux(Place(root, "linux"));
}

const Json* FindMember(const Json& object, absl::string_view key) {
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    if (name == key) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

Json& ValueIn(Json& object, absl::string_view key) {
  auto& members = object.get_ref<Json::object_t&>();
  for (auto& [name, value] : members) {
    if (name == key) return value;
  }
  if (members.size() == members.capacity()) {
    // Left to itself the vector copies all that is in the members: it cannot move constant keys.
    Json::object_t grown;
    grown.reserve(2 * members.size() + 1);
    for (auto& [name, value] : members) grown.emplace_back(name, std::move(value));
    members = std::move(grown);
  }
  return members.emplace_back(std::string(key), nullptr).second;
}

Json& ObjectIn(Json& object, absl::string_view key) {
  return MemberIn(object, key, Json::value_t::object);
}

Json::array_t& ArrayIn(Json& object, absl::string_view key) {
  return MemberIn(object, key, Json::value_t::array).get_ref<Json::array_t&>();
}

const std::string& TextIn(const Json& object, absl::string_view key) {
  static const std::string empty;
  const Json* text = FindMember(object, key);
  return text == nullptr ? empty : text->get_ref<const std::string&>();
}

ProcessUser ProcessUserOf(const Json& config) {
  const Json* process = FindMember(config, "process");
  const Json* user = process == nullptr ? nullptr : FindMember(*process, "user");
  if (user == nullptr) return {};
  return {.uid = NumberIn(*user, "uid"), .gid = NumberIn(*user, "gid")};
}

UserNamespace UserNamespaceOf(const Json& config) {
  const Json* section = FindMember(config, "linux");
  const Json* namespaces = section == nullptr ? nullptr : FindMember(*section, "namespaces");
  if (namespaces == nullptr) return UserNamespace::kNone;
  bool user = false;
  for (const Json& entry : *namespaces) user |= TextIn(entry, "type") == "user";
  if (!user) return UserNamespace::kNone;
  for (const char* key : {"uidMappings", "gidMappings"}) {
    const Json* mappings = FindMember(*section, key);
    if (mappings == nullptr || mappings->empty()) return UserNamespace::kWithoutMappings;
  }
  return UserNamespace::kMapped;
}

}  // namespace ascend::cdi
