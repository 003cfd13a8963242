#include "test/sim/allocator.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"

namespace ascend::sim {
namespace {

using nlohmann::json;

struct Candidate {
  std::string pool;
  std::string name;
  bool schedulable;
};

// Devices of the complete pools by node, in the scheduler's order.
std::map<std::string, std::vector<Candidate>> Candidates(const std::vector<json>& slices,
                                                         const std::string& driver) {
  struct Pool {
    int64_t generation = -1;
    int64_t expected = 0;
    std::vector<const json*> slices;
  };
  std::map<std::string, Pool> pools;
  for (const json& slice : slices) {
    const json& spec = slice["spec"];
    if (spec["driver"] != driver) continue;
    Pool& pool = pools[spec["pool"]["name"].get<std::string>()];
    const int64_t generation = spec["pool"].value("generation", int64_t{0});
    if (generation > pool.generation) pool = {.generation = generation};
    if (generation == pool.generation) {
      pool.expected = spec["pool"]["resourceSliceCount"].get<int64_t>();
      pool.slices.push_back(&slice);
    }
  }
  std::map<std::string, std::vector<Candidate>> by_node;
  for (const auto& [name, pool] : pools) {
    if (static_cast<int64_t>(pool.slices.size()) != pool.expected) continue;
    for (const json* slice : pool.slices) {
      const json& spec = (*slice)["spec"];
      for (const json& device : spec.value("devices", json::array())) {
        const json taints = device.value("taints", json::array());
        const bool blocked = absl::c_any_of(taints, [](const json& taint) {
          return taint["effect"] == "NoSchedule" || taint["effect"] == "NoExecute";
        });
        by_node[spec.value("nodeName", "")].push_back({name, device["name"], !blocked});
      }
    }
  }
  return by_node;
}

std::set<std::pair<std::string, std::string>> HeldDevices(const std::vector<json>& claims,
                                                          const std::string& driver) {
  std::set<std::pair<std::string, std::string>> held;
  const json::json_pointer results("/status/allocation/devices/results");
  for (const json& claim : claims) {
    if (!claim.contains(results)) continue;
    for (const json& result : claim[results]) {
      if (result["driver"] == driver && !result.value("adminAccess", false)) {
        held.emplace(result["pool"], result["device"]);
      }
    }
  }
  return held;
}

// The results of all requests from one node's devices; empty if they do not suffice.
json Choose(const ClaimSpec& spec, const std::vector<Candidate>& candidates,
            std::set<std::pair<std::string, std::string>> held) {
  json results = json::array();
  for (const ClaimRequest& request : spec.requests) {
    std::vector<const Candidate*> chosen;
    const bool named = !request.devices.empty();
    const size_t wanted = named ? request.devices.size() : static_cast<size_t>(request.count);
    for (const Candidate& candidate : candidates) {
      if (chosen.size() == wanted) break;
      const bool fits =
          named ? absl::c_linear_search(request.devices, candidate.name)
                : request.admin_access ||
                      (candidate.schedulable && held.count({candidate.pool, candidate.name}) == 0);
      if (fits) chosen.push_back(&candidate);
    }
    if (chosen.size() != wanted) return json::array();
    if (named) {  // in the caller's order
      absl::c_sort(chosen, [&](const Candidate* a, const Candidate* b) {
        const auto position = [&](const Candidate* c) {
          return absl::c_find(request.devices, c->name) - request.devices.begin();
        };
        return position(a) < position(b);
      });
    }
    for (const Candidate* device : chosen) {
      json result = {{"request", request.name},
                     {"driver", spec.driver},
                     {"pool", device->pool},
                     {"device", device->name}};
      if (request.admin_access) {
        result["adminAccess"] = true;
      } else {
        held.emplace(device->pool, device->name);
      }
      results.push_back(std::move(result));
    }
  }
  return results;
}

json ClaimObject(const ClaimSpec& spec) {
  json requests = json::array();
  std::map<std::string, size_t> index;  // base name -> position
  for (const ClaimRequest& request : spec.requests) {
    const int count =
        request.devices.empty() ? request.count : static_cast<int>(request.devices.size());
    json exactly = {
        {"deviceClassName", spec.driver}, {"allocationMode", "ExactCount"}, {"count", count}};
    if (request.admin_access) exactly["adminAccess"] = true;
    const size_t slash = request.name.find('/');
    const std::string base = request.name.substr(0, slash);
    if (slash == std::string::npos) {
      requests.push_back({{"name", base}, {"exactly", std::move(exactly)}});
      continue;
    }
    exactly["name"] = request.name.substr(slash + 1);
    const auto [it, inserted] = index.emplace(base, requests.size());
    if (inserted) requests.push_back({{"name", base}, {"firstAvailable", json::array()}});
    requests[it->second]["firstAvailable"].push_back(std::move(exactly));
  }
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata", {{"name", spec.name}, {"namespace", spec.namespace_name}}},
          {"spec", {{"devices", {{"requests", std::move(requests)}}}}}};
}

absl::StatusOr<json> ConfigEntries(const ClaimSpec& spec) {
  json entries = json::array();
  for (const bool from_class : {true, false}) {  // the server's order
    for (const ClaimConfig& config : spec.config) {
      if (config.from_class != from_class) continue;
      json parameters = json::parse(config.parameters, nullptr, /*allow_exceptions=*/false);
      if (!parameters.is_object()) {
        return absl::InvalidArgumentError("claim configuration is not a JSON object");
      }
      json entry = {{"source", from_class ? "FromClass" : "FromClaim"},
                    {"opaque", {{"driver", config.driver}, {"parameters", std::move(parameters)}}}};
      if (!config.requests.empty()) entry["requests"] = config.requests;
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace

absl::StatusOr<ClaimRef> AllocateClaim(ApiServer& server, const ClaimSpec& spec) {
  const auto held = HeldDevices(server.List("resourceclaims"), spec.driver);
  json results = json::array();
  std::string node;
  for (const auto& [name, candidates] : Candidates(server.Slices(), spec.driver)) {
    if (!spec.node_name.empty() && name != spec.node_name) continue;
    results = Choose(spec, candidates, held);
    node = name;
    if (!results.empty()) break;
  }
  if (results.empty()) {
    return absl::ResourceExhaustedError(absl::StrCat("claim ", spec.namespace_name, "/", spec.name,
                                                     ": cannot allocate all devices"));
  }
  ASCEND_ASSIGN_OR_RETURN(json config, ConfigEntries(spec));
  ASCEND_ASSIGN_OR_RETURN(json claim, server.Create(ClaimObject(spec)));

  ClaimRef ref = {
      .namespace_name = spec.namespace_name, .name = spec.name, .uid = claim["metadata"]["uid"]};
  for (const json& result : results) ref.devices.push_back(result["device"]);
  json allocation = {
      {"devices", {{"results", std::move(results)}}},
      {"nodeSelector",
       {{"nodeSelectorTerms",
         {{{"matchFields",
            {{{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}}}}}}}}}};
  if (!config.empty()) allocation["devices"]["config"] = std::move(config);
  claim["status"]["allocation"] = std::move(allocation);
  for (const std::string& pod : spec.pods) {
    claim["status"]["reservedFor"].push_back(
        {{"resource", "pods"}, {"name", pod}, {"uid", pod + "-uid"}});
  }
  ASCEND_RETURN_IF_ERROR(server.Update(claim).status());
  return ref;
}

}  // namespace ascend::sim
