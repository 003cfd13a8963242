#include "vnpu/dcmi/mock/fault_events.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "vnpu/dcmi/mock/fault_state.h"

namespace ascend::dcmi::mock {
namespace {

constexpr unsigned long long kFilterEventId = 1, kFilterSeverity = 2;

struct Subscriber {
  std::string path;
  std::optional<int> physical_id;  // none = every chip
  dcmi_event_filter filter{};
  dcmi_fault_event_callback handler = nullptr;
  int file = -1, watch = -1;  // of events.jsonl; for the life of the process
};

template <size_t kSize>
void CopyField(const std::string& text, char (&field)[kSize]) {
  std::memcpy(field, text.data(), std::min(text.size(), kSize - 1));
}

bool Wants(const Subscriber& subscriber, const FaultNotice& notice) {
  const dcmi_event_filter& filter = subscriber.filter;
  if (subscriber.physical_id.has_value() && subscriber.physical_id != notice.fault.physical_id) {
    return false;
  }
  if ((filter.filter_flag & kFilterEventId) != 0 && filter.event_id != notice.fault.code) {
    return false;
  }
  return (filter.filter_flag & kFilterSeverity) == 0 || notice.fault.severity >= filter.severity;
}

bool IsLost(const EventBehaviour& behaviour, unsigned assertion) {
  if (assertion == 0) return behaviour.lose_recovered;
  return assertion == 1 ? behaviour.lose_occurred : behaviour.lose_one_shot;
}

void Deliver(const Subscriber& subscriber, const std::string& line) {
  try {
    const FaultNotice notice = ParseNotice(line);
    const std::shared_ptr<const View> view = CurrentView();
    if (view == nullptr || !Wants(subscriber, notice)) return;
    const EventBehaviour& behaviour = view->node.events;
    if (IsLost(behaviour, notice.assertion)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(behaviour.delay_ms));
    dcmi_event event{};
    event.type = DCMI_EVENT_DMS_FAULT;
    dcmi_dms_fault_event& fault = event.event_t.dms_event;
    fault.event_id = notice.fault.code;
    fault.deviceid = static_cast<unsigned short>(notice.logic_id);
    fault.severity = static_cast<unsigned char>(notice.fault.severity);
    fault.assertion = static_cast<unsigned char>(notice.assertion);
    fault.event_serial_num = notice.fault.serial;
    fault.notify_serial_num = notice.notify_serial;
    fault.alarm_raised_time = notice.fault.raised_ms;
    CopyField(notice.fault.name, fault.event_name);
    CopyField(notice.fault.additional, fault.additional_info);
    subscriber.handler(&event);
  } catch (const std::exception& problem) {
    Report(subscriber.path.c_str(), problem.what());
  }
}

// Hands on the whole lines that have come; keeps what there is of the next one.
void ReadOn(const Subscriber& subscriber, std::string* rest) {
  char buffer[16384];
  for (;;) {
    const ssize_t count = read(subscriber.file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    rest->append(buffer, static_cast<size_t>(count));
    size_t start = 0;
    for (size_t end; (end = rest->find('\n', start)) != std::string::npos; start = end + 1) {
      Deliver(subscriber, rest->substr(start, end - start));
    }
    rest->erase(0, start);
  }
}

void Follow(const Subscriber& subscriber) {
  std::string rest;
  for (;;) {
    ReadOn(subscriber, &rest);
    char events[4096];
    const ssize_t count = read(subscriber.watch, events, sizeof(events));
    if (count < 0 && errno != EINTR) return;
  }
}

bool OpenFiles(Subscriber* subscriber) {
  subscriber->file = open(subscriber->path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
  if (subscriber->file < 0) return false;
  subscriber->watch = inotify_init1(IN_CLOEXEC);
  if (subscriber->watch < 0 ||
      inotify_add_watch(subscriber->watch, subscriber->path.c_str(), IN_MODIFY) < 0 ||
      lseek(subscriber->file, 0, SEEK_END) < 0) {
    const int error = errno;
    if (subscriber->watch >= 0) close(subscriber->watch);
    close(subscriber->file);
    errno = error;
    return false;
  }
  return true;
}

}  // namespace

int SubscribeFaults(const View& view, const Chip* chip, const dcmi_event_filter& filter,
                    dcmi_fault_event_callback handler) {
  static std::atomic<bool> subscribed = false;
  if (handler == nullptr) return DCMI_INVALID_PARAMETER;
  if (view.node.family == Family::k310) return DCMI_NOT_SUPPORT;
  Subscriber subscriber;
  if (chip != nullptr) subscriber.physical_id = chip->physical_id;
  subscriber.filter = filter;
  subscriber.handler = handler;
  subscriber.path = EventsFile(view.directory);
  if (subscribed.exchange(true)) return DCMI_RESOURCE_OCCUPIED;
  try {
    MakeStateDirectory(view.directory);
    if (!OpenFiles(&subscriber)) FailAt(subscriber.path, std::strerror(errno));
    std::thread([subscriber = std::move(subscriber)] { Follow(subscriber); }).detach();
    return DCMI_OK;
  } catch (...) {
    subscribed = false;
    throw;
  }
}

}  // namespace ascend::dcmi::mock
