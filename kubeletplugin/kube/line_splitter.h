// Cuts a stream of bytes into lines, however the bytes arrive.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_LINE_SPLITTER_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_LINE_SPLITTER_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ascend::kube {

class LineSplitter {
 public:
  explicit LineSplitter(size_t max_line) : max_line_(max_line) {}

  // Calls `on_line` (absl::string_view -> absl::Status) for each line that `data` completes,
  // without its end; empty lines are left out. Stops at the first error. kInternal if a line grows
  // beyond the limit.
  template <typename OnLine>
  absl::Status Feed(absl::string_view data, OnLine&& on_line) {
    while (true) {
      const size_t end = data.find('\n');
      const absl::string_view part = data.substr(0, end);
      if (part.size() > max_line_ - pending_.size()) {
        return absl::InternalError(absl::StrCat("a line is longer than ", max_line_, " bytes"));
      }
      if (end == absl::string_view::npos) {
        pending_.append(part.data(), part.size());
        return absl::OkStatus();
      }
      data.remove_prefix(end + 1);
      absl::Status status;
      if (pending_.empty()) {
        status = Emit(part, on_line);
      } else {
        pending_.append(part.data(), part.size());
        status = Emit(pending_, on_line);
        pending_.clear();
      }
      if (!status.ok()) return status;
    }
  }

  // Whether bytes of an unfinished line are held.
  bool HasPartialLine() const { return !pending_.empty(); }
  void Reset() { pending_.clear(); }

 private:
  template <typename OnLine>
  static absl::Status Emit(absl::string_view line, OnLine& on_line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line.empty() ? absl::OkStatus() : on_line(line);
  }

  const size_t max_line_;
  std::string pending_;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_LINE_SPLITTER_H_
