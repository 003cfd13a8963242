#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/status_macros.h"
#include "cdi/document.h"
#include "cdi/json.h"
#include "cdi/text.h"
#include "cdi/validate.h"
#include "cdi/version.h"

namespace ascend::cdi {
namespace {

// Escapes what JSON and YAML both want escaped, and nothing else: YAML parsers know neither "\/"
// nor surrogate pairs.
void AppendString(absl::string_view text, std::string* out) {
  out->push_back('"');
  while (!text.empty()) {
    char32_t character = 0;
    const size_t length = DecodeUtf8(text, &character);
    if (length != 0 && IsControlCharacter(character)) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<uint32_t>(character));
    } else {
      if (character == '"' || character == '\\') out->push_back('\\');
      absl::StrAppend(out, text.substr(0, length == 0 ? 1 : length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out->push_back('"');
}

// Indented JSON, one member or element a line.
class Printer {
 public:
  std::string Take() && { return std::move(text_) + "\n"; }

  void Key(absl::string_view key) {
    NextLine();
    AppendString(key, &text_);
    text_ += ": ";
    after_key_ = true;
  }
  void String(absl::string_view value) {
    Value();
    AppendString(value, &text_);
  }
  void Literal(const absl::AlphaNum& value) {
    Value();
    absl::StrAppend(&text_, value);
  }
  void Open(char bracket) {
    Value();
    text_.push_back(bracket);
    ++depth_;
    first_ = true;
  }
  void Close(char bracket) {
    --depth_;
    if (!first_) Indent();
    first_ = false;
    text_.push_back(bracket);
  }

 private:
  void Indent() {
    text_.push_back('\n');
    text_.append(2 * depth_, ' ');
  }
  void NextLine() {
    if (!first_) text_.push_back(',');
    if (depth_ > 0) Indent();
    first_ = false;
  }
  void Value() {
    if (!after_key_) NextLine();
    after_key_ = false;
  }

  std::string text_;
  size_t depth_ = 0;
  bool first_ = true;
  bool after_key_ = false;
};

void PrintText(absl::string_view key, absl::string_view value, Printer* out) {
  if (value.empty()) return;
  out->Key(key);
  out->String(value);
}

void PrintRequiredText(absl::string_view key, absl::string_view value, Printer* out) {
  out->Key(key);
  out->String(value);
}

template <typename Number>
void PrintNumber(absl::string_view key, Number value, Printer* out) {
  out->Key(key);
  out->Literal(value);
}

void PrintTexts(absl::string_view key, const std::vector<std::string>& values, Printer* out) {
  if (values.empty()) return;
  out->Key(key);
  out->Open('[');
  for (const std::string& value : values) out->String(value);
  out->Close(']');
}

void PrintAnnotations(const std::map<std::string, std::string>& annotations, Printer* out) {
  if (annotations.empty()) return;
  out->Key("annotations");
  out->Open('{');
  for (const auto& [key, value] : annotations) PrintRequiredText(key, value, out);
  out->Close('}');
}

void Print(const DeviceNode& node, Printer* out) {
  PrintRequiredText("path", node.path, out);
  PrintText("hostPath", node.host_path, out);
  PrintText("type", node.type, out);
  if (node.major != 0) PrintNumber("major", node.major, out);
  if (node.minor != 0) PrintNumber("minor", node.minor, out);
  if (node.file_mode.has_value()) PrintNumber("fileMode", *node.file_mode, out);
  PrintText("permissions", node.permissions, out);
  if (node.uid.has_value()) PrintNumber("uid", *node.uid, out);
  if (node.gid.has_value()) PrintNumber("gid", *node.gid, out);
}

void Print(const NetDevice& device, Printer* out) {
  PrintRequiredText("hostInterfaceName", device.host_interface_name, out);
  PrintRequiredText("name", device.name, out);
}

void Print(const Hook& hook, Printer* out) {
  PrintRequiredText("hookName", hook.hook_name, out);
  PrintRequiredText("path", hook.path, out);
  PrintTexts("args", hook.args, out);
  PrintTexts("env", hook.env, out);
  if (hook.timeout.has_value()) PrintNumber("timeout", *hook.timeout, out);
}

void Print(const Mount& mount, Printer* out) {
  PrintRequiredText("hostPath", mount.host_path, out);
  PrintRequiredText("containerPath", mount.container_path, out);
  PrintTexts("options", mount.options, out);
  PrintText("type", mount.type, out);
}

void Print(const IntelRdt& rdt, Printer* out) {
  PrintText("closID", rdt.clos_id, out);
  PrintText("l3CacheSchema", rdt.l3_cache_schema, out);
  PrintText("memBwSchema", rdt.mem_bw_schema, out);
  if (rdt.schemata.has_value()) PrintTexts("schemata", *rdt.schemata, out);
  if (rdt.enable_monitoring) {
    out->Key("enableMonitoring");
    out->Literal("true");
  }
}

template <typename T>
void PrintObjects(absl::string_view key, const std::vector<T>& objects, Printer* out) {
  if (objects.empty()) return;
  out->Key(key);
  out->Open('[');
  for (const T& object : objects) {
    out->Open('{');
    Print(object, out);
    out->Close('}');
  }
  out->Close(']');
}

void PrintEdits(const ContainerEdits& edits, Printer* out) {
  out->Key("containerEdits");
  out->Open('{');
  PrintTexts("env", edits.env, out);
  PrintObjects("deviceNodes", edits.device_nodes, out);
  PrintObjects("netDevices", edits.net_devices, out);
  PrintObjects("hooks", edits.hooks, out);
  PrintObjects("mounts", edits.mounts, out);
  if (edits.intel_rdt.has_value()) {
    out->Key("intelRdt");
    out->Open('{');
    Print(*edits.intel_rdt, out);
    out->Close('}');
  }
  if (!edits.additional_gids.empty()) {
    out->Key("additionalGids");
    out->Open('[');
    for (const uint32_t gid : edits.additional_gids) out->Literal(gid);
    out->Close(']');
  }
  out->Close('}');
}

std::string PrintSpec(const Spec& spec, bool with_empty_edits) {
  Printer out;
  out.Open('{');
  PrintRequiredText("cdiVersion", spec.version, &out);
  PrintRequiredText("kind", spec.kind, &out);
  PrintAnnotations(spec.annotations, &out);
  out.Key("devices");
  out.Open('[');
  for (const Device& device : spec.devices) {
    out.Open('{');
    PrintRequiredText("name", device.name, &out);
    PrintAnnotations(device.annotations, &out);
    PrintEdits(device.container_edits, &out);
    out.Close('}');
  }
  out.Close(']');
  if (with_empty_edits || !spec.container_edits.empty()) PrintEdits(spec.container_edits, &out);
  out.Close('}');
  return std::move(out).Take();
}

}  // namespace

std::string FormatJson(const Spec& spec) { return PrintSpec(spec, /*with_empty_edits=*/true); }

absl::StatusOr<std::string> WriteJson(const Spec& spec) {
  ASCEND_RETURN_IF_ERROR(ValidateForWriting(spec));
  Spec versioned = spec;
  versioned.version = std::string(VersionName(MinimumVersion(spec)));
  std::string text = PrintSpec(versioned, /*with_empty_edits=*/false);
  // Also catches what is too large.
  ASCEND_ASSIGN_OR_RETURN(const Spec read_back, ReadJson(text), "reading back what was written");
  if (read_back != versioned) {
    return absl::InternalError("what was written reads back as another spec");
  }
  return text;
}

}  // namespace ascend::cdi
