#include "test/sim/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace ascend::sim {

TestStream::TestStream(int port, const std::string& method, const std::string& target,
                       const std::string& body, const std::string& headers)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request =
      absl::StrCat(method, " ", target, " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n", headers,
                   "Content-Length: ", body.size(), "\r\n\r\n", body);
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    fd_.Reset();
  }
}

bool TestStream::Fill() {
  char chunk[8192];
  const ssize_t n = ::recv(fd_.get(), chunk, sizeof(chunk), 0);
  if (n <= 0) return false;
  raw_.append(chunk, static_cast<size_t>(n));
  return true;
}

bool TestStream::ReadHead() {
  if (response_.status != 0) return true;
  size_t end;
  while ((end = raw_.find("\r\n\r\n")) == std::string::npos) {
    if (!Fill()) return false;
  }
  response_.head = raw_.substr(0, end + 2);
  raw_.erase(0, end + 4);
  response_.status = std::atoi(response_.head.substr(9, 3).c_str());
  return true;
}

bool TestStream::ReadChunk() {
  size_t end;
  while ((end = raw_.find("\r\n")) == std::string::npos) {
    if (!Fill()) return false;
  }
  const size_t size = std::strtoul(raw_.c_str(), nullptr, 16);
  while (raw_.size() < end + 2 + size + 2) {
    if (!Fill()) return false;
  }
  response_.complete = size == 0;
  lines_ += raw_.substr(end + 2, size);
  raw_.erase(0, end + 2 + size + 2);
  return size > 0;
}

std::optional<nlohmann::json> TestStream::NextLine() {
  if (!ReadHead()) return std::nullopt;
  size_t end;
  while ((end = lines_.find('\n')) == std::string::npos) {
    if (!ReadChunk()) return std::nullopt;
  }
  nlohmann::json line = nlohmann::json::parse(lines_.substr(0, end), nullptr, false);
  lines_.erase(0, end + 1);
  return line;
}

TestResponse TestStream::ReadAll() {
  if (!ReadHead()) return response_;
  const size_t length = response_.head.find("Content-Length: ");
  if (length == std::string::npos) {
    while (ReadChunk()) {
    }
    response_.body = lines_;
    return response_;
  }
  const size_t size = std::strtoul(response_.head.c_str() + length + 16, nullptr, 10);
  while (raw_.size() < size && Fill()) {
  }
  response_.body = raw_;
  response_.complete = raw_.size() == size;
  return response_;
}

TestResponse Send(int port, const std::string& method, const std::string& target,
                  const nlohmann::json& body, const std::string& headers) {
  return TestStream(port, method, target, body.is_null() ? "" : body.dump(), headers).ReadAll();
}

}  // namespace ascend::sim
