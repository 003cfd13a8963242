// The simplest HTTP client that shows what a server really sent: one connection per request.
#ifndef ASCEND_DRA_TEST_SIM_TEST_CLIENT_H_
#define ASCEND_DRA_TEST_SIM_TEST_CLIENT_H_

#include <optional>
#include <string>

#include "base/core/unique_fd.h"
#include "nlohmann/json.hpp"

namespace ascend::sim {

struct TestResponse {
  int status = 0;         // 0 = the connection ended before an answer
  std::string head;       // status line and headers
  std::string body;       // as far as it came, chunks joined
  bool complete = false;  // false: the connection ended in the middle of the body
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
};

// One request whose answer is read bit by bit.
class TestStream {
 public:
  TestStream(int port, const std::string& method, const std::string& target,
             const std::string& body = "", const std::string& headers = "");
  // The next line of a streamed body; nothing at its end, complete or not.
  std::optional<nlohmann::json> NextLine();
  TestResponse ReadAll();

 private:
  bool Fill();
  bool ReadHead();
  bool ReadChunk();

  UniqueFd fd_;
  std::string raw_;  // received, not yet used
  TestResponse response_;
  std::string lines_;  // decoded body that NextLine has not given yet
};

TestResponse Send(int port, const std::string& method, const std::string& target,
                  const nlohmann::json& body = nullptr, const std::string& headers = "");

}  // namespace ascend::sim

#endif  // ASCEND_DRA_TEST_SIM_TEST_CLIENT_H_
