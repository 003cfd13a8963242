// Random lives of a node against an oracle that looks at the present alone.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "vnpu/chip.h"
#include "vnpu/health/fault_table.h"
#include "vnpu/health/health_policy.h"
#include "vnpu/health/level.h"

namespace ascend::vnpu {
namespace {

constexpr uint64_t kSeparate = 0x80E18402;
constexpr uint64_t kRequest = 0x80D58000;
constexpr uint64_t kIgnored = 0x80C98006;
constexpr uint64_t kDegraded = 0x80DE0207;
constexpr uint64_t kLink = 0x81078603;
constexpr uint64_t kNew = 0xDEADBEEF;
constexpr std::array<uint64_t, 6> kCodes = {kSeparate, kRequest, kIgnored, kDegraded, kLink, kNew};

constexpr int kChips = 2;
constexpr absl::Duration kLongestDelay = absl::Minutes(10);
const absl::Time kStart = absl::FromUnixSeconds(1800000000);

// With the effects of the built-in table a worse level never has a softer effect.
const FaultTable& Table() {
  static const FaultTable& table =
      *new FaultTable(*FaultTable::WithOverrides("frequency: [{codes: ['8107:8603'], off: true}]"));
  return table;
}

// What the hardware and the agent do.
class Node {
 public:
  explicit Node(std::mt19937& random) : random_(random) {
    inventory_.library = LibraryState::kReady;
    inventory_.agent_instance = "0";
    for (int id = 0; id < kChips; ++id) {
      Chip& chip = chips_[static_cast<size_t>(id)];
      chip.physical_id = chip.logic_id = id;
      if (id > 0) chip.uuid = absl::StrCat("uuid-", id);  // the first one has none
      chip.health = Health::kOk;
      chip.network = NetworkHealth::kOk;
      chip.faults.emplace();
    }
    Assemble();
  }

  void Happen() {
    const auto id = static_cast<size_t>(Pick(kChips));
    Chip& chip = chips_[id];
    switch (Pick(14)) {
      case 0:
      case 1:
      case 2:
      case 3:
        Toggle(id, kCodes[static_cast<size_t>(Pick(kCodes.size()))]);
        break;
      case 4: {  // comes and goes
        const uint64_t code = kCodes[static_cast<size_t>(Pick(kCodes.size()))];
        if (!faults_[id][code].active) Toggle(id, code);
        Toggle(id, code);
        break;
      }
      case 5:
        chip.health = std::array{Health::kOk,     Health::kOk,       Health::kMinor,
                                 Health::kMajor,  Health::kCritical, Health::kAbsent,
                                 Health::kUnknown}[static_cast<size_t>(Pick(7))];
        break;
      case 6:
        chip.faults_error = chip.faults_error.empty() ? "timeout" : "";
        break;
      case 7:
        chip.network = static_cast<NetworkHealth>(Pick(3));
        break;
      case 8:
        chip.stuck = chip.stuck.empty() ? "no answer" : "";
        break;
      case 9:
        there_[id] = !there_[id];
        chip.logic_id += 1;
        chip.pci_bus_id += "x";
        break;
      case 10:
        inventory_.library = inventory_.library == LibraryState::kReady
                                 ? std::array{LibraryState::kMissing, LibraryState::kStarting,
                                              LibraryState::kNotResponding,
                                              LibraryState::kFailed}[static_cast<size_t>(Pick(4))]
                                 : LibraryState::kReady;
        break;
      case 11:
        agent_known_ = !agent_known_;
        break;
      case 12:
        RestartAgent();
        break;
      case 13:
        has_list_ = !has_list_;
        break;
      default:
        break;
    }
    Assemble();
  }

  // Everything can be known; what is wrong stays wrong.
  void BeKnown() {
    inventory_.library = LibraryState::kReady;
    agent_known_ = true;
    for (Chip& chip : chips_) {
      chip.stuck.clear();
      chip.faults_error.clear();
      if (chip.health == Health::kUnknown) chip.health = Health::kOk;
      if (chip.network == NetworkHealth::kUnknown) chip.network = NetworkHealth::kOk;
    }
    Assemble();
  }

