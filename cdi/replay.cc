#include "cdi/replay.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "base/core/strings.h"
#include "cdi/annotations.h"
#include "cdi/injector.h"
#include "cdi/json.h"
#include "cdi/json_difference.h"
#include "cdi/name.h"
#include "cdi/registry.h"
#include "cdi/replay_host.h"
#include "cdi/version.h"
#include "cdi/yaml.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi {
namespace {

using Json = nlohmann::json;
using Type = Json::value_t;

// ---- Reading a case: it comes from a file, so nothing about it is certain.

const Json* Find(const Json& object, const char* key) {
  const auto member = object.find(key);
  return member == object.end() ? nullptr : &*member;
}

absl::StatusOr<const Json*> Get(const Json& object, const char* key, Type type) {
  const Json* member = Find(object, key);
  if (member != nullptr && member->type() == type) return member;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", key, "\" must be of the type ", Json(type).type_name()));
}

absl::StatusOr<std::string> GetText(const Json& object, const char* key) {
  ASCEND_ASSIGN_OR_RETURN(const Json* text, Get(object, key, Type::string));
  return text->get<std::string>();
}

absl::StatusOr<bool> GetBool(const Json& object, const char* key) {
  ASCEND_ASSIGN_OR_RETURN(const Json* value, Get(object, key, Type::boolean));
  return value->get<bool>();
}

absl::StatusOr<std::vector<std::string>> GetTexts(const Json& object, const char* key) {
  ASCEND_ASSIGN_OR_RETURN(const Json* list, Get(object, key, Type::array));
  std::vector<std::string> texts;
  for (const Json& text : *list) {
    if (!text.is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("\"", key, "\" must hold strings"));
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

absl::StatusOr<std::vector<std::string>> GetArguments(const Json& test_case, size_t count) {
  ASCEND_ASSIGN_OR_RETURN(std::vector<std::string> arguments, GetTexts(test_case, "args"));
  if (arguments.size() == count) return arguments;
  return absl::InvalidArgumentError(absl::StrCat("\"args\" must hold ", count, " strings"));
}

// ---- The long strings of a case.

using Tokens = std::map<std::string, std::string>;
constexpr int64_t kMaxRepeat = 16 << 20;

absl::StatusOr<Tokens> TokensOf(const Json& test_case) {
  Tokens tokens;
  const Json* repeat = Find(test_case, "repeat");
  if (repeat == nullptr) return tokens;
  const absl::Status malformed =
      absl::InvalidArgumentError("\"repeat\" must map tokens to [string, count]");
  if (!repeat->is_object()) return malformed;
  for (const auto& [token, pair] : repeat->items()) {
    if (token.empty() || !pair.is_array() || pair.size() != 2 || !pair[0].is_string() ||
        !pair[1].is_number_integer()) {
      return malformed;
    }
    const std::string text = pair[0].get<std::string>();
    const auto count = pair[1].get<int64_t>();
    if (count < 0 || count > kMaxRepeat || static_cast<int64_t>(text.size()) * count > kMaxRepeat) {
      return malformed;
    }
    std::string& replacement = tokens[token];
    for (int64_t i = 0; i < count; ++i) replacement += text;
  }
  return tokens;
}

// Takes what the text grows by from `budget`; false if that is not enough.
bool ExpandText(const Tokens& tokens, int64_t* budget, std::string* text) {
  for (const auto& [token, replacement] : tokens) {
    for (size_t at = text->find(token); at != std::string::npos;
         at = text->find(token, at + token.size())) {
      *budget -= static_cast<int64_t>(replacement.size());
    }
  }
  if (*budget < 0) return false;
  *text = absl::StrReplaceAll(*text, tokens);
  return true;
}

bool Expand(const Tokens& tokens, int64_t* budget, Json* value) {
  if (value->is_string()) return ExpandText(tokens, budget, &value->get_ref<std::string&>());
  if (value->is_array()) {
    for (Json& item : *value) {
      if (!Expand(tokens, budget, &item)) return false;
    }
  }
  if (value->is_object()) {
    Json result = Json::object();
    for (auto& [key, item] : value->items()) {
      std::string name = key;
      if (!ExpandText(tokens, budget, &name) || !Expand(tokens, budget, &item)) return false;
      result[name] = std::move(item);
    }
    *value = std::move(result);
  }
  return true;
}

// ---- The operations. Each gives a result in the form of the recorded one; "error" is for people.

Json Refusal(const absl::Status& status) {
  return {{"ok", false}, {"error", ToStd(status.message())}};
}

absl::StatusOr<Json> ParseQualified(const Json& test_case) {
  ASCEND_ASSIGN_OR_RETURN(const std::string text, GetText(test_case, "text"));
  const absl::StatusOr<QualifiedName> parsed = ParseQualifiedName(text);
  const QualifiedName name = parsed.value_or(QualifiedName{"", "", text});
  const QualifiedName split = SplitQualifiedName(text);
  Json result = parsed.ok() ? Json::object({{"ok", true}}) : Refusal(parsed.status());
  result["vendor"] = name.vendor;
  result["class"] = name.device_class;
  result["name"] = name.name;
  result["parseDevice"] = {split.vendor, split.device_class, split.name};
  return result;
}

absl::StatusOr<Json> MakeAnnotationKey(const Json& test_case) {
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> arguments, GetArguments(test_case, 2));
  const absl::StatusOr<std::string> key = AnnotationKey(arguments[0], arguments[1]);
  if (!key.ok()) return Refusal(key.status());
  return Json{{"ok", true}, {"key", *key}};
}

absl::StatusOr<Json> MakeTransientName(const Json& test_case) {
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> arguments, GetArguments(test_case, 3));
  return Json{{"ok", true},
              {"name", TransientSpecFileName(arguments[0], arguments[1], arguments[2])}};
}

