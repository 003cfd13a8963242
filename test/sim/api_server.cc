#include "test/sim/api_server.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/mutex.h"
#include "nlohmann/json.hpp"
#include "test/sim/http_server.h"
#include "test/sim/object_store.h"

namespace ascend::sim {
namespace {

using nlohmann::json;

// How often a quiet watch looks whether its client is still there.
constexpr absl::Duration kWatchPoll = absl::Milliseconds(100);

// A request path, taken apart.
struct Target {
  const ResourceType* type = nullptr;
  std::string namespace_name;
  std::string name;  // empty = the collection
  bool status = false;
};

// False if the path is not one of a resource the server knows.
bool ParseTarget(const std::string& path, Target* target) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  size_t i;
  std::string group, version;
  if (parts.size() >= 3 && parts[0] == "api") {
    version = parts[1];
    i = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    group = parts[1];
    version = parts[2];
    i = 3;
  } else {
    return false;
  }
  if (parts[i] == "namespaces" && parts.size() >= i + 3) {
    target->namespace_name = parts[i + 1];
    i += 2;
  }
  target->type = FindResource(group, version, parts[i]);
  if (target->type == nullptr) return false;
  if (!target->type->namespaced && !target->namespace_name.empty()) return false;
  if (parts.size() > i + 1) target->name = parts[i + 1];
  if (parts.size() > i + 2) {
    if (parts[i + 2] != "status" || parts.size() > i + 3) return false;
    target->status = true;
  }
  return true;
}

bool IsTrue(const HttpRequest& request, const char* key) {
  const auto it = request.query.find(key);
  return it != request.query.end() && (it->second == "true" || it->second == "1");
}

std::string QueryValue(const HttpRequest& request, const char* key) {
  const auto it = request.query.find(key);
  return it == request.query.end() ? "" : it->second;
}

std::string HeaderValue(const HttpRequest& request, const char* key) {
  const auto it = request.headers.find(key);
  return it == request.headers.end() ? "" : it->second;
}

std::string VerbOf(const HttpRequest& request, const Target& target) {
  const bool collection = target.type != nullptr && target.name.empty();
  if (request.method == "GET") {
    if (!collection) return "get";
    return IsTrue(request, "watch") ? "watch" : "list";
  }
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "PATCH") return "patch";
  if (request.method == "DELETE") return collection ? "deletecollection" : "delete";
  return request.method;
}

// Objects of an answer to a request for several carry no kind, as those of the real server.
json ListObject(const ResourceType& type, const std::vector<json>& objects, uint64_t version) {
  json items = json::array();
  for (json object : objects) {
    object.erase("kind");
    object.erase("apiVersion");
    items.push_back(std::move(object));
  }
  return {{"kind", type.kind + "List"},
          {"apiVersion", type.api_version()},
          {"metadata", {{"resourceVersion", absl::StrCat(version)}}},
          {"items", std::move(items)}};
}

ApiError PlainError(int code, std::string message) {
  return {.code = code, .reason = ReasonOf(code), .message = std::move(message)};
}

absl::Status ToAbsl(const ApiError& error) {
  switch (error.code) {
    case 0:
      return absl::OkStatus();
    case 404:
      return absl::NotFoundError(error.message);
    case 409:
      return error.reason == "AlreadyExists" ? absl::AlreadyExistsError(error.message)
                                             : absl::AbortedError(error.message);
    default:
      return absl::InvalidArgumentError(error.message);
  }
}

absl::StatusOr<json> ToStatusOr(StoreResult result) {
  if (!result.ok()) return ToAbsl(result.error);
  return std::move(result.object);
}

