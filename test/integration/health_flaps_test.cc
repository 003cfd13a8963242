// Chips that flap cost few writes, and chips that are as they were none.
#include <iostream>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/core/status_matchers.h"
#include "nlohmann/json.hpp"
#include "test/integration/driver_fixture.h"
#include "vnpu/dcmi/mock/fault_edit.h"

namespace ascend::integration {
namespace {

constexpr unsigned kFault = 0x80E18402;  // SeparateNPU; no rule counts it
constexpr int kChips = 16;

class HealthFlapsTest : public DriverTest {
 protected:
  void Start(const std::string& recover, const std::string& damping) {
    sim::StackOptions options;
    options.mock_node = "16x910B2C";
    ASSERT_NO_FATAL_FAILURE(StartNode(
        Configured(absl::StrCat("health: {faultTable: {actions: {SeparateNPU: {recover: ", recover,
                                "}}, damping: ", damping, "}}\n"),
                   std::move(options))));
    if (IsSkipped()) return;
    ASSERT_EQ(Published().size(), static_cast<size_t>(kChips));
  }

  std::string node() const { return HostPath("etc/ascend-dra/mock-node"); }
  void Add(int chip) {
    ASSERT_THAT(dcmi::mock::AddFault(node(), chip, {.code = kFault, .severity = "critical"}),
                IsOk());
  }
  void Clear(int chip) {
    ASSERT_THAT(dcmi::mock::ClearFaults(node(), chip, kFault, /*event=*/true), IsOk());
  }

  // `count` flaps evenly over `time`, going round the first `chips`. The pace is the input.
  void Flap(int count, int chips, absl::Duration time) {
    const absl::Time start = absl::Now();
    for (int i = 0; i < count; ++i) {
      Add(i % chips);
      absl::SleepFor(start + time * (i + 0.3) / count - absl::Now());
      Clear(i % chips);
      absl::SleepFor(start + time * (i + 1) / count - absl::Now());
    }
  }

  size_t Tainted() const {
    return static_cast<size_t>(absl::c_count_if(
        Published(), [](const std::string& name) { return absl::StrContains(name, '!'); }));
  }

  int Writes() const {
    int writes = 0;
    for (const char* verb : {"create", "update", "patch", "delete", "deletecollection"}) {
      writes += stack_->api_server().CountRequests(verb);
    }
    return writes;
  }
};

// A minute of the 1,000 flaps, ten times as fast, as is the recover delay.
TEST_F(HealthFlapsTest, AThousandFlapsOnSixteenChips) {
  Start("1500ms", "{window: 60s, longest: 60s}");
  if (IsSkipped()) return;
  const int before = Writes(), slices = api().slice_writes();
  const absl::Time start = absl::Now();
  Flap(1000, kChips, absl::Seconds(6));
  const absl::Duration took = absl::Now() - start;
  EXPECT_EQ(Tainted(), static_cast<size_t>(kChips)) << "each is bad, for it came again and again";
  const int during = api().slice_writes() - slices;
  EXPECT_LE(during, kChips);
  EXPECT_TRUE(WaitFor([&] { return Tainted() == 0; }, absl::Seconds(20)));
  const int all = api().slice_writes() - slices;
  EXPECT_LE(all, 2 * kChips);
  std::cout << "1000 flaps in " << took << ": " << during << " slice writes meanwhile, " << all
            << " in all; " << Writes() - before << " of any kind\n";
  // The Events of the node: one when each chip, or several at once, fell ill, one when well again.
  EXPECT_LE(Writes() - before - all, 2 * kChips);
}

// Slow enough to get well each time: each relapse makes the next recovery take longer.
TEST_F(HealthFlapsTest, AChipThatRelapsesIsTrustedLess) {
  Start("250ms", "{window: 60s, longest: 60s}");
  if (IsSkipped()) return;
  const int slices = api().slice_writes();
  Flap(25, 1, absl::Seconds(25) / 2);  // one each half second
  const int during = api().slice_writes() - slices;
  EXPECT_GE(during, 1);
  // Ill, well after 250 ms, ill again: 500 ms without the fault do not come, but for a late look.
  EXPECT_LE(during, 5);
  EXPECT_EQ(Tainted(), 1u);
  EXPECT_TRUE(WaitFor([&] { return Tainted() == 0; }, absl::Seconds(20)));
}

TEST_F(HealthFlapsTest, NothingIsWrittenInAQuietTime) {
  Start("15s", "{window: 60s, longest: 60s}");
  if (IsSkipped()) return;
  Add(3);
  ASSERT_TRUE(WaitFor([&] { return Tainted() == 1; }));
  // The Event follows the taint.
  ASSERT_TRUE(WaitFor([&] { return !api().List("events").empty(); }));
  const int before = Writes();
  EXPECT_FALSE(WaitFor([&] { return Writes() != before; }, absl::Seconds(15)))
      << api().Requests().back().verb << " " << api().Requests().back().path;
}

}  // namespace
}  // namespace ascend::integration
