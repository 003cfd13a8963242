// validate, min-version, compat.
#include <algorithm>
#include <iomanip>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cdi/cmd/commands.h"
#include "cdi/compatibility.h"
#include "cdi/spec_file.h"
#include "cdi/validate.h"
#include "cdi/version.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {
namespace {

using Json = nlohmann::ordered_json;

void Complain(const std::string& file, const absl::Status& status, const Output& out) {
  const bool named = absl::StrContains(status.message(), file);
  out.errors << "ascend-cdi: " << (named ? "" : absl::StrCat(file, ": ")) << status.message()
             << "\n";
}

// Reads each file and hands it to `use`; what cannot be read goes to `refused`.
template <typename Use, typename Refused>
int ForEachFile(const std::vector<std::string>& files, Use use, Refused refused) {
  int code = kExitOk;
  for (const std::string& file : files) {
    const absl::StatusOr<SpecFile> read = ReadSpecFile(file);
    if (!read.ok()) {
      code = kExitNo;
      refused(file, read.status());
    } else if (!use(file, *read)) {
      code = kExitNo;
    }
  }
  return code;
}

std::string Line(const Compatibility& one) {
  return absl::StrCat(one.accepted ? "accepted" : "refused",
                      one.reason.empty() ? "" : absl::StrCat(": ", one.reason));
}

// Whether `runtime` is what somebody asked for by "containerd" or "containerd 2.1".
bool Selected(absl::string_view runtime, const std::string& asked) {
  return asked.empty() || absl::StartsWithIgnoreCase(runtime, asked);
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
      Complain(file, status, out);
      return;
    }
    out.text << file << ": valid, cdiVersion " << read->spec.version << ", "
             << read->spec.devices.size() << " device"
             << (read->spec.devices.size() == 1 ? "" : "s") << "\n";
    for (const std::string& finding : read->findings) {
      out.text << file << ": note: " << finding << "\n";
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
  if (out.json) out.text << all.dump(2) << "\n";
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
          out.text << version << "  " << file << "\n";
        }
        return true;
      },
      [&](const std::string& file, const absl::Status& status) {
        if (out.json) {
          all.push_back({{"path", file}, {"error", std::string(status.message())}});
        } else {
          Complain(file, status, out);
        }
      });
  if (out.json) out.text << all.dump(2) << "\n";
  return code;
}

int PrintCompatibility(const std::vector<std::string>& files, const std::string& runtime,
                       const Output& out) {
  Json all = Json::array();
  bool known = false;
  const int code = ForEachFile(
      files,
      [&](const std::string& file, const SpecFile& read) {
        bool accepted = true;
        Json releases = Json::array();
        if (!out.json) out.text << file << " (cdiVersion " << read.spec.version << ")\n";
        for (const Compatibility& one : Compatible(read.spec)) {
          std::vector<std::string> selected;
          for (absl::string_view name : one.release->runtimes) {
            if (Selected(name, runtime)) selected.emplace_back(name);
          }
          if (selected.empty()) continue;
          known = true;
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
        return accepted;
      },
      [&](const std::string& file, const absl::Status& status) {
        known = true;
        if (out.json) {
          all.push_back({{"path", file}, {"error", std::string(status.message())}});
        } else {
          Complain(file, status, out);
        }
      });
  if (!known) {
    out.errors << "ascend-cdi: no release of \"" << runtime
               << "\" is known; known are, for example, containerd, cri-o, podman and docker\n";
    return kExitUsage;
  }
  if (out.json) out.text << all.dump(2) << "\n";
  return code;
}

}  // namespace ascend::cdi::cmd
