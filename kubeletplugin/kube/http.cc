#include "kubeletplugin/kube/http.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "base/runtime/clock.h"
#include "kubeletplugin/kube/credentials.h"
#include "kubeletplugin/kube/errors.h"
#include "kubeletplugin/kube/line_splitter.h"

namespace ascend::kube {
namespace {

// A dead peer is noticed after about this long, whether data is in flight or the stream is idle.
constexpr int kTcpKeepIdleSeconds = 15;
constexpr int kTcpKeepIntervalSeconds = 5;
constexpr int kTcpKeepCount = 3;
constexpr unsigned kTcpUserTimeoutMs = 30'000;
// kube-apiserver closes idle connections after 90 s: stop using them before, or a request races
// with the close.
constexpr long kMaxIdleConnectionSeconds = 80;
constexpr absl::Duration kLongestPoll = absl::Hours(1);

struct CurlListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using CurlList = std::unique_ptr<curl_slist, CurlListDeleter>;

void Append(CurlList& list, const std::string& entry) {
  list.reset(curl_slist_append(list.release(), entry.c_str()));
}

struct CurlStringDeleter {
  void operator()(char* text) const { curl_free(text); }
};
using CurlString = std::unique_ptr<char, CurlStringDeleter>;

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};

// A configured easy handle, used for one request after the other.
struct Handle {
  std::unique_ptr<CURL, EasyDeleter> easy;
  uint64_t tls_generation = 0;
};

// Collects the first error of many option settings.
class OptionSetter {
 public:
  explicit OptionSetter(CURL* easy) : easy_(easy) {}
  template <typename T>
  OptionSetter& Set(CURLoption option, T value) {
    if (code_ == CURLE_OK) {
      code_ = curl_easy_setopt(easy_, option, value);
      option_ = option;
    }
    return *this;
  }
  OptionSetter& SetBlob(CURLoption option, const std::string& data) {
    if (data.empty()) return Set(option, static_cast<curl_blob*>(nullptr));
    curl_blob blob = {const_cast<char*>(data.data()), data.size(), CURL_BLOB_COPY};
    return Set(option, &blob);
  }
  absl::Status status() const {
    if (code_ == CURLE_OK) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("libcurl option ", option_, ": ", curl_easy_strerror(code_)));
  }

 private:
  CURL* const easy_;
  CURLcode code_ = CURLE_OK;
  int option_ = 0;
};

int SetSocketOptions(void*, curl_socket_t fd, curlsocktype) {
  // Best effort: without them a dead peer is merely noticed later.
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kTcpKeepCount, sizeof(kTcpKeepCount));
  ::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kTcpUserTimeoutMs, sizeof(kTcpUserTimeoutMs));
  return CURL_SOCKOPT_OK;
}

absl::Status GlobalInit() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code == CURLE_OK) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("libcurl: ", curl_easy_strerror(code)));
}

// Where requests go, taken apart once.
struct Endpoint {
  std::string base_url;     // without a slash at its end
  std::string host_header;  // empty = libcurl's own
  CurlList connect_to;      // where base_url's host really is; empty = there
};

absl::StatusOr<std::string> UrlPart(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  const CURLUcode code = curl_url_get(url, part, &text, CURLU_DEFAULT_PORT);
  const CurlString owner(text);
  if (code != CURLUE_OK) return absl::InvalidArgumentError(curl_url_strerror(code));
  return std::string(text);
}

