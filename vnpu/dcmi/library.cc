#include "vnpu/dcmi/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/core/mutex.h"
#include "base/core/status_macros.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/library_calls.h"
#include "vnpu/dcmi/status.h"

namespace ascend::dcmi {
namespace {

// 0xFFFFFFFF, and what is no number of this kind, mean none.
int IntOrNone(unsigned value) { return value > INT_MAX ? -1 : static_cast<int>(value); }

int VGroup(unsigned value) { return value < 32 ? static_cast<int>(value) : -1; }

absl::StatusOr<int> VnpuId(unsigned value) {
  if (value > INT_MAX) {
    return absl::InternalError(absl::StrCat("the library gave the vNPU id ", value));
  }
  return static_cast<int>(value);
}

VnpuResources Resources(const struct dcmi_computing_resource& computing,
                        const struct dcmi_media_resource& media) {
  constexpr unsigned short kShared = 0xffff;
  return VnpuResources{.aicore = computing.aic,
                       .memory_mib = static_cast<int64_t>(computing.memory_size),
                       .aicpu = computing.device_aicpu == kShared ? -1 : computing.device_aicpu,
                       .vpc = media.vpc,
                       .venc = media.venc,
                       .vdec = media.vdec,
                       .jpegd = media.jpegd,
                       .jpege = media.jpege,
                       .pngd = media.pngd};
}

bool ReplaceableByAnyone(const std::filesystem::path& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return false;
  const bool sticky_directory = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
  return (info.st_mode & S_IWOTH) != 0 && !sticky_directory;
}

std::vector<std::string> PathWarnings(const std::string& library) {
  std::vector<std::string> warnings;
  for (std::filesystem::path path = library;; path = path.parent_path()) {
    if (ReplaceableByAnyone(path)) {
      warnings.push_back(absl::StrCat(path.string(),
                                      " is writable by everyone, so any user can replace the "
                                      "library that this process loads; run chmod o-w ",
                                      path.string()));
    }
    if (path == path.parent_path()) return warnings;
  }
}

std::string LoadedPath(void* handle, const std::string& fallback) {
  link_map* map = nullptr;
  std::string path = fallback;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr &&
      map->l_name[0] != '\0') {
    path = map->l_name;
  }
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? std::string(resolved) : path;
}

}  // namespace

std::vector<std::string> Library::DefaultPaths() {
  return {"libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so",
          "/usr/local/dcmi/libdcmi.so", "/usr/lib64/libdcmi.so"};
}

absl::StatusOr<std::unique_ptr<Library>> Library::Open(const std::vector<std::string>& paths) {
  std::vector<std::string> failures;
  for (const std::string& path : paths) {
    const bool searched_by_loader = !absl::StrContains(path, '/');
    if (!searched_by_loader && access(path.c_str(), F_OK) != 0) continue;
    void* const handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
    if (handle == nullptr) {
      const char* const reason = dlerror();
      const std::string message = reason != nullptr ? reason : "unknown reason";
      // For a bare name, the loader's "X: cannot open" about X itself only means: not there.
      if (!searched_by_loader ||
          !absl::StartsWith(message, absl::StrCat(path, ": cannot open shared object file"))) {
        failures.push_back(absl::StrCat(path, ": ", message));
      }
      continue;
    }
    auto functions = std::make_unique<Functions>();
#define ASCEND_RESOLVE(name, parameters) \
  functions->name = reinterpret_cast<name##_fn>(dlsym(handle, #name));
    ASCEND_DCMI_V1_FUNCTIONS(ASCEND_RESOLVE)
    ASCEND_DCMI_V2_FUNCTIONS(ASCEND_RESOLVE)
#undef ASCEND_RESOLVE
    if (functions->dcmi_init == nullptr && functions->dcmiv2_init == nullptr) {
      failures.push_back(absl::StrCat(path, ": has neither dcmi_init nor dcmiv2_init"));
      dlclose(handle);
      continue;
    }
    return std::unique_ptr<Library>(new Library(LoadedPath(handle, path), std::move(functions)));
  }
  if (!failures.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot load libdcmi: ", absl::StrJoin(failures, "; ")));
  }
  return absl::NotFoundError(
      absl::StrCat("no libdcmi at ", absl::StrJoin(paths, ", "),
                   "; install the Ascend driver, or mount its directory into this container"));
}

