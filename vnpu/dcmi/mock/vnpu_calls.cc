#include "vnpu/dcmi/mock/vnpu_calls.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "vnpu/dcmi/mock/getters.h"
#include "vnpu/dcmi/mock/vnpu_state.h"

namespace ascend::dcmi::mock {
namespace {

constexpr unsigned kNone = 0xFFFFFFFFu;

std::optional<int> Wanted(unsigned value) {
  if (value == DCMI_VDEV_AUTOMATIC) return std::nullopt;
  return static_cast<int>(value);
}

unsigned OrNone(int value) { return value < 0 ? kNone : static_cast<unsigned>(value); }

bool MakesVnpus(const View& view) {
  if (!view.node.vnpu.has_value() || !view.node.vnpu->create) return false;
  // A module whose dies go together cannot be cut.
  return view.node.family != Family::kA3 || view.node.dies_independent.value_or(false);
}

bool HasRecovery(const View& view) {
  const Family family = view.node.family;
  return family == Family::k310P || family == Family::k910A || family == Family::k910B;
}

dcmi_computing_resource Computing(const VnpuAmounts& amounts) {
  return {.aic = static_cast<float>(amounts.aicore),
          .memory_size = static_cast<unsigned long long>(amounts.memory),
          .device_aicpu = static_cast<unsigned short>(amounts.aicpu)};
}

dcmi_media_resource Media(const VnpuAmounts& amounts) {
  return {.jpegd = static_cast<float>(amounts.jpegd),
          .jpege = static_cast<float>(amounts.jpege),
          .vpc = static_cast<float>(amounts.vpc),
          .vdec = static_cast<float>(amounts.vdec),
          .pngd = static_cast<float>(amounts.pngd),
          .venc = static_cast<float>(amounts.venc)};
}

// What the chip tells about all of it: AI CPUs also where they limit nothing.
VnpuAmounts Total(const VnpuRules& rules, const Chip& chip) {
  VnpuAmounts total = BudgetAmounts(rules);
  if (total.aicpu == 0) total.aicpu = chip.aicpu_count;
  return total;
}

VnpuAmounts Minus(VnpuAmounts left, const VnpuAmounts& right) {
  for (const auto member : {&VnpuAmounts::aicore, &VnpuAmounts::aicpu, &VnpuAmounts::memory,
                            &VnpuAmounts::vpc, &VnpuAmounts::venc, &VnpuAmounts::vdec,
                            &VnpuAmounts::jpegd, &VnpuAmounts::jpege, &VnpuAmounts::pngd}) {
    left.*member = std::max(left.*member - right.*member, 0.0);
  }
  return left;
}

dcmi_soc_total_resource TotalResource(const VnpuRules& rules, const Chip& chip,
                                      const std::vector<Vnpu>& vnpus) {
  const int physical_id = *chip.physical_id;
  VnpuAmounts total = Total(rules, chip);
  if (rules.reported_memory > 0) total.memory = rules.reported_memory;
  dcmi_soc_total_resource resource{.vfg_bitmap = VGroupBitmap(physical_id, vnpus),
                                   .computing = Computing(total),
                                   .media = Media(total)};
  for (const Vnpu& vnpu : vnpus) {
    if (vnpu.physical_id == physical_id) resource.vdev_id[resource.vdev_num++] = vnpu.id;
  }
  resource.vfg_num = static_cast<unsigned>(__builtin_popcount(resource.vfg_bitmap));
  return resource;
}

dcmi_soc_free_resource FreeResource(const VnpuRules& rules, const Chip& chip,
                                    const std::vector<Vnpu>& vnpus) {
  const VnpuAmounts free = Minus(Total(rules, chip), UsedAmounts(rules, *chip.physical_id, vnpus));
  const unsigned all = rules.vgroups == 0 ? 0 : ~0u >> (32 - rules.vgroups);
  const unsigned groups = all & ~VGroupBitmap(*chip.physical_id, vnpus);
  return {.vfg_num = static_cast<unsigned>(__builtin_popcount(groups)),
          .vfg_bitmap = groups,
          .computing = Computing(free),
          .media = Media(free)};
}

dcmi_vdev_query_info QueryInfo(const VnpuRules& rules, const Vnpu& vnpu) {
  dcmi_vdev_query_info info{};
  std::memcpy(info.name, vnpu.template_name.data(),
              std::min(vnpu.template_name.size(), sizeof(info.name) - 1));
  info.status = vnpu.status;
  info.is_container_used = vnpu.container_used ? 1 : 0;
  info.vfid = static_cast<unsigned>(vnpu.id - FirstVnpuId(vnpu.physical_id) + 1);
  info.vfg_id = OrNone(vnpu.vgroup);
  info.base.vfg_id = info.vfg_id;
  if (const VnpuTemplate* const found = rules.FindTemplate(vnpu.template_name)) {
    info.computing = Computing(found->amounts);
    info.media = Media(found->amounts);
  }
  return info;
}

// Answers the query of the vNPU that the buffer names.
int QueryOne(const VnpuRules& rules, int physical_id, const std::vector<Vnpu>& vnpus, bool activity,
             void* buffer, unsigned* size) {
  dcmi_vdev_query_stru query{};
  if (*size < sizeof(query)) return DCMI_INVALID_PARAMETER;
  std::memcpy(&query, buffer, sizeof(query));
  for (const Vnpu& vnpu : vnpus) {
    if (vnpu.physical_id != physical_id || static_cast<unsigned>(vnpu.id) != query.vdev_id) {
      continue;
    }
    query.query_info = QueryInfo(rules, vnpu);
    if (activity) {  // idle; in KB
      query.query_info.computing.vdev_memory_total = query.query_info.computing.memory_size * 1024;
      query.query_info.computing.vdev_memory_free = query.query_info.computing.vdev_memory_total;
    }
    return CopyStructure(query, buffer, size);
  }
  return DCMI_DEVICE_NOT_EXIST;
}

}  // namespace

int CreateVnpu(const View& view, const Chip& chip, const dcmi_create_vdev_res_stru* wanted,
               dcmi_create_vdev_out* out) {
  if (!MakesVnpus(view)) return DCMI_NOT_SUPPORT;
  if (wanted == nullptr || out == nullptr) return DCMI_INVALID_PARAMETER;
  if (!chip.physical_id.has_value()) return DCMI_INNER_ERR;
  const VnpuWish wish{
      .template_name = std::string(wanted->template_name,
                                   strnlen(wanted->template_name, sizeof(wanted->template_name))),
      .id = Wanted(wanted->vdev_id),
      .vgroup = Wanted(wanted->vfg_id)};
  if (view.node.vnpu->FindTemplate(wish.template_name) == nullptr) return DCMI_INVALID_PARAMETER;
  if (!chip.processes.empty()) return DCMI_RESOURCE_OCCUPIED;
  Vnpu made;
  const int code = ChangeVnpuState(view.directory, view.node, [&](VnpuState& state) {
    const int planned = PlanVnpu(*view.node.vnpu, *chip.physical_id, state.vnpus, wish, &made);
    if (planned == DCMI_OK) state.vnpus.push_back(made);
    return planned;
  });
  if (code != DCMI_OK) return code;
  *out = {.vdev_id = static_cast<unsigned>(made.id),
          .pcie_bus = chip.pci.bus,
          .pcie_device = chip.pci.device,
          .pcie_func = chip.pci.function,
          .vfg_id = OrNone(made.vgroup)};
  return DCMI_OK;
}

int DestroyVnpu(const View& view, const Chip& chip, unsigned id) {
  if (!MakesVnpus(view)) return DCMI_NOT_SUPPORT;
  if (!chip.physical_id.has_value()) return DCMI_INNER_ERR;
  return ChangeVnpuState(view.directory, view.node, [&](VnpuState& state) -> int {
    const auto meant = [&](const Vnpu& vnpu) {
      return vnpu.physical_id == *chip.physical_id &&
             (id == DCMI_VDEV_ALL || static_cast<unsigned>(vnpu.id) == id);
    };
    std::vector<Vnpu>& vnpus = state.vnpus;
    if (id != DCMI_VDEV_ALL && std::none_of(vnpus.begin(), vnpus.end(), meant)) {
      return DCMI_DEVICE_NOT_EXIST;
    }
    if (std::any_of(vnpus.begin(), vnpus.end(),
                    [&](const Vnpu& vnpu) { return meant(vnpu) && vnpu.busy; })) {
      return DCMI_RESOURCE_OCCUPIED;
    }
    vnpus.erase(std::remove_if(vnpus.begin(), vnpus.end(), meant), vnpus.end());
    return DCMI_OK;
  });
}

int GetVnpuInfo(const View& view, const Chip& chip, unsigned sub_command, void* buffer,
                unsigned* size) {
  if (!view.node.vnpu.has_value()) return DCMI_NOT_SUPPORT;
  if (!chip.physical_id.has_value()) return DCMI_INNER_ERR;
  const VnpuRules& rules = *view.node.vnpu;
  const std::vector<Vnpu> vnpus = ReadVnpuState(view.directory).vnpus;
  switch (sub_command) {
    case DCMI_SUB_VDEV_TOTAL:
      return CopyStructure(TotalResource(rules, chip, vnpus), buffer, size);
    case DCMI_SUB_VDEV_FREE:
      return CopyStructure(FreeResource(rules, chip, vnpus), buffer, size);
    case DCMI_SUB_VDEV_ONE:
      return QueryOne(rules, *chip.physical_id, vnpus, /*activity=*/false, buffer, size);
    case DCMI_SUB_VDEV_ACTIVITY:
      if (view.node.family != Family::k310P) return DCMI_NOT_SUPPORT;
      return QueryOne(rules, *chip.physical_id, vnpus, /*activity=*/true, buffer, size);
    default:
      return DCMI_NOT_SUPPORT;
  }
}

int GetVdeviceMode(const View& view, int* mode) {
  if (view.node.family == Family::k310B) return DCMI_NOT_SUPPORT;  // the SoC
  return Give(mode, ReadVnpuState(view.directory).vdevice_mode);
}

int SetVdeviceMode(const View& view, int mode) {
  if (view.node.family == Family::k310B || view.node.family == Family::kA3) return DCMI_NOT_SUPPORT;
  if (mode != DCMI_VDEVICE_MODE_CONTAINER && mode != DCMI_VDEVICE_MODE_VM) {
    return DCMI_INVALID_PARAMETER;
  }
  return ChangeVnpuState(view.directory, view.node, [=](VnpuState& state) -> int {
    if (state.vdevice_mode != mode && !state.vnpus.empty()) return DCMI_RESOURCE_OCCUPIED;
    state.vdevice_mode = mode;
    return DCMI_OK;
  });
}

int GetVnpuRecovery(const View& view, unsigned* mode) {
  if (!HasRecovery(view)) return DCMI_NOT_SUPPORT;
  return Give(mode, ReadVnpuState(view.directory).recovery ? 1 : 0);
}

int SetVnpuRecovery(const View& view, unsigned mode) {
  if (!HasRecovery(view)) return DCMI_NOT_SUPPORT;
  if (mode > 1) return DCMI_INVALID_PARAMETER;
  return ChangeVnpuState(view.directory, view.node, [=](VnpuState& state) -> int {
    if (state.recovery != (mode == 1) && !state.vnpus.empty()) return DCMI_RESOURCE_OCCUPIED;
    state.recovery = mode == 1;
    return DCMI_OK;
  });
}

}  // namespace ascend::dcmi::mock
