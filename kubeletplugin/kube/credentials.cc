#include "kubeletplugin/kube/credentials.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/runtime/logging.h"

namespace ascend::kube {
namespace {

// A line break in a token would let it add headers to our requests.
bool IsHeaderSafe(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return absl::ascii_isgraph(c); });
}

}  // namespace

FileText::FileText(std::string path, std::string fixed)
    : path_(std::move(path)), text_(path_.empty() ? std::move(fixed) : std::string()) {}

absl::StatusOr<bool> FileText::Refresh(bool force) {
  if (path_.empty()) return false;
  // Stamp first, then read: a replacement in between is then noticed next time.
  struct stat info;
  if (::stat(path_.c_str(), &info) != 0) return ErrnoToStatus(errno, path_);
  const int64_t modified_ns =
      static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (!force && read_ && info.st_ino == inode_ && info.st_size == size_ &&
      modified_ns == modified_ns_) {
    return false;
  }
  ASCEND_ASSIGN_OR_RETURN(std::string text, ReadFile(path_));
  text = std::string(absl::StripAsciiWhitespace(text));
  if (text.empty()) return absl::FailedPreconditionError(absl::StrCat(path_, " is empty"));
  read_ = true;
  inode_ = info.st_ino;
  size_ = info.st_size;
  modified_ns_ = modified_ns;
  if (text == text_) return false;
  text_ = std::move(text);
  return true;
}

Credentials::Credentials(const ConnectionConfig& config)
    : token_(config.token_file, std::string(absl::StripAsciiWhitespace(config.token))),
      // As in a kubeconfig: data goes before a file.
      ca_(config.ca_data.empty() ? config.ca_file : "", config.ca_data),
      certificate_(config.client_certificate_data.empty() ? config.client_certificate_file : "",
                   config.client_certificate_data),
      key_(config.client_key_data.empty() ? config.client_key_file : "", config.client_key_data) {}

absl::StatusOr<Credentials> Credentials::Load(const ConnectionConfig& config) {
  Credentials credentials(config);
  ASCEND_RETURN_IF_ERROR(credentials.token_.Refresh().status()).With("token");
  ASCEND_RETURN_IF_ERROR(credentials.ca_.Refresh().status()).With("certificate authority");
  ASCEND_RETURN_IF_ERROR(credentials.certificate_.Refresh().status()).With("client certificate");
  ASCEND_RETURN_IF_ERROR(credentials.key_.Refresh().status()).With("client key");
  if (credentials.certificate_.text().empty() != credentials.key_.text().empty()) {
    return absl::InvalidArgumentError("client certificate and client key need each other");
  }
  if (!IsHeaderSafe(credentials.token_.text())) {
    return absl::InvalidArgumentError("token: holds white space or control characters");
  }
  return credentials;
}

void Credentials::Refresh() {
  absl::Status status = token_.Refresh().status();
  for (FileText* text : {&ca_, &certificate_, &key_}) {
    absl::StatusOr<bool> changed = text->Refresh();
    status.Update(changed.status());
    if (changed.ok() && *changed) ++tls_generation_;
  }
  Report(status);
}

bool Credentials::ReloadToken() {
  if (!token_.from_file()) return false;
  Report(token_.Refresh(/*force=*/true).status());
  return true;
}

void Credentials::Report(const absl::Status& status) {
  if (!status.ok() && !reported_) {
    LogWarning("credential file cannot be read, using its last content", {{"error", status}});
  }
  reported_ = !status.ok();
}

std::string Credentials::Authorization() const {
  const std::string& token = token_.text();
  if (token.empty() || !IsHeaderSafe(token)) return "";
  return absl::StrCat("Bearer ", token);
}

}  // namespace ascend::kube
