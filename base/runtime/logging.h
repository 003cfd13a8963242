// Structured log lines on standard error: one event a line, key=value or JSON.
//
//   LogInfo("claim prepared", {{"claim", "default/job-1"}, {"claimUID", uid}, {"devices", 8}});
//   time=2026-11-30T03:00:00.123Z level=info msg="claim prepared" claim=default/job-1 ...
//
// Levels are those of Kubernetes: error, warning, info, and info with a verbosity (-v). The same
// thing always has the same key: claim (namespace/name), claimUID, pod (namespace/name), device,
// chip (physical id), node, path, error. Thread-safe; lines never mix.
#ifndef ASCEND_DRA_BASE_RUNTIME_LOGGING_H_
#define ASCEND_DRA_BASE_RUNTIME_LOGGING_H_

#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace ascend {

struct LogOptions {
  bool json = false;    // --log-format=json
  int verbosity = 0;    // --v: lines of LogVerbose up to this number are written
  bool silent = false;  // no line at all: for tests that would write a hundred thousand
};

// Call once, early in main(). Before it, lines are written as text with verbosity 0.
void InitLogging(const LogOptions& options);

struct LogField {
  LogField(absl::string_view k, absl::string_view v) : key(k), value(v) {}
  LogField(absl::string_view k, const char* v) : key(k), value(v) {}
  LogField(absl::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(absl::string_view k, const absl::Status& v)
      : key(k), value(v.ok() ? "OK" : std::string(v.message())) {}
  LogField(absl::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  LogField(absl::string_view k, T v) : key(k), value(absl::StrCat(v)) {}

  std::string key;
  std::string value;
};

using LogFields = std::initializer_list<LogField>;

void LogError(absl::string_view message, LogFields fields = {});
void LogWarning(absl::string_view message, LogFields fields = {});
void LogInfo(absl::string_view message, LogFields fields = {});
// Written only if `verbosity` is at most the configured one: 2 for what an operator may want,
// 4 for debugging, 6 for every call.
void LogVerbose(int verbosity, absl::string_view message, LogFields fields = {});

}  // namespace ascend

#endif  // ASCEND_DRA_BASE_RUNTIME_LOGGING_H_
