// ascend-npu-agent: the one process that talks to libdcmi. This file only wires.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/runtime/logging.h"
#include "base/runtime/signals.h"
#include "grpc/support/log.h"
#include "vnpu/agent/chip_turns.h"
#include "vnpu/agent/dcmi_source.h"
#include "vnpu/agent/fault_log.h"
#include "vnpu/agent/inventory_feed.h"
#include "vnpu/agent/inventory_monitor.h"
#include "vnpu/agent/ping.h"
#include "vnpu/agent/process_queries.h"
#include "vnpu/agent/reset_calls.h"
#include "vnpu/agent/server.h"
#include "vnpu/agent/unix_target.h"
#include "vnpu/agent/vnpu_calls.h"

namespace ascend::agent {
namespace {

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;
constexpr absl::Duration kRestBetweenEvents = absl::Milliseconds(200);
constexpr int kExitStuck = 3;  // a call into the library never returned: restart wanted

struct Options {
  std::string control_socket = "/run/ascend-dra/control/agent.sock";
  std::string libdcmi;  // empty: the usual places
  vnpu::DiscoveryOptions discovery;
  InventoryMonitor::Options monitor;
  absl::Duration chip_timeout = absl::Seconds(10);
  LogOptions log;
  absl::Duration ping_timeout = absl::Seconds(3);
};

void AddDuration(CLI::App& app, const std::string& flag, absl::Duration* value,
                 const std::string& description) {
  app.add_option_function<std::string>(
         flag,
         [flag, value](const std::string& text) {
           absl::Duration parsed;
           if (!absl::ParseDuration(text, &parsed) || parsed < absl::Milliseconds(1) ||
               parsed > absl::Hours(24)) {
             throw CLI::ValidationError(
                 flag, "\"" + text + "\" is not a duration from 1ms to 24h, like 500ms or 10s");
           }
           *value = parsed;
         },
         absl::StrCat(description, " [", absl::FormatDuration(*value), "]"))
      ->type_name("DURATION");
}

std::string SocketPathProblem(const std::string& path) {
  return std::string(CheckSocketPath(path).message());
}

void AddFlags(CLI::App& app, Options* options) {
  app.add_option("--control-socket", options->control_socket, "Unix socket to serve on")
      ->check(SocketPathProblem)
      ->capture_default_str();
  app.add_option("--libdcmi", options->libdcmi,
                 "Path of libdcmi.so (default: where the Ascend driver installs it)");
  app.add_option("--sysfs", options->discovery.sysfs_root, "Where sysfs is mounted")
      ->capture_default_str();
  app.add_option("--hccn-conf", options->discovery.hccn_conf, "Addresses of the RoCE ports")
      ->capture_default_str();
  AddDuration(app, "--poll-interval", &options->monitor.poll_interval,
              "Time between two looks at the NPUs");
  AddDuration(app, "--call-timeout", &options->monitor.call_timeout,
              "After this the library counts as not responding");
  AddDuration(app, "--chip-timeout", &options->chip_timeout,
              "After this a call about one chip makes that chip count as stuck");
  AddDuration(app, "--stuck-timeout", &options->monitor.stuck_timeout,
              "After this a call is given up by ending the process (exit code 3)");
  app.add_option("--v", options->log.verbosity, "Log verbosity")
      ->check(CLI::Range(0, 10))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--log-format",
         [options](const std::string& format) { options->log.json = format == "json"; },
         "Form of the log lines [text]")
      ->check(CLI::IsMember({"text", "json"}));
  app.set_version_flag("--version", ASCEND_DRA_VERSION);
}

void LogFromGrpc(gpr_log_func_args* line) {
  if (line->severity == GPR_LOG_SEVERITY_ERROR) {
    LogWarning("gRPC", {{"error", line->message}});
  } else {
    LogVerbose(4, "gRPC", {{"message", line->message}});
  }
}

int RunPing(const Options& options) {
  const absl::StatusOr<PingReply> reply = Ping(options.control_socket, options.ping_timeout);
  if (!reply.ok()) {
    std::cerr << "ascend-npu-agent: " << reply.status().message() << "\n";
    return kExitError;
  }
  std::cout << "version=" << reply->version << " instance=" << reply->instance << "\n";
  return 0;
}

int Serve(const Options& options) {
  BlockTerminationSignals();
  umask(0077);
  InitLogging(options.log);
  gpr_set_log_function(LogFromGrpc);

  InventoryFeed feed(NewInstanceId());
  LogInfo("ascend-npu-agent starts", {{"version", ASCEND_DRA_VERSION},
                                      {"instance", feed.instance()},
                                      {"path", options.control_socket}});
  const auto queries = std::make_shared<ProcessQueries>();
  const auto turns = std::make_shared<ChipTurns>(options.chip_timeout);
  const auto calls = std::make_shared<VnpuCalls>(&feed, turns);
  const auto resets = std::make_shared<ResetCalls>(ResetCalls::Options{}, &feed, turns);
  const auto faults = std::make_shared<FaultLog>();
  const absl::StatusOr<std::unique_ptr<AgentServer>> server =
      AgentServer::Start({.socket_path = options.control_socket, .version = ASCEND_DRA_VERSION},
                         &feed, queries, calls, resets);
  if (!server.ok()) {
    LogError("cannot serve", {{"error", server.status()}});
    return kExitError;
  }

  DcmiSource::Options source;
  source.discovery = options.discovery;
  if (!options.libdcmi.empty()) source.library_paths = {options.libdcmi};
  source.turns = turns;
  source.faults = faults;
  source.on_library = [calls, resets](const std::shared_ptr<dcmi::Dcmi>& library) {
    calls->SetLibrary(library);
    resets->SetLibrary(library);
  };
  InventoryMonitor::Options monitor_options = options.monitor;
  monitor_options.patience = std::min(monitor_options.patience, options.chip_timeout / 10);
  InventoryMonitor monitor(
      std::make_unique<DcmiSource>(source), &feed, queries, monitor_options,
      [](absl::Duration stuck_for) {
        LogError("a call into the NPU library does not return; ending to start with a fresh one",
                 {{"duration", absl::FormatDuration(absl::Trunc(stuck_for, absl::Milliseconds(1)))},
                  {"exitCode", kExitStuck}});
        _exit(kExitStuck);
      });

  calls->SetListener([&monitor] { monitor.ReadSoon(); });
  resets->SetListener([&monitor] { monitor.ReadSoon(); });
  // A storm of events must not keep the reader busy without a pause.
  faults->SetListener([&monitor] { monitor.ReadSoon(kRestBetweenEvents); });

  const int signal_number = WaitForTerminationSignal();
  LogInfo("ascend-npu-agent ends", {{"signal", signal_number}});
  (*server)->Shutdown();
  faults->SetListener(nullptr);
  const bool resets_ended = resets->Stop(absl::Seconds(1));
  const bool calls_ended = calls->Stop(absl::Seconds(1)) && resets_ended;
  if (!monitor.Stop(absl::Seconds(1)) || !calls_ended) {
    LogWarning("left a call into the NPU library behind");
    _exit(0);
  }
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Keeps the inventory of a node's Ascend NPUs and serves it on a unix socket.",
               "ascend-npu-agent");
  AddFlags(app, &options);
  CLI::App* ping = app.add_subcommand("ping", "Exit 0 if the agent on the socket answers");
  ping->add_option("--control-socket", options.control_socket, "The agent's socket")
      ->check(SocketPathProblem)
      ->capture_default_str();
  AddDuration(*ping, "--timeout", &options.ping_timeout, "How long to wait for the answer");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "ascend-npu-agent: " << error.what() << " (see --help)\n";
    return kExitUsage;
  }
  return ping->parsed() ? RunPing(options) : Serve(options);
}

}  // namespace
}  // namespace ascend::agent

int main(int argc, char** argv) { return ascend::agent::Main(argc, argv); }
