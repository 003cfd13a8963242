// A library of chips and vNPUs in memory, for tests that need to say what each call does. For all
// else there is the mock library (dcmi/mock).
#ifndef ASCEND_DRA_VNPU_FAKE_DCMI_H_
#define ASCEND_DRA_VNPU_FAKE_DCMI_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/core/mutex.h"
#include "vnpu/dcmi/dcmi.h"

namespace ascend::vnpu {

// Thread-safe. Chip N is device 0 of card N unless the test says otherwise; its vNPUs are 100 + 16
// N and on.
class FakeDcmi : public dcmi::Dcmi {
 public:
  using Address = dcmi::ChipAddress;
  struct FakeChip {
    int physical_id = -1;
    dcmi::VnpuResources total = {.aicore = 20, .memory_mib = 65536, .aicpu = 7};
    std::map<int, dcmi::VnpuInfo> vnpus;
    absl::StatusOr<dcmi::HealthGrade> health = dcmi::HealthGrade::kOk;
    absl::StatusOr<std::vector<uint64_t>> fault_codes = std::vector<uint64_t>();
    std::map<uint64_t, std::string> fault_texts;  // kNotFound for other codes
    absl::StatusOr<dcmi::NetworkState> network = dcmi::NetworkState::kOk;
    absl::StatusOr<std::vector<dcmi::ChipProcess>> processes = std::vector<dcmi::ChipProcess>();
    absl::StatusOr<bool> outband_channel = true;
    absl::Status reset;  // what a reset answers
    absl::StatusOr<int> boot_state = dcmi::kBootFinished;
  };
  // Runs with the method's name, without a lock: it may block. An error of `before` is the answer
  // of the call, which then does nothing; an error of `after` is the answer although the work is
  // done.
  using Hook = std::function<absl::Status(absl::string_view method, Address chip)>;

  explicit FakeDcmi(int chips) {
    for (int i = 0; i < chips; ++i) chips_[{i, 0}] = {.physical_id = i};
  }

  void Before(Hook hook) {
    MutexLock lock(&mutex_);
    before_ = std::make_shared<Hook>(std::move(hook));
  }
  void After(Hook hook) {
    MutexLock lock(&mutex_);
    after_ = std::make_shared<Hook>(std::move(hook));
  }
  // Changes things as npu-smi would, or a driver with a mind of its own.
  void Edit(const std::function<void(std::map<std::pair<int, int>, FakeChip>&)>& edit) {
    MutexLock lock(&mutex_);
    edit(chips_);
  }
  void Add(int card, dcmi::VnpuInfo vnpu) {
    Edit([&](auto& chips) { chips.at({card, 0}).vnpus[vnpu.id] = vnpu; });
  }
  std::vector<int> Ids(int card) {
    std::vector<int> ids;
    Edit([&](auto& chips) {
      for (const auto& [id, vnpu] : chips.at({card, 0}).vnpus) ids.push_back(id);
    });
    return ids;
  }
  // The methods that were called, in order: "CreateVnpu 0" for card 0.
  std::vector<std::string> calls() {
    MutexLock lock(&mutex_);
    return calls_;
  }
  std::vector<dcmi::VnpuRequest> requests() {
    MutexLock lock(&mutex_);
    return requests_;
  }
  // Tells the subscriber of an event, on this thread. False: nobody has subscribed.
  bool Emit(const dcmi::FaultEvent& event) {
    MutexLock lock(&handler_mutex_);
    if (fault_handler_ == nullptr) return false;
    fault_handler_(event);
    return true;
  }
  void SetModes(absl::StatusOr<dcmi::VdeviceMode> mode, absl::StatusOr<bool> recovery) {
    MutexLock lock(&mutex_);
    mode_ = std::move(mode);
    recovery_ = std::move(recovery);
  }

