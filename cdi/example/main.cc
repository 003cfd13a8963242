// Writes a CDI file and puts its device into an OCI runtime configuration.
#include <iostream>

#include "cdi/injector.h"
#include "cdi/registry.h"
#include "cdi/store.h"
#include "nlohmann/json.hpp"

namespace cdi = ascend::cdi;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: inject-device DIRECTORY\n";
    return 2;
  }
  cdi::Spec spec;
  spec.kind = "example.com/null";
  spec.devices.push_back({.name = "zero"});
  spec.devices[0].container_edits.env = {"DEVICE=zero"};
  spec.devices[0].container_edits.device_nodes = {{.path = "/dev/null", .file_mode = 0666}};

  // Atomic, with the least cdiVersion that carries it; a runtime never sees half a file.
  const cdi::Store store({.directory = argv[1]});
  if (absl::Status status = store.Write("example.com-null.json", spec, {}); !status.ok()) {
    std::cerr << status.message() << "\n";
    return 1;
  }

  // What a runtime does with it.
  cdi::OciConfig config = {{"ociVersion", "1.2.0"}};
  const auto snapshot = cdi::Scan({argv[1]});
  if (absl::Status status = cdi::Inject(*snapshot, {"example.com/null=zero"}, config);
      !status.ok()) {
    std::cerr << status.message() << "\n";
    return 1;
  }
  std::cout << config.dump(2) << "\n";
  return 0;
}
