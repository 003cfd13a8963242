// The objects of the simulated API server and their history, and the rules of each kind.
#ifndef ASCEND_DRA_TEST_SIM_OBJECT_STORE_H_
#define ASCEND_DRA_TEST_SIM_OBJECT_STORE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "nlohmann/json.hpp"
#include "test/sim/slice_validation.h"

namespace ascend::sim {

struct ResourceType {
  std::string group;  // "" = core
  std::string version;
  std::string resource;  // plural
  std::string kind;
  bool namespaced;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
};

// All that the server knows; nullptr if none matches.
const ResourceType* FindResource(const std::string& group, const std::string& version,
                                 const std::string& resource);
const ResourceType* FindKind(const std::string& api_version, const std::string& kind);
const ResourceType* FindPlural(const std::string& resource);

// A failed request, as HTTP code and Status object.
struct ApiError {
  int code = 0;
  std::string reason;
  std::string message;
  std::string name;
  std::string kind;
  std::string group;
  std::vector<Cause> causes;

  nlohmann::json ToStatus() const;
};

// The usual reason of a code ("NotFound" of 404).
std::string ReasonOf(int code);

// The stored object, or why not.
struct StoreResult {
  ApiError error;  // code 0 = fine
  nlohmann::json object;
  bool ok() const { return error.code == 0; }
};

struct Preconditions {
  std::string uid;
  std::string resource_version;
};

// Selects objects of a list or watch; empty members match all.
struct Selector {
  std::string namespace_name;
  std::map<std::string, std::string> fields;  // "spec.driver" and so on

  bool Matches(const nlohmann::json& object) const;
};

// Not thread-safe: the server guards it.
class ObjectStore {
 public:
  struct Event {
    uint64_t version;
    std::string type;  // ADDED, MODIFIED, DELETED
    std::string resource;
    nlohmann::json object;
  };

  bool device_taints = true;
  bool partitionable_devices = true;

  StoreResult Create(const ResourceType& type, const std::string& namespace_name,
                     nlohmann::json object);
  // `status_only`: the /status subresource. An object that changes nothing keeps its version.
  StoreResult Update(const ResourceType& type, const std::string& namespace_name,
                     const std::string& name, nlohmann::json object, bool status_only);
  StoreResult MergePatch(const ResourceType& type, const std::string& namespace_name,
                         const std::string& name, const nlohmann::json& patch, bool status_only);
  StoreResult Delete(const ResourceType& type, const std::string& namespace_name,
                     const std::string& name, const Preconditions& preconditions);
  StoreResult Get(const ResourceType& type, const std::string& namespace_name,
                  const std::string& name) const;
  std::vector<nlohmann::json> List(const ResourceType& type, const Selector& selector) const;

  uint64_t version() const { return version_; }
  uint64_t oldest_version() const { return oldest_; }
  void Compact();
  // Events of `type` after `version` that `selector` wants, oldest first.
  std::vector<Event> EventsAfter(uint64_t version, const ResourceType& type,
                                 const Selector& selector) const;
  int slice_writes() const { return slice_writes_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // resource, namespace, name

  ApiError Decode(const ResourceType& type, const nlohmann::json* old, nlohmann::json* object);
  std::vector<Cause> Validate(const ResourceType& type, const nlohmann::json& object,
                              const nlohmann::json* old) const;
  void Record(const char* event_type, const ResourceType& type, nlohmann::json* object);

  std::map<Key, nlohmann::json> objects_;
  std::deque<Event> events_;
  uint64_t version_ = 100;
  uint64_t oldest_ = 100;
  uint64_t next_uid_ = 1;
  uint64_t next_suffix_ = 1;
  int slice_writes_ = 0;
};

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_OBJECT_STORE_H_
