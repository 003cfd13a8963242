#include "test/bench/driver_bench.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "nlohmann/json.hpp"
#include "test/bench/callers.h"
#include "test/bench/claims.h"
#include "test/bench/floor.h"
#include "test/bench/machine.h"
#include "test/bench/process_stats.h"
#include "test/bench/report.h"
#include "test/bench/samples.h"
#include "test/bench/slices.h"
#include "test/sim/table.h"

namespace ascend::bench {
namespace {

using sim::ClaimRef;
using Rows = std::vector<std::vector<std::string>>;

constexpr int kChips = 16;
constexpr int kSliceBuilds = 200;
constexpr absl::Duration kSlowGet = absl::Milliseconds(50);
// Rounds in which a measurement and what it is compared with take turns: whatever else the machine
// does meets both.
constexpr int kRounds = 10;

std::string Ms(double milliseconds) { return absl::StrFormat("%.2f", milliseconds); }

double Ratio(double value, double floor) { return floor > 0 ? value / floor : 0; }

double MiB(int64_t kib) { return static_cast<double>(kib) / 1024; }

class Bench {
 public:
  Bench(sim::DriverStack& stack, const BenchOptions& options) : stack_(stack), options_(options) {}

  absl::Status Run() {
    ASCEND_RETURN_IF_ERROR(DescribeMachine());
    ASCEND_RETURN_IF_ERROR(MeasureStarts());
    ASCEND_RETURN_IF_ERROR(FindDevices());
    ASCEND_RETURN_IF_ERROR(MeasureIdle());
    ASCEND_ASSIGN_OR_RETURN(floor_, Floor::Create(stack_));
    std::cout
        << "floor: GET of the claim with bearer token over kept HTTP connections (no TLS: the "
           "simulated API server has none), CDI file, fsynced record, empty gRPC call\n\n"
        << std::flush;
    ASCEND_RETURN_IF_ERROR(MeasureLatency("_1", /*chips=*/1, /*callers=*/1, options_.cycles));
    ASCEND_RETURN_IF_ERROR(MeasureLatency("_8", /*chips=*/8, /*callers=*/1, options_.cycles / 2));
    ASCEND_RETURN_IF_ERROR(MeasureLatency("_1_16_callers", 1, kChips, options_.cycles / 8));
    // More of them would only wait for each other's chips.
    ASCEND_RETURN_IF_ERROR(MeasureLatency("_8_2_callers", 8, 2, options_.cycles / 8));
    std::cout << sim::FormatTable(latency_rows_) << "\n";
    ASCEND_RETURN_IF_ERROR(MeasureSlowGet());
    ASCEND_RETURN_IF_ERROR(MeasureGrowth());
    AddGoals();
    std::cout << report_.Table() << "\n";
    return WriteResults();
  }

  const Report& report() const { return report_; }

 private:
  absl::Status DescribeMachine() {
    ASCEND_ASSIGN_OR_RETURN(const std::string state, FileSystemType(stack_.root()));
    ASCEND_ASSIGN_OR_RETURN(const std::string cdi, FileSystemType(stack_.cdi_root()));
    const int cores = CoreCount();
    const double load = LoadAverage();
    report_.AddFact("kernel", KernelName());
    report_.AddFact("mock_node", options_.stack.mock_node);
    report_.AddFact("records_file_system", state);
    report_.AddFact("cdi_file_system", cdi);
    report_.Add({.key = "cores", .value = static_cast<double>(cores)});
    report_.Add({.key = "load_average_at_start", .value = load});
    std::cout << "machine: " << cores << " cores, load average " << absl::StrFormat("%.2f", load)
              << ", " << KernelName() << "\nrecords: " << state << " at " << stack_.root()
              << "\nCDI files: " << cdi << " at " << stack_.cdi_root() << "\n";
    if (load > 0.5 * cores) {
      std::cout << "WARNING: the machine is busy; times are too long, ratios less so\n";
    }
    return absl::OkStatus();
  }

