#include "test/sim/api_server.h"

#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "test/sim/test_client.h"
#include "test/sim/test_slices.h"

namespace ascend::sim {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ApiServerTest : public ::testing::Test {
 protected:
  static int PortOf(const ApiServer& server) {
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(server.url().substr(17), &port));
    return port;
  }
  TestResponse Do(const std::string& method, const std::string& target, const json& body = nullptr,
                  const std::string& headers = "") {
    return Send(port_, method, target, body, headers);
  }
  std::string Slice(const std::string& name) { return absl::StrCat(kSlicesPath, "/", name); }

  ApiServer server_;
  const int port_ = PortOf(server_);
};

TEST_F(ApiServerTest, LifeOfAnObject) {
  TestResponse response = Do("POST", kSlicesPath, MakeSlice(2));
  ASSERT_EQ(response.status, 201) << response.body;
  json slice = response.json();
  EXPECT_EQ(slice["metadata"]["generation"], 1);
  const std::string uid = slice["metadata"]["uid"], version = slice["metadata"]["resourceVersion"];
  EXPECT_EQ(Do("GET", Slice("slice-1")).json(), slice);
  EXPECT_EQ(Do("POST", kSlicesPath, MakeSlice(2)).json()["reason"], "AlreadyExists");

  // An update that changes nothing is no write.
  EXPECT_EQ(Do("PUT", Slice("slice-1"), slice).json()["metadata"]["resourceVersion"], version);
  EXPECT_EQ(server_.slice_writes(), 1);
  slice["spec"]["devices"].erase(1);
  response = Do("PUT", Slice("slice-1"), slice);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.json()["metadata"]["generation"], 2);
  response = Do("PUT", Slice("slice-1"), slice);  // the old version again
  EXPECT_EQ(response.status, 409);
  EXPECT_EQ(response.json()["reason"], "Conflict");

  response = Do("DELETE", Slice("slice-1"), {{"preconditions", {{"uid", "other"}}}});
  EXPECT_EQ(response.status, 409);
  response = Do("DELETE", Slice("slice-1"), {{"preconditions", {{"uid", uid}}}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(Do("DELETE", Slice("slice-1")).json()["reason"], "NotFound");
  EXPECT_EQ(Do("PUT", Slice("slice-1"), slice).status, 404);
  EXPECT_EQ(server_.slice_writes(), 3);
}

TEST_F(ApiServerTest, InvalidObjectsAreRefusedWithCauses) {
  const TestResponse response = Do("POST", kSlicesPath, MakeSlice(129));
  EXPECT_EQ(response.status, 422);
  const json status = response.json();
  EXPECT_EQ(status["kind"], "Status");
  EXPECT_EQ(status["reason"], "Invalid");
  EXPECT_EQ(status["details"]["causes"][0]["field"], "spec.devices");
  EXPECT_EQ(status["details"]["causes"][0]["reason"], "FieldValueTooMany");

  json slice = MakeSlice(1);
  slice["metadata"]["resourceVersion"] = "7";
  EXPECT_EQ(Do("POST", kSlicesPath, slice).status, 400);
  slice = MakeSlice(1);
  slice["spec"]["driver"] = 7;
  EXPECT_EQ(Do("POST", kSlicesPath, slice).status, 400);
  slice = MakeSlice(1);
  slice["kind"] = "Slice";
  EXPECT_EQ(Do("POST", kSlicesPath, slice).status, 400);
  EXPECT_EQ(TestStream(port_, "POST", kSlicesPath, "{\"kind\":").ReadAll().status, 400);
  EXPECT_EQ(Do("GET", "/apis/resource.k8s.io/v1/nonsense").status, 404);
}

TEST_F(ApiServerTest, GeneratedNamesAreCounted) {
  json slice = MakeSlice(1);
  slice["metadata"] = {{"generateName", "00000-npu.huawei.com-node-1-"}};
  EXPECT_EQ(Do("POST", kSlicesPath, slice).json()["metadata"]["name"],
            "00000-npu.huawei.com-node-1-00001");
}

TEST_F(ApiServerTest, ListsAndDeletesBySelector) {
  ASSERT_THAT(server_.Create(MakeSlice(1, "b", "node-1")), IsOk());
  ASSERT_THAT(server_.Create(MakeSlice(1, "a", "node-1")), IsOk());
  ASSERT_THAT(server_.Create(MakeSlice(1, "c", "node-2")), IsOk());
  const std::string mine = absl::StrCat(
      kSlicesPath, "?fieldSelector=spec.driver%3Dnpu.huawei.com%2Cspec.nodeName%3Dnode-1");
  json list = Do("GET", mine).json();
  EXPECT_EQ(list["kind"], "ResourceSliceList");
  ASSERT_EQ(list["items"].size(), 2u);
  EXPECT_EQ(list["items"][0]["metadata"]["name"], "a");
  EXPECT_FALSE(list["items"][0].contains("kind"));
  EXPECT_EQ(Do("GET", absl::StrCat(kSlicesPath, "?fieldSelector=spec.colour%3Dred")).status, 400);

  EXPECT_EQ(Do("DELETE", mine).json()["items"].size(), 2u);
  EXPECT_EQ(server_.Slices().size(), 1u);
  EXPECT_EQ(server_.DeleteSlices("node-2", "other.example.com"), 0);
  EXPECT_EQ(server_.DeleteSlices("node-2"), 1);
}

TEST_F(ApiServerTest, WatchContinuesWhereAListEnded) {
  ASSERT_THAT(server_.Create(MakeSlice(1, "before")), IsOk());
  const std::string version = Do("GET", kSlicesPath).json()["metadata"]["resourceVersion"];
  ASSERT_THAT(server_.Create(MakeSlice(1, "between")), IsOk());
  ASSERT_THAT(server_.Create(MakeSlice(1, "elsewhere", "node-2")), IsOk());
  TestStream watch(
      port_, "GET",
      absl::StrCat(kSlicesPath, "?watch=true&allowWatchBookmarks=true&timeoutSeconds=1",
                   "&fieldSelector=spec.nodeName%3Dnode-1&resourceVersion=", version));
  std::optional<json> event = watch.NextLine();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ((*event)["type"], "ADDED");
  EXPECT_EQ((*event)["object"]["metadata"]["name"], "between");
  EXPECT_EQ(server_.active_watches(), 1);

  json slice = (*event)["object"];
  slice["spec"]["devices"] = json::array();
  ASSERT_THAT(server_.Update(slice), IsOk());
  ASSERT_THAT(server_.Delete("resourceslices", "", "between"), IsOk());
  EXPECT_EQ((*watch.NextLine())["type"], "MODIFIED");
  event = watch.NextLine();
  EXPECT_EQ((*event)["type"], "DELETED");
  const std::string deleted = (*event)["object"]["metadata"]["resourceVersion"];
  event = watch.NextLine();  // when the time is up
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ((*event)["type"], "BOOKMARK");
  EXPECT_EQ((*event)["object"]["metadata"]["resourceVersion"], deleted);
  EXPECT_TRUE(watch.ReadAll().complete);
}

TEST_F(ApiServerTest, WatchWithoutVersionStartsWithAll) {
  ASSERT_THAT(server_.Create(MakeSlice(1)), IsOk());
  TestStream watch(port_, "GET", absl::StrCat(kSlicesPath, "?watch=1"));
  EXPECT_EQ((*watch.NextLine())["object"]["metadata"]["name"], "slice-1");
  server_.CloseWatches();
  EXPECT_FALSE(watch.NextLine().has_value());
  EXPECT_FALSE(watch.ReadAll().complete);
}

TEST_F(ApiServerTest, CompactedVersionsAreTooOld) {
  const std::string version = Do("GET", kSlicesPath).json()["metadata"]["resourceVersion"];
  server_.Compact();
  const std::string target = absl::StrCat("?watch=true&resourceVersion=", version);
  const std::optional<json> event = TestStream(port_, "GET", kSlicesPath + target).NextLine();
  EXPECT_EQ((*event)["type"], "ERROR");
  EXPECT_EQ((*event)["object"]["code"], 410);
  EXPECT_EQ((*event)["object"]["reason"], "Expired");

  ApiServer other({.gone_as_status = true});
  other.Compact();
  EXPECT_EQ(Send(PortOf(other), "GET", kSlicesPath + target).status, 410);
}

TEST_F(ApiServerTest, ClaimStatusIsASubresource) {
  const std::string path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
  json claim = {{"apiVersion", "resource.k8s.io/v1"},
                {"kind", "ResourceClaim"},
                {"metadata", {{"name", "job"}}},
                {"spec", {{"devices", {{"requests", {{{"name", "npu"}}}}}}}}};
  claim = Do("POST", path, claim).json();
  EXPECT_EQ(claim["metadata"]["namespace"], "default");
  json changed = claim;
  changed["status"] = {{"a", 1}};
  EXPECT_FALSE(Do("PUT", path + "/job", changed).json().contains("status"));
  EXPECT_EQ(Do("PUT", path + "/job/status", changed).json()["status"]["a"], 1);
  const std::string merge = "Content-Type: application/merge-patch+json\r\n";
  EXPECT_EQ(Do("PATCH", path + "/job/status", {{"status", {{"b", 2}}}}, merge).json()["status"],
            json({{"a", 1}, {"b", 2}}));
  EXPECT_EQ(Do("PATCH", path + "/job", {{"spec", nullptr}}, merge).status, 422);
  EXPECT_EQ(Do("PATCH", path + "/job", json::object()).status, 415);
  EXPECT_EQ(Do("GET", "/apis/resource.k8s.io/v1/resourceclaims").json()["items"].size(), 1u);
  EXPECT_EQ(Do("GET", "/apis/resource.k8s.io/v1/namespaces/other/resourceclaims/job").status, 404);
}

TEST_F(ApiServerTest, ApplyReplacesTheEntriesOfOneDriver) {
  const std::string path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
  const std::string apply = "Content-Type: application/apply-patch+yaml\r\n";
  const json claim = Do("POST", path,
                        {{"apiVersion", "resource.k8s.io/v1"},
                         {"kind", "ResourceClaim"},
                         {"metadata", {{"name", "job"}}},
                         {"spec", {{"devices", {{"requests", {{{"name", "npu"}}}}}}}}})
                         .json();
  const auto patch = [&](const std::string& uid, const json& devices) {
    return json{{"metadata", {{"uid", uid}}}, {"status", {{"devices", devices}}}};
  };
  const std::string uid = claim["metadata"]["uid"];
  const std::string as_npu = "/job/status?force=true&fieldManager=npu";
  const json one = {{{"driver", "npu"}, {"device", "a"}}},
             two = {{{"driver", "npu"}, {"device", "b"}}},
             nic = {{{"driver", "nic"}, {"device", "c"}}};
  EXPECT_EQ(Do("PATCH", path + "/job/status?fieldManager=nic", patch(uid, nic), apply).status, 200);
  EXPECT_EQ(Do("PATCH", path + as_npu, patch(uid, one), apply).status, 200);
  const json applied = Do("PATCH", path + as_npu, patch(uid, two), apply).json();
  EXPECT_EQ(applied["status"]["devices"], json::array({nic[0], two[0]}));
  EXPECT_EQ(Do("PATCH", path + as_npu, patch("another", one), apply).status, 422);
  EXPECT_EQ(Do("PATCH", path + "/job/status", patch(uid, one), apply).status, 422);
  EXPECT_EQ(Do("PATCH", path + "/none/status?fieldManager=npu", patch(uid, one), apply).status,
            404);
}

TEST_F(ApiServerTest, EventsNeedTheirFields) {
  const std::string path = "/apis/events.k8s.io/v1/namespaces/default/events";
  json event = {{"apiVersion", "events.k8s.io/v1"},
                {"kind", "Event"},
                {"metadata", {{"name", "job.1"}, {"namespace", "default"}}},
                {"eventTime", "2026-11-30T03:00:00.000000Z"},
                {"reportingController", "npu.huawei.com"},
                {"reportingInstance", "npu.huawei.com-node-1"},
                {"action", "Prepare"},
                {"reason", "SharedClaim"},
                {"type", "Warning"},
                {"note", std::string(1024, 'n')},
                {"regarding", {{"kind", "Pod"}, {"namespace", "default"}, {"name", "p"}}}};
  EXPECT_EQ(Do("POST", path, event).status, 201);
  event["metadata"]["name"] = "job.2";
  event["note"] = std::string(1025, 'n');
  event.erase("action");
  event["regarding"]["namespace"] = "other";
  const json causes = Do("POST", path, event).json()["details"]["causes"];
  ASSERT_EQ(causes.size(), 3u);
  EXPECT_EQ(causes[0]["field"], "action");
  EXPECT_EQ(causes[1]["field"], "note");
  EXPECT_EQ(causes[2]["field"], "regarding.namespace");
}

TEST_F(ApiServerTest, RulesAnswerInsteadOfTheServer) {
  server_.AddRule(
      {.verb = "create", .path_prefix = kSlicesPath, .count = 1, .status = 503, .retry_after = 7});
  EXPECT_EQ(Do("GET", kSlicesPath).status, 200);
  const TestResponse response = Do("POST", kSlicesPath, MakeSlice(1));
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.head, HasSubstr("Retry-After: 7\r\n"));
  EXPECT_EQ(response.json()["reason"], "ServiceUnavailable");
  EXPECT_TRUE(server_.Slices().empty());
  EXPECT_EQ(Do("POST", kSlicesPath, MakeSlice(1)).status, 201);
}

