#include "kubeletplugin/kube/resource_slice.h"

#include <utility>

#include "base/core/status_macros.h"
#include "kubeletplugin/kube/json_reader.h"
#include "nlohmann/json.hpp"

namespace ascend::kube {
namespace {

using Json = nlohmann::json;

Json ToJson(const DeviceTaint& taint) {
  Json object = {{"key", taint.key}, {"effect", taint.effect}};
  if (!taint.value.empty()) object["value"] = taint.value;
  if (!taint.time_added.empty()) object["timeAdded"] = taint.time_added;
  return object;
}

template <typename T>
absl::Status ReadAttribute(const JsonReader& attribute, const char* kind, AttributeValue* out) {
  T value{};
  ASCEND_RETURN_IF_ERROR(attribute.Read(kind, &value));
  if (attribute.Has(kind)) *out = std::move(value);
  return absl::OkStatus();
}

absl::Status ReadCounterSet(const JsonReader& object, const char* name, CounterSet* set) {
  ASCEND_RETURN_IF_ERROR(object.Read(name, &set->name));
  return object.ObjectMap("counters", [&](const std::string& counter, const JsonReader& value) {
    return value.Read("value", &set->counters[counter]);
  });
}

Json ToJson(const CounterSet& set, const char* name) {
  Json counters = Json::object();
  for (const auto& [counter, value] : set.counters) counters[counter] = {{"value", value}};
  return {{name, set.name}, {"counters", std::move(counters)}};
}

absl::Status ReadDevice(const JsonReader& object, SliceDevice* device) {
  ASCEND_RETURN_IF_ERROR(object.Read("name", &device->name));
  ASCEND_RETURN_IF_ERROR(
      object.ObjectMap("attributes", [&](const std::string& name, const JsonReader& attribute) {
        AttributeValue value;
        std::string version;
        absl::Status status = ReadAttribute<int64_t>(attribute, "int", &value);
        status.Update(ReadAttribute<bool>(attribute, "bool", &value));
        status.Update(ReadAttribute<std::string>(attribute, "string", &value));
        status.Update(attribute.Read("version", &version));
        if (attribute.Has("version")) value = Version{std::move(version)};
        // Other kinds are newer than this driver, and a server without the feature gate of a kind
        // leaves an empty attribute: neither is ours.
        if (attribute.Has("int") || attribute.Has("bool") || attribute.Has("string") ||
            attribute.Has("version")) {
          device->attributes.emplace(name, std::move(value));
        }
        return status;
      }));
  ASCEND_RETURN_IF_ERROR(
      object.ObjectMap("capacity", [&](const std::string& name, const JsonReader& capacity) {
        return capacity.Read("value", &device->capacity[name]);
      }));
  ASCEND_RETURN_IF_ERROR(object.Objects("consumesCounters", [&](const JsonReader& element) {
    return ReadCounterSet(element, "counterSet", &device->consumes_counters.emplace_back());
  }));
  return object.Objects("taints", [&](const JsonReader& element) {
    DeviceTaint& taint = device->taints.emplace_back();
    absl::Status status = element.Read("key", &taint.key);
    status.Update(element.Read("value", &taint.value));
    status.Update(element.Read("effect", &taint.effect));
    status.Update(element.Read("timeAdded", &taint.time_added));
    return status;
  });
}

absl::Status ReadMetadata(const JsonReader& metadata, ResourceSlice* slice) {
  ASCEND_RETURN_IF_ERROR(metadata.Read("name", &slice->name));
  ASCEND_RETURN_IF_ERROR(metadata.Read("uid", &slice->uid));
  ASCEND_RETURN_IF_ERROR(metadata.Read("resourceVersion", &slice->resource_version));
  return metadata.Objects("ownerReferences", [&](const JsonReader& owner) -> absl::Status {
    std::string api_version, kind, name, uid;
    ASCEND_RETURN_IF_ERROR(owner.Read("apiVersion", &api_version));
    ASCEND_RETURN_IF_ERROR(owner.Read("kind", &kind));
    ASCEND_RETURN_IF_ERROR(owner.Read("name", &name));
    ASCEND_RETURN_IF_ERROR(owner.Read("uid", &uid));
    if (api_version == "v1" && kind == "Node") {
      slice->owner_node.name = std::move(name);
      slice->owner_node.uid = std::move(uid);
    }
    return absl::OkStatus();
  });
}

absl::Status ReadPool(const JsonReader& pool, ResourceSlice* slice) {
  ASCEND_RETURN_IF_ERROR(pool.Read("name", &slice->pool_name));
  ASCEND_RETURN_IF_ERROR(pool.Read("generation", &slice->pool_generation));
  return pool.Read("resourceSliceCount", &slice->pool_slice_count);
}

absl::Status ReadSpec(const JsonReader& spec, ResourceSlice* slice) {
  ASCEND_RETURN_IF_ERROR(spec.Read("driver", &slice->driver));
  ASCEND_RETURN_IF_ERROR(spec.Read("nodeName", &slice->node_name));
  ASCEND_RETURN_IF_ERROR(
      spec.Object("pool", [&](const JsonReader& pool) { return ReadPool(pool, slice); }));
  ASCEND_RETURN_IF_ERROR(spec.Objects("sharedCounters", [&](const JsonReader& set) {
    return ReadCounterSet(set, "name", &slice->shared_counters.emplace_back());
  }));
  return spec.Objects("devices", [&](const JsonReader& device) {
    return ReadDevice(device, &slice->devices.emplace_back());
  });
}

}  // namespace

Json ToJson(const AttributeValue& value) {
  struct {
    Json operator()(int64_t number) const { return {{"int", number}}; }
    Json operator()(bool flag) const { return {{"bool", flag}}; }
    Json operator()(const std::string& text) const { return {{"string", text}}; }
    Json operator()(const Version& version) const { return {{"version", version.value}}; }
  } visitor;
  return std::visit(visitor, value);
}

Json ToJson(const SliceDevice& device) {
  Json object = {{"name", device.name}};
  for (const auto& [name, value] : device.attributes) object["attributes"][name] = ToJson(value);
  for (const auto& [name, value] : device.capacity) object["capacity"][name] = {{"value", value}};
  for (const CounterSet& set : device.consumes_counters) {
    object["consumesCounters"].push_back(ToJson(set, "counterSet"));
  }
  for (const DeviceTaint& taint : device.taints) object["taints"].push_back(ToJson(taint));
  return object;
}

Json ToJson(const ResourceSlice& slice) {
  Json metadata = {{"name", slice.name}};
  if (!slice.uid.empty()) metadata["uid"] = slice.uid;
  if (!slice.resource_version.empty()) metadata["resourceVersion"] = slice.resource_version;
  if (!slice.owner_node.name.empty()) {
    metadata["ownerReferences"].push_back({{"apiVersion", "v1"},
                                           {"kind", "Node"},
                                           {"name", slice.owner_node.name},
                                           {"uid", slice.owner_node.uid},
                                           {"controller", true}});
  }
  Json spec = {{"driver", slice.driver},
               {"nodeName", slice.node_name},
               {"pool",
                {{"name", slice.pool_name},
                 {"generation", slice.pool_generation},
                 {"resourceSliceCount", slice.pool_slice_count}}},
               {"devices", Json::array()}};
  for (const CounterSet& set : slice.shared_counters) {
    spec["sharedCounters"].push_back(ToJson(set, "name"));
  }
  for (const SliceDevice& device : slice.devices) spec["devices"].push_back(ToJson(device));
  if (!slice.shared_counters.empty() && slice.devices.empty()) spec.erase("devices");
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

absl::StatusOr<ResourceSlice> ParseResourceSlice(const Json& object) {
  const JsonReader reader(object);
  if (!object.is_object()) return reader.Error("not an object");
  ResourceSlice slice;
  ASCEND_RETURN_IF_ERROR(reader.Object(
      "metadata", [&](const JsonReader& metadata) { return ReadMetadata(metadata, &slice); }));
  ASCEND_RETURN_IF_ERROR(
      reader.Object("spec", [&](const JsonReader& spec) { return ReadSpec(spec, &slice); }));
  return slice;
}

absl::StatusOr<SliceDevice> ParseSliceDevice(const Json& object) {
  const JsonReader reader(object);
  if (!object.is_object()) return reader.Error("not an object");
  SliceDevice device;
  ASCEND_RETURN_IF_ERROR(ReadDevice(reader, &device));
  return device;
}

}  // namespace ascend::kube
