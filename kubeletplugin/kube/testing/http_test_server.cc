#include "kubeletplugin/kube/testing/http_test_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ascend::kube {
namespace {

void Check(bool ok) {
  if (!ok) std::abort();  // the tests' own set-up is broken
}

template <typename Object, typename Read>
Object* FromPem(const std::string& pem, Read read) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  Object* object = read(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  Check(object != nullptr);
  return object;
}

std::shared_ptr<void> MakeTlsContext(const HttpTestServer::Tls& tls) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  X509* certificate = FromPem<X509>(tls.server.certificate, PEM_read_bio_X509);
  EVP_PKEY* key = FromPem<EVP_PKEY>(tls.server.key, PEM_read_bio_PrivateKey);
  Check(SSL_CTX_use_certificate(context, certificate) == 1);
  Check(SSL_CTX_use_PrivateKey(context, key) == 1);
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (!tls.client_ca.empty()) {
    X509* authority = FromPem<X509>(tls.client_ca, PEM_read_bio_X509);
    Check(X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority) == 1);
    X509_free(authority);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return {context, [](void* c) { SSL_CTX_free(static_cast<SSL_CTX*>(c)); }};
}

}  // namespace

class HttpTestServer::Peer : public HttpTestServer::Connection {
 public:
  Peer(UniqueFd fd, int number) : fd_(std::move(fd)), number_(number) {}
  ~Peer() override {
    if (ssl_ != nullptr) SSL_free(ssl_);
  }

  int number() const { return number_; }

  bool StartTls(SSL_CTX* context) {
    ssl_ = SSL_new(context);
    SSL_set_fd(ssl_, fd_.get());
    return SSL_accept(ssl_) == 1;
  }

  // Makes every read and write end; from any thread.
  void Shutdown() { ::shutdown(fd_.get(), SHUT_RDWR); }

  // False when the connection ended.
  bool Fill() {
    char buffer[16 << 10];
    const ssize_t size = ssl_ != nullptr ? SSL_read(ssl_, buffer, sizeof(buffer))
                                         : ::recv(fd_.get(), buffer, sizeof(buffer), 0);
    if (size <= 0) return false;
    input_.append(buffer, size);
    return true;
  }

  bool ReadRequest(Request* request) {
    size_t end;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (closed_ || !Fill()) return false;
    }
    const std::string head = input_.substr(0, end);
    input_.erase(0, end + 4);
    size_t start = head.find("\r\n");
    const std::string line = head.substr(0, start);
    const size_t space = line.find(' ');
    request->method = line.substr(0, space);
    request->target = line.substr(space + 1, line.rfind(' ') - space - 1);
    while (start != std::string::npos) {
      const size_t next = head.find("\r\n", start + 2);
      const std::string header = head.substr(start + 2, next - start - 2);
      const size_t colon = header.find(':');
      request->headers[absl::AsciiStrToLower(header.substr(0, colon))] =
          std::string(absl::StripAsciiWhitespace(header.substr(colon + 1)));
      start = next;
    }
    size_t length = 0;
    if (const auto it = request->headers.find("content-length"); it != request->headers.end()) {
      Check(absl::SimpleAtoi(it->second, &length));
    }
    while (input_.size() < length) {
      if (!Fill()) return false;
    }
    request->body = input_.substr(0, length);
    input_.erase(0, length);
    return true;
  }

  void Reply(int status, absl::string_view body, const std::vector<std::string>& headers) override {
    std::string head = absl::StrCat("HTTP/1.1 ", status, " X\r\nContent-Type: application/json\r\n",
                                    "Content-Length: ", body.size(), "\r\n");
    for (const std::string& header : headers) absl::StrAppend(&head, header, "\r\n");
    Write(absl::StrCat(head, "\r\n", body));
  }
  void Write(absl::string_view bytes) override {
    while (!bytes.empty() && !closed_) {
      const ssize_t size = ssl_ != nullptr
                               ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                               : ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return Close();
      bytes.remove_prefix(size);
    }
  }
  void BeginChunked(int status) override {
    Write(absl::StrCat("HTTP/1.1 ", status,
                       " X\r\nContent-Type: application/json\r\nTransfer-Encoding: "
                       "chunked\r\n\r\n"));
  }
  void WriteChunk(absl::string_view data) override {
    Write(absl::StrCat(absl::Hex(data.size()), "\r\n", data, "\r\n"));
  }
  void EndChunked() override { Write("0\r\n\r\n"); }
  void Close() override {
    closed_ = true;
    Shutdown();
  }
  void Reset() override {
    const linger abort = {1, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
    closed_ = true;
    reset_ = true;
  }
  void WaitForHangUp() override {
    while (Fill()) {
    }
    closed_ = true;
  }

  bool closed() const { return closed_; }
  // Its thread is done with it.
  void Finish() {
    if (!reset_) Shutdown();
  }

 private:
  const UniqueFd
      fd_;  // closed only after the peer left the server's list: Shutdown() may come late
  const int number_;
  SSL* ssl_ = nullptr;
  std::string input_;
  bool closed_ = false;
  bool reset_ = false;
};

HttpTestServer::HttpTestServer(Handler handler, const Tls* tls) : handler_(std::move(handler)) {
  if (tls != nullptr) tls_context_ = MakeTlsContext(*tls);
  listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Check(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  Check(::listen(listener_.get(), 128) == 0);
  socklen_t size = sizeof(address);
  Check(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpTestServer::~HttpTestServer() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    for (const auto& peer : peers_) peer->Shutdown();
    threads.swap(threads_);
  }
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads) thread.join();
}

std::string HttpTestServer::url() const {
  return absl::StrCat(tls_context_ ? "https" : "http", "://127.0.0.1:", port_);
}

void HttpTestServer::DropConnections() {
  MutexLock lock(&mutex_);
  for (const auto& peer : peers_) peer->Shutdown();
}

void HttpTestServer::Accept() {
  while (true) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    MutexLock lock(&mutex_);
    if (stopping_) return;
    auto peer = std::make_shared<Peer>(std::move(fd), ++accepted_);
    peers_.push_back(peer);
    threads_.emplace_back([this, peer = std::move(peer)]() mutable {
      Serve(*peer);
      peer->Finish();
      MutexLock list_lock(&mutex_);
      std::erase(peers_, peer);
      peer.reset();  // the last owner: closes the socket, with a reset if one was asked for
    });
  }
}

void HttpTestServer::Serve(Peer& peer) {
  sigset_t pipe;  // OpenSSL's writes raise it when the client is gone
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  if (tls_context_ && !peer.StartTls(static_cast<SSL_CTX*>(tls_context_.get()))) return;
  while (!peer.closed()) {
    Request request;
    if (!peer.ReadRequest(&request)) return;
    request.connection = peer.number();
    request.number = ++requests_;
    handler_(request, peer);
  }
}

}  // namespace ascend::kube
