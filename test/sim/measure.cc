#include "test/sim/measure.h"

#include <algorithm>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/core/status_macros.h"
#include "test/sim/allocator.h"
#include "test/sim/table.h"

namespace ascend::sim {
namespace {

// The value that `fraction` of the samples do not exceed.
std::string Quantile(std::vector<absl::Duration> samples, double fraction) {
  absl::c_sort(samples);
  const size_t index =
      static_cast<size_t>(fraction * static_cast<double>(samples.size() - 1) + 0.5);
  const double milliseconds = absl::ToDoubleMilliseconds(samples[index]);
  return milliseconds < 10 ? absl::StrFormat("%.2f ms", milliseconds)
                           : FormatMilliseconds(milliseconds);
}

std::vector<std::string> Row(const std::string& name, const std::vector<absl::Duration>& samples) {
  return {name, absl::StrCat(samples.size()), Quantile(samples, 0.5), Quantile(samples, 0.99),
          Quantile(samples, 1)};
}

absl::Status Measure(DriverStack& stack, const MeasureOptions& options) {
  std::vector<absl::Duration> registered, first_slice, prepare, unprepare;
  for (int i = 0; i < options.starts; ++i) {
    stack.StopDriver();
    stack.api_server().DeleteSlices(options.stack.node_name);
    ASCEND_ASSIGN_OR_RETURN(const StartTimes times, stack.StartDriver());
    registered.push_back(times.registered);
    first_slice.push_back(times.first_slice);
  }
  // Memory before the cycles: what an idle node costs.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ASCEND_ASSIGN_OR_RETURN(const ProcessMemory agent, stack.agent().Memory());
  ASCEND_ASSIGN_OR_RETURN(const ProcessMemory plugin, stack.plugin().Memory());

  if (stack.has_device_nodes()) {
    for (int i = 0; i < options.cycles; ++i) {
      const std::string name = absl::StrCat("cycle-", i);
      ASCEND_ASSIGN_OR_RETURN(const ClaimRef claim,
                              AllocateClaim(stack.api_server(), {.name = name}));
      const absl::Time start = absl::Now();
      ASCEND_RETURN_IF_ERROR(stack.kubelet().Prepare({claim}).status());
      const absl::Time middle = absl::Now();
      ASCEND_RETURN_IF_ERROR(stack.kubelet().Unprepare({claim}));
      unprepare.push_back(absl::Now() - middle);
      prepare.push_back(middle - start);
      ASCEND_RETURN_IF_ERROR(stack.api_server().Delete("resourceclaims", "default", name));
    }
  }
  ASCEND_ASSIGN_OR_RETURN(const ProcessMemory later, stack.plugin().Memory());

  std::vector<std::vector<std::string>> rows = {{"TIME", "SAMPLES", "MEDIAN", "P99", "MAX"},
                                                Row("start → registered", registered),
                                                Row("start → first slice", first_slice)};
  if (!prepare.empty()) {
    rows.push_back(Row("Prepare of one chip", prepare));
    rows.push_back(Row("Unprepare of one chip", unprepare));
  }
  const auto memory = [](const std::string& name, const ProcessMemory& m) {
    return std::vector<std::string>{
        name, absl::StrFormat("%.1f MiB", static_cast<double>(m.rss_kib) / 1024),
        absl::StrFormat("%.1f MiB", static_cast<double>(m.anonymous_kib) / 1024)};
  };
  std::cout << FormatTable(rows) << "\n"
            << FormatTable({{"MEMORY", "RSS", "ANONYMOUS"},
                            memory("ascend-npu-agent, idle", agent),
                            memory("ascend-dra-kubeletplugin, idle", plugin),
                            memory("ascend-dra-kubeletplugin, after the cycles", later)});
  std::cout << "\nmeasure: ok (" << options.stack.mock_node << ", files in "
            << options.stack.work_dir
            << (prepare.empty() ? ", no Prepare: device nodes take root" : "") << ")\n";
  return absl::OkStatus();
}

}  // namespace

int RunMeasure(const MeasureOptions& options) {
  absl::StatusOr<std::unique_ptr<DriverStack>> stack = DriverStack::Create(options.stack);
  absl::Status status = stack.status();
  if (status.ok()) status = Measure(**stack, options);
  if (status.ok()) return 0;
  if (stack.ok()) std::cout << "\n" << (*stack)->Logs();
  std::cout << "measure: failed: " << status.message() << "\n";
  return 1;
}

}  // namespace ascend::sim
