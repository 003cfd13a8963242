// The state of vNPUs, through what administrators and boots do to it.
#include "vnpu/dcmi/mock/vnpu_edit.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/mock/test_node.h"

namespace ascend::dcmi::mock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<int> Ids(const TestNode& node) {
  const auto state = VnpusOf(node.directory());
  EXPECT_THAT(state, IsOk());
  std::vector<int> ids;
  for (const Vnpu& vnpu : state->vnpus) ids.push_back(vnpu.id);
  return ids;
}

std::string ConfigOf(const TestNode& node) {
  return *ReadFile(StateDirectory(node.directory()) + "/vnpu.cfg");
}

TEST(VnpuEditTest, BeginsEmptyWithRecovery) {
  TestNode node("4x310P3");
  const auto state = VnpusOf(node.directory());
  ASSERT_THAT(state, IsOk());
  EXPECT_TRUE(state->recovery);
  EXPECT_EQ(state->vdevice_mode, DCMI_VDEVICE_MODE_CONTAINER);
  EXPECT_THAT(state->vnpus, IsEmpty());
}

TEST(VnpuEditTest, AddsSetsAndRemoves) {
  TestNode node("4x310P3");
  EXPECT_THAT(AddVnpu(node.directory(), 1, {.template_name = "vir02", .id = 118}),
              IsOkAndHolds(118));
  EXPECT_THAT(AddVnpu(node.directory(), 0, {.template_name = "vir02_1c"}), IsOkAndHolds(100));
  EXPECT_THAT(Ids(node), ElementsAre(100, 118));
  ASSERT_THAT(SetOnVnpu(node.directory(), 118, {"busy=true", "containerUsed=true", "status=3"}),
              IsOk());
  auto state = VnpusOf(node.directory());
  Vnpu* const vnpu = state->Find(118);
  ASSERT_NE(vnpu, nullptr);
  EXPECT_TRUE(vnpu->busy);
  EXPECT_TRUE(vnpu->container_used);
  EXPECT_EQ(vnpu->status, 3u);
  EXPECT_EQ(vnpu->physical_id, 1);
  EXPECT_EQ(vnpu->template_name, "vir02");
  EXPECT_FALSE(state->Find(100)->busy);
  const auto json = nlohmann::json::parse(ToJsonText(*state));
  EXPECT_EQ(json["vnpus"][1]["id"], 118);
  EXPECT_EQ(json["vnpus"][1]["busy"], true);
  EXPECT_EQ(json["recovery"], true);
  EXPECT_EQ(json["vdeviceMode"], "container");
  ASSERT_THAT(RemoveVnpu(node.directory(), 118), IsOk());
  EXPECT_THAT(Ids(node), ElementsAre(100));
}

