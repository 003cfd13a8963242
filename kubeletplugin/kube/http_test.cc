#include "kubeletplugin/kube/http.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/kube/testing/http_test_server.h"
#include "kubeletplugin/kube/testing/inbox.h"

namespace ascend::kube {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Le;

using Request = HttpTestServer::Request;
using Connection = HttpTestServer::Connection;

constexpr absl::Duration kLong = absl::Seconds(20);
constexpr absl::Duration kShort = absl::Milliseconds(50);

std::unique_ptr<HttpEngine> Start(ConnectionConfig config, const HttpLimits& limits = {}) {
  auto engine = HttpEngine::Start(config, "test/1", limits);
  EXPECT_THAT(engine, IsOk());
  return engine.ok() ? *std::move(engine) : nullptr;
}

std::unique_ptr<HttpEngine> Start(const HttpTestServer& server, const HttpLimits& limits = {}) {
  return Start({.server = server.url()}, limits);
}

HttpRequest Get(std::string target) { return {.target = std::move(target)}; }

auto HasStatus(int status) { return IsOkAndHolds(Field(&HttpResponse::status, status)); }
auto HasBody(const std::string& body) { return IsOkAndHolds(Field(&HttpResponse::body, body)); }

void Echo(const Request& request, Connection& connection) { connection.Reply(200, request.target); }

// --- requests ---

TEST(HttpEngineTest, SendsMethodTargetHeadersAndBody) {
  Inbox<Request> seen;
  HttpTestServer server([&](const Request& request, Connection& connection) {
    seen.Put(request);
    connection.Reply(201, "{}");
  });
  const auto engine = Start({.server = server.url() + "/prefix/", .token = " abc\n"});
  EXPECT_THAT(engine->Send({.method = "PUT", .target = "/a?b=c", .body = "{\"x\":1}"}, kLong),
              HasStatus(201));
  Request request = *seen.Take();
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/prefix/a?b=c");
  EXPECT_EQ(request.body, "{\"x\":1}");
  EXPECT_EQ(request.headers["authorization"], "Bearer abc");
  EXPECT_EQ(request.headers["accept"], "application/json");
  EXPECT_EQ(request.headers["content-type"], "application/json");
  EXPECT_EQ(request.headers["user-agent"], "test/1");

  // The same handle with another method leaves nothing behind.
  EXPECT_THAT(engine->Send(Get("/b/../c"), kLong), HasStatus(201));
  request = *seen.Take();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/prefix/b/../c") << "as it is";
  EXPECT_EQ(request.body, "");
  EXPECT_EQ(request.headers.count("content-type"), 0u);
  EXPECT_THAT(engine->Send({.method = "DELETE", .target = "/d"}, kLong), HasStatus(201));
  EXPECT_EQ(seen.Take()->method, "DELETE");
}

TEST(HttpEngineTest, KeepsItsConnection) {
  HttpTestServer server(Echo);
  const auto engine = Start(server);
  for (int i = 0; i < 200; ++i) {
    const std::string target = absl::StrCat("/", i);
    ASSERT_THAT(engine->Send(Get(target), kLong), HasBody(target));
  }
  EXPECT_EQ(server.accepted(), 1);
}

TEST(HttpEngineTest, AnyHttpStatusIsAnAnswer) {
  HttpTestServer server([](const Request&, Connection& connection) {
    connection.Reply(429, "slow down", {"Retry-After: 7"});
  });
  const auto engine = Start(server);
  const auto response = engine->Send(Get("/"), kLong);
  ASSERT_THAT(response, HasStatus(429));
  EXPECT_EQ(response->body, "slow down");
  EXPECT_EQ(response->retry_after, absl::Seconds(7));
  EXPECT_FALSE(response->ok());
}

TEST(HttpEngineTest, ServesManyCallersOnFewConnections) {
  HttpTestServer server(Echo);
  const auto engine = Start(server, {.parallel_requests = 8});
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string target = absl::StrCat("/", t, "/", i);
        const auto response = engine->Send(Get(target), kLong);
        if (response.ok() && response->body == target) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 640);
  EXPECT_EQ(server.requests(), 640);
  EXPECT_THAT(server.accepted(), Le(8));
}

// --- failures of the connection ---