  int Pick(size_t n) { return static_cast<int>(random_() % n); }
  const Inventory& inventory() const { return inventory_; }
  bool agent_known() const { return agent_known_; }
  bool ready() const { return agent_known_ && inventory_.library == LibraryState::kReady; }
  // Null: not in the inventory.
  const Chip* Find(int id) const {
    for (const Chip& chip : inventory_.chips) {
      if (chip.physical_id == id) return &chip;
    }
    return nullptr;
  }

 private:
  void Toggle(size_t id, uint64_t code) {
    Fault& fault = faults_[id][code];
    fault.code = code;
    fault.active = !fault.active;
    if (!fault.active) return;
    ++fault.occurrences;
    if (code == kNew || Pick(3) == 0) fault.severity = static_cast<FaultSeverity>(Pick(5));
  }

  void RestartAgent() {
    inventory_.agent_instance = absl::StrCat(++instance_);
    for (auto& faults : faults_) {
      std::map<uint64_t, Fault> left;
      for (auto& [code, fault] : faults) {
        if (!fault.active) continue;
        fault.occurrences = 1;
        left[code] = fault;
      }
      faults = std::move(left);
    }
  }

  void Assemble() {
    inventory_.chips.clear();
    for (size_t id = 0; id < kChips; ++id) {
      if (!there_[id]) continue;
      Chip chip = chips_[id];
      chip.faults.reset();
      if (chip.faults_error.empty() && has_list_) {
        chip.faults.emplace();
        for (const auto& [code, fault] : faults_[id]) chip.faults->push_back(fault);
      }
      inventory_.chips.push_back(std::move(chip));
    }
  }

  std::mt19937& random_;
  Inventory inventory_;
  std::array<Chip, kChips> chips_;
  std::array<bool, kChips> there_ = {true, true};
  std::array<std::map<uint64_t, Fault>, kChips> faults_;
  bool agent_known_ = true;
  bool has_list_ = true;
  int instance_ = 0;
};

// What the present says about one chip, worst first; independent of the policy's code.
class Oracle {
 public:
  // The worst level that the node tells now, but for what came and went since the last look.
  // `settled`: nothing has changed for long.
  HealthLevel Implied(const Node& node, int id, absl::Time now, bool settled) {
    const Chip* const chip = node.Find(id);
    worst_ = pulse_ = HealthLevel::kHealthy;
    lasting_ = false;
    seen_ = seen_ || chip != nullptr;
    if (isolated_) Worse(HealthLevel::kManuallySeparateNpu);
    if (!node.ready()) Worse(HealthLevel::kUnknown);
    if (chip == nullptr) {
      if (node.ready() && seen_) Worse(HealthLevel::kLost);
      link_since_.reset();
      network_since_.reset();
      return worst_;
    }
    if (!chip->stuck.empty()) Worse(HealthLevel::kStuck);
    if (chip->health == Health::kUnknown || !chip->faults_error.empty()) {
      Worse(HealthLevel::kUnknown);
    }
    if (chip->health == Health::kAbsent) Worse(HealthLevel::kAbsent);
    bool major_explained = false;
    bool critical_explained = false;
    bool link = false;
    if (chip->faults.has_value()) {
      for (const Fault& fault : *chip->faults) {
        const bool came = counted_ && instance_ == node.inventory().agent_instance &&
                          fault.occurrences > occurrences_[fault.code];
        if (came) pulse_ = std::max(pulse_, LevelOf(fault, chip->health));
        if (!fault.active) continue;
        Worse(LevelOf(fault, chip->health));
        link = link || fault.code == kLink;
        const bool any = fault.severity == FaultSeverity::kUnknown;
        critical_explained |= any || fault.severity == FaultSeverity::kCritical;
        major_explained |= critical_explained || fault.severity == FaultSeverity::kMajor;
      }
      occurrences_.clear();
      for (const Fault& fault : *chip->faults) occurrences_[fault.code] = fault.occurrences;
      instance_ = node.inventory().agent_instance;
      counted_ = true;
    }
    if (chip->health == Health::kMajor && !major_explained) Worse(HealthLevel::kMajor);
    if (chip->health == Health::kCritical && !critical_explained) Worse(HealthLevel::kCritical);
    const bool trusted = node.ready() && chip->stuck.empty();
    Lasting(trusted && link, now, settled, &link_since_);
    Lasting(trusted && chip->network == NetworkHealth::kDown, now, settled, &network_since_);
    return worst_;
  }

