// The real agent and plugin, killed at any moment of a batch of Prepares and Unprepares, round
// after round: with API trouble, emptied CDI directories, reboots, kubelet restarts and two
// instances. After each round everything that was answered still holds, and nothing else is left.
//   ASCEND_SOAK_SEED=<seed>        another schedule than the fixed one
//   ASCEND_SOAK_ROUNDS=<number>    how many rounds; default: a short run
//   ASCEND_SOAK_SECONDS=<number>   go on for so long instead
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/claims/record.h"
#include "kubeletplugin/paths.h"
#include "nlohmann/json.hpp"
#include "test/sim/allocator.h"
#include "test/sim/driver_stack.h"
#include "test/soak/environment.h"
#include "test/soak/sanitizer.h"
#include "test/soak/wait.h"

namespace ascend::soak {
namespace {

using kubeletplugin::Paths;
using sim::ClaimRef;
using ::testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(kSanitized ? 120 : 40);
constexpr char kClaimsPath[] = "/apis/resource.k8s.io/v1/namespaces";

// What one process may use: two to three times what it does.
constexpr int64_t kMostAnonymousKib = 16 << 10;
constexpr size_t kMostDescriptors = 80;
// How much it may grow from claim to claim, in 400 of them.
constexpr int64_t kMostGrowthKib = 512;

struct Claim {
  ClaimRef ref;
  bool wanted = false;           // prepared, by the kubelet
  bool certain = true;           // the driver has answered so
  std::vector<std::string> ids;  // its first answer
};

struct Call {
  bool prepare = false;
  std::vector<Claim*> claims;
  absl::StatusOr<sim::Answers> answers = sim::Answers();
};

std::vector<std::string> CdiIds(const sim::ClaimAnswer& answer) {
  std::vector<std::string> ids;
  for (const sim::PreparedDevice& device : answer.devices) {
    ids.insert(ids.end(), device.cdi_device_ids.begin(), device.cdi_device_ids.end());
  }
  return ids;
}

std::vector<std::string> Names(const std::string& directory) {
  return ListDirectory(directory).value_or(std::vector<std::string>());
}

bool IsTemporary(const std::string& name) {
  return absl::StartsWith(name, ".") && absl::EndsWith(name, ".tmp");
}

class DriverSoakTest : public ::testing::Test {
 protected:
  DriverSoakTest()
      : seed_(FromEnvironment("ASCEND_SOAK_SEED", 5)), random_(static_cast<uint64_t>(seed_)) {}

  ~DriverSoakTest() override {
    if (!HasFailure()) return;
    std::cerr << "The last steps:\n" << absl::StrJoin(history_, "\n") << "\n";
    if (stack_ != nullptr) std::cerr << stack_->Logs().substr(0, 1 << 20);
  }

  void SetUp() override {
    SetBootId();
    sim::StackOptions options;
    options.bin_dirs = {ASCEND_AGENT_DIR, ASCEND_PLUGIN_DIR, ASCEND_MOCK_DIR};
    options.mock_library = ASCEND_MOCK_LIBRARY;
    options.mock_nodes_dir = ASCEND_MOCK_NODES;
    options.mock_node = "16x910B2C";
    options.plugin_flags = {"--boot-id-file", dir_.File("boot_id")};
    auto stack = sim::DriverStack::Create(std::move(options));
    ASSERT_THAT(stack, IsOk());
    stack_ = *std::move(stack);
    if (!stack_->has_device_nodes()) GTEST_SKIP() << "device nodes take root";
    const auto paths = Paths::Create(
        {.kubelet_root = JoinPath(stack_->root(), "kubelet"), .cdi_root = stack_->cdi_root()});
    ASSERT_THAT(paths, IsOk());
    paths_.emplace(*paths);
    Heal();
    ASSERT_THAT(api().WaitForSlices([](const std::vector<nlohmann::json>& slices) {
      return !slices.empty() && !slices[0]["spec"].value("devices", nlohmann::json()).empty();
    }),
                IsOk());
  }