// Server-side apply of a claim's status.devices, as far as one driver needs it: a manager owns the
// entries of the driver of its name. The error is the server's text for a 422.
absl::StatusOr<json> ApplyToMergePatch(const StoreResult& present, const json& body,
                                       const std::string& manager) {
  if (manager.empty()) return absl::InvalidArgumentError("fieldManager: Required value");
  if (!body.is_object() || !body.contains("status")) {
    return absl::InvalidArgumentError("body has no status");
  }
  if (!present.ok()) return json::object();  // MergePatch tells
  const std::string uid = body.value("/metadata/uid"_json_pointer, "");
  if (!uid.empty() && uid != present.object["metadata"].value("uid", "")) {
    return absl::InvalidArgumentError("metadata.uid: Invalid value: field is immutable");
  }
  json devices = json::array();
  for (const json& device : present.object.value("/status/devices"_json_pointer, json::array())) {
    if (device.value("driver", "") != manager) devices.push_back(device);
  }
  for (const json& device : body["status"].value("devices", json::array())) {
    devices.push_back(device);
  }
  return json{{"status", {{"devices", std::move(devices)}}}};
}

// Writes the status of `object` as well, if its kind keeps that apart and `written` went well.
StoreResult WithStatus(ObjectStore& store, const ResourceType& type, const std::string& space,
                       const json& object, StoreResult written) {
  if (!written.ok() || type.kind != "ResourceClaim" || !object.contains("status")) return written;
  json with_status = std::move(written.object);
  with_status["status"] = object["status"];
  const std::string name = with_status["metadata"]["name"];
  return store.Update(type, space, name, std::move(with_status), /*status_only=*/true);
}

json ToJson(const RecordedRequest& request) {
  return {{"verb", request.verb}, {"path", request.path},     {"query", request.query},
          {"body", request.body}, {"status", request.status}, {"userAgent", request.user_agent}};
}

Rule RuleFromJson(const json& object) {
  Rule rule;
  rule.verb = object.value("verb", "");
  rule.path_prefix = object.value("pathPrefix", "");
  rule.count = object.value("count", -1);
  rule.delay = absl::Milliseconds(object.value("delayMs", 0));
  rule.status = object.value("status", 0);
  rule.reason = object.value("reason", "");
  rule.message = object.value("message", "");
  if (object.contains("retryAfter")) rule.retry_after = object["retryAfter"].get<int>();
  rule.cut = object.value("cut", false);
  rule.hang = object.value("hang", false);
  return rule;
}

bool Matches(const RecordedRequest& request, const std::string& verb, const std::string& prefix) {
  return (verb.empty() || request.verb == verb) && absl::StartsWith(request.path, prefix);
}

}  // namespace

class ApiServer::Impl {
 public:
  explicit Impl(ApiServerOptions options) : options_(std::move(options)) {
    store_.device_taints = options_.device_taints;
    store_.partitionable_devices = options_.partitionable_devices;
    absl::StatusOr<std::unique_ptr<HttpServer>> http =
        HttpServer::Start([this](const HttpRequest& request, HttpResponder& responder) {
          Handle(request, responder);
        });
    if (!http.ok()) {
      std::fprintf(stderr, "simulated API server: %s\n", http.status().ToString().c_str());
      std::abort();
    }
    http_ = *std::move(http);
  }

