// The plan against the rules of the hardware, which are written down here once more and without the
// plan: what the published counters allow, by the scheduler's arithmetic, must be what a chip can
// hold.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "vnpu/partition_plan.h"

namespace ascend::vnpu {
namespace {

// ---- The hardware ----

// How many vGroups of a 310P a partition takes; 0 = half of one.
int GroupsOf310P(const std::string& name) {
  if (absl::StartsWith(name, "vir01")) return 0;
  return absl::StartsWith(name, "vir02") ? 1 : 2;
}

// The sums of what the partitions take are within the chip's.
bool WithinBudget(const Amounts& budget, const std::vector<const Template*>& partitions) {
  for (const Resource resource : kResources) {
    int64_t sum = 0;
    for (const Template* partition : partitions) sum += partition->amounts[resource];
    if (budget[resource] > 0 && sum > budget[resource]) return false;
  }
  return partitions.size() <= 16;
}

// A partition with all media engines goes only with one that has none.
bool RespectsPairs(const std::vector<const Template*>& partitions) {
  const auto count = [&partitions](absl::string_view suffix) {
    return std::count_if(partitions.begin(), partitions.end(),
                         [suffix](const Template* t) { return absl::EndsWith(t->name, suffix); });
  };
  const auto total = static_cast<int64_t>(partitions.size());
  if (count("_m") > 0 && (count("_m") != 1 || count("_nm") != total - 1)) return false;
  if (count("_4c_dvpp") > 0 && (count("_4c_dvpp") != 1 || count("_ndvpp") != total - 1)) {
    return false;
  }
  return true;
}

// Whether a chip can be cut into exactly these, at once and on an empty chip.
bool HardwareAllows(const Product& product, const Amounts& budget,
                    const std::vector<const Template*>& partitions) {
  if (!WithinBudget(budget, partitions) || !RespectsPairs(partitions)) return false;
  if (product.family != Family::k310P) return true;
  int halves = 0, groups = 0;
  for (const Template* partition : partitions) {
    const int taken = GroupsOf310P(partition->name);
    (taken == 0 ? halves : groups) += taken == 0 ? 1 : taken;
  }
  return (halves + 1) / 2 + groups <= 4;
}

// A chip with the partitions that it has at the moment, on 310P in their places.
class HardwareChip {
 public:
  HardwareChip(const Product& product, const Amounts& budget)
      : product_(product), budget_(budget) {}

  bool empty() const { return partitions_.empty(); }
  bool has_groups() const { return product_.family == Family::k310P; }

  bool CanHold(const Template& partition) const {
    std::vector<const Template*> all = partitions_;
    all.push_back(&partition);
    if (!WithinBudget(budget_, all) || !RespectsPairs(all)) return false;
    return !has_groups() || !Places(partition).empty();
  }
  // All sets of groups that are free for it.
  std::vector<std::vector<int>> Places(const Template& partition) const {
    std::vector<std::vector<int>> places;
    const int needed = GroupsOf310P(partition.name);
    for (int one = 0; one < 4; ++one) {
      if (halves_[one] == 0 || (needed == 0 && halves_[one] == 1)) {
        if (needed < 2) places.push_back({one});
        for (int other = one + 1; needed == 2 && other < 4; ++other) {
          if (halves_[other] == 0) places.push_back({one, other});
        }
      }
    }
    return places;
  }
  bool IsFree(const Template& partition, const std::vector<int>& place) const {
    const std::vector<std::vector<int>> places = Places(partition);
    return std::find(places.begin(), places.end(), place) != places.end();
  }
  void Add(const Template& partition, const std::vector<int>& place) {
    partitions_.push_back(&partition);
    for (const int group : place) halves_[group] += GroupsOf310P(partition.name) == 0 ? 1 : 2;
  }
  void Remove(const Template& partition, const std::vector<int>& place) {
    partitions_.erase(std::find(partitions_.begin(), partitions_.end(), &partition));
    for (const int group : place) halves_[group] -= GroupsOf310P(partition.name) == 0 ? 1 : 2;
  }

