// The one place that turns what a request met into the Status that client.h documents.
#ifndef ASCEND_DRA_KUBELETPLUGIN_KUBE_ERRORS_H_
#define ASCEND_DRA_KUBELETPLUGIN_KUBE_ERRORS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kubeletplugin/kube/http.h"
#include "nlohmann/json_fwd.hpp"

namespace ascend::kube {

// `curl_code` is a CURLcode other than CURLE_OK; `detail` is libcurl's error text, may be empty.
// `request` is HttpRequest::Name().
absl::Status TransportError(absl::string_view request, int curl_code, absl::string_view detail);

// An answer that is not 2xx.
absl::Status ResponseError(absl::string_view request, const HttpResponse& response);

// The Status object of a watch's ERROR event.
absl::Status StatusObjectError(absl::string_view request, const nlohmann::json& object);

}  // namespace ascend::kube

#endif  // ASCEND_DRA_KUBELETPLUGIN_KUBE_ERRORS_H_