  absl::Status Initialise() override { return absl::OkStatus(); }
  dcmi::Generation generation() const override { return dcmi::Generation::kCards; }
  absl::StatusOr<std::string> DcmiVersion() override { return std::string("1"); }
  absl::StatusOr<std::string> DriverVersion() override { return std::string("2"); }
  absl::StatusOr<std::vector<int>> Cards() override {
    MutexLock lock(&mutex_);
    std::vector<int> cards;
    for (const auto& [address, chip] : chips_) {
      if (cards.empty() || cards.back() != address.first) cards.push_back(address.first);
    }
    return cards;
  }
  absl::StatusOr<std::vector<Address>> Units(int card) override {
    std::vector<Address> units;
    return Do<std::vector<Address>>("Units", {card, 0},
                                    [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                      for (const auto& [address, chip] : chips_) {
                                        if (address.first == card)
                                          units.push_back({address.first, address.second});
                                      }
                                      return units;
                                    });
  }
  absl::StatusOr<dcmi::UnitType> Type(Address /*chip*/) override { return dcmi::UnitType::kNpu; }
  absl::StatusOr<int> LogicId(Address chip) override { return PhysicalId(chip); }
  absl::StatusOr<int> PhysicalId(Address chip) override {
    return OnChip<int>("PhysicalId", chip, [](FakeChip& c) { return c.physical_id; });
  }
  absl::StatusOr<dcmi::ChipInfo> Chip(Address /*chip*/) override {
    return dcmi::ChipInfo{.name = "910B3"};
  }
  absl::StatusOr<dcmi::BoardInfo> Board(Address /*chip*/) override { return Nothing(); }
  absl::StatusOr<uint32_t> MainboardId(Address /*chip*/) override { return Nothing(); }
  absl::StatusOr<dcmi::PciInfo> Pci(Address /*chip*/) override { return Nothing(); }
  absl::StatusOr<dcmi::DieId> Die(Address /*chip*/, dcmi::DieType /*type*/) override {
    return Nothing();
  }
  absl::StatusOr<std::string> SerialNumber(Address /*chip*/) override { return Nothing(); }
  absl::StatusOr<dcmi::SuperPodInfo> SuperPod(Address /*chip*/) override { return Nothing(); }
  absl::StatusOr<dcmi::HealthGrade> Health(Address chip) override {
    return OnChip<dcmi::HealthGrade>("Health", chip, [](FakeChip& c) { return c.health; });
  }
  absl::StatusOr<dcmi::MemoryInfo> HbmMemory(Address /*chip*/) override { return Nothing(); }
  absl::StatusOr<dcmi::MemoryInfo> DdrMemory(Address /*chip*/) override { return Nothing(); }
  absl::StatusOr<int> AicpuCount(Address /*chip*/) override { return Nothing(); }
  absl::StatusOr<std::vector<dcmi::ChipProcess>> Processes(Address chip) override {
    return OnChip<std::vector<dcmi::ChipProcess>>("Processes", chip,
                                                  [](FakeChip& c) { return c.processes; });
  }
  absl::StatusOr<std::string> RoceAddress(Address /*chip*/) override { return Nothing(); }

  absl::StatusOr<std::vector<uint64_t>> FaultCodes(Address chip) override {
    return OnChip<std::vector<uint64_t>>("FaultCodes", chip,
                                         [](FakeChip& c) { return c.fault_codes; });
  }
  absl::StatusOr<std::string> FaultText(Address chip, uint64_t code) override {
    return OnChip<std::string>("FaultText", chip,
                               [code](FakeChip& c) -> absl::StatusOr<std::string> {
                                 const auto text = c.fault_texts.find(code);
                                 if (text == c.fault_texts.end())
                                   return absl::NotFoundError("no text");
                                 return text->second;
                               });
  }
  // To let it fail, use Before().
  absl::Status SubscribeFaults(dcmi::FaultHandler handler) override {
    const absl::Status status =
        Do<int>("SubscribeFaults", {}, []() -> absl::StatusOr<int> { return 0; }).status();
    MutexLock lock(&handler_mutex_);
    fault_handler_ = status.ok() ? std::move(handler) : nullptr;
    return status;
  }
  absl::StatusOr<dcmi::NetworkState> Network(Address chip) override {
    return OnChip<dcmi::NetworkState>("Network", chip, [](FakeChip& c) { return c.network; });
  }
  absl::Status Reset(Address chip, dcmi::ResetChannel channel) override {
    return OnChip<int>(channel == dcmi::ResetChannel::kOutband ? "Reset outband" : "Reset inband",
                       chip,
                       [](FakeChip& c) -> absl::StatusOr<int> {
                         if (!c.reset.ok()) return c.reset;
                         return 0;
                       })
        .status();
  }
  absl::StatusOr<bool> HasOutbandChannel(Address chip) override {
    return OnChip<bool>("HasOutbandChannel", chip, [](FakeChip& c) { return c.outband_channel; });
  }
  absl::Status PrepareReset(Address chip) override {
    return OnChip<int>("PrepareReset", chip, [](FakeChip&) { return 0; }).status();
  }
  absl::Status Rescan(Address chip) override {
    return OnChip<int>("Rescan", chip, [](FakeChip&) { return 0; }).status();
  }
  absl::StatusOr<int> BootState(Address chip) override {
    return OnChip<int>("BootState", chip, [](FakeChip& c) { return c.boot_state; });
  }
  absl::StatusOr<dcmi::MultiDiePolicy> GetMultiDiePolicy() override { return Nothing(); }
  absl::StatusOr<dcmi::TopologyType> Topology(Address /*one*/, Address /*other*/) override {
    return Nothing();
  }

