#include "kubeletplugin/kube/rest_client.h"

#include <atomic>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/kube/testing/http_test_server.h"
#include "kubeletplugin/kube/testing/inbox.h"
#include "nlohmann/json.hpp"

namespace ascend::kube {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Json = nlohmann::json;
using Request = HttpTestServer::Request;
using Connection = HttpTestServer::Connection;

constexpr absl::Duration kLong = absl::Seconds(20);

constexpr char kClaim[] = R"({"metadata":{"name":"c","namespace":"ns","uid":"u"}})";
constexpr char kSlice[] =
    R"({"metadata":{"name":"s","uid":"s-1","resourceVersion":"7"},"spec":{"driver":"d"}})";
constexpr char kSlicesPath[] = "/apis/resource.k8s.io/v1/resourceslices";

std::string StatusObject(int code, absl::string_view reason, absl::string_view message,
                         const Json& details = Json::object()) {
  return Json{{"kind", "Status"},
              {"apiVersion", "v1"},
              {"status", "Failure"},
              {"code", code},
              {"reason", std::string(reason)},
              {"message", std::string(message)},
              {"details", details}}
      .dump();
}

class RestClientTest : public ::testing::Test {
 protected:
  RestClientTest() {
    auto client = CreateRestClient({.server = server_.url()}, "test/1");
    EXPECT_THAT(client, IsOk());
    client_ = *std::move(client);
  }

  // What the server answers from now on.
  void Answer(int status, std::string body, std::vector<std::string> headers = {}) {
    SetHandler(
        [=](const Request&, Connection& connection) { connection.Reply(status, body, headers); });
  }
  void SetHandler(HttpTestServer::Handler handler) {
    MutexLock lock(&mutex_);
    handler_ = std::move(handler);
  }
  Request Seen() { return seen_.Take().value_or(Request()); }
  absl::Status GetClaim() { return client_->GetResourceClaim("ns", "c", kLong).status(); }