absl::StatusOr<Json> LoadSpec(const Json& test_case) {
  ASCEND_ASSIGN_OR_RETURN(const std::string file, GetText(test_case, "file"));
  ASCEND_ASSIGN_OR_RETURN(const std::string text, GetText(test_case, "text"));
  const bool is_json = absl::EndsWith(file, ".json");
  if (!is_json && !absl::EndsWith(file, ".yaml")) {
    return absl::InvalidArgumentError("\"file\" must end in .json or .yaml");
  }
  const absl::StatusOr<Spec> spec = is_json ? ReadJson(text) : ReadYaml(text);
  if (!spec.ok()) return Refusal(spec.status());
  return Json{{"ok", true},
              {"minVersion", ToStd(VersionName(MinimumVersion(*spec)))},
              {"canonical", Json::parse(FormatJson(*spec), nullptr, /*allow_exceptions=*/false)}};
}

// A directory of one replay.
class Workspace {
 public:
  Workspace() = default;
  ~Workspace() {
    std::error_code ignored;
    if (!root_.empty()) std::filesystem::remove_all(root_, ignored);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  absl::Status Create() {
    std::error_code ignored;
    std::filesystem::path parent = std::filesystem::temp_directory_path(ignored);
    if (ignored) parent = "/tmp";
    std::string name = JoinPath(parent.string(), "cdi-replay-XXXXXX");
    if (::mkdtemp(name.data()) == nullptr) {
      const int error = errno;
      return ErrnoToStatus(error, name);
    }
    root_ = std::move(name);
    return absl::OkStatus();
  }

  // `dirs` of the case, as d0, d1, ...
  absl::StatusOr<std::vector<std::string>> Write(const Json& dirs) const {
    std::vector<std::string> directories;
    for (const Json& files : dirs) {
      if (!files.is_object()) return absl::InvalidArgumentError("\"dirs\" must hold objects");
      directories.push_back(JoinPath(root_, absl::StrCat("d", directories.size())));
      ASCEND_RETURN_IF_ERROR(MakeDirectories(directories.back()));
      for (const auto& [name, text] : files.items()) {
        if (!text.is_string() || name.find('/') != std::string::npos) {
          return absl::InvalidArgumentError("\"dirs\" must map file names to texts");
        }
        ASCEND_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(directories.back(), name),
                                                   text.get_ref<const std::string&>(),
                                                   {.mode = 0644, .durable = false}));
      }
    }
    return directories;
  }

  std::string Relative(absl::string_view path) const {
    absl::ConsumePrefix(&path, root_);
    absl::ConsumePrefix(&path, "/");
    return std::string(path);
  }

 private:
  std::string root_;
};

