#include "kubeletplugin/plugin.h"

#include <grpcpp/impl/service_type.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/directory_watch.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "base/runtime/task_pool.h"
#include "cdi/store.h"
#include "kubeletplugin/claims/dead_claims.h"
#include "kubeletplugin/claims/device_status.h"
#include "kubeletplugin/claims/engine.h"
#include "kubeletplugin/claims/injection.h"
#include "kubeletplugin/claims/quarantine.h"
#include "kubeletplugin/claims/record_store.h"
#include "kubeletplugin/claims/release_events.h"
#include "kubeletplugin/claims/shared_use.h"
#include "kubeletplugin/health/chip_resetter.h"
#include "kubeletplugin/health/health_events.h"
#include "kubeletplugin/health/health_monitor.h"
#include "kubeletplugin/health/reset_controller.h"
#include "kubeletplugin/health/unclaimed_use.h"
#include "kubeletplugin/inventory_memory.h"
#include "kubeletplugin/metrics/measured_operations.h"
#include "kubeletplugin/metrics/node_state.h"
#include "kubeletplugin/node_monitor.h"
#include "kubeletplugin/service/allocations_feed.h"
#include "kubeletplugin/service/allocations_service.h"
#include "kubeletplugin/service/device_health.h"
#include "kubeletplugin/service/dra_service.h"
#include "kubeletplugin/service/health_feed.h"
#include "kubeletplugin/service/health_server.h"
#include "kubeletplugin/service/health_streams.h"
#include "kubeletplugin/service/plugin_server.h"
#include "kubeletplugin/service/registration_service.h"
#include "kubeletplugin/slices/builder.h"
#include "kubeletplugin/slices/foreign_vnpus.h"
#include "kubeletplugin/slices/publisher.h"
#include "kubeletplugin/slices/publisher_role.h"
#include "vnpu/agent/client.h"

namespace ascend::kubeletplugin {
namespace {

constexpr size_t kMaxConcurrentOperations = 64;
// An agent that crashed is back within this time, also when its container has to wait for its
// restart (10, 20, 40 s); longer, and nobody knows how the chips are.
constexpr absl::Duration kRecordsRetry = absl::Seconds(5);
constexpr absl::Duration kStopGrace = absl::Seconds(15);
constexpr absl::Duration kProbeTimeout = absl::Seconds(2);
constexpr absl::Duration kPodResourcesTimeout = absl::Seconds(5);
constexpr absl::Duration kProcessesTimeout = absl::Seconds(1);
constexpr absl::Duration kModesTimeout = absl::Seconds(10);

absl::StatusOr<std::string> ReadBootId(const std::string& path) {
  ASCEND_ASSIGN_OR_RETURN(std::string id, ReadFile(path), "boot id");
  absl::StripAsciiWhitespace(&id);
  return id;
}

// Why a record was not even looked at: this process has too many files open, which passes. Anything
// else may last (a sick disk), and is the quarantine's business.
absl::Status FirstUnseen(const std::vector<UnreadableRecord>& unreadable) {
  for (const UnreadableRecord& record : unreadable) {
    if (absl::IsResourceExhausted(record.error)) return record.error;
  }
  return absl::OkStatus();
}

// Without a watch (the kernel has no room for one) only what this instance does itself is seen at
// once: better than no driver.
std::unique_ptr<DirectoryWatch> WatchIfPossible(const std::string& path,
                                                std::function<void()> on_change) {
  absl::StatusOr<std::unique_ptr<DirectoryWatch>> watch =
      DirectoryWatch::Start(path, std::move(on_change));
  if (watch.ok()) return *std::move(watch);
  LogWarning("what another instance of the driver does here is noticed late",
             {{"path", path}, {"error", watch.status()}});
  return nullptr;
}

}  // namespace

// Members are destroyed from the last to the first: what calls into others comes after them.
class Plugin::Impl {
 public:
  Impl(const PluginOptions& options, const DriverConfig& config, Paths paths, std::string boot_id,
       std::unique_ptr<kube::Client> client, Metrics& metrics)
      : paths_(std::move(paths)),
        node_name_(options.node_name),
        metrics_(metrics),
        boot_id_(std::move(boot_id)),
        device_options_(config.devices),
        change_node_modes_(config.vnpu_change_node_modes),
        faults_(config.faults),
        reset_idle_chips_(config.reset_idle_chips),
        client_(std::move(client)),
        events_({.controller = paths_.driver_name(), .node_name = options.node_name}, *client_),
        release_events_(events_),
        inventories_({.file = paths_.inventory_file(), .boot_id = boot_id_}),
        records_(paths_.claims_directory()),
        health_events_(records_, *client_, events_),
        cdi_store_({.directory = paths_.cdi_root()}),
        engine_(
            {.node_name = options.node_name,
             .boot_id = boot_id_,
             .devices = device_options_,
             .orphan_removed = [this](Orphan kind) { metrics_.OrphanRemoved(kind); },
             .vnpus_kept = [this](const ClaimRecord& record,
                                  const KeptVnpus& kept) { release_events_.Kept(record, kept); },
             .vnpus_gone = [this](const ClaimRecord& record) { release_events_.Gone(record); },
             .resetting =
                 [this] {
                   return resetter_ == nullptr ? std::set<int>() : resetter_->resetting();
                 }},
            paths_, *client_, records_, cdi_store_,
            Injector(HostFiles(options.host_root),
                     {.ascend_visible_devices_void = config.ascend_visible_devices_void,
                      .extra_mounts = config.extra_mounts,
                      .proc_devices = options.proc_devices}),
            [this] { return KnownInventory(); }),
        registration_([this](bool accepted) { metrics_.Registration(accepted); }),
        foreign_vnpus_(boot_id_),
        unclaimed_use_(events_) {}

