// The Client that talks to a real API server, over HTTP/1.1 by libcurl.
//
// HTTP/2 is not used on purpose: libcurl sends no PING, so one half-dead connection would stall
// every request multiplexed on it.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_REST_CLIENT_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_REST_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kubeletplugin/kube/client.h"
#include "kubeletplugin/kube/request_report.h"

namespace ascend::kube {

// Where the API server is and how to prove who we are. Every file is read again when it changes.
struct ConnectionConfig {
  std::string server;      // "https://10.0.0.1:443", or http:// for tests
  std::string ca_file;     // PEM; neither this nor ca_data: the system's authorities
  std::string ca_data;     // PEM text; goes before the file, as below
  std::string token_file;  // re-read when it changes; empty = none
  std::string token;       // a fixed one; token_file wins
  std::string client_certificate_file, client_key_file;  // empty = none
  std::string client_certificate_data, client_key_data;  // PEM text
  bool insecure_skip_tls_verify = false;
  std::string tls_server_name;  // empty = from the URL
};

// From KUBERNETES_SERVICE_HOST/PORT and the service account's directory. kFailedPrecondition that
// says what is missing outside a cluster.
absl::StatusOr<ConnectionConfig> InClusterConfig(
    const std::string& service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount");
// From the current context of a kubeconfig file; relative paths in it are relative to the file.
// kInvalidArgument for what this client cannot do: exec and auth-provider plugins, passwords,
// impersonation, a proxy.
absl::StatusOr<ConnectionConfig> ConfigFromKubeconfig(const std::string& path);

// Starts the client's thread; connects with the first request. Fails if the configuration is
// contradictory or one of its files cannot be read. `user_agent` like
// "ascend-dra-kubeletplugin/0.1.0". `observe` is told of every request.
absl::StatusOr<std::unique_ptr<Client>> CreateRestClient(ConnectionConfig config,
                                                         std::string user_agent,
                                                         RequestObserver observe = nullptr);

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_REST_CLIENT_H_