  absl::Status MeasureStarts() {
    Samples registered, first_slice;
    for (int i = 0; i < options_.starts; ++i) {
      stack_.StopDriver();
      stack_.api_server().DeleteSlices(options_.stack.node_name);
      ASCEND_ASSIGN_OR_RETURN(const sim::StartTimes times, stack_.StartDriver());
      registered.Add(times.registered);
      first_slice.Add(times.first_slice);
    }
    registered_ms_ = registered.QuantileMs(0.5);
    report_.Add({.key = "registered_max_ms", .value = registered.QuantileMs(1)});
    first_slice_ms_ = first_slice.QuantileMs(0.5);
    report_.Add({.key = "first_slice_max_ms", .value = first_slice.QuantileMs(1)});
    const auto row = [&](const std::string& name, const Samples& samples) {
      return std::vector<std::string>{name, absl::StrCat(samples.size()),
                                      Ms(samples.QuantileMs(0.5)), Ms(samples.QuantileMs(1))};
    };
    std::cout << "\n"
              << sim::FormatTable({{"START, MS", "STARTS", "MEDIAN", "MAX"},
                                   row("agent and plugin started → registered", registered),
                                   row("agent and plugin started → first slice", first_slice)})
              << "\n";
    return absl::OkStatus();
  }

  absl::Status FindDevices() {
    for (const nlohmann::json& slice : stack_.api_server().Slices()) {
      for (const nlohmann::json& device : slice["spec"]["devices"]) {
        devices_.push_back(device["name"]);
      }
    }
    if (devices_.size() < kChips) {
      return absl::FailedPreconditionError(
          absl::StrCat("node ", options_.stack.mock_node, " publishes ", devices_.size(),
                       " devices, the benchmark takes ", kChips, ": choose another --mock-node"));
    }
    if (!stack_.has_device_nodes()) {
      return absl::FailedPreconditionError(
          "device nodes could not be made, and without them nothing can be prepared: run as root");
    }
    return absl::OkStatus();
  }

  absl::Status MeasureIdle() {
    // What a start leaves behind ends first: the slice is written, connections are made.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    ASCEND_ASSIGN_OR_RETURN(const ProcessStats plugin, LookAt(stack_.plugin().pid()));
    ASCEND_ASSIGN_OR_RETURN(const ProcessStats agent, LookAt(stack_.agent().pid()));
    std::this_thread::sleep_for(absl::ToChronoMilliseconds(options_.idle));
    ASCEND_ASSIGN_OR_RETURN(const ProcessStats plugin_later, LookAt(stack_.plugin().pid()));
    ASCEND_ASSIGN_OR_RETURN(const ProcessStats agent_later, LookAt(stack_.agent().pid()));
    ASCEND_ASSIGN_OR_RETURN(const sim::ProcessMemory plugin_memory, stack_.plugin().Memory());
    ASCEND_ASSIGN_OR_RETURN(const sim::ProcessMemory agent_memory, stack_.agent().Memory());
    descriptors_idle_ = plugin_later.open_files;
    rss_idle_mb_ = MiB(plugin_memory.rss_kib);
    anonymous_idle_mb_ = MiB(plugin_memory.anonymous_kib);
    const Activity plugin_activity = Between(plugin, plugin_later);
    const Activity agent_activity = Between(agent, agent_later);
    idle_wakeups_ = plugin_activity.wakeups_per_second;
    agent_idle_wakeups_ = agent_activity.wakeups_per_second;
    report_.Add({.key = "idle_cpu_percent", .value = plugin_activity.cpu_percent});
    report_.Add({.key = "agent_idle_cpu_percent", .value = agent_activity.cpu_percent});
    report_.Add({.key = "agent_rss_idle_mb", .value = MiB(agent_memory.rss_kib)});
    report_.Add({.key = "agent_anonymous_idle_mb", .value = MiB(agent_memory.anonymous_kib)});
    const auto row = [](const std::string& name, const sim::ProcessMemory& memory,
                        const ProcessStats& stats, const Activity& activity) {
      return std::vector<std::string>{
          name,
          absl::StrFormat("%.1f", MiB(memory.rss_kib)),
          absl::StrFormat("%.1f", MiB(memory.anonymous_kib)),
          absl::StrCat(stats.open_files),
          absl::StrCat(stats.threads.size()),
          absl::StrFormat("%.2f %%", activity.cpu_percent),
          absl::StrFormat("%.1f", activity.wakeups_per_second),
          absl::StrJoin(activity.by_thread, ", ", [](std::string* out, const auto& entry) {
            absl::StrAppendFormat(out, "%s %.1f", entry.first, entry.second);
          })};
    };
    std::cout << sim::FormatTable(
                     {{"IDLE", "RSS MIB", "ANON MIB", "FILES", "THREADS", "CPU", "WAKE-UPS/S",
                       "BY THREAD"},
                      row("ascend-dra-kubeletplugin", plugin_memory, plugin_later, plugin_activity),
                      row("ascend-npu-agent", agent_memory, agent_later, agent_activity)})
              << "\n";
    return absl::OkStatus();
  }