  ~Impl() {
    metrics_.SetNodeState(nullptr);
    {
      MutexLock lock(&mutex_);
      started_ = false;  // what the agent and the watches still report starts nothing new
    }
    if (resets_ != nullptr) resets_->Stop();
    if (health_ != nullptr) health_->Stop();  // others may still ask it
    // Whoever calls in goes first; calls of the kubelet may still need the API server.
    health_server_.reset();
    allocations_server_.reset();
    health_streams_.End();
    // What still waits for another claim or the API server then would hold up the end.
    if (server_ != nullptr) server_->Stop(kStopGrace, [this] { engine_.Stop(); });
    engine_.StopAndJoin();  // it asks the agent, which goes before it
    client_->Shutdown();    // what is still under way must not hold up the end
    // Publisher and agent client ask each other. Both are idle before either goes; the members'
    // order does the rest (no reset() here: their threads still look at these pointers).
    if (publisher_ != nullptr) publisher_->Stop();
  }

  absl::Status Start(const PluginOptions& options) {
    ASCEND_RETURN_IF_ERROR(MakeDirectories(paths_.plugin_directory(), 0750, /*durable=*/true));
    ASCEND_RETURN_IF_ERROR(MakeDirectories(paths_.publisher_directory(), 0700));
    records_.SetWriteObserver([this](const absl::Status& status, absl::Duration duration) {
      metrics_.RecordWritten(status, duration);
      if (!records_watched_) RecordsChanged();
    });
    metrics_.SetNodeState(
        [this] { return ReadNodeState(records_, cdi_store_, paths_, registration_.registered()); });
    pool_ = std::make_unique<TaskPool>(kMaxConcurrentOperations);
    agent_ = std::make_unique<agent::Client>(
        agent::Client::Options{.socket_path = options.agent_socket}, [this] { AgentChanged(); });
    engine_.SetProcessSource([this](const std::vector<int>& physical_ids) {
      return agent_->ListProcesses(physical_ids, kProcessesTimeout);
    });
    engine_.SetVnpuCalls(
        {.list = [this](int physical_id,
                        absl::Duration timeout) { return agent_->ListVnpus(physical_id, timeout); },
         .create = [this](const agent::VnpuRequest& request,
                          absl::Duration timeout) { return agent_->CreateVnpu(request, timeout); },
         .destroy = [this](const agent::VnpuReference& vnpu,
                           absl::Duration timeout) { return agent_->DestroyVnpu(vnpu, timeout); }});
    resetter_ = MakeResetter();  // the engine asks it
    ASCEND_RETURN_IF_ERROR(engine_.Start());
    health_ = std::make_unique<HealthMonitor>(
        HealthMonitor::Options{.file = paths_.health_file(),
                               .orders_directory = paths_.chip_orders_directory(),
                               .boot_id = boot_id_,
                               .table = faults_,
                               .last_inventory = inventories_.of_file()},
        [this] { return inventories_.ForHealth(agent_->Current()); },
        [this](const ChipVerdicts& before, const ChipVerdicts& now) { HealthChanged(before, now); },
        [this](const vnpu::Inventory& inventory) {
          health_events_.Versions(inventory);
          PublishHealth();  // what it asks may not be there yet: only once all has started
        });
    resets_ = std::make_unique<ResetController>(*resetter_, [this] { agent_->CancelResets(); });
    orders_watch_ = WatchIfPossible(paths_.chip_orders_directory(), [this] {
      health_->Wake();
      resets_->Wake();
    });

    node_monitor_ =
        std::make_unique<NodeMonitor>(NodeMonitor::Options{.node_name = options.node_name},
                                      *client_, events_, [this] { WakePublisher(); });
    publisher_ = std::make_unique<SlicePublisher>(
        SlicePublisher::Options{
            .driver = paths_.driver_name(),
            .node_name = options.node_name,
            .observe = [this](const PublishReport& report) { metrics_.SlicesPublished(report); }},
        *client_, PublisherRole(paths_.publisher_directory(), BootTimeNanos()),
        [this] { return WantedSlices(); });
    publisher_->Start();
    publisher_watch_ =
        WatchIfPossible(paths_.publisher_directory(), [this] { publisher_->Wake(); });
    // What this instance writes, and another one.
    records_watch_ = WatchIfPossible(paths_.claims_directory(), [this] {
      engine_.NotifyChange();
      RecordsChanged();
    });
    records_watched_ = records_watch_ != nullptr;
    allocations_ = std::make_unique<AllocationsFeed>(paths_.driver_name(), options.node_name,
                                                     [this] { return records_.ReadAll(); });
    const auto container_uses = [this] {
      absl::StatusOr<std::vector<ContainerUse>> uses = ListContainerUses(
          paths_.pod_resources_socket(), paths_.driver_name(), kPodResourcesTimeout);
      const absl::Time now = Clock::Real().Now();
      metrics_.PodResourcesAsked(uses.status(), now);
      allocations_->UsesListed(uses, now);
      return uses;
    };
    shared_use_ = std::make_unique<SharedUseMonitor>(SharedUseMonitor::Options{}, records_,
                                                     *client_, events_, container_uses);
    device_status_ = std::make_unique<DeviceStatusWriter>(
        DeviceStatusWriter::Options{.driver = paths_.driver_name()}, records_, *client_,
        [this] { return health_->Current(); });
    dead_claims_ = std::make_unique<DeadClaimSweeper>(
        DeadClaimSweeper::Options{.driver = paths_.driver_name()}, records_, *client_, events_,
        DeadClaimSweeper::Sources{.registered = [this] { return registration_.registered(); },
                                  .container_uses = container_uses,
                                  .processes =
                                      [this](const std::vector<int>& physical_ids) {
                                        return agent_->ListProcesses(physical_ids,
                                                                     kProcessesTimeout);
                                      },
                                  .unprepare =
                                      [this](const ClaimReference& claim) {
                                        absl::Status status = engine_.Unprepare(claim);
                                        if (status.ok()) metrics_.OrphanRemoved(Orphan::kClaim);
                                        return status;
                                      },
                                  .quarantine =
                                      [this](const std::vector<UnreadableRecord>& unreadable) {
                                        return FindQuarantine(unreadable, paths_);
                                      }});
    {
      MutexLock lock(&mutex_);
      started_ = true;
    }
    AgentChanged();  // what the agent said before everything was there
    PublishHealth();

    std::vector<std::unique_ptr<grpc::Service>> services;
    const ClaimOperations operations = MeasureOperations(
        {.prepare =
             [this](const ClaimReference& claim) {
               auto answer = engine_.Prepare(claim);
               if (!answer.ok()) WakePublisher();  // what it was allocated counts from now on
               return answer;
             },
         .unprepare = [this](const ClaimReference& claim) { return engine_.Unprepare(claim); }},
        metrics_);
    services.push_back(MakeDraServiceV1(operations, *pool_));
    services.push_back(MakeDraServiceV1beta1(operations, *pool_));
    services.push_back(
        MakeRegistrationService(paths_.driver_name(), paths_.service_socket(), registration_));
    services.push_back(health_streams_.MakeServiceV1());
    services.push_back(health_streams_.MakeServiceV1alpha1());
    ASCEND_ASSIGN_OR_RETURN(server_, PluginServer::Start(paths_, std::move(services)));
    ServeAllocations(options);
    if (options.health_port >= 0) {
      ASCEND_ASSIGN_OR_RETURN(
          health_server_,
          HealthServer::Start(
              options.health_port, [this] { return CheckSockets(paths_, kProbeTimeout); },
              [this] { return ready(); }));
    }
    return absl::OkStatus();
  }

