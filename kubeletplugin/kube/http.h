// HTTP/1.1 to one server: blocking requests and streams of lines, all on one thread and on kept
// connections. Knows nothing of Kubernetes but the bearer token.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_HTTP_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_HTTP_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kubeletplugin/kube/rest_client.h"

namespace ascend::kube {

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // path and query, escaped
  std::string body;    // JSON; empty = none
  std::string content_type = "application/json";

  // "GET /api/v1/nodes/n1": for messages, without the query.
  std::string Name() const;
};

struct HttpResponse {
  int status = 0;
  std::string body;
  std::optional<absl::Duration> retry_after;

  bool ok() const { return status >= 200 && status < 300; }
};

struct HttpLimits {
  size_t max_body = 16 << 20;
  size_t max_line = 8 << 20;
  int parallel_requests = 16;  // more of them wait for their turn; streams do not count
  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration stream_header_timeout = absl::Seconds(30);
};

struct HttpStreamHandler {
  // For each line of a 2xx answer. An error ends the stream with it.
  std::function<absl::Status(absl::string_view line)> on_line;
  // Exactly once, unless the stream is destroyed first. The response of a 2xx answer has no body:
  // its lines were delivered. kUnavailable if the connection broke, also in the middle of a line.
  std::function<void(absl::StatusOr<HttpResponse>)> on_end;
};

// Destroying it ends the stream at once and waits for a running callback, unless it is destroyed
// by that callback. May outlive the engine.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
};

// Thread-safe. A request that finds its kept connection dead before any byte of the answer came is
// sent again on a new one, whatever its method: a POST that was carried out by a server which died
// before it answered then meets its own object. A 401 is answered by reading the token file again
// and one more try. Nothing else is retried.
class HttpEngine {
 public:
  static absl::StatusOr<std::unique_ptr<HttpEngine>> Start(const ConnectionConfig& config,
                                                           std::string user_agent,
                                                           const HttpLimits& limits = {});
  // As Shutdown().
  ~HttpEngine();
  HttpEngine(const HttpEngine&) = delete;
  HttpEngine& operator=(const HttpEngine&) = delete;

  // Ends every request and stream with kCancelled, waits for their callers and callbacks, and takes
  // no more. Must not be called from a callback.
  void Shutdown();

  // Any HTTP answer is a success. kUnavailable: no connection or a broken one; kDeadlineExceeded;
  // kInternal: an answer beyond the limits or that is not HTTP; kCancelled. Not from a callback.
  absl::StatusOr<HttpResponse> Send(HttpRequest request, absl::Duration timeout);

  // kDeadlineExceeded ends the stream after `max_duration`. Callbacks run on the engine's thread.
  std::unique_ptr<HttpStream> Open(HttpRequest request, absl::Duration max_duration,
                                   HttpStreamHandler handler);

 private:
  class Core;
  class StreamImpl;
  explicit HttpEngine(std::shared_ptr<Core> core);
  const std::shared_ptr<Core> core_;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_HTTP_H_