 private:
  const Product& product_;
  const Amounts& budget_;
  std::vector<const Template*> partitions_;
  std::vector<int> halves_ = {0, 0, 0, 0};  // in use, per vGroup
};

// ---- The scheduler ----

// What is published about one chip, and which of its devices are allocated. The rule of the API:
// each device once, and of no counter more than it has.
class Account {
 public:
  static constexpr int kWhole = -1;

  explicit Account(PartitionPlan plan) : plan_(std::move(plan)), values_(plan_.counters) {}

  const PartitionPlan& plan() const { return plan_; }
  const Counters& live() const { return live_; }
  const Counters& values() const { return values_; }
  void Publish(Counters values) { values_ = std::move(values); }

  bool CanTake(int device) const {
    if (used_.count(device) > 0) return false;
    for (const auto& [name, value] : Consumes(device)) {
      const auto counter = values_.find(name);
      const auto taken = live_.find(name);
      if (counter == values_.end()) return false;
      if ((taken == live_.end() ? 0 : taken->second) + value > counter->second) return false;
    }
    return true;
  }
  // Devices of a template that can be allocated now, in the order of the plan.
  std::vector<int> Candidates(const std::string& template_name) const {
    std::vector<int> candidates;
    for (int i = 0; i < static_cast<int>(plan_.devices.size()); ++i) {
      if (plan_.devices[i].template_name == template_name && CanTake(i)) candidates.push_back(i);
    }
    return candidates;
  }
  void Take(int device) {
    used_.insert(device);
    for (const auto& [name, value] : Consumes(device)) live_[name] += value;
  }
  void Release(int device) {
    used_.erase(device);
    for (const auto& [name, value] : Consumes(device)) {
      live_[name] -= value;
      if (live_[name] == 0) live_.erase(name);
    }
  }

  // Whether devices can be found for all requests at once, whatever choice that needs. A null
  // template is the whole chip.
  bool CanTakeAll(const std::vector<const Template*>& requests) {
    return LeastFits(requests) && Search(requests, 0);
  }

 private:
  const Counters& Consumes(int device) const {
    return device == kWhole ? plan_.counters : plan_.devices[device].consumes;
  }

  // What every device of the template takes at least.
  Counters Least(const Template& partition) const {
    std::optional<Counters> least;
    for (const PartitionDevice& device : plan_.devices) {
      if (device.template_name != partition.name) continue;
      if (!least.has_value()) least = device.consumes;
      for (auto& [name, value] : *least) {
        const auto other = device.consumes.find(name);
        value = other == device.consumes.end() ? 0 : std::min(value, other->second);
      }
    }
    return least.value_or(Counters());
  }

  // Whether the counters suffice if each request gets the cheapest device. Spares the search for
  // most of what is too much.
  bool LeastFits(const std::vector<const Template*>& requests) const {
    Counters sum = live_;
    for (const Template* request : requests) {
      const Counters least = request == nullptr ? plan_.counters : Least(*request);
      for (const auto& [name, value] : least) sum[name] += value;
    }
    return std::all_of(sum.begin(), sum.end(), [this](const auto& counter) {
      const auto value = values_.find(counter.first);
      return counter.second == 0 || (value != values_.end() && counter.second <= value->second);
    });
  }

  // Devices for the requests from `next` on.
  bool Search(const std::vector<const Template*>& requests, size_t next) {
    if (next == requests.size()) return true;
    std::vector<int> candidates = {kWhole};
    if (requests[next] != nullptr) {
      candidates = Candidates(requests[next]->name);
    } else if (!CanTake(kWhole)) {
      return false;
    }
    const Counters* tried = nullptr;
    for (const int device : candidates) {
      // Devices that take the same of the same counters are as good as each other.
      if (tried != nullptr && *tried == Consumes(device)) continue;
      tried = &Consumes(device);
      Take(device);
      const bool found = Search(requests, next + 1);
      Release(device);
      if (found) return true;
    }
    return false;
  }