  absl::Status ready() const {
    if (!registration_.registered()) return absl::UnavailableError(registration_.message());
    return publisher_->ready();
  }

  int health_port() const { return health_server_ == nullptr ? 0 : health_server_->port(); }

 private:
  std::shared_ptr<const vnpu::Inventory> KnownInventory() {
    return inventories_.Known(agent_->Current());
  }

  std::unique_ptr<ChipResetter> MakeResetter() {
    return std::make_unique<ChipResetter>(
        ChipResetter::Options{.enabled = reset_idle_chips_}, paths_, records_, events_,
        ChipResetter::Sources{
            .agent = [this] { return agent_->Current(); },
            .known = [this] { return KnownInventory(); },
            .verdicts = [this] { return health_->WithCauses(); },
            .pending = [this] { return engine_.PendingDevices(); },
            .reset = [this](
                         const agent::ResetRequest& request,
                         absl::Duration timeout) { return agent_->ResetChips(request, timeout); },
            .resetting_changed = [this] { WakePublisher(); }});
  }

  SlicePublisher::Wanted WantedSlices() {
    SlicePublisher::Wanted wanted;
    const agent::View view = agent_->Current();
    wanted.inputs.devices = device_options_;
    wanted.inputs.inventory = KnownInventory();
    // A chip that is new is not unknown only because nobody has judged it yet.
    if (health_->judged() != view.inventory) health_->Refresh();
    wanted.inputs.health = health_->Current();
    wanted.inputs.resetting = resetter_->resetting();
    wanted.known = wanted.inputs.inventory != nullptr;
    absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
    if (contents.ok()) {
      if (absl::Status unseen = FirstUnseen(contents->unreadable); !unseen.ok()) contents = unseen;
    }
    if (contents.ok()) {
      const Quarantine quarantine = FindQuarantine(contents->unreadable, paths_);
      for (const auto& [id, record] : quarantine.chips) wanted.inputs.quarantined_chips.insert(id);
      if (!quarantine.unknown.empty()) wanted.inputs.withhold_free = "withheld";
      if (node_monitor_->device_plugin_active()) wanted.inputs.withhold_free = "device-plugin";
      wanted.inputs.records = std::move(contents->records);
      // Only from the agent: which processes there were before it answered says nothing of now.
      wanted.inputs.busy_chips = busy_chips_.Update(view.inventory.get(), wanted.inputs.records,
                                                    Clock::Real().Monotonic());
      unclaimed_use_.Busy(wanted.inputs.busy_chips, view.inventory.get());
      wanted.inputs.pending = engine_.PendingDevices();
      wanted.inputs.foreign_vnpus = foreign_vnpus_.Update(
          wanted.inputs.inventory.get(), wanted.inputs.records, Clock::Real().Monotonic());
      if (device_options_.vnpu_mode != VnpuMode::kStatic) {
        unclaimed_use_.ForeignVnpus(wanted.inputs.foreign_vnpus);
      }
      for (const auto& next : {busy_chips_.next_change(), foreign_vnpus_.next_change()}) {
        if (next) wanted.ask_again_after = std::min(wanted.ask_again_after.value_or(*next), *next);
      }
    } else {
      // Without the records a held device might be dropped: rather publish nothing new.
      LogError("claim records cannot be read, slices stay as they are",
               {{"error", contents.status()}});
      wanted.known = false;
      wanted.unknown_because =
          absl::StrCat("claim records cannot be read: ", contents.status().message());
      wanted.ask_again_after = kRecordsRetry;  // nothing tells when the directory is well again
    }
    return wanted;
  }

