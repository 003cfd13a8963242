// Kubelet's side of a DRA driver, for tests and the demo: plugin registration, the service
// connection, Prepare and Unprepare with kubelet's deadlines and its way to judge the answers, and
// the wipe of ResourceSlices when the driver is lost.
//
//   Kubelet kubelet({.root = dir.path(), .api_server = &server});
//   ASSERT_THAT(kubelet.WaitForRegistrations(1), IsOk());
//   auto prepared = kubelet.Prepare({claim});     // StatusOr<PreparedClaims>
//
// Unlike the real one it retries registration soon, and Prepare calls the driver each time
// (SyncPod is the one that skips claims already prepared). All methods are thread-safe.
#ifndef ASCEND_DRA_TEST_SIM_KUBELET_H_
#define ASCEND_DRA_TEST_SIM_KUBELET_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "test/sim/api_server.h"
#include "test/sim/claim_ref.h"

namespace ascend::sim {

struct KubeletOptions {
  std::string root;  // <root>/plugins_registry is created and watched
  std::string node_name = "node-1";
  std::string driver = "npu.huawei.com";  // whom the calls below go to
  ApiServer* api_server = nullptr;        // must outlive the kubelet; null: slices are not wiped
  // Services this kubelet knows: {"v1beta1.DRAPlugin"} is one older than 1.34.
  std::vector<std::string> services = {"v1.DRAPlugin", "v1beta1.DRAPlugin"};
  absl::Duration wipe_delay = absl::Seconds(30);
  absl::Duration get_info_timeout = absl::Seconds(1);
  absl::Duration call_timeout = absl::Seconds(45);
  absl::Duration first_retry = absl::Milliseconds(500);  // of a registration; doubles
};

struct PreparedDevice {
  std::vector<std::string> requests;  // empty = all
  std::string pool;
  std::string device;
  std::vector<std::string> cdi_device_ids;
  std::string share_id;
};

struct ClaimAnswer {  // the driver's answer for one claim
  std::vector<PreparedDevice> devices;
  std::string error;
};
using Answers = std::map<std::string, ClaimAnswer>;                         // by claim UID
using PreparedClaims = std::map<std::string, std::vector<PreparedDevice>>;  // by claim UID

// A registered plugin instance.
struct PluginInstance {
  std::string driver;
  std::string registration_socket;
  std::string endpoint;
  std::vector<std::string> supported_versions;
  std::string service;  // the one in use
  bool connected = false;
};

// CDI ids that a container gets which names `request` of the claim ("" = the whole claim).
std::vector<std::string> ContainerCdiIds(const std::vector<PreparedDevice>& devices,
                                         const std::string& request = "");

class Kubelet {
 public:
  // Starts at once. A root that cannot be used ends the process.
  explicit Kubelet(KubeletOptions options);
  ~Kubelet();
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  // As a kubelet that ends: closes connections, cancels calls, forgets what was prepared.
  void Stop();
  // As a kubelet that starts: wipes all slices of the node, registers the sockets it finds.
  void Start();
  void Restart() {
    Stop();
    Start();
  }

  // --- Registration ---
  // `count` successful registrations since the object was made. Also waits until the newest
  // instance of the driver is connected.
  absl::Status WaitForRegistrations(int count, absl::Duration timeout = absl::Seconds(10)) const;
  // No instance of the driver is registered / none is connected.
  absl::Status WaitForDeregistration(absl::Duration timeout = absl::Seconds(10)) const;
  absl::Status WaitForDisconnect(absl::Duration timeout = absl::Seconds(10)) const;
  absl::Status WaitForRegistrationErrors(int count,
                                         absl::Duration timeout = absl::Seconds(10)) const;
  absl::Status WaitForWipes(int count, absl::Duration timeout = absl::Seconds(10)) const;
  int registrations() const;
  std::vector<std::string> registration_errors() const;
  std::vector<PluginInstance> instances() const;  // in order of registration
  int wipes() const;  // after a lost connection; those of Start not counted

  // --- Claims. They go to the newest connected instance, else to the newest. ---
  // What the driver said, unjudged; fails only if the call does.
  absl::StatusOr<Answers> CallPrepare(const std::vector<ClaimRef>& claims) const;
  absl::StatusOr<Answers> CallUnprepare(const std::vector<ClaimRef>& claims) const;
  // Calls and judges: any error, unknown UID or missing answer fails the batch.
  absl::StatusOr<PreparedClaims> Prepare(const std::vector<ClaimRef>& claims);
  absl::Status Unprepare(const std::vector<ClaimRef>& claims);
  // As for a starting pod: only claims that are not marked prepared go to the driver.
  absl::StatusOr<PreparedClaims> SyncPod(const std::vector<ClaimRef>& claims);

 private:
  class Impl;
  const KubeletOptions options_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_KUBELET_H_