  Mutex mutex_;
  HttpTestServer::Handler handler_ ABSL_GUARDED_BY(mutex_);
  Inbox<Request> seen_;
  HttpTestServer server_{[this](const Request& request, Connection& connection) {
    seen_.Put(request);
    HttpTestServer::Handler handler;
    {
      MutexLock lock(&mutex_);
      handler = handler_;
    }
    handler(request, connection);
  }};
  std::unique_ptr<Client> client_;
};

// --- calls ---

TEST_F(RestClientTest, GetsAClaim) {
  Answer(200, kClaim);
  const auto claim = client_->GetResourceClaim("ns", "c", kLong);
  ASSERT_THAT(claim, IsOk());
  EXPECT_EQ(claim->uid, "u");
  const Request request = Seen();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c");
}

TEST_F(RestClientTest, RefusesNamesThatLeaveThePath) {
  for (const char* name : {"", ".", "..", "a/b", "/"}) {
    EXPECT_THAT(client_->GetResourceClaim("ns", name, kLong),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(client_->GetResourceClaim(name, "c", kLong),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(client_->GetNode(name, kLong), StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(client_->DeleteResourceSlice(name, "u", kLong),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(client_->DeleteResourceSlice("s", "", kLong),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(server_.requests(), 0);
  Answer(200, kClaim);
  EXPECT_THAT(client_->GetResourceClaim("n s", "a?b#%\n", kLong), IsOk());
  EXPECT_EQ(Seen().target,
            "/apis/resource.k8s.io/v1/namespaces/n%20s/resourceclaims/a%3fb%23%25%0a");
}

TEST_F(RestClientTest, ReadsWhatANodeRunsAndOffers) {
  Answer(200, R"({"metadata": {"name": "n1", "uid": "u"}, "status": {
    "allocatable": {"cpu": "8", "huawei.com/Ascend910": "8"},
    "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.4"}}})");
  const absl::StatusOr<Node> node = client_->GetNode("n1", kLong);
  ASSERT_THAT(node, IsOk());
  EXPECT_EQ(node->container_runtime_version, "containerd://2.1.4");
  EXPECT_EQ(node->allocatable.at("huawei.com/Ascend910"), "8");
}

TEST_F(RestClientTest, ANodeThatOffersNumbersIsAWrongAnswer) {
  Answer(200, R"({"metadata": {"name": "n1", "uid": "u"}, "status": {"allocatable": {"cpu": 8}}})");
  EXPECT_THAT(client_->GetNode("n1", kLong),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("status.allocatable.cpu")));
}

TEST_F(RestClientTest, GetsANode) {
  Answer(200, R"({"kind":"Node","metadata":{"name":"n1","uid":"n-1"},"status":{}})");
  const auto node = client_->GetNode("n1", kLong);
  ASSERT_THAT(node, IsOk());
  EXPECT_EQ(node->name, "n1");
  EXPECT_EQ(node->uid, "n-1");
  EXPECT_EQ(Seen().target, "/api/v1/nodes/n1");
  Answer(200, R"({"metadata":{"name":"n1"}})");
  EXPECT_THAT(client_->GetNode("n1", kLong),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("uid is missing")));
}

TEST_F(RestClientTest, ListsSlices) {
  Answer(200, absl::StrCat(R"({"metadata":{"resourceVersion":"99"},"items":[)", kSlice, "]}"));
  auto list = client_->ListResourceSlices("npu.huawei.com", "n1", kLong);
  ASSERT_THAT(list, IsOk());
  EXPECT_EQ(list->resource_version, "99");
  ASSERT_THAT(list->slices, SizeIs(1));
  EXPECT_EQ(list->slices[0].name, "s");
  EXPECT_EQ(Seen().target, absl::StrCat(kSlicesPath,
                                        "?fieldSelector=spec.driver%3dnpu.huawei.com"
                                        "%2cspec.nodeName%3dn1"));
  for (const char* empty : {R"({"metadata":{"resourceVersion":"1"},"items":null})",
                            R"({"metadata":{"resourceVersion":"1"},"items":[]})",
                            R"({"metadata":{"resourceVersion":"1"}})"}) {
    Answer(200, empty);
    list = client_->ListResourceSlices("d", "n", kLong);
    ASSERT_THAT(list, IsOk());
    EXPECT_THAT(list->slices, IsEmpty());
  }
  Answer(200, R"({"items":{}})");
  EXPECT_THAT(client_->ListResourceSlices("d", "n", kLong),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("items: not an array")));
  Answer(200, R"({"items":[{},{"spec":[]}]})");
  EXPECT_THAT(client_->ListResourceSlices("d", "n", kLong),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("items[1]: spec: not an object")));
}

TEST_F(RestClientTest, CreatesUpdatesAndDeletesSlices) {
  ResourceSlice slice;
  slice.name = "s";
  slice.uid = "s-0";
  slice.driver = "d";
  EXPECT_THAT(client_->UpdateResourceSlice(slice, kLong),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("resource version")));
  slice.resource_version = "6";

  Answer(201, kSlice);
  const auto created = client_->CreateResourceSlice(slice, kLong);
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(created->resource_version, "7");
  Request request = Seen();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, kSlicesPath);
  EXPECT_EQ(Json::parse(request.body)["metadata"], Json::parse(R"({"name":"s"})"));

  Answer(200, kSlice);
  ASSERT_THAT(client_->UpdateResourceSlice(slice, kLong), IsOk());
  request = Seen();
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, absl::StrCat(kSlicesPath, "/s"));
  EXPECT_EQ(Json::parse(request.body), ToJson(slice));

  Answer(200, "{}");
  ASSERT_THAT(client_->DeleteResourceSlice("s", "s-1", kLong), IsOk());
  request = Seen();
  EXPECT_EQ(request.method, "DELETE");
  EXPECT_EQ(request.target, absl::StrCat(kSlicesPath, "/s"));
  EXPECT_EQ(Json::parse(request.body), Json::parse(R"({"apiVersion":"v1","kind":"DeleteOptions",
                                                       "preconditions":{"uid":"s-1"}})"));
  EXPECT_EQ(server_.accepted(), 1);
}

TEST_F(RestClientTest, SendsTextThatIsNotUtf8Repaired) {
  ResourceSlice slice;
  slice.name = "s";
  slice.devices = {{.name = "d", .attributes = {{"a", std::string("x\xff")}}}};
  Answer(201, kSlice);
  EXPECT_THAT(client_->CreateResourceSlice(slice, kLong), IsOk());
  EXPECT_EQ(Json::parse(Seen().body)["spec"]["devices"][0]["attributes"]["a"]["string"],
            "x\xef\xbf\xbd");
}

