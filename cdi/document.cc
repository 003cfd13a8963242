#include "cdi/document.h"

#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/core/status_macros.h"
#include "cdi/document_path.h"

namespace ascend::cdi {
namespace {

absl::string_view KindOf(const Value& value) {
  constexpr absl::string_view kKinds[] = {"null",     "a boolean", "a number", "a number",
                                          "a number", "a string",  "an array", "an object"};
  return kKinds[value.data.index()];
}

bool IsNull(const Value& value) { return std::holds_alternative<Value::Null>(value.data); }

absl::Status WrongType(const Value& value, absl::string_view wanted, const DocumentPath& path) {
  return path.Error("must be ", wanted, ", not ", KindOf(value));
}

absl::Status Decode(const Value& value, const DocumentPath& path, std::string* out) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return WrongType(value, "a string", path);
  *out = *text;
  return absl::OkStatus();
}

absl::Status Decode(const Value& value, const DocumentPath& path, bool* out) {
  const auto* flag = std::get_if<bool>(&value.data);
  if (flag == nullptr) return WrongType(value, "a boolean", path);
  *out = *flag;
  return absl::OkStatus();
}

absl::Status Decode(const Value& value, const DocumentPath& path, int64_t* out) {
  if (std::holds_alternative<uint64_t>(value.data)) return path.Error("is too large");
  if (std::holds_alternative<double>(value.data)) return path.Error("must be an integer");
  const auto* number = std::get_if<int64_t>(&value.data);
  if (number == nullptr) return WrongType(value, "an integer", path);
  *out = *number;
  return absl::OkStatus();
}

absl::Status Decode(const Value& value, const DocumentPath& path, uint32_t* out) {
  int64_t number = 0;
  ASCEND_RETURN_IF_ERROR(Decode(value, path, &number));
  if (number < 0 || number > std::numeric_limits<uint32_t>::max()) {
    return path.Error("must be between 0 and 4294967295, not ", number);
  }
  *out = static_cast<uint32_t>(number);
  return absl::OkStatus();
}

// Every type that the templates below may meet must be declared before them.
absl::Status Decode(const Value& value, const DocumentPath& path, DeviceNode* out);
absl::Status Decode(const Value& value, const DocumentPath& path, NetDevice* out);
absl::Status Decode(const Value& value, const DocumentPath& path, Mount* out);
absl::Status Decode(const Value& value, const DocumentPath& path, Hook* out);
absl::Status Decode(const Value& value, const DocumentPath& path, IntelRdt* out);
absl::Status Decode(const Value& value, const DocumentPath& path, ContainerEdits* out);
absl::Status Decode(const Value& value, const DocumentPath& path, Device* out);
template <typename T>
absl::Status Decode(const Value& value, const DocumentPath& path, std::vector<T>* out);

template <typename T>
absl::Status Decode(const Value& value, const DocumentPath& path, std::optional<T>* out) {
  return Decode(value, path, &out->emplace());
}

template <typename T>
absl::Status Decode(const Value& value, const DocumentPath& path, std::vector<T>* out) {
  const auto* array = std::get_if<Value::Array>(&value.data);
  if (array == nullptr) return WrongType(value, "an array", path);
  out->resize(array->size());
  for (size_t i = 0; i < array->size(); ++i) {
    ASCEND_RETURN_IF_ERROR(Decode((*array)[i], path.Element(i), &(*out)[i]));
  }
  return absl::OkStatus();
}

absl::Status Decode(const Value& value, const DocumentPath& path,
                    std::map<std::string, std::string>* out) {
  const auto* object = std::get_if<Value::Object>(&value.data);
  if (object == nullptr) return WrongType(value, "an object", path);
  for (const Member& member : *object) {
    ASCEND_RETURN_IF_ERROR(Decode(member.value, path.Member(member.key), &(*out)[member.key]));
  }
  return absl::OkStatus();
}

// Where a member of an object goes.
struct Field {
  template <typename T>
  Field(absl::string_view name, T* target)
      : key(name), decode([target](const Value& value, const DocumentPath& path) {
          return Decode(value, path, target);
        }) {}