  // After the look at `now`: whether the verdict may be what it is.
  void Check(const Verdict& verdict, HealthLevel implied, absl::Time now) {
    // Never better than what is told.
    ASSERT_GE(verdict.level, std::max(implied, pulse_));
    ASSERT_EQ(verdict.effect, verdict.level >= HealthLevel::kUnknown ? TaintEffect::kNoSchedule
                                                                     : TaintEffect::kNone);
    if (before_.has_value()) {
      Mark(implied_before_, now);  // it was so until now
      if (lasting_before_) lasting_until_ = now;
      if (verdict.level < before_->level) {
        ASSERT_GE(now - bad_[static_cast<size_t>(before_->level)], absl::Seconds(15))
            << before_->message;
        if (before_->level == HealthLevel::kPreSeparateNpu) {
          ASSERT_GE(now - lasting_until_, absl::Seconds(60)) << before_->message;
        }
      }
      const bool same = verdict.level == before_->level && verdict.effect == before_->effect;
      ASSERT_EQ(verdict.since, same ? before_->since : now);
    } else {
      ASSERT_EQ(verdict.since, now);
    }
    Mark(std::max(implied, pulse_), now);
    implied_before_ = implied;
    lasting_before_ = lasting_;
    before_ = verdict;
  }

  void set_isolated(bool isolated) { isolated_ = isolated; }
  bool isolated() const { return isolated_; }
  bool seen() const { return seen_; }
  const std::optional<Verdict>& before() const { return before_; }

 private:
  static HealthLevel LevelOf(const Fault& fault, Health grade) {
    switch (fault.code) {
      case kSeparate:
        return HealthLevel::kSeparateNpu;
      case kRequest:
        return HealthLevel::kRestartRequest;
      case kDegraded:
        return HealthLevel::kSubHealthFault;
      case kNew: {
        const bool minor = fault.severity == FaultSeverity::kUnknown
                               ? grade == Health::kOk || grade == Health::kMinor
                               : fault.severity == FaultSeverity::kWarning ||
                                     fault.severity == FaultSeverity::kMinor;
        return minor ? HealthLevel::kNotHandleFault : HealthLevel::kSeparateNpu;
      }
      default:
        return HealthLevel::kNotHandleFault;
    }
  }
  void Worse(HealthLevel level) { worst_ = std::max(worst_, level); }
  void Lasting(bool there, absl::Time now, bool settled, std::optional<absl::Time>* since) {
    if (!there) return since->reset();
    if (!since->has_value()) *since = now;
    if (!settled && now - **since < absl::Seconds(20)) return;
    lasting_ = true;
    Worse(HealthLevel::kPreSeparateNpu);
  }
  // It was as bad as `level` until now.
  void Mark(HealthLevel level, absl::Time now) {
    for (size_t i = 0; i <= static_cast<size_t>(level); ++i) bad_[i] = now;
  }