Library::Library(std::string path, std::unique_ptr<Functions> functions)
    : path_(std::move(path)), warnings_(PathWarnings(path_)), functions_(std::move(functions)) {}

Library::~Library() = default;

const std::string& Library::path() const { return path_; }
const std::vector<std::string>& Library::warnings() const { return warnings_; }
Generation Library::generation() const { return functions_->generation; }

absl::Status Library::Initialise() {
  if (functions_->initialised) return absl::OkStatus();
  Generation generation = Generation::kCards;
  absl::Status status = DCMI_CALL(NodeMutex(), dcmi_init);
  if (!status.ok()) {
    absl::Status second = DCMI_CALL(NodeMutex(), dcmiv2_init);
    if (!second.ok()) {
      // The generation that the library has at all tells why; the other one is only "not there".
      if (!absl::IsUnimplemented(status)) return status;
      return second;
    }
    generation = Generation::kFlat;
  }
  functions_->generation = generation;
  functions_->initialised = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Library::DcmiVersion() {
  Out<char[DCMI_MAX_LENTH]> version;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CALL(NodeMutex(), dcmi_get_dcmi_version, version.value, unsigned{DCMI_MAX_VER_LEN}));
  return FieldText(version.value);
}

absl::StatusOr<std::string> Library::DriverVersion() {
  Out<char[DCMI_MAX_LENTH]> version;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CALL(NodeMutex(), dcmi_get_driver_version, version.value, unsigned{DCMI_MAX_VER_LEN}));
  return FieldText(version.value);
}

absl::StatusOr<std::vector<int>> Library::Cards() {
  constexpr int kCapacity = DCMI_MAX_CARD_NUM;
  Out<int[kCapacity]> list;
  Out<int> count;
  if (generation() == Generation::kFlat) {
    ASCEND_RETURN_IF_ERROR(
        DCMI_CALL(NodeMutex(), dcmiv2_get_device_list, list.value, &count.value, int{kCapacity}));
  } else if (functions_->dcmi_get_card_list != nullptr) {
    ASCEND_RETURN_IF_ERROR(
        DCMI_CALL(NodeMutex(), dcmi_get_card_list, &count.value, list.value, int{kCapacity}));
  } else {
    ASCEND_RETURN_IF_ERROR(
        DCMI_CALL(NodeMutex(), dcmi_get_card_num_list, &count.value, list.value, int{kCapacity}));
  }
  if (count.value < 0 || count.value > kCapacity) {
    return absl::InternalError(absl::StrCat("the library lists ", count.value, " cards"));
  }
  return std::vector<int>(list.value, list.value + count.value);
}

absl::StatusOr<std::vector<ChipAddress>> Library::Units(int card) {
  if (generation() == Generation::kFlat) return std::vector<ChipAddress>{{card, 0}};
  std::vector<ChipAddress> units;
  Out<int> max, mcu, cpu;
  absl::Status by_id = DCMI_CALL(ChipMutex({card, 0}), dcmi_get_device_id_in_card, card, &max.value,
                                 &mcu.value, &cpu.value);
  if (!by_id.ok()) {
    Out<int> count;
    const absl::Status by_count =
        DCMI_CALL(ChipMutex({card, 0}), dcmi_get_device_num_in_card, card, &count.value);
    if (!by_count.ok()) return by_id;
    for (int device = 0; device < std::min<int>(count.value, DCMI_MAX_CARD_NUM); ++device) {
      units.push_back({card, device});
    }
    return units;
  }
  // Uncertain: `max` is the highest id, with or without the management unit, or the number of
  // NPUs, by version. So try all up to it, and take the last one only if there is such a unit.
  for (int device = 0; device <= std::min<int>(max.value, DCMI_MAX_CARD_NUM); ++device) {
    if (device > 0 && (device == mcu.value || device == cpu.value)) continue;
    const ChipAddress unit{card, device};
    if (device > 0 && device == max.value) {
      const absl::Status type = Type(unit).status();
      if (absl::IsNotFound(type) || absl::IsInvalidArgument(type)) continue;
    }
    units.push_back(unit);
  }
  return units;
}