// --- events ---

TEST_F(RestClientTest, CreatesEvents) {
  Answer(201, "{}");
  const Event event = {
      .regarding = {"resource.k8s.io/v1", "ResourceClaim", "ns", "c", "u"},
      .reason = "PrepareFailed",
      .message = "why",
      .reporting_component = "npu.huawei.com",
      .reporting_instance = "n1",
  };
  ASSERT_THAT(client_->CreateEvent(event, kLong), IsOk());
  const Request request = Seen();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/apis/events.k8s.io/v1/namespaces/ns/events");
  Json body = Json::parse(request.body);
  EXPECT_THAT(body["metadata"]["name"].get<std::string>(), MatchesRegex("c\\.[0-9a-f]{24,}"));
  EXPECT_THAT(body["eventTime"].get<std::string>(),
              MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z"));
  body.erase("eventTime");
  body["metadata"].erase("name");
  EXPECT_EQ(body, Json::parse(R"({
    "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"namespace": "ns"},
    "reportingController": "npu.huawei.com", "reportingInstance": "n1",
    "action": "PrepareFailed", "reason": "PrepareFailed", "type": "Warning", "note": "why",
    "regarding": {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "namespace": "ns",
                  "name": "c", "uid": "u"}})"));

  ASSERT_THAT(client_->CreateEvent(event, kLong), IsOk());
  EXPECT_NE(Json::parse(Seen().body)["metadata"]["name"],
            Json::parse(request.body)["metadata"]["name"]);
}

TEST_F(RestClientTest, FitsEventsIntoTheLimits) {
  Answer(201, "{}");
  std::string message(1023, 'x');
  message += "é and more";
  Event event = {.regarding = {"v1", "Node", "", std::string(199, 'n') + "-.nn", ""},
                 .reason = std::string(200, 'R'),
                 .message = message,
                 .warning = false,
                 .action = std::string(200, 'A'),
                 .reporting_instance = std::string(200, 'i')};
  ASSERT_THAT(client_->CreateEvent(event, kLong), IsOk());
  Request request = Seen();
  EXPECT_EQ(request.target, "/apis/events.k8s.io/v1/namespaces/default/events");
  const Json body = Json::parse(request.body);
  EXPECT_EQ(body["note"], std::string(1023, 'x')) << "not half an é";
  EXPECT_EQ(body["type"], "Normal");
  EXPECT_EQ(body["reason"], std::string(128, 'R'));
  EXPECT_EQ(body["action"], std::string(128, 'A'));
  EXPECT_EQ(body["reportingInstance"], std::string(128, 'i'));
  EXPECT_THAT(body["metadata"]["name"].get<std::string>(), StartsWith(std::string(199, 'n') + "."));
  event.message = std::string(1022, 'x') + "é";
  ASSERT_THAT(client_->CreateEvent(event, kLong), IsOk());
  EXPECT_EQ(Json::parse(Seen().body)["note"], event.message) << "exactly full";
}

TEST_F(RestClientTest, AnEventThatIsThereAlreadyIsOurs) {
  Answer(409, StatusObject(409, "AlreadyExists", "events \"c\" already exists"));
  EXPECT_THAT(client_->CreateEvent({.regarding = {.namespace_name = "ns", .name = "c"}}, kLong),
              IsOk());
}

TEST_F(RestClientTest, AppliesDeviceStatus) {
  Answer(200, "{}");
  const DeviceStatus status = {.driver = "npu.huawei.com",
                               .pool = "n1",
                               .device = "npu-0",
                               .share_id = "",
                               .conditions = {{.type = "Ready",
                                               .reason = "Prepared",
                                               .message = "m",
                                               .last_transition_time = "2026-11-30T10:00:00Z"}},
                               .data_json = R"({"a":1})",
                               .ips = {"10.0.0.1/32"}};
  ASSERT_THAT(client_->ApplyDeviceStatus("ns", "c", "u", "npu.huawei.com", {status}, kLong),
              IsOk());
  const Request request = Seen();
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.target,
            "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status"
            "?force=true&fieldManager=npu.huawei.com");
  EXPECT_EQ(request.headers.at("content-type"), "application/apply-patch+yaml");
  EXPECT_EQ(Json::parse(request.body), Json::parse(R"({
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
    "status": {"devices": [{
      "driver": "npu.huawei.com", "pool": "n1", "device": "npu-0",
      "conditions": [{"type": "Ready", "status": "True", "reason": "Prepared", "message": "m",
                      "lastTransitionTime": "2026-11-30T10:00:00Z"}],
      "data": {"a": 1}, "networkData": {"ips": ["10.0.0.1/32"]}}]}})"));
  EXPECT_THAT(client_->ApplyDeviceStatus("ns", "../x", "u", "m", {}, kLong),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// --- errors ---

struct ErrorCase {
  int status;
  const char* reason;
  absl::StatusCode code;
};
class RestClientErrorTest : public RestClientTest,
                            public ::testing::WithParamInterface<ErrorCase> {};

TEST_P(RestClientErrorTest, FollowsTheDocument) {
  const ErrorCase& c = GetParam();
  Answer(c.status, StatusObject(c.status, c.reason, "the message"));
  EXPECT_THAT(GetClaim(),
              StatusIs(c.code, absl::StrCat("GET /apis/resource.k8s.io/v1/namespaces/ns/"
                                            "resourceclaims/c: ",
                                            c.status, " ", c.reason, ": the message")));
  EXPECT_EQ(server_.requests(), 1) << "not retried";
}

INSTANTIATE_TEST_SUITE_P(
    All, RestClientErrorTest,
    ::testing::Values(ErrorCase{400, "BadRequest", absl::StatusCode::kInvalidArgument},
                      ErrorCase{401, "Unauthorized", absl::StatusCode::kUnauthenticated},
                      ErrorCase{403, "Forbidden", absl::StatusCode::kPermissionDenied},
                      ErrorCase{404, "NotFound", absl::StatusCode::kNotFound},
                      ErrorCase{405, "MethodNotAllowed", absl::StatusCode::kInternal},
                      ErrorCase{408, "Timeout", absl::StatusCode::kUnavailable},
                      ErrorCase{409, "Conflict", absl::StatusCode::kAborted},
                      ErrorCase{409, "AlreadyExists", absl::StatusCode::kAlreadyExists},
                      ErrorCase{410, "Expired", absl::StatusCode::kOutOfRange},
                      ErrorCase{413, "RequestEntityTooLarge", absl::StatusCode::kInvalidArgument},
                      ErrorCase{422, "Invalid", absl::StatusCode::kInvalidArgument},
                      ErrorCase{429, "TooManyRequests", absl::StatusCode::kUnavailable},
                      ErrorCase{500, "InternalError", absl::StatusCode::kUnavailable},
                      ErrorCase{503, "ServiceUnavailable", absl::StatusCode::kUnavailable},
                      ErrorCase{504, "Timeout", absl::StatusCode::kUnavailable}));

TEST_F(RestClientTest, BothConflictsAreToldApart) {
  ResourceSlice slice;
  slice.name = "s";
  slice.resource_version = "1";
  Answer(409, StatusObject(409, "AlreadyExists", "m"));
  EXPECT_THAT(client_->CreateResourceSlice(slice, kLong),
              StatusIs(absl::StatusCode::kAlreadyExists));
  Answer(409, StatusObject(409, "Conflict", "m"));
  EXPECT_THAT(client_->UpdateResourceSlice(slice, kLong), StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(client_->DeleteResourceSlice("s", "u", kLong), StatusIs(absl::StatusCode::kAborted));
  Answer(409, "");
  EXPECT_THAT(client_->CreateResourceSlice(slice, kLong),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(client_->UpdateResourceSlice(slice, kLong), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(RestClientTest, AnOldServerIsNotAMissingObject) {
  Answer(404, "404 page not found\n");
  EXPECT_THAT(GetClaim(), StatusIs(absl::StatusCode::kUnimplemented,
                                   HasSubstr("Kubernetes 1.34 or newer with resource.k8s.io/v1")));
  EXPECT_THAT(client_->ListResourceSlices("d", "n", kLong),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(client_->GetNode("n", kLong),
              StatusIs(absl::StatusCode::kUnimplemented, Not(HasSubstr("1.34"))));
}

TEST_F(RestClientTest, GivesTheCausesOfAnInvalidObject) {
  Json causes = Json::array();
  causes.push_back({{"reason", "FieldValueForbidden"},
                    {"message", "Forbidden: gate is off"},
                    {"field", "spec.devices[0].taints"}});
  causes.push_back({{"reason", "FieldValueRequired"}, {"field", 7}});
  for (int i = 0; i < 20; ++i) causes.push_back({{"reason", "FieldValueInvalid"}});
  Answer(422, StatusObject(422, "Invalid", "s is invalid", {{"causes", causes}}));
  const absl::Status status = GetClaim();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               AllOf(HasSubstr("s is invalid (causes: spec.devices[0].taints: "
                                               "FieldValueForbidden: Forbidden: gate is off; "
                                               "FieldValueRequired; FieldValueInvalid; "),
                                     EndsWith("; 14 more)"))));
  EXPECT_TRUE(HasCause(status, "FieldValueForbidden"));
  EXPECT_TRUE(HasCause(Annotate(status, "slice"), "FieldValueInvalid"));
  EXPECT_FALSE(HasCause(status, "FieldValue"));
  EXPECT_FALSE(HasCause(absl::OkStatus(), "FieldValueInvalid"));
}

TEST_F(RestClientTest, HandsOnRetryAfter) {
  Answer(429, "", {"Retry-After: 3"});
  const absl::Status status = GetClaim();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(RetryAfter(status), absl::Seconds(3));
  EXPECT_EQ(RetryAfter(Annotate(status, "claim")), absl::Seconds(3));
  Answer(503, StatusObject(503, "ServiceUnavailable", "m", {{"retryAfterSeconds", 5}}));
  EXPECT_EQ(RetryAfter(GetClaim()), absl::Seconds(5));
  Answer(503, "", {"Retry-After: soon"});
  EXPECT_EQ(RetryAfter(GetClaim()), std::nullopt);
  EXPECT_EQ(RetryAfter(absl::UnavailableError("x")), std::nullopt);
}

TEST_F(RestClientTest, QuotesABodyThatIsNoStatusObject) {
  Answer(502, "<html>\n\x01" + std::string(1000, 'x'));
  EXPECT_THAT(GetClaim(),
              StatusIs(absl::StatusCode::kUnavailable,
                       MatchesRegex("GET .*resourceclaims/c: 502: <html>  x{100,200}")));
  Answer(500, R"({"kind":"Status","reason":7,"message":[],"code":"x","details":[1]})");
  EXPECT_THAT(GetClaim(), StatusIs(absl::StatusCode::kUnavailable, EndsWith(": 500")));
  Answer(302, "", {"Location: http://127.0.0.1:1/"});
  EXPECT_THAT(GetClaim(), StatusIs(absl::StatusCode::kInternal, EndsWith(": 302")));
}

TEST_F(RestClientTest, RefusesGarbageInAGoodAnswer) {
  for (const char* body : {"", "garbage", "[]", "{}", "{\"metadata\":", "\xff"}) {
    Answer(200, body);
    EXPECT_THAT(GetClaim(), StatusIs(absl::StatusCode::kInternal,
                                     HasSubstr("resourceclaims/c: unexpected answer")));
    if (absl::string_view(body) == "{}") continue;
    EXPECT_THAT(client_->ListResourceSlices("d", "n", kLong),
                StatusIs(absl::StatusCode::kInternal));
  }
}

TEST_F(RestClientTest, TimesOut) {
  SetHandler([](const Request&, Connection& connection) { connection.WaitForHangUp(); });
  EXPECT_THAT(client_->GetResourceClaim("ns", "c", absl::Milliseconds(30)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("within 30ms")));
}

TEST_F(RestClientTest, TellsOfEveryRequest) {
  Inbox<RequestReport> reports;
  auto client = CreateRestClient({.server = server_.url()}, "test/1",
                                 [&](const RequestReport& report) { reports.Put(report); });
  ASSERT_THAT(client, IsOk());
  const auto expect = [&](Verb verb, Resource resource, int status) {
    const RequestReport report = reports.Take().value_or(RequestReport());
    EXPECT_STREQ(Name(report.kind.verb), Name(verb));
    EXPECT_STREQ(Name(report.kind.resource), Name(resource));
    EXPECT_EQ(report.http_status, status);
    return report;
  };
  Answer(200, kClaim);
  EXPECT_THAT((*client)->GetResourceClaim("ns", "c", kLong), IsOk());
  EXPECT_GT(expect(Verb::kGet, Resource::kResourceClaims, 200).duration, absl::ZeroDuration());
  Answer(503, "busy");
  EXPECT_FALSE((*client)->GetNode("n", kLong).ok());
  expect(Verb::kGet, Resource::kNodes, 503);
  SetHandler([](const Request&, Connection& connection) { connection.WaitForHangUp(); });
  EXPECT_FALSE((*client)->DeleteResourceSlice("s", "u", absl::Milliseconds(30)).ok());
  EXPECT_GE(expect(Verb::kDelete, Resource::kResourceSlices, 0).duration, absl::Milliseconds(30));
  // A watch tells of its begin and of its end.
  Answer(410, "gone");
  const auto watch =
      (*client)->WatchResourceSlices("d", "n", "1", [](SliceEvent) {}, [](absl::Status) {});
  EXPECT_TRUE(expect(Verb::kWatch, Resource::kResourceSlices, 0).watch_begins);
  EXPECT_FALSE(expect(Verb::kWatch, Resource::kResourceSlices, 410).watch_begins);
}

TEST(CreateRestClientTest, RefusesABadConfiguration) {
  EXPECT_THAT(CreateRestClient({.server = "nonsense://"}, "t"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(RestClientTest, ServesManyCallers) {
  SetHandler([](const Request& request, Connection& connection) {
    const std::string name = request.target.substr(request.target.rfind('/') + 1);
    connection.Reply(200, absl::StrCat(R"({"metadata":{"name":")", name, R"(","uid":"u"}})"));
  });
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      const auto claim = client_->GetResourceClaim("ns", absl::StrCat("c", t), kLong);
      if (claim.ok() && claim->name == absl::StrCat("c", t)) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 64);
}

// --- watch ---

std::string WatchLine(absl::string_view type, absl::string_view object) {
  return absl::StrCat(R"({"type":")", type, R"(","object":)", object, "}\n");
}

class WatchTest : public RestClientTest {
 protected:
  // Sends `chunks`, then ends the answer.
  void Stream(std::vector<std::string> chunks) {
    SetHandler([chunks = std::move(chunks)](const Request&, Connection& connection) {
      connection.BeginChunked();
      for (const std::string& chunk : chunks) connection.WriteChunk(chunk);
      connection.EndChunked();
    });
  }
  std::unique_ptr<Watch> Open() {
    return client_->WatchResourceSlices(
        "npu.huawei.com", "n1", "55", [this](SliceEvent event) { events_.Put(std::move(event)); },
        [this](absl::Status status) { ends_.Put(std::move(status)); });
  }
  absl::Status End() { return ends_.Take().value_or(absl::UnknownError("no end came")); }

  Inbox<SliceEvent> events_;
  Inbox<absl::Status> ends_;
};

TEST_F(WatchTest, AsksForWhatItNeeds) {
  Stream({});
  const auto watch = Open();
  EXPECT_THAT(End(), IsOk());
  const std::string target = Seen().target;
  EXPECT_THAT(target,
              AllOf(StartsWith(absl::StrCat(kSlicesPath, "?")), HasSubstr("watch=true"),
                    HasSubstr("&allowWatchBookmarks=true"), HasSubstr("&resourceVersion=55"),
                    HasSubstr("spec.driver%3dnpu.huawei.com%2cspec.nodeName%3dn1")));
  const std::string key = "timeoutSeconds=";
  const std::string rest = target.substr(target.find(key) + key.size());
  int seconds = 0;
  ASSERT_TRUE(absl::SimpleAtoi(rest.substr(0, rest.find('&')), &seconds)) << target;
  EXPECT_GE(seconds, 300);
  EXPECT_LE(seconds, 540);
}

TEST_F(WatchTest, DeliversEventsHoweverTheyAreCut) {
  const std::string text =
      WatchLine("ADDED", kSlice) + WatchLine("MODIFIED", kSlice) + WatchLine("DELETED", kSlice) +
      WatchLine("BOOKMARK", R"({"kind":"ResourceSlice","metadata":{"resourceVersion":"60"}})");
  for (size_t cut = 1; cut < text.size(); ++cut) {
    Stream({text.substr(0, cut), text.substr(cut)});
    const auto watch = Open();
    ASSERT_THAT(End(), IsOk()) << cut;
    ASSERT_EQ(events_.size(), 4u) << cut;
    for (const auto type :
         {SliceEvent::Type::kAdded, SliceEvent::Type::kModified, SliceEvent::Type::kDeleted}) {
      const SliceEvent event = *events_.Take();
      EXPECT_EQ(event.type, type);
      EXPECT_EQ(event.slice.name, "s");
      EXPECT_EQ(event.slice.resource_version, "7");
    }
    const SliceEvent bookmark = *events_.Take();
    EXPECT_EQ(bookmark.type, SliceEvent::Type::kBookmark);
    EXPECT_EQ(bookmark.slice.resource_version, "60");
    EXPECT_EQ(bookmark.slice.name, "");
  }
}

TEST_F(WatchTest, AnErrorEventEndsIt) {
  Stream({WatchLine("ADDED", kSlice) +
          WatchLine("ERROR", StatusObject(410, "Expired", "too old resource version")) +
          WatchLine("ADDED", kSlice)});
  const auto watch = Open();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("too old")));
  EXPECT_EQ(events_.size(), 1u);
  EXPECT_EQ(ends_.size(), 0u);
}

TEST_F(WatchTest, AStatusInsteadOfAStreamEndsIt) {
  Answer(410, StatusObject(410, "Expired", "too old"));
  auto watch = Open();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kOutOfRange));
  Answer(403, StatusObject(403, "Forbidden", "no"));
  watch = Open();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kPermissionDenied));
  Answer(429, "", {"Retry-After: 2"});
  watch = Open();
  const absl::Status busy = End();
  EXPECT_THAT(busy, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(RetryAfter(busy), absl::Seconds(2));
}

TEST_F(WatchTest, WrongEventsEndIt) {
  for (const std::string& line :
       {std::string("garbage\n"), std::string("[]\n"), std::string("{}\n"),
        std::string("{\"type\":7}\n"), WatchLine("RENAMED", kSlice), WatchLine("ADDED", "null"),
        WatchLine("ADDED", R"({"spec":[]})"), WatchLine("ERROR", "{}"),
        WatchLine("ERROR", StatusObject(200, "", ""))}) {
    Stream({line});
    const auto watch = Open();
    EXPECT_THAT(End(), StatusIs(absl::StatusCode::kInternal)) << line;
  }
  EXPECT_EQ(events_.size(), 0u);
}

TEST_F(WatchTest, ABrokenConnectionEndsIt) {
  SetHandler([](const Request&, Connection& connection) {
    connection.BeginChunked();
    connection.WriteChunk(WatchLine("ADDED", kSlice));
    connection.Close();
  });
  const auto watch = Open();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(events_.size(), 1u);
}

TEST_F(WatchTest, DestroyedWhileIdle) {
  Inbox<bool> hung_up;
  SetHandler([&](const Request&, Connection& connection) {
    connection.BeginChunked();
    connection.WriteChunk(WatchLine("ADDED", kSlice));
    connection.WaitForHangUp();
    hung_up.Put(true);
  });
  auto watch = Open();
  ASSERT_TRUE(events_.Take().has_value());
  watch.reset();
  EXPECT_EQ(hung_up.Take(), true);
  EXPECT_EQ(ends_.size(), 0u);
}

TEST_F(WatchTest, TheClientsEndCancelsIt) {
  SetHandler([](const Request&, Connection& connection) {
    connection.BeginChunked();
    connection.WriteChunk(WatchLine("ADDED", kSlice));
    connection.WaitForHangUp();
  });
  const auto watch = Open();
  ASSERT_TRUE(events_.Take().has_value());
  client_.reset();
  EXPECT_THAT(End(), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace ascend::kube
