#include "cli/chips/commands.h"

#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/directory_watch.h"
#include "base/core/mutex.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/health/chip_resetter.h"
#include "kubeletplugin/health/health_file.h"
#include "kubeletplugin/health/resets_file.h"
#include "nlohmann/json.hpp"

namespace ascend::cli {
namespace {

using kubeletplugin::ChipOrder;
using kubeletplugin::HealthFile;
using vnpu::Verdict;

std::string Level(const Verdict& verdict) {
  const absl::string_view name = vnpu::HealthLevelName(verdict.level);
  return name.empty() ? "ok" : std::string(name);
}

std::string Time(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

absl::StatusOr<HealthFile> Read(const kubeletplugin::Paths& paths) {
  absl::StatusOr<HealthFile> file = kubeletplugin::ReadHealthFile(paths.health_file());
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(
        absl::StrCat(paths.health_file(),
                     " is not there: the plugin has not run on this node yet, or keeps its "
                     "files elsewhere (see --kubelet-root)"));
  }
  return file;
}

// What became of the last reset of each chip, of those that had one.
std::map<int, std::string> Resets(const kubeletplugin::Paths& paths) {
  std::map<int, std::string> texts;
  const auto memory = kubeletplugin::ReadResetsFile(paths.resets_file());
  if (!memory.ok()) return texts;
  for (const auto& [id, tries] : *memory) {
    texts[id] = kubeletplugin::ResetText(tries, kubeletplugin::ChipResetter::kTries);
  }
  return texts;
}

// How the chip is with the order carried out; nullopt as long as it is not.
std::optional<Verdict> Effect(const kubeletplugin::Paths& paths, const ChipOrder& order) {
  const absl::StatusOr<HealthFile> file = kubeletplugin::ReadHealthFile(paths.health_file());
  if (!file.ok()) return std::nullopt;
  const auto done = file->orders_done.find(order.physical_id);
  const auto chip = file->verdicts.find(order.physical_id);
  if (done == file->orders_done.end() || done->second != order.at || chip == file->verdicts.end()) {
    return std::nullopt;
  }
  return chip->second;
}

std::optional<Verdict> WaitForEffect(const kubeletplugin::Paths& paths, const ChipOrder& order,
                                     absl::Duration patience) {
  Mutex mutex;
  CondVar changed;
  bool look = true;
  const auto watch = DirectoryWatch::Start(paths.plugin_directory(), [&] {
    MutexLock lock(&mutex);
    look = true;
    changed.SignalAll();
  });
  const absl::Duration end = Clock::Real().Monotonic() + patience;
  while (true) {
    if (std::optional<Verdict> effect = Effect(paths, order)) return effect;
    MutexLock lock(&mutex);
    while (!look) {
      const absl::Duration left = end - Clock::Real().Monotonic();
      if (left <= absl::ZeroDuration() || !watch.ok()) return std::nullopt;
      changed.WaitFor(&mutex, left);
    }
    look = false;
  }
}

}  // namespace

int ListChips(const kubeletplugin::Paths& paths, const Output& out) {
  const absl::StatusOr<HealthFile> file = Read(paths);
  if (!file.ok()) {
    Complain(file.status(), out);
    return kExitCannotRead;
  }
  std::map<int, std::string> resets = Resets(paths);
  bool findings = false;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> rows;
  for (const auto& [id, verdict] : file->verdicts) {
    findings |= verdict.effect != vnpu::TaintEffect::kNone;
    const std::string effect(vnpu::TaintEffectName(verdict.effect));
    list.push_back({{"physicalID", id},
                    {"uuid", verdict.uuid},
                    {"level", Level(verdict)},
                    {"effect", effect},
                    {"state", std::string(vnpu::HealthStateName(verdict.state))},
                    {"since", Time(verdict.since)},
                    {"message", verdict.message},
                    {"reset", resets[id]}});
    std::string why = verdict.message;
    if (!resets[id].empty()) absl::StrAppend(&why, why.empty() ? "" : "; ", resets[id]);
    rows.push_back({absl::StrCat(id), Level(verdict),
                    verdict.effect == vnpu::TaintEffect::kNone ? "" : effect, Time(verdict.since),
                    why});
  }
  if (out.json) {
    PrintJson(list, out);
  } else {
    PrintTable({"CHIP", "HEALTH", "EFFECT", "SINCE", "WHY"}, rows, out);
  }
  return findings ? kExitFindings : kExitOk;
}

int OrderChip(const kubeletplugin::Paths& paths, ChipOrder order, absl::Duration patience,
              const Output& out) {
  const absl::StatusOr<HealthFile> file = Read(paths);
  if (!file.ok()) {
    Complain(file.status(), out);
    return kExitCannotRead;
  }
  const auto chip = file->verdicts.find(order.physical_id);
  if (chip == file->verdicts.end()) {
    std::vector<int> known;
    for (const auto& [id, verdict] : file->verdicts) known.push_back(id);
    Complain(absl::NotFoundError(absl::StrCat("there is no chip ", order.physical_id,
                                              "; the plugin knows: ", absl::StrJoin(known, ", "))),
             out);
    return kExitCannotRead;
  }
  order.uuid = chip->second.uuid;
  // As it will be read again.
  order.at = absl::FromUnixMillis(absl::ToUnixMillis(order.at));
  if (absl::Status written = WriteChipOrder(paths.chip_orders_directory(), order); !written.ok()) {
    Complain(written, out);
    return absl::IsInvalidArgument(written) ? kExitUsage : kExitCannotRead;
  }
  const std::optional<Verdict> effect = WaitForEffect(paths, order, patience);
  if (out.json) {
    nlohmann::ordered_json json = {{"physicalID", order.physical_id},
                                   {"carriedOut", effect.has_value()}};
    if (effect) json["level"] = Level(*effect);
    if (effect) json["message"] = effect->message;
    PrintJson(json, out);
    return kExitOk;
  }
  if (!effect) {
    out.text << "the order is given; the plugin carries it out as soon as it runs\n";
  } else if (effect->message.empty()) {
    out.text << "chip " << order.physical_id << ": " << Level(*effect) << "\n";
  } else {
    out.text << "chip " << order.physical_id << ": " << Printable(effect->message) << "\n";
  }
  return kExitOk;
}

}  // namespace ascend::cli
