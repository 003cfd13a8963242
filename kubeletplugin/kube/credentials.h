// What proves who we are to the API server, and the server to us, kept up to date with the files
// that it comes from.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_CREDENTIALS_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_CREDENTIALS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kubeletplugin/kube/rest_client.h"

namespace ascend::kube {

// One text that is either fixed or the content of a file. Not thread-safe.
class FileText {
 public:
  // An empty `path` means the fixed text.
  FileText(std::string path, std::string fixed);

  const std::string& text() const { return text_; }
  bool from_file() const { return !path_.empty(); }

  // Reads the file if it looks different from last time: other inode, size or modification time,
  // which also covers the symlink swap by which a kubelet rotates a projected volume. `force` reads
  // it in any case. If that fails, the last text stays. Returns whether the text changed.
  absl::StatusOr<bool> Refresh(bool force = false);

 private:
  const std::string path_;
  std::string text_;
  bool read_ = false;
  ino_t inode_ = 0;
  off_t size_ = 0;
  int64_t modified_ns_ = 0;
};

// Not thread-safe: belongs to the thread that sends the requests.
class Credentials {
 public:
  // Fails if a file of `config` cannot be read now.
  static absl::StatusOr<Credentials> Load(const ConnectionConfig& config);

  // Looks at the files. One that cannot be read any more is logged once and its last text is used.
  void Refresh();
  // Reads the token again, changed or not. False if there is no file to read.
  bool ReloadToken();

  // "Bearer ..." or empty.
  std::string Authorization() const;
  const std::string& ca() const { return ca_.text(); }
  const std::string& client_certificate() const { return certificate_.text(); }
  const std::string& client_key() const { return key_.text(); }
  // Grows whenever ca, client_certificate or client_key changes; starts at 1.
  uint64_t tls_generation() const { return tls_generation_; }

 private:
  explicit Credentials(const ConnectionConfig& config);
  void Report(const absl::Status& status);

  FileText token_, ca_, certificate_, key_;
  uint64_t tls_generation_ = 1;
  bool reported_ = false;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_CREDENTIALS_H_
