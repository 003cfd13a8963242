#include "test/sim/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "base/core/unique_fd.h"

namespace ascend::sim {
namespace {

constexpr size_t kMaxHeaderBytes = 64 << 10;
constexpr size_t kMaxBodyBytes = 16 << 20;

std::string PercentDecode(absl::string_view text, bool plus_is_space) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && absl::ascii_isxdigit(text[i + 1]) &&
        absl::ascii_isxdigit(text[i + 2])) {
      out += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

// Reads requests from one connection, keeping what arrived beyond the current one.
class RequestReader {
 public:
  explicit RequestReader(int fd) : fd_(fd) {}

  // False at the end of the connection and on anything that is not HTTP.
  bool Read(HttpRequest* request, bool* keep_alive) {
    size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (buffer_.size() > kMaxHeaderBytes || !Fill()) return false;
    }
    const std::string head = buffer_.substr(0, end);
    buffer_.erase(0, end + 4);
    std::vector<std::string> lines = absl::StrSplit(head, "\r\n");
    std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
    if (words.size() != 3) return false;
    request->method = words[0];
    std::pair<std::string, std::string> target = absl::StrSplit(words[1], absl::MaxSplits('?', 1));
    request->path = PercentDecode(target.first, false);
    request->raw_query = target.second;
    for (absl::string_view pair : absl::StrSplit(target.second, '&', absl::SkipEmpty())) {
      std::pair<std::string, std::string> kv = absl::StrSplit(pair, absl::MaxSplits('=', 1));
      request->query[PercentDecode(kv.first, true)] = PercentDecode(kv.second, true);
    }
    for (size_t i = 1; i < lines.size(); ++i) {
      std::pair<std::string, std::string> kv = absl::StrSplit(lines[i], absl::MaxSplits(':', 1));
      request->headers[absl::AsciiStrToLower(kv.first)] =
          std::string(absl::StripAsciiWhitespace(kv.second));
    }
    *keep_alive =
        words[2] == "HTTP/1.1" && absl::AsciiStrToLower(request->headers["connection"]) != "close";
    return ReadBody(request);
  }

 private:
  bool ReadBody(HttpRequest* request) {
    if (absl::AsciiStrToLower(request->headers["expect"]) == "100-continue") {
      static constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";
      if (::send(fd_, kContinue, sizeof(kContinue) - 1, MSG_NOSIGNAL) < 0) return false;
    }
    if (absl::AsciiStrToLower(request->headers["transfer-encoding"]) == "chunked") {
      for (;;) {
        std::string line;
        if (!ReadLine(&line)) return false;
        uint64_t size;
        if (!absl::SimpleHexAtoi(line, &size) || size > kMaxBodyBytes) return false;
        std::string chunk;
        if (!ReadExactly(size + 2, &chunk)) return false;
        if (size == 0) return true;
        request->body.append(chunk, 0, size);
        if (request->body.size() > kMaxBodyBytes) return false;
      }
    }
    const std::string& length = request->headers["content-length"];
    if (length.empty()) return true;
    uint64_t size;
    if (!absl::SimpleAtoi(length, &size) || size > kMaxBodyBytes) return false;
    return ReadExactly(size, &request->body);
  }

  bool ReadLine(std::string* line) {
    size_t end;
    while ((end = buffer_.find("\r\n")) == std::string::npos) {
      if (!Fill()) return false;
    }
    *line = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return true;
  }

  bool ReadExactly(size_t size, std::string* out) {
    while (buffer_.size() < size) {
      if (!Fill()) return false;
    }
    *out = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return true;
  }

  bool Fill() {
    char chunk[16384];
    ssize_t n;
    do {
      n = ::recv(fd_, chunk, sizeof(chunk), 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    buffer_.append(chunk, static_cast<size_t>(n));
    return true;
  }

  const int fd_;
  std::string buffer_;
};

}  // namespace

bool HttpResponder::WriteAll(absl::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      keep_alive_ = false;
      return false;
    }
    data.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

void HttpResponder::Send(int status, const std::string& body, const Headers& headers) {
  // The reason phrase means nothing to clients; Kubernetes puts its own into the body.
  std::string head =
      absl::StrCat("HTTP/1.1 ", status, " Status\r\nContent-Length: ", body.size(), "\r\n");
  if (headers.count("Content-Type") == 0) head += "Content-Type: application/json\r\n";
  for (const auto& [name, value] : headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  if (!keep_alive_) head += "Connection: close\r\n";
  WriteAll(absl::StrCat(head, "\r\n", body));
}

void HttpResponder::Cut(int status, const std::string& body) {
  WriteAll(absl::StrCat("HTTP/1.1 ", status, " Status\r\nContent-Type: application/json\r\n",
                        "Content-Length: ", body.size(), "\r\n\r\n",
                        body.substr(0, body.size() / 2)));
  keep_alive_ = false;
}

bool HttpResponder::StartStream(int status) {
  return WriteAll(absl::StrCat("HTTP/1.1 ", status, " Status\r\nContent-Type: application/json\r\n",
                               "Transfer-Encoding: chunked\r\n\r\n"));
}

bool HttpResponder::Write(absl::string_view data) {
  return WriteAll(absl::StrCat(absl::Hex(data.size()), "\r\n", data, "\r\n"));
}

void HttpResponder::EndStream() { WriteAll("0\r\n\r\n"); }

void HttpResponder::CutStream(absl::string_view data) {
  WriteAll(absl::StrCat(absl::Hex(data.size()), "\r\n", data.substr(0, data.size() / 2)));
  keep_alive_ = false;
}

bool HttpResponder::ClientGone() const {
  pollfd poll_fd = {.fd = fd_, .events = POLLRDHUP, .revents = 0};
  return ::poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

class HttpServer::Impl {
 public:
  Impl(UniqueFd listener, int port, Handler handler)
      : listener_(std::move(listener)), port_(port), handler_(std::move(handler)) {
    acceptor_ = std::thread([this] { AcceptLoop(); });
  }

  ~Impl() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      for (Connection& connection : connections_) ::shutdown(connection.fd.get(), SHUT_RDWR);
    }
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (Connection& connection : connections_) connection.thread.join();
  }

  int port() const { return port_; }

 private:
  struct Connection {
    UniqueFd fd;
    std::thread thread;
    std::atomic<bool> done = false;
  };

  void AcceptLoop() {
    for (;;) {
      UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
      MutexLock lock(&mutex_);
      if (!fd.valid() || stopping_) return;
      const int one = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
      for (auto it = connections_.begin(); it != connections_.end();) {
        if (it->done) {
          it->thread.join();
          it = connections_.erase(it);
        } else {
          ++it;
        }
      }
      Connection& connection = connections_.emplace_back();
      connection.fd = std::move(fd);
      connection.thread = std::thread([this, &connection] { Serve(connection); });
    }
  }

  void Serve(Connection& connection) {
    RequestReader reader(connection.fd.get());
    bool keep_alive = true;
    while (keep_alive) {
      HttpRequest request;
      if (!reader.Read(&request, &keep_alive)) break;
      HttpResponder responder(connection.fd.get(), keep_alive);
      handler_(request, responder);
      keep_alive = responder.keep_alive();
    }
    // The descriptor is closed when the entry is reaped; the peer learns it now.
    ::shutdown(connection.fd.get(), SHUT_RDWR);
    connection.done = true;
  }

  const UniqueFd listener_;
  const int port_;
  const Handler handler_;
  std::thread acceptor_;
  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Connection> connections_;  // changed by the acceptor, under mutex_
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return impl_->port(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Handler handler) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener.valid()) return ErrnoToStatus(errno, "socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), 128) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return ErrnoToStatus(errno, "listen on 127.0.0.1");
  }
  auto impl =
      std::make_unique<Impl>(std::move(listener), ntohs(address.sin_port), std::move(handler));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

}  // namespace ascend::sim