  ~Impl() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    http_.reset();
  }

  int port() const { return http_->port(); }

  // Runs `use` on the store, and tells whoever waits for a change.
  template <typename Use>
  auto WithStore(Use use) {
    MutexLock lock(&mutex_);
    auto result = use(store_);
    changed_.SignalAll();
    return result;
  }

  // Waits until `condition`, which runs under the lock.
  absl::Status WaitUntil(const std::function<bool(const ObjectStore&)>& condition,
                         absl::Duration timeout, absl::string_view what) {
    const absl::Time deadline = absl::Now() + timeout;
    MutexLock lock(&mutex_);
    while (!condition(store_)) {
      const absl::Duration left = deadline - absl::Now();
      if (left <= absl::ZeroDuration()) {
        return absl::DeadlineExceededError(
            absl::StrCat(what, " did not come within ", absl::FormatDuration(timeout)));
      }
      changed_.WaitFor(&mutex_, left);
    }
    return absl::OkStatus();
  }

  void Handle(const HttpRequest& request, HttpResponder& responder) {
    if (absl::StartsWith(request.path, "/sim/")) {
      HandleAdmin(request, responder);
      return;
    }
    Target target;
    if (!ParseTarget(request.path, &target)) target = {};
    const std::string verb = VerbOf(request, target);
    const auto [recording, rule] = Begin(request, verb);
    if (rule.has_value() && !Delay(*rule)) {
      responder.Drop();
      return;
    }
    if (rule.has_value() && rule->hang) {
      responder.Drop();
      return;
    }
    if (rule.has_value() && rule->status != 0) {
      ApiError error =
          PlainError(rule->status, rule->message.empty() ? "told so by the test" : rule->message);
      if (!rule->reason.empty()) error.reason = rule->reason;
      HttpResponder::Headers headers;
      if (rule->retry_after.has_value()) {
        headers["Retry-After"] = absl::StrCat(*rule->retry_after);
      }
      End(recording, rule->status);
      responder.Send(rule->status, error.ToStatus().dump(), headers);
      return;
    }
    const bool cut = rule.has_value() && rule->cut;
    if (ApiError error = Authorize(request); error.code != 0) {
      End(recording, error.code);
      responder.Send(error.code, error.ToStatus().dump());
      return;
    }
    if (verb == "watch") {
      Watch(request, target, cut, recording, responder);
      return;
    }
    const auto [status, body] = Serve(request, target, verb);
    End(recording, status);
    if (cut) {
      responder.Cut(status, body);
    } else {
      responder.Send(status, body);
    }
  }

  // --- Rules and records ---

  int AddRule(Rule rule) {
    MutexLock lock(&mutex_);
    rules_.push_back({next_rule_, std::move(rule)});
    return next_rule_++;
  }

  void RemoveRule(int id) {
    MutexLock lock(&mutex_);
    rules_.remove_if([id](const NumberedRule& rule) { return rule.id == id; });
    hanging_.erase(id);
    changed_.SignalAll();
  }

  void ClearRules() {
    MutexLock lock(&mutex_);
    rules_.clear();
    hanging_.clear();
    changed_.SignalAll();
  }

  void CloseWatches() {
    MutexLock lock(&mutex_);
    ++watch_epoch_;
    changed_.SignalAll();
  }

  void SetToken(const std::string& token) {
    MutexLock lock(&mutex_);
    options_.token = token;
  }

  std::string token() {
    MutexLock lock(&mutex_);
    return options_.token;
  }

  std::vector<RecordedRequest> Requests(const std::string& verb, const std::string& prefix) {
    MutexLock lock(&mutex_);
    std::vector<RecordedRequest> found;
    for (const RecordedRequest& request : requests_) {
      if (Matches(request, verb, prefix)) found.push_back(request);
    }
    return found;
  }

  void ClearRequests() {
    MutexLock lock(&mutex_);
    requests_.clear();
    first_request_ = next_request_;
  }

  int answered_locked(const std::string& verb, const std::string& prefix) const {
    return static_cast<int>(
        std::count_if(requests_.begin(), requests_.end(), [&](const RecordedRequest& request) {
          return request.status != 0 && Matches(request, verb, prefix);
        }));
  }

  int active_watches() {
    MutexLock lock(&mutex_);
    return active_watches_;
  }

 private:
  struct NumberedRule {
    int id;
    Rule rule;
  };
  using Recording = size_t;

  // Records the request and takes the rule for it, in one step: whoever sees the request recorded
  // can rely on its rule. Returns late if the rule lets it hang.
  std::pair<Recording, std::optional<Rule>> Begin(const HttpRequest& request,
                                                  const std::string& verb) {
    MutexLock lock(&mutex_);
    requests_.push_back({.verb = verb,
                         .path = request.path,
                         .query = request.raw_query,
                         .body = request.body,
                         .user_agent = HeaderValue(request, "user-agent"),
                         .authorization = HeaderValue(request, "authorization")});
    changed_.SignalAll();
    const Recording recording = next_request_++;
    const auto it = std::find_if(rules_.begin(), rules_.end(), [&](const NumberedRule& numbered) {
      return (numbered.rule.verb.empty() || numbered.rule.verb == verb) &&
             absl::StartsWith(request.path, numbered.rule.path_prefix);
    });
    if (it == rules_.end()) return {recording, std::nullopt};
    const int id = it->id;
    const Rule taken = it->rule;
    if (taken.hang) hanging_.insert(id);
    if (it->rule.count > 0 && --it->rule.count == 0) rules_.erase(it);
    if (taken.hang) {
      while (!stopping_ && hanging_.count(id) != 0) changed_.Wait(&mutex_);
    }
    return {recording, taken};
  }

  void End(Recording recording, int status) {
    MutexLock lock(&mutex_);
    if (recording >= first_request_) requests_[recording - first_request_].status = status;
    changed_.SignalAll();
  }

  // False if the server stops meanwhile.
  bool Delay(const Rule& rule) {
    const absl::Time until = absl::Now() + rule.delay;
    MutexLock lock(&mutex_);
    while (!stopping_) {
      const absl::Duration left = until - absl::Now();
      if (left <= absl::ZeroDuration()) return true;
      changed_.WaitFor(&mutex_, left);
    }
    return false;
  }

  ApiError Authorize(const HttpRequest& request) {
    MutexLock lock(&mutex_);
    if (options_.token.empty() ||
        HeaderValue(request, "authorization") == absl::StrCat("Bearer ", options_.token)) {
      return {};
    }
    return PlainError(401, "Unauthorized");
  }

  // --- Serving ---

  std::pair<int, std::string> Serve(const HttpRequest& request, const Target& target,
                                    const std::string& verb) {
    if (target.type == nullptr || !Served(*target.type)) return Discover(request.path);
    StoreResult result = Dispatch(request, target, verb);
    if (!result.ok()) return {result.error.code, result.error.ToStatus().dump()};
    return {verb == "create" ? 201 : 200, result.object.dump()};
  }

  bool Served(const ResourceType& type) const {
    return options_.serve_resource_v1 || type.group != "resource.k8s.io";
  }

  std::pair<int, std::string> Discover(const std::string& path) const {
    if (path == "/livez" || path == "/readyz" || path == "/healthz") return {200, "ok"};
    if (path == "/version") {
      const bool current = options_.serve_resource_v1;
      return {200, json({{"major", "1"},
                         {"minor", current ? "37" : "33"},
                         {"gitVersion", current ? "v1.37.2" : "v1.33.0"}})
                       .dump()};
    }
    const std::string version = options_.serve_resource_v1 ? "v1" : "v1beta2";
    if (path == "/apis/resource.k8s.io") {
      const json entry = {{"groupVersion", "resource.k8s.io/" + version}, {"version", version}};
      return {200, json({{"kind", "APIGroup"},
                         {"apiVersion", "v1"},
                         {"name", "resource.k8s.io"},
                         {"versions", json::array({entry})},
                         {"preferredVersion", entry}})
                       .dump()};
    }
    if (path == "/apis/resource.k8s.io/v1" && options_.serve_resource_v1) {
      json resources = json::array();
      for (const char* name : {"deviceclasses", "resourceclaims", "resourceslices"}) {
        const ResourceType& type = *FindPlural(name);
        resources.push_back(
            {{"name", type.resource}, {"kind", type.kind}, {"namespaced", type.namespaced}});
      }
      return {200, json({{"kind", "APIResourceList"},
                         {"apiVersion", "v1"},
                         {"groupVersion", "resource.k8s.io/v1"},
                         {"resources", std::move(resources)}})
                       .dump()};
    }
    return {404, "404 page not found\n"};
  }

  StoreResult Dispatch(const HttpRequest& request, const Target& target, const std::string& verb) {
    const ResourceType& type = *target.type;
    Selector selector;
    if (ApiError error = ParseSelector(request, target, &selector); error.code != 0) {
      return {.error = error};
    }
    json body;
    if (!request.body.empty()) {
      body = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
      if (body.is_discarded()) return {.error = PlainError(400, "the body is not JSON")};
    }
    const bool in_namespace = !type.namespaced || !target.namespace_name.empty();
    MutexLock lock(&mutex_);
    StoreResult result = {
        .error =
            PlainError(405, "the server does not allow this method on the requested resource")};
    if (verb == "list") {
      result = {.object = ListObject(type, store_.List(type, selector), store_.version())};
    } else if (verb == "deletecollection") {
      const std::vector<json> doomed = store_.List(type, selector);
      for (const json& object : doomed) {
        const json& metadata = object["metadata"];
        store_.Delete(type, metadata.value("namespace", ""), metadata["name"], {});
      }
      result = {.object = ListObject(type, doomed, store_.version())};
    } else if (!in_namespace) {
      return result;
    } else if (verb == "get") {
      result = store_.Get(type, target.namespace_name, target.name);
    } else if (verb == "create" && target.name.empty()) {
      result = store_.Create(type, target.namespace_name, std::move(body));
    } else if (verb == "update" && !target.name.empty()) {
      result =
          store_.Update(type, target.namespace_name, target.name, std::move(body), target.status);
    } else if (verb == "patch" && !target.name.empty()) {
      const std::string content_type = HeaderValue(request, "content-type");
      if (content_type == "application/apply-patch+yaml" && target.status) {
        absl::StatusOr<json> patch =
            ApplyToMergePatch(store_.Get(type, target.namespace_name, target.name), body,
                              QueryValue(request, "fieldManager"));
        if (!patch.ok()) {
          return {.error = PlainError(422, std::string(patch.status().message()))};
        }
        body = *std::move(patch);
      } else if (content_type != "application/merge-patch+json") {
        return {.error = PlainError(415, "this content type is not known here")};
      }
      result = store_.MergePatch(type, target.namespace_name, target.name, body, target.status);
    } else if (verb == "delete") {
      Preconditions preconditions;
      if (body.is_object() && body.contains("preconditions")) {
        preconditions.uid = body["preconditions"].value("uid", "");
        preconditions.resource_version = body["preconditions"].value("resourceVersion", "");
      }
      result = store_.Delete(type, target.namespace_name, target.name, preconditions);
    }
    changed_.SignalAll();
    return result;
  }

  static ApiError ParseSelector(const HttpRequest& request, const Target& target,
                                Selector* selector) {
    selector->namespace_name = target.namespace_name;
    const std::string text = QueryValue(request, "fieldSelector");
    for (absl::string_view term : absl::StrSplit(text, ',', absl::SkipEmpty())) {
      std::pair<std::string, std::string> field = absl::StrSplit(term, absl::MaxSplits('=', 1));
      if (absl::StartsWith(field.second, "=")) field.second.erase(0, 1);
      const bool of_slices = field.first == "spec.driver" || field.first == "spec.nodeName";
      if (field.first != "metadata.name" && field.first != "metadata.namespace" &&
          !(of_slices && target.type->resource == "resourceslices")) {
        return PlainError(
            400, absl::StrCat("Unable to find field \"", field.first, "\" for ", target.type->kind,
                              ": field label not supported: ", field.first));
      }
      selector->fields[field.first] = field.second;
    }
    return {};
  }

  void Watch(const HttpRequest& request, const Target& target, bool cut, Recording recording,
             HttpResponder& responder) {
    Selector selector;
    ApiError error;
    if (!Served(*target.type)) {
      End(recording, 404);
      responder.Send(404, "404 page not found\n");
      return;
    }
    error = ParseSelector(request, target, &selector);
    const std::string from = QueryValue(request, "resourceVersion");
    uint64_t last = 0;
    if (error.code == 0 && !from.empty() && !absl::SimpleAtoi(from, &last)) {
      error = PlainError(400, absl::StrCat("resourceVersion: Invalid value: \"", from, "\""));
    }
    std::vector<std::string> lines;
    bool too_old = false;
    {
      MutexLock lock(&mutex_);
      if (last == 0) {
        last = store_.version();
        for (const json& object : store_.List(*target.type, selector)) {
          lines.push_back(Line("ADDED", object));
        }
      } else if (last < store_.oldest_version()) {
        too_old = true;
      }
    }
    if (too_old) {
      ApiError gone = PlainError(410, absl::StrCat("too old resource version: ", last));
      if (options_.gone_as_status) error = gone;
      lines.push_back(Line("ERROR", gone.ToStatus()));
    }
    if (error.code != 0) {
      End(recording, error.code);
      responder.Send(error.code, error.ToStatus().dump());
      return;
    }
    if (!responder.StartStream(200)) return;
    {
      MutexLock lock(&mutex_);
      ++active_watches_;
    }
    const absl::Cleanup done = [this] {
      MutexLock lock(&mutex_);
      --active_watches_;
      changed_.SignalAll();
    };
    End(recording, 200);
    Stream(request, *target.type, selector, last, std::move(lines), too_old, cut, responder);
  }

  // Sends `lines`, then what happens, until the time is up, the client goes or someone cuts it.
  void Stream(const HttpRequest& request, const ResourceType& type, const Selector& selector,
              uint64_t last, std::vector<std::string> lines, bool only_lines, bool cut,
              HttpResponder& responder) {
    int seconds = 0;
    const bool timed =
        absl::SimpleAtoi(QueryValue(request, "timeoutSeconds"), &seconds) && seconds > 0;
    const absl::Time end = timed ? absl::Now() + absl::Seconds(seconds) : absl::InfiniteFuture();
    const bool bookmarks = IsTrue(request, "allowWatchBookmarks");
    absl::Time next_bookmark =
        bookmarks ? absl::Now() + options_.bookmark_interval : absl::InfiniteFuture();
    int epoch;
    {
      MutexLock lock(&mutex_);
      epoch = watch_epoch_;
    }
    for (;;) {
      for (const std::string& line : lines) {
        if (cut) {
          responder.CutStream(line);
          return;
        }
        if (!responder.Write(line)) return;
      }
      lines.clear();
      if (only_lines) break;
      bool time_up = false;
      {
        MutexLock lock(&mutex_);
        for (;;) {
          if (stopping_ || watch_epoch_ != epoch) {
            responder.Drop();
            return;
          }
          for (ObjectStore::Event& event : store_.EventsAfter(last, type, selector)) {
            lines.push_back(Line(event.type, event.object));
          }
          last = store_.version();
          const absl::Time now = absl::Now();
          time_up = now >= end;
          if (bookmarks && (now >= next_bookmark || time_up)) {
            next_bookmark = now + options_.bookmark_interval;
            lines.push_back(
                Line("BOOKMARK", {{"kind", type.kind},
                                  {"apiVersion", type.api_version()},
                                  {"metadata", {{"resourceVersion", absl::StrCat(last)}}}}));
          }
          if (!lines.empty() || time_up) break;
          if (responder.ClientGone()) {
            responder.Drop();
            return;
          }
          changed_.WaitFor(&mutex_, std::min({kWatchPoll, end - now, next_bookmark - now}));
        }
      }
      if (time_up) {
        for (const std::string& line : lines) responder.Write(line);
        break;
      }
    }
    responder.EndStream();
  }

  static std::string Line(const std::string& type, const json& object) {
    return absl::StrCat(json({{"type", type}, {"object", object}}).dump(), "\n");
  }

  void HandleAdmin(const HttpRequest& request, HttpResponder& responder) {
    const std::string what = request.method + " " + request.path;
    if (what == "POST /sim/rules") {
      const json body = json::parse(request.body, nullptr, /*allow_exceptions=*/false);
      if (!body.is_object()) {
        responder.Send(400, R"({"error":"a rule is a JSON object"})");
        return;
      }
      responder.Send(200, json({{"id", AddRule(RuleFromJson(body))}}).dump());
    } else if (what == "DELETE /sim/rules") {
      ClearRules();
      responder.Send(200, "{}");
    } else if (what == "GET /sim/requests") {
      json requests = json::array();
      for (const RecordedRequest& recorded : Requests("", "")) requests.push_back(ToJson(recorded));
      responder.Send(200, requests.dump());
    } else if (what == "POST /sim/compact") {
      WithStore([](ObjectStore& store) {
        store.Compact();
        return 0;
      });
      responder.Send(200, "{}");
    } else if (what == "POST /sim/close-watches") {
      CloseWatches();
      responder.Send(200, "{}");
    } else {
      responder.Send(404, R"({"error":"no such control"})");
    }
  }

  ApiServerOptions options_;  // token: under mutex_
  Mutex mutex_;
  CondVar changed_;
  ObjectStore store_ ABSL_GUARDED_BY(mutex_);
  std::list<NumberedRule> rules_ ABSL_GUARDED_BY(mutex_);
  std::set<int> hanging_ ABSL_GUARDED_BY(mutex_);  // rules with requests that hang
  int next_rule_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<RecordedRequest> requests_;  // under mutex_
  Recording first_request_ ABSL_GUARDED_BY(mutex_) = 0;
  Recording next_request_ ABSL_GUARDED_BY(mutex_) = 0;
  int watch_epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  int active_watches_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<HttpServer> http_;
};

