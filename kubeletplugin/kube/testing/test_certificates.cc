#include "kubeletplugin/kube/testing/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdlib>

namespace ascend::kube {
namespace {

struct Deleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Bio = std::unique_ptr<BIO, Deleter>;
using Key = std::unique_ptr<EVP_PKEY, Deleter>;
using Certificate = std::unique_ptr<X509, Deleter>;

void Check(bool ok) {
  if (!ok) std::abort();  // no test can go on without certificates
}

std::string Content(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, size);
}

std::string Pem(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  Check(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return Content(bio);
}

std::string Pem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  Check(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return Content(bio);
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  Check(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Without an issuer it is self-signed.
Certificate Sign(EVP_PKEY* key, const std::string& common_name, X509* issuer, EVP_PKEY* issuer_key,
                 long serial) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate.get(), issuer == nullptr ? name : X509_get_subject_name(issuer));
  if (issuer == nullptr) {
    AddExtension(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
    Check(X509_sign(certificate.get(), issuer_key, EVP_sha256()) != 0);
  }
  return certificate;
}

}  // namespace

struct TestAuthority::Impl {
  explicit Impl(const std::string& common_name)
      : key(EVP_EC_gen("P-256")),
        certificate(Sign(key.get(), common_name, nullptr, key.get(), 1)) {}

  const Key key;
  const Certificate certificate;
  long last_serial = 1;
};

TestAuthority::TestAuthority(const std::string& common_name)
    : impl_(std::make_unique<Impl>(common_name)) {}
TestAuthority::~TestAuthority() = default;

std::string TestAuthority::certificate() const { return Pem(impl_->certificate.get()); }

TestIdentity TestAuthority::Issue(const std::string& common_name,
                                  const std::string& alternative_names) const {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = Sign(key.get(), common_name, impl_->certificate.get(),
                                       impl_->key.get(), ++impl_->last_serial);
  if (!alternative_names.empty()) {
    AddExtension(certificate.get(), impl_->certificate.get(), NID_subject_alt_name,
                 alternative_names);
  }
  Check(X509_sign(certificate.get(), impl_->key.get(), EVP_sha256()) != 0);
  return {Pem(certificate.get()), Pem(key.get())};
}

}  // namespace ascend::kube
