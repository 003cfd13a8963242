#include "cdi/document.h"

#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/core/status_macros.h"
#include "cdi/document_path.h"
#include "cdi/plain_scalar.h"

namespace ascend::cdi {
namespace {

absl::string_view KindOf(const Value& value) {
  constexpr absl::string_view kKinds[] = {"null",     "a boolean", "a number",
                                          "a number", "a number",  "a string",
                                          "a scalar", "an array",  "an object"};
  static_assert(std::variant_size_v<decltype(value.data)> == std::size(kKinds));
  return kKinds[value.data.index()];
}

bool IsNull(const Value& value) { return std::holds_alternative<Value::Null>(value.data); }

absl::Status WrongType(const Value& value, absl::string_view wanted, const DocumentPath& path) {
  return path.Error("must be ", wanted, ", not ", KindOf(value));
}

// The Decode functions take their text out of the value.

absl::Status Decode(Value& value, const DocumentPath& path, std::string* out) {
  if (auto* text = std::get_if<std::string>(&value.data)) {
    *out = std::move(*text);
  } else if (auto* plain = std::get_if<PlainScalar>(&value.data)) {
    *out = std::move(plain->text);
  } else {
    return WrongType(value, "a string", path);
  }
  return absl::OkStatus();
}

absl::Status Decode(Value& value, const DocumentPath& path, bool* out) {
  if (const auto* plain = std::get_if<PlainScalar>(&value.data)) {
    const std::optional<bool> flag = ParsePlainBoolean(plain->text);
    if (!flag.has_value()) return path.Error("must be a boolean, not ", Quote(plain->text));
    *out = *flag;
    return absl::OkStatus();
  }
  const auto* flag = std::get_if<bool>(&value.data);
  if (flag == nullptr) return WrongType(value, "a boolean", path);
  *out = *flag;
  return absl::OkStatus();
}

absl::Status Decode(Value& value, const DocumentPath& path, int64_t* out) {
  if (std::holds_alternative<uint64_t>(value.data)) return path.Error("is too large");
  if (std::holds_alternative<double>(value.data)) return path.Error("must be an integer");
  if (const auto* plain = std::get_if<PlainScalar>(&value.data)) {
    const std::optional<int64_t> number = ParsePlainInteger(plain->text);
    if (!number.has_value()) {
      return path.Error("must be an integer of at most 64 bits, not ", Quote(plain->text));
    }
    *out = *number;
    return absl::OkStatus();
  }
  const auto* number = std::get_if<int64_t>(&value.data);
  if (number == nullptr) return WrongType(value, "an integer", path);
  *out = *number;
  return absl::OkStatus();
}

absl::Status Decode(Value& value, const DocumentPath& path, uint32_t* out) {
  int64_t number = 0;
  ASCEND_RETURN_IF_ERROR(Decode(value, path, &number));
  if (number < 0 || number > std::numeric_limits<uint32_t>::max()) {
    return path.Error("must be between 0 and 4294967295, not ", number);
  }
  *out = static_cast<uint32_t>(number);
  return absl::OkStatus();
}

// Every type that the templates below may meet must be declared before them.
absl::Status Decode(Value& value, const DocumentPath& path, DeviceNode* out);
absl::Status Decode(Value& value, const DocumentPath& path, NetDevice* out);
absl::Status Decode(Value& value, const DocumentPath& path, Mount* out);
absl::Status Decode(Value& value, const DocumentPath& path, Hook* out);
absl::Status Decode(Value& value, const DocumentPath& path, IntelRdt* out);
absl::Status Decode(Value& value, const DocumentPath& path, ContainerEdits* out);
absl::Status Decode(Value& value, const DocumentPath& path, Device* out);
template <typename T>
absl::Status Decode(Value& value, const DocumentPath& path, std::vector<T>* out);

template <typename T>
absl::Status Decode(Value& value, const DocumentPath& path, std::optional<T>* out) {
  return Decode(value, path, &out->emplace());
}

template <typename T>
absl::Status Decode(Value& value, const DocumentPath& path, std::vector<T>* out) {
  auto* array = std::get_if<Value::Array>(&value.data);
  if (array == nullptr) return WrongType(value, "an array", path);
  out->resize(array->size());
  for (size_t i = 0; i < array->size(); ++i) {
    ASCEND_RETURN_IF_ERROR(Decode((*array)[i], path.Element(i), &(*out)[i]));
  }
  return absl::OkStatus();
}

absl::Status Decode(Value& value, const DocumentPath& path,
                    std::map<std::string, std::string>* out) {
  auto* object = std::get_if<Value::Object>(&value.data);
  if (object == nullptr) return WrongType(value, "an object", path);
  for (Member& member : *object) {
    ASCEND_RETURN_IF_ERROR(Decode(member.value, path.Member(member.key), &(*out)[member.key]));
  }
  return absl::OkStatus();
}

// Where a member of an object goes.
template <typename T>
struct Field {
  absl::string_view key;
  T* target;
};
template <typename T>
Field(const char*, T*) -> Field<T>;

template <typename... T>
absl::Status DecodeObject(Value& value, const DocumentPath& path, Field<T>... fields) {
  auto* object = std::get_if<Value::Object>(&value.data);
  if (object == nullptr) return WrongType(value, "an object", path);
  for (Member& member : *object) {
    const DocumentPath at = path.Member(member.key);
    absl::Status status;
    const auto take = [&](const auto& field) {
      if (field.key != member.key) return false;
      if (!IsNull(member.value)) status = Decode(member.value, at, field.target);
      return true;
    };
    if (!(take(fields) || ...)) return at.Error("unknown member");
    ASCEND_RETURN_IF_ERROR(std::move(status));
  }
  return absl::OkStatus();
}

absl::Status Decode(Value& value, const DocumentPath& path, DeviceNode* out) {
  return DecodeObject(value, path, Field{"path", &out->path}, Field{"hostPath", &out->host_path},
                      Field{"type", &out->type}, Field{"major", &out->major},
                      Field{"minor", &out->minor}, Field{"fileMode", &out->file_mode},
                      Field{"permissions", &out->permissions}, Field{"uid", &out->uid},
                      Field{"gid", &out->gid});
}

absl::Status Decode(Value& value, const DocumentPath& path, NetDevice* out) {
  return DecodeObject(value, path, Field{"hostInterfaceName", &out->host_interface_name},
                      Field{"name", &out->name});
}

absl::Status Decode(Value& value, const DocumentPath& path, Mount* out) {
  return DecodeObject(value, path, Field{"hostPath", &out->host_path},
                      Field{"containerPath", &out->container_path}, Field{"options", &out->options},
                      Field{"type", &out->type});
}

absl::Status Decode(Value& value, const DocumentPath& path, Hook* out) {
  return DecodeObject(value, path, Field{"hookName", &out->hook_name}, Field{"path", &out->path},
                      Field{"args", &out->args}, Field{"env", &out->env},
                      Field{"timeout", &out->timeout});
}

absl::Status Decode(Value& value, const DocumentPath& path, IntelRdt* out) {
  return DecodeObject(value, path, Field{"closID", &out->clos_id},
                      Field{"l3CacheSchema", &out->l3_cache_schema},
                      Field{"memBwSchema", &out->mem_bw_schema}, Field{"schemata", &out->schemata},
                      Field{"enableMonitoring", &out->enable_monitoring});
}

absl::Status Decode(Value& value, const DocumentPath& path, ContainerEdits* out) {
  return DecodeObject(value, path, Field{"env", &out->env},
                      Field{"deviceNodes", &out->device_nodes},
                      Field{"netDevices", &out->net_devices}, Field{"hooks", &out->hooks},
                      Field{"mounts", &out->mounts}, Field{"intelRdt", &out->intel_rdt},
                      Field{"additionalGids", &out->additional_gids});
}

absl::Status Decode(Value& value, const DocumentPath& path, Device* out) {
  return DecodeObject(value, path, Field{"name", &out->name},
                      Field{"annotations", &out->annotations},
                      Field{"containerEdits", &out->container_edits});
}

absl::Status Decode(Value& value, const DocumentPath& path, Spec* out) {
  return DecodeObject(value, path, Field{"cdiVersion", &out->version}, Field{"kind", &out->kind},
                      Field{"annotations", &out->annotations}, Field{"devices", &out->devices},
                      Field{"containerEdits", &out->container_edits});
}

}  // namespace

absl::StatusOr<Spec> DecodeSpec(Value document) {
  Spec spec;
  ASCEND_RETURN_IF_ERROR(Decode(document, DocumentPath(), &spec));
  return spec;
}

}  // namespace ascend::cdi