absl::StatusOr<UnitType> Library::Type(ChipAddress chip) {
  Out<enum dcmi_unit_type> type;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CHIP_CALL(dcmi_get_device_type, dcmiv2_get_device_type, chip, &type.value));
  switch (type.value) {
    case DCMI_UNIT_NPU:
      return UnitType::kNpu;
    case DCMI_UNIT_MCU:
      return UnitType::kMcu;
    case DCMI_UNIT_CPU:
      return UnitType::kCpu;
    default:
      return UnitType::kOther;
  }
}

absl::StatusOr<int> Library::LogicId(ChipAddress chip) {
  // Uncertain: generation 2 has no such query; its device id is taken for the logic id.
  if (generation() == Generation::kFlat) return chip.card;
  Out<int> logic;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CALL(ChipMutex(chip), dcmi_get_device_logic_id, &logic.value, chip.card, chip.device));
  if (logic.value < 0) {
    return absl::InternalError(absl::StrCat("dcmi_get_device_logic_id gave ", logic.value));
  }
  return logic.value;
}

absl::StatusOr<int> Library::PhysicalId(ChipAddress chip) {
  Out<unsigned> physical;
  if (generation() == Generation::kFlat) {
    ASCEND_RETURN_IF_ERROR(
        DCMI_CALL(ChipMutex(chip), dcmiv2_get_chip_phy_id_by_dev_id, chip.card, &physical.value));
  } else {
    ASCEND_ASSIGN_OR_RETURN(const int logic, LogicId(chip));
    ASCEND_RETURN_IF_ERROR(DCMI_CALL(ChipMutex(chip), dcmi_get_device_phyid_from_logicid,
                                     static_cast<unsigned>(logic), &physical.value));
  }
  if (physical.value > INT_MAX) {
    return absl::InternalError(absl::StrCat("the library gave physical id ", physical.value));
  }
  return static_cast<int>(physical.value);
}

absl::StatusOr<ChipInfo> Library::Chip(ChipAddress chip) {
  Out<struct dcmi_chip_info_v2> info;
  absl::Status status =
      DCMI_CHIP_CALL(dcmi_get_device_chip_info_v2, dcmiv2_get_device_chip_info, chip, &info.value);
  if (!status.ok() && generation() == Generation::kCards) {
    Out<struct dcmi_chip_info> old;
    ASCEND_RETURN_IF_ERROR(
        DCMI_CALL(ChipMutex(chip), dcmi_get_device_chip_info, chip.card, chip.device, &old.value));
    return ChipInfo{.type = FieldText(old.value.chip_type),
                    .name = FieldText(old.value.chip_name),
                    .version = FieldText(old.value.chip_ver),
                    .aicore_count = static_cast<int>(old.value.aicore_cnt)};
  }
  ASCEND_RETURN_IF_ERROR(status);
  return ChipInfo{.type = FieldText(info.value.chip_type),
                  .name = FieldText(info.value.chip_name),
                  .version = FieldText(info.value.chip_ver),
                  .npu_name = FieldText(info.value.npu_name),
                  .aicore_count = static_cast<int>(info.value.aicore_cnt)};
}

absl::StatusOr<BoardInfo> Library::Board(ChipAddress chip) {
  Out<struct dcmi_board_info> board;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CHIP_CALL(dcmi_get_device_board_info, dcmiv2_get_device_board_info, chip, &board.value));
  return BoardInfo{board.value.board_id, board.value.pcb_id, board.value.bom_id,
                   board.value.slot_id};
}

absl::StatusOr<uint32_t> Library::MainboardId(ChipAddress chip) {
  Out<unsigned> id;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CHIP_CALL(dcmi_get_mainboard_id, dcmiv2_get_mainboard_id, chip, &id.value));
  return id.value;
}