TEST(VnpuEditTest, RefusesWhatTheHardwareDoesNotDo) {
  TestNode node("4x310P3");
  const std::string& directory = node.directory();
  EXPECT_THAT(AddVnpu(directory, 0, {.template_name = "vir08"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vir08")));
  EXPECT_THAT(AddVnpu(directory, 0, {.template_name = "vir02", .id = 120}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(AddVnpu(directory, 7, {.template_name = "vir02"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("7")));
  EXPECT_THAT(AddVnpu(directory, 0, {.template_name = "vir04"}), IsOk());
  EXPECT_THAT(AddVnpu(directory, 0, {.template_name = "vir04"}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("physical id 0")));
  EXPECT_THAT(AddVnpu(directory, 0, {.template_name = "vir01", .id = 100}),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(RemoveVnpu(directory, 101), StatusIs(absl::StatusCode::kNotFound, HasSubstr("101")));
  EXPECT_THAT(SetOnVnpu(directory, 101, {"busy=true"}), StatusIs(absl::StatusCode::kNotFound));
  for (const char* assignment : {"busy", "busy=1", "status=bad", "id=3", "=true"}) {
    EXPECT_THAT(SetOnVnpu(directory, 100, {assignment}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << assignment;
  }
  EXPECT_THAT(SetOnVnpu(directory, 100, {"busy=true", "oops=1"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(VnpusOf(directory)->Find(100)->busy) << "all or nothing";
  TestNode without("1x950PR");
  EXPECT_THAT(AddVnpu(without.directory(), 0, {.template_name = "vir08_3c_30g"}),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("950")));
}

TEST(VnpuEditTest, SaysWhichFileIsWrong) {
  TestNode node("4x310P3");
  ASSERT_THAT(AddVnpu(node.directory(), 0, {.template_name = "vir01"}), IsOk());
  const std::string state = StateDirectory(node.directory());
  const std::string good = *ReadFile(state + "/vnpus.json");
  for (const char* bad : {"[", "{\"vnpuz\": []}", "{\"vnpus\": 3}",
                          "{\"vnpus\": [{\"id\": \"x\"}]}", "{\"vnpus\": [{\"foreign\": true}]}"}) {
    ASSERT_THAT(WriteFileAtomically(state + "/vnpus.json", bad), IsOk());
    EXPECT_THAT(VnpusOf(node.directory()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vnpus.json")))
        << bad;
    EXPECT_THAT(AddVnpu(node.directory(), 0, {.template_name = "vir01"}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vnpus.json")));
  }
  ASSERT_THAT(WriteFileAtomically(state + "/vnpus.json", good), IsOk());
  ASSERT_THAT(WriteFileAtomically(state + "/vnpu.cfg", "recover:maybe\n"), IsOk());
  EXPECT_THAT(VnpusOf(node.directory()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("vnpu.cfg")));
  for (const char* line : {"0:100", "x:100:npu-smi -f vir01", "0:100:npu-smi set"}) {
    ASSERT_THAT(WriteFileAtomically(state + "/vnpu.cfg", std::string("vnpu_config_recover:enable\n"
                                                                     "[vnpu-config start]\n") +
                                                             line + "\n[vnpu-config end]\n"),
                IsOk());
    EXPECT_THAT(Reboot(node.directory(), false),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(line)));
  }
  EXPECT_THAT(Ids(node), ElementsAre(100)) << "a boot that failed changes nothing";
}

TEST(VnpuEditTest, WritesTheFileThatABootGoesBy) {
  TestNode node("4x310P3");
  ASSERT_THAT(AddVnpu(node.directory(), 0, {.template_name = "vir02_1c"}), IsOk());
  ASSERT_THAT(AddVnpu(node.directory(), 1, {.template_name = "vir01"}), IsOk());
  EXPECT_EQ(ConfigOf(node),
            "vnpu_config_recover:enable\n"
            "[vnpu-config start]\n"
            "0:100:npu-smi set -t create-vnpu -i 1 -c 0 -f vir02_1c -v 100 -g 0\n"
            "1:116:npu-smi set -t create-vnpu -i 2 -c 0 -f vir01 -v 116 -g 0\n"
            "[vnpu-config end]\n");
  ASSERT_THAT(RemoveVnpu(node.directory(), 100), IsOk());
  EXPECT_THAT(ConfigOf(node), Not(HasSubstr("0:100:")));
  ASSERT_THAT(SetVnpuModes(node.directory(), false, std::nullopt), IsOk());
  const std::string off = "vnpu_config_recover:disable\n[vnpu-config start]\n[vnpu-config end]\n";
  EXPECT_EQ(ConfigOf(node), off);
  ASSERT_THAT(AddVnpu(node.directory(), 0, {.template_name = "vir02_1c"}), IsOk());
  EXPECT_EQ(ConfigOf(node), off);
}

TEST(VnpuEditTest, ABootMakesThemAgainOnlyWithRecovery) {
  TestNode node("8x910B4");
  ASSERT_THAT(AddVnpu(node.directory(), 0, {.template_name = "vir05_1c_8g"}), IsOk());
  ASSERT_THAT(AddVnpu(node.directory(), 0, {.template_name = "vir10_3c_16g", .id = 115}), IsOk());
  ASSERT_THAT(AddVnpu(node.directory(), 3, {.template_name = "vir05_1c_8g"}), IsOk());
  ASSERT_THAT(SetOnVnpu(node.directory(), 100, {"busy=true", "containerUsed=true"}), IsOk());
  ASSERT_THAT(Reboot(node.directory(), /*permute_ids=*/false), IsOk());
  EXPECT_THAT(Ids(node), ElementsAre(100, 115, 148));
  EXPECT_FALSE(VnpusOf(node.directory())->Find(100)->busy) << "nobody uses it after a boot";
  ASSERT_THAT(Reboot(node.directory(), /*permute_ids=*/true), IsOk());
  EXPECT_THAT(Ids(node), ElementsAre(100, 101, 149));
  EXPECT_EQ(VnpusOf(node.directory())->Find(100)->template_name, "vir10_3c_16g")
      << "another one under an old id";
  EXPECT_THAT(ConfigOf(node), HasSubstr("3:149:"));
  ASSERT_THAT(SetVnpuModes(node.directory(), false, DCMI_VDEVICE_MODE_VM), IsOk());
  ASSERT_THAT(Reboot(node.directory(), false), IsOk());
  EXPECT_THAT(Ids(node), IsEmpty());
  const auto state = VnpusOf(node.directory());
  EXPECT_FALSE(state->recovery);
  EXPECT_EQ(state->vdevice_mode, DCMI_VDEVICE_MODE_VM);
}

TEST(VnpuEditTest, ProcessesAgree) {
  TestNode node("8x910B3");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int made = 0;
      for (int attempt = 0; attempt < 4; ++attempt) {
        if (AddVnpu(node.directory(), 0, {.template_name = "vir05_1c_16g"}).ok()) ++made;
      }
      _exit(made);
    }
    children.push_back(child);
  }
  int made = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    made += WEXITSTATUS(status);
  }
  EXPECT_EQ(made, 4) << "as many as the chip holds";
  EXPECT_THAT(Ids(node), ElementsAre(100, 101, 102, 103));
}

}  // namespace
}  // namespace ascend::dcmi::mock
