// The agent's calls: answered from the feed, and what needs the library by the thread that owns it.
#ifndef ASCEND_DRA_VNPU_AGENT_SERVICE_H_
#define ASCEND_DRA_VNPU_AGENT_SERVICE_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "agent.grpc.pb.h"
#include "base/core/mutex.h"
#include "vnpu/agent/inventory_feed.h"
#include "vnpu/agent/process_queries.h"

namespace ascend::agent {

// Thread-safe. Must outlive the server it is registered with.
class AgentService : public v1alpha1::NpuAgent::CallbackService {
 public:
  AgentService(std::string version, InventoryFeed* feed, std::shared_ptr<ProcessQueries> queries);
  ~AgentService() override;

  // Ends every watch with UNAVAILABLE and answers what is still asked about processes with
  // "unknown"; at once also those that still come.
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
  grpc::ServerUnaryReactor* Ping(grpc::CallbackServerContext* context,
                                 const v1alpha1::PingRequest* request,
                                 v1alpha1::PingResponse* response) override;

 private:
  class Watch;
  void WakeWatches();

  const std::string version_;
  InventoryFeed* const feed_;
  const std::shared_ptr<ProcessQueries> queries_;
  int64_t subscription_ = 0;

  // Held while watches are woken: a watch that is done waits for it before it deletes itself.
  Mutex mutex_;
  std::set<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_SERVICE_H_