absl::StatusOr<PciInfo> Library::Pci(ChipAddress chip) {
  Out<struct dcmi_pcie_info_all> pci;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CHIP_CALL(dcmi_get_device_pcie_info_v2, dcmiv2_get_device_pcie_info, chip, &pci.value));
  return PciInfo{
      .vendor_id = pci.value.venderid,
      .device_id = pci.value.deviceid,
      .subsystem_vendor_id = pci.value.subvenderid,
      .subsystem_device_id = pci.value.subdeviceid,
      .bus_id = absl::StrFormat("%04x:%02x:%02x.%x", static_cast<unsigned>(pci.value.domain),
                                pci.value.bdf_busid, pci.value.bdf_deviceid, pci.value.bdf_funcid)};
}

absl::StatusOr<DieId> Library::Die(ChipAddress chip, DieType type) {
  const enum dcmi_die_type c_type = type == DieType::kNdie   ? DCMI_DIE_NDIE
                                    : type == DieType::kVdie ? DCMI_DIE_VDIE
                                                             : DCMI_DIE_DDIE;
  Out<struct dcmi_die_id> die;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CHIP_CALL(dcmi_get_device_die_v2, dcmiv2_get_device_die_id, chip, c_type, &die.value));
  DieId id;
  std::copy(std::begin(die.value.soc_die), std::end(die.value.soc_die), id.begin());
  return id;
}

absl::StatusOr<std::string> Library::SerialNumber(ChipAddress chip) {
  Out<struct dcmi_elabel_info> label;
  absl::Status status = DCMI_CHIP_CALL(dcmi_get_device_elabel_info, dcmiv2_get_device_elabel_info,
                                       chip, &label.value);
  if (absl::IsUnimplemented(status) && generation() == Generation::kCards) {
    status = DCMI_CALL(ChipMutex(chip), dcmi_get_card_elabel_v2, chip.card, &label.value);
  }
  ASCEND_RETURN_IF_ERROR(status);
  return FieldText(label.value.serial_number);
}

absl::StatusOr<SuperPodInfo> Library::SuperPod(ChipAddress chip) {
  Out<struct dcmi_spod_info> pod;
  unsigned size = sizeof(pod.value);
  ASCEND_RETURN_IF_ERROR(DCMI_CHIP_CALL(dcmi_get_device_info, dcmiv2_get_device_info, chip,
                                        DCMI_CMD_CHIP_INF, unsigned{DCMI_SUB_CHIP_SPOD},
                                        static_cast<void*>(&pod.value), &size));
  return SuperPodInfo{.sdid = pod.value.sdid,
                      .size = pod.value.super_pod_size,
                      .id = pod.value.super_pod_id,
                      .server_index = pod.value.server_index};
}

absl::StatusOr<HealthGrade> Library::Health(ChipAddress chip) {
  Out<unsigned> health;
  const absl::Status status =
      DCMI_CHIP_CALL(dcmi_get_device_health, dcmiv2_get_device_health, chip, &health.value);
  // A dropped chip answers "not ready".
  if (ReturnCodeOf(status) == DCMI_NOT_READY) return HealthGrade::kAbsent;
  ASCEND_RETURN_IF_ERROR(status);
  switch (health.value) {
    case 0:
      return HealthGrade::kOk;
    case 1:
      return HealthGrade::kMinor;
    case 2:
      return HealthGrade::kMajor;
    case 3:
      return HealthGrade::kCritical;
    case DCMI_HEALTH_ABSENT:
      return HealthGrade::kAbsent;
    default:
      return HealthGrade::kUnknown;
  }
}

absl::StatusOr<MemoryInfo> Library::HbmMemory(ChipAddress chip) {
  Out<struct dcmi_hbm_info> hbm;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CHIP_CALL(dcmi_get_device_hbm_info, dcmiv2_get_device_hbm_info, chip, &hbm.value));
  return MemoryInfo{static_cast<int64_t>(hbm.value.memory_size),
                    static_cast<int64_t>(hbm.value.memory_usage)};
}

