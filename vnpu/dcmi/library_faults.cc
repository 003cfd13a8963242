// Faults, the network and resets.
#include <climits>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "base/core/status_macros.h"
#include "vnpu/dcmi/library.h"
#include "vnpu/dcmi/library_calls.h"

namespace ascend::dcmi {
namespace {

constexpr int kMaxFaultCodes = 128;
constexpr int kMaxFaultText = 512;

// Who hears of events. The C callback has no user data, so it is the process's.
struct Subscription {
  Mutex mutex;  // held while the handler runs
  FaultHandler handler ABSL_GUARDED_BY(mutex);
};

Subscription& TheSubscription() {
  static auto* const subscription = new Subscription;
  return *subscription;
}

// The library's texts have no declared encoding, and they go into messages that must be UTF-8.
std::string Ascii(std::string text) {
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = c == '\n' || c == '\t' ? ' ' : '?';
  }
  return text;
}

FaultSeverity SeverityOf(unsigned char severity) {
  switch (severity) {
    case 0:
      return FaultSeverity::kWarning;
    case 1:
      return FaultSeverity::kMinor;
    case 2:
      return FaultSeverity::kMajor;
    case 3:
      return FaultSeverity::kCritical;
    default:
      return FaultSeverity::kUnknown;
  }
}

// What is neither a recovery nor a single event counts as a fault: it may be bad news.
FaultAssertion AssertionOf(unsigned char assertion) {
  switch (assertion) {
    case 0:
      return FaultAssertion::kRecovered;
    case 2:
      return FaultAssertion::kOneShot;
    default:
      return FaultAssertion::kOccurred;
  }
}

FaultEvent EventOf(const struct dcmi_dms_fault_event& event) {
  FaultEvent result{.logic_id = event.deviceid,
                    .code = event.event_id,
                    .severity = SeverityOf(event.severity),
                    .assertion = AssertionOf(event.assertion),
                    .serial = event.event_serial_num,
                    .name = Ascii(FieldText(event.event_name)),
                    .additional = Ascii(FieldText(event.additional_info))};
  constexpr auto kLatest = static_cast<unsigned long long>(INT64_MAX);
  if (event.alarm_raised_time != 0 && event.alarm_raised_time <= kLatest) {
    result.raised = absl::FromUnixMillis(static_cast<int64_t>(event.alarm_raised_time));
  }
  return result;
}

extern "C" void OnFaultEvent(struct dcmi_event* event) {
  if (event == nullptr || event->type != DCMI_EVENT_DMS_FAULT) return;
  Subscription& subscription = TheSubscription();
  MutexLock lock(&subscription.mutex);
  if (subscription.handler != nullptr) {
    subscription.handler(EventOf(event->event_t.dms_event));
  }
}

void SetHandler(FaultHandler handler) {
  Subscription& subscription = TheSubscription();
  MutexLock lock(&subscription.mutex);
  subscription.handler = std::move(handler);
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> Library::FaultCodes(ChipAddress chip) {
  Out<unsigned[kMaxFaultCodes]> list;
  Out<int> count;
  ASCEND_RETURN_IF_ERROR(DCMI_CHIP_CALL(dcmi_get_device_errorcode_v2,
                                        dcmiv2_get_device_error_code_list, chip, &count.value,
                                        list.value, unsigned{kMaxFaultCodes}));
  if (count.value < 0 || count.value > kMaxFaultCodes) {
    return absl::InternalError(absl::StrCat("the library lists ", count.value, " fault codes"));
  }
  return std::vector<uint64_t>(list.value, list.value + count.value);
}

absl::StatusOr<std::string> Library::FaultText(ChipAddress chip, uint64_t code) {
  if (generation() == Generation::kFlat) return NotInThisGeneration("the text of a fault code");
  if (code > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("the library has no fault code ", absl::Hex(code), ": it takes 32 bits"));
  }
  Out<unsigned char[kMaxFaultText]> text;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(ChipMutex(chip), dcmi_get_device_errorcode_string, chip.card,
                                   chip.device, static_cast<unsigned>(code), text.value,
                                   int{kMaxFaultText}));
  return Ascii(FieldText(text.value));
}

