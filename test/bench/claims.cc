#include "test/bench/claims.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "test/sim/allocator.h"

namespace ascend::bench {
namespace {

constexpr char kResource[] = "resourceclaims";

}  // namespace

absl::StatusOr<ClaimSource> ClaimSource::Create(sim::ApiServer& server, std::string prefix,
                                                const std::vector<std::string>& devices) {
  ClaimSource source(server, std::move(prefix));
  source.devices_ = devices;
  const std::string name = absl::StrCat(source.prefix_, "-pattern");
  sim::ClaimRequest request;
  request.devices = devices;
  ASCEND_ASSIGN_OR_RETURN(const sim::ClaimRef claim,
                          sim::AllocateClaim(server, {.name = name, .requests = {request}}));
  ASCEND_ASSIGN_OR_RETURN(source.pattern_, server.Get(kResource, claim.namespace_name, name));
  source.pattern_["metadata"] = {{"namespace", claim.namespace_name}};
  source.names_.push_back(name);
  return source;
}

absl::StatusOr<sim::ClaimRef> ClaimSource::Make() {
  nlohmann::json claim = pattern_;
  sim::ClaimRef ref = {.name = absl::StrCat(prefix_, "-", ++made_), .devices = devices_};
  claim["metadata"]["name"] = ref.name;
  ASCEND_ASSIGN_OR_RETURN(const nlohmann::json stored, server_->Create(claim));
  ref.namespace_name = stored["metadata"]["namespace"];
  ref.uid = stored["metadata"]["uid"];
  names_.push_back(ref.name);
  return ref;
}

absl::Status ClaimSource::DeleteAll() {
  const std::string namespace_name = pattern_["metadata"]["namespace"];
  for (const std::string& name : names_) {
    ASCEND_RETURN_IF_ERROR(server_->Delete(kResource, namespace_name, name));
  }
  names_.clear();
  return absl::OkStatus();
}

}  // namespace ascend::bench
