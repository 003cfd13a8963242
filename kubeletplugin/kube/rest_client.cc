#include "kubeletplugin/kube/rest_client.h"

#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/core/status_macros.h"
#include "base/core/strings.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/kube/errors.h"
#include "kubeletplugin/kube/http.h"
#include "kubeletplugin/kube/json_reader.h"
#include "nlohmann/json.hpp"

namespace ascend::kube {
namespace {

using Json = nlohmann::json;

constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
// Limits of events.k8s.io/v1 and of object names.
constexpr size_t kMaxNote = 1024;
constexpr size_t kMaxEventText = 128;
constexpr size_t kMaxEventNamePrefix = 200;
constexpr absl::Duration kWatchGrace = absl::Seconds(10);

std::string Escape(absl::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      escaped += c;
    } else {
      absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return escaped;
}

// An empty name would address the collection instead, a dotted one another path.
absl::Status CheckName(absl::string_view what, absl::string_view name) {
  if (name.empty() || name == "." || name == ".." || absl::StrContains(name, "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " \"", absl::CHexEscape(name), "\" cannot be a name"));
  }
  return absl::OkStatus();
}

std::string SliceSelector(absl::string_view driver, absl::string_view node_name) {
  return absl::StrCat("fieldSelector=",
                      Escape(absl::StrCat("spec.driver=", driver, ",spec.nodeName=", node_name)));
}

// Different for each watch, so that the watches of many nodes do not end together.
absl::Duration RandomWatchDuration() {
  std::random_device random;
  return absl::Seconds(std::uniform_int_distribution<int>(300, 540)(random));
}

std::string EventName(absl::string_view about, absl::Time now) {
  std::string prefix(about.substr(0, kMaxEventNamePrefix));
  while (!prefix.empty() && !absl::ascii_isalnum(prefix.back())) prefix.pop_back();
  std::random_device random;
  return absl::StrCat(prefix, prefix.empty() ? "" : ".", absl::Hex(absl::ToUnixNanos(now)),
                      absl::Hex(random(), absl::kZeroPad8));
}

Json EventToJson(const Event& event, const std::string& namespace_name, absl::Time now) {
  const ObjectReference& about = event.regarding;
  Json regarding = {{"apiVersion", about.api_version}, {"kind", about.kind}, {"name", about.name}};
  if (!about.namespace_name.empty()) regarding["namespace"] = about.namespace_name;
  if (!about.uid.empty()) regarding["uid"] = about.uid;
  const std::string reason(CutUtf8(event.reason, kMaxEventText));
  return {
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", EventName(about.name, now)}, {"namespace", namespace_name}}},
      {"eventTime", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", now, absl::UTCTimeZone())},
      {"reportingController", event.reporting_component},
      {"reportingInstance", std::string(CutUtf8(event.reporting_instance, kMaxEventText))},
      {"action", event.action.empty() ? reason : std::string(CutUtf8(event.action, kMaxEventText))},
      {"reason", reason},
      {"type", event.warning ? "Warning" : "Normal"},
      {"note", std::string(CutUtf8(event.message, kMaxNote))},
      {"regarding", std::move(regarding)}};
}

// What the server sent is not what the API promises.
absl::Status BadAnswer(absl::string_view request, const absl::Status& status) {
  return absl::InternalError(
      absl::StrCat(request, ": unexpected answer of the server: ", status.message()));
}

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  Json document = Json::parse(text.begin(), text.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return absl::InvalidArgumentError("not valid JSON");
  if (!document.is_object()) return absl::InvalidArgumentError("not an object");
  return document;
}

absl::StatusOr<ResourceSlice> ParseSliceText(absl::string_view text) {
  ASCEND_ASSIGN_OR_RETURN(const Json document, ParseJson(text));
  return ParseResourceSlice(document);
}

absl::StatusOr<Node> ParseNodeText(absl::string_view text) {
  ASCEND_ASSIGN_OR_RETURN(const Json document, ParseJson(text));
  const JsonReader root(document);
  Node node;
  ASCEND_RETURN_IF_ERROR(root.Object("metadata", [&](const JsonReader& metadata) {
    absl::Status status = metadata.Read("name", &node.name);
    status.Update(metadata.Read("uid", &node.uid));
    return status;
  }));
  if (node.name.empty() || node.uid.empty()) {
    return absl::InvalidArgumentError("metadata: name or uid is missing");
  }
  ASCEND_RETURN_IF_ERROR(root.Object("status", [&](const JsonReader& status) {
    absl::Status read = status.Object("nodeInfo", [&](const JsonReader& info) {
      return info.Read("containerRuntimeVersion", &node.container_runtime_version);
    });
    read.Update(status.Read("allocatable", &node.allocatable));
    return read;
  }));
  return node;
}

absl::StatusOr<SliceList> ParseSliceListText(absl::string_view text) {
  ASCEND_ASSIGN_OR_RETURN(const Json document, ParseJson(text));
  const JsonReader root(document);
  SliceList list;
  ASCEND_RETURN_IF_ERROR(root.Object("metadata", [&](const JsonReader& metadata) {
    return metadata.Read("resourceVersion", &list.resource_version);
  }));
  const auto items = document.find("items");
  if (items == document.end() || items->is_null()) return list;
  if (!items->is_array()) return absl::InvalidArgumentError("items: not an array");
  for (const Json& item : *items) {
    ASCEND_ASSIGN_OR_RETURN(ResourceSlice slice, ParseResourceSlice(item),
                            absl::StrCat("items[", list.slices.size(), "]"));
    list.slices.push_back(std::move(slice));
  }
  return list;
}

absl::StatusOr<SliceEvent> ParseWatchLine(absl::string_view request, absl::string_view line) {
  absl::StatusOr<Json> document = ParseJson(line);
  if (!document.ok()) return BadAnswer(request, document.status());
  std::string type;
  const Json& object = (*document)["object"];
  if (absl::Status status = JsonReader(*document).Read("type", &type); !status.ok()) {
    return BadAnswer(request, status);
  }
  if (type == "ERROR") return StatusObjectError(request, object);
  SliceEvent event;
  if (type == "ADDED") {
    event.type = SliceEvent::Type::kAdded;
  } else if (type == "MODIFIED") {
    event.type = SliceEvent::Type::kModified;
  } else if (type == "DELETED") {
    event.type = SliceEvent::Type::kDeleted;
  } else if (type == "BOOKMARK") {
    event.type = SliceEvent::Type::kBookmark;
  } else {
    return BadAnswer(request, absl::InvalidArgumentError(
                                  absl::StrCat("event type \"", absl::CHexEscape(type), "\"")));
  }
  absl::StatusOr<ResourceSlice> slice = ParseResourceSlice(object);
  if (!slice.ok()) return BadAnswer(request, Annotate(slice.status(), "object"));
  if (event.type == SliceEvent::Type::kBookmark) {
    event.slice.resource_version = slice->resource_version;
  } else {
    event.slice = *std::move(slice);
  }
  return event;
}

class StreamWatch : public Watch {
 public:
  explicit StreamWatch(std::unique_ptr<HttpStream> stream) : stream_(std::move(stream)) {}

 private:
  const std::unique_ptr<HttpStream> stream_;
};

class RestClient : public Client {
 public:
  RestClient(std::unique_ptr<HttpEngine> engine, RequestObserver observe)
      : observe_(std::move(observe)), engine_(std::move(engine)) {}

  void Shutdown() override { engine_->Shutdown(); }

  absl::StatusOr<ResourceClaim> GetResourceClaim(const std::string& namespace_name,
                                                 const std::string& name,
                                                 absl::Duration timeout) override {
    ASCEND_RETURN_IF_ERROR(CheckName("namespace", namespace_name));
    ASCEND_RETURN_IF_ERROR(CheckName("ResourceClaim", name));
    return Call({.target = absl::StrCat("/apis/resource.k8s.io/v1/namespaces/",
                                        Escape(namespace_name), "/resourceclaims/", Escape(name))},
                timeout, &ParseResourceClaim);
  }

  absl::StatusOr<Node> GetNode(const std::string& name, absl::Duration timeout) override {
    ASCEND_RETURN_IF_ERROR(CheckName("Node", name));
    return Call({.target = absl::StrCat("/api/v1/nodes/", Escape(name))}, timeout, &ParseNodeText);
  }

  absl::StatusOr<SliceList> ListResourceSlices(const std::string& driver,
                                               const std::string& node_name,
                                               absl::Duration timeout) override {
    return Call({.target = absl::StrCat(kSlices, "?", SliceSelector(driver, node_name))}, timeout,
                &ParseSliceListText);
  }

  std::unique_ptr<Watch> WatchResourceSlices(const std::string& driver,
                                             const std::string& node_name,
                                             const std::string& resource_version,
                                             std::function<void(SliceEvent)> on_event,
                                             std::function<void(absl::Status)> on_end) override {
    const absl::Duration duration = RandomWatchDuration();
    HttpRequest request = {
        .target = absl::StrCat(
            kSlices,
            "?watch=true&allowWatchBookmarks=true&timeoutSeconds=", absl::ToInt64Seconds(duration),
            "&resourceVersion=", Escape(resource_version), "&", SliceSelector(driver, node_name))};
    const std::string request_name = request.Name();
    HttpStreamHandler handler;
    handler.on_line = [request_name,
                       on_event = std::move(on_event)](absl::string_view line) -> absl::Status {
      ASCEND_ASSIGN_OR_RETURN(SliceEvent event, ParseWatchLine(request_name, line));
      on_event(std::move(event));
      return absl::OkStatus();
    };
    RequestReport report = {.kind = KindOfRequest(request.method, request.target),
                            .watch_begins = true};
    Observe(report);
    report.watch_begins = false;
    handler.on_end = [this, report, request_name,
                      on_end = std::move(on_end)](absl::StatusOr<HttpResponse> response) mutable {
      if (response.ok()) report.http_status = response->status;
      Observe(report);
      if (!response.ok()) {
        on_end(std::move(response).status());
      } else if (!response->ok()) {
        on_end(ResponseError(request_name, *response));
      } else {
        on_end(absl::OkStatus());
      }
    };
    return std::make_unique<StreamWatch>(
        engine_->Open(std::move(request), duration + kWatchGrace, std::move(handler)));
  }

  absl::StatusOr<ResourceSlice> CreateResourceSlice(const ResourceSlice& slice,
                                                    absl::Duration timeout) override {
    ASCEND_RETURN_IF_ERROR(CheckName("ResourceSlice", slice.name));
    Json body = ToJson(slice);
    body["metadata"].erase("uid");  // the server refuses to be told
    body["metadata"].erase("resourceVersion");
    return Call({.method = "POST", .target = kSlices, .body = Dump(body)}, timeout,
                &ParseSliceText);
  }

  absl::StatusOr<ResourceSlice> UpdateResourceSlice(const ResourceSlice& slice,
                                                    absl::Duration timeout) override {
    ASCEND_RETURN_IF_ERROR(CheckName("ResourceSlice", slice.name));
    if (slice.resource_version.empty()) {  // the server would overwrite whatever there is
      return absl::InvalidArgumentError(
          absl::StrCat("ResourceSlice ", slice.name, ": an update needs a resource version"));
    }
    return Call({.method = "PUT",
                 .target = absl::StrCat(kSlices, "/", Escape(slice.name)),
                 .body = Dump(ToJson(slice))},
                timeout, &ParseSliceText);
  }

  absl::Status DeleteResourceSlice(const std::string& name, const std::string& uid,
                                   absl::Duration timeout) override {
    ASCEND_RETURN_IF_ERROR(CheckName("ResourceSlice", name));
    ASCEND_RETURN_IF_ERROR(CheckName("UID", uid));
    const Json body = {
        {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}};
    return Send({.method = "DELETE",
                 .target = absl::StrCat(kSlices, "/", Escape(name)),
                 .body = Dump(body)},
                timeout)
        .status();
  }

  absl::Status ApplyDeviceStatus(const std::string& namespace_name, const std::string& name,
                                 const std::string& uid, const std::string& manager,
                                 const std::vector<DeviceStatus>& devices,
                                 absl::Duration timeout) override {
    ASCEND_RETURN_IF_ERROR(CheckName("namespace", namespace_name));
    ASCEND_RETURN_IF_ERROR(CheckName("ResourceClaim", name));
    Json list = Json::array();
    for (const DeviceStatus& device : devices) list.push_back(ToJson(device));
    const Json body = {{"apiVersion", "resource.k8s.io/v1"},
                       {"kind", "ResourceClaim"},
                       {"metadata", {{"name", name}, {"namespace", namespace_name}, {"uid", uid}}},
                       {"status", {{"devices", std::move(list)}}}};
    return Send({.method = "PATCH",
                 .target = absl::StrCat("/apis/resource.k8s.io/v1/namespaces/",
                                        Escape(namespace_name), "/resourceclaims/", Escape(name),
                                        "/status?force=true&fieldManager=", Escape(manager)),
                 .body = Dump(body),
                 .content_type = "application/apply-patch+yaml"},
                timeout)
        .status();
  }

  absl::Status CreateEvent(const Event& event, absl::Duration timeout) override {
    // Events about objects without a namespace live in "default".
    const std::string namespace_name =
        event.regarding.namespace_name.empty() ? "default" : event.regarding.namespace_name;
    ASCEND_RETURN_IF_ERROR(CheckName("namespace", namespace_name));
    const absl::Status status =
        Send({.method = "POST",
              .target = absl::StrCat("/apis/events.k8s.io/v1/namespaces/", Escape(namespace_name),
                                     "/events"),
              .body = Dump(EventToJson(event, namespace_name, absl::Now()))},
             timeout)
            .status();
    // Nobody else makes up this name: a first try arrived and its answer was lost.
    return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
  }

 private:
  static std::string Dump(const Json& json) {
    // Texts come from devices and files too: bytes that are not UTF-8 are replaced.
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  // The body of a 2xx answer.
  absl::StatusOr<std::string> Send(HttpRequest request, absl::Duration timeout) {
    const std::string name = request.Name();
    RequestReport report = {.kind = KindOfRequest(request.method, request.target)};
    const absl::Duration start = Clock::Real().Monotonic();
    absl::StatusOr<HttpResponse> response = engine_->Send(std::move(request), timeout);
    report.duration = Clock::Real().Monotonic() - start;
    if (response.ok()) report.http_status = response->status;
    Observe(report);
    ASCEND_RETURN_IF_ERROR(response.status());
    if (!response->ok()) return ResponseError(name, *response);
    return std::move(response->body);
  }

  void Observe(const RequestReport& report) const {
    if (observe_) observe_(report);
  }

  template <typename T>
  absl::StatusOr<T> Call(HttpRequest request, absl::Duration timeout,
                         absl::StatusOr<T> (*parse)(absl::string_view)) {
    const std::string name = request.Name();
    ASCEND_ASSIGN_OR_RETURN(const std::string body, Send(std::move(request), timeout));
    absl::StatusOr<T> result = parse(body);
    if (!result.ok()) return BadAnswer(name, result.status());
    return result;
  }

  const RequestObserver observe_;  // outlives the engine, whose callbacks use it
  const std::unique_ptr<HttpEngine> engine_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> CreateRestClient(ConnectionConfig config,
                                                         std::string user_agent,
                                                         RequestObserver observe) {
  ASCEND_ASSIGN_OR_RETURN(std::unique_ptr<HttpEngine> engine,
                          HttpEngine::Start(config, std::move(user_agent)));
  return std::unique_ptr<Client>(
      std::make_unique<RestClient>(std::move(engine), std::move(observe)));
}

}  // namespace ascend::kube