  const PartitionPlan plan_;
  Counters values_;
  Counters live_;
  std::set<int> used_;
};

const Template& Named(const Product& product, const std::string& name) {
  return *std::find_if(product.templates.begin(), product.templates.end(),
                       [&name](const Template& t) { return t.name == name; });
}

std::string Text(const Product& product, const Amounts& budget,
                 const std::vector<const Template*>& requests) {
  std::string text = absl::StrCat(product.name, ", ", budget[Resource::kAicpu], " AI CPUs:");
  for (const Template* request : requests) {
    absl::StrAppend(&text, " ", request == nullptr ? "whole" : request->name);
  }
  return text;
}

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  // 0 ... below - 1, the same on every machine.
  int operator()(size_t below) { return static_cast<int>(engine_() % below); }
  bool Chance(int percent) { return (*this)(100) < percent; }
  template <typename T>
  const T& Choice(const std::vector<T>& values) {
    return values[(*this)(values.size())];
  }

 private:
  std::mt19937 engine_;
};

// ---- All sets of requests ----

// Compares all multisets of requests, up to one more than a chip holds. Returns how many.
int CompareAll(const Product& product, const Amounts& budget) {
  Account account(PlanPartitions(product, budget, std::nullopt));
  std::vector<const Template*> kinds = {nullptr};
  for (const Template& partition : product.templates) kinds.push_back(&partition);
  int cases = 0;
  std::vector<const Template*> requests;
  // Adds requests of the kinds from `first` on; a set that is too large stays so with more.
  const std::function<void(size_t)> extend = [&](size_t first) {
    for (size_t kind = first; kind < kinds.size(); ++kind) {
      requests.push_back(kinds[kind]);
      const bool whole = requests[0] == nullptr;
      const bool allowed = whole ? requests.size() == 1 : HardwareAllows(product, budget, requests);
      const bool allocatable = account.CanTakeAll(requests);
      EXPECT_EQ(allocatable, allowed) << Text(product, budget, requests);
      ++cases;
      if (allowed || allocatable) extend(kind);
      requests.pop_back();
    }
  };
  extend(0);
  return cases;
}

TEST(BruteForce, TheCountersAllowExactlyWhatTheHardwareHolds) {
  int cases = 0;
  for (const Product& product : Catalog::BuiltIn().products()) {
    const int of_product = CompareAll(product, product.budget);
    std::cout << product.name << ": " << of_product << " sets\n";
    EXPECT_GT(of_product, 5) << product.name;
    cases += of_product;
  }
  std::cout << cases << " sets of requests in all\n";
}

TEST(BruteForce, AlsoWithAnyOtherNumberOfAiCpus) {
  int cases = 0;
  for (const Product& product : Catalog::BuiltIn().products()) {
    if (product.budget[Resource::kAicpu] == 0) continue;
    for (int cpus = 1; cpus <= 9; ++cpus) {
      Amounts budget = product.budget;
      budget[Resource::kAicpu] = cpus;
      cases += CompareAll(product, budget);
    }
  }
  std::cout << cases << " sets of requests in all\n";
}

// No product has more than 16 partitions by its cores: one that has, for the limit itself.
TEST(BruteForce, AlsoForMorePartitionsThanAChipHasSlots) {
  Product product = Catalog::BuiltIn().products()[0];
  product.family = Family::k910A;
  product.vgroups = {};
  product.budget = {};
  product.budget[Resource::kAicore] = 20;
  product.templates = {{"vir01", {}, 0}, {"vir03", {}, 0}};
  product.templates[0].amounts[Resource::kAicore] = 1;
  product.templates[1].amounts[Resource::kAicore] = 3;
  EXPECT_GT(CompareAll(product, product.budget), 60);
}

// The fillings that the reference names, so that the rules above are not wrong in the same way.
TEST(BruteForce, KnowsTheFillingsOfTheReference) {
  const auto fits = [](const std::string& name, const std::vector<std::string>& names) {
    for (const Product& product : Catalog::BuiltIn().products()) {
      if (product.name != name) continue;
      std::vector<const Template*> requests;
      for (const std::string& request : names) requests.push_back(&Named(product, request));
      Account account(PlanPartitions(product, product.budget, std::nullopt));
      return account.CanTakeAll(requests);
    }
    ADD_FAILURE() << "no product " << name;
    return false;
  };
  const auto times = [](size_t count, const std::string& name) {
    return std::vector<std::string>(count, name);
  };
  for (const char* chip : {"310P-24g", "310P-48g"}) {
    EXPECT_TRUE(fits(chip, times(7, "vir01")));
    EXPECT_FALSE(fits(chip, times(8, "vir01")));
    EXPECT_FALSE(fits(chip, times(2, "vir04")));
    EXPECT_TRUE(fits(chip, {"vir04", "vir04_3c"}));
    EXPECT_TRUE(fits(chip, {"vir04_4c_dvpp", "vir04_3c_ndvpp"}));
    for (const char* other : {"vir01", "vir02", "vir02_1c", "vir04_3c", "vir04_4c_dvpp"}) {
      EXPECT_FALSE(fits(chip, {"vir04_4c_dvpp", other})) << other;
    }
    EXPECT_TRUE(fits(chip, times(4, "vir02_1c")));
    EXPECT_FALSE(fits(chip, times(4, "vir02")));  // eight AI CPUs
  }
  EXPECT_TRUE(fits("910A-32g", times(16, "vir02")));
  EXPECT_FALSE(fits("910A-32g", times(17, "vir02")));
  EXPECT_TRUE(fits("910A-32g-30c", times(15, "vir02")));
  EXPECT_FALSE(fits("910A-32g-30c", times(16, "vir02")));
  for (const char* chip : {"910B-bin0", "910B-bin3", "A3-24c"}) {
    EXPECT_TRUE(fits(chip, times(2, "vir12_3c_32g")));
    EXPECT_TRUE(fits(chip, times(4, "vir06_1c_16g")));
    EXPECT_FALSE(fits(chip, times(5, "vir06_1c_16g")));
    EXPECT_TRUE(fits(chip, {"vir12_3c_32g", "vir06_1c_16g", "vir06_1c_16g"}));
  }
  EXPECT_TRUE(fits("910B-bin2", {"vir10_4c_16g_m", "vir10_3c_16g_nm"}));
  EXPECT_FALSE(fits("910B-bin2", {"vir10_4c_16g_m", "vir10_3c_16g"}));
  EXPECT_FALSE(fits("910B-bin2", {"vir10_4c_16g_m", "vir05_1c_8g"}));
  EXPECT_TRUE(fits("910B-bin2", times(2, "vir10_3c_16g")));
  EXPECT_TRUE(fits("910B-bin2", {"vir10_3c_16g", "vir05_1c_8g", "vir05_1c_8g"}));
  for (const char* chip : {"910B-bin1", "A3-20c"}) {
    EXPECT_TRUE(fits(chip, times(2, "vir10_3c_32g")));
    EXPECT_TRUE(fits(chip, times(4, "vir05_1c_16g")));
    EXPECT_FALSE(fits(chip, times(3, "vir10_3c_32g")));
  }
}

// ---- Histories ----

// Allocates and releases at random for `steps` steps; `first_fit` takes the first device that is
// free, as the scheduler does, else any.
void CompareHistory(const Product& product, int steps, bool first_fit, Random& random) {
  Account account(PlanPartitions(product, product.budget, std::nullopt));
  HardwareChip chip(product, product.budget);
  std::vector<int> taken;
  int allocated = 0, refused = 0;
  for (int step = 0; step < steps; ++step) {
    if (!taken.empty() && random.Chance(45)) {
      const int device = random.Choice(taken);
      taken.erase(std::find(taken.begin(), taken.end(), device));
      account.Release(device);
      if (device == Account::kWhole) continue;
      const PartitionDevice& partition = account.plan().devices[device];
      chip.Remove(Named(product, partition.template_name), partition.vgroups);
      continue;
    }
    const bool whole_taken = taken == std::vector<int>{Account::kWhole};
    ASSERT_EQ(account.CanTake(Account::kWhole), taken.empty()) << "step " << step;
    if (taken.empty() && random.Chance(10)) {
      account.Take(Account::kWhole);
      taken.push_back(Account::kWhole);
      continue;
    }
    const Template& request = random.Choice(product.templates);
    const std::vector<int> candidates = account.Candidates(request.name);
    ASSERT_EQ(!candidates.empty(), !whole_taken && chip.CanHold(request))
        << product.name << " " << request.name << " at step " << step;
    ++(candidates.empty() ? refused : allocated);
    if (candidates.empty()) continue;
    const int device = first_fit ? candidates[0] : random.Choice(candidates);
    const std::vector<int>& place = account.plan().devices[device].vgroups;
    ASSERT_TRUE(!chip.has_groups() || chip.IsFree(request, place))
        << product.name << " " << request.name << "/" << account.plan().devices[device].index;
    account.Take(device);
    chip.Add(request, place);
    taken.push_back(device);
  }
  std::cout << product.name << (first_fit ? ", first fit: " : ", any fit: ") << allocated
            << " allocated, " << refused << " refused\n";
  EXPECT_GT(allocated, steps / 10);
  EXPECT_GT(refused, steps / 10);
}

TEST(History, NoneMakesAPlaceOfTheHardwareUnusable) {
  Random random(310);
  for (const Product& product : Catalog::BuiltIn().products()) {
    const int steps = product.family == Family::k310P ? 60000 : 5000;
    for (const bool first_fit : {true, false}) {
      CompareHistory(product, steps, first_fit, random);
    }
  }
}

// ---- Foreign vNPUs ----

// A chip with claims of ours and vNPUs of others on it.
class SharedChip {
 public:
  SharedChip(const Product& product, Random& random)
      : product_(product),
        random_(random),
        account_(PlanPartitions(product, product.budget, std::nullopt)),
        chip_(product, product.budget) {
    for (int i = 3; i > 0; --i) std::swap(hardware_group_[i], hardware_group_[random(i + 1)]);
  }

