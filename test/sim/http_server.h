// A small HTTP/1.1 server that can also misbehave: cut an answer in the middle, stay silent, drop
// the connection. One thread per connection; for tests on the loopback interface.
#ifndef ASCEND_DRA_TEST_SIM_HTTP_SERVER_H_
#define ASCEND_DRA_TEST_SIM_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ascend::sim {

struct HttpRequest {
  std::string method;
  std::string path;                          // percent-decoded, without the query
  std::map<std::string, std::string> query;  // decoded
  std::string raw_query;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Answers one request; every handler calls exactly one of Send, Cut, Drop, or StartStream first.
class HttpResponder {
 public:
  using Headers = std::map<std::string, std::string>;

  HttpResponder(int fd, bool keep_alive) : fd_(fd), keep_alive_(keep_alive) {}
  HttpResponder(const HttpResponder&) = delete;
  HttpResponder& operator=(const HttpResponder&) = delete;

  void Send(int status, const std::string& body, const Headers& headers = {});
  // Announces the whole body, sends half of it and closes the connection.
  void Cut(int status, const std::string& body);
  // Closes the connection without an answer.
  void Drop() { keep_alive_ = false; }

  // A chunked answer of unknown length. Write returns false when the client is gone.
  bool StartStream(int status);
  bool Write(absl::string_view data);
  void EndStream();
  // Ends a stream in the middle of a chunk.
  void CutStream(absl::string_view data);

  bool ClientGone() const;
  bool keep_alive() const { return keep_alive_; }

 private:
  bool WriteAll(absl::string_view data);

  const int fd_;
  bool keep_alive_;
};

class HttpServer {
 public:
  // `handler` runs on many threads at once. It must return soon after Stop was announced to it by
  // its owner: the destructor closes all sockets and waits for running handlers.
  using Handler = std::function<void(const HttpRequest&, HttpResponder&)>;
  // Listens on 127.0.0.1, on a port that the system chooses.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_HTTP_SERVER_H_
