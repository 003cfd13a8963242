#include "cdi/apply_edits.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "cdi/oci_config.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using Json = OciConfig;

constexpr size_t kNowhere = static_cast<size_t>(-1);

absl::string_view KeyOf(absl::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// How many elements of a list there are in all sets.
template <typename List>
size_t Count(const EditList& edits, List ContainerEdits::* list) {
  size_t count = 0;
  for (const ContainerEdits* set : edits) count += (set->*list).size();
  return count;
}

// The first element of `array` whose member `key` is `text`.
Json::array_t::iterator FindNamed(Json::array_t& array, const char* key, const std::string& text) {
  return std::find_if(array.begin(), array.end(),
                      [&](const Json& element) { return TextIn(element, key) == text; });
}

// Which of the names that edits ask for are taken by elements of a list in the configuration, so
// that the list is not searched for each of them.
class TakenNames {
 public:
  explicit TakenNames(size_t count) { taken_.reserve(count); }
  // The name is borrowed.
  void AskFor(const std::string& name) { taken_.emplace(name, false); }
  void MarkAll(const Json::array_t& array, const char* key) {
    for (const Json& element : array) {
      const auto asked = taken_.find(TextIn(element, key));
      if (asked != taken_.end()) asked->second = true;
    }
  }
  // Whether it was taken; it is from now on.
  bool Take(const std::string& name) { return std::exchange(taken_[name], true); }

 private:
  absl::flat_hash_map<absl::string_view, bool> taken_;
};

// Builds an object with one allocation for all of its members.
class ObjectBuilder {
 public:
  // At most so many members.
  explicit ObjectBuilder(size_t count) { members_.reserve(count); }

  template <typename T>
  void Add(const char* key, T&& value) {
    members_.emplace_back(key, std::forward<T>(value));
  }
  void AddText(const char* key, absl::string_view text) {
    Add(key, Json::string_t(text.data(), text.size()));
  }
  void AddList(const char* key, const std::vector<std::string>& list) {
    if (!list.empty()) Add(key, Json::array_t(list.begin(), list.end()));
  }
  Json Build() && { return Json(std::move(members_)); }

 private:
  Json::object_t members_;
};

Json DeviceOf(const CompleteNode& complete, const ProcessUser& user) {
  const DeviceNode& node = *complete.node;
  const uint32_t uid = node.uid.value_or(user.uid);
  const uint32_t gid = node.gid.value_or(user.gid);
  ObjectBuilder device(7);
  device.Add("path", node.path);
  device.AddText("type", complete.type);
  device.Add("major", complete.major);
  device.Add("minor", complete.minor);
  if (complete.file_mode.has_value()) device.Add("fileMode", *complete.file_mode);
  if (node.uid.has_value() || uid > 0) device.Add("uid", uid);
  if (node.gid.has_value() || gid > 0) device.Add("gid", gid);
  return std::move(device).Build();
}

Json RuleOf(const CompleteNode& complete) {
  const std::string& permissions = complete.node->permissions;
  ObjectBuilder rule(5);
  rule.Add("allow", true);
  rule.AddText("type", complete.type);
  rule.Add("major", complete.major);
  rule.Add("minor", complete.minor);
  if (permissions != "none") rule.AddText("access", permissions.empty() ? "rwm" : permissions);
  return std::move(rule).Build();
}

// "idmap" or "ridmap" if the mount is a bind mount without either, else empty.
absl::string_view IdMapOptionOf(const Mount& mount) {
  absl::string_view option = mount.type == "bind" ? "idmap" : "";
  for (const std::string& given : mount.options) {
    if (given == "idmap" || given == "ridmap") return "";
    if (given == "bind") option = "idmap";
    if (given == "rbind") option = "ridmap";
  }
  return option;
}

Json MountOf(const Mount& mount, bool map_ids) {
  const absl::string_view id_map = map_ids ? IdMapOptionOf(mount) : "";
  ObjectBuilder result(4);
  result.Add("destination", mount.container_path);
  if (!mount.type.empty()) result.Add("type", mount.type);
  result.Add("source", mount.host_path);
  if (!mount.options.empty() || !id_map.empty()) {
    Json::array_t options;
    options.reserve(mount.options.size() + 1);
    options.assign(mount.options.begin(), mount.options.end());
    if (!id_map.empty()) options.emplace_back(std::string(id_map));
    result.Add("options", std::move(options));
  }
  return std::move(result).Build();
}

// How deep a destination is: the slashes of the path after "." and ".." are taken out.
int DepthOf(absl::string_view path) {
  const bool absolute = !path.empty() && path[0] == '/';
  int names = 0;
  int parents = 0;  // a relative path may begin with any number of ".."
  size_t begin = 0;
  for (size_t end = 0; end <= path.size(); ++end) {
    if (end < path.size() && path[end] != '/') continue;
    const absl::string_view name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty() || name == ".") continue;
    if (name != "..") {
      ++names;
    } else if (names > 0) {
      --names;
    } else if (!absolute) {
      ++parents;
    }
  }
  if (absolute) return std::max(names, 1);
  return std::max(names + parents - 1, 0);
}

