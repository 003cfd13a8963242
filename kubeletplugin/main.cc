// ascend-dra-kubeletplugin: the DRA driver's node plugin. This file only wires.
#include <sys/stat.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/App.hpp"
#include "CLI/Config.hpp"
#include "CLI/Formatter.hpp"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"
#include "base/runtime/signals.h"
#include "grpc/support/log.h"
#include "kubeletplugin/kube/rest_client.h"
#include "kubeletplugin/metrics/metrics.h"
#include "kubeletplugin/options.h"
#include "kubeletplugin/plugin.h"

namespace ascend::kubeletplugin {
namespace {

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;
const Metrics::BuildInfo kBuild = {.version = ASCEND_DRA_VERSION, .revision = ASCEND_DRA_REVISION};

void AddFlags(CLI::App& app, PluginOptions* options) {
  app.add_option("--node-name", options->node_name, "This node's name, also its pool's")
      ->envname("NODE_NAME")
      ->required();
  app.add_option("--pod-uid", options->paths.pod_uid,
                 "UID of this pod: gives each instance sockets of its own during an upgrade")
      ->envname("POD_UID");
  app.add_option("--driver-name", options->paths.driver_name, "Name of the driver")
      ->capture_default_str();
  app.add_option("--kubelet-root", options->paths.kubelet_root, "The kubelet's root directory")
      ->capture_default_str();
  app.add_option("--cdi-root", options->paths.cdi_root, "Where CDI files are written")
      ->capture_default_str();
  app.add_option("--agent-socket", options->agent_socket, "Socket of ascend-npu-agent")
      ->capture_default_str();
  app.add_option("--host-root", options->host_root,
                 "Where the host's /dev, /usr/local and /etc are seen")
      ->capture_default_str();
  app.add_option("--proc-devices", options->proc_devices, "The kernel's list of device majors")
      ->capture_default_str();
  app.add_option("--boot-id-file", options->boot_id_file, "What the kernel calls this boot")
      ->group("");  // hidden: another file makes sense only where a reboot is simulated
  app.add_option("--config", options->config_file, "DriverConfig file (default: none)");
  app.add_option("--kubeconfig", options->kubeconfig,
                 "How to reach the API server (default: the pod's service account)");
  app.add_option("--health-port", options->health_port,
                 "TCP port of grpc.health.v1, services liveness and readiness; -1 for none")
      ->check(CLI::Range(-1, 65535))
      ->capture_default_str();
  app.add_option("--allocations-socket", options->allocations_socket,
                 "Where allocations and the plugin's metrics are served; empty for nowhere")
      ->capture_default_str();
  app.add_option("--allocations-group", options->allocations_group,
                 "Group that may read them, as the metrics sidecar does")
      ->capture_default_str();
  app.add_option("--v", options->log.verbosity, "Log verbosity")
      ->check(CLI::Range(0, 10))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--log-format",
         [options](const std::string& format) { options->log.json = format == "json"; },
         "Form of the log lines [text]")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_flag_callback(
      "--list-metrics",
      [] {
        Metrics metrics(kBuild);
        metrics.SetNodeState([] {
          return NodeState{.prepared_claims = 0,
                           .prepared_npus = 0,
                           .prepared_vnpus = 0,
                           .unreadable_records = 0,
                           .cdi_spec_files = 0};
        });
        std::cout << DescribeFamilies(metrics.Collect()) << "\n";
        throw CLI::Success();
      },
      "Print name, type, labels and help of every metric as JSON, and exit");
  app.set_version_flag("--version", ASCEND_DRA_VERSION);
}

void LogFromGrpc(gpr_log_func_args* line) {
  if (line->severity == GPR_LOG_SEVERITY_ERROR) {
    LogWarning("gRPC", {{"error", line->message}});
  } else {
    LogVerbose(4, "gRPC", {{"message", line->message}});
  }
}

absl::StatusOr<DriverConfig> LoadConfig(const PluginOptions& options) {
  if (options.config_file.empty()) return DriverConfig{};
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.config_file));
  ASCEND_ASSIGN_OR_RETURN(DriverConfig config, ParseDriverConfig(text, options.node_name),
                          options.config_file);
  return config;
}

absl::StatusOr<std::unique_ptr<kube::Client>> Connect(const PluginOptions& options,
                                                      Metrics& metrics) {
  ASCEND_ASSIGN_OR_RETURN(kube::ConnectionConfig connection,
                          options.kubeconfig.empty()
                              ? kube::InClusterConfig()
                              : kube::ConfigFromKubeconfig(options.kubeconfig));
  return kube::CreateRestClient(
      std::move(connection), absl::StrCat("ascend-dra-kubeletplugin/", ASCEND_DRA_VERSION),
      [&metrics](const kube::RequestReport& report) { metrics.ApiRequest(report); });
}

int Fail(int code, const absl::Status& status) {
  LogError("ascend-dra-kubeletplugin cannot start", {{"error", status}});
  return code;
}

int Run(const PluginOptions& options) {
  BlockTerminationSignals();
  umask(0077);
  InitLogging(options.log);
  gpr_set_log_function(LogFromGrpc);
  LogInfo("ascend-dra-kubeletplugin starts", {{"version", ASCEND_DRA_VERSION},
                                              {"node", options.node_name},
                                              {"driver", options.paths.driver_name}});
  if (absl::StatusOr<Paths> paths = Paths::Create(options.paths); !paths.ok()) {
    return Fail(kExitUsage, paths.status());
  }
  const absl::StatusOr<DriverConfig> config = LoadConfig(options);
  if (!config.ok()) return Fail(kExitUsage, config.status());
  Metrics metrics(kBuild);
  absl::StatusOr<std::unique_ptr<kube::Client>> client = Connect(options, metrics);
  if (!client.ok()) return Fail(kExitError, client.status());
  absl::StatusOr<std::unique_ptr<Plugin>> plugin =
      Plugin::Start(options, *config, *std::move(client), metrics);
  if (!plugin.ok()) return Fail(kExitError, plugin.status());
  LogInfo("serving", {{"healthPort", (*plugin)->health_port()}});
  const int signal = WaitForTerminationSignal();
  LogInfo("stopping; prepared claims and ResourceSlices stay", {{"signal", signal}});
  plugin->reset();
  LogInfo("stopped");
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Node plugin of the Dynamic Resource Allocation driver for Huawei Ascend NPUs",
               "ascend-dra-kubeletplugin");
  PluginOptions options;
  AddFlags(app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help and --version
  } catch (const CLI::ParseError& error) {
    std::cerr << "ascend-dra-kubeletplugin: " << error.what() << " (see --help)\n";
    return kExitUsage;
  }
  return Run(options);
}

}  // namespace
}  // namespace ascend::kubeletplugin

int main(int argc, char** argv) { return ascend::kubeletplugin::Main(argc, argv); }