absl::StatusOr<Endpoint> ParseEndpoint(const ConnectionConfig& config) {
  CURLU* url = curl_url();
  const auto cleanup = absl::MakeCleanup([url] { curl_url_cleanup(url); });
  if (const CURLUcode code = curl_url_set(url, CURLUPART_URL, config.server.c_str(), 0);
      code != CURLUE_OK) {
    return absl::InvalidArgumentError(
        absl::StrCat("server URL \"", config.server, "\": ", curl_url_strerror(code)));
  }
  ASCEND_ASSIGN_OR_RETURN(const std::string scheme, UrlPart(url, CURLUPART_SCHEME));
  ASCEND_ASSIGN_OR_RETURN(const std::string host, UrlPart(url, CURLUPART_HOST));
  ASCEND_ASSIGN_OR_RETURN(const std::string port, UrlPart(url, CURLUPART_PORT));
  if (scheme != "http" && scheme != "https") {
    return absl::InvalidArgumentError(
        absl::StrCat("server URL \"", config.server, "\": neither http nor https"));
  }
  Endpoint endpoint;
  if (!config.tls_server_name.empty() && config.tls_server_name != host) {
    // libcurl verifies the name in the URL, so the URL gets the name and the address goes aside.
    endpoint.host_header = absl::StrCat("Host: ", host, ":", port);
    Append(endpoint.connect_to,
           absl::StrCat(config.tls_server_name, ":", port, ":", host, ":", port));
    if (curl_url_set(url, CURLUPART_HOST, config.tls_server_name.c_str(), 0) != CURLUE_OK) {
      return absl::InvalidArgumentError(
          absl::StrCat("TLS server name \"", config.tls_server_name, "\" is not a host name"));
    }
  }
  ASCEND_ASSIGN_OR_RETURN(endpoint.base_url, UrlPart(url, CURLUPART_URL));
  while (absl::EndsWith(endpoint.base_url, "/")) endpoint.base_url.pop_back();
  return endpoint;
}

// One request or stream on its way.
struct Transfer {
  explicit Transfer(size_t max_line) : lines(max_line) {}

  // Set before it is submitted.
  HttpRequest request;
  bool streaming = false;
  absl::Duration deadline;  // on the monotonic clock
  absl::Duration timeout;   // what the caller asked for, for messages
  HttpStreamHandler handler;
  size_t max_body = 0;

  // The engine's thread only.
  Handle handle;
  CurlList headers;
  absl::Duration header_deadline = absl::InfiniteDuration();
  int attempts = 0;
  long status = 0;
  std::string body;
  LineSplitter lines;
  absl::Status failure;  // why a callback of ours stopped the transfer
  char error[CURL_ERROR_SIZE] = "";

  Mutex mutex;
  CondVar changed;
  std::optional<absl::StatusOr<HttpResponse>> result ABSL_GUARDED_BY(mutex);
  bool cancelled ABSL_GUARDED_BY(mutex) = false;    // the stream was destroyed
  bool in_callback ABSL_GUARDED_BY(mutex) = false;  // a handler runs

  bool IsCancelled() {
    MutexLock lock(&mutex);
    return cancelled;
  }

  // Runs `callback` unless the stream was destroyed; false if it was, before or meanwhile.
  template <typename Callback>
  bool RunCallback(Callback&& callback) {
    {
      MutexLock lock(&mutex);
      if (cancelled) return false;
      in_callback = true;
    }
    callback();
    MutexLock lock(&mutex);
    in_callback = false;
    changed.SignalAll();
    return !cancelled;
  }

  void Finish(absl::StatusOr<HttpResponse> outcome) {
    if (streaming) {
      RunCallback([&] { handler.on_end(std::move(outcome)); });
      return;
    }
    {
      MutexLock lock(&mutex);
      result = std::move(outcome);
    }
    changed.Signal();  // outside the lock, or the caller would wake only to wait for it
  }

  absl::Duration NextDeadline() const { return std::min(deadline, header_deadline); }

  absl::Status OnData(absl::string_view data) {
    if (streaming && status >= 200 && status < 300) {
      return lines.Feed(data, [this](absl::string_view line) {
        absl::Status verdict;
        if (!RunCallback([&] { verdict = handler.on_line(line); })) {
          return absl::CancelledError("the stream was destroyed");
        }
        return verdict;
      });
    }
    if (data.size() > max_body - body.size()) {
      return absl::InternalError(absl::StrCat("the answer is larger than ", max_body, " bytes"));
    }
    body.append(data.data(), data.size());
    return absl::OkStatus();
  }

  static size_t WriteCallback(char* data, size_t, size_t size, void* self) {
    auto* transfer = static_cast<Transfer*>(self);
    if (transfer->status == 0) {
      curl_easy_getinfo(transfer->handle.easy.get(), CURLINFO_RESPONSE_CODE, &transfer->status);
    }
    transfer->failure = transfer->OnData(absl::string_view(data, size));
    return transfer->failure.ok() ? size : size + 1;  // anything but `size` stops the transfer
  }

  static size_t HeaderCallback(char*, size_t, size_t size, void* self) {
    static_cast<Transfer*>(self)->header_deadline = absl::InfiniteDuration();
    return size;
  }
};

absl::Duration Now() { return Clock::Real().Monotonic(); }

}  // namespace

