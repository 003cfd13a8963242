// list, show, monitor.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iomanip>
#include <iostream>
#include <mutex>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cdi/cmd/commands.h"
#include "cdi/json.h"
#include "cdi/name.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using Json = nlohmann::ordered_json;

Json ErrorsAsJson(const Snapshot& snapshot) {
  Json errors = Json::array();
  for (const auto& [path, statuses] : snapshot.errors()) {
    for (const absl::Status& status : statuses) {
      errors.push_back({{"path", path}, {"error", std::string(status.message())}});
    }
  }
  return errors;
}

void PrintErrors(const Snapshot& snapshot, std::ostream& stream) {
  for (const auto& [path, statuses] : snapshot.errors()) {
    for (const absl::Status& status : statuses) {
      const bool named = absl::StrContains(status.message(), path);
      stream << "ascend-cdi: " << (named ? "" : absl::StrCat(path, ": ")) << status.message()
             << "\n";
    }
  }
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
    out.text << Json{{"devices", devices}, {"errors", ErrorsAsJson(snapshot)}}.dump(2) << "\n";
    return kExitOk;
  }
  size_t width = 0;
  for (const auto* device : found) width = std::max(width, device->first.size());
  if (!found.empty()) {
    out.text << std::left << std::setw(static_cast<int>(width)) << "DEVICE" << "  FILE\n";
  }
  for (const auto* device : found) {
    out.text << std::left << std::setw(static_cast<int>(width)) << device->first << "  "
             << device->second.file->path << "\n";
  }
  if (found.empty()) out.errors << "ascend-cdi: no devices found\n";
  PrintErrors(snapshot, out.errors);
  return kExitOk;
}

int Show(const Snapshot& snapshot, const std::vector<std::string>& names, const Output& out) {
  int code = kExitOk;
  Json all = Json::array();
  for (const std::string& name : names) {
    const Snapshot::Entry* entry = snapshot.Find(name);
    if (entry == nullptr) {
      out.errors << "ascend-cdi: no device " << name
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
    out.text << "# " << name << " of " << entry->file->path << "\n"
             << Json::parse(spec).dump(2) << "\n";
    for (const std::string& finding : entry->file->findings) out.text << "# " << finding << "\n";
  }
  if (out.json) out.text << all.dump(2) << "\n";
  if (code != kExitOk) PrintErrors(snapshot, out.errors);
  return code;
}

int Monitor(const std::vector<std::string>& directories, int events, const Output& out) {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&signals, signal);

  std::mutex mutex;
  std::set<std::string> known;
  int seen = 0;
  const auto print = [&](absl::string_view change, const std::string& name) {
    if (out.json) {
      out.text << Json{{"change", std::string(change)}, {"name", name}}.dump() << std::endl;
    } else {
      out.text << change << " " << name << std::endl;
    }
  };
  const auto take_in = [&](const Snapshot& snapshot, bool first) {
    const std::lock_guard<std::mutex> lock(mutex);
    std::set<std::string> now;
    for (const auto& [name, entry] : snapshot.devices()) now.insert(name);
    for (const std::string& name : known) {
      if (now.count(name) == 0) print("removed", name);
    }
    for (const std::string& name : now) {
      if (known.count(name) == 0) print(first ? "present" : "added", name);
    }
    const bool changed = known != now;
    known = std::move(now);
    PrintErrors(snapshot, out.errors);
    if (first || !changed || ++seen != events) return;
    ::kill(::getpid(), SIGUSR1);  // wakes the wait below
  };
  // The first snapshot is printed before any change of it.
  std::unique_lock<std::mutex> hold(mutex);
  const absl::StatusOr<std::unique_ptr<Registry>> registry =
      Registry::Open({.directories = directories,
                      .on_change = [&](const std::shared_ptr<const Snapshot>& snapshot) {
                        take_in(*snapshot, false);
                      }});
  if (!registry.ok()) {
    out.errors << "ascend-cdi: " << registry.status().message() << "\n";
    return kExitError;
  }
  hold.unlock();
  take_in(*(*registry)->snapshot(), true);
  int signal = 0;
  sigwait(&signals, &signal);
  return kExitOk;
}

}  // namespace ascend::cdi::cmd