TEST_F(ApiServerTest, CutAnswersWereServed) {
  server_.AddRule({.verb = "create", .count = 1, .cut = true});
  const TestResponse response = Do("POST", kSlicesPath, MakeSlice(1));
  EXPECT_EQ(response.status, 201);
  EXPECT_FALSE(response.complete);
  EXPECT_EQ(server_.Slices().size(), 1u);

  server_.AddRule({.verb = "watch", .count = 1, .cut = true});
  TestStream watch(port_, "GET", absl::StrCat(kSlicesPath, "?watch=true"));
  EXPECT_FALSE(watch.NextLine().has_value());
}

TEST_F(ApiServerTest, HangingRequestsEndWithTheirRule) {
  const int rule = server_.AddRule({.verb = "get", .count = 1, .hang = true});
  std::thread client([&] { EXPECT_EQ(Do("GET", "/api/v1/nodes/node-1").status, 0); });
  while (server_.CountRequests("get") == 0) std::this_thread::yield();
  server_.RemoveRule(rule);
  client.join();
  EXPECT_EQ(server_.Requests("get")[0].status, 0);
}

TEST_F(ApiServerTest, StoppingCutsWhatHangs) {
  auto server = std::make_unique<ApiServer>();
  server->AddRule({.verb = "list", .hang = true});
  TestStream hanging(PortOf(*server), "GET", kSlicesPath);
  TestStream watching(PortOf(*server), "GET", absl::StrCat(kSlicesPath, "?watch=true"));
  ASSERT_THAT(server->WaitForRequests("watch", kSlicesPath, 1), IsOk());
  while (server->CountRequests("list") == 0) std::this_thread::yield();
  server.reset();
  EXPECT_EQ(hanging.ReadAll().status, 0);
  EXPECT_FALSE(watching.ReadAll().complete);
}

