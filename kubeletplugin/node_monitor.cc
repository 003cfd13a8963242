#include "kubeletplugin/node_monitor.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::Duration kRequestTimeout = absl::Seconds(10);
constexpr char kDevicePluginActive[] = "DevicePluginActive";
constexpr char kCdiMaybeOff[] = "CdiMaybeOff";
constexpr char kDevicePluginPrefix[] = "huawei.com/Ascend";

// Major and minor of "1.7.2", "v2.1.4-k3s1"; {-1, -1} if that cannot be told.
std::pair<int, int> MajorMinor(absl::string_view version) {
  absl::ConsumePrefix(&version, "v");
  const std::vector<absl::string_view> parts = absl::StrSplit(version, '.');
  int major = -1, minor = -1;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor)) {
    return {-1, -1};
  }
  return {major, minor};
}

}  // namespace

std::map<std::string, std::string> NodeProblems(const kube::Node& node) {
  std::map<std::string, std::string> problems;
  const std::string& runtime = node.container_runtime_version;
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(runtime, absl::MaxSplits("://", 1));
  const auto& [name, version_text] = parts;
  const std::pair<int, int> version = MajorMinor(version_text);
  const bool known = version.first >= 0;
  if (name == "docker" || (name == "containerd" && known && version < std::pair(1, 7)) ||
      (name == "cri-o" && known && version < std::pair(1, 23))) {
    problems["CdiUnsupported"] = absl::StrCat(
        "the container runtime ", runtime,
        " does not inject CDI devices: pods with claims start without their NPUs; use containerd "
        "1.7.2 or newer with CDI on, or CRI-O 1.28 or newer");
  } else if (name == "containerd" && version == std::pair(1, 7)) {
    problems[kCdiMaybeOff] = absl::StrCat(
        "the container runtime ", runtime,
        " can inject CDI devices, but whether that is on cannot be told from here: check that "
        "enable_cdi = true is set in [plugins.\"io.containerd.grpc.v1.cri\"] of its config.toml, "
        "without it pods with claims start without their NPUs");
  }
  for (const auto& [resource, quantity] : node.allocatable) {
    if (!absl::StartsWith(resource, kDevicePluginPrefix) || quantity == "0") continue;
    problems[kDevicePluginActive] = absl::StrCat(
        "the node offers ", resource, ": ", quantity,
        " through the classic Ascend device plugin, which would hand out the chips a second time; "
        "no new claims are allocated here until the device plugin is removed from this node");
    break;
  }
  return problems;
}

NodeMonitor::NodeMonitor(Options options, kube::Client& client, kube::EventRecorder& events,
                         std::function<void()> on_change)
    : options_(std::move(options)),
      client_(client),
      events_(events),
      on_change_(std::move(on_change)) {
  thread_ = std::thread([this] { Run(); });
}

NodeMonitor::~NodeMonitor() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

bool NodeMonitor::device_plugin_active() const {
  MutexLock lock(&mutex_);
  return device_plugin_active_;
}

void NodeMonitor::Run() {
  while (true) {
    Look();
    // A watch would cost the API server more: every node's object changes all the time.
    MutexLock lock(&mutex_);
    const absl::Duration next = Clock::Real().Monotonic() + options_.period;
    while (!stop_) {
      const absl::Duration left = next - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration()) break;
      changed_.WaitFor(&mutex_, left);
    }
    if (stop_) return;
  }
}

void NodeMonitor::Look() {
  const absl::StatusOr<kube::Node> node = client_.GetNode(options_.node_name, kRequestTimeout);
  if (!node.ok()) return;  // whoever needs the API server says that it is away
  std::map<std::string, bool> reported;
  for (const auto& [reason, message] : NodeProblems(*node)) {
    const auto known = reported_.find(reason);
    bool& done = reported[reason];
    done = known != reported_.end() && known->second;
    if (done) continue;
    const bool warning = reason != kCdiMaybeOff;
    const bool is_new = known == reported_.end();
    if (is_new && warning) {
      LogWarning("the node is not fit for claims", {{"reason", reason}, {"message", message}});
    } else if (is_new) {
      LogInfo("whether the node is fit for claims cannot be told",
              {{"reason", reason}, {"message", message}});
    }
    const absl::Status sent = events_.Send({.regarding = kube::NodeObject(node->name, node->uid),
                                            .reason = reason,
                                            .message = message,
                                            .warning = warning});
    done = sent.ok();
    if (is_new && !sent.ok()) LogWarning("an Event could not be written", {{"error", sent}});
  }
  const bool active = reported.count(kDevicePluginActive) != 0;
  reported_ = std::move(reported);
  {
    MutexLock lock(&mutex_);
    if (device_plugin_active_ == active) return;
    device_plugin_active_ = active;
  }
  on_change_();
}

}  // namespace ascend::kubeletplugin
