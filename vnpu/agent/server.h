// Serves the agent's calls on the control socket.
#ifndef ASCEND_DRA_VNPU_AGENT_SERVER_H_
#define ASCEND_DRA_VNPU_AGENT_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "vnpu/agent/inventory_feed.h"
#include "vnpu/agent/process_queries.h"
#include "vnpu/agent/reset_calls.h"
#include "vnpu/agent/vnpu_calls.h"

namespace ascend::agent {

class AgentServer {
 public:
  struct Options {
    std::string socket_path;  // absolute; the directory must exist
    std::string version;      // what Ping answers
  };

  // Serves from the moment it returns. The socket has mode 0600, whatever the umask: who reaches it
  // controls the NPUs. `feed` must outlive the server; `queries` are answered by an
  // InventoryMonitor, `calls` and `resets` by their own threads.
  //
  // The path belongs to one agent at a time: a lock on `<socket_path>.lock` is held until the
  // server is gone, because gRPC would silently take the path from a living agent, and that agent
  // would remove the new socket when it ends. kFailedPrecondition if another agent has it. A
  // socket left by a dead process is replaced; anything else at the path is left alone.
  static absl::StatusOr<std::unique_ptr<AgentServer>> Start(const Options& options,
                                                            InventoryFeed* feed,
                                                            std::shared_ptr<ProcessQueries> queries,
                                                            std::shared_ptr<VnpuCalls> calls,
                                                            std::shared_ptr<ResetCalls> resets);
  // Shutdown(), unless it was called before.
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

  // Ends all watches with UNAVAILABLE and all queries as unknown, closes the calls about vNPUs and
  // resets, refuses new calls and removes the socket. Waits for calls in progress; cancels them
  // after `grace`.
  void Shutdown(absl::Duration grace = absl::Seconds(2));

 private:
  class Impl;
  explicit AgentServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_SERVER_H_
