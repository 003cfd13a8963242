#include <stdlib.h>

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "kubeletplugin/kube/rest_client.h"
#include "yaml-cpp/yaml.h"

namespace ascend::kube {
namespace {

absl::Status Bad(absl::string_view member, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(member, ": ", what));
}

// Reads the members of one mapping of a kubeconfig; `where` names it in errors.
class Section {
 public:
  Section(YAML::Node node, std::string where) : node_(std::move(node)), where_(std::move(where)) {}

  bool Has(const char* key) const { return node_[key].IsDefined() && !node_[key].IsNull(); }

  absl::StatusOr<std::string> Text(const char* key) const {
    if (!Has(key)) return std::string();
    if (!node_[key].IsScalar()) return Bad(Path(key), "not a string");
    return node_[key].Scalar();
  }

  absl::StatusOr<bool> Flag(const char* key) const {
    ASCEND_ASSIGN_OR_RETURN(const std::string text, Text(key));
    if (text.empty() || text == "false") return false;
    if (text == "true") return true;
    return Bad(Path(key), "neither true nor false");
  }

  absl::StatusOr<std::string> Base64(const char* key) const {
    ASCEND_ASSIGN_OR_RETURN(const std::string text, Text(key));
    std::string data;
    if (!absl::Base64Unescape(text, &data)) return Bad(Path(key), "not base64");
    return data;
  }

  // A path relative to `directory`.
  absl::StatusOr<std::string> File(const char* key, const std::string& directory) const {
    ASCEND_ASSIGN_OR_RETURN(std::string path, Text(key));
    if (path.empty() || absl::StartsWith(path, "/")) return path;
    return JoinPath(directory, path);
  }

  std::string Path(absl::string_view key) const { return absl::StrCat(where_, ".", key); }

