#include "test/bench/floor.h"

#include <utility>
#include <vector>

#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "cdi/json.h"
#include "kubeletplugin/kube/rest_client.h"

namespace ascend::bench {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(10);

}  // namespace

Floor::Floor(sim::DriverStack& stack, kubeletplugin::Paths paths,
             std::unique_ptr<kube::Client> client, const std::string& records_directory,
             const std::string& cdi_directory)
    : stack_(stack),
      paths_(std::move(paths)),
      client_(std::move(client)),
      records_(records_directory),
      cdi_store_({.directory = cdi_directory}) {}

absl::StatusOr<std::unique_ptr<Floor>> Floor::Create(sim::DriverStack& stack) {
  ASCEND_ASSIGN_OR_RETURN(kubeletplugin::Paths paths,
                          kubeletplugin::Paths::Create({.kubelet_root = stack.kubelet_root(),
                                                        .cdi_root = stack.cdi_root()}));
  ASCEND_ASSIGN_OR_RETURN(kube::ConnectionConfig connection,
                          kube::ConfigFromKubeconfig(stack.kubeconfig()));
  ASCEND_ASSIGN_OR_RETURN(
      std::unique_ptr<kube::Client> client,
      kube::CreateRestClient(std::move(connection), "ascend-dra-kubeletplugin/floor"));
  // Not in the plugin's own directories, which it watches.
  const std::string records_directory = JoinPath(paths.plugin_directory(), "floor");
  std::unique_ptr<Floor> floor(new Floor(stack, std::move(paths), std::move(client),
                                         records_directory, stack.cdi_root() + "-floor"));
  ASCEND_RETURN_IF_ERROR(floor->records_.Prepare());
  ASCEND_RETURN_IF_ERROR(floor->cdi_store_.Prepare());
  return floor;
}

absl::StatusOr<FloorWork> Floor::Learn(const sim::ClaimRef& claim) {
  kubeletplugin::RecordStore written(paths_.claims_directory());
  FloorWork work;
  ASCEND_ASSIGN_OR_RETURN(const auto record, written.Read(claim.uid));
  work.record = *record;
  ASCEND_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(JoinPath(paths_.cdi_root(), paths_.cdi_file(claim.uid))));
  ASCEND_ASSIGN_OR_RETURN(work.spec, cdi::ReadJson(text));
  return work;
}

absl::Status Floor::Prepare(const sim::ClaimRef& claim, const FloorWork& work) {
  ASCEND_RETURN_IF_ERROR(
      client_->GetResourceClaim(claim.namespace_name, claim.name, kTimeout).status());
  ASCEND_RETURN_IF_ERROR(cdi_store_.Write(paths_.cdi_file(claim.uid), work.spec,
                                          {.rewrite_identical = true, .durable = false}));
  kubeletplugin::ClaimRecord record = work.record;
  record.claim_name = claim.name;
  record.claim_uid = claim.uid;
  ASCEND_RETURN_IF_ERROR(records_.Write(record));
  return stack_.kubelet().CallPrepare({}).status();
}

absl::Status Floor::Unprepare(const sim::ClaimRef& claim) {
  ASCEND_RETURN_IF_ERROR(cdi_store_.Remove(paths_.cdi_file(claim.uid)));
  ASCEND_RETURN_IF_ERROR(records_.Remove(claim.uid));
  return stack_.kubelet().CallUnprepare({}).status();
}

}  // namespace ascend::bench