absl::StatusOr<MemoryInfo> Library::DdrMemory(ChipAddress chip) {
  if (generation() == Generation::kFlat) return NotInThisGeneration("DDR memory");
  Out<struct dcmi_get_memory_info_stru> v3;
  absl::Status status =
      DCMI_CALL(ChipMutex(chip), dcmi_get_device_memory_info_v3, chip.card, chip.device, &v3.value);
  if (status.ok()) {
    return MemoryInfo{static_cast<int64_t>(v3.value.memory_size),
                      static_cast<int64_t>(v3.value.memory_size) -
                          static_cast<int64_t>(v3.value.memory_available)};
  }
  if (!absl::IsUnimplemented(status)) return status;
  Out<struct dcmi_memory_info> v2;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(ChipMutex(chip), dcmi_get_device_memory_info_v2, chip.card,
                                   chip.device, &v2.value));
  const auto total = static_cast<int64_t>(v2.value.memory_size);
  return MemoryInfo{total, total * v2.value.utiliza / 100};
}

absl::StatusOr<int> Library::AicpuCount(ChipAddress chip) {
  if (generation() == Generation::kFlat) return NotInThisGeneration("AI CPUs");
  Out<struct dcmi_aicpu_info> aicpu;
  ASCEND_RETURN_IF_ERROR(
      DCMI_CALL(ChipMutex(chip), dcmi_get_device_aicpu_info, chip.card, chip.device, &aicpu.value));
  return static_cast<int>(aicpu.value.aicpu_num);
}

absl::StatusOr<std::vector<ChipProcess>> Library::Processes(ChipAddress chip) {
  // Uncertain: dcmiv2_get_device_proc_mem_info has no published prototype.
  if (generation() == Generation::kFlat) return NotInThisGeneration("processes");
  // The call is not told the capacity, so the slack holds as many again.
  struct dcmi_proc_mem_info list[2 * DCMI_MAX_PROCESSES] = {};
  Out<int> count;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(ChipMutex(chip), dcmi_get_device_resource_info, chip.card,
                                   chip.device, list, &count.value));
  if (count.value < 0) {
    return absl::InternalError(
        absl::StrCat("dcmi_get_device_resource_info gave ", count.value, " processes"));
  }
  std::vector<ChipProcess> processes;
  for (int i = 0; i < std::min<int>(count.value, DCMI_MAX_PROCESSES); ++i) {
    processes.push_back(
        {std::max(list[i].proc_id, 0), static_cast<int64_t>(list[i].proc_mem_usage)});
  }
  return processes;
}

absl::StatusOr<std::string> Library::RoceAddress(ChipAddress chip) {
  if (generation() == Generation::kFlat) return NotInThisGeneration("RoCE addresses");
  Out<struct dcmi_ip_addr> address, mask;
  address.value.ip_type = DCMI_IP_V4;
  mask.value.ip_type = DCMI_IP_V4;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(ChipMutex(chip), dcmi_get_device_ip, chip.card, chip.device,
                                   DCMI_PORT_ROCE, 0, &address.value, &mask.value));
  const unsigned char* const ip = address.value.u_addr.ip4;
  if (address.value.ip_type != DCMI_IP_V4 ||
      std::all_of(ip, ip + 4, [](int b) { return b == 0; })) {
    return absl::NotFoundError("the RoCE port has no IPv4 address");
  }
  return absl::StrFormat("%d.%d.%d.%d", ip[0], ip[1], ip[2], ip[3]);
}

absl::StatusOr<MultiDiePolicy> Library::GetMultiDiePolicy() {
  if (generation() == Generation::kFlat) return NotInThisGeneration("the multi-die policy");
  Out<enum dcmi_multi_die_policy> policy;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(NodeMutex(), dcmi_get_multi_die_policy, &policy.value));
  switch (policy.value) {
    case DCMI_MULTI_DIE_UNION:
      return MultiDiePolicy::kUnion;
    case DCMI_MULTI_DIE_INDEPENDENT:
      return MultiDiePolicy::kIndependent;
    default:
      return absl::InternalError(
          absl::StrCat("dcmi_get_multi_die_policy gave ", static_cast<unsigned>(policy.value)));
  }
}