  HealthLevel worst_ = HealthLevel::kHealthy;
  HealthLevel pulse_ = HealthLevel::kHealthy;
  bool seen_ = false;
  bool isolated_ = false;
  bool counted_ = false;
  std::string instance_;
  std::map<uint64_t, uint64_t> occurrences_;
  std::optional<absl::Time> link_since_;
  std::optional<absl::Time> network_since_;
  std::array<absl::Time, kHealthLevels> bad_ = {};  // by level
  HealthLevel implied_before_ = HealthLevel::kHealthy;
  bool lasting_ = false;  // a link or a network is down for its time
  bool lasting_before_ = false;
  absl::Time lasting_until_ = absl::InfinitePast();
  std::optional<Verdict> before_;
};

void Restart(HealthPolicy* policy) {
  const std::string saved = policy->Save();
  ASSERT_THAT(policy->Restore(saved), IsOk());  // all else is forgotten, as in another process
}

class Life {
 public:
  // `policy` is as new. (To make one is to copy the fault table: too slow to be done each time.)
  Life(uint32_t seed, HealthPolicy& policy) : random_(seed), node_(random_), policy_(policy) {}

  void Run() {
    const int steps = 1 + node_.Pick(5);
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
      for (int n = node_.Pick(3); n >= 0; --n) node_.Happen();
      if (node_.Pick(10) == 0) Restart(&policy_);
      Look(false);
      if (node_.Pick(6) == 0) IsolateOrRelease();
      static constexpr std::array<int, 12> kSeconds = {0, 1, 1, 2, 5, 14, 15, 16, 20, 31, 60, 300};
      Pass(absl::Seconds(kSeconds[static_cast<size_t>(node_.Pick(kSeconds.size()))]));
    }
    const bool known = node_.Pick(4) > 0;
    if (known) node_.BeKnown();
    Look(false);
    Pass(kLongestDelay + absl::Seconds(21));
    Look(true);
    if (known) CheckSettled();
  }

 private:
  void Look(bool settled) {
    if (::testing::Test::HasFatalFailure()) return;
    policy_.Update(&node_.inventory(), node_.agent_known(), now_);
    ASSERT_GT(policy_.next_change(), now_);
    const bool ready = node_.ready();
    for (int id = 0; id < kChips; ++id) {
      Oracle& oracle = oracles_[static_cast<size_t>(id)];
      const HealthLevel implied = oracle.Implied(node_, id, now_, settled);
      const auto found = policy_.verdicts().find(id);
      ASSERT_EQ(found != policy_.verdicts().end(), oracle.seen());
      if (!oracle.seen()) continue;
      // While nobody knows anything, only the end of isolation is good news.
      if (!ready && !ready_before_ && !released_ && oracle.before().has_value()) {
        ASSERT_GE(found->second.level, oracle.before()->level);
      }
      oracle.Check(found->second, implied, now_);
    }
    ready_before_ = ready;
  }

  void Pass(absl::Duration time) {
    const absl::Time end = now_ + time;
    while (policy_.next_change() <= end && !::testing::Test::HasFatalFailure()) {
      now_ = policy_.next_change();
      Look(false);
    }
    now_ = end;
  }

  void IsolateOrRelease() {
    const int id = node_.Pick(kChips);
    Oracle& oracle = oracles_[static_cast<size_t>(id)];
    if (!oracle.seen()) return;
    const std::string name = id == 0 ? "0" : absl::StrCat("uuid-", id);
    if (oracle.isolated()) {
      ASSERT_THAT(policy_.Release(name, now_), IsOk());
      released_ = true;
    } else {
      ASSERT_THAT(policy_.Isolate(name, "a reason", now_), IsOk());
    }
    oracle.set_isolated(!oracle.isolated());
    Look(false);
  }

  void CheckSettled() {
    for (int id = 0; id < kChips && !::testing::Test::HasFatalFailure(); ++id) {
      Oracle& oracle = oracles_[static_cast<size_t>(id)];
      if (!oracle.seen()) continue;
      const Verdict& verdict = policy_.verdicts().at(id);
      ASSERT_EQ(verdict.level, oracle.Implied(node_, id, now_, true)) << verdict.message;
      ASSERT_EQ(verdict.state, verdict.level > HealthLevel::kStuck ? HealthState::kUnhealthy
                                                                   : HealthState::kHealthy);
      if (verdict.level == HealthLevel::kLost) continue;  // the rest is not known
      for (const HealthCause& cause : verdict.causes) ASSERT_TRUE(cause.present) << cause.text;
    }
  }