std::string HttpRequest::Name() const {
  return absl::StrCat(method, " ", absl::string_view(target).substr(0, target.find('?')));
}

// Shared by the engine and its streams, which may outlive it: after Stop() only the lock and the
// flag are used.
class HttpEngine::Core {
 public:
  Core(Endpoint endpoint, Credentials credentials, bool insecure, std::string user_agent,
       const HttpLimits& limits)
      : endpoint_(std::move(endpoint)),
        credentials_(std::move(credentials)),
        insecure_(insecure),
        user_agent_(std::move(user_agent)),
        limits_(limits) {}

  absl::Status Start() {
    multi_ = curl_multi_init();
    if (multi_ == nullptr) return absl::InternalError("libcurl: no multi handle");
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS,
                      static_cast<long>(2 * limits_.parallel_requests));
    // Signals are for the program's other threads. SIGPIPE, which OpenSSL's writes can raise, is
    // aimed at the thread that writes, so it ends here.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { Run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    thread_id_ = thread_.get_id();
    pthread_setname_np(thread_.native_handle(), "kube-http");
    return absl::OkStatus();
  }

  // Here and not in Stop(): somebody may be about to wake the thread for a stream.
  ~Core() {
    if (multi_ != nullptr) curl_multi_cleanup(multi_);
  }

  void Stop() {
    bool first;
    {
      MutexLock lock(&mutex_);
      first = !stopping_;
      stopping_ = true;
      curl_multi_wakeup(multi_);
    }
    if (first) thread_.join();
    MutexLock lock(&mutex_);
    while (callers_ > 0) callers_left_.Wait(&mutex_);
  }

  bool OnEngineThread() const { return std::this_thread::get_id() == thread_id_; }
  const HttpLimits& limits() const { return limits_; }

  absl::StatusOr<HttpResponse> Send(std::shared_ptr<Transfer> transfer) {
    if (!Submit(transfer, /*caller_waits=*/true)) return ShutDown(*transfer);
    const auto leave = absl::MakeCleanup([this] {
      MutexLock lock(&mutex_);
      if (--callers_ == 0) callers_left_.SignalAll();
    });
    MutexLock lock(&transfer->mutex);
    while (!transfer->result.has_value()) transfer->changed.Wait(&transfer->mutex);
    return *std::move(transfer->result);
  }

  // False if the engine is shutting down.
  bool Submit(std::shared_ptr<Transfer> transfer, bool caller_waits) {
    bool wake;
    {
      MutexLock lock(&mutex_);
      if (stopping_) return false;
      if (caller_waits) ++callers_;
      submitted_.push_back(std::move(transfer));
      wake = submitted_.size() == 1;
    }
    // Outside the lock, or the thread would wake only to wait for it. Stop() waits for callers.
    if (wake) curl_multi_wakeup(multi_);
    return true;
  }

  // The transfer is marked as cancelled already.
  void Cancel(std::shared_ptr<Transfer> transfer) {
    MutexLock lock(&mutex_);
    if (stopping_) return;
    cancelled_.push_back(std::move(transfer));
    curl_multi_wakeup(multi_);
  }

  static absl::Status ShutDown(const Transfer& transfer) {
    return absl::CancelledError(
        absl::StrCat(transfer.request.Name(), ": the client is shutting down"));
  }

 private:
  void Run() {
    while (TakeSubmitted()) {
      do {
        StartWaiting();
        int running = 0;
        curl_multi_perform(multi_, &running);
      } while (FinishDone() && !waiting_.empty());
      Expire();
      if (!waiting_.empty() && HasRoom()) continue;
      const absl::Duration pause =
          std::clamp(NextDeadline() - Now(), absl::ZeroDuration(), kLongestPoll);
      curl_multi_poll(multi_, nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(pause)) + 1,
                      nullptr);
    }
    for (const auto& transfer : waiting_) transfer->Finish(ShutDown(*transfer));
    while (!active_.empty()) {
      const std::shared_ptr<Transfer> transfer = active_.begin()->second;
      Detach(*transfer);
      transfer->Finish(ShutDown(*transfer));
    }
    waiting_.clear();
    idle_.clear();
  }

  // False once the engine is to stop; what was submitted until then is in waiting_.
  bool TakeSubmitted() {
    std::vector<std::shared_ptr<Transfer>> submitted, cancelled;
    bool stopping;
    {
      MutexLock lock(&mutex_);
      submitted.swap(submitted_);
      cancelled.swap(cancelled_);
      stopping = stopping_;
    }
    waiting_.insert(waiting_.end(), submitted.begin(), submitted.end());
    for (const auto& transfer : cancelled) {
      if (transfer->handle.easy != nullptr) {
        Detach(*transfer);
      } else {
        std::erase(waiting_, transfer);
      }
    }
    return !stopping;
  }

  bool HasRoom() const { return active_requests_ < limits_.parallel_requests; }

  void StartWaiting() {
    if (waiting_.empty()) return;
    credentials_.Refresh();
    std::deque<std::shared_ptr<Transfer>> held;
    while (!waiting_.empty()) {
      std::shared_ptr<Transfer> transfer = std::move(waiting_.front());
      waiting_.pop_front();
      if (!transfer->streaming && !HasRoom()) {
        held.push_back(std::move(transfer));
        continue;
      }
      if (absl::Status status = Attach(transfer); !status.ok()) {
        transfer->Finish(Annotate(status, transfer->request.Name()));
      }
    }
    waiting_ = std::move(held);
  }

  absl::StatusOr<Handle> TakeHandle() {
    Handle handle;
    if (!idle_.empty()) {
      handle = std::move(idle_.back());
      idle_.pop_back();
    } else {
      handle.easy.reset(curl_easy_init());
      if (handle.easy == nullptr) return absl::InternalError("libcurl: no handle");
      OptionSetter options(handle.easy.get());
      options.Set(CURLOPT_NOSIGNAL, 1L)
          .Set(CURLOPT_PROTOCOLS_STR, "http,https")
          .Set(CURLOPT_PROXY, "")  // the server is spoken to directly, whatever the environment
          .Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1))
          .Set(CURLOPT_PATH_AS_IS, 1L)
          .Set(CURLOPT_USERAGENT, user_agent_.c_str())
          .Set(CURLOPT_CONNECTTIMEOUT_MS,
               static_cast<long>(absl::ToInt64Milliseconds(limits_.connect_timeout)))
          .Set(CURLOPT_MAXAGE_CONN, kMaxIdleConnectionSeconds)
          .Set(CURLOPT_TCP_KEEPALIVE, 1L)
          .Set(CURLOPT_TCP_KEEPIDLE, static_cast<long>(kTcpKeepIdleSeconds))
          .Set(CURLOPT_TCP_KEEPINTVL, static_cast<long>(kTcpKeepIntervalSeconds))
          .Set(CURLOPT_SOCKOPTFUNCTION, &SetSocketOptions)
          .Set(CURLOPT_WRITEFUNCTION, &Transfer::WriteCallback)
          .Set(CURLOPT_HEADERFUNCTION, &Transfer::HeaderCallback)
          .Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2))
          .Set(CURLOPT_SSL_VERIFYPEER, insecure_ ? 0L : 1L)
          .Set(CURLOPT_SSL_VERIFYHOST, insecure_ ? 0L : 2L)
          .Set(CURLOPT_CONNECT_TO, endpoint_.connect_to.get());
      ASCEND_RETURN_IF_ERROR(options.status());
    }
    if (handle.tls_generation != credentials_.tls_generation()) {
      OptionSetter options(handle.easy.get());
      options.SetBlob(CURLOPT_CAINFO_BLOB, credentials_.ca())
          .SetBlob(CURLOPT_SSLCERT_BLOB, credentials_.client_certificate())
          .SetBlob(CURLOPT_SSLKEY_BLOB, credentials_.client_key());
      if (!credentials_.ca().empty()) {
        // Otherwise the system's authorities would be trusted beside ours.
        options.Set(CURLOPT_CAINFO, static_cast<char*>(nullptr))
            .Set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
      }
      ASCEND_RETURN_IF_ERROR(options.status());
      handle.tls_generation = credentials_.tls_generation();
    }
    return handle;
  }

  absl::Status Attach(const std::shared_ptr<Transfer>& shared) {
    Transfer& transfer = *shared;
    ASCEND_ASSIGN_OR_RETURN(Handle handle, TakeHandle());
    CURL* const easy = handle.easy.get();

    CurlList headers;
    Append(headers, "Accept: application/json");
    if (!endpoint_.host_header.empty()) Append(headers, endpoint_.host_header);
    if (const std::string authorization = credentials_.Authorization(); !authorization.empty()) {
      Append(headers, absl::StrCat("Authorization: ", authorization));
    }
    const HttpRequest& request = transfer.request;
    const bool has_body = !request.body.empty();
    if (has_body) {
      Append(headers, absl::StrCat("Content-Type: ", request.content_type));
      Append(headers, "Expect:");  // no extra round trip for large bodies
    }
    OptionSetter options(easy);
    if (has_body) {
      options.Set(CURLOPT_POST, 1L)
          .Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()))
          .Set(CURLOPT_POSTFIELDS, request.body.data());
    } else {
      options.Set(CURLOPT_HTTPGET, 1L);
    }
    options.Set(CURLOPT_CUSTOMREQUEST, request.method.c_str())
        .Set(CURLOPT_URL, absl::StrCat(endpoint_.base_url, request.target).c_str())
        .Set(CURLOPT_HTTPHEADER, headers.get())
        .Set(CURLOPT_WRITEDATA, &transfer)
        .Set(CURLOPT_HEADERDATA, &transfer)
        .Set(CURLOPT_ERRORBUFFER, transfer.error);
    ASCEND_RETURN_IF_ERROR(options.status());
    if (const CURLMcode code = curl_multi_add_handle(multi_, easy); code != CURLM_OK) {
      return absl::InternalError(absl::StrCat("libcurl: ", curl_multi_strerror(code)));
    }
    transfer.handle = std::move(handle);
    transfer.headers = std::move(headers);
    transfer.status = 0;
    transfer.body.clear();
    transfer.lines.Reset();
    transfer.failure = absl::OkStatus();
    transfer.error[0] = '\0';
    ++transfer.attempts;
    if (transfer.streaming) {
      transfer.header_deadline = Now() + limits_.stream_header_timeout;
    } else {
      ++active_requests_;
    }
    active_.emplace(easy, shared);
    return absl::OkStatus();
  }

  // Takes a transfer off libcurl, which closes its connection unless the answer is complete.
  void Detach(Transfer& transfer) {
    CURL* const easy = transfer.handle.easy.get();
    curl_multi_remove_handle(multi_, easy);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, nullptr);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, nullptr);
    if (!transfer.streaming) --active_requests_;
    idle_.push_back(std::move(transfer.handle));
    transfer.handle = Handle();
    active_.erase(easy);  // may destroy the transfer
  }

  // Hands out what libcurl is done with. True if anything was.
  bool FinishDone() {
    bool any = false;
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      any = true;
      CURL* const easy = message->easy_handle;
      const CURLcode code = message->data.result;  // the message dies with the handle's removal
      const std::shared_ptr<Transfer> transfer = active_.at(easy);
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &transfer->status);
      curl_off_t retry_after = 0;
      curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after);
      Detach(*transfer);
      if (transfer->IsCancelled()) continue;
      if (code == CURLE_OK && transfer->status == 401 && transfer->attempts == 1 &&
          credentials_.ReloadToken()) {
        waiting_.push_front(transfer);
        continue;
      }
      transfer->Finish(Outcome(*transfer, code, retry_after));
    }
    return any;
  }

  static absl::StatusOr<HttpResponse> Outcome(Transfer& transfer, CURLcode code,
                                              curl_off_t retry_after) {
    if (!transfer.failure.ok()) return Annotate(transfer.failure, transfer.request.Name());
    if (code != CURLE_OK) return TransportError(transfer.request.Name(), code, transfer.error);
    if (transfer.lines.HasPartialLine()) {
      return absl::UnavailableError(
          absl::StrCat(transfer.request.Name(), ": the stream ended in the middle of a line"));
    }
    HttpResponse response;
    response.status = static_cast<int>(transfer.status);
    response.body = std::move(transfer.body);
    if (retry_after > 0) response.retry_after = absl::Seconds(retry_after);
    return response;
  }

  void Expire() {
    const absl::Duration now = Now();
    std::vector<std::shared_ptr<Transfer>> expired;
    for (const auto& [easy, transfer] : active_) {
      if (transfer->NextDeadline() <= now) expired.push_back(transfer);
    }
    for (const auto& transfer : expired) Detach(*transfer);
    std::erase_if(waiting_, [&](const std::shared_ptr<Transfer>& transfer) {
      if (transfer->deadline > now) return false;
      expired.push_back(transfer);
      return true;
    });
    for (const auto& transfer : expired) {
      const bool only_headers = transfer->deadline > now;
      transfer->Finish(absl::DeadlineExceededError(absl::StrCat(
          transfer->request.Name(), ": no ",
          transfer->streaming && !only_headers ? "end" : "answer", " within ",
          absl::FormatDuration(only_headers ? limits_.stream_header_timeout : transfer->timeout))));
    }
  }

  absl::Duration NextDeadline() const {
    absl::Duration next = absl::InfiniteDuration();
    for (const auto& [easy, transfer] : active_) next = std::min(next, transfer->NextDeadline());
    for (const auto& transfer : waiting_) next = std::min(next, transfer->deadline);
    return next;
  }

  const Endpoint endpoint_;
  Credentials credentials_;  // the engine's thread only, like all without a lock
  const bool insecure_;
  const std::string user_agent_;
  const HttpLimits limits_;

  CURLM* multi_ = nullptr;
  std::thread thread_;
  std::thread::id thread_id_;
  std::deque<std::shared_ptr<Transfer>> waiting_;
  std::unordered_map<CURL*, std::shared_ptr<Transfer>> active_;
  std::vector<Handle> idle_;
  int active_requests_ = 0;  // of active_, without streams

  Mutex mutex_;
  CondVar callers_left_;
  std::vector<std::shared_ptr<Transfer>> submitted_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Transfer>> cancelled_ ABSL_GUARDED_BY(mutex_);
  int callers_ ABSL_GUARDED_BY(mutex_) = 0;  // threads inside Send()
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

