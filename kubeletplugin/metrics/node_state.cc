#include "kubeletplugin/metrics/node_state.h"

#include <string>
#include <variant>

namespace ascend::kubeletplugin {
namespace {

bool IsPartition(const RecordedDevice& device) {
  const auto type = device.published.attributes.find("type");
  if (type == device.published.attributes.end()) return false;
  const auto* text = std::get_if<std::string>(&type->second);
  return text != nullptr && *text == "vnpu";
}

}  // namespace

NodeState ReadNodeState(RecordStore& records, const cdi::Store& cdi_store, const Paths& paths,
                        bool registered) {
  NodeState state = {.registered = registered};
  if (const auto contents = records.ReadAll(); contents.ok()) {
    int npus = 0, vnpus = 0;
    for (const auto& record : contents->records) {
      for (const RecordedDevice& device : record->devices) {
        if (device.admin_access) continue;
        ++(IsPartition(device) ? vnpus : npus);
      }
    }
    state.prepared_claims = static_cast<int>(contents->records.size());
    state.prepared_npus = npus;
    state.prepared_vnpus = vnpus;
    state.unreadable_records = static_cast<int>(contents->unreadable.size());
  }
  if (const auto files = cdi_store.List(paths.cdi_file_prefix()); files.ok()) {
    state.cdi_spec_files = static_cast<int>(files->size());
  }
  return state;
}

}  // namespace ascend::kubeletplugin