  std::mt19937 random_;
  Node node_;
  HealthPolicy& policy_;
  std::array<Oracle, kChips> oracles_;
  absl::Time now_ = kStart;
  bool ready_before_ = true;
  bool released_ = false;  // at any time: what was isolated may get better whenever it is due
};

TEST(HealthPolicyProperty, TheVerdictFollowsThePresentAndIsNeverBetter) {
  HealthPolicy policy(Table(), "boot");
  for (uint32_t seed = 0; seed < 50000; ++seed) {
    Life(seed, policy).Run();
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    EXPECT_FALSE(policy.Restore("").ok());
  }
}

// One policy is asked when it says that it should be, the other every second.
TEST(HealthPolicyProperty, NextChangeIsWhenSomethingChanges) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    Node node(random);
    HealthPolicy told(Table(), "boot");
    HealthPolicy asking(Table(), "boot");
    absl::Time now = kStart;
    const auto look = [&](HealthPolicy& policy) {
      policy.Update(&node.inventory(), node.agent_known(), now);
    };
    for (int step = 0; step < 8; ++step) {
      if (step > 0) node.Happen();
      if (node.Pick(8) == 0) {
        Restart(&told);
        Restart(&asking);
      }
      const std::map<int, Verdict> before = told.verdicts();
      const bool changed = told.Update(&node.inventory(), node.agent_known(), now);
      ASSERT_EQ(changed, before != told.verdicts());
      look(asking);
      ASSERT_EQ(told.verdicts(), asking.verdicts());
      for (int seconds = node.Pick(4) == 0 ? 80 : node.Pick(25); seconds > 0; --seconds) {
        now += absl::Seconds(1);
        ASSERT_GE(told.next_change(), now);
        if (told.next_change() == now) look(told);
        look(asking);
        ASSERT_EQ(told.verdicts(), asking.verdicts()) << "step " << step;
      }
    }
  }
}

// Three times within 100 s isolates for 50 s after the last.
TEST(HealthPolicyProperty, FrequencyRulesCountEveryOccurrence) {
  const FaultTable table = *FaultTable::WithOverrides(
      "frequency: [{codes: ['80D5:8000'], times: 3, within: 100s, release: 50s}]");
  for (uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    HealthPolicy policy(table, "boot");
    Inventory inventory{.agent_instance = "0", .library = LibraryState::kReady};
    Chip& chip = inventory.chips.emplace_back();
    chip.physical_id = 0;
    chip.health = Health::kOk;
    chip.faults.emplace();
    absl::Time now = kStart;
    policy.Update(&inventory, true, now);
    chip.faults->push_back({.code = kRequest});
    Fault& fault = chip.faults->back();
    std::vector<absl::Time> times;
    absl::Time until = absl::InfinitePast();
    for (int step = 0; step < 25; ++step) {
      now += absl::Seconds(random() % 60);
      if (random() % 3 == 0) {  // goes, or the agent starts anew
        fault.active = false;
        if (random() % 3 == 0) {
          inventory.agent_instance += "+";
          fault.occurrences = 0;
        }
      } else {
        const uint64_t came = 1 + random() % 2;
        fault.active = random() % 2 == 0;
        fault.occurrences += came;
        times.insert(times.end(), came, now);
        const auto recent = std::count_if(times.begin(), times.end(), [now](absl::Time time) {
          return time > now - absl::Seconds(100);
        });
        if (recent >= 3) until = now + absl::Seconds(50);
      }
      if (random() % 5 == 0) {
        const std::string saved = policy.Save();
        policy = HealthPolicy(table, "boot");
        ASSERT_THAT(policy.Restore(saved), IsOk());
      }
      policy.Update(&inventory, true, now);
      bool isolated = false;
      for (const HealthCause& cause : policy.verdicts().at(0).causes) {
        isolated = isolated || (cause.level == HealthLevel::kManuallySeparateNpu && cause.present);
      }
      ASSERT_EQ(isolated, now < until);
    }
  }
}

}  // namespace
}  // namespace ascend::vnpu