absl::StatusOr<TopologyType> Library::Topology(ChipAddress one, ChipAddress other) {
  Out<int> type;
  // Under neither chip's lock: else one that hangs would stop the other.
  ASCEND_RETURN_IF_ERROR(generation() == Generation::kCards
                             ? DCMI_CALL(PairMutex(), dcmi_get_topo_info_by_device_id, one.card,
                                         one.device, other.card, other.device, &type.value)
                             : DCMI_CALL(PairMutex(), dcmiv2_get_topo_info_by_device_id, one.card,
                                         other.card, &type.value));
  switch (type.value) {
    case DCMI_TOPO_SELF:
      return TopologyType::kSelf;
    case DCMI_TOPO_SYS:
      return TopologyType::kSys;
    case DCMI_TOPO_PHB:
      return TopologyType::kPhb;
    case DCMI_TOPO_HCCS:
      return TopologyType::kHccs;
    case DCMI_TOPO_PXB:
      return TopologyType::kPxb;
    case DCMI_TOPO_PIX:
      return TopologyType::kPix;
    case DCMI_TOPO_SIO:
      return TopologyType::kSio;
    case DCMI_TOPO_HCCS_SW:
      return TopologyType::kHccsSwitch;
    case DCMI_TOPO_UB:
      return TopologyType::kUb;
    default:
      return TopologyType::kUnknown;
  }
}

absl::StatusOr<VnpuTotal> Library::Vnpus(ChipAddress chip) {
  Out<struct dcmi_soc_total_resource> total;
  unsigned size = sizeof(total.value);
  ASCEND_RETURN_IF_ERROR(DCMI_CHIP_CALL(dcmi_get_device_info, dcmiv2_get_device_info, chip,
                                        DCMI_CMD_VDEV_MNG, unsigned{DCMI_SUB_VDEV_TOTAL},
                                        static_cast<void*>(&total.value), &size));
  if (total.value.vdev_num > std::size(total.value.vdev_id)) {
    return absl::InternalError(
        absl::StrCat("the library lists ", total.value.vdev_num, " vNPUs on one chip"));
  }
  VnpuTotal result{.resources = Resources(total.value.computing, total.value.media),
                   .vgroups = total.value.vfg_bitmap};
  for (unsigned i = 0; i < total.value.vdev_num; ++i) {
    ASCEND_ASSIGN_OR_RETURN(const int id, VnpuId(total.value.vdev_id[i]));
    result.ids.push_back(id);
  }
  return result;
}

absl::StatusOr<VnpuResources> Library::FreeVnpuResources(ChipAddress chip) {
  Out<struct dcmi_soc_free_resource> free;
  unsigned size = sizeof(free.value);
  ASCEND_RETURN_IF_ERROR(DCMI_CHIP_CALL(dcmi_get_device_info, dcmiv2_get_device_info, chip,
                                        DCMI_CMD_VDEV_MNG, unsigned{DCMI_SUB_VDEV_FREE},
                                        static_cast<void*>(&free.value), &size));
  return Resources(free.value.computing, free.value.media);
}

absl::StatusOr<VnpuInfo> Library::Vnpu(ChipAddress chip, int id) {
  if (id < 0) return absl::InvalidArgumentError(absl::StrCat(id, " is no id of a vNPU"));
  Out<struct dcmi_vdev_query_stru> query;
  query.value.vdev_id = static_cast<unsigned>(id);
  unsigned size = sizeof(query.value);
  ASCEND_RETURN_IF_ERROR(DCMI_CHIP_CALL(dcmi_get_device_info, dcmiv2_get_device_info, chip,
                                        DCMI_CMD_VDEV_MNG, unsigned{DCMI_SUB_VDEV_ONE},
                                        static_cast<void*>(&query.value), &size));
  const struct dcmi_vdev_query_info& info = query.value.query_info;
  return VnpuInfo{.id = id,
                  .template_name = FieldText(info.name),
                  .status = info.status,
                  .container_used = info.is_container_used != 0,
                  .vf_id = IntOrNone(info.vfid),
                  .vgroup = VGroup(info.vfg_id),
                  .resources = Resources(info.computing, info.media)};
}

