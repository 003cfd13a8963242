// libdcmi.so behind the Dcmi interface: the only class that knows the C ABI.
#ifndef ASCEND_DRA_VNPU_DCMI_LIBRARY_H_
#define ASCEND_DRA_VNPU_DCMI_LIBRARY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::dcmi {

class Library : public Dcmi {
 public:
  // Where a driver puts the library: the loader's own search for "libdcmi.so", then
  // /usr/local/Ascend/driver/lib64/driver, /usr/local/dcmi and /usr/lib64 (310B SoC).
  static std::vector<std::string> DefaultPaths();

  // Loads the first of `paths` that there is. kNotFound: none is there (the driver may come later);
  // kFailedPrecondition: one is there and cannot be loaded, or is no libdcmi. Nothing of the
  // library is called. A library that was opened stays loaded until the process ends, because it
  // may have started threads; its state is the process's, and so are the locks that serialise the
  // calls about one chip, about the node, and about two chips.
  static absl::StatusOr<std::unique_ptr<Library>> Open(
      const std::vector<std::string>& paths = DefaultPaths());
  ~Library() override;

  // Absolute path of what was loaded, as the loader resolved it.
  const std::string& path() const;
  // Findings for the log and for status pages. Today: the library or a directory above it can be
  // replaced by any user (world-writable and not sticky); the message names that path.
  const std::vector<std::string>& warnings() const;

  absl::Status Initialise() override;
  Generation generation() const override;
  absl::StatusOr<std::string> DcmiVersion() override;
  absl::StatusOr<std::string> DriverVersion() override;
  absl::StatusOr<std::vector<int>> Cards() override;
  absl::StatusOr<std::vector<ChipAddress>> Units(int card) override;
  absl::StatusOr<UnitType> Type(ChipAddress chip) override;
  absl::StatusOr<int> LogicId(ChipAddress chip) override;
  absl::StatusOr<int> PhysicalId(ChipAddress chip) override;
  absl::StatusOr<ChipInfo> Chip(ChipAddress chip) override;
  absl::StatusOr<BoardInfo> Board(ChipAddress chip) override;
  absl::StatusOr<uint32_t> MainboardId(ChipAddress chip) override;
  absl::StatusOr<PciInfo> Pci(ChipAddress chip) override;
  absl::StatusOr<DieId> Die(ChipAddress chip, DieType type) override;
  absl::StatusOr<std::string> SerialNumber(ChipAddress chip) override;
  absl::StatusOr<SuperPodInfo> SuperPod(ChipAddress chip) override;
  absl::StatusOr<HealthGrade> Health(ChipAddress chip) override;
  absl::StatusOr<MemoryInfo> HbmMemory(ChipAddress chip) override;
  absl::StatusOr<MemoryInfo> DdrMemory(ChipAddress chip) override;
  absl::StatusOr<int> AicpuCount(ChipAddress chip) override;
  absl::StatusOr<std::vector<ChipProcess>> Processes(ChipAddress chip) override;
  absl::StatusOr<std::string> RoceAddress(ChipAddress chip) override;
  absl::StatusOr<std::vector<uint64_t>> FaultCodes(ChipAddress chip) override;
  absl::StatusOr<std::string> FaultText(ChipAddress chip, uint64_t code) override;
  absl::Status SubscribeFaults(FaultHandler handler) override;
  absl::StatusOr<NetworkState> Network(ChipAddress chip) override;
  absl::Status Reset(ChipAddress chip, ResetChannel channel) override;
  absl::StatusOr<bool> HasOutbandChannel(ChipAddress chip) override;
  absl::Status PrepareReset(ChipAddress chip) override;
  absl::Status Rescan(ChipAddress chip) override;
  absl::StatusOr<int> BootState(ChipAddress chip) override;
  absl::StatusOr<MultiDiePolicy> GetMultiDiePolicy() override;
  absl::StatusOr<TopologyType> Topology(ChipAddress one, ChipAddress other) override;
  absl::StatusOr<VnpuTotal> Vnpus(ChipAddress chip) override;
  absl::StatusOr<VnpuResources> FreeVnpuResources(ChipAddress chip) override;
  absl::StatusOr<VnpuInfo> Vnpu(ChipAddress chip, int id) override;
  absl::StatusOr<CreatedVnpu> CreateVnpu(ChipAddress chip, const VnpuRequest& request) override;
  absl::Status DestroyVnpu(ChipAddress chip, int id) override;
  absl::StatusOr<VdeviceMode> GetVdeviceMode() override;
  absl::Status SetVdeviceMode(VdeviceMode mode) override;
  absl::StatusOr<bool> GetVnpuRecovery() override;
  absl::Status SetVnpuRecovery(bool on) override;

 private:
  struct Functions;
  Library(std::string path, std::unique_ptr<Functions> functions);

  const std::string path_;
  std::vector<std::string> warnings_;
  const std::unique_ptr<Functions> functions_;
};

}  // namespace ascend::dcmi

#endif  // ASCEND_DRA_VNPU_DCMI_LIBRARY_H_
