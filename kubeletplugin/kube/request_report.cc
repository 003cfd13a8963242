#include "kubeletplugin/kube/request_report.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace ascend::kube {
namespace {

Resource ResourceOf(absl::string_view name, absl::string_view subresource) {
  if (name == "resourceclaims") {
    if (subresource == "status") return Resource::kResourceClaimsStatus;
    return subresource.empty() ? Resource::kResourceClaims : Resource::kOther;
  }
  if (!subresource.empty()) return Resource::kOther;
  if (name == "resourceslices") return Resource::kResourceSlices;
  if (name == "nodes") return Resource::kNodes;
  if (name == "events") return Resource::kEvents;
  return Resource::kOther;
}

}  // namespace

const char* Name(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kList:
      return "list";
    case Verb::kWatch:
      return "watch";
    case Verb::kCreate:
      return "create";
    case Verb::kUpdate:
      return "update";
    case Verb::kPatch:
      return "patch";
    case Verb::kDelete:
      break;
  }
  return "delete";
}

const char* Name(Resource resource) {
  switch (resource) {
    case Resource::kResourceClaims:
      return "resourceclaims";
    case Resource::kResourceClaimsStatus:
      return "resourceclaims/status";
    case Resource::kResourceSlices:
      return "resourceslices";
    case Resource::kNodes:
      return "nodes";
    case Resource::kEvents:
      return "events";
    case Resource::kOther:
      break;
  }
  return "other";
}

RequestKind KindOfRequest(absl::string_view method, absl::string_view target) {
  // /api/v1 or /apis/<group>/<version>, [namespaces/<namespace>/], <resource>[/<name>[/<sub>]]
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(target, absl::MaxSplits('?', 1));
  std::vector<absl::string_view> parts = absl::StrSplit(halves.first, '/', absl::SkipEmpty());
  size_t at = !parts.empty() && parts[0] == "api" ? 2 : 3;
  if (at + 2 < parts.size() && parts[at] == "namespaces") at += 2;
  if (at >= parts.size()) return {};
  const bool named = at + 1 < parts.size();
  const absl::string_view subresource = at + 2 < parts.size() ? parts[at + 2] : "";
  RequestKind kind = {.verb = Verb::kGet, .resource = ResourceOf(parts[at], subresource)};
  if (method == "POST") {
    kind.verb = Verb::kCreate;
  } else if (method == "PUT") {
    kind.verb = Verb::kUpdate;
  } else if (method == "PATCH") {
    kind.verb = Verb::kPatch;
  } else if (method == "DELETE") {
    kind.verb = Verb::kDelete;
  } else if (!named) {
    kind.verb = absl::StrContains(halves.second, "watch=true") ? Verb::kWatch : Verb::kList;
  }
  return kind;
}

}  // namespace ascend::kube
