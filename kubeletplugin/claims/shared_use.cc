#include "kubeletplugin/claims/shared_use.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "podresources_v1.grpc.pb.h"

namespace ascend::kubeletplugin {
namespace {

constexpr int kMaxAnswer = 16 << 20;  // what the kubelet's own clients take
constexpr absl::Duration kRequestTimeout = absl::Seconds(10);

}  // namespace

bool UsesClaimOf(const ContainerUse& use, const ClaimRecord& record) {
  if (use.pod_namespace != record.claim_namespace || use.claim_name != record.claim_name) {
    return false;
  }
  return std::any_of(record.devices.begin(), record.devices.end(), [&](const auto& device) {
    return std::any_of(use.devices.begin(), use.devices.end(), [&](const UsedDevice& used) {
      // Not every kubelet lists share ids.
      return used.pool == device.pool && used.device == device.device &&
             (used.share_id.empty() || used.share_id == device.share_id);
    });
  });
}

absl::StatusOr<std::vector<ContainerUse>> ListContainerUses(const std::string& socket,
                                                            const std::string& driver,
                                                            absl::Duration timeout) {
  // A channel per call: the socket is re-created when the kubelet restarts.
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswer);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = v1::PodResourcesLister::NewStub(grpc::CreateCustomChannel(
      absl::StrCat("unix:", socket), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  v1::ListPodResourcesResponse response;
  const grpc::Status status = stub->List(&context, {}, &response);
  if (!status.ok()) {
    return absl::UnavailableError(
        absl::StrCat("kubelet's PodResources service at ", socket, ": ", status.error_message()));
  }
  std::vector<ContainerUse> uses;
  for (const auto& pod : response.pod_resources()) {
    for (const auto& container : pod.containers()) {
      for (const auto& resource : container.dynamic_resources()) {
        std::vector<UsedDevice> devices;
        for (const auto& device : resource.claim_resources()) {
          if (device.driver_name() != driver) continue;
          devices.push_back({.pool = device.pool_name(),
                             .device = device.device_name(),
                             .share_id = device.share_id()});
        }
        if (devices.empty()) continue;
        uses.push_back({.pod_namespace = pod.namespace_(),
                        .pod_name = pod.name(),
                        .container = container.name(),
                        .claim_name = resource.claim_name(),
                        .devices = std::move(devices)});
      }
    }
  }
  return uses;
}

std::vector<std::pair<std::shared_ptr<const ClaimRecord>, std::vector<ContainerUse>>> FindSharedUse(
    const std::vector<std::shared_ptr<const ClaimRecord>>& records,
    const std::vector<ContainerUse>& uses) {
  std::vector<std::pair<std::shared_ptr<const ClaimRecord>, std::vector<ContainerUse>>> shared;
  for (const auto& record : records) {
    std::set<std::string> requests;
    bool holds = false;
    for (const RecordedDevice& device : record->devices) {
      requests.insert(device.requests.begin(), device.requests.end());
      holds = holds || (!device.admin_access && !device.shared_use_expected);
    }
    if (!holds) continue;  // monitors share on purpose, and some claims are meant to
    std::vector<ContainerUse> of_claim;
    std::set<std::string> pods;
    for (const ContainerUse& use : uses) {
      if (!UsesClaimOf(use, *record)) continue;
      of_claim.push_back(use);
      pods.insert(use.pod_name);
    }
    if (pods.size() > 1 || (of_claim.size() > 1 && requests.size() == 1)) {
      shared.emplace_back(record, std::move(of_claim));
    }
  }
  return shared;
}

SharedUseMonitor::SharedUseMonitor(Options options, RecordStore& records, kube::Client& client,
                                   kube::EventRecorder& events, ListUses list_uses)
    : options_(std::move(options)),
      records_(records),
      client_(client),
      events_(events),
      list_uses_(std::move(list_uses)),
      thread_([this] { Run(); }) {}

SharedUseMonitor::~SharedUseMonitor() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void SharedUseMonitor::Wake() {
  MutexLock lock(&mutex_);
  if (wake_) return;
  wake_ = true;
  changed_.SignalAll();
}

void SharedUseMonitor::Run() {
  bool watching = false;
  while (true) {
    {
      MutexLock lock(&mutex_);
      // The kubelet shows a container's claims only some time after Prepare, and nothing tells when
      // a second pod joins: look now and then while claims are prepared, and sleep otherwise.
      const absl::Duration deadline = Clock::Real().Monotonic() + options_.period;
      while (!stop_) {
        if (!watching) {
          if (wake_) break;
          changed_.Wait(&mutex_);
          continue;
        }
        const absl::Duration left = deadline - Clock::Real().Monotonic();
        if (left <= absl::ZeroDuration()) break;
        changed_.WaitFor(&mutex_, left);
      }
      if (stop_) return;
      wake_ = false;
    }
    watching = Check();
  }
}

bool SharedUseMonitor::Check() {
  const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
  if (!contents.ok()) return true;
  if (contents->records.empty()) {
    warned_.clear();
    settled_.clear();
    return false;
  }
  const absl::StatusOr<std::vector<ContainerUse>> uses = list_uses_();
  if (!uses.ok()) {
    LogVerbose(2, "cannot tell which containers share chips", {{"error", uses.status()}});
    return true;
  }
  std::map<std::string, std::set<std::string>> settled;
  for (const auto& [record, of_claim] : FindSharedUse(contents->records, *uses)) {
    std::set<std::string> pods;
    for (const ContainerUse& use : of_claim) pods.insert(use.pod_name);
    const auto known = settled_.find(record->claim_uid);
    // Nothing new means no API call.
    if ((known != settled_.end() && known->second == pods) || Warn(*record, of_claim)) {
      settled.emplace(record->claim_uid, std::move(pods));
    }
  }
  settled_ = std::move(settled);
  return true;
}

bool SharedUseMonitor::Warn(const ClaimRecord& record, const std::vector<ContainerUse>& uses) {
  // The claim knows the UIDs of its pods, without which `kubectl describe` would not show an Event.
  const absl::StatusOr<kube::ResourceClaim> claim =
      client_.GetResourceClaim(record.claim_namespace, record.claim_name, kRequestTimeout);
  if (absl::IsNotFound(claim.status())) return true;
  if (!claim.ok()) return false;
  if (claim->uid != record.claim_uid) return true;  // the record's claim is gone
  std::vector<std::string> containers, devices;
  std::set<std::string> unnamed;  // pods whose UID the claim does not tell
  for (const ContainerUse& use : uses) {
    containers.push_back(absl::StrCat(use.pod_name, "/", use.container));
    unnamed.insert(use.pod_name);
  }
  for (const RecordedDevice& device : record.devices) devices.push_back(device.device);
  const std::string message = absl::StrCat(
      "claim ", record.claim(), " gives the same NPU (", absl::StrJoin(devices, ", "),
      ") to several containers that run at the same time (", absl::StrJoin(containers, ", "),
      "): a chip belongs to the first container that opens it, the others fail with EBUSY, -8005 "
      "or -8020 unless device-share is on; give each container a claim or a request of its own");
  std::vector<kube::ObjectReference> concerned;
  for (const kube::ClaimConsumer& consumer : claim->reserved_for) {
    if (consumer.resource != "pods" || unnamed.erase(consumer.name) == 0) continue;
    concerned.push_back(kube::PodObject(record.claim_namespace, consumer.name, consumer.uid));
  }
  if (!unnamed.empty()) {  // reserved for a group of pods, say
    concerned.push_back(
        kube::ClaimObject(record.claim_namespace, record.claim_name, record.claim_uid));
  }
  bool done = true;
  for (const kube::ObjectReference& object : concerned) {
    const auto key = std::make_pair(record.claim_uid, object.uid);
    if (warned_.count(key) != 0) continue;
    const absl::Status sent =
        events_.Send({.regarding = object, .reason = "NpuSharedByContainers", .message = message});
    if (!sent.ok()) {
      LogWarning("an Event could not be written", {{"claim", record.claim()}, {"error", sent}});
      done = false;  // tried again at the next look
      continue;
    }
    LogWarning("several containers share the chips of a claim",
               {{"claim", record.claim()}, {"containers", absl::StrJoin(containers, ",")}});
    warned_.insert(key);
  }
  return done;
}

}  // namespace ascend::kubeletplugin