  // What cannot be served costs metrics, not claims.
  void ServeAllocations(const PluginOptions& options) {
    if (options.allocations_socket.empty()) return;
    auto server = AllocationsServer::Start(
        {.socket = options.allocations_socket, .group = options.allocations_group}, metrics_,
        *allocations_);
    if (server.ok()) {
      allocations_server_ = *std::move(server);
    } else {
      LogError("allocations and metrics are not served; claims do not depend on it",
               {{"path", options.allocations_socket}, {"error", server.status()}});
    }
  }

  void AgentChanged() {
    {
      MutexLock lock(&mutex_);
      if (!started_) return;
    }
    const agent::View view = agent_->Current();
    if (view.inventory != nullptr) ChangeNodeModes(*view.inventory);
    health_->Wake();
    resets_->Wake();
    engine_.NotifyChange();
    publisher_->Wake();
  }

  // On the health monitor's thread.
  void HealthChanged(const ChipVerdicts& before, const ChipVerdicts& now) {
    health_events_.Changed(before, now);
    {
      MutexLock lock(&mutex_);
      if (!started_) return;
    }
    resets_->Wake();
    publisher_->Wake();
    device_status_->Wake();
    PublishHealth();
  }

  // The agent looks at its chips all the time and tells only changes: what it said last holds as
  // long as it answers and the library does, and the verdicts are on that. Not told anything, the
  // feed lets it become unknown.
  void PublishHealth() {
    {
      MutexLock lock(&mutex_);
      if (!started_) return;
    }
    MutexLock lock(&publish_health_mutex_);  // what was known earlier is told earlier
    const agent::View view = agent_->Current();
    const bool checked =
        view.connected && view.inventory != nullptr && health_->judged() == view.inventory;
    // Before the agent has answered for the first time what is remembered of sick chips is told.
    if (!checked && health_feed_.Current().has_value()) return;
    const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
    if (!contents.ok()) {
      LogWarning("the health of held devices is not told: claim records cannot be read",
                 {{"error", contents.status()}});
      return;
    }
    const std::shared_ptr<const vnpu::Inventory> inventory = KnownInventory();
    DeviceOptions whole_chips = device_options_;
    whole_chips.vnpu_mode = VnpuMode::kOff;
    NodeDevices offered;
    if (inventory != nullptr) offered = DevicesOf(*inventory, whole_chips);
    std::vector<DeviceHealth> devices = HealthOfDevices(
        node_name_, offered.devices, contents->records, *health_->Current(), Clock::Real().Now());
    if (!checked) {  // that others are well must be looked at first
      devices.erase(std::remove_if(devices.begin(), devices.end(),
                                   [](const DeviceHealth& device) {
                                     return device.state != HealthState::kUnhealthy;
                                   }),
                    devices.end());
      if (devices.empty()) return;
    }
    health_feed_.Publish(std::move(devices));
  }

