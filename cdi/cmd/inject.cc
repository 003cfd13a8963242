// inject.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/core/status_macros.h"
#include "cdi/cmd/commands.h"
#include "cdi/cmd/json_text.h"
#include "cdi/cmd/output.h"
#include "cdi/cmd/releases.h"
#include "cdi/compatibility.h"
#include "cdi/injector.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

absl::StatusOr<std::string> ReadAll(std::istream& stream) {
  std::string text;
  char chunk[1 << 16];
  do {
    stream.read(chunk, sizeof(chunk));
    text.append(chunk, static_cast<size_t>(stream.gcount()));
    if (text.size() > kMaxConfigSize) {
      return absl::InvalidArgumentError(absl::StrCat("larger than ", kMaxConfigSize, " bytes"));
    }
  } while (stream);
  if (stream.bad() || text.empty()) return absl::UnavailableError("nothing can be read");
  return text;
}

// The release of the reference library is one that we know.
absl::Status CheckRelease(const std::string& library) {
  for (const RuntimeRelease& release : RuntimeReleases()) {
    if (InRange(release.library, library)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("no release of the reference library: ", library));
}

// That release loads the files of the devices.
absl::Status CheckFiles(const Snapshot& snapshot, const std::vector<std::string>& names,
                        const std::string& library) {
  for (const std::string& name : names) {
    const Snapshot::Entry* entry = snapshot.Find(name);
    if (entry == nullptr) continue;
    for (const Compatibility& one : Compatible(entry->file->spec)) {
      if (one.accepted || !InRange(one.release->library, library)) continue;
      return absl::FailedPreconditionError(absl::StrCat("unresolvable CDI device ", name, ": ",
                                                        library, " refuses ", entry->file->path,
                                                        ": it ", one.reason));
    }
  }
  return absl::OkStatus();
}

}  // namespace

int InjectDevices(const Snapshot& snapshot, const std::vector<std::string>& names,
                  const std::string& library, std::istream& config, const Output& out) {
  InjectionOptions options;
  if (!library.empty()) {
    const absl::StatusOr<InjectionCompatibility> compatibility = CompatibilityOf(library);
    absl::Status status = compatibility.status();
    status.Update(CheckRelease(library));
    if (!status.ok()) {
      Complain(out, "--as-library", status);
      return kExitUsage;
    }
    options.compatibility = *compatibility;
    if (status = CheckFiles(snapshot, names, library); !status.ok()) {
      Complain(out, "", status);
      return kExitNo;
    }
  }
  const absl::StatusOr<std::string> text = ReadAll(config);
  absl::StatusOr<nlohmann::ordered_json> json =
      text.ok() ? ParseJsonText(*text) : absl::StatusOr<nlohmann::ordered_json>(text.status());
  if (!json.ok()) {
    Complain(out, "the OCI configuration on standard input", json.status());
    return ExitCodeOf(json.status());
  }
  if (const absl::Status status = Inject(snapshot, names, *json, options); !status.ok()) {
    Complain(out, "", status);
    PrintErrors(snapshot, out);  // may be why a device does not resolve
    return kExitNo;
  }
  if (out.json) {
    out.text << json->dump(-1, ' ', /*ensure_ascii=*/false,
                           nlohmann::ordered_json::error_handler_t::replace)
             << "\n";
  } else {
    PrintJson(*json, out.text);
  }
  return kExitOk;
}

}  // namespace ascend::cdi::cmd