ApiServer::ApiServer(ApiServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
ApiServer::~ApiServer() = default;

std::string ApiServer::url() const { return absl::StrCat("http://127.0.0.1:", impl_->port()); }

absl::Status ApiServer::WriteKubeconfig(const std::string& path) const {
  const json config = {
      {"apiVersion", "v1"},
      {"kind", "Config"},
      {"current-context", "sim"},
      {"clusters", {{{"name", "sim"}, {"cluster", {{"server", url()}}}}}},
      {"users", {{{"name", "sim"}, {"user", {{"token", impl_->token()}}}}}},
      {"contexts", {{{"name", "sim"}, {"context", {{"cluster", "sim"}, {"user", "sim"}}}}}}};
  return WriteFileAtomically(path, config.dump(2) + "\n");  // JSON is YAML
}

absl::StatusOr<json> ApiServer::Create(const json& object) {
  const ResourceType* type = FindKind(object.value("apiVersion", ""), object.value("kind", ""));
  if (type == nullptr) return absl::InvalidArgumentError("unknown kind");
  const std::string space =
      type->namespaced ? object.at("metadata").value("namespace", "default") : "";
  return ToStatusOr(impl_->WithStore([&](ObjectStore& store) {
    return WithStatus(store, *type, space, object, store.Create(*type, space, object));
  }));
}

absl::StatusOr<json> ApiServer::Update(const json& object) {
  const ResourceType* type = FindKind(object.value("apiVersion", ""), object.value("kind", ""));
  if (type == nullptr) return absl::InvalidArgumentError("unknown kind");
  const json& metadata = object.at("metadata");
  const std::string space = type->namespaced ? metadata.value("namespace", "default") : "";
  return ToStatusOr(impl_->WithStore([&](ObjectStore& store) {
    return WithStatus(store, *type, space, object,
                      store.Update(*type, space, metadata.value("name", ""), object,
                                   /*status_only=*/false));
  }));
}

absl::StatusOr<json> ApiServer::Get(const std::string& resource, const std::string& namespace_name,
                                    const std::string& name) const {
  const ResourceType* type = FindPlural(resource);
  if (type == nullptr) return absl::InvalidArgumentError(absl::StrCat("no resource ", resource));
  return ToStatusOr(
      impl_->WithStore([&](ObjectStore& store) { return store.Get(*type, namespace_name, name); }));
}

std::vector<json> ApiServer::List(const std::string& resource) const {
  const ResourceType* type = FindPlural(resource);
  if (type == nullptr) return {};
  return impl_->WithStore([&](ObjectStore& store) { return store.List(*type, {}); });
}

std::vector<json> ApiServer::Slices() const { return List("resourceslices"); }

absl::Status ApiServer::Delete(const std::string& resource, const std::string& namespace_name,
                               const std::string& name) {
  const ResourceType* type = FindPlural(resource);
  if (type == nullptr) return absl::InvalidArgumentError(absl::StrCat("no resource ", resource));
  return ToAbsl(impl_
                    ->WithStore([&](ObjectStore& store) {
                      return store.Delete(*type, namespace_name, name, {});
                    })
                    .error);
}

std::string ApiServer::AddNode(const std::string& name) {
  const absl::StatusOr<json> node =
      Create({{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}});
  if (node.ok()) return (*node)["metadata"]["uid"];
  const absl::StatusOr<json> existing = Get("nodes", "", name);
  return existing.ok() ? (*existing)["metadata"]["uid"].get<std::string>() : "";
}

int ApiServer::DeleteSlices(const std::string& node_name, const std::string& driver) {
  const ResourceType& type = *FindPlural("resourceslices");
  return impl_->WithStore([&](ObjectStore& store) {
    Selector selector = {.fields = {{"spec.nodeName", node_name}}};
    if (!driver.empty()) selector.fields["spec.driver"] = driver;
    const std::vector<json> doomed = store.List(type, selector);
    for (const json& slice : doomed) store.Delete(type, "", slice["metadata"]["name"], {});
    return static_cast<int>(doomed.size());
  });
}

absl::Status ApiServer::WaitForSlices(
    const std::function<bool(const std::vector<json>&)>& condition, absl::Duration timeout) const {
  const ResourceType& type = *FindPlural("resourceslices");
  return impl_->WaitUntil([&](const ObjectStore& store) { return condition(store.List(type, {})); },
                          timeout, "the slices waited for");
}

int ApiServer::AddRule(Rule rule) { return impl_->AddRule(std::move(rule)); }
void ApiServer::RemoveRule(int id) { impl_->RemoveRule(id); }
void ApiServer::ClearRules() { impl_->ClearRules(); }
void ApiServer::CloseWatches() { impl_->CloseWatches(); }
void ApiServer::SetToken(const std::string& token) { impl_->SetToken(token); }

void ApiServer::Compact() {
  impl_->WithStore([](ObjectStore& store) {
    store.Compact();
    return 0;
  });
}

void ApiServer::SetFeatures(bool device_taints, bool partitionable_devices) {
  impl_->WithStore([&](ObjectStore& store) {
    store.device_taints = device_taints;
    store.partitionable_devices = partitionable_devices;
    return 0;
  });
}

std::vector<RecordedRequest> ApiServer::Requests(const std::string& verb,
                                                 const std::string& path_prefix) const {
  return impl_->Requests(verb, path_prefix);
}

int ApiServer::CountRequests(const std::string& verb, const std::string& path_prefix) const {
  return static_cast<int>(impl_->Requests(verb, path_prefix).size());
}

int ApiServer::slice_writes() const {
  return impl_->WithStore([](ObjectStore& store) { return store.slice_writes(); });
}

int ApiServer::active_watches() const { return impl_->active_watches(); }
void ApiServer::ClearRequests() { impl_->ClearRequests(); }

absl::Status ApiServer::WaitForRequests(const std::string& verb, const std::string& path_prefix,
                                        int count, absl::Duration timeout) const {
  return impl_->WaitUntil(
      [&](const ObjectStore&) { return impl_->answered_locked(verb, path_prefix) >= count; },
      timeout, absl::StrCat(count, " answered ", verb, " ", path_prefix));
}

}  // namespace ascend::sim