  // `each` claims for each of `callers`, who have `chips` chips apiece.
  absl::StatusOr<std::vector<std::vector<ClaimRef>>> MakeClaims(int chips, int callers, int each) {
    std::vector<std::vector<ClaimRef>> claims(callers);
    for (int caller = 0; caller < callers; ++caller) {
      const auto first = devices_.begin() + caller * chips;
      ASCEND_ASSIGN_OR_RETURN(
          ClaimSource source,
          ClaimSource::Create(stack_.api_server(), absl::StrCat("bench-", ++sources_),
                              std::vector<std::string>(first, first + chips)));
      for (int i = 0; i < each; ++i) {
        ASCEND_ASSIGN_OR_RETURN(ClaimRef claim, source.Make());
        claims[caller].push_back(std::move(claim));
      }
      made_.push_back(std::move(source));
    }
    return claims;
  }

  absl::Status DeleteClaims() {
    for (ClaimSource& source : made_) ASCEND_RETURN_IF_ERROR(source.DeleteAll());
    made_.clear();
    stack_.api_server().ClearRequests();
    return absl::OkStatus();
  }

  ClaimCalls DriverCalls() {
    return {
        .prepare =
            [this](const ClaimRef& claim) { return stack_.kubelet().Prepare({claim}).status(); },
        .unprepare = [this](const ClaimRef& claim) { return stack_.kubelet().Unprepare({claim}); }};
  }

  // What the plugin writes for claims of as many chips.
  absl::StatusOr<FloorWork> LearnWork(const ClaimRef& claim) {
    ASCEND_RETURN_IF_ERROR(stack_.kubelet().Prepare({claim}).status());
    absl::StatusOr<FloorWork> work = floor_->Learn(claim);
    ASCEND_RETURN_IF_ERROR(stack_.kubelet().Unprepare({claim}));
    return work;
  }

  absl::Status MeasureLatency(const std::string& suffix, int chips, int callers, int cycles) {
    const int each = std::max(1, cycles / kRounds);
    ASCEND_ASSIGN_OR_RETURN(const auto warm_up, MakeClaims(chips, callers, 5));
    ASCEND_ASSIGN_OR_RETURN(const FloorWork work, LearnWork(warm_up[0][0]));
    const ClaimCalls driver_calls = DriverCalls();
    const ClaimCalls floor_calls = {
        .prepare = [&](const ClaimRef& claim) { return floor_->Prepare(claim, work); },
        .unprepare = [&](const ClaimRef& claim) { return floor_->Unprepare(claim); }};
    ASCEND_RETURN_IF_ERROR(RunCallers(warm_up, driver_calls).status());
    ASCEND_RETURN_IF_ERROR(RunCallers(warm_up, floor_calls).status());
    CallTimes driver, floor;
    // One caller alternates with each claim, many of them in rounds.
    const int rounds = callers == 1 ? each * kRounds : kRounds;
    const int per_round = callers == 1 ? 1 : each;
    for (int round = 0; round < rounds; ++round) {
      ASCEND_ASSIGN_OR_RETURN(const auto claims, MakeClaims(chips, callers, per_round));
      for (const bool floor_turn : {round % 2 == 0, round % 2 != 0}) {
        ASCEND_ASSIGN_OR_RETURN(const CallTimes times,
                                RunCallers(claims, floor_turn ? floor_calls : driver_calls));
        (floor_turn ? floor : driver).Merge(times);
      }
      ASCEND_RETURN_IF_ERROR(DeleteClaims());
    }
    const std::string who =
        absl::StrCat(chips == 1 ? "1 chip" : absl::StrCat(chips, " chips"), ", ",
                     callers == 1 ? "1 caller" : absl::StrCat(callers, " callers"));
    AddLatency("prepare" + suffix, "Prepare, " + who, driver.prepare, floor.prepare);
    AddLatency("unprepare" + suffix, "Unprepare, " + who, driver.unprepare, floor.unprepare);
    report_.Add(
        {.key = absl::StrCat("claims", suffix, "_per_s"), .value = driver.claims_per_second()});
    report_.Add({.key = absl::StrCat("floor_claims", suffix, "_per_s"),
                 .value = floor.claims_per_second()});
    latency_rows_.push_back(
        {"  claims per second", absl::StrFormat("%.0f", driver.claims_per_second()), "", "",
         absl::StrFormat("%.0f", floor.claims_per_second()), "", "",
         absl::StrFormat("%.2f", Ratio(driver.claims_per_second(), floor.claims_per_second()))});
    return absl::OkStatus();
  }