 private:
  const YAML::Node node_;
  const std::string where_;
};

// The mapping `kind` of the entry called `name` in the list `list`: clusters, users, contexts.
absl::StatusOr<Section> FindEntry(const YAML::Node& root, const char* list, const char* kind,
                                  const std::string& name) {
  const YAML::Node entries = root[list];
  if (entries.IsDefined() && !entries.IsNull() && !entries.IsSequence()) {
    return Bad(list, "not a list");
  }
  for (const YAML::Node& entry : entries) {
    if (!entry.IsMap()) return Bad(list, "an entry is not a mapping");
    const YAML::Node entry_name = entry["name"];
    if (!entry_name.IsDefined() || !entry_name.IsScalar() || entry_name.Scalar() != name) continue;
    const std::string where = absl::StrCat(list, "[", name, "].", kind);
    if (!entry[kind].IsDefined() || !entry[kind].IsMap()) return Bad(where, "not a mapping");
    return Section(entry[kind], where);
  }
  return absl::InvalidArgumentError(absl::StrCat(list, ": no entry named \"", name, "\""));
}

absl::Status ReadCluster(const Section& cluster, const std::string& directory,
                         ConnectionConfig* config) {
  if (cluster.Has("proxy-url")) return Bad(cluster.Path("proxy-url"), "not supported");
  ASCEND_ASSIGN_OR_RETURN(config->server, cluster.Text("server"));
  if (config->server.empty()) return Bad(cluster.Path("server"), "missing");
  ASCEND_ASSIGN_OR_RETURN(config->ca_file, cluster.File("certificate-authority", directory));
  ASCEND_ASSIGN_OR_RETURN(config->ca_data, cluster.Base64("certificate-authority-data"));
  ASCEND_ASSIGN_OR_RETURN(config->tls_server_name, cluster.Text("tls-server-name"));
  ASCEND_ASSIGN_OR_RETURN(config->insecure_skip_tls_verify,
                          cluster.Flag("insecure-skip-tls-verify"));
  return absl::OkStatus();
}

absl::Status ReadUser(const Section& user, const std::string& directory, ConnectionConfig* config) {
  for (const char* key : {"exec", "auth-provider", "username", "password", "as", "as-uid",
                          "as-groups", "as-user-extra"}) {
    if (user.Has(key)) {
      return Bad(user.Path(key),
                 "not supported: use token, tokenFile or a client certificate with its key");
    }
  }
  ASCEND_ASSIGN_OR_RETURN(config->token, user.Text("token"));
  ASCEND_ASSIGN_OR_RETURN(config->token_file, user.File("tokenFile", directory));
  ASCEND_ASSIGN_OR_RETURN(config->client_certificate_file,
                          user.File("client-certificate", directory));
  ASCEND_ASSIGN_OR_RETURN(config->client_certificate_data, user.Base64("client-certificate-data"));
  ASCEND_ASSIGN_OR_RETURN(config->client_key_file, user.File("client-key", directory));
  ASCEND_ASSIGN_OR_RETURN(config->client_key_data, user.Base64("client-key-data"));
  return absl::OkStatus();
}

absl::StatusOr<ConnectionConfig> ParseKubeconfig(const std::string& text,
                                                 const std::string& directory) {
  const YAML::Node root = YAML::Load(text);
  if (!root.IsMap()) return absl::InvalidArgumentError("not a mapping");
  const Section top(root, "kubeconfig");
  ASCEND_ASSIGN_OR_RETURN(const std::string context_name, top.Text("current-context"));
  if (context_name.empty()) return absl::InvalidArgumentError("current-context: missing");
  ASCEND_ASSIGN_OR_RETURN(const Section context,
                          FindEntry(root, "contexts", "context", context_name));
  ASCEND_ASSIGN_OR_RETURN(const std::string cluster_name, context.Text("cluster"));
  ASCEND_ASSIGN_OR_RETURN(const std::string user_name, context.Text("user"));
  ConnectionConfig config;
  ASCEND_ASSIGN_OR_RETURN(const Section cluster,
                          FindEntry(root, "clusters", "cluster", cluster_name));
  ASCEND_RETURN_IF_ERROR(ReadCluster(cluster, directory, &config));
  if (!user_name.empty()) {
    ASCEND_ASSIGN_OR_RETURN(const Section user, FindEntry(root, "users", "user", user_name));
    ASCEND_RETURN_IF_ERROR(ReadUser(user, directory, &config));
  }
  return config;
}

}  // namespace

absl::StatusOr<ConnectionConfig> ConfigFromKubeconfig(const std::string& path) {
  const auto context = [&path] { return absl::StrCat("kubeconfig ", path); };
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path), context());
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  absl::StatusOr<ConnectionConfig> config;
  try {
    config = ParseKubeconfig(text, directory);
  } catch (const YAML::Exception& error) {
    config =
        absl::InvalidArgumentError(absl::StrCat("line ", error.mark.line + 1, ": ", error.msg));
  }
  if (!config.ok()) return Annotate(config.status(), context());
  return config;
}

absl::StatusOr<ConnectionConfig> InClusterConfig(const std::string& service_account_dir) {
  const auto variable = [](const char* name) {
    const char* value = ::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string host = variable("KUBERNETES_SERVICE_HOST");
  const std::string port = variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty()) {
    return absl::FailedPreconditionError(
        "not in a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set; "
        "use a kubeconfig");
  }
  if (absl::StrContains(host, ":")) host = absl::StrCat("[", host, "]");
  ConnectionConfig config;
  config.server = absl::StrCat("https://", host, ":", port);
  config.token_file = JoinPath(service_account_dir, "token");
  config.ca_file = JoinPath(service_account_dir, "ca.crt");
  for (const std::string& path : {config.token_file, config.ca_file}) {
    if (absl::Status status = ReadFile(path).status(); !status.ok()) {
      return absl::FailedPreconditionError(absl::StrCat("service account: ", status.message(),
                                                        "; is automountServiceAccountToken off?"));
    }
  }
  return config;
}

}  // namespace ascend::kube
