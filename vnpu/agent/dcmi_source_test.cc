#include "vnpu/agent/dcmi_source.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "vnpu/fake_dcmi.h"

namespace ascend::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kCode = 0x80E01801;

// Says that no two chips are joined by HCCS.
class Library : public vnpu::FakeDcmi {
 public:
  Library() : FakeDcmi(2) {}
  absl::StatusOr<dcmi::TopologyType> Topology(Address /*one*/, Address /*other*/) override {
    ++asked;
    return dcmi::TopologyType::kSys;
  }
  int asked = 0;
};

class DcmiSourceTest : public ::testing::Test {
 protected:
  vnpu::Inventory Look() {
    auto look = source_.Begin();
    EXPECT_THAT(look, IsOk());
    if (!look.ok()) return {};
    while ((*look)->Step()) {
    }
    return (*look)->Finish();
  }
  std::string LogOfLook() {
    ::testing::internal::CaptureStderr();
    Look();
    return ::testing::internal::GetCapturedStderr();
  }
  DcmiSource::Options Options() const {
    DcmiSource::Options options;
    options.discovery = {.sysfs_root = directory_.path(),
                         .hccn_conf = directory_.File("hccn.conf"),
                         .ascend_root = directory_.path()};
    options.faults = faults_;
    return options;
  }

  TempDir directory_;
  const std::shared_ptr<FaultLog> faults_ = std::make_shared<FaultLog>();
  const std::shared_ptr<Library> library_ = std::make_shared<Library>();
  DcmiSource source_{Options(), library_};
};

TEST_F(DcmiSourceTest, AnEventIsSeenByTheNextLookAlthoughTheListIsEmpty) {
  EXPECT_THAT(*Look().chips[1].faults, IsEmpty());
  EXPECT_TRUE(library_->Emit({.logic_id = 1, .code = kCode, .serial = 1}));
  const vnpu::Inventory inventory = Look();
  ASSERT_THAT(*inventory.chips[1].faults, SizeIs(1));
  EXPECT_EQ(inventory.chips[1].faults->front().occurrences, 1u);
  EXPECT_FALSE(inventory.chips[1].faults->front().active);
  EXPECT_THAT(*inventory.chips[0].faults, IsEmpty());
}

TEST_F(DcmiSourceTest, AChipThatIsNotAskedShowsWhatEventsTell) {
  const auto turns = std::make_shared<ChipTurns>();
  DcmiSource::Options options = Options();
  options.turns = turns;
  DcmiSource source(options, library_);
  for (const bool taken : {false, true}) {
    const auto turn = taken ? turns->Take({.card = 1, .device = 0}) : nullptr;
    if (taken) {
      EXPECT_TRUE(library_->Emit({.logic_id = 1, .code = kCode, .serial = 1}));
    }
    auto look = source.Begin();
    ASSERT_THAT(look, IsOk());
    while ((*look)->Step()) {
    }
    const vnpu::Inventory inventory = (*look)->Finish();
    ASSERT_THAT(*inventory.chips[1].faults, SizeIs(taken ? 1 : 0));
    EXPECT_EQ(!inventory.chips[1].faults->empty() && inventory.chips[1].faults->front().active,
              taken);
  }
}

TEST_F(DcmiSourceTest, SubscribesOnceAndSaysOnceThatItCannot) {
  library_->Before([](absl::string_view method, dcmi::ChipAddress) {
    return method == "SubscribeFaults" ? absl::UnimplementedError("64 processes")
                                       : absl::OkStatus();
  });
  EXPECT_THAT(LogOfLook(), HasSubstr("64 processes"));
  EXPECT_THAT(LogOfLook(), Not(HasSubstr("64 processes")));
  const std::vector<std::string> calls = library_->calls();
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(),
                          [](const std::string& call) { return call.find("Subscribe") == 0; }),
            1);
}

TEST_F(DcmiSourceTest, WarnsOnceOfGroupsThatTheLibraryContradicts) {
  library_->Edit([](auto& chips) { chips.at({1, 0}).physical_id = 1; });
  EXPECT_THAT(LogOfLook(), Not(HasSubstr("HCCS")));
  EXPECT_THAT(LogOfLook(), HasSubstr("chips 0 and 1 are not joined by HCCS"));
  const int asked = library_->asked;
  EXPECT_THAT(LogOfLook(), Not(HasSubstr("HCCS")));
  EXPECT_EQ(library_->asked, asked);
  EXPECT_EQ(Look().chips[1].hccs_group, "hccs-0") << "nothing is changed by guess";
  // Other chips are asked about again.
  library_->Edit([](auto& chips) { chips[{2, 0}].physical_id = 2; });
  Look();
  Look();
  EXPECT_GT(library_->asked, asked);
}

}  // namespace
}  // namespace ascend::agent