  // Makes the node ready for vNPUs made on demand, where the operator allows it.
  void ChangeNodeModes(const vnpu::Inventory& inventory) {
    if (!change_node_modes_ || device_options_.vnpu_mode != VnpuMode::kDynamic) return;
    if (inventory.vdevice_mode != vnpu::VdeviceMode::kVm &&
        !inventory.vnpu_recovery.value_or(false)) {
      return;
    }
    // The library refuses while there are vNPUs; those go one day, which changes the inventory.
    const bool divided =
        std::any_of(inventory.chips.begin(), inventory.chips.end(), [](const vnpu::Chip& chip) {
          return chip.partitioning.has_value() && !chip.partitioning->vnpus.empty();
        });
    MutexLock lock(&mutex_);  // the destructor takes it before the pool goes
    if (!started_ || divided || changing_modes_.exchange(true)) return;
    pool_->Submit([this] {
      const absl::Status changed = agent_->PrepareVnpuModes(kModesTimeout);
      if (changed.ok()) {
        LogInfo("the node's vNPU mode is container, vNPU recovery is off");
      } else {
        LogWarning("the node's vNPU modes cannot be changed", {{"error", changed}});
      }
      changing_modes_ = false;
    });
  }

  void WakePublisher() {
    {
      MutexLock lock(&mutex_);
      if (!started_) return;  // it looks at everything when it starts
    }
    publisher_->Wake();
  }

