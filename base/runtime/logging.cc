#include "base/runtime/logging.h"

#include <atomic>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace ascend {
namespace {

std::atomic<bool> use_json{false};
std::atomic<int> max_verbosity{0};
std::atomic<bool> is_silent{false};

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto created = std::make_shared<spdlog::logger>(
        "ascend", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("%v");
    created->set_level(spdlog::level::info);
    created->flush_on(spdlog::level::info);
    return created;
  }();
  return *logger;
}

bool NeedsQuotes(absl::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) return true;
  }
  return false;
}

void AppendValue(std::string* line, absl::string_view value) {
  if (!NeedsQuotes(value)) {
    absl::StrAppend(line, value);
    return;
  }
  line->push_back('"');
  for (const char c : value) {
    switch (c) {
      case '"':
      case '\\':
        line->push_back('\\');
        line->push_back(c);
        break;
      case '\n':
        absl::StrAppend(line, "\\n");
        break;
      case '\t':
        absl::StrAppend(line, "\\t");
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          absl::StrAppend(line, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
        } else {
          line->push_back(c);
        }
    }
  }
  line->push_back('"');
}

void Write(absl::string_view level, absl::string_view message, LogFields fields) {
  if (is_silent.load(std::memory_order_relaxed)) return;
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  std::string line;
  if (use_json.load(std::memory_order_relaxed)) {
    nlohmann::ordered_json object;
    object["time"] = time;
    object["level"] = std::string(level);
    object["msg"] = std::string(message);
    for (const LogField& field : fields) object[field.key] = field.value;
    line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } else {
    absl::StrAppend(&line, "time=", time, " level=", level, " msg=");
    AppendValue(&line, message);
    for (const LogField& field : fields) {
      absl::StrAppend(&line, " ", field.key, "=");
      AppendValue(&line, field.value);
    }
  }
  Logger().info("{}", line);
}

}  // namespace

void InitLogging(const LogOptions& options) {
  use_json = options.json;
  max_verbosity = options.verbosity;
  is_silent = options.silent;
}

void LogError(absl::string_view message, LogFields fields) { Write("error", message, fields); }
void LogWarning(absl::string_view message, LogFields fields) { Write("warning", message, fields); }
void LogInfo(absl::string_view message, LogFields fields) { Write("info", message, fields); }
void LogVerbose(int verbosity, absl::string_view message, LogFields fields) {
  if (verbosity <= max_verbosity.load(std::memory_order_relaxed)) Write("info", message, fields);
}

}  // namespace ascend