  // Allocates one of ours if the counters allow it; the hardware must then have room. Without
  // vGroups it is also refused only if the hardware has none.
  void Allocate(const Template& request, bool first_fit) {
    const std::vector<int> candidates = account_.Candidates(request.name);
    const bool room = chip_.CanHold(request);
    ASSERT_TRUE(candidates.empty() || room) << product_.name << " " << request.name;
    if (!chip_.has_groups()) {
      ASSERT_EQ(!candidates.empty(), room) << product_.name << " " << request.name;
    }
    ++(candidates.empty() ? refused : allocated);
    if (candidates.empty()) return;
    const int device = first_fit ? candidates[0] : random_.Choice(candidates);
    account_.Take(device);
    chip_.Add(request, PlaceOf(request, account_.plan().devices[device]));
  }

  // Others make one, if the hardware has room for it.
  void AddForeign(const Template& request) {
    if (!chip_.CanHold(request)) return;
    Vnpu vnpu;
    vnpu.id = static_cast<int>(foreign_.size());
    if (random_.Chance(30)) {  // the catalog does not know it, but the library says what it takes
      vnpu.template_name = random_.Chance(50) ? "vir99" : "";
      vnpu.amounts = request.amounts;
    } else {
      vnpu.template_name = request.name;
    }
    std::vector<int> place;
    if (chip_.has_groups()) {
      place = random_.Choice(chip_.Places(request));
      if (random_.Chance(70)) vnpu.vgroup = place[0];
    }
    chip_.Add(request, place);
    foreign_.push_back(vnpu);
  }

