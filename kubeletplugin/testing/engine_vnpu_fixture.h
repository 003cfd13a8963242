// The claim engine on a node whose chips can be divided.
#ifndef ASCEND_DRA_KUBELETPLUGIN_TESTING_ENGINE_VNPU_FIXTURE_H_
#define ASCEND_DRA_KUBELETPLUGIN_TESTING_ENGINE_VNPU_FIXTURE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/engine_fixture.h"
#include "kubeletplugin/testing/fake_vnpus.h"

namespace ascend::kubeletplugin {

class EngineVnpuTest : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    options_.devices.vnpu_mode = VnpuMode::kDynamic;
    options_.node_wait = absl::Milliseconds(20);
    options_.agent_wait = absl::ZeroDuration();
    options_.undo_budget = absl::Milliseconds(200);
    UseChips(vnpu::Family::k910B, "910B4", 0x33, 20, 32768);
  }

  void UseChips(vnpu::Family family, const std::string& model, uint32_t board, int aicore,
                int64_t memory) {
    vnpu::Inventory changed = inventory();
    changed.vdevice_mode = vnpu::VdeviceMode::kContainer;
    changed.vnpu_recovery = false;
    for (vnpu::Chip& chip : changed.chips) {
      chip.family = family;
      chip.model = model;
      chip.board_id = board;
      chip.aicore_count = aicore;
      chip.memory_mib = memory;
      chip.partitioning.emplace();
    }
    SetInventory(changed);
  }

  std::unique_ptr<Instance> StartWithVnpus() {
    std::unique_ptr<Instance> instance = NotStarted();
    instance->engine.SetVnpuCalls(vnpus_.calls());
    EXPECT_THAT(instance->engine.Start(), IsOk());
    return instance;
  }

  // The node after a reboot, as far as the driver can tell.
  void Reboot(bool recovery) {
    options_.boot_id = "boot-2";
    vnpus_.Reboot(recovery);
    vnpu::Inventory changed = inventory();
    changed.vnpu_recovery = recovery;
    SetInventory(changed);
    std::filesystem::remove_all(paths_.cdi_root());
  }

  FakeVnpus vnpus_{&host_};
};

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_TESTING_ENGINE_VNPU_FIXTURE_H_
