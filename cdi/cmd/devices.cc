// list, show, monitor.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iomanip>
#include <iostream>
#include <mutex>
#include <set>
#include <utility>

#include "cdi/cmd/commands.h"
#include "cdi/cmd/output.h"
#include "cdi/json.h"
#include "cdi/name.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxNameColumn = 80;

Json ErrorsAsJson(const Snapshot& snapshot) {
  Json errors = Json::array();
  for (const auto& [path, statuses] : snapshot.errors()) {
    for (const absl::Status& status : statuses) {
      errors.push_back({{"path", path}, {"error", std::string(status.message())}});
    }
  }
  return errors;
}

bool Matches(const std::string& name, const ListFilter& filter) {
  const QualifiedName parts = SplitQualifiedName(name);
  return (filter.vendor.empty() || parts.vendor == filter.vendor) &&
         (filter.device_class.empty() || parts.device_class == filter.device_class);
}

// The file's spec with this device alone.
Spec Only(const Snapshot::Entry& entry) {
  Spec spec = entry.file->spec;
  Device device = *entry.device;
  spec.devices = {std::move(device)};
  return spec;
}

}  // namespace

int List(const Snapshot& snapshot, const ListFilter& filter, const Output& out) {
  std::vector<const std::pair<const std::string, Snapshot::Entry>*> found;
  for (const auto& device : snapshot.devices()) {
    if (Matches(device.first, filter)) found.push_back(&device);
  }
  if (out.json) {
    Json devices = Json::array();
    for (const auto* device : found) {
      devices.push_back({{"name", device->first}, {"file", device->second.file->path}});
    }
    PrintJson({{"devices", devices}, {"errors", ErrorsAsJson(snapshot)}}, out.text);
    return kExitOk;
  }
  // One long name shall not push all files out of sight.
  size_t width = 6;
  for (const auto* device : found) {
    width = std::max(width, std::min(device->first.size(), kMaxNameColumn));
  }
  if (!found.empty()) {
    out.text << std::left << std::setw(static_cast<int>(width)) << "DEVICE" << "  FILE\n";
  }
  for (const auto* device : found) {
    out.text << std::left << std::setw(static_cast<int>(width)) << device->first << "  "
             << Printable(device->second.file->path) << "\n";
  }
  if (found.empty()) out.errors << "ascend-cdi: no devices found\n";
  PrintErrors(snapshot, out);
  return kExitOk;
}

int Show(const Snapshot& snapshot, const std::vector<std::string>& names, const Output& out) {
  int code = kExitOk;
  Json all = Json::array();
  for (const std::string& name : names) {
    const Snapshot::Entry* entry = snapshot.Find(name);
    if (entry == nullptr) {
      out.errors << "ascend-cdi: no device " << Printable(name)
                 << (SplitQualifiedName(name).vendor.empty()
                         ? " (a name is like huawei.com/npu=0)\n"
                         : " in these directories (see ascend-cdi list)\n");
      code = kExitNo;
      continue;
    }
    const std::string spec = FormatJson(Only(*entry));
    if (out.json) {
      all.push_back({{"name", name}, {"file", entry->file->path}, {"spec", Json::parse(spec)}});
      continue;
    }
    out.text << "# " << name << " of " << Printable(entry->file->path) << "\n";
    PrintJson(Json::parse(spec), out.text);
    for (const std::string& finding : entry->file->findings) {
      out.text << "# " << Printable(finding) << "\n";
    }
  }
  if (out.json) PrintJson(all, out.text);
  if (code != kExitOk) PrintErrors(snapshot, out);
  return code;
}

namespace {

// Prints what is new in each snapshot.
class ChangePrinter {
 public:
  ChangePrinter(int events, const Output& out) : events_(events), out_(out) {}

  // Whether to go on: false once enough changes were printed, or if nobody reads them any more.
  bool Take(const Snapshot& snapshot, bool first) {
    std::set<std::string> now;
    for (const auto& [name, entry] : snapshot.devices()) now.insert(name);
    for (const std::string& name : devices_) {
      if (now.count(name) == 0) Print("removed", name);
    }
    for (const std::string& name : now) {
      if (devices_.count(name) == 0) Print(first ? "present" : "added", name);
    }
    if (!first && devices_ != now) ++seen_;
    devices_ = std::move(now);
    TakeErrors(snapshot);
    out_.text.flush();
    return out_.text.good() && (events_ == 0 || seen_ < events_);
  }

 private:
  void Print(absl::string_view change, const std::string& name) {
    if (out_.json) {
      PrintLine({{"change", std::string(change)}, {"name", name}});
    } else {
      out_.text << change << " " << name << "\n";
    }
  }

  // Each error once, as long as it lasts.
  void TakeErrors(const Snapshot& snapshot) {
    std::set<std::pair<std::string, std::string>> now;
    for (const auto& [path, statuses] : snapshot.errors()) {
      for (const absl::Status& status : statuses) {
        if (!now.emplace(path, status.message()).second) continue;
        if (errors_.count({path, std::string(status.message())}) != 0) continue;
        if (out_.json) {
          PrintLine(
              {{"change", "error"}, {"path", path}, {"error", std::string(status.message())}});
        } else {
          Complain(out_, path, status);
        }
      }
    }
    errors_ = std::move(now);
  }

  void PrintLine(const Json& json) {
    out_.text << json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) << "\n";
  }

  const int events_;
  const Output& out_;
  int seen_ = 0;
  std::set<std::string> devices_;
  std::set<std::pair<std::string, std::string>> errors_;
};

}  // namespace

int Monitor(const std::vector<std::string>& directories, int events, const Output& out) {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals, signal);

  std::mutex mutex;
  ChangePrinter printer(events, out);
  // Held until the first snapshot is printed, before any change of it.
  std::unique_lock<std::mutex> hold(mutex);
  const absl::StatusOr<std::unique_ptr<Registry>> registry =
      Registry::Open({.directories = directories,
                      .on_change = [&](const std::shared_ptr<const Snapshot>& snapshot) {
                        const std::lock_guard<std::mutex> lock(mutex);
                        // The signal wakes the wait below.
                        if (!printer.Take(*snapshot, false)) ::kill(::getpid(), SIGUSR1);
                      }});
  if (!registry.ok()) {
    Complain(out, "", registry.status());
    return kExitError;
  }
  bool go_on = printer.Take(*(*registry)->snapshot(), true);
  hold.unlock();
  int signal = 0;
  if (go_on) sigwait(&signals, &signal);
  return out.text.good() ? kExitOk : kExitError;
}

}  // namespace ascend::cdi::cmd