  void Publish() {
    const Counters remaining =
        RemainingCounters(product_, account_.plan(), foreign_, account_.live());
    for (const auto& [name, value] : account_.plan().counters) {
      ASSERT_EQ(remaining.count(name), 1U) << product_.name << " " << name;
    }
    for (const auto& [name, value] : account_.live()) {
      ASSERT_GE(remaining.at(name), value) << product_.name << " " << name;
    }
    account_.Publish(remaining);
    if (!foreign_.empty()) {
      ASSERT_FALSE(account_.CanTake(Account::kWhole)) << product_.name;
    }
  }

  int allocated = 0, refused = 0;

 private:
  // Where the hardware puts it: the place of our account if no foreign vNPU is in it.
  std::vector<int> PlaceOf(const Template& request, const PartitionDevice& device) const {
    if (!chip_.has_groups()) return {};
    std::vector<int> place;
    for (const int group : device.vgroups) place.push_back(hardware_group_[group]);
    std::sort(place.begin(), place.end());
    return chip_.IsFree(request, place) ? place : chip_.Places(request)[0];
  }

  const Product& product_;
  Random& random_;
  Account account_;
  HardwareChip chip_;
  std::vector<Vnpu> foreign_;
  std::vector<int> hardware_group_ = {0, 1, 2, 3};  // by group of our account
};

TEST(Foreign, VnpusLeaveWhatTheHardwareHasLeftAndNeverLessThanLiveUse) {
  Random random(2026);
  int allocated = 0, refused = 0;
  for (const Product& product : Catalog::BuiltIn().products()) {
    for (int round = 0; round < 1000 && !HasFatalFailure(); ++round) {
      SharedChip chip(product, random);
      // Ours, theirs and ours again, so that each finds the other there.
      for (int i = random(4); i > 0; --i) {
        chip.Allocate(random.Choice(product.templates), round % 2 == 0);
      }
      for (int i = random(4); i > 0; --i) chip.AddForeign(random.Choice(product.templates));
      chip.Publish();
      for (int i = 0; i < 8; ++i) {
        chip.Allocate(random.Choice(product.templates), round % 2 == 0);
        chip.Publish();
      }
      allocated += chip.allocated;
      refused += chip.refused;
    }
  }
  std::cout << allocated << " allocated, " << refused << " refused\n";
  EXPECT_GT(allocated, 10000);
  EXPECT_GT(refused, 10000);
}

// Also in mixtures that no chip can hold: a wrong table, or a vNPU made behind the back of a claim
// that has the whole chip.
TEST(Foreign, VnpusNeverPushACounterBelowLiveUse) {
  Random random(16);
  int overbooked = 0;
  for (const Product& product : Catalog::BuiltIn().products()) {
    const PartitionPlan plan = PlanPartitions(product, product.budget, std::nullopt);
    for (int round = 0; round < 500; ++round) {
      Counters live;
      if (random.Chance(10)) live = plan.counters;
      for (int i = random(6); live != plan.counters && i > 0; --i) {
        for (const auto& [name, value] : random.Choice(plan.devices).consumes) live[name] += value;
      }
      std::vector<Vnpu> foreign(random(6));
      Amounts taken;
      for (Vnpu& vnpu : foreign) {
        const Template& partition = random.Choice(product.templates);
        vnpu.template_name = partition.name;
        for (const Resource resource : kResources) taken[resource] += partition.amounts[resource];
      }
      const Counters remaining = RemainingCounters(product, plan, foreign, live);
      for (const Resource resource : kResources) {
        const std::string name(ResourceName(resource));
        if (product.budget[resource] == 0) continue;
        const int64_t left = product.budget[resource] - taken[resource];
        overbooked += left < live[name] ? 1 : 0;
        ASSERT_EQ(remaining.at(name), std::max({left, live[name], int64_t{0}}))
            << product.name << " " << name;
      }
      const auto vnpus = static_cast<int64_t>(foreign.size());
      ASSERT_EQ(remaining.at("vnpus"), std::max(16 - vnpus, live["vnpus"])) << product.name;
      for (const auto& [name, value] : live) ASSERT_GE(remaining.at(name), value) << product.name;
    }
  }
  EXPECT_GT(overbooked, 1000);
}

}  // namespace
}  // namespace ascend::vnpu