  void AddLatency(const std::string& key, const std::string& name, const Samples& driver,
                  const Samples& floor) {
    std::vector<std::string> row = {name};
    std::vector<std::string> ratios;
    for (const Samples* samples : {&driver, &floor}) {
      const std::string prefix = samples == &driver ? key : "floor_" + key;
      for (const auto& [label, fraction] : kQuantiles) {
        const double ms = samples->QuantileMs(fraction);
        report_.Add({.key = absl::StrCat(prefix, "_", label, "_ms"), .value = ms});
        row.push_back(Ms(ms));
      }
    }
    for (const auto& [label, fraction] : kQuantiles) {
      const double ratio = Ratio(driver.QuantileMs(fraction), floor.QuantileMs(fraction));
      if (fraction == 1) continue;
      ratios_[absl::StrCat(key, "_", label)] = ratio;
      row.push_back(absl::StrFormat("%.2f", ratio));
    }
    medians_[key] = driver.QuantileMs(0.5);
    row.push_back(absl::StrCat(driver.size()));
    latency_rows_.push_back(row);
  }

  // Callers must not wait for each other's API requests.
  absl::Status MeasureSlowGet() {
    const int rule = stack_.api_server().AddRule(
        {.verb = "get", .path_prefix = "/apis/resource.k8s.io/", .delay = kSlowGet});
    CallTimes one, many;
    absl::Status status;
    for (int round = 0; round < kRounds / 2 && status.ok(); ++round) {
      for (CallTimes* times : {&one, &many}) {
        ASCEND_ASSIGN_OR_RETURN(const auto claims, MakeClaims(1, times == &one ? 1 : kChips, 10));
        const absl::StatusOr<CallTimes> run = RunCallers(claims, DriverCalls());
        if (run.ok()) times->Merge(*run);
        status.Update(run.status());
        status.Update(DeleteClaims());
      }
    }
    stack_.api_server().RemoveRule(rule);
    report_.Add({.key = "claims_1_caller_50ms_get_per_s", .value = one.claims_per_second()});
    report_.Add({.key = "claims_16_callers_50ms_get_per_s", .value = many.claims_per_second()});
    throughput_ = Ratio(many.claims_per_second(), one.claims_per_second());
    return status;
  }

  absl::Status PrepareMany(int claims) {
    constexpr int kBatch = 50;
    for (int done = 0; done < claims; done += kBatch * kChips) {
      ASCEND_ASSIGN_OR_RETURN(
          const auto batch,
          MakeClaims(1, kChips, std::min(kBatch, (claims - done + kChips - 1) / kChips)));
      ASCEND_RETURN_IF_ERROR(RunCallers(batch, DriverCalls()).status());
      ASCEND_RETURN_IF_ERROR(DeleteClaims());
    }
    return absl::OkStatus();
  }

