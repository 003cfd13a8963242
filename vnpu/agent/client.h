// The plugin's view of the agent: always a last known inventory, never a wait; and the questions
// that only the library can answer.
#ifndef ASCEND_DRA_VNPU_AGENT_CLIENT_H_
#define ASCEND_DRA_VNPU_AGENT_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "vnpu/chip.h"

namespace ascend::agent {

// What is known of the node at one moment.
struct View {
  bool connected = false;           // the watch on the agent is up
  absl::Duration disconnected_for;  // zero while connected
  // Null until an agent answered for the first time. Kept while the agent is away.
  std::shared_ptr<const vnpu::Inventory> inventory;
};

// A vNPU to be made. `id` and `vgroup` are wishes: the answer tells what it became.
struct VnpuRequest {
  int physical_id = -1;
  std::string uuid;  // the chip must be this one; empty = unknown
  std::string template_name;
  std::optional<int> id;
  std::optional<int> vgroup;
};

struct VnpuReference {
  int physical_id = -1;
  std::string uuid;  // the chip must be this one; empty = unknown
  int id = -1;
  std::string template_name;
};

// Chips to be reset together.
struct ResetRequest {
  struct Member {
    int physical_id = -1;
    std::string uuid;  // the chip must be this one; empty = unknown
  };
  int physical_id = -1;       // that the reset is asked of
  std::vector<Member> group;  // all that go down with it, itself among them
  absl::Duration boot_wait;   // for the chips to start again
};

// What became of one of them.
struct ChipReset {
  int physical_id = -1;
  bool started = false;  // again; false also of a chip that the library does not list
  std::string problem;   // why not
  friend bool operator==(const ChipReset&, const ChipReset&) = default;
};

// Keeps a watch on the agent's socket and re-connects by itself with a short back-off, at once when
// the socket is re-created. An agent that is stopped or hangs counts as disconnected, too: it does
// not answer keepalive pings. Thread-safe.
class Client {
 public:
  struct Options {
    std::string socket_path;  // absolute; neither it nor its directory need exist yet
    absl::Duration connect_backoff_min = absl::Milliseconds(20);
    absl::Duration connect_backoff_max = absl::Seconds(1);
    // From the start of an attempt to the first inventory; then the attempt is given up.
    absl::Duration connect_timeout = absl::Seconds(5);
    // A ping is sent each keepalive_time; without an answer in keepalive_timeout the watch is down.
    absl::Duration keepalive_time = absl::Seconds(3);
    absl::Duration keepalive_timeout = absl::Seconds(3);
  };
  // Starts at once. `on_change` runs on the client's thread after each new inventory and after the
  // connection came up or went; it must return quickly and must not destroy the client.
  Client(Options options, std::function<void()> on_change);
  // Ends the watch and waits for a running `on_change`; none follows.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  View Current() const;

  // Who uses these chips now (none given: all): one entry per chip, in that order. The agent asks
  // the library, which may take the whole `timeout`; what it did not tell is known=false with the
  // reason. One unary call, on the watch's connection if that is up. Errors name the socket:
  // kDeadlineExceeded (the agent hangs), kUnimplemented (it is too old), kUnavailable (any other).
  // Not while the client is being destroyed.
  absl::StatusOr<std::vector<vnpu::ChipProcesses>> ListProcesses(
      const std::vector<int>& physical_ids, absl::Duration timeout) const;

  // Calls about the vNPUs of one chip: see agent.proto for what they promise. They may take the
  // whole `timeout`; the library then goes on with it (kDeadlineExceeded), and the next call about
  // this chip waits for it. kFailedPrecondition: the chip is not the one of that uuid, is in use,
  // or the vNPU is of another template; kUnimplemented: product, driver or agent have no vNPUs;
  // kUnavailable: the agent is away.
  absl::StatusOr<std::vector<vnpu::Vnpu>> ListVnpus(int physical_id, absl::Duration timeout) const;
  absl::StatusOr<vnpu::Vnpu> CreateVnpu(const VnpuRequest& request, absl::Duration timeout) const;
  absl::Status DestroyVnpu(const VnpuReference& vnpu, absl::Duration timeout) const;
  absl::Status PrepareVnpuModes(absl::Duration timeout) const;

  // One answer per chip of the group, in its order. `timeout` should exceed boot_wait by a minute:
  // before the reset the agent waits for calls about the chips. kFailedPrecondition: nothing was
  // reset, for one of them is in use, another one, or cannot be asked; any other error: perhaps
  // something was.
  absl::StatusOr<std::vector<ChipReset>> ResetChips(const ResetRequest& request,
                                                    absl::Duration timeout) const;
  // Ends ResetChips() with kUnavailable, those under way and those to come; the agent goes on.
  void CancelResets();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::agent

#endif  // ASCEND_DRA_VNPU_AGENT_CLIENT_H_
