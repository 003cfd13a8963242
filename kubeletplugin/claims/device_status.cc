#include "kubeletplugin/claims/device_status.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/runtime/clock.h"
#include "base/runtime/logging.h"
#include "nlohmann/json.hpp"

namespace ascend::kubeletplugin {
namespace {

constexpr absl::Duration kRequestTimeout = absl::Seconds(10);
constexpr size_t kMaxNetworks = 16;

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsUnauthenticated(status) || absl::IsInternal(status);
}

kube::Condition HealthyCondition(const RecordedDevice& device, const ChipVerdicts& health) {
  std::vector<int> ids;
  for (const RecordedChip& chip : device.chips) ids.push_back(chip.physical_id);
  const vnpu::Verdict& verdict = VerdictOn(ids, health);
  kube::Condition condition = {.type = "Healthy",
                               .status = kube::ConditionStatus::kTrue,
                               .reason = "Healthy",
                               .message = verdict.message,
                               .last_transition_time = absl::FormatTime(
                                   "%Y-%m-%dT%H:%M:%SZ", verdict.since, absl::UTCTimeZone())};
  if (verdict.level != vnpu::HealthLevel::kHealthy) {
    condition.reason = std::string(vnpu::HealthLevelName(verdict.level));
  }
  if (verdict.state == vnpu::HealthState::kUnhealthy) {
    condition.status = kube::ConditionStatus::kFalse;
  } else if (verdict.state == vnpu::HealthState::kUnknown) {
    condition.status = kube::ConditionStatus::kUnknown;
  }
  return condition;
}

}  // namespace

std::vector<std::string> RoceNetworks(const RecordedDevice& device) {
  std::vector<std::string> networks;
  for (const RecordedChip& chip : device.chips) {
    if (chip.roce_address.empty() || networks.size() == kMaxNetworks) continue;
    networks.push_back(absl::StrCat(chip.roce_address,
                                    absl::StrContains(chip.roce_address, ":") ? "/128" : "/32"));
  }
  return networks;
}

std::vector<kube::DeviceStatus> DeviceStatusesOf(const ClaimRecord& record,
                                                 const std::string& driver,
                                                 const ChipVerdicts& health) {
  std::vector<kube::DeviceStatus> statuses;
  for (const RecordedDevice& device : record.devices) {
    // The API's key has no admin access in it.
    const bool seen = std::any_of(statuses.begin(), statuses.end(), [&](const auto& status) {
      return status.pool == device.pool && status.device == device.device &&
             status.share_id == device.share_id;
    });
    if (seen) continue;
    nlohmann::json chips = nlohmann::json::array();
    for (const RecordedChip& chip : device.chips) {
      nlohmann::json json = {{"physicalID", chip.physical_id}};
      if (!chip.uuid.empty()) json["uuid"] = chip.uuid;
      if (!chip.pci_bus_id.empty()) json["pciBusID"] = chip.pci_bus_id;
      if (!chip.roce_address.empty()) json["roceAddress"] = chip.roce_address;
      chips.push_back(std::move(json));
    }
    nlohmann::json data = {{"chips", std::move(chips)}};
    if (device.vnpu) {
      data["vnpu"] = {{"template", device.vnpu->template_name}, {"id", device.vnpu->id}};
    }
    statuses.push_back(
        {.driver = driver,
         .pool = device.pool,
         .device = device.device,
         .share_id = device.share_id,
         .conditions = {{.type = "Ready",
                         .status = kube::ConditionStatus::kTrue,
                         .reason = "Prepared",
                         .message = "prepared on the node",
                         .last_transition_time = record.prepared_at},
                        HealthyCondition(device, health)},
         .data_json = data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
         .ips = RoceNetworks(device)});
  }
  return statuses;
}

DeviceStatusWriter::DeviceStatusWriter(Options options, RecordStore& records, kube::Client& client,
                                       Health health)
    : options_(std::move(options)), records_(records), client_(client), health_(std::move(health)) {
  thread_ = std::thread([this] { Run(); });
}

DeviceStatusWriter::~DeviceStatusWriter() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void DeviceStatusWriter::Wake() {
  MutexLock lock(&mutex_);
  if (wake_) return;
  wake_ = true;
  changed_.SignalAll();
}

void DeviceStatusWriter::Run() {
  absl::Duration backoff = absl::ZeroDuration();  // zero: nothing is left to write
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!stop_ && backoff == absl::ZeroDuration() && !wake_) changed_.Wait(&mutex_);
      // During a back-off a new record does not speed things up: the server is not well.
      const absl::Duration deadline =
          Clock::Real().Monotonic() + (backoff == absl::ZeroDuration() ? options_.settle : backoff);
      while (!stop_) {
        const absl::Duration left = deadline - Clock::Real().Monotonic();
        if (left <= absl::ZeroDuration()) break;
        changed_.WaitFor(&mutex_, left);
      }
      if (stop_) return;
      wake_ = false;
    }
    if (WriteAll()) {
      backoff = absl::ZeroDuration();
    } else {
      backoff = std::clamp(2 * backoff, options_.min_backoff, options_.max_backoff);
    }
  }
}

bool DeviceStatusWriter::WriteAll() {
  const absl::StatusOr<RecordStore::Contents> contents = records_.ReadAll();
  if (!contents.ok()) return false;  // others report it
  bool complete = true;
  const std::shared_ptr<const ChipVerdicts> health = health_();
  std::map<std::string, std::vector<kube::DeviceStatus>> done;
  for (const auto& record : contents->records) {
    if (record->state != ClaimState::kCompleted) continue;  // nothing is prepared
    std::vector<kube::DeviceStatus> statuses = DeviceStatusesOf(*record, options_.driver, *health);
    const auto known = done_.find(record->claim_uid);
    if (known != done_.end() && known->second == statuses) {
      done.emplace(record->claim_uid, std::move(statuses));
      continue;
    }
    {
      MutexLock lock(&mutex_);
      if (stop_) return true;
    }
    absl::Status status;
    // A record of the first days has no time, without which the server takes no condition.
    if (!record->devices.empty() && !record->prepared_at.empty()) {
      status =
          client_.ApplyDeviceStatus(record->claim_namespace, record->claim_name, record->claim_uid,
                                    options_.driver, statuses, kRequestTimeout);
    }
    if (IsTransient(status)) {
      complete = false;
      LogVerbose(2, "device status not written, trying again",
                 {{"claim", record->claim()}, {"error", status}});
      continue;
    }
    // A claim that is gone or was replaced needs no status.
    if (!status.ok() && !absl::IsNotFound(status) && !absl::IsCancelled(status) &&
        status != last_error_) {
      last_error_ = status;
      if (kube::HasCause(status, "FieldValueForbidden") || absl::IsPermissionDenied(status)) {
        LogWarning(
            "the driver may not write status.devices of claims: grant it patch on "
            "resourceclaims/status and associated-node:patch on resourceclaims/driver",
            {{"claim", record->claim()}, {"error", status}});
      } else {
        LogWarning("device status refused by the API server",
                   {{"claim", record->claim()}, {"error", status}});
      }
    }
    done.emplace(record->claim_uid, std::move(statuses));
  }
  done_ = std::move(done);
  return complete;
}

}  // namespace ascend::kubeletplugin