  sim::ApiServer& api() { return stack_->api_server(); }
  sim::Kubelet& kubelet() { return stack_->kubelet(); }

  int Random(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  bool OneIn(int n) { return Random(n) == 0; }

  void Note(const std::string& step) {
    history_.push_back(step);
    if (history_.size() > 60) history_.pop_front();
  }

  // ------------------------------------------------------------------------------- the node

  void SetBootId() {
    ASSERT_THAT(WriteFileAtomically(dir_.File("boot_id"), absl::StrCat("boot-", ++boots_, "\n")),
                IsOk());
  }

  void EmptyCdiDirectory() {
    for (const std::string& name : Names(stack_->cdi_root())) {
      ::unlink(JoinPath(stack_->cdi_root(), name).c_str());
    }
  }

  static bool Runs(const std::unique_ptr<sim::ChildProcess>& process) {
    return process != nullptr && process->running();
  }

  static void End(sim::ChildProcess& process, int signal_number) {
    process.Kill(signal_number);
    ASSERT_TRUE(process.WaitForEnd(kPatience).has_value());
  }

  // Everything runs again, with one instance of the plugin, and answers.
  void Heal() {
    api().ClearRules();
    if (!agent_started_ || !stack_->agent().running()) {
      ASSERT_THAT(stack_->StartAgent(), IsOk());
      agent_started_ = true;
    }
    if (!Runs(plugin_)) {
      auto plugin = stack_->StartExtraPlugin(pod_);
      ASSERT_THAT(plugin, IsOk());
      plugin_ = *std::move(plugin);
    }
    absl::Status asked;
    EXPECT_TRUE(WaitFor(
        [&] {
          asked = kubelet().CallUnprepare({{.name = "nobody", .uid = "nobody"}}).status();
          return asked.ok();
        },
        kPatience))
        << asked;
  }

  // ------------------------------------------------------------------------------ the batch

  Claim* Allocate() {
    sim::ClaimRequest request;
    request.admin_access = OneIn(6);
    request.count = 1 + (OneIn(3) ? Random(4) : 0);
    const auto ref = sim::AllocateClaim(
        api(), {.name = absl::StrCat("claim-", ++names_), .requests = {request}, .pods = {"pod"}});
    if (!ref.ok()) return nullptr;  // all devices are taken
    claims_.push_back(std::make_unique<Claim>(Claim{.ref = *ref}));
    return claims_.back().get();
  }

  void DeleteFromApi(const Claim& claim) {
    (void)api().Delete("resourceclaims", claim.ref.namespace_name, claim.ref.name);
  }

  // A claim that is prepared and not in `busy` yet.
  Claim* Pick(std::set<Claim*>* busy) {
    std::vector<Claim*> candidates;
    for (const auto& claim : claims_) {
      if (claim->wanted && busy->count(claim.get()) == 0) candidates.push_back(claim.get());
    }
    if (candidates.empty()) return nullptr;
    Claim* picked = candidates[static_cast<size_t>(Random(static_cast<int>(candidates.size())))];
    busy->insert(picked);
    return picked;
  }

  std::deque<Call> PlanBatch() {
    std::deque<Call> calls;
    std::set<Claim*> busy;
    for (int left = 4 + Random(5); left > 0; --left) {
      const int dice = Random(100);
      Claim* claim = nullptr;
      const auto allocate = [&] {
        claim = Allocate();
        return claim != nullptr;
      };
      const auto pick = [&] {
        claim = Pick(&busy);
        return claim != nullptr;
      };
      if (dice < 45 && allocate()) {
        busy.insert(claim);
        calls.push_back({.prepare = true, .claims = {claim}});
        if (Claim* second = OneIn(4) ? Allocate() : nullptr) {
          busy.insert(second);
          calls.back().claims.push_back(second);
        }
      } else if (dice < 55 && allocate()) {  // both at once
        busy.insert(claim);
        calls.push_back({.prepare = true, .claims = {claim}});
        calls.push_back({.prepare = false, .claims = {claim}});
      } else if (dice < 70 && pick()) {
        calls.push_back({.prepare = true, .claims = {claim}});
        if (OneIn(2)) calls.push_back({.prepare = true, .claims = {claim}});
      } else if (pick()) {
        calls.push_back({.prepare = false, .claims = {claim}});
        // Force-deleted: whoever comes next in this batch may be given its chips (ORD-01).
        if (OneIn(2)) DeleteFromApi(*claim);
      }
    }
    for (Call& call : calls) {
      for (Claim* claim : call.claims) {
        claim->certain = false;
        // Of a Prepare and an Unprepare at once the kubelet wants the Unprepare.
        claim->wanted = call.prepare;
      }
      Note(absl::StrCat(call.prepare ? "  prepare " : "  unprepare ",
                        absl::StrJoin(call.claims, " ", [](std::string* out, const Claim* claim) {
                          absl::StrAppend(out, claim->ref.uid, "(",
                                          absl::StrJoin(claim->ref.devices, ","), ")");
                        })));
    }
    return calls;
  }

  void Run(std::deque<Call>* calls, const std::function<void()>& trouble) {
    std::vector<std::thread> threads;
    for (Call& call : *calls) {
      threads.emplace_back([this, &call] {
        std::vector<ClaimRef> refs;
        for (const Claim* claim : call.claims) refs.push_back(claim->ref);
        call.answers = call.prepare ? kubelet().CallPrepare(refs) : kubelet().CallUnprepare(refs);
      });
    }
    trouble();
    for (std::thread& thread : threads) thread.join();
  }

  // Some time of the batch goes by. Not to wait for anything: this is what is random.
  void PassTime() { ::usleep(static_cast<useconds_t>(Random(kSanitized ? 60000 : 12000))); }

  // ----------------------------------------------------------------------------- the trouble

  void AddApiTrouble() {
    sim::Rule rule = {.verb = "get", .path_prefix = kClaimsPath, .count = 1};
    switch (Random(6)) {
      case 0:
        rule.status = 500;
        rule.count = 2;
        break;
      case 1:
        rule.status = 409;
        break;
      case 2:
        rule.status = 429;
        break;
      case 3:
        rule.cut = true;
        break;
      case 4:
        rule.hang = true;
        break;
      default:
        rule.delay = absl::Milliseconds(30);
        rule.count = 6;
    }
    Note(absl::StrCat("  API: status ", rule.status, rule.cut ? " cut" : "",
                      rule.hang ? " hang" : "", rule.delay > absl::ZeroDuration() ? " slow" : ""));
    api().AddRule(rule);
  }

  void RunBatch() {
    std::deque<Call> calls = PlanBatch();
    if (OneIn(2)) AddApiTrouble();
    const bool empties_cdi = OneIn(4);
    const int dice = Random(100);
    std::unique_ptr<sim::ChildProcess> second;
    if (dice < 20) {  // an upgrade: the new instance registers while the old one works
      auto started = stack_->StartExtraPlugin(OtherPod());
      ASSERT_THAT(started, IsOk());
      second = *std::move(started);
    }
    Run(&calls, [&] {
      PassTime();
      if (empties_cdi) {
        Note("  CDI directory emptied");
        EmptyCdiDirectory();
        PassTime();
      }
      if (dice < 20) {
        Note("  two instances");
        if (OneIn(3)) PassTime();
        End(OneIn(2) ? *plugin_ : *second, OneIn(3) ? SIGTERM : SIGKILL);
      } else if (dice < 65) {
        Note("  plugin killed");
        End(*plugin_, SIGKILL);
      } else if (dice < 75) {
        Note("  agent killed");
        End(stack_->agent(), SIGKILL);
      } else if (dice < 82) {
        Note("  agent and plugin killed");
        End(stack_->agent(), SIGKILL);
        End(*plugin_, SIGKILL);
      } else if (dice < 88) {
        Note("  kubelet restarted");
        kubelet().Restart();
      } else if (dice < 94) {
        Note("  rebooted");
        End(*plugin_, SIGKILL);
        End(stack_->agent(), SIGKILL);
        EmptyCdiDirectory();
        SetBootId();
        kubelet().Restart();
      }
      api().ClearRules();  // also lets go of what hangs
    });
    if (second != nullptr) KeepOneOf(std::move(second));
    TakeAnswers(calls);
  }

  std::string OtherPod() const { return pod_ == "pod-a" ? "pod-b" : "pod-a"; }

  // The rollout ends with the new instance, unless it died.
  void KeepOneOf(std::unique_ptr<sim::ChildProcess> second) {
    if (!second->running()) return;
    if (plugin_->running()) End(*plugin_, OneIn(2) ? SIGTERM : SIGKILL);
    plugin_ = std::move(second);
    pod_ = OtherPod();
  }

  // ------------------------------------------------------------------------------ afterwards

  void TakeAnswers(const std::deque<Call>& calls) {
    for (const Call& call : calls) {
      if (!call.answers.ok()) {
        ++cut_off_;
        continue;
      }
      for (Claim* claim : call.claims) {
        ++answered_;
        const auto answer = call.answers->find(claim->ref.uid);
        ASSERT_NE(answer, call.answers->end()) << claim->ref.uid << " has no answer";
        if (!answer->second.error.empty()) {
          ++refused_;
          Note(absl::StrCat("  error: ", answer->second.error));
          continue;
        }
        if (call.prepare != claim->wanted) continue;
        if (call.prepare) {
          TakeAnswer(claim, answer->second);
          claim->certain = true;
        } else if (std::none_of(calls.begin(), calls.end(), [&](const Call& other) {
                     return other.prepare && std::find(other.claims.begin(), other.claims.end(),
                                                       claim) != other.claims.end();
                   })) {
          claim->certain = true;  // else a Prepare that began later may have been the last
        }
      }
    }
  }

  static void TakeAnswer(Claim* claim, const sim::ClaimAnswer& answer) {
    if (claim->ids.empty()) claim->ids = CdiIds(answer);
    EXPECT_GE(claim->ids.size(), claim->ref.devices.size());
    EXPECT_EQ(CdiIds(answer), claim->ids) << claim->ref.uid;
  }

  bool HasRecord(const Claim& claim) const {
    return ::access(JoinPath(paths_->claims_directory(), claim.ref.uid).c_str(), F_OK) == 0;
  }
  bool HasCdiFile(const Claim& claim) const {
    return ::access(JoinPath(stack_->cdi_root(), paths_->cdi_file(claim.ref.uid)).c_str(), F_OK) ==
           0;
  }

  // What was answered holds, whatever happened afterwards and without asking again.
  void ExpectAnsweredHolds() {
    for (const auto& claim : claims_) {
      if (!claim->certain) continue;
      EXPECT_EQ(HasRecord(*claim), claim->wanted) << claim->ref.uid;
      EXPECT_TRUE(WaitFor([&] { return HasCdiFile(*claim) == claim->wanted; }, kPatience))
          << claim->ref.uid << (claim->wanted ? " lost its CDI file" : " left a CDI file");
    }
  }

  // As the kubelet does: the same call until it is answered, also while the driver registers.
  void Settle(Claim* claim) {
    std::string error;
    const bool answered = WaitFor(
        [&] {
          const auto answers = claim->wanted ? kubelet().CallPrepare({claim->ref})
                                             : kubelet().CallUnprepare({claim->ref});
          error = answers.ok() ? answers->at(claim->ref.uid).error : answers.status().ToString();
          if (!error.empty()) return false;
          if (claim->wanted) TakeAnswer(claim, answers->at(claim->ref.uid));
          return true;
        },
        kPatience);
    claim->certain = answered;
    EXPECT_TRUE(answered) << (claim->wanted ? "prepare " : "unprepare ") << claim->ref.uid << ": "
                          << error;
  }

  void SettleAll(bool ask_again) {
    for (const bool prepare : {false, true}) {  // whoever holds a chip goes first
      for (const auto& claim : claims_) {
        if (claim->wanted == prepare && (!claim->certain || (ask_again && prepare))) {
          Settle(claim.get());
        }
      }
    }
    std::erase_if(claims_, [&](const std::unique_ptr<Claim>& claim) {
      if (claim->wanted) return false;
      DeleteFromApi(*claim);
      return true;
    });
  }

  // Records, CDI files and locks are those of the prepared claims, and no chip is held twice.
  void ExpectWhole() {
    std::vector<std::string> uids, files;
    for (const auto& claim : claims_) {
      uids.push_back(claim->ref.uid);
      files.push_back(paths_->cdi_file(claim->ref.uid));
    }
    std::vector<std::string> records = Names(paths_->claims_directory());
    std::erase_if(records, IsTemporary);
    EXPECT_THAT(records, ::testing::UnorderedElementsAreArray(uids));
    std::vector<std::string> cdi_files = Names(stack_->cdi_root());
    std::erase_if(cdi_files, IsTemporary);
    EXPECT_THAT(cdi_files, ::testing::UnorderedElementsAreArray(files));
    for (const std::string& name : Names(paths_->locks_directory())) {
      const std::string uid = kubeletplugin::Paths::claim_of_lock(name);
      if (uid.empty()) continue;
      EXPECT_THAT(uids, ::testing::Contains(uid)) << "left lock";
    }
    std::map<int, std::string> holders;
    for (const std::string& uid : records) {
      const auto record = kubeletplugin::ParseRecord(
          ReadFile(JoinPath(paths_->claims_directory(), uid)).value_or(""));
      ASSERT_THAT(record, IsOk());
      for (const auto& device : record->devices) {
        if (device.admin_access) continue;
        for (const auto& chip : device.chips) {
          const auto [holder, first] = holders.emplace(chip.physical_id, uid);
          EXPECT_TRUE(first) << "chip " << chip.physical_id << " is held by " << holder->second
                             << " and " << uid;
        }
      }
    }
  }

  // ------------------------------------------------------------------------------ resources

  static size_t Descriptors(const sim::ChildProcess& process) {
    return Names(absl::StrCat("/proc/", process.pid(), "/fd")).size();
  }

  static int64_t AnonymousKib(const sim::ChildProcess& process) {
    const auto memory = process.Memory();
    EXPECT_THAT(memory, IsOk());
    return memory.ok() ? memory->anonymous_kib : 0;
  }

  void LookAtResources() {
    for (sim::ChildProcess* process : {&stack_->agent(), plugin_.get()}) {
      Peak& peak = peaks_[process->name()];
      peak.descriptors = std::max(peak.descriptors, Descriptors(*process));
      peak.anonymous_kib = std::max(peak.anonymous_kib, AnonymousKib(*process));
      EXPECT_LE(peak.descriptors, kMostDescriptors) << process->name();
      // A sanitizer's own memory says nothing.
      EXPECT_TRUE(kSanitized || peak.anonymous_kib <= kMostAnonymousKib)
          << process->name() << " uses " << peak.anonymous_kib << " KiB";
    }
  }

  // Claims that come and go while nothing else happens leave nothing in the processes.
  void ExpectNoGrowth() {
    const auto claims = [&](int count) {
      for (int i = 0; i < count && !HasFailure(); ++i) {
        Claim* claim = Allocate();
        ASSERT_NE(claim, nullptr);
        claim->wanted = true;
        Settle(claim);
        claim->wanted = false;
        Settle(claim);
        SettleAll(/*ask_again=*/false);
      }
    };
    claims(100);
    const int64_t plugin = AnonymousKib(*plugin_), agent = AnonymousKib(stack_->agent());
    const size_t descriptors = Descriptors(*plugin_);
    const size_t agent_descriptors = Descriptors(stack_->agent());
    claims(kSanitized ? 50 : 400);
    EXPECT_LE(Descriptors(*plugin_), descriptors + 2);
    EXPECT_LE(Descriptors(stack_->agent()), agent_descriptors + 2);
    std::cout << "growth over 400 claims: plugin " << AnonymousKib(*plugin_) - plugin
              << " KiB, agent " << AnonymousKib(stack_->agent()) - agent << " KiB\n";
    if (kSanitized) return;
    EXPECT_LE(AnonymousKib(*plugin_), plugin + kMostGrowthKib);
    EXPECT_LE(AnonymousKib(stack_->agent()), agent + kMostGrowthKib);
  }

  // What a killed writer left is swept by the next start, once it is too old to be somebody's.
  void ExpectTemporariesAreSwept() {
    int left = 0;
    for (const std::string& directory : {paths_->claims_directory(), stack_->cdi_root()}) {
      for (const std::string& name : Names(directory)) {
        const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
        ::utimensat(AT_FDCWD, JoinPath(directory, name).c_str(), long_ago, 0);
        ++left;
      }
    }
    std::cout << left << " temporary files of killed writers\n";
    End(*plugin_, SIGKILL);
    Heal();
    EXPECT_THAT(Names(paths_->claims_directory()), IsEmpty());
    EXPECT_THAT(Names(stack_->cdi_root()), IsEmpty());
  }

  struct Peak {
    size_t descriptors = 0;
    int64_t anonymous_kib = 0;
  };

  const int64_t seed_;
  std::mt19937_64 random_;
  const TempDir dir_;
  std::unique_ptr<sim::DriverStack> stack_;
  std::unique_ptr<sim::ChildProcess> plugin_;
  std::optional<Paths> paths_;
  std::vector<std::unique_ptr<Claim>> claims_;  // what the kubelet has to do with
  std::map<std::string, Peak> peaks_;
  std::deque<std::string> history_;
  std::string pod_ = "pod-a";  // of plugin_
  bool agent_started_ = false;
  int boots_ = 0, names_ = 0;
  int cut_off_ = 0;                 // calls
  int answered_ = 0, refused_ = 0;  // claims of calls
};

TEST_F(DriverSoakTest, AnsweredClaimsHoldWhateverIsKilled) {
  const int64_t seconds = FromEnvironment("ASCEND_SOAK_SECONDS", 0);
  const int64_t rounds =
      seconds > 0 ? INT64_MAX : FromEnvironment("ASCEND_SOAK_ROUNDS", kSanitized ? 20 : 100);
  SCOPED_TRACE(absl::StrCat("ASCEND_SOAK_SEED=", seed_));
  const absl::Time start = absl::Now();
  int64_t round = 0;
  for (; round < rounds && !HasFailure(); ++round) {
    if (seconds > 0 && absl::Now() - start > absl::Seconds(seconds)) break;
    SCOPED_TRACE(absl::StrCat("round ", round));
    Note(absl::StrCat("round ", round));
    RunBatch();
    Heal();
    if (HasFailure()) break;
    ExpectAnsweredHolds();
    SettleAll(/*ask_again=*/round % 5 == 0);
    ExpectAnsweredHolds();
    ExpectWhole();
    LookAtResources();
  }
  std::cout << "seed " << seed_ << ": " << round << " rounds, " << names_ << " claims in "
            << absl::ToInt64Seconds(absl::Now() - start) << " s; " << cut_off_ << " calls cut off, "
            << answered_ << " claims answered, " << refused_ << " of them refused, " << boots_ - 1
            << " reboots";
  for (const auto& [name, peak] : peaks_) {
    std::cout << "; " << name << " at most " << peak.descriptors << " descriptors, "
              << peak.anonymous_kib << " KiB";
  }
  std::cout << "\n";
  if (HasFailure()) return;
  for (const auto& claim : claims_) {
    claim->wanted = false;
    claim->certain = false;
  }
  SettleAll(/*ask_again=*/false);
  ExpectWhole();
  ExpectNoGrowth();
  ExpectTemporariesAreSwept();
}

}  // namespace
}  // namespace ascend::soak