class HttpEngine::StreamImpl : public HttpStream {
 public:
  StreamImpl(std::shared_ptr<Core> core, std::shared_ptr<Transfer> transfer)
      : core_(std::move(core)), transfer_(std::move(transfer)) {}
  ~StreamImpl() override {
    {
      MutexLock lock(&transfer_->mutex);
      transfer_->cancelled = true;
      while (transfer_->in_callback && !core_->OnEngineThread()) {
        transfer_->changed.Wait(&transfer_->mutex);
      }
    }
    core_->Cancel(transfer_);
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<Transfer> transfer_;
};

HttpEngine::HttpEngine(std::shared_ptr<Core> core) : core_(std::move(core)) {}
HttpEngine::~HttpEngine() { core_->Stop(); }
void HttpEngine::Shutdown() { core_->Stop(); }

absl::StatusOr<std::unique_ptr<HttpEngine>> HttpEngine::Start(const ConnectionConfig& config,
                                                              std::string user_agent,
                                                              const HttpLimits& limits) {
  ASCEND_RETURN_IF_ERROR(GlobalInit());
  ASCEND_ASSIGN_OR_RETURN(Endpoint endpoint, ParseEndpoint(config));
  ASCEND_ASSIGN_OR_RETURN(Credentials credentials, Credentials::Load(config));
  auto core =
      std::make_shared<Core>(std::move(endpoint), std::move(credentials),
                             config.insecure_skip_tls_verify, std::move(user_agent), limits);
  ASCEND_RETURN_IF_ERROR(core->Start());
  return std::unique_ptr<HttpEngine>(new HttpEngine(std::move(core)));
}

absl::StatusOr<HttpResponse> HttpEngine::Send(HttpRequest request, absl::Duration timeout) {
  if (core_->OnEngineThread()) {
    return absl::FailedPreconditionError(
        absl::StrCat(request.Name(), ": called from a callback of the client"));
  }
  auto transfer = std::make_shared<Transfer>(core_->limits().max_line);
  transfer->request = std::move(request);
  transfer->timeout = timeout;
  transfer->deadline = Now() + timeout;
  transfer->max_body = core_->limits().max_body;
  return core_->Send(std::move(transfer));
}

std::unique_ptr<HttpStream> HttpEngine::Open(HttpRequest request, absl::Duration max_duration,
                                             HttpStreamHandler handler) {
  auto transfer = std::make_shared<Transfer>(core_->limits().max_line);
  transfer->request = std::move(request);
  transfer->streaming = true;
  transfer->timeout = max_duration;
  transfer->deadline = Now() + max_duration;
  transfer->max_body = core_->limits().max_body;
  transfer->handler = std::move(handler);
  auto stream = std::make_unique<StreamImpl>(core_, transfer);
  if (!core_->Submit(transfer, /*caller_waits=*/false)) {
    transfer->Finish(Core::ShutDown(*transfer));
  }
  return stream;
}

}  // namespace ascend::kube
