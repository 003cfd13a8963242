// Certificates made on the spot, valid for an hour.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_TEST_CERTIFICATES_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_TEST_CERTIFICATES_H_

#include <memory>
#include <string>

namespace ascend::kube {

struct TestIdentity {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& common_name);
  ~TestAuthority();

  std::string certificate() const;  // PEM
  // `alternative_names` in OpenSSL's form: "IP:127.0.0.1,DNS:api.example"; empty = none.
  TestIdentity Issue(const std::string& common_name, const std::string& alternative_names) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_TEST_CERTIFICATES_H_
