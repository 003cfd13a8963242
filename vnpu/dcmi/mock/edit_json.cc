#include "vnpu/dcmi/mock/edit_json.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/core/file.h"
#include "base/core/file_lock.h"
#include "base/core/status_macros.h"

namespace ascend::dcmi::mock {

using Json = nlohmann::ordered_json;

absl::StatusOr<Node> NodeOf(const std::string& node_directory) {
  const std::string path = NodeFile(node_directory);
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Node node;
  std::string error;
  if (!ParseNode(text, &node, &error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", error));
  }
  return node;
}

absl::Status EditNode(const std::string& node_directory,
                      const std::function<absl::Status(Json& node)>& change) {
  ASCEND_ASSIGN_OR_RETURN(const FileLock lock,
                          FileLock::Acquire(JoinPath(node_directory, ".lock"), absl::Seconds(10)));
  const std::string path = NodeFile(node_directory);
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    return absl::InvalidArgumentError(absl::StrCat(path, " is no JSON object"));
  ASCEND_RETURN_IF_ERROR(change(json)).With(path);
  const std::string changed = json.dump(2) + "\n";
  Node node;
  std::string error;
  if (!ParseNode(changed, &node, &error)) return absl::InvalidArgumentError(error);
  return WriteFileAtomically(path, changed, {.mode = 0644, .durable = false});
}

absl::Status EditChip(const std::string& node_directory, int physical_id,
                      const std::function<absl::Status(Json& chip)>& change) {
  return EditNode(node_directory, [&](Json& node) -> absl::Status {
    if (node.contains("chips") && node["chips"].is_array()) {
      for (Json& chip : node["chips"]) {
        if (chip.is_object() && chip.value("physicalID", Json()) == physical_id) {
          return change(chip);
        }
      }
    }
    return absl::NotFoundError(absl::StrCat("no chip with physical id ", physical_id));
  });
}

}  // namespace ascend::dcmi::mock
