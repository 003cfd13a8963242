// inject.
#include <iostream>
#include <iterator>

#include "cdi/cmd/commands.h"
#include "cdi/injector.h"
#include "nlohmann/json.hpp"

namespace ascend::cdi::cmd {

int InjectDevices(const Snapshot& snapshot, const std::vector<std::string>& names,
                  const std::string& library, std::istream& config, const Output& out) {
  InjectionOptions options;
  if (!library.empty()) {
    absl::StatusOr<InjectionCompatibility> compatibility = CompatibilityOf(library);
    if (!compatibility.ok()) {
      out.errors << "ascend-cdi: " << compatibility.status().message() << "\n";
      return kExitUsage;
    }
    options.compatibility = *compatibility;
  }
  const std::string text((std::istreambuf_iterator<char>(config)),
                         std::istreambuf_iterator<char>());
  OciConfig json = OciConfig::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    out.errors << "ascend-cdi: the OCI configuration on standard input is not JSON\n";
    return kExitNo;
  }
  if (absl::Status status = Inject(snapshot, names, json, options); !status.ok()) {
    out.errors << "ascend-cdi: " << status.message() << "\n";
    for (const auto& [path, errors] : snapshot.errors()) {
      for (const absl::Status& error : errors) {
        out.errors << "ascend-cdi: note: " << path << ": " << error.message() << "\n";
      }
    }
    return kExitNo;
  }
  out.text << json.dump(out.json ? -1 : 2, ' ', /*ensure_ascii=*/false,
                        OciConfig::error_handler_t::replace)
           << "\n";
  return kExitOk;
}

}  // namespace ascend::cdi::cmd
