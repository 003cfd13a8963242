// The agent's calls: answered from the feed, and what needs the library by the threads that own it.
#ifndef ASCEND_DRA_VNPU_AGENT_SERVICE_H_
#define ASCEND_DRA_VNPU_AGENT_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "agent.grpc.pb.h"
#include "base/core/mutex.h"
#include "vnpu/agent/inventory_feed.h"
#include "vnpu/agent/process_queries.h"
#include "vnpu/agent/reset_calls.h"
#include "vnpu/agent/vnpu_calls.h"

namespace ascend::agent {

// Thread-safe. Must outlive the server it is registered with.
class AgentService : public v1alpha1::NpuAgent::CallbackService {
 public:
  AgentService(std::string version, InventoryFeed* feed, std::shared_ptr<ProcessQueries> queries,
               std::shared_ptr<VnpuCalls> calls, std::shared_ptr<ResetCalls> resets);
  ~AgentService() override;

  // Ends every watch with UNAVAILABLE and answers what is still asked about processes with
  // "unknown" and calls about vNPUs and resets that have not begun with UNAVAILABLE; at once also
  // those that still come.
  void EndCalls();

  grpc::ServerUnaryReactor* GetInventory(grpc::CallbackServerContext* context,
                                         const v1alpha1::GetInventoryRequest* request,
                                         v1alpha1::Inventory* response) override;
  grpc::ServerWriteReactor<v1alpha1::Inventory>* WatchInventory(
      grpc::CallbackServerContext* context,
      const v1alpha1::WatchInventoryRequest* request) override;
  grpc::ServerUnaryReactor* ListProcesses(grpc::CallbackServerContext* context,
                                          const v1alpha1::ListProcessesRequest* request,
                                          v1alpha1::ListProcessesResponse* response) override;
  grpc::ServerUnaryReactor* ListVnpus(grpc::CallbackServerContext* context,
                                      const v1alpha1::ListVnpusRequest* request,
                                      v1alpha1::ListVnpusResponse* response) override;
  grpc::ServerUnaryReactor* CreateVnpu(grpc::CallbackServerContext* context,
                                       const v1alpha1::CreateVnpuRequest* request,
                                       v1alpha1::Vnpu* response) override;
  grpc::ServerUnaryReactor* DestroyVnpu(grpc::CallbackServerContext* context,
                                        const v1alpha1::DestroyVnpuRequest* request,
                                        v1alpha1::DestroyVnpuResponse* response) override;
  grpc::ServerUnaryReactor* PrepareVnpuModes(grpc::CallbackServerContext* context,
                                             const v1alpha1::PrepareVnpuModesRequest* request,
                                             v1alpha1::PrepareVnpuModesResponse* response) override;
  grpc::ServerUnaryReactor* ResetChips(grpc::CallbackServerContext* context,
                                       const v1alpha1::ResetChipsRequest* request,
                                       v1alpha1::ResetChipsResponse* response) override;
  grpc::ServerUnaryReactor* Ping(grpc::CallbackServerContext* context,
                                 const v1alpha1::PingRequest* request,
                                 v1alpha1::PingResponse* response) override;

 private:
  class Watch;
  template <typename Calls, typename Call>
  class CallReactor;
  void WakeWatches();
  // Starts the call that `make` makes of its end; `fill` puts a good answer into the response.
  grpc::ServerUnaryReactor* StartVnpuCall(
      const grpc::CallbackServerContext& context,
      absl::FunctionRef<std::shared_ptr<VnpuCall>(VnpuCall::Done)> make,
      std::function<void(const std::vector<vnpu::Vnpu>&)> fill);

  const std::string version_;
  InventoryFeed* const feed_;
  const std::shared_ptr<ProcessQueries> queries_;
  const std::shared_ptr<VnpuCalls> calls_;
  const std::shared_ptr<ResetCalls> resets_;
  int64_t subscription_ = 0;

  // Held while watches are woken: a watch that is done waits for it before it deletes itself.
  Mutex mutex_;
  std::set<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_SERVICE_H_