TEST(HttpEngineTest, ReportsARefusedConnection) {
  std::string url;
  {
    HttpTestServer server(Echo);
    url = server.url();
  }
  const auto engine = Start({.server = url});
  EXPECT_THAT(
      engine->Send(Get("/a?secret"), kLong),
      StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr("GET /a: "), HasSubstr("connect"))));
}

TEST(HttpEngineTest, GivesUpOnAServerThatNeverAnswers) {
  HttpTestServer server([](const Request& request, Connection& connection) {
    if (request.target == "/hang") return connection.WaitForHangUp();
    connection.Reply(200, "");
  });
  const auto engine = Start(server);
  EXPECT_THAT(engine->Send(Get("/hang"), kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "GET /hang: no answer within 50ms"));
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasStatus(200)) << "the next one is not affected";
}

TEST(HttpEngineTest, WaitingForATurnCountsAsTime) {
  HttpTestServer server([](const Request&, Connection& connection) { connection.WaitForHangUp(); });
  const auto engine = Start(server, {.parallel_requests = 1});
  std::thread first([&] {
    EXPECT_THAT(engine->Send(Get("/1"), absl::Milliseconds(200)),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
  });
  EXPECT_THAT(engine->Send(Get("/2"), absl::Milliseconds(200)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  first.join();
  EXPECT_THAT(engine->Send(Get("/3"), absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST(HttpEngineTest, ReportsABodyCutInTheMiddle) {
  HttpTestServer server([](const Request& request, Connection& connection) {
    if (request.target == "/length") {
      connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":");
    } else {
      connection.BeginChunked();
      connection.WriteChunk("{\"half\":");
    }
    connection.Close();
  });
  const auto engine = Start(server);
  EXPECT_THAT(engine->Send(Get("/length"), kLong), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(engine->Send(Get("/chunked"), kLong), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(HttpEngineTest, RefusesAnOversizedBody) {
  HttpTestServer server([](const Request& request, Connection& connection) {
    if (request.target == "/exact") return connection.Reply(200, std::string(100, 'x'));
    if (request.target == "/length") return connection.Reply(200, std::string(101, 'x'));
    connection.BeginChunked();
    for (int i = 0; i < 100; ++i) connection.WriteChunk("xx");
    connection.WaitForHangUp();
  });
  const HttpLimits limits = {.max_body = 100};
  EXPECT_THAT(Start(server, limits)->Send(Get("/exact"), kLong), HasBody(std::string(100, 'x')));
  for (const char* target : {"/length", "/chunked"}) {
    EXPECT_THAT(Start(server, limits)->Send(Get(target), kLong),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("larger than 100 bytes")));
  }
}

TEST(HttpEngineTest, RefusesWhatIsNotHttp) {
  HttpTestServer server([](const Request&, Connection& connection) {
    connection.Write("SSH-2.0-OpenSSH_9.2\r\n");
    connection.Close();
  });
  EXPECT_THAT(Start(server)->Send(Get("/"), kLong), StatusIs(absl::StatusCode::kInternal));
}

// --- kept connections that died ---

class DeadConnectionTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeadConnectionTest, IsReplacedWithoutAnError) {
  // The second request of a connection kills it unanswered.
  std::atomic<int> last_connection = 0;
  HttpTestServer server([&](const Request& request, Connection& connection) {
    if (last_connection.exchange(request.connection) == request.connection) {
      return GetParam() == "FIN" ? connection.Close() : connection.Reset();
    }
    connection.Reply(200, request.body);
  });
  const auto engine = Start(server);
  ASSERT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
  EXPECT_THAT(engine->Send({.method = "POST", .target = "/", .body = "{}"}, kLong), HasBody("{}"));
  EXPECT_EQ(server.accepted(), 3);
}
INSTANTIATE_TEST_SUITE_P(All, DeadConnectionTest, ::testing::Values("FIN", "RST"));

TEST(HttpEngineTest, ReplacesAConnectionThatWasClosedWhileIdle) {
  HttpTestServer server(Echo);
  const auto engine = Start(server);
  for (int i = 1; i <= 3; ++i) {
    ASSERT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
    EXPECT_EQ(server.accepted(), i);
    server.DropConnections();
  }
}

TEST(HttpEngineTest, AFreshConnectionThatDiesIsAnError) {
  HttpTestServer server([](const Request&, Connection& connection) { connection.Close(); });
  EXPECT_THAT(Start(server)->Send(Get("/"), kLong), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(server.requests(), 1);
}

// --- tokens ---

class TokenTest : public ::testing::Test {
 protected:
  void Write(absl::string_view token) { ASSERT_THAT(WriteFileAtomically(path_, token), IsOk()); }
  // Takes only the token `valid_`; after a 401 the file is what `valid_` says.
  HttpTestServer server_{[this](const Request& request, Connection& connection) {
    const auto it = request.headers.find("authorization");
    tokens_.Put(it == request.headers.end() ? "" : it->second);
    if (it != request.headers.end() && it->second == "Bearer " + valid_) {
      return connection.Reply(200, "line\n");
    }
    if (rotate_on_401_) Write(valid_);
    connection.Reply(401, "no");
  }};
  TempDir dir_;
  const std::string path_ = dir_.File("token");
  const std::string valid_ = "new";
  std::atomic<bool> rotate_on_401_ = false;
  Inbox<std::string> tokens_;
};

TEST_F(TokenTest, AChangedFileIsReadBeforeTheNextRequest) {
  Write("old");
  const auto engine = Start({.server = server_.url(), .token_file = path_});
  ASSERT_THAT(engine->Send(Get("/"), kLong), HasStatus(401));
  Write("new\n");
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
  EXPECT_EQ(server_.accepted(), 1) << "on the same connection";
}

TEST_F(TokenTest, A401ReadsTheFileAgainAndRetriesOnce) {
  Write("old");
  rotate_on_401_ = true;
  const auto engine = Start({.server = server_.url(), .token_file = path_});
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasBody("line\n"));
  EXPECT_EQ(tokens_.Take(), "Bearer old");
  EXPECT_EQ(tokens_.Take(), "Bearer new");
}

TEST_F(TokenTest, ASecond401IsFinal) {
  Write("old");
  const auto engine = Start({.server = server_.url(), .token_file = path_});
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasBody("no"));
  EXPECT_EQ(server_.requests(), 2);
}

TEST_F(TokenTest, AFixedTokenIsNotTriedTwice) {
  const auto engine = Start({.server = server_.url(), .token = "old"});
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasStatus(401));
  EXPECT_EQ(server_.requests(), 1);
}

TEST_F(TokenTest, AStreamRetriesToo) {
  Write("old");
  rotate_on_401_ = true;
  const auto engine = Start({.server = server_.url(), .token_file = path_});
  Inbox<std::string> lines;
  Inbox<absl::StatusOr<HttpResponse>> ends;
  const auto stream = engine->Open(Get("/"), kLong,
                                   {.on_line =
                                        [&](absl::string_view line) {
                                          lines.Put(std::string(line));
                                          return absl::OkStatus();
                                        },
                                    .on_end = [&](auto end) { ends.Put(std::move(end)); }});
  EXPECT_EQ(lines.Take(), "line");
  EXPECT_THAT(*ends.Take(), HasStatus(200));
}

TEST_F(TokenTest, AFileThatVanishesLeavesItsLastContent) {
  Write("new");
  const auto engine = Start({.server = server_.url(), .token_file = path_});
  ASSERT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
  Write("a\r\nX-Evil: 1");
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasStatus(401)) << "sent without it";
}

// --- configuration ---

TEST(HttpEngineStartTest, RefusesWhatCannotWork) {
  const auto start = [](const ConnectionConfig& config) {
    return HttpEngine::Start(config, "test/1").status();
  };
  for (const char* url : {"", "10.0.0.1:6443/", "ftp://x", "https://", "https://x:port", "::"}) {
    EXPECT_THAT(start({.server = url}), StatusIs(absl::StatusCode::kInvalidArgument)) << url;
  }
  EXPECT_THAT(start({.server = "http://x", .token_file = "/nonexistent/token"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("token: /nonexistent/token")));
  EXPECT_THAT(start({.server = "http://x", .token = "a b"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token")));
  EXPECT_THAT(start({.server = "https://x", .client_certificate_data = "c"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("need each other")));
  EXPECT_THAT(start({.server = "https://x", .ca_file = "/nonexistent/ca"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("certificate authority: ")));
  EXPECT_THAT(start({.server = "https://x", .tls_server_name = "a b"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("TLS server name")));
}

// --- TLS ---

class TlsTest : public ::testing::Test {
 protected:
  const TestAuthority authority_{"ours"};
  const TestAuthority stranger_{"stranger"};
  const HttpTestServer::Tls tls_ = {
      .server = authority_.Issue("server", "IP:127.0.0.1,DNS:api.example"),
      .client_ca = authority_.certificate()};
  HttpTestServer server_{Echo, &tls_};
  const TestIdentity client_ = authority_.Issue("client", "");
  ConnectionConfig config_ = {.server = server_.url(),
                              .ca_data = authority_.certificate(),
                              .client_certificate_data = client_.certificate,
                              .client_key_data = client_.key};
};

TEST_F(TlsTest, BothSidesProveThemselves) {
  const auto engine = Start(config_);
  for (int i = 0; i < 10; ++i) ASSERT_THAT(engine->Send(Get("/x"), kLong), HasBody("/x"));
  EXPECT_EQ(server_.accepted(), 1);
}

TEST_F(TlsTest, RefusesAServerOfAnotherAuthority) {
  config_.ca_data = stranger_.certificate();
  EXPECT_THAT(Start(config_)->Send(Get("/"), kLong),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("certificate")));
  config_.ca_data.clear();  // the system's
  EXPECT_THAT(Start(config_)->Send(Get("/"), kLong), StatusIs(absl::StatusCode::kUnavailable));
  config_.insecure_skip_tls_verify = true;
  EXPECT_THAT(Start(config_)->Send(Get("/"), kLong), HasStatus(200));
}

TEST_F(TlsTest, IsRefusedWithoutAClientCertificate) {
  config_.client_certificate_data.clear();
  config_.client_key_data.clear();
  EXPECT_THAT(Start(config_)->Send(Get("/"), kLong), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsTest, GarbageAsCertificateIsAnErrorOfTheRequest) {
  config_.client_certificate_data = "garbage";
  EXPECT_THAT(Start(config_)->Send(Get("/"), kLong), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsTest, ChecksTheNameItIsTold) {
  config_.tls_server_name = "api.example";
  EXPECT_THAT(Start(config_)->Send(Get("/x"), kLong), HasBody("/x"));
  config_.tls_server_name = "other.example";
  EXPECT_THAT(Start(config_)->Send(Get("/x"), kLong), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsTest, NewFilesOpenANewConnection) {
  TempDir dir;
  const auto write = [&](const TestIdentity& identity) {
    ASSERT_THAT(WriteFileAtomically(dir.File("crt"), identity.certificate), IsOk());
    ASSERT_THAT(WriteFileAtomically(dir.File("key"), identity.key), IsOk());
  };
  config_.client_certificate_data.clear();
  config_.client_key_data.clear();
  config_.client_certificate_file = dir.File("crt");
  config_.client_key_file = dir.File("key");
  write(client_);
  const auto engine = Start(config_);
  ASSERT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
  write(stranger_.Issue("client", ""));
  EXPECT_THAT(engine->Send(Get("/"), kLong), StatusIs(absl::StatusCode::kUnavailable));
  write(authority_.Issue("client", ""));
  EXPECT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
}

// --- streams ---

class StreamTest : public ::testing::Test {
 protected:
  HttpStreamHandler Handler() {
    return {.on_line =
                [this](absl::string_view line) {
                  lines_.Put(std::string(line));
                  return line == "bad" ? absl::AbortedError("bad line") : absl::OkStatus();
                },
            .on_end = [this](absl::StatusOr<HttpResponse> end) { ends_.Put(std::move(end)); }};
  }
  absl::StatusOr<HttpResponse> End() {
    auto end = ends_.Take();
    return end ? *std::move(end) : absl::StatusOr<HttpResponse>(absl::UnknownError("no end came"));
  }
  std::vector<std::string> Lines(int count) {
    std::vector<std::string> lines;
    while (count-- > 0) lines.push_back(lines_.Take().value_or("nothing"));
    return lines;
  }
  static HttpTestServer::Handler Script(std::function<void(Connection&)> script) {
    return [script = std::move(script)](const Request&, Connection& connection) {
      connection.BeginChunked();
      script(connection);
    };
  }

  Inbox<std::string> lines_;
  Inbox<absl::StatusOr<HttpResponse>> ends_;
};

TEST_F(StreamTest, DeliversLinesThatCameByteByByte) {
  HttpTestServer server(Script([](Connection& connection) {
    for (const char c : absl::string_view("one\ntwo\nthree\n")) {
      connection.WriteChunk(std::string(1, c));
    }
    connection.EndChunked();
  }));
  const auto engine = Start(server);
  const auto stream = engine->Open(Get("/"), kLong, Handler());
  EXPECT_THAT(Lines(3), ElementsAre("one", "two", "three"));
  EXPECT_THAT(End(), HasBody(""));
  EXPECT_EQ(ends_.size(), 0u);
}

TEST_F(StreamTest, RunsBesideRequests) {
  Inbox<bool> go;
  HttpTestServer server([&](const Request& request, Connection& connection) {
    if (request.target != "/stream") return connection.Reply(200, "");
    connection.BeginChunked();
    connection.WriteChunk("a\n");
    go.Take();
    connection.WriteChunk("b\n");
    connection.WaitForHangUp();
  });
  const auto engine = Start(server, {.parallel_requests = 1});
  const auto stream = engine->Open(Get("/stream"), kLong, Handler());
  EXPECT_THAT(Lines(1), ElementsAre("a"));
  for (int i = 0; i < 10; ++i) ASSERT_THAT(engine->Send(Get("/"), kLong), HasStatus(200));
  go.Put(true);
  EXPECT_THAT(Lines(1), ElementsAre("b"));
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(StreamTest, HandsOutTheBodyOfARefusal) {
  HttpTestServer server(
      [](const Request&, Connection& connection) { connection.Reply(410, "gone\nbad\n"); });
  const auto engine = Start(server);
  const auto stream = engine->Open(Get("/"), kLong, Handler());
  const auto end = End();
  ASSERT_THAT(end, HasStatus(410));
  EXPECT_EQ(end->body, "gone\nbad\n");
  EXPECT_EQ(lines_.size(), 0u);
}

TEST_F(StreamTest, ReportsACutConnectionAndACutLine) {
  HttpTestServer cut(Script([](Connection& connection) {
    connection.WriteChunk("one\ntw");
    connection.Close();
  }));
  auto engine = Start(cut);
  auto stream = engine->Open(Get("/"), kLong, Handler());
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Lines(1), ElementsAre("one"));

  HttpTestServer ended(Script([](Connection& connection) {
    connection.WriteChunk("tw");
    connection.EndChunked();
  }));
  engine = Start(ended);
  stream = engine->Open(Get("/"), kLong, Handler());
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("middle of a line")));
}

TEST_F(StreamTest, EndsWithTheHandlersError) {
  HttpTestServer server(Script([](Connection& connection) {
    connection.WriteChunk("good\nbad\nmore\n");
    connection.WaitForHangUp();
  }));
  const auto engine = Start(server);
  const auto stream = engine->Open(Get("/s"), kLong, Handler());
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kAborted, "GET /s: bad line"));
  EXPECT_THAT(Lines(2), ElementsAre("good", "bad"));
  EXPECT_EQ(lines_.size(), 0u);
}

TEST_F(StreamTest, RefusesAnEndlessLine) {
  HttpTestServer server(Script([](Connection& connection) {
    connection.WriteChunk("0123456789abcdef");
    connection.WaitForHangUp();
  }));
  const auto engine = Start(server, {.max_line = 8});
  const auto stream = engine->Open(Get("/"), kLong, Handler());
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kInternal, HasSubstr("longer than 8")));
}

TEST_F(StreamTest, HasItsOwnTimeOuts) {
  HttpTestServer server([](const Request& request, Connection& connection) {
    if (request.target == "/silent") return connection.WaitForHangUp();
    connection.BeginChunked();
    connection.WaitForHangUp();
  });
  const auto engine = Start(server, {.stream_header_timeout = kShort});
  auto stream = engine->Open(Get("/silent"), kLong, Handler());
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("no answer within")));
  stream = engine->Open(Get("/idle"), absl::Milliseconds(200), Handler());
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("no end within")));
}

TEST_F(StreamTest, DestroyedWhileIdleHangsUpAtOnce) {
  Inbox<bool> hung_up;
  HttpTestServer server(Script([&](Connection& connection) {
    connection.WriteChunk("one\n");
    connection.WaitForHangUp();
    hung_up.Put(true);
  }));
  const auto engine = Start(server);
  auto stream = engine->Open(Get("/"), kLong, Handler());
  EXPECT_THAT(Lines(1), ElementsAre("one"));
  stream.reset();
  EXPECT_EQ(hung_up.Take(), true);
  EXPECT_EQ(ends_.size(), 0u);
}

TEST_F(StreamTest, DestroyedBeforeItStarts) {
  HttpTestServer server(Script([](Connection& connection) { connection.EndChunked(); }));
  const auto engine = Start(server);
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> alive = true;
    auto stream = engine->Open(Get("/"), kLong,
                               {.on_line = [](absl::string_view) { return absl::OkStatus(); },
                                .on_end = [&](const auto&) { EXPECT_TRUE(alive); }});
    stream.reset();
    alive = false;
  }
  engine->Send(Get("/"), kLong).IgnoreError();
}

TEST_F(StreamTest, NoCallbackRunsAfterItsDestruction) {
  HttpTestServer server(Script([](Connection& connection) {
    std::string chunk;
    for (int i = 0; i < 1000; ++i) chunk += "line\n";
    for (int i = 0; i < 100; ++i) connection.WriteChunk(chunk);
    connection.WaitForHangUp();
  }));
  const auto engine = Start(server);
  for (int round = 0; round < 20; ++round) {
    Inbox<bool> started;
    auto count = std::make_unique<std::atomic<int>>(0);  // gone after the stream
    auto stream = engine->Open(Get("/"), kLong,
                               {.on_line =
                                    [&](absl::string_view) {
                                      if (++*count == 100) started.Put(true);
                                      return absl::OkStatus();
                                    },
                                .on_end = [](const auto&) { ADD_FAILURE() << "ended"; }});
    EXPECT_EQ(started.Take(), true);
    stream.reset();
    count.reset();
  }
}

TEST_F(StreamTest, MayBeDestroyedByItsCallbacks) {
  HttpTestServer server(Script([](Connection& connection) {
    connection.WriteChunk("one\ntwo\n");
    connection.EndChunked();
  }));
  const auto engine = Start(server);
  for (const bool in_line : {true, false}) {
    std::unique_ptr<HttpStream> stream;
    Inbox<bool> opened, done;
    std::atomic<int> calls = 0;
    stream = engine->Open(Get("/"), kLong,
                          {.on_line =
                               [&](absl::string_view) {
                                 if (calls++ == 0) opened.Take();
                                 if (in_line) {
                                   stream.reset();
                                   done.Put(true);
                                 }
                                 return absl::OkStatus();
                               },
                           .on_end =
                               [&](const auto&) {
                                 EXPECT_FALSE(in_line);
                                 stream.reset();
                                 done.Put(true);
                               }});
    opened.Put(true);
    EXPECT_EQ(done.Take(), true);
    ASSERT_THAT(engine->Send(Get("/"), kLong), HasStatus(200)) << "the thread lives";
    EXPECT_EQ(calls, in_line ? 1 : 2);
  }
}

TEST_F(StreamTest, CallbacksMayNotSend) {
  HttpTestServer server(Script([](Connection& connection) {
    connection.WriteChunk("one\n");
    connection.EndChunked();
  }));
  const auto engine = Start(server);
  Inbox<absl::Status> result;
  const auto stream = engine->Open(Get("/"), kLong,
                                   {.on_line =
                                        [&](absl::string_view) {
                                          result.Put(engine->Send(Get("/"), kLong).status());
                                          return absl::OkStatus();
                                        },
                                    .on_end = [](const auto&) {}});
  EXPECT_THAT(*result.Take(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

// --- end of the engine ---

TEST_F(StreamTest, TheEnginesEndCancelsAll) {
  Inbox<bool> arrived;
  HttpTestServer server([&](const Request& request, Connection& connection) {
    if (request.target == "/stream") connection.BeginChunked();
    arrived.Put(true);
    connection.WaitForHangUp();
  });
  auto engine = Start(server);
  auto stream = engine->Open(Get("/stream"), kLong, Handler());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&engine = *engine] {
      EXPECT_THAT(engine.Send(Get("/"), kLong),
                  StatusIs(absl::StatusCode::kCancelled, HasSubstr("shutting down")));
    });
  }
  for (int i = 0; i < 5; ++i) arrived.Take();
  engine.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
  stream.reset();  // outlives the engine
}

TEST_F(StreamTest, AShutDownEngineTakesNothing) {
  HttpTestServer server(
      [](const Request&, Connection& connection) { connection.Reply(200, "{}"); });
  const auto engine = Start(server);
  engine->Shutdown();
  engine->Shutdown();
  EXPECT_THAT(engine->Send(Get("/"), kLong), StatusIs(absl::StatusCode::kCancelled));
  const auto stream = engine->Open(Get("/stream"), kLong, Handler());
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace ascend::kube