  // Threads and connections come with the first callers; from then on nothing may grow.
  absl::Status MeasureGrowth() {
    ASCEND_RETURN_IF_ERROR(PrepareMany(options_.claims / 10));
    ASCEND_ASSIGN_OR_RETURN(const sim::ProcessMemory before, stack_.plugin().Memory());
    ASCEND_ASSIGN_OR_RETURN(const ProcessStats stats_before, LookAt(stack_.plugin().pid()));
    ASCEND_RETURN_IF_ERROR(PrepareMany(options_.claims));
    ASCEND_ASSIGN_OR_RETURN(const sim::ProcessMemory after, stack_.plugin().Memory());
    ASCEND_ASSIGN_OR_RETURN(const ProcessStats stats_after, LookAt(stack_.plugin().pid()));
    const auto mb = [this](const std::string& key, int64_t kib) {
      report_.Add({.key = key, .value = MiB(kib)});
    };
    mb("rss_after_1000_mb", before.rss_kib);
    mb("anonymous_after_1000_mb", before.anonymous_kib);
    rss_after_mb_ = MiB(after.rss_kib);
    mb("anonymous_after_10000_mb", after.anonymous_kib);
    anonymous_growth_mb_ = MiB(after.anonymous_kib - before.anonymous_kib);
    report_.Add(
        {.key = "descriptors_after_1000", .value = static_cast<double>(stats_before.open_files)});
    const Activity work = Between(stats_before, stats_after);
    const double per_claim = absl::ToDoubleSeconds(stats_after.when - stats_before.when) /
                             static_cast<double>(options_.claims);
    cpu_per_claim_ms_ = work.cpu_percent / 100 * per_claim * 1000;
    switches_per_claim_ = work.wakeups_per_second * per_claim;
    descriptors_after_ = stats_after.open_files;
    descriptors_growth_ = stats_after.open_files - stats_before.open_files;
    return absl::OkStatus();
  }

  // In the order in which the goals were set.
  void AddGoals() {
    const auto ratio = [&](const std::string& key, const std::string& name,
                           std::optional<double> at_most) {
      report_.Add({.key = key + "_ratio", .name = name, .value = ratios_[key], .at_most = at_most});
    };
    ratio("prepare_1_p50", "Prepare, 1 chip: p50 / floor's p50", 1.3);
    ratio("prepare_1_p99", "Prepare, 1 chip: p99 / floor's p99", std::nullopt);
    report_.Add({.key = "prepare_8_over_1_p50",
                 .name = "Prepare: p50 of 8 chips / p50 of 1 chip",
                 .value = Ratio(medians_["prepare_8"], medians_["prepare_1"]),
                 .at_most = 1.5});
    ratio("prepare_8_p50", "Prepare, 8 chips: p50 / its floor's p50", std::nullopt);
    ratio("prepare_8_p99", "Prepare, 8 chips: p99 / its floor's p99", std::nullopt);
    ratio("unprepare_1_p50", "Unprepare, 1 chip: p50 / floor's p50", 1.3);
    ratio("unprepare_1_p99", "Unprepare, 1 chip: p99 / floor's p99", std::nullopt);
    ratio("unprepare_8_p50", "Unprepare, 8 chips: p50 / its floor's p50", std::nullopt);
    ratio("prepare_1_16_callers_p50", "Prepare, 16 callers: p50 / floor's p50", std::nullopt);
    ratio("unprepare_1_16_callers_p50", "Unprepare, 16 callers: p50 / floor's p50", std::nullopt);
    report_.Add({.key = "throughput_16_callers_50ms_get",
                 .name = "GET takes 50 ms: throughput of 16 callers / of 1",
                 .value = throughput_,
                 .at_least = 14});
    report_.Add({.key = "registered_ms",
                 .name = "Start → registered, median",
                 .value = registered_ms_,
                 .unit = "ms",
                 .at_most = 100});
    report_.Add({.key = "first_slice_ms",
                 .name = "Start → first slice, median",
                 .value = first_slice_ms_,
                 .unit = "ms"});
    const Samples builds = TimeSliceBuilds(kSliceBuilds);
    report_.Add({.key = "slice_build_16_chips_p50_ms",
                 .name = "Slices of 16 divided chips (496 devices): build, median",
                 .value = builds.QuantileMs(0.5),
                 .unit = "ms",
                 .at_most = 5});
    report_.Add({.key = "slice_build_16_chips_p99_ms", .value = builds.QuantileMs(0.99)});
    report_.Add({.key = "cpu_per_claim_ms",
                 .name = "Plugin: CPU for Prepare and Unprepare, 16 callers",
                 .value = cpu_per_claim_ms_,
                 .unit = "ms"});
    report_.Add({.key = "switches_per_claim",
                 .name = "Plugin: thread wake-ups for Prepare and Unprepare",
                 .value = switches_per_claim_});
    report_.Add({.key = "rss_idle_mb",
                 .name = "Plugin: memory idle (RSS)",
                 .value = rss_idle_mb_,
                 .unit = "MiB"});
    report_.Add({.key = "anonymous_idle_mb",
                 .name = "Plugin: memory idle (anonymous)",
                 .value = anonymous_idle_mb_,
                 .unit = "MiB"});
    report_.Add({.key = "rss_after_10000_mb",
                 .name = absl::StrCat("Plugin: RSS after ", options_.claims, " claims"),
                 .value = rss_after_mb_,
                 .unit = "MiB"});
    report_.Add(
        {.key = "anonymous_growth_mb",
         .name = absl::StrCat("Plugin: anonymous memory grown over ", options_.claims, " claims"),
         .value = anonymous_growth_mb_,
         .unit = "MiB",
         .at_most = kNoiseMb});
    report_.Add({.key = "descriptors_idle",
                 .name = "Plugin: descriptors idle",
                 .value = static_cast<double>(descriptors_idle_)});
    report_.Add({.key = "descriptors_after_10000",
                 .name = absl::StrCat("Plugin: descriptors after ", options_.claims, " claims"),
                 .value = static_cast<double>(descriptors_after_)});
    report_.Add(
        {.key = "descriptors_growth",
         .name = absl::StrCat("Plugin: descriptors grown over ", options_.claims, " claims"),
         .value = static_cast<double>(descriptors_growth_),
         .at_most = 0});
    report_.Add({.key = "idle_wakeups_per_s",
                 .name = "Plugin: wake-ups per second while idle",
                 .value = idle_wakeups_,
                 .at_most = 10});
    report_.Add({.key = "agent_idle_wakeups_per_s",
                 .name = "Agent: wake-ups per second while idle",
                 .value = agent_idle_wakeups_,
                 .at_most = 10});
  }

