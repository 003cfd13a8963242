// The agent's calls, answered from the feed.
#ifndef ASCEND_DRA_VNPU_AGENT_SERVICE_H_
#define ASCEND_DRA_VNPU_AGENT_SERVICE_H_

#include <cstdint>
#include <set>
#include <string>

#include "agent.grpc.pb.h"
#include "base/core/mutex.h"
#include "vnpu/agent/inventory_feed.h"

namespace ascend::agent {

// Thread-safe. Must outlive the server it is registered with.
class AgentService : public v1alpha1::NpuAgent::CallbackService {
 public:
  AgentService(std::string version, InventoryFeed* feed);
  ~AgentService() override;

  // Ends every watch with UNAVAILABLE, and at once those that still come.
  void EndWatches();

  grpc::ServerUnaryReactor* GetInventory(grpc::CallbackServerContext* context,
                                         const v1alpha1::GetInventoryRequest* request,
                                         v1alpha1::Inventory* response) override;
  grpc::ServerWriteReactor<v1alpha1::Inventory>* WatchInventory(
      grpc::CallbackServerContext* context,
      const v1alpha1::WatchInventoryRequest* request) override;
  grpc::ServerUnaryReactor* Ping(grpc::CallbackServerContext* context,
                                 const v1alpha1::PingRequest* request,
                                 v1alpha1::PingResponse* response) override;

 private:
  class Watch;
  void WakeWatches();

  const std::string version_;
  InventoryFeed* const feed_;
  int64_t subscription_ = 0;

  // Held while watches are woken: a watch that is done waits for it before it deletes itself.
  Mutex mutex_;
  std::set<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_SERVICE_H_
