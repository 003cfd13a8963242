#include "test/fault/hardware.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/file.h"
#include "base/core/status_macros.h"
#include "test/fault/control.h"

namespace ascend::fault {
namespace {

constexpr char kBootFile[] = "boot";

std::string FileName(int physical_id, const std::string& template_name, int id) {
  return absl::StrCat(physical_id, ":", template_name, ":", id);
}

}  // namespace

Hardware::Hardware(std::string directory, const std::string& boot_id)
    : directory_(std::move(directory)) {
  const Uncounted uncounted;
  const std::string boot_file = JoinPath(directory_, kBootFile);
  if (ReadFile(boot_file).value_or("") == boot_id) return;
  std::filesystem::remove_all(directory_);
  (void)MakeDirectories(directory_);
  (void)WriteFileAtomically(boot_file, boot_id, {.mode = 0600, .durable = false});
}

kubeletplugin::VnpuCalls Hardware::calls() {
  return {.list = [this](int physical_id, absl::Duration) { return On(physical_id); },
          .create = [this](const agent::VnpuRequest& request,
                           absl::Duration) { return Create(request); },
          .destroy = [this](const agent::VnpuReference& vnpu,
                            absl::Duration) { return Destroy(vnpu); }};
}

std::vector<std::string> Hardware::Listed() const {
  const Uncounted uncounted;
  std::vector<std::string> names = ListDirectory(directory_).value_or(std::vector<std::string>());
  std::erase_if(names, [](const std::string& name) {
    return !absl::StrContains(name, ':') || absl::StartsWith(name, ".");
  });
  return names;
}

absl::StatusOr<std::vector<vnpu::Vnpu>> Hardware::On(int physical_id) const {
  std::vector<vnpu::Vnpu> vnpus;
  for (const std::string& name : Listed()) {
    const std::vector<std::string> parts = absl::StrSplit(name, ':');
    vnpu::Vnpu vnpu;
    if (parts.size() != 3 || parts[0] != absl::StrCat(physical_id) ||
        !absl::SimpleAtoi(parts[2], &vnpu.id)) {
      continue;
    }
    vnpu.template_name = parts[1];
    vnpus.push_back(std::move(vnpu));
  }
  return vnpus;
}

absl::StatusOr<vnpu::Vnpu> Hardware::Create(const agent::VnpuRequest& request) {
  if (!request.id.has_value()) return absl::InvalidArgumentError("no id was asked for");
  const Uncounted uncounted;
  ASCEND_RETURN_IF_ERROR(WriteFileAtomically(
      JoinPath(directory_, FileName(request.physical_id, request.template_name, *request.id)), "",
      {.mode = 0600, .durable = false}));
  vnpu::Vnpu vnpu;
  vnpu.id = *request.id;
  vnpu.template_name = request.template_name;
  return vnpu;
}

absl::Status Hardware::Destroy(const agent::VnpuReference& vnpu) {
  const Uncounted uncounted;
  const std::string path =
      JoinPath(directory_, FileName(vnpu.physical_id, vnpu.template_name, vnpu.id));
  if (::unlink(path.c_str()) != 0) return ErrnoToStatus(errno, path);
  return absl::OkStatus();
}

}  // namespace ascend::fault