  absl::string_view key;
  std::function<absl::Status(const Value&, const DocumentPath&)> decode;
};

absl::Status DecodeObject(const Value& value, const DocumentPath& path,
                          std::initializer_list<Field> fields) {
  const auto* object = std::get_if<Value::Object>(&value.data);
  if (object == nullptr) return WrongType(value, "an object", path);
  for (const Member& member : *object) {
    const Field* found = nullptr;
    for (const Field& field : fields) {
      if (field.key == member.key) found = &field;
    }
    const DocumentPath at = path.Member(member.key);
    if (found == nullptr) return at.Error("unknown member");
    if (IsNull(member.value)) continue;
    ASCEND_RETURN_IF_ERROR(found->decode(member.value, at));
  }
  return absl::OkStatus();
}

absl::Status Decode(const Value& value, const DocumentPath& path, DeviceNode* out) {
  return DecodeObject(value, path,
                      {{"path", &out->path},
                       {"hostPath", &out->host_path},
                       {"type", &out->type},
                       {"major", &out->major},
                       {"minor", &out->minor},
                       {"fileMode", &out->file_mode},
                       {"permissions", &out->permissions},
                       {"uid", &out->uid},
                       {"gid", &out->gid}});
}

absl::Status Decode(const Value& value, const DocumentPath& path, NetDevice* out) {
  return DecodeObject(value, path,
                      {{"hostInterfaceName", &out->host_interface_name}, {"name", &out->name}});
}

absl::Status Decode(const Value& value, const DocumentPath& path, Mount* out) {
  return DecodeObject(value, path,
                      {{"hostPath", &out->host_path},
                       {"containerPath", &out->container_path},
                       {"options", &out->options},
                       {"type", &out->type}});
}

absl::Status Decode(const Value& value, const DocumentPath& path, Hook* out) {
  return DecodeObject(value, path,
                      {{"hookName", &out->hook_name},
                       {"path", &out->path},
                       {"args", &out->args},
                       {"env", &out->env},
                       {"timeout", &out->timeout}});
}

absl::Status Decode(const Value& value, const DocumentPath& path, IntelRdt* out) {
  return DecodeObject(value, path,
                      {{"closID", &out->clos_id},
                       {"l3CacheSchema", &out->l3_cache_schema},
                       {"memBwSchema", &out->mem_bw_schema},
                       {"schemata", &out->schemata},
                       {"enableMonitoring", &out->enable_monitoring}});
}

absl::Status Decode(const Value& value, const DocumentPath& path, ContainerEdits* out) {
  return DecodeObject(value, path,
                      {{"env", &out->env},
                       {"deviceNodes", &out->device_nodes},
                       {"netDevices", &out->net_devices},
                       {"hooks", &out->hooks},
                       {"mounts", &out->mounts},
                       {"intelRdt", &out->intel_rdt},
                       {"additionalGids", &out->additional_gids}});
}

absl::Status Decode(const Value& value, const DocumentPath& path, Device* out) {
  return DecodeObject(value, path,
                      {{"name", &out->name},
                       {"annotations", &out->annotations},
                       {"containerEdits", &out->container_edits}});
}

absl::Status Decode(const Value& value, const DocumentPath& path, Spec* out) {
  return DecodeObject(value, path,
                      {{"cdiVersion", &out->version},
                       {"kind", &out->kind},
                       {"annotations", &out->annotations},
                       {"devices", &out->devices},
                       {"containerEdits", &out->container_edits}});
}

}  // namespace

absl::StatusOr<Spec> DecodeSpec(const Value& document) {
  Spec spec;
  ASCEND_RETURN_IF_ERROR(Decode(document, DocumentPath(), &spec));
  return spec;
}

}  // namespace ascend::cdi
