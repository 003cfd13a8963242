// A scriptable HTTP/1.1 server on a loopback port, one thread per connection: it can answer well,
// badly, late, in pieces or not at all.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_HTTP_TEST_SERVER_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_HTTP_TEST_SERVER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "base/core/mutex.h"
#include "base/core/unique_fd.h"
#include "kubeletplugin/kube/testing/test_certificates.h"

namespace ascend::kube {

class HttpTestServer {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
    int connection = 0;  // 1 = the first one accepted
    int number = 0;      // 1 = the first request of the server
  };

  // The connection that a request came on. After the handler returned, the next request is read
  // from it, unless it was closed.
  class Connection {
   public:
    virtual ~Connection() = default;
    // A whole answer. `headers` like "Retry-After: 7".
    virtual void Reply(int status, absl::string_view body,
                       const std::vector<std::string>& headers = {}) = 0;
    // Bytes as they are.
    virtual void Write(absl::string_view bytes) = 0;
    // The head of a chunked answer, its chunks, and its end.
    virtual void BeginChunked(int status = 200) = 0;
    virtual void WriteChunk(absl::string_view data) = 0;
    virtual void EndChunked() = 0;
    virtual void Close() = 0;  // FIN
    virtual void Reset() = 0;  // RST
    // Blocks until the client hangs up or the server stops.
    virtual void WaitForHangUp() = 0;
  };

  // Runs on the connection's thread.
  using Handler = std::function<void(const Request&, Connection&)>;

  struct Tls {
    TestIdentity server;
    std::string client_ca;  // PEM; not empty = clients must show a certificate of it
  };

  explicit HttpTestServer(Handler handler, const Tls* tls = nullptr);
  ~HttpTestServer();
  HttpTestServer(const HttpTestServer&) = delete;
  HttpTestServer& operator=(const HttpTestServer&) = delete;

  std::string url() const;
  int port() const { return port_; }
  int accepted() const { return accepted_; }  // connections
  int requests() const { return requests_; }

  // Closes every connection that is open, as an idle time-out or a restart does.
  void DropConnections();

 private:
  class Peer;
  void Accept();
  void Serve(Peer& peer);

  const Handler handler_;
  std::shared_ptr<void> tls_context_;
  UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::atomic<int> requests_ = 0;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Peer>> peers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_TESTING_HTTP_TEST_SERVER_H_
