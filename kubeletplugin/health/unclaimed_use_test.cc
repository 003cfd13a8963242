#include "kubeletplugin/health/unclaimed_use.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/testing/fake_kube_client.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class UnclaimedUseTest : public ::testing::Test {
 protected:
  UnclaimedUseTest() {
    inventory_.chips.resize(2);
    inventory_.chips[0].physical_id = 3;
    inventory_.chips[0].busy = {{0, 4242, 4711}};
    inventory_.chips[1].physical_id = 4;
    inventory_.chips[1].busy = {{0}};
  }
  ~UnclaimedUseTest() override { client_.Shutdown(); }

  // In the order in which they were posted.
  std::vector<kube::Event> Events(size_t count) {
    EXPECT_TRUE(client_.WaitUntil([&] { return client_.events().size() >= count; }));
    EXPECT_EQ(client_.events().size(), count);
    return client_.events();
  }

  vnpu::Inventory inventory_;
  kube::FakeClient client_;
  kube::EventRecorder recorder_{{.controller = "npu.huawei.com", .node_name = "node"}, client_};
  UnclaimedUse use_{recorder_};
};

TEST_F(UnclaimedUseTest, SaysOnceWhoIsOnAChip) {
  use_.Busy({3}, &inventory_);
  use_.Busy({3}, &inventory_);
  use_.Busy({3, 4}, &inventory_);
  const auto events = Events(2);
  EXPECT_EQ(events[0].regarding.kind, "Node");
  EXPECT_EQ(events[0].reason, "NpuBusy");
  EXPECT_THAT(events[0].message, AllOf(HasSubstr("NPU chip 3 "), HasSubstr("pids 4242, 4711 ")));
  EXPECT_THAT(events[1].message, AllOf(HasSubstr("NPU chip 4 "), HasSubstr("cannot see")));
}

TEST_F(UnclaimedUseTest, AnotherTimeIsNewsAgain) {
  use_.Busy({3}, &inventory_);
  use_.Busy({}, &inventory_);
  inventory_.chips[0].busy = {{99}};
  use_.Busy({3}, &inventory_);
  EXPECT_THAT(Events(2)[1].message, HasSubstr("pid 99 "));
}

TEST_F(UnclaimedUseTest, TellsForeignVnpusWhenTheyChange) {
  use_.ForeignVnpus({{3, {{.id = 148, .template_name = "vir05_1c_8g"}}}});
  use_.ForeignVnpus({{3, {{.id = 148, .template_name = "vir05_1c_8g"}}}});
  use_.ForeignVnpus({{3, {{.id = 149, .template_name = "vir10_3c_16g"}}}});
  use_.ForeignVnpus({});
  const auto events = Events(2);
  EXPECT_EQ(events[0].reason, "ForeignVnpus");
  EXPECT_THAT(events[0].message, HasSubstr("148 (vir05_1c_8g)"));
  EXPECT_THAT(events[1].message, HasSubstr("149 (vir10_3c_16g)"));
}

}  // namespace
}  // namespace ascend::kubeletplugin