// Parents before what is mounted below them.
void SortMounts(bool by_name, Json::array_t& mounts) {
  struct Key {
    int depth;
    Json* mount;
  };
  std::vector<Key> keys;
  keys.reserve(mounts.size());
  for (Json& mount : mounts) keys.push_back({DepthOf(TextIn(mount, "destination")), &mount});
  const auto less = [by_name](const Key& a, const Key& b) {
    if (a.depth != b.depth) return a.depth < b.depth;
    if (by_name) {
      const int order = TextIn(*a.mount, "destination").compare(TextIn(*b.mount, "destination"));
      if (order != 0) return order < 0;
    }
    return a.mount < b.mount;  // else as they were
  };
  if (std::is_sorted(keys.begin(), keys.end(), less)) return;
  std::sort(keys.begin(), keys.end(), less);
  Json::array_t sorted;
  sorted.reserve(mounts.size());
  for (const Key& key : keys) sorted.push_back(std::move(*key.mount));
  mounts = std::move(sorted);
}

Json HookOf(const Hook& hook) {
  ObjectBuilder result(4);
  result.Add("path", hook.path);
  result.AddList("args", hook.args);
  result.AddList("env", hook.env);
  if (hook.timeout.has_value()) result.Add("timeout", *hook.timeout);
  return std::move(result).Build();
}

Json IntelRdtOf(const IntelRdt& rdt) {
  ObjectBuilder result(5);
  if (!rdt.clos_id.empty()) result.Add("closID", rdt.clos_id);
  if (rdt.schemata.has_value()) result.AddList("schemata", *rdt.schemata);
  if (!rdt.l3_cache_schema.empty()) result.Add("l3CacheSchema", rdt.l3_cache_schema);
  if (!rdt.mem_bw_schema.empty()) result.Add("memBwSchema", rdt.mem_bw_schema);
  if (rdt.enable_monitoring) result.Add("enableMonitoring", true);
  return std::move(result).Build();
}

}  // namespace

void ApplyEnv(const EditList& edits, const InjectionCompatibility& compatibility, Json& config) {
  const size_t count = Count(edits, &ContainerEdits::env);
  if (count == 0) return;
  // Where each variable goes. The keys belong to the edits, so they outlive what is replaced.
  struct Variable {
    const std::string* text;
    size_t* place;
  };
  absl::flat_hash_map<absl::string_view, size_t> places;
  std::vector<Variable> variables;
  places.reserve(count);  // so that pointers into it stay valid
  variables.reserve(count);
  for (const ContainerEdits* set : edits) {
    for (const std::string& text : set->env) {
      variables.push_back({&text, &places.emplace(KeyOf(text), kNowhere).first->second});
    }
  }
  Json::array_t& env = ArrayIn(ObjectIn(config, "process"), "env");
  for (size_t i = 0; i < env.size(); ++i) {
    // Older releases looked for the key among whole "KEY=value" texts.
    const absl::string_view text = env[i].get_ref<const std::string&>();
    const auto place = places.find(compatibility.append_env ? text : KeyOf(text));
    if (place != places.end()) place->second = i;  // of several, the last one counts
  }
  env.reserve(env.size() + count);
  for (const Variable& variable : variables) {
    if (*variable.place == kNowhere) {
      *variable.place = env.size();
      env.emplace_back(*variable.text);
    } else {
      env[*variable.place] = *variable.text;
    }
  }
}