absl::StatusOr<Json> InjectDevices(const Json& test_case,
                                   const InjectionCompatibility& compatibility) {
  ASCEND_ASSIGN_OR_RETURN(const Json* dirs, Get(test_case, "dirs", Type::array));
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> devices, GetTexts(test_case, "devices"));
  ASCEND_ASSIGN_OR_RETURN(const Json* oci, Get(test_case, "oci", Type::object));
  InjectionOptions options;
  options.compatibility = compatibility;
  ASCEND_ASSIGN_OR_RETURN(options.lstat, ReplayHost(Find(test_case, "host")));

  Workspace workspace;
  ASCEND_RETURN_IF_ERROR(workspace.Create());
  ASCEND_ASSIGN_OR_RETURN(const std::vector<std::string> directories, workspace.Write(*dirs));
  const std::shared_ptr<const Snapshot> snapshot = Scan(directories);
  OciConfig config = *oci;
  const absl::Status injected = Inject(*snapshot, devices, config, options);
  const Json after = config;

  Json result = injected.ok() ? Json{{"ok", true}, {"oci", after}} : Refusal(injected);
  result["listDevices"] = Json::array();
  for (const auto& [name, entry] : snapshot->devices()) result["listDevices"].push_back(name);
  result["fileErrors"] = Json::array();
  for (const auto& [path, errors] : snapshot->errors()) {
    result["fileErrors"].push_back(
        {{"file", workspace.Relative(path)}, {"error", ToStd(errors[0].message())}});
  }
  if (!injected.ok()) {
    result["unresolved"] = Unresolved(*snapshot, devices);
    if (after != *oci) result["changedInSpiteOfTheError"] = after;
  }
  return result;
}

absl::StatusOr<Json> Perform(const std::string& operation, const Json& test_case,
                             const InjectionCompatibility& compatibility) {
  if (operation == "parse-qualified") return ParseQualified(test_case);
  if (operation == "annotation-key") return MakeAnnotationKey(test_case);
  if (operation == "transient-name") return MakeTransientName(test_case);
  if (operation == "spec") return LoadSpec(test_case);
  if (operation == "inject") return InjectDevices(test_case, compatibility);
  return absl::InvalidArgumentError(absl::StrCat("unknown operation \"", operation, "\""));
}

// ---- Comparing.

void DropIf(Json& object, const char* key, const Json& value) {
  const auto member = object.find(key);
  if (member != object.end() && *member == value) object.erase(member);
}

// The reference writes its typed structures, and so members that the configuration did not have.
void NormaliseConfig(Json& config) {
  if (!config.is_object()) return;
  DropIf(config, "ociVersion", "");
  const auto process = config.find("process");
  if (process == config.end() || !process->is_object()) return;
  DropIf(*process, "cwd", "");
  const auto user = process->find("user");
  if (user != process->end() && user->is_object()) {
    DropIf(*user, "uid", 0);
    DropIf(*user, "gid", 0);
    DropIf(*process, "user", Json::object());
  }
  DropIf(config, "process", Json::object());
}

std::set<std::string> FilesIn(const Json& result) {
  std::set<std::string> files;
  const Json* errors = Find(result, "fileErrors");
  if (errors == nullptr || !errors->is_array()) return files;
  for (const Json& error : *errors) {
    const Json* file = error.is_object() ? Find(error, "file") : nullptr;
    if (file != nullptr && file->is_string()) files.insert(file->get<std::string>());
  }
  return files;
}

// What counts of a result: no wording, a set of files.
Json Comparable(const Json& result) {
  Json comparable = result;
  comparable.erase("error");
  comparable.erase("crash");
  if (comparable.contains("fileErrors")) comparable["fileErrors"] = FilesIn(result);
  if (comparable.contains("oci")) NormaliseConfig(comparable["oci"]);
  return comparable;
}

std::vector<std::string> Compare(const Json& expected, const Json& got) {
  Json wanted = Comparable(expected);
  Json result = Comparable(got);
  if (const Json* crash = Find(expected, "crash"); crash != nullptr && *crash == true) {
    // There was nothing more to record.
    wanted = Json::object({{"ok", false}});
    result = Json::object({{"ok", got["ok"]}});
  }
  std::vector<std::string> differences;
  if (wanted["ok"] != result["ok"]) {
    const Json& refused = wanted["ok"] == false ? expected : got;
    const Json* error = Find(refused, "error");
    differences.push_back(absl::StrCat(
        "/ok: expected ", wanted["ok"].dump(), ", got ", result["ok"].dump(), "; the refusal: ",
        error != nullptr && error->is_string() ? error->get<std::string>() : "without a text"));
    // The rest follows from it, except for which files were loaded.
    for (Json* side : {&wanted, &result}) {
      for (const char* key : {"ok", "oci", "unresolved", "minVersion", "canonical", "key"}) {
        side->erase(key);
      }
    }
  }
  const std::vector<std::string> rest = JsonDifferences(wanted, result);
  differences.insert(differences.end(), rest.begin(), rest.end());
  return differences;
}

