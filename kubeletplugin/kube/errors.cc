#include "kubeletplugin/kube/errors.h"

#include <curl/curl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "kubeletplugin/kube/client.h"
#include "nlohmann/json.hpp"

namespace ascend::kube {
namespace {

constexpr char kRetryAfterUrl[] = "npu.huawei.com/kube-retry-after-ms";
constexpr char kCausesUrl[] = "npu.huawei.com/kube-causes";
constexpr char kResourceApiPrefix[] = "/apis/resource.k8s.io/";
constexpr size_t kMaxCauses = 8;
constexpr size_t kMaxQuotedBody = 200;

// What a meta/v1 Status says. Best effort: members of the wrong type count as absent, an error
// about an error would help nobody.
struct ApiStatus {
  int code = 0;
  std::string reason;
  std::string message;
  std::vector<std::string> causes;         // "field: reason: message"
  std::vector<std::string> cause_reasons;  // "FieldValueForbidden"
  std::optional<absl::Duration> retry_after;
};

const nlohmann::json* Find(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

std::string Text(const nlohmann::json& object, const char* key) {
  const nlohmann::json* value = Find(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

int64_t Number(const nlohmann::json& object, const char* key) {
  const nlohmann::json* value = Find(object, key);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>() : 0;
}

std::optional<ApiStatus> ParseApiStatus(const nlohmann::json& object) {
  if (Text(object, "kind") != "Status") return std::nullopt;
  ApiStatus status;
  status.code = static_cast<int>(Number(object, "code"));
  status.reason = Text(object, "reason");
  status.message = Text(object, "message");
  const nlohmann::json* details = Find(object, "details");
  if (details == nullptr) return status;
  if (const int64_t seconds = Number(*details, "retryAfterSeconds"); seconds > 0) {
    status.retry_after = absl::Seconds(seconds);
  }
  const nlohmann::json* causes = Find(*details, "causes");
  if (causes == nullptr || !causes->is_array()) return status;
  for (const nlohmann::json& cause : *causes) {
    std::vector<std::string> parts;
    for (const char* key : {"field", "reason", "message"}) {
      if (std::string part = Text(cause, key); !part.empty()) parts.push_back(std::move(part));
    }
    if (std::string reason = Text(cause, "reason"); !reason.empty()) {
      status.cause_reasons.push_back(std::move(reason));
    }
    if (status.causes.size() < kMaxCauses) status.causes.push_back(absl::StrJoin(parts, ": "));
  }
  if (causes->size() > kMaxCauses) {
    status.causes.push_back(absl::StrCat(causes->size() - kMaxCauses, " more"));
  }
  return status;
}

absl::StatusCode CodeOf(absl::string_view request, int http_status, absl::string_view reason) {
  switch (http_status) {
    case 400:
    case 413:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      if (reason == "AlreadyExists") return absl::StatusCode::kAlreadyExists;
      if (reason.empty() && absl::StartsWith(request, "POST ")) {
        return absl::StatusCode::kAlreadyExists;
      }
      return absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 408:
    case 429:
      return absl::StatusCode::kUnavailable;
    default:
      return http_status >= 500 && http_status < 600 ? absl::StatusCode::kUnavailable
                                                     : absl::StatusCode::kInternal;
  }
}

// The begin of a body that is not a Status object, fit for one line of a log.
std::string Quote(absl::string_view body) {
  std::string text(absl::StripAsciiWhitespace(body.substr(0, kMaxQuotedBody)));
  for (char& c : text) {
    if (!absl::ascii_isprint(c)) c = ' ';
  }
  return text;
}

std::optional<absl::Cord> GetPayload(const absl::Status& status, const char* url) {
  // Abseil's own optional may be another type than std's.
  const auto payload = status.GetPayload(url);
  if (!payload.has_value()) return std::nullopt;
  return *payload;
}

absl::Status Build(absl::string_view request, int http_status, absl::StatusCode code,
                   const ApiStatus& api_status) {
  std::string message = absl::StrCat(request, ": ", http_status);
  if (!api_status.reason.empty()) absl::StrAppend(&message, " ", api_status.reason);
  if (!api_status.message.empty()) absl::StrAppend(&message, ": ", api_status.message);
  if (!api_status.causes.empty()) {
    absl::StrAppend(&message, " (causes: ", absl::StrJoin(api_status.causes, "; "), ")");
  }
  absl::Status status(code, message);
  if (api_status.retry_after) {
    status.SetPayload(kRetryAfterUrl,
                      absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(*api_status.retry_after))));
  }
  if (!api_status.cause_reasons.empty()) {
    status.SetPayload(kCausesUrl, absl::Cord(absl::StrJoin(api_status.cause_reasons, ",")));
  }
  return status;
}

}  // namespace

absl::Status TransportError(absl::string_view request, int curl_code, absl::string_view detail) {
  const char* what = curl_easy_strerror(static_cast<CURLcode>(curl_code));
  const std::string message = absl::StrCat(request, ": ", what, detail.empty() ? "" : ": ", detail);
  switch (curl_code) {
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_FILESIZE_EXCEEDED:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_FAILED_INIT:
    case CURLE_URL_MALFORMAT:
      return absl::InternalError(message);
    default:
      // No connection or a broken one, certificates that do not match included: the other side
      // may be in the middle of a rotation.
      return absl::UnavailableError(message);
  }
}

absl::Status ResponseError(absl::string_view request, const HttpResponse& response) {
  const nlohmann::json body =
      nlohmann::json::parse(response.body, /*cb=*/nullptr, /*allow_exceptions=*/false);
  std::optional<ApiStatus> api_status = ParseApiStatus(body);
  absl::StatusCode code = CodeOf(request, response.status, api_status ? api_status->reason : "");
  if (!api_status) {
    api_status.emplace();
    api_status->message = Quote(response.body);
    if (response.status == 404) {
      // A missing object is reported by a Status; without one it is the path that is not served.
      code = absl::StatusCode::kUnimplemented;
      api_status->message = absl::StrContains(request, kResourceApiPrefix)
                                ? "the server does not serve this API: Kubernetes 1.34 or newer "
                                  "with resource.k8s.io/v1 is needed"
                                : "the server does not serve this API";
    }
  }
  if (response.retry_after) api_status->retry_after = response.retry_after;
  return Build(request, response.status, code, *api_status);
}

absl::Status StatusObjectError(absl::string_view request, const nlohmann::json& object) {
  const std::optional<ApiStatus> api_status = ParseApiStatus(object);
  if (!api_status || api_status->code < 400) {
    return absl::InternalError(absl::StrCat(request, ": an error event without a Status object"));
  }
  return Build(request, api_status->code, CodeOf(request, api_status->code, api_status->reason),
               *api_status);
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const std::optional<absl::Cord> payload = GetPayload(status, kRetryAfterUrl);
  int64_t milliseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &milliseconds)) return std::nullopt;
  return absl::Milliseconds(milliseconds);
}

bool HasCause(const absl::Status& status, absl::string_view reason) {
  const std::optional<absl::Cord> payload = GetPayload(status, kCausesUrl);
  if (!payload) return false;
  const std::string reasons(*payload);
  for (const absl::string_view cause : absl::StrSplit(reasons, ',')) {
    if (cause == reason) return true;
  }
  return false;
}

}  // namespace ascend::kube