  absl::Status WriteResults() {
    if (options_.results.empty()) return absl::OkStatus();
    return WriteFileAtomically(options_.results, report_.Json().dump(2) + "\n",
                               {.mode = 0644, .durable = false});
  }

  static constexpr std::pair<const char*, double> kQuantiles[] = {
      {"p50", 0.5}, {"p99", 0.99}, {"max", 1}};
  // The allocator gives pages to threads as they come; a leak of 100 bytes a claim is 1 MiB.
  static constexpr double kNoiseMb = 0.5;

  sim::DriverStack& stack_;
  const BenchOptions& options_;
  std::unique_ptr<Floor> floor_;
  std::vector<std::string> devices_;
  std::vector<ClaimSource> made_;
  int sources_ = 0;
  Report report_;
  Rows latency_rows_ = {
      {"CALL, MS", "P50", "P99", "MAX", "FLOOR P50", "P99", "MAX", "RATIO P50", "P99", "CALLS"}};
  std::map<std::string, double> ratios_, medians_;
  double registered_ms_ = 0, first_slice_ms_ = 0, throughput_ = 0;
  double rss_idle_mb_ = 0, anonymous_idle_mb_ = 0, rss_after_mb_ = 0, anonymous_growth_mb_ = 0;
  double cpu_per_claim_ms_ = 0, switches_per_claim_ = 0;
  double idle_wakeups_ = 0, agent_idle_wakeups_ = 0;
  int descriptors_idle_ = 0, descriptors_after_ = 0, descriptors_growth_ = 0;
};

}  // namespace

int RunBench(const BenchOptions& options) {
  absl::StatusOr<std::unique_ptr<sim::DriverStack>> stack = sim::DriverStack::Create(options.stack);
  if (!stack.ok()) {
    std::cout << "bench: failed: " << stack.status().message() << "\n";
    return 1;
  }
  Bench bench(**stack, options);
  if (const absl::Status status = bench.Run(); !status.ok()) {
    std::cout << "\n" << (*stack)->Logs() << "bench: failed: " << status.message() << "\n";
    return 1;
  }
  const std::vector<std::string> missed = bench.report().Missed();
  std::cout << "bench: " << bench.report().goals() - missed.size() << " goals met, "
            << missed.size() << " missed" << (missed.empty() ? "" : ": ")
            << absl::StrJoin(missed, ", ") << "\n";
  return options.check && !missed.empty() ? 1 : 0;
}

}  // namespace ascend::bench