  absl::StatusOr<dcmi::VnpuTotal> Vnpus(Address chip) override {
    return OnChip<dcmi::VnpuTotal>("Vnpus", chip, [](FakeChip& c) {
      dcmi::VnpuTotal total = {.resources = c.total};
      for (const auto& [id, vnpu] : c.vnpus) total.ids.push_back(id);
      return total;
    });
  }
  absl::StatusOr<dcmi::VnpuResources> FreeVnpuResources(Address /*chip*/) override {
    return Nothing();
  }
  absl::StatusOr<dcmi::VnpuInfo> Vnpu(Address chip, int id) override {
    return OnChip<dcmi::VnpuInfo>("Vnpu", chip,
                                  [id](FakeChip& c) -> absl::StatusOr<dcmi::VnpuInfo> {
                                    const auto vnpu = c.vnpus.find(id);
                                    if (vnpu == c.vnpus.end())
                                      return absl::NotFoundError("no such vNPU");
                                    return vnpu->second;
                                  });
  }
  absl::StatusOr<dcmi::CreatedVnpu> CreateVnpu(Address chip,
                                               const dcmi::VnpuRequest& request) override {
    {
      MutexLock lock(&mutex_);
      requests_.push_back(request);
    }
    return OnChip<dcmi::CreatedVnpu>("CreateVnpu", chip, [&](FakeChip& c) {
      int id = request.id.value_or(100 + 16 * c.physical_id);
      while (c.vnpus.count(id) != 0) ++id;
      const int vgroup = request.vgroup.value_or(-1);
      c.vnpus[id] = {.id = id, .template_name = request.template_name, .vgroup = vgroup};
      return dcmi::CreatedVnpu{.id = id, .vgroup = vgroup};
    });
  }
  absl::Status DestroyVnpu(Address chip, int id) override {
    return OnChip<int>("DestroyVnpu", chip,
                       [id](FakeChip& c) -> absl::StatusOr<int> {
                         if (c.vnpus.erase(id) == 0) return absl::NotFoundError("no such vNPU");
                         return 0;
                       })
        .status();
  }

  absl::StatusOr<dcmi::VdeviceMode> GetVdeviceMode() override {
    return Do<dcmi::VdeviceMode>("GetVdeviceMode", {},
                                 [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return mode_; });
  }
  absl::Status SetVdeviceMode(dcmi::VdeviceMode mode) override {
    return Do<dcmi::VdeviceMode>("SetVdeviceMode", {},
                                 [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                   mode_ = mode;
                                   return mode_;
                                 })
        .status();
  }
  absl::StatusOr<bool> GetVnpuRecovery() override {
    return Do<bool>("GetVnpuRecovery", {},
                    [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return recovery_; });
  }
  absl::Status SetVnpuRecovery(bool on) override {
    return Do<bool>("SetVnpuRecovery", {},
                    [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                      recovery_ = on;
                      return recovery_;
                    })
        .status();
  }

 private:
  static absl::Status Nothing() { return absl::UnimplementedError("not in this library"); }

  template <typename T, typename Work>
  absl::StatusOr<T> Do(absl::string_view method, Address chip, Work work) {
    std::shared_ptr<Hook> before, after;  // not copies: a hook may count its calls
    {
      MutexLock lock(&mutex_);
      calls_.push_back(absl::StrCat(method, " ", chip.card));
      before = before_;
      after = after_;
    }
    if (before != nullptr && *before != nullptr) {
      if (absl::Status status = (*before)(method, chip); !status.ok()) return status;
    }
    absl::StatusOr<T> result = absl::UnknownError("");
    {
      MutexLock lock(&mutex_);
      result = work();
    }
    if (after != nullptr && *after != nullptr) {
      if (absl::Status status = (*after)(method, chip); !status.ok()) return status;
    }
    return result;
  }
  template <typename T, typename Work>
  absl::StatusOr<T> OnChip(absl::string_view method, Address chip, Work work) {
    return Do<T>(method, chip, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<T> {
      const auto found = chips_.find({chip.card, chip.device});
      if (found == chips_.end()) return absl::NotFoundError("no such chip");
      return work(found->second);
    });
  }

  Mutex handler_mutex_;  // held while the handler runs
  dcmi::FaultHandler fault_handler_ ABSL_GUARDED_BY(handler_mutex_);
  Mutex mutex_;
  std::map<std::pair<int, int>, FakeChip> chips_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Hook> before_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Hook> after_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<dcmi::VnpuRequest> requests_ ABSL_GUARDED_BY(mutex_);
  absl::StatusOr<dcmi::VdeviceMode> mode_ ABSL_GUARDED_BY(mutex_) = dcmi::VdeviceMode::kContainer;
  absl::StatusOr<bool> recovery_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace ascend::vnpu

#endif  // ASCEND_DRA_VNPU_FAKE_DCMI_H_