void ApplyDeviceNodes(const std::vector<CompleteNode>& nodes, Json& config) {
  if (nodes.empty()) return;
  const ProcessUser user = ProcessUserOf(config);
  Json& section = ObjectIn(config, "linux");
  Json::array_t& devices = ArrayIn(section, "devices");
  TakenNames paths(nodes.size());
  for (const CompleteNode& complete : nodes) paths.AskFor(complete.node->path);
  paths.MarkAll(devices, "path");
  devices.reserve(devices.size() + nodes.size());
  Json::array_t* rules = nullptr;  // not created unless there are any
  for (const CompleteNode& complete : nodes) {
    const std::string& path = complete.node->path;
    auto place = devices.end();
    if (paths.Take(path)) {
      // The first node of this path goes; a second one, should there be any, is replaced.
      devices.erase(FindNamed(devices, "path", path));
      place = FindNamed(devices, "path", path);
    }
    if (place != devices.end()) {
      *place = DeviceOf(complete, user);
    } else {
      devices.push_back(DeviceOf(complete, user));
    }
    if (complete.type != "b" && complete.type != "c") continue;
    if (rules == nullptr) {
      rules = &ArrayIn(ObjectIn(section, "resources"), "devices");
      rules->reserve(rules->size() + nodes.size());
    }
    rules->push_back(RuleOf(complete));
  }
}

void ApplyNetDevices(const EditList& edits, Json& config) {
  if (Count(edits, &ContainerEdits::net_devices) == 0) return;
  Json& net_devices = ObjectIn(ObjectIn(config, "linux"), "netDevices");
  for (const ContainerEdits* set : edits) {
    for (const NetDevice& device : set->net_devices) {
      ObjectBuilder moved(1);
      moved.Add("name", device.name);
      ValueIn(net_devices, device.host_interface_name) = std::move(moved).Build();
    }
  }
}

void ApplyMounts(const EditList& edits, const InjectionCompatibility& compatibility, Json& config) {
  const size_t count = Count(edits, &ContainerEdits::mounts);
  if (count == 0) return;
  const UserNamespace user_namespace = UserNamespaceOf(config);
  const bool map_ids =
      !compatibility.no_idmap &&
      (user_namespace == UserNamespace::kMapped ||
       (user_namespace == UserNamespace::kWithoutMappings && compatibility.idmap_without_mappings));
  Json::array_t& mounts = ArrayIn(config, "mounts");
  mounts.reserve(mounts.size() + count);
  TakenNames destinations(count);
  for (const ContainerEdits* set : edits) {
    for (const Mount& mount : set->mounts) destinations.AskFor(mount.container_path);
  }
  destinations.MarkAll(mounts, "destination");
  for (const ContainerEdits* set : edits) {
    for (const Mount& mount : set->mounts) {
      if (destinations.Take(mount.container_path)) {
        mounts.erase(FindNamed(mounts, "destination", mount.container_path));
      }
      mounts.push_back(MountOf(mount, map_ids));
    }
  }
  SortMounts(compatibility.sort_mounts_by_name, mounts);
}

void ApplyHooks(const EditList& edits, Json& config) {
  for (const ContainerEdits* set : edits) {
    for (const Hook& hook : set->hooks) {
      ArrayIn(ObjectIn(config, "hooks"), hook.hook_name).push_back(HookOf(hook));
    }
  }
}

void ApplyIntelRdt(const EditList& edits, Json& config) {
  for (auto set = edits.rbegin(); set != edits.rend(); ++set) {
    if (!(*set)->intel_rdt.has_value()) continue;
    ValueIn(ObjectIn(config, "linux"), "intelRdt") = IntelRdtOf(*(*set)->intel_rdt);
    return;
  }
}

void ApplyAdditionalGids(const EditList& edits, Json& config) {
  if (Count(edits, &ContainerEdits::additional_gids) == 0) return;
  absl::flat_hash_set<uint32_t> present = {0};  // 0 is never added
  if (const Json* process = FindMember(config, "process")) {
    const Json* user = FindMember(*process, "user");
    const Json* gids = user == nullptr ? nullptr : FindMember(*user, "additionalGids");
    if (gids != nullptr) {
      for (const Json& gid : *gids) present.insert(gid.get<uint32_t>());
    }
  }
  for (const ContainerEdits* set : edits) {
    for (const uint32_t gid : set->additional_gids) {
      if (!present.insert(gid).second) continue;
      ArrayIn(ObjectIn(ObjectIn(config, "process"), "user"), "additionalGids").push_back(gid);
    }
  }
}

}  // namespace ascend::cdi