absl::Status Library::SubscribeFaults(FaultHandler handler) {
  // One subscription of the process to each library that it has loaded; there is no way back.
  static auto* const subscribed = new std::set<void*>;
  static auto* const guard = new Mutex;
  const bool flat = generation() == Generation::kFlat;
  void* const key = flat ? reinterpret_cast<void*>(functions_->dcmiv2_subscribe_fault_event)
                         : reinterpret_cast<void*>(functions_->dcmi_subscribe_fault_event);
  {
    MutexLock lock(guard);
    if (handler == nullptr || subscribed->count(key) != 0) {
      SetHandler(std::move(handler));
      return absl::OkStatus();
    }
  }
  SetHandler(std::move(handler));  // first: events may come before the call returns
  const struct dcmi_event_filter everything = {};
  constexpr int kAll = -1;
  const absl::Status status = flat ? DCMI_CALL(SubscriptionMutex(), dcmiv2_subscribe_fault_event,
                                               kAll, everything, &OnFaultEvent)
                                   : DCMI_CALL(SubscriptionMutex(), dcmi_subscribe_fault_event,
                                               kAll, kAll, everything, &OnFaultEvent);
  if (!status.ok()) {
    SetHandler(nullptr);
    return status;
  }
  MutexLock lock(guard);
  subscribed->insert(key);
  return absl::OkStatus();
}

absl::StatusOr<NetworkState> Library::Network(ChipAddress chip) {
  // dcmiv2_get_device_network_health has no published prototype.
  if (generation() == Generation::kFlat) return NotInThisGeneration("the network");
  Out<enum dcmi_rdfx_detect_result> result;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(NetworkMutex(chip), dcmi_get_device_network_health, chip.card,
                                   chip.device, &result.value));
  switch (result.value) {
    case DCMI_RDFX_OK:
      return NetworkState::kOk;
    case DCMI_RDFX_RECV_TIMEOUT:
    case DCMI_RDFX_UNREACH:
    case DCMI_RDFX_TIME_EXCEEDED:
    case DCMI_RDFX_FAULT:
      return NetworkState::kDown;
    case DCMI_RDFX_INIT:
    case DCMI_RDFX_IP_SET:
      return NetworkState::kNotTested;
    default:
      // No socket, no thread: MindCluster takes these for a port that is down.
      return NetworkState::kUnknown;
  }
}

absl::Status Library::Reset(ChipAddress chip, ResetChannel channel) {
  const enum dcmi_reset_channel c_channel =
      channel == ResetChannel::kOutband ? DCMI_RESET_OUTBAND : DCMI_RESET_INBAND;
  return DCMI_CHIP_CALL(dcmi_set_device_reset, dcmiv2_reset_device, chip, c_channel);
}

absl::StatusOr<bool> Library::HasOutbandChannel(ChipAddress chip) {
  // dcmiv2_get_device_outband_channel_state has no published prototype.
  if (generation() == Generation::kFlat) return NotInThisGeneration("the out-of-band channel");
  Out<int> state;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(ChipMutex(chip), dcmi_get_device_outband_channel_state,
                                   chip.card, chip.device, &state.value));
  return state.value == 1;
}

absl::Status Library::PrepareReset(ChipAddress chip) {
  return DCMI_CHIP_CALL(dcmi_pre_reset_soc, dcmiv2_pre_reset_device, chip);
}

absl::Status Library::Rescan(ChipAddress chip) {
  return DCMI_CHIP_CALL(dcmi_rescan_soc, dcmiv2_rescan_device, chip);
}

absl::StatusOr<int> Library::BootState(ChipAddress chip) {
  Out<enum dcmi_boot_status> state;
  ASCEND_RETURN_IF_ERROR(DCMI_CHIP_CALL(dcmi_get_device_boot_status, dcmiv2_get_device_boot_status,
                                        chip, &state.value));
  return static_cast<int>(state.value);
}

}  // namespace ascend::dcmi
