#include "kubeletplugin/testing/fake_vnpus.h"

#include "absl/strings/str_cat.h"

namespace ascend::kubeletplugin {
namespace {

std::string Node(int id) { return absl::StrCat("/dev/vdavinci", id); }

}  // namespace

VnpuCalls FakeVnpus::calls() {
  return {
      .list = [this](int physical_id, absl::Duration) -> absl::StatusOr<std::vector<vnpu::Vnpu>> {
        {
          MutexLock lock(&mutex_);
          if (!list_.ok()) return list_;
        }
        return On(physical_id);
      },
      .create = [this](const agent::VnpuRequest& request,
                       absl::Duration) { return Create(request); },
      .destroy = [this](const agent::VnpuReference& vnpu, absl::Duration) -> absl::Status {
        absl::Status answer;
        {
          MutexLock lock(&mutex_);
          answer = destroy_.status;
          if (!answer.ok() && !destroy_.after_work) return answer;
          ++destroys_;
          const auto found = vnpus_.find(vnpu.id);
          if (found != vnpus_.end() && (found->second.vnpu.template_name != vnpu.template_name ||
                                        found->second.physical_id != vnpu.physical_id)) {
            return absl::FailedPreconditionError("it is another vNPU");
          }
        }
        Destroy(vnpu.id);
        return answer;
      }};
}

absl::StatusOr<vnpu::Vnpu> FakeVnpus::Create(const agent::VnpuRequest& request) {
  MutexLock lock(&mutex_);
  ++creates_;
  if (!create_.status.ok() && !create_.after_work) return create_.status;
  const int wanted = request.id.value_or(-1);
  const int id = MakeLocked(request.physical_id, request.template_name,
                            vnpus_.count(wanted) == 0 ? wanted : -1);
  vnpus_.at(id).vnpu.vgroup = request.vgroup.value_or(-1);
  if (!create_.status.ok()) return create_.status;
  return vnpus_.at(id).vnpu;
}

int FakeVnpus::MakeLocked(int physical_id, const std::string& template_name, int id) {
  if (id < 0) {
    id = 100 + 16 * physical_id;
    while (vnpus_.count(id) != 0) ++id;
  }
  vnpu::Vnpu vnpu;
  vnpu.id = id;
  vnpu.template_name = template_name;
  vnpus_[id] = {physical_id, vnpu};
  if (host_ != nullptr && make_nodes_) {
    host_->Node(Node(id), FakeHost::kMajor, static_cast<unsigned>(id));
  }
  return id;
}

int FakeVnpus::Make(int physical_id, const std::string& template_name, int id) {
  MutexLock lock(&mutex_);
  return MakeLocked(physical_id, template_name, id);
}

void FakeVnpus::Destroy(int id) {
  MutexLock lock(&mutex_);
  vnpus_.erase(id);
  if (host_ != nullptr) host_->Remove(Node(id));
}

std::vector<std::string> FakeVnpus::Listed() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> lines;
  for (const auto& [id, entry] : vnpus_) {
    lines.push_back(absl::StrCat(entry.physical_id, ":", entry.vnpu.template_name, ":", id));
  }
  return lines;
}

std::vector<vnpu::Vnpu> FakeVnpus::On(int physical_id) const {
  MutexLock lock(&mutex_);
  std::vector<vnpu::Vnpu> vnpus;
  for (const auto& [id, entry] : vnpus_) {
    if (entry.physical_id == physical_id) vnpus.push_back(entry.vnpu);
  }
  return vnpus;
}

void FakeVnpus::Reboot(bool recovery) {
  MutexLock lock(&mutex_);
  const std::map<int, Entry> before = vnpus_;
  for (const auto& [id, entry] : before) {
    if (host_ != nullptr) host_->Remove(Node(id));
  }
  vnpus_.clear();
  if (!recovery) return;
  for (const auto& [id, entry] : before) {
    MakeLocked(entry.physical_id, entry.vnpu.template_name, id + 1);
  }
}

void FakeVnpus::FailCreate(absl::Status status, bool after_work) {
  MutexLock lock(&mutex_);
  create_ = {std::move(status), after_work};
}
void FakeVnpus::FailDestroy(absl::Status status, bool after_work) {
  MutexLock lock(&mutex_);
  destroy_ = {std::move(status), after_work};
}
void FakeVnpus::FailList(absl::Status status) {
  MutexLock lock(&mutex_);
  list_ = std::move(status);
}
void FakeVnpus::MakeNodes(bool make) {
  MutexLock lock(&mutex_);
  make_nodes_ = make;
}
int FakeVnpus::creates() const {
  MutexLock lock(&mutex_);
  return creates_;
}
int FakeVnpus::destroys() const {
  MutexLock lock(&mutex_);
  return destroys_;
}

}  // namespace ascend::kubeletplugin
