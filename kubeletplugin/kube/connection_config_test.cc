#include <stdlib.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/kube/rest_client.h"

namespace ascend::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kKubeconfig[] = R"(
apiVersion: v1
kind: Config
current-context: b
contexts:
- {name: a, context: {cluster: other, user: other}}
- name: b
  context: {cluster: c1, user: u1, namespace: x}
clusters:
- name: c1
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: pki/ca.crt
- {name: other, cluster: {server: "https://other"}}
users:
- name: u1
  user:
    token: abc
)";

class KubeconfigTest : public ::testing::Test {
 protected:
  absl::StatusOr<ConnectionConfig> Parse(absl::string_view text) {
    EXPECT_THAT(WriteFileAtomically(path_, text), IsOk());
    return ConfigFromKubeconfig(path_);
  }
  // kKubeconfig with `from` replaced.
  absl::StatusOr<ConnectionConfig> ParseWith(absl::string_view from, absl::string_view to) {
    return Parse(absl::StrReplaceAll(kKubeconfig, {{from, to}}));
  }
  void ExpectRefused(absl::string_view from, absl::string_view to, absl::string_view message) {
    EXPECT_THAT(ParseWith(from, to),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(path_), HasSubstr(std::string(message)))));
  }

  TempDir dir_;
  const std::string path_ = dir_.File("config");
};

TEST_F(KubeconfigTest, FollowsTheCurrentContext) {
  const auto config = Parse(kKubeconfig);
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->server, "https://10.0.0.1:6443");
  EXPECT_EQ(config->ca_file, dir_.File("pki/ca.crt")) << "relative to the file";
  EXPECT_EQ(config->token, "abc");
  EXPECT_FALSE(config->insecure_skip_tls_verify);
  EXPECT_EQ(config->tls_server_name, "");
}

TEST_F(KubeconfigTest, ReadsDataAndFlags) {
  const auto config =
      ParseWith("    certificate-authority: pki/ca.crt",
                "    certificate-authority-data: Q0E=\n    insecure-skip-tls-verify: true\n    "
                "tls-server-name: api.example");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->ca_data, "CA");
  EXPECT_EQ(config->ca_file, "");
  EXPECT_TRUE(config->insecure_skip_tls_verify);
  EXPECT_EQ(config->tls_server_name, "api.example");
}

TEST_F(KubeconfigTest, ReadsEveryKindOfProof) {
  auto config = ParseWith("    token: abc", "    tokenFile: /var/t\n    token: abc");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->token_file, "/var/t") << "absolute";
  config = ParseWith("    token: abc", "    client-certificate: c.crt\n    client-key: sub/c.key");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->client_certificate_file, dir_.File("c.crt"));
  EXPECT_EQ(config->client_key_file, dir_.File("sub/c.key"));
  config =
      ParseWith("    token: abc", "    client-certificate-data: Q1JU\n    client-key-data: S0VZ");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->client_certificate_data, "CRT");
  EXPECT_EQ(config->client_key_data, "KEY");
}

TEST_F(KubeconfigTest, TakesJsonAndAContextWithoutUser) {
  const auto config =
      Parse(R"({"current-context":"x","contexts":[{"name":"x","context":{"cluster":"c"}}],)"
            R"("clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]})");
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->server, "http://127.0.0.1:1");
}

TEST_F(KubeconfigTest, RefusesWhatItCannotDo) {
  for (const char* user :
       {"exec: {command: aws}", "auth-provider: {name: gcp}", "username: admin", "as: root"}) {
    ExpectRefused("token: abc", user, "not supported");
    ExpectRefused("token: abc", user,
                  absl::StrCat("users[u1].user.", absl::string_view(user).substr(
                                                      0, absl::string_view(user).find(':'))));
  }
  ExpectRefused("certificate-authority: pki/ca.crt", "proxy-url: http://p",
                "clusters[c1].cluster.proxy-url: not supported");
}

TEST_F(KubeconfigTest, NamesWhatIsWrong) {
  ExpectRefused("current-context: b", "current-context: \"\"", "current-context: missing");
  ExpectRefused("current-context: b", "current-context: [b]", "current-context: not a string");
  ExpectRefused("current-context: b", "current-context: z", "contexts: no entry named \"z\"");
  ExpectRefused("cluster: c1", "cluster: c9", "clusters: no entry named \"c9\"");
  ExpectRefused("user: u1", "user: u9", "users: no entry named \"u9\"");
  ExpectRefused("server: https://10.0.0.1:6443", "x: y", "clusters[c1].cluster.server: missing");
  ExpectRefused("certificate-authority: pki/ca.crt", "certificate-authority-data: '*'",
                "certificate-authority-data: not base64");
  ExpectRefused("certificate-authority: pki/ca.crt", "insecure-skip-tls-verify: maybe",
                "neither true nor false");
  ExpectRefused("users:", "users: 7\nold:", "users: not a list");
  ExpectRefused("users:", "users: [7]\nold:", "users: an entry is not a mapping");
  ExpectRefused("users:", "users: [{name: u1}]\nold:", "users[u1].user: not a mapping");
  ExpectRefused("apiVersion: v1", "apiVersion: [", "line ");
}

TEST_F(KubeconfigTest, RefusesGarbage) {
  for (const char* text : {"", "7", "[1]", "\t\t- :", "{\"a\":", "%&*"}) {
    EXPECT_THAT(Parse(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path_)))
        << text;
  }
  EXPECT_THAT(ConfigFromKubeconfig(dir_.File("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

class InClusterConfigTest : public ::testing::Test {
 protected:
  InClusterConfigTest() {
    Set("10.96.0.1", "443");
    EXPECT_THAT(WriteFileAtomically(dir_.File("token"), "t"), IsOk());
    EXPECT_THAT(WriteFileAtomically(dir_.File("ca.crt"), "c"), IsOk());
  }
  ~InClusterConfigTest() override { Set(nullptr, nullptr); }

  static void Set(const char* host, const char* port) {
    SetOne("KUBERNETES_SERVICE_HOST", host);
    SetOne("KUBERNETES_SERVICE_PORT", port);
  }
  static void SetOne(const char* name, const char* value) {
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  TempDir dir_;
};

TEST_F(InClusterConfigTest, ComesFromEnvironmentAndDirectory) {
  const auto config = InClusterConfig(dir_.path());
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->server, "https://10.96.0.1:443");
  EXPECT_EQ(config->token_file, dir_.File("token"));
  EXPECT_EQ(config->ca_file, dir_.File("ca.crt"));
}

TEST_F(InClusterConfigTest, BracketsIpv6) {
  Set("fd00::1", "6443");
  const auto config = InClusterConfig(dir_.path());
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(config->server, "https://[fd00::1]:6443");
}

TEST_F(InClusterConfigTest, SaysWhatIsMissing) {
  EXPECT_THAT(InClusterConfig(dir_.File("none")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("none/token")));
  Set("10.96.0.1", nullptr);
  EXPECT_THAT(InClusterConfig(dir_.path()), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                     HasSubstr("KUBERNETES_SERVICE_PORT")));
}

}  // namespace
}  // namespace ascend::kube