  void RecordsChanged() {
    {
      MutexLock lock(&mutex_);
      if (!started_) return;
    }
    resets_->Wake();
    publisher_->Wake();
    shared_use_->Wake();
    device_status_->Wake();
    allocations_->RecordsChanged();
    // Whole chips are told in any case, what else is held with the next heartbeat at the latest.
    if (device_options_.vnpu_mode != VnpuMode::kOff) PublishHealth();
  }

  const Paths paths_;
  const std::string node_name_;
  Metrics& metrics_;
  const std::string boot_id_;
  const DeviceOptions device_options_;
  const bool change_node_modes_;
  const vnpu::FaultTable faults_;
  const bool reset_idle_chips_;
  std::atomic<bool> changing_modes_ = false;
  std::atomic<bool> records_watched_ = false;  // else our own writes have to wake who reads them
  std::unique_ptr<kube::Client> client_;
  kube::EventRecorder events_;
  ReleaseEvents release_events_;
  InventoryMemory inventories_;
  RecordStore records_;
  HealthEvents health_events_;
  cdi::Store cdi_store_;
  ClaimEngine engine_;
  RegistrationState registration_;

  Mutex publish_health_mutex_;
  HealthFeed health_feed_;
  HealthStreams health_streams_{health_feed_, {.confirm = [this] { PublishHealth(); }}};

  Mutex mutex_;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;

  BusyChips busy_chips_;  // the publisher's thread's, and so are the next two
  ForeignVnpus foreign_vnpus_;
  UnclaimedUse unclaimed_use_;
  std::unique_ptr<HealthMonitor> health_;
  std::unique_ptr<ChipResetter> resetter_;
  std::unique_ptr<ResetController> resets_;
  std::unique_ptr<SlicePublisher> publisher_;
  std::unique_ptr<NodeMonitor> node_monitor_;
  std::unique_ptr<AllocationsFeed> allocations_;
  std::unique_ptr<SharedUseMonitor> shared_use_;
  std::unique_ptr<DeviceStatusWriter> device_status_;
  std::unique_ptr<agent::Client> agent_;
  std::unique_ptr<DeadClaimSweeper> dead_claims_;
  std::unique_ptr<DirectoryWatch> records_watch_;
  std::unique_ptr<DirectoryWatch> publisher_watch_;
  std::unique_ptr<DirectoryWatch> orders_watch_;
  std::unique_ptr<TaskPool> pool_;
  std::unique_ptr<PluginServer> server_;
  std::unique_ptr<AllocationsServer> allocations_server_;
  std::unique_ptr<HealthServer> health_server_;
};

Plugin::Plugin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Plugin::~Plugin() = default;

absl::StatusOr<std::unique_ptr<Plugin>> Plugin::Start(const PluginOptions& options,
                                                      const DriverConfig& config,
                                                      std::unique_ptr<kube::Client> client,
                                                      Metrics& metrics) {
  ASCEND_ASSIGN_OR_RETURN(Paths paths, Paths::Create(options.paths));
  ASCEND_ASSIGN_OR_RETURN(std::string boot_id, ReadBootId(options.boot_id_file));
  auto impl = std::make_unique<Impl>(options, config, std::move(paths), std::move(boot_id),
                                     std::move(client), metrics);
  ASCEND_RETURN_IF_ERROR(impl->Start(options));
  return std::unique_ptr<Plugin>(new Plugin(std::move(impl)));
}

absl::Status Plugin::ready() const { return impl_->ready(); }
int Plugin::health_port() const { return impl_->health_port(); }

}  // namespace ascend::kubeletplugin