TEST_F(ApiServerTest, RequestsAreRecorded) {
  Do("GET", "/api/v1/nodes/node-1", nullptr, "User-Agent: tester/1\r\n");
  Do("POST", kSlicesPath, MakeSlice(1));
  ASSERT_EQ(server_.Requests("get", "/api/v1/nodes").size(), 1u);
  const RecordedRequest request = server_.Requests("get", "/api/v1/nodes")[0];
  EXPECT_EQ(request.status, 404);
  EXPECT_EQ(request.user_agent, "tester/1");
  EXPECT_THAT(server_.WaitForRequests("create", kSlicesPath, 1), IsOk());
  EXPECT_THAT(server_.WaitForRequests("create", kSlicesPath, 2, absl::Milliseconds(1)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  server_.ClearRequests();
  EXPECT_EQ(server_.CountRequests(""), 0);
}

TEST_F(ApiServerTest, ControlsOverHttp) {
  EXPECT_EQ(Do("POST", "/sim/rules", {{"verb", "list"}, {"status", 429}, {"retryAfter", 1}}).status,
            200);
  EXPECT_EQ(Do("GET", kSlicesPath).status, 429);
  EXPECT_EQ(Do("DELETE", "/sim/rules").status, 200);
  EXPECT_EQ(Do("GET", kSlicesPath).status, 200);
  EXPECT_EQ(Do("GET", "/sim/requests").json().size(), 2u);
  EXPECT_EQ(Do("POST", "/sim/nonsense").status, 404);
}

TEST_F(ApiServerTest, TokenIsChecked) {
  server_.SetToken("secret");
  EXPECT_EQ(Do("GET", kSlicesPath).json()["reason"], "Unauthorized");
  EXPECT_EQ(Do("GET", kSlicesPath, nullptr, "Authorization: Bearer secret\r\n").status, 200);
  TempDir dir;
  ASSERT_THAT(server_.WriteKubeconfig(dir.File("kubeconfig")), IsOk());
  EXPECT_THAT(ReadFile(dir.File("kubeconfig")), IsOkAndHolds(HasSubstr("secret")));
}

TEST_F(ApiServerTest, OldServers) {
  EXPECT_EQ(Do("GET", "/apis/resource.k8s.io").json()["versions"][0]["version"], "v1");
  EXPECT_EQ(Do("GET", "/apis/resource.k8s.io/v1").json()["resources"].size(), 3u);
  ApiServer older({.serve_resource_v1 = false});
  EXPECT_EQ(Send(PortOf(older), "GET", "/apis/resource.k8s.io").json()["versions"][0]["version"],
            "v1beta2");
  EXPECT_EQ(Send(PortOf(older), "GET", kSlicesPath).status, 404);

  // Taints vanish while the gate is off, but not those of an object that has some.
  json slice = MakeSlice(1);
  slice["spec"]["devices"][0]["taints"] = {MakeTaint("NoSchedule")};
  ASSERT_THAT(server_.Create(slice), IsOk());
  server_.SetFeatures(/*device_taints=*/false, /*partitionable_devices=*/false);
  slice = *server_.Get("resourceslices", "", "slice-1");
  slice["spec"]["devices"][0]["taints"][0]["value"] = "major";
  EXPECT_TRUE((*server_.Update(slice))["spec"]["devices"][0].contains("taints"));
  slice["metadata"] = {{"name", "slice-2"}};
  EXPECT_FALSE((*server_.Create(slice))["spec"]["devices"][0].contains("taints"));
}

TEST_F(ApiServerTest, WaitsForSlices) {
  std::thread writer([&] { EXPECT_EQ(Do("POST", kSlicesPath, MakeSlice(1)).status, 201); });
  EXPECT_THAT(server_.WaitForSlices([](const auto& slices) { return slices.size() == 1; }), IsOk());
  writer.join();
  EXPECT_EQ(server_.AddNode("node-1"), server_.AddNode("node-1"));
}

}  // namespace
}  // namespace ascend::sim
