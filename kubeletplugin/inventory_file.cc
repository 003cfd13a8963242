#include "kubeletplugin/inventory_file.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agent.pb.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "vnpu/agent/convert.h"

namespace ascend::kubeletplugin {
namespace {

// First line of the file; the inventory follows as JSON.
std::string Header(const std::string& boot_id) { return absl::StrCat("bootID ", boot_id, "\n"); }

}  // namespace

absl::Status WriteInventoryFile(const std::string& path, const std::string& boot_id,
                                const vnpu::Inventory& inventory) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(agent::ToProto(inventory), &json);
  if (!status.ok()) return absl::InternalError(absl::StrCat("inventory: ", status.ToString()));
  // Not worth a disk flush: losing it costs a moment of waiting for the agent.
  return WriteFileAtomically(path, absl::StrCat(Header(boot_id), json, "\n"), {.durable = false});
}

absl::StatusOr<vnpu::Inventory> ReadInventoryFile(const std::string& path,
                                                  const std::string& boot_id) {
  ASCEND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::string_view json = text;
  if (!absl::ConsumePrefix(&json, Header(boot_id))) {
    return absl::NotFoundError(absl::StrCat(path, " is of another boot"));
  }
  agent::v1alpha1::Inventory message;
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &message);
  if (!status.ok()) return absl::DataLossError(absl::StrCat(path, ": ", status.ToString()));
  return agent::FromProto(message);
}

}  // namespace ascend::kubeletplugin