// ---- The freedom of a strict library.

bool HasTrait(const Json& test_case, absl::string_view trait) {
  const Json* traits = Find(test_case, "traits");
  if (traits == nullptr || !traits->is_array()) return false;
  return std::any_of(traits->begin(), traits->end(), [trait](const Json& item) {
    return item.is_string() && item.get_ref<const std::string&>() == trait;
  });
}

bool RefusesMore(const Json& expected, const Json& got) {
  if (expected["ok"] == true && got["ok"] == false && !got.contains("fileErrors")) return true;
  const std::set<std::string> recorded = FilesIn(expected);
  const std::set<std::string> refused = FilesIn(got);
  return refused.size() > recorded.size() &&
         std::includes(refused.begin(), refused.end(), recorded.begin(), recorded.end());
}

bool IsFree(const Json& test_case, const Json& expected, const Json& got) {
  bool may_refuse = false;
  for (const char* trait : {"yaml", "loose-json", "coercion", "yaml-folding"}) {
    may_refuse |= HasTrait(test_case, trait);
  }
  if (may_refuse && RefusesMore(expected, got)) return true;
  if (!HasTrait(test_case, "yaml-folding")) return false;
  // U+0085 may stay what it is.
  Json folded = got;
  int64_t budget = kMaxRepeat;
  return Expand({{"\xC2\x85", " "}}, &budget, &folded) && Compare(expected, folded).empty();
}

// ---- Versions.

const Json* ExpectedOf(const Json& test_case, const std::string& version) {
  const Json* by_version = Find(test_case, "byVersion");
  if (!version.empty() && by_version != nullptr && by_version->is_array()) {
    for (const Json& entry : *by_version) {
      if (!entry.is_object()) continue;
      const absl::StatusOr<std::vector<std::string>> versions = GetTexts(entry, "versions");
      if (versions.ok() && std::count(versions->begin(), versions->end(), version) != 0) {
        return Find(entry, "expect");
      }
    }
  }
  return Find(test_case, "expect");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ReplayCase(const Json& test_case,
                                                    const ReplayOptions& options) {
  if (!test_case.is_object()) return absl::InvalidArgumentError("a case must be an object");
  ASCEND_ASSIGN_OR_RETURN(const Tokens tokens, TokensOf(test_case));
  Json expanded = test_case;
  int64_t budget = kMaxRepeat;
  if (!tokens.empty() && !Expand(tokens, &budget, &expanded)) {
    return absl::InvalidArgumentError("\"repeat\" makes the case too large");
  }
  ASCEND_ASSIGN_OR_RETURN(const std::string operation, GetText(expanded, "op"));
  ASCEND_ASSIGN_OR_RETURN(const Json* newest, Get(expanded, "expect", Type::object));
  const Json* expected = ExpectedOf(expanded, options.version);
  if (expected == nullptr || !expected->is_object()) {
    return absl::InvalidArgumentError("\"byVersion\" must hold objects with \"expect\"");
  }
  ASCEND_RETURN_IF_ERROR(GetBool(*expected, "ok").status());

  InjectionCompatibility compatibility;
  if (!options.version.empty()) {
    if (operation != "inject") {
      return absl::InvalidArgumentError("only injections are replayed for an older version");
    }
    ASCEND_ASSIGN_OR_RETURN(compatibility, CompatibilityOf(options.version));
    if (FilesIn(*expected) != FilesIn(*newest)) {
      return absl::UnimplementedError(
          absl::StrCat(options.version, " loads other files than the newest version"));
    }
  }
  ASCEND_ASSIGN_OR_RETURN(const Json got, Perform(operation, expanded, compatibility));
  std::vector<std::string> differences = Compare(*expected, got);
  if (!differences.empty() && IsFree(expanded, *expected, got)) differences.clear();
  return differences;
}

std::vector<std::string> RecordedVersions(const Json& test_case) {
  std::vector<std::string> recorded;
  const Json* by_version = test_case.is_object() ? Find(test_case, "byVersion") : nullptr;
  if (by_version == nullptr || !by_version->is_array()) return recorded;
  for (const Json& entry : *by_version) {
    if (!entry.is_object()) continue;
    const absl::StatusOr<std::vector<std::string>> versions = GetTexts(entry, "versions");
    if (versions.ok()) recorded.insert(recorded.end(), versions->begin(), versions->end());
  }
  return recorded;
}

}  // namespace ascend::cdi