absl::StatusOr<CreatedVnpu> Library::CreateVnpu(ChipAddress chip, const VnpuRequest& request) {
  if (generation() == Generation::kFlat) return NotInThisGeneration("creating vNPUs");
  struct dcmi_create_vdev_res_stru wanted = {};
  if (request.template_name.empty() ||
      request.template_name.size() >= sizeof(wanted.template_name)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", request.template_name,
                                                   "\" is no name of a vNPU template: it must "
                                                   "have between 1 and ",
                                                   sizeof(wanted.template_name) - 1,
                                                   " characters"));
  }
  request.template_name.copy(wanted.template_name, sizeof(wanted.template_name) - 1);
  if (request.id.value_or(0) < 0 || request.vgroup.value_or(0) < 0) {
    return absl::InvalidArgumentError("a vNPU's id and its vGroup must not be negative");
  }
  wanted.vdev_id =
      request.id.has_value() ? static_cast<unsigned>(*request.id) : DCMI_VDEV_AUTOMATIC;
  wanted.vfg_id =
      request.vgroup.has_value() ? static_cast<unsigned>(*request.vgroup) : DCMI_VDEV_AUTOMATIC;
  Out<struct dcmi_create_vdev_out> made;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(ChipMutex(chip), dcmi_create_vdevice, chip.card, chip.device,
                                   &wanted, &made.value));
  ASCEND_ASSIGN_OR_RETURN(const int id, VnpuId(made.value.vdev_id));
  return CreatedVnpu{.id = id, .vgroup = VGroup(made.value.vfg_id)};
}

absl::Status Library::DestroyVnpu(ChipAddress chip, int id) {
  if (generation() == Generation::kFlat) return NotInThisGeneration("destroying vNPUs");
  // To the library, one number means all of the chip.
  if (id < 0 || id == DCMI_VDEV_ALL) {
    return absl::InvalidArgumentError(absl::StrCat(id, " is no id of a vNPU"));
  }
  return DCMI_CALL(ChipMutex(chip), dcmi_set_destroy_vdevice, chip.card, chip.device,
                   static_cast<unsigned>(id));
}

absl::StatusOr<VdeviceMode> Library::GetVdeviceMode() {
  if (generation() == Generation::kFlat) return NotInThisGeneration("the vNPU mode");
  Out<int> mode;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(NodeMutex(), dcmi_get_vdevice_mode, &mode.value));
  switch (mode.value) {
    case DCMI_VDEVICE_MODE_CONTAINER:
      return VdeviceMode::kContainer;
    case DCMI_VDEVICE_MODE_VM:
      return VdeviceMode::kVm;
    default:
      return absl::InternalError(absl::StrCat("dcmi_get_vdevice_mode gave ", mode.value));
  }
}

absl::Status Library::SetVdeviceMode(VdeviceMode mode) {
  if (generation() == Generation::kFlat) return NotInThisGeneration("the vNPU mode");
  const int c_mode =
      mode == VdeviceMode::kContainer ? DCMI_VDEVICE_MODE_CONTAINER : DCMI_VDEVICE_MODE_VM;
  return DCMI_CALL(NodeMutex(), dcmi_set_vdevice_mode, c_mode);
}

absl::StatusOr<bool> Library::GetVnpuRecovery() {
  if (generation() == Generation::kFlat) return NotInThisGeneration("the vNPU recovery mode");
  Out<unsigned> mode;
  ASCEND_RETURN_IF_ERROR(DCMI_CALL(NodeMutex(), dcmi_get_vnpu_config_recover_mode, &mode.value));
  if (mode.value > 1) {
    return absl::InternalError(absl::StrCat("dcmi_get_vnpu_config_recover_mode gave ", mode.value));
  }
  return mode.value == 1;
}

absl::Status Library::SetVnpuRecovery(bool on) {
  if (generation() == Generation::kFlat) return NotInThisGeneration("the vNPU recovery mode");
  return DCMI_CALL(NodeMutex(), dcmi_set_vnpu_config_recover_mode, on ? 1u : 0u);
}

}  // namespace ascend::dcmi
