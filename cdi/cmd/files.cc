// validate, min-version, compat.
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cdi/cmd/commands.h"
#include "cdi/cmd/output.h"
#include "cdi/cmd/releases.h"
#include "cdi/compatibility.h"
#include "cdi/spec_file.h"
#include "cdi/validate.h"
#include "cdi/version.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using Json = nlohmann::ordered_json;

// Reads each file and hands it to `use`; what cannot be read goes to `refused`.
template <typename Use, typename Refused>
int ForEachFile(const std::vector<std::string>& files, Use use, Refused refused) {
  int code = kExitOk;
  for (const std::string& file : files) {
    const absl::StatusOr<SpecFile> read = ReadSpecFile(file);
    if (!read.ok()) {
      code = std::max(code, ExitCodeOf(read.status()));
      refused(file, read.status());
    } else if (!use(file, *read)) {
      code = std::max(code, kExitNo);
    }
  }
  return code;
}

// For files that cannot be read, where JSON has one entry a file.
auto AddError(Json* all, const Output& out) {
  return [all, &out](const std::string& file, const absl::Status& status) {
    if (out.json) {
      all->push_back({{"path", file}, {"error", std::string(status.message())}});
    } else {
      Complain(out, file, status);
    }
  };
}

std::string Line(const Compatibility& one) {
  return absl::StrCat(one.accepted ? "accepted" : "refused",
                      one.reason.empty() ? "" : absl::StrCat(": ", one.reason));
}

bool IsKnown(const std::string& runtime) {
  for (const RuntimeRelease& release : RuntimeReleases()) {
    for (absl::string_view range : release.runtimes) {
      if (IsRelease(range, runtime)) return true;
    }
  }
  return false;
}

}  // namespace

int Validate(const std::vector<std::string>& files, bool strict, const Output& out) {
  Json all = Json::array();
  const auto print = [&](const std::string& file, const absl::Status& status,
                         const SpecFile* read) {
    if (out.json) {
      Json entry = {{"path", file}, {"valid", status.ok()}};
      if (!status.ok()) entry["error"] = std::string(status.message());
      if (read != nullptr) entry["findings"] = read->findings;
      all.push_back(entry);
      return;
    }
    if (!status.ok()) {
      Complain(out, file, status);
      return;
    }
    out.text << Printable(file) << ": valid, cdiVersion " << read->spec.version << ", "
             << read->spec.devices.size() << " device"
             << (read->spec.devices.size() == 1 ? "" : "s") << "\n";
    for (const std::string& finding : read->findings) {
      out.text << Printable(file) << ": note: " << Printable(finding) << "\n";
    }
  };
  const int code = ForEachFile(
      files,
      [&](const std::string& file, const SpecFile& read) {
        const absl::Status status = strict ? ValidateForWriting(read.spec) : absl::OkStatus();
        print(file, status, &read);
        return status.ok();
      },
      [&](const std::string& file, const absl::Status& status) { print(file, status, nullptr); });
  if (out.json) PrintJson(all, out.text);
  return code;
}

int PrintMinimumVersions(const std::vector<std::string>& files, const Output& out) {
  Json all = Json::array();
  const int code = ForEachFile(
      files,
      [&](const std::string& file, const SpecFile& read) {
        const std::string version(VersionName(MinimumVersion(read.spec)));
        if (out.json) {
          all.push_back(
              {{"path", file}, {"minVersion", version}, {"cdiVersion", read.spec.version}});
        } else if (files.size() == 1) {
          out.text << version << "\n";
        } else {
          out.text << version << "  " << Printable(file) << "\n";
        }
        return true;
      },
      AddError(&all, out));
  if (out.json) PrintJson(all, out.text);
  return code;
}

int PrintCompatibility(const std::vector<std::string>& files, const std::string& runtime,
                       const Output& out) {
  if (!runtime.empty() && !IsKnown(runtime)) {
    out.errors << "ascend-cdi: no release of " << Printable(runtime)
               << " is known; known are containerd, CRI-O, podman and Docker, like \"containerd "
                  "2.1\"\n";
    return kExitUsage;
  }
  Json all = Json::array();
  const int code = ForEachFile(
      files,
      [&](const std::string& file, const SpecFile& read) {
        bool accepted = true;
        Json releases = Json::array();
        if (!out.json) {
          out.text << Printable(file) << " (cdiVersion " << read.spec.version << ")\n";
        }
        for (const Compatibility& one : Compatible(read.spec)) {
          std::vector<std::string> selected;
          for (absl::string_view name : one.release->runtimes) {
            if (runtime.empty() || IsRelease(name, runtime)) selected.emplace_back(name);
          }
          if (selected.empty()) continue;
          accepted &= one.accepted;
          if (out.json) {
            releases.push_back({{"library", std::string(one.release->library)},
                                {"runtimes", selected},
                                {"accepted", one.accepted},
                                {"reason", one.reason}});
          } else {
            out.text << "  " << absl::StrJoin(selected, ", ") << ": " << Line(one) << "\n";
          }
        }
        if (out.json) all.push_back({{"path", file}, {"releases", releases}});
        return accepted || runtime.empty();
      },
      AddError(&all, out));
  if (out.json) PrintJson(all, out.text);
  return code;
}

}  // namespace ascend::cdi::cmd
