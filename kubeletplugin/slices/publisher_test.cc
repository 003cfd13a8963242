#include "kubeletplugin/slices/publisher.h"

#include <unistd.h>

#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/core/directory_watch.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/kube/rest_client.h"
#include "nlohmann/json.hpp"
#include "test/sim/api_server.h"

namespace ascend::kubeletplugin {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kDriver[] = "npu.huawei.com";
constexpr char kNode[] = "node-1";
constexpr absl::Duration kLong = absl::Seconds(20);

absl::Duration Monotonic() { return Clock::Real().Monotonic(); }

// For what tells nobody when it changes.
bool Eventually(const std::function<bool()>& condition) {
  const absl::Duration end = Monotonic() + kLong;
  while (!condition()) {
    if (Monotonic() >= end) return false;
    ::usleep(1000);
  }
  return true;
}

std::vector<vnpu::Chip> Chips(int count, const std::string& model = "910B3") {
  std::vector<vnpu::Chip> chips;
  for (int i = 0; i < count; ++i) {
    vnpu::Chip chip;
    chip.physical_id = chip.node_number = chip.card_id = i;
    chip.family = vnpu::Family::k910B;
    chip.model = model;
    chip.health = vnpu::Health::kOk;
    chip.memory_mib = 65536;
    chips.push_back(chip);
  }
  return chips;
}

std::shared_ptr<const ClaimRecord> RecordOf(int chip) {
  auto record = std::make_shared<ClaimRecord>();
  record->claim_uid = "uid-1";
  RecordedDevice device;
  device.device = absl::StrCat("npu-", chip);
  device.chips.push_back({.physical_id = chip});
  device.published.name = device.device;
  record->devices.push_back(std::move(device));
  return record;
}

// A client whose watch lags behind as long as it is told to.
class LaggingClient : public kube::Client {
 public:
  explicit LaggingClient(std::unique_ptr<kube::Client> client) : client_(std::move(client)) {}

  void Hold() {
    MutexLock lock(&mutex_);
    hold_ = true;
  }
  // Waits until `events` are held back, then delivers them.
  bool Release(size_t events) {
    if (!Eventually([&] {
          MutexLock lock(&mutex_);
          return held_.size() >= events;
        })) {
      return false;
    }
    MutexLock lock(&mutex_);
    hold_ = false;
    for (auto& deliver : held_) deliver();
    held_.clear();
    return true;
  }

  void Shutdown() override { client_->Shutdown(); }
  absl::StatusOr<kube::ResourceClaim> GetResourceClaim(const std::string& space,
                                                       const std::string& name,
                                                       absl::Duration timeout) override {
    return client_->GetResourceClaim(space, name, timeout);
  }
  absl::StatusOr<kube::Node> GetNode(const std::string& name, absl::Duration timeout) override {
    return client_->GetNode(name, timeout);
  }
  absl::StatusOr<kube::SliceList> ListResourceSlices(const std::string& driver,
                                                     const std::string& node,
                                                     absl::Duration timeout) override {
    return client_->ListResourceSlices(driver, node, timeout);
  }
  std::unique_ptr<kube::Watch> WatchResourceSlices(
      const std::string& driver, const std::string& node, const std::string& version,
      std::function<void(kube::SliceEvent)> on_event,
      std::function<void(absl::Status)> on_end) override {
    return client_->WatchResourceSlices(
        driver, node, version,
        [this, on_event](kube::SliceEvent event) {
          MutexLock lock(&mutex_);
          if (hold_) {
            held_.push_back([on_event, event = std::move(event)] { on_event(event); });
          } else {
            on_event(std::move(event));
          }
        },
        std::move(on_end));
  }
  absl::Status ApplyDeviceStatus(const std::string&, const std::string&, const std::string&,
                                 const std::string&, const std::vector<kube::DeviceStatus>&,
                                 absl::Duration) override {
    return absl::UnimplementedError("not needed");
  }
  absl::StatusOr<kube::ResourceSlice> CreateResourceSlice(const kube::ResourceSlice& slice,
                                                          absl::Duration timeout) override {
    return client_->CreateResourceSlice(slice, timeout);
  }
  absl::StatusOr<kube::ResourceSlice> UpdateResourceSlice(const kube::ResourceSlice& slice,
                                                          absl::Duration timeout) override {
    return client_->UpdateResourceSlice(slice, timeout);
  }
  absl::Status DeleteResourceSlice(const std::string& name, const std::string& uid,
                                   absl::Duration timeout) override {
    return client_->DeleteResourceSlice(name, uid, timeout);
  }
  absl::Status CreateEvent(const kube::Event& event, absl::Duration timeout) override {
    return client_->CreateEvent(event, timeout);
  }

 private:
  Mutex mutex_;
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> held_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<kube::Client> client_;  // first to go: ends the watch's callbacks
};

// One plugin instance's publisher with what is around it.
class Instance {
 public:
  Instance(const std::string& server, const std::string& roles, int64_t start,
           SlicePublisher::Options options, const std::string& agent = "test") {
    auto client = kube::CreateRestClient({.server = server}, agent);
    EXPECT_THAT(client, IsOk());
    client_ = std::make_unique<LaggingClient>(*std::move(client));
    publisher_ = std::make_unique<SlicePublisher>(
        std::move(options), *client_, PublisherRole(roles, start), [this] { return Wanted(); });
    auto watch = DirectoryWatch::Start(roles, [this] { publisher_->Wake(); });
    EXPECT_THAT(watch, IsOk());
    role_watch_ = *std::move(watch);
  }
  ~Instance() { Stop(); }

  void Start() { publisher_->Start(); }
  void Stop() {
    role_watch_.reset();
    publisher_.reset();
  }

  void Set(const std::function<void(SlicePublisher::Wanted&)>& change) {
    {
      MutexLock lock(&mutex_);
      change(wanted_);
    }
    publisher_->Wake();
  }
  void SetChips(std::vector<vnpu::Chip> chips) {
    auto inventory = std::make_shared<vnpu::Inventory>();
    inventory->library = vnpu::LibraryState::kReady;
    inventory->chips = std::move(chips);
    Set([&](SlicePublisher::Wanted& wanted) {
      wanted.known = true;
      wanted.inputs.inventory = inventory;
    });
  }

  // Wakes the publisher and waits for a whole round after that.
  void Settle() {
    for (int i = 0; i < 2; ++i) {
      MutexLock lock(&mutex_);
      const int before = asked_;
      publisher_->Wake();
      const absl::Duration end = Monotonic() + kLong;
      while (asked_ == before && Monotonic() < end) changed_.WaitFor(&mutex_, absl::Seconds(1));
      ASSERT_GT(asked_, before);
    }
  }
  bool WaitUntilReady() {
    return Eventually([this] { return publisher_->ready().ok(); });
  }

  SlicePublisher& publisher() { return *publisher_; }
  LaggingClient& client() { return *client_; }

 private:
  SlicePublisher::Wanted Wanted() {
    MutexLock lock(&mutex_);
    ++asked_;
    changed_.SignalAll();
    return wanted_;
  }

  Mutex mutex_;
  CondVar changed_;
  int asked_ ABSL_GUARDED_BY(mutex_) = 0;
  SlicePublisher::Wanted wanted_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<LaggingClient> client_;
  std::unique_ptr<SlicePublisher> publisher_;
  std::unique_ptr<DirectoryWatch> role_watch_;
};

class PublisherTest : public ::testing::Test {
 protected:
  explicit PublisherTest(sim::ApiServerOptions options = {}) : server_(std::move(options)) {
    node_uid_ = server_.AddNode(kNode);
  }

  static SlicePublisher::Options Quick() {
    return {.driver = kDriver,
            .node_name = kNode,
            .min_backoff = absl::Milliseconds(5),
            .max_backoff = absl::Milliseconds(50)};
  }

  Instance& Make(SlicePublisher::Options options = Quick(), const std::string& agent = "test") {
    instances_.push_back(std::make_unique<Instance>(server_.url(), roles_.path(), ++starts_,
                                                    std::move(options), agent));
    return *instances_.back();
  }
  // Started, with so many chips published.
  Instance& Published(int chips, SlicePublisher::Options options = Quick()) {
    Instance& instance = Make(std::move(options));
    instance.SetChips(Chips(chips));
    instance.Start();
    EXPECT_TRUE(instance.WaitUntilReady()) << instance.publisher().ready();
    EXPECT_EQ(Devices(), chips);
    return instance;
  }

  int Devices() const {
    int devices = 0;
    for (const json& slice : server_.Slices()) {
      devices += static_cast<int>(slice["spec"].value("devices", json::array()).size());
    }
    return devices;
  }
  static int64_t Generation(const json& slice) { return slice["spec"]["pool"]["generation"]; }
  std::vector<int64_t> Generations() const {
    std::vector<int64_t> generations;
    for (const json& slice : server_.Slices()) generations.push_back(Generation(slice));
    return generations;
  }
  std::vector<std::string> DeviceNames() const {
    std::vector<std::string> names;
    for (const json& slice : server_.Slices()) {
      for (const json& device : slice["spec"]["devices"]) names.push_back(device["name"]);
    }
    return names;
  }
  bool WaitForDevices(int count) {
    return Eventually([&] { return Devices() == count; });
  }
  // Somebody else changes slice `index`.
  void Edit(size_t index, const std::string& model) {
    json slice = server_.Slices().at(index);
    slice["spec"]["devices"][0]["attributes"]["model"]["string"] = model;
    ASSERT_THAT(server_.Update(slice), IsOk());
  }
  std::string Model(size_t index) const {
    return server_.Slices().at(index)["spec"]["devices"][0]["attributes"]["model"]["string"];
  }
  int Count(const std::string& verb) const { return server_.CountRequests(verb); }

  sim::ApiServer server_;
  TempDir roles_;
  std::string node_uid_;
  int64_t starts_ = 0;
  std::vector<std::unique_ptr<Instance>> instances_;
};

// --- the plain way ---

TEST_F(PublisherTest, PublishesOnce) {  // SLC-08
  Instance& instance = Make();
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not published yet")));
  instance.SetChips(Chips(3));
  instance.Start();
  ASSERT_TRUE(instance.WaitUntilReady());

  const std::vector<json> slices = server_.Slices();
  ASSERT_THAT(slices, SizeIs(1));
  EXPECT_EQ(slices[0]["metadata"]["name"], "00000-npu.huawei.com-node-1");
  EXPECT_EQ(slices[0]["metadata"]["ownerReferences"][0]["uid"], node_uid_);
  EXPECT_THAT(DeviceNames(), ElementsAre("npu-0", "npu-1", "npu-2"));
  EXPECT_EQ(Generation(slices[0]), 1);
  EXPECT_EQ(Count("create"), 1);
  EXPECT_EQ(Count("list"), 1);
  EXPECT_EQ(Count("get"), 1);  // the node
  EXPECT_EQ(Count("update"), 0);
}

TEST_F(PublisherTest, WritesNothingWhenNothingChanged) {
  Instance& instance = Published(3);
  for (int i = 0; i < 100; ++i) instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 1);
  EXPECT_EQ(Count("list"), 1);
  EXPECT_EQ(Count("watch"), 1);
}

TEST_F(PublisherTest, ARestartWritesNothing) {  // SLC-10
  Published(70);
  ASSERT_EQ(server_.slice_writes(), 2);
  instances_.clear();
  EXPECT_EQ(Devices(), 70);  // an ordinary stop leaves them alone
  Instance& again = Published(70);
  again.Settle();
  EXPECT_EQ(server_.slice_writes(), 2);
}

TEST_F(PublisherTest, AnEmptyPoolIsPublishedToo) {  // SLC-07
  Instance& instance = Published(0);
  ASSERT_THAT(server_.Slices(), SizeIs(1));
  instance.SetChips(Chips(2));
  EXPECT_TRUE(WaitForDevices(2));
}

TEST_F(PublisherTest, WaitsUntilItKnowsWhatToPublish) {  // SLC-07, SLC-08
  Instance& instance = Make();
  instance.Set([](SlicePublisher::Wanted& wanted) { wanted.unknown_because = "no agent"; });
  instance.Start();
  instance.Settle();
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no agent")));
  EXPECT_EQ(server_.slice_writes(), 0);
  instance.SetChips(Chips(1));
  EXPECT_TRUE(instance.WaitUntilReady());
  // What is on the server stays while it is unknown again.
  instance.Set([](SlicePublisher::Wanted& wanted) {
    wanted.known = false;
    wanted.inputs.inventory = nullptr;
    wanted.unknown_because = "claim records cannot be read";
  });
  instance.Settle();
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("claim records")));
  EXPECT_EQ(Devices(), 1);
}

TEST_F(PublisherTest, AsksAgainWhenToldTo) {
  Instance& instance = Published(1);
  instance.Set(
      [](SlicePublisher::Wanted& wanted) { wanted.ask_again_after = absl::Milliseconds(10); });
  const int before = Count("");
  instance.Settle();
  EXPECT_EQ(Count(""), before);  // asking costs the server nothing
}

// --- changes ---

TEST_F(PublisherTest, OneChangedSliceKeepsTheGeneration) {
  Instance& instance = Published(70);
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
  std::vector<vnpu::Chip> chips = Chips(70);
  chips[0].model = "another";
  instance.SetChips(chips);
  EXPECT_TRUE(Eventually([&] { return Model(0) == "another"; }));
  instance.Settle();
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
  EXPECT_EQ(server_.slice_writes(), 3);
}

TEST_F(PublisherTest, SeveralChangedSlicesGetANewGeneration) {
  Instance& instance = Published(70);
  instance.SetChips(Chips(70, "another"));
  EXPECT_TRUE(Eventually([&] { return Generations() == std::vector<int64_t>{2, 2}; }));
  EXPECT_EQ(Model(0), "another");
  EXPECT_EQ(Model(1), "another");
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 4);
}

TEST_F(PublisherTest, GrowsAndShrinks) {  // SLC-01
  Instance& instance = Published(64);
  for (const auto& [chips, slices] : {std::pair<int, size_t>(65, 2), {129, 3}, {3, 1}, {0, 1}}) {
    instance.SetChips(Chips(chips));
    EXPECT_TRUE(Eventually([&] { return server_.Slices().size() == slices && Devices() == chips; }))
        << chips;
    ASSERT_TRUE(instance.WaitUntilReady());
    for (const json& slice : server_.Slices()) {
      EXPECT_EQ(slice["spec"]["pool"]["resourceSliceCount"], slices);
      EXPECT_EQ(Generation(slice), Generations()[0]);
    }
  }
}

TEST_F(PublisherTest, ATaintIsOneWriteWithoutANewGeneration) {
  Instance& instance = Published(70);
  std::vector<vnpu::Chip> chips = Chips(70);
  chips[1].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  EXPECT_TRUE(
      Eventually([&] { return server_.Slices()[0]["spec"]["devices"][1].contains("taints"); }));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 3);
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
  const json taint = server_.Slices()[0]["spec"]["devices"][1]["taints"][0];
  EXPECT_EQ(taint["value"], "critical");

  // Another taint beside it: the time of the first one stays.
  chips[2].health = vnpu::Health::kMajor;
  instance.SetChips(chips);
  EXPECT_TRUE(
      Eventually([&] { return server_.Slices()[0]["spec"]["devices"][2].contains("taints"); }));
  EXPECT_EQ(server_.Slices()[0]["spec"]["devices"][1]["taints"][0], taint);

  instance.SetChips(Chips(70));  // and back
  EXPECT_TRUE(
      Eventually([&] { return !server_.Slices()[0]["spec"]["devices"][1].contains("taints"); }));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 5);
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
}

TEST_F(PublisherTest, TaintsInSeveralSlicesNeedNoNewGeneration) {
  Instance& instance = Published(70);
  instance.Set([](SlicePublisher::Wanted& wanted) { wanted.inputs.health_known = false; });
  EXPECT_TRUE(
      Eventually([&] { return server_.Slices()[1]["spec"]["devices"][5].contains("taints"); }));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 4);
  EXPECT_THAT(Generations(), ElementsAre(1, 1));
}

// --- others touch our slices ---

TEST_F(PublisherTest, DeletedSlicesAreBackAtOnce) {  // SLC-09
  Instance& instance = Published(70);
  const std::vector<json> before = server_.Slices();
  const absl::Duration start = Monotonic();
  ASSERT_EQ(server_.DeleteSlices(kNode), 2);  // as a kubelet that starts
  ASSERT_THAT(server_.WaitForSlices([](const auto& slices) { return slices.size() == 2; }), IsOk());
  const absl::Duration took = Monotonic() - start;
  std::printf("deleted slices back after %s\n", absl::FormatDuration(took).c_str());
  EXPECT_LT(took, absl::Seconds(1));
  instance.Settle();
  const std::vector<json> after = server_.Slices();
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(before[i]["spec"], after[i]["spec"]);
  // One of two is back without a touch on the other.
  const int writes = server_.slice_writes();
  ASSERT_THAT(server_.Delete("resourceslices", "", after[1]["metadata"]["name"]), IsOk());
  EXPECT_TRUE(WaitForDevices(70));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), writes + 2);  // the deletion and ours
}

TEST_F(PublisherTest, WhoDeletesAgainAndAgainIsAnsweredSlower) {
  SlicePublisher::Options options = Quick();
  options.min_backoff = absl::Milliseconds(20);
  options.max_backoff = absl::Seconds(10);
  Instance& instance = Published(1, options);
  const absl::Duration start = Monotonic();
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(server_.DeleteSlices(kNode), 1);
    instance.publisher().Wake();
    ASSERT_TRUE(WaitForDevices(1));
  }
  EXPECT_GE(Monotonic() - start, absl::Milliseconds(20 + 40 + 80 + 160 + 320));
}

TEST_F(PublisherTest, AReplacedNodeOwnsTheRestoredSlices) {
  Instance& instance = Published(1);
  ASSERT_THAT(server_.Delete("nodes", "", kNode), IsOk());
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);  // as the garbage collector does
  EXPECT_TRUE(Eventually([&] { return !instance.publisher().ready().ok(); }));
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(kNode)));
  EXPECT_EQ(Devices(), 0);  // it would be collected again at once
  const std::string uid = server_.AddNode(kNode);
  ASSERT_NE(uid, node_uid_);
  EXPECT_TRUE(WaitForDevices(1));
  EXPECT_EQ(server_.Slices()[0]["metadata"]["ownerReferences"][0]["uid"], uid);
}

TEST_F(PublisherTest, TellsWhatItDid) {
  Mutex mutex;
  std::vector<PublishReport::Event> events;
  int64_t generation = 0;
  size_t devices = 0;
  SlicePublisher::Options options = Quick();
  options.observe = [&](const PublishReport& report) {
    MutexLock lock(&mutex);
    events.push_back(report.event);
    if (report.event != PublishReport::Event::kCurrent) return;
    generation = report.generation;
    devices = 0;
    for (const auto& [name, slice] : *report.slices) devices += slice.devices.size();
  };
  Instance& instance = Published(3, options);
  // It is ready a moment before it tells so, and the watch may already have shown it its own write.
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(&mutex);
    return events.size() >= 2;
  }));
  size_t told = 0;
  {
    MutexLock lock(&mutex);
    EXPECT_EQ(events[0], PublishReport::Event::kWritten);
    EXPECT_EQ(events[1], PublishReport::Event::kCurrent);
    EXPECT_EQ(generation, 1);
    EXPECT_EQ(devices, 3u);
    told = events.size();
  }
  // A look that finds nothing to do is told too.
  instance.Settle();
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(&mutex);
    return events.size() > told;
  }));
  {
    MutexLock lock(&mutex);
    EXPECT_EQ(events.back(), PublishReport::Event::kCurrent);
  }
  // A newer instance takes over.
  Published(3);
  EXPECT_TRUE(Eventually([&] {
    MutexLock lock(&mutex);
    return events.back() == PublishReport::Event::kNotPublisher;
  }));
  instance.publisher().Stop();  // it reports to what ends here
}

TEST_F(PublisherTest, AForeignEditIsUndoneAfterAWhile) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Milliseconds(300);
  Instance& instance = Published(2, options);
  const absl::Duration start = Monotonic();
  Edit(0, "edited");
  instance.Settle();
  if (Monotonic() - start < absl::Milliseconds(300)) {
    EXPECT_EQ(Model(0), "edited");  // not at once
  }
  EXPECT_TRUE(Eventually([&] { return Model(0) == "910B3"; }));
  EXPECT_GE(Monotonic() - start, absl::Milliseconds(300));
}

TEST_F(PublisherTest, WakingUpDoesNotPutTheRestoreOff) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Milliseconds(200);
  Instance& instance = Published(70, options);
  Edit(1, "edited");
  EXPECT_TRUE(Eventually([&] {
    instance.publisher().Wake();
    return Model(1) == "910B3";
  }));
  EXPECT_EQ(server_.slice_writes(), 4);
}

TEST_F(PublisherTest, AnEditIsUndoneAtOnceWithAChangeOfOurOwn) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Hours(1);
  Instance& instance = Published(2, options);
  Edit(0, "edited");
  for (int i = 0; i < 5; ++i) instance.Settle();
  EXPECT_EQ(Model(0), "edited");
  instance.SetChips(Chips(3));
  EXPECT_TRUE(WaitForDevices(3));
  EXPECT_EQ(Model(0), "910B3");
}

TEST_F(PublisherTest, AnEditOfAnAdoptedSliceWaitsToo) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Hours(1);
  Published(2, options);
  instances_.clear();
  Instance& again = Published(2, options);  // found all as wanted, wrote nothing
  Edit(0, "edited");
  for (int i = 0; i < 5; ++i) again.Settle();
  EXPECT_EQ(Model(0), "edited");
}

TEST_F(PublisherTest, DeletesObsoleteSlices) {
  for (const char* name : {"node-1-npu.huawei.com-x7k2p", "00007-npu.huawei.com-node-1"}) {
    ASSERT_THAT(
        server_.Create({{"apiVersion", "resource.k8s.io/v1"},
                        {"kind", "ResourceSlice"},
                        {"metadata", {{"name", name}}},
                        {"spec",
                         {{"driver", kDriver},
                          {"nodeName", kNode},
                          {"pool", {{"name", kNode}, {"generation", 7}, {"resourceSliceCount", 2}}},
                          {"devices", json::array()}}}}),
        IsOk());
  }
  Instance& instance = Make();
  instance.SetChips(Chips(2));
  instance.Start();
  ASSERT_TRUE(instance.WaitUntilReady());
  ASSERT_THAT(server_.Slices(), SizeIs(1));
  EXPECT_GE(Generations()[0], 7);  // lower ones would be ignored
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 2 + 3);
}

TEST_F(PublisherTest, ReplacesASliceOfAnotherPool) {
  const json slice = {
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceSlice"},
      {"metadata", {{"name", "00000-npu.huawei.com-node-1"}}},
      {"spec",
       {{"driver", kDriver},
        {"nodeName", kNode},
        {"pool", {{"name", "old-pool"}, {"generation", 1}, {"resourceSliceCount", 1}}},
        {"devices", json::array()}}}};
  ASSERT_THAT(server_.Create(slice), IsOk());
  Instance& instance = Make();
  instance.SetChips(Chips(2));
  instance.Start();
  ASSERT_TRUE(instance.WaitUntilReady()) << instance.publisher().ready();
  ASSERT_THAT(server_.Slices(), SizeIs(1));
  EXPECT_EQ(server_.Slices()[0]["spec"]["pool"]["name"], kNode);
}

TEST_F(PublisherTest, SurvivesTheHighestGeneration) {
  Instance& instance = Published(70);
  json slice = server_.Slices()[0];
  slice["spec"]["pool"]["generation"] = std::numeric_limits<int64_t>::max();
  ASSERT_THAT(server_.Update(slice), IsOk());
  instance.Settle();
  instance.SetChips(Chips(70, "another"));
  EXPECT_TRUE(Eventually([&] { return Model(0) == "another" && Model(1) == "another"; }));
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, SlicesOfOthersAreLeftAlone) {
  for (const auto& [name, driver, node] :
       {std::tuple("a", "other.driver", kNode), {"b", kDriver, "node-2"}}) {
    ASSERT_THAT(
        server_.Create({{"apiVersion", "resource.k8s.io/v1"},
                        {"kind", "ResourceSlice"},
                        {"metadata", {{"name", name}}},
                        {"spec",
                         {{"driver", driver},
                          {"nodeName", node},
                          {"pool", {{"name", node}, {"generation", 1}, {"resourceSliceCount", 1}}},
                          {"devices", json::array()}}}}),
        IsOk());
  }
  Published(1);
  EXPECT_THAT(server_.Slices(), SizeIs(3));
}

// --- the watch ---

TEST_F(PublisherTest, LateEventsOfOurOwnWritesCauseNone) {
  Instance& instance = Published(70);
  instance.client().Hold();
  for (const char* model : {"a", "b", "c"}) {
    instance.SetChips(Chips(70, model));
    ASSERT_TRUE(Eventually([&] { return Model(0) == model && Model(1) == model; }));
  }
  instance.SetChips(Chips(1, "c"));  // deletes one
  ASSERT_TRUE(WaitForDevices(1));
  instance.Settle();
  const int writes = server_.slice_writes();
  const int requests = Count("");
  ASSERT_TRUE(instance.client().Release(8));
  for (int i = 0; i < 3; ++i) instance.Settle();
  EXPECT_EQ(server_.slice_writes(), writes);
  EXPECT_EQ(Count(""), requests);  // not even one that changes nothing
}

TEST_F(PublisherTest, AWatchThatEndsIsContinuedWithoutListing) {
  Instance& instance = Published(1);
  for (int i = 1; i <= 10; ++i) {
    ASSERT_TRUE(Eventually([&] {
      server_.CloseWatches();
      return Count("watch") > i;
    })) << i;
  }
  EXPECT_EQ(Count("list"), 1);
  // And what happened meanwhile is not missed.
  server_.CloseWatches();
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);
  EXPECT_TRUE(WaitForDevices(1));
  instance.Settle();
  EXPECT_EQ(Count("list"), 1);
  EXPECT_THAT(instance.publisher().ready(), IsOk());
}

TEST_F(PublisherTest, ATooOldVersionIsListedAgain) {  // 410
  Published(1);
  ASSERT_TRUE(Eventually([&] { return server_.active_watches() == 1; }));
  const int id = server_.AddRule({.verb = "watch", .count = 1, .status = 503});
  server_.CloseWatches();
  server_.Compact();
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);
  server_.Compact();
  EXPECT_TRUE(WaitForDevices(1));
  EXPECT_LE(Count("list"), 3);
  server_.RemoveRule(id);
}

TEST_F(PublisherTest, AForbiddenWatchCausesNoStorm) {
  SlicePublisher::Options options = Quick();
  options.max_backoff = absl::Hours(1);
  options.min_backoff = absl::Milliseconds(20);
  server_.AddRule({.verb = "watch", .status = 403});
  Instance& instance = Make(options);
  instance.SetChips(Chips(2));
  instance.Start();
  ASSERT_TRUE(instance.WaitUntilReady());  // it can publish nevertheless
  const absl::Duration start = Monotonic();
  while (Monotonic() - start < absl::Milliseconds(500)) instance.Settle();
  EXPECT_LE(Count("list"), 8);  // 20, 40, 80, 160, 320 ms apart
  EXPECT_LE(Count("watch"), 8);
  EXPECT_EQ(server_.slice_writes(), 1);
}

// --- a server in trouble ---

TEST_F(PublisherTest, TriesAgainAfterErrors) {
  Instance& instance = Published(2);
  int chips = 2;
  for (const int status : {400, 403, 404, 409, 410, 422, 429, 500, 503}) {
    SCOPED_TRACE(status);
    server_.AddRule({.verb = "update", .count = 2, .status = status, .message = "no"});
    instance.SetChips(Chips(++chips));
    EXPECT_TRUE(Eventually([&] { return !instance.publisher().ready().ok(); }));
    EXPECT_TRUE(WaitForDevices(chips));
    EXPECT_TRUE(instance.WaitUntilReady());
  }
}

TEST_F(PublisherTest, NotReadyWhileWritesAreRefused) {  // SLC-08
  server_.AddRule({.verb = "create", .status = 422, .message = "devices: Invalid value"});
  Instance& instance = Make();
  instance.SetChips(Chips(1));
  instance.Start();
  ASSERT_THAT(server_.WaitForRequests("create", sim::kSlicesPath, 2), IsOk());
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("devices: Invalid value")));
  server_.ClearRules();
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, EveryStepOfTheStartIsTriedAgain) {
  for (const char* verb : {"get", "list", "create"}) {
    server_.AddRule({.verb = verb, .count = 2, .status = 500});
  }
  Published(2);
}

TEST_F(PublisherTest, RespectsRetryAfterWhateverWakesIt) {
  Instance& instance = Published(1);
  server_.AddRule({.verb = "update", .count = 1, .status = 429, .retry_after = 1});
  const absl::Duration start = Monotonic();
  instance.SetChips(Chips(2));
  ASSERT_THAT(server_.WaitForRequests("update", sim::kSlicesPath, 1), IsOk());
  EXPECT_TRUE(Eventually([&] {
    instance.publisher().Wake();
    return Devices() == 2;
  }));
  EXPECT_GE(Monotonic() - start, absl::Seconds(1));
  EXPECT_EQ(Count("update"), 2);
}

TEST_F(PublisherTest, AServerThatHangsIsLeftAfterTheTimeout) {
  SlicePublisher::Options options = Quick();
  options.request_timeout = absl::Milliseconds(100);
  const int id = server_.AddRule({.verb = "list", .hang = true});
  Instance& instance = Make(options);
  instance.SetChips(Chips(1));
  instance.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsDeadlineExceeded(instance.publisher().ready()); }));
  server_.RemoveRule(id);
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, ACreateWhoseAnswerIsLostIsNotRepeated) {
  server_.AddRule({.verb = "create", .count = 1, .cut = true});
  Instance& instance = Published(1);
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), 1);
}

TEST_F(PublisherTest, AMissingNodeIsNamed) {
  SlicePublisher::Options options = Quick();
  options.node_name = "node-9";
  Instance& instance = Make(options);
  instance.SetChips(Chips(1));
  instance.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(instance.publisher().ready()); }));
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("node-9")));
  EXPECT_EQ(server_.slice_writes(), 0);
  server_.AddNode("node-9");
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, NobodyListens) {
  std::string url;
  {
    sim::ApiServer gone;
    url = gone.url();
  }
  Instance instance(url, roles_.path(), 1, Quick());
  instance.SetChips(Chips(1));
  instance.Start();
  EXPECT_TRUE(Eventually([&] {
    return absl::StrContains(std::string(instance.publisher().ready().message()), "GET");
  })) << instance.publisher().ready();
  EXPECT_TRUE(absl::IsUnavailable(instance.publisher().ready()));
}

class OldServerTest : public PublisherTest {
 protected:
  OldServerTest() : PublisherTest({.serve_resource_v1 = false}) {}
};

TEST_F(OldServerTest, TheMissingApiIsNamed) {  // REG-08
  Instance& instance = Make();
  instance.SetChips(Chips(1));
  instance.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsUnimplemented(instance.publisher().ready()); }));
  EXPECT_THAT(instance.publisher().ready(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("resource.k8s.io/v1")));
}

TEST_F(PublisherTest, TheApiAppearsLater) {
  const int id = server_.AddRule(
      {.verb = "list", .path_prefix = sim::kSlicesPath, .status = 404, .message = "no such API"});
  Instance& instance = Make();
  instance.SetChips(Chips(1));
  instance.Start();
  ASSERT_THAT(server_.WaitForRequests("list", sim::kSlicesPath, 3), IsOk());
  server_.RemoveRule(id);
  EXPECT_TRUE(instance.WaitUntilReady());
}

TEST_F(PublisherTest, StopsQuicklyWhileTheServerHangs) {
  for (const char* verb : {"get", "list", "create"}) {
    server_.AddRule({.verb = verb, .hang = true});
    Instance& instance = Make();
    instance.SetChips(Chips(1));
    server_.ClearRequests();
    instance.Start();
    ASSERT_TRUE(Eventually([&] { return Count(verb) > 0; })) << verb;
    const absl::Duration start = Monotonic();
    instance.client().Shutdown();
    instance.Stop();
    EXPECT_LT(Monotonic() - start, absl::Seconds(2)) << verb;
    server_.ClearRules();
  }
}

// --- servers without taints ---

class NoTaintsTest : public PublisherTest {
 protected:
  NoTaintsTest() : PublisherTest({.device_taints = false}) {}
};

TEST_F(NoTaintsTest, SickChipsAreWithheldUnlessHeld) {  // SLC-12
  Instance& instance = Published(4);
  ::testing::internal::CaptureStderr();
  std::vector<vnpu::Chip> chips = Chips(4);
  chips[1].health = chips[2].health = vnpu::Health::kCritical;
  instance.Set([](SlicePublisher::Wanted& wanted) { wanted.inputs.records = {RecordOf(2)}; });
  instance.SetChips(chips);
  EXPECT_TRUE(Eventually(
      [&] { return DeviceNames() == std::vector<std::string>{"npu-0", "npu-2", "npu-3"}; }));
  ASSERT_TRUE(instance.WaitUntilReady());
  for (int i = 0; i < 10; ++i) instance.Settle();
  const int writes = server_.slice_writes();
  for (int i = 0; i < 20; ++i) instance.Settle();
  EXPECT_EQ(server_.slice_writes(), writes);  // no loop
  EXPECT_LE(writes, 4);
  EXPECT_EQ(Generations()[0], 1);

  instance.SetChips(Chips(4));  // well again
  EXPECT_TRUE(WaitForDevices(4));
  chips[3].health = vnpu::Health::kMajor;  // and known from now on: one write
  instance.Settle();
  const int before = server_.slice_writes();
  instance.SetChips(chips);
  EXPECT_TRUE(WaitForDevices(2));
  instance.Settle();
  EXPECT_EQ(server_.slice_writes(), before + 1);

  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::vector<std::string> parts = absl::StrSplit(log, "DRADeviceTaints");
  EXPECT_THAT(parts, SizeIs(2)) << log;  // said once
}

// The last old server of an upgrade answered once.
TEST_F(NoTaintsTest, TaintsAreBackWithAServerThatKeepsThem) {  // SLC-12
  SlicePublisher::Options options = Quick();
  options.retry_taints_after = absl::ZeroDuration();
  Instance& instance = Published(3, options);
  std::vector<vnpu::Chip> chips = Chips(3);
  chips[1].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  // Tried a second time at once: the first watch began before.
  ASSERT_TRUE(Eventually([&] { return server_.slice_writes() == 4; }));
  ASSERT_TRUE(WaitForDevices(2));
  server_.SetFeatures(/*device_taints=*/true, /*partitionable_devices=*/true);
  for (int i = 0; i < 10; ++i) instance.Settle();
  EXPECT_EQ(Devices(), 2);  // nothing told of it

  server_.CloseWatches();
  ASSERT_TRUE(WaitForDevices(3));
  instance.Settle();
  EXPECT_TRUE(server_.Slices()[0]["spec"]["devices"][1].contains("taints"));
  EXPECT_EQ(server_.slice_writes(), 5);
  chips[2].health = vnpu::Health::kCritical;  // and so it stays
  instance.SetChips(chips);
  EXPECT_TRUE(
      Eventually([&] { return server_.Slices()[0]["spec"]["devices"][2].contains("taints"); }));
  EXPECT_EQ(server_.slice_writes(), 6);
}

TEST_F(NoTaintsTest, AServerThatKeepsDroppingThemIsTriedOncePerWatch) {  // SLC-12
  SlicePublisher::Options options = Quick();
  options.retry_taints_after = absl::ZeroDuration();
  Instance& instance = Published(3, options);
  std::vector<vnpu::Chip> chips = Chips(3);
  chips[1].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  int writes = 4;  // the first one with the taint changes nothing
  for (int watch = 0; watch < 3; ++watch) {
    ASSERT_TRUE(Eventually([&] { return server_.slice_writes() >= writes; })) << watch;
    for (int i = 0; i < 20; ++i) instance.Settle();
    EXPECT_EQ(server_.slice_writes(), writes) << watch;
    EXPECT_EQ(DeviceNames(), (std::vector<std::string>{"npu-0", "npu-2"})) << watch;
    ASSERT_TRUE(Eventually([&] { return server_.active_watches() == 1; }));
    server_.CloseWatches();
    writes += 2;  // with the taint, and without the device again
  }
}

TEST_F(NoTaintsTest, WatchesThatEndDoNotHurryIt) {  // SLC-12
  Instance& instance = Published(3);                // a minute
  std::vector<vnpu::Chip> chips = Chips(3);
  chips[1].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  ASSERT_TRUE(Eventually([&] { return server_.slice_writes() == 2; }));
  for (int i = 1; i <= 3; ++i) {
    const int watches = Count("watch");
    ASSERT_TRUE(Eventually([&] {
      server_.CloseWatches();
      return Count("watch") > watches;
    }));
    instance.Settle();
  }
  EXPECT_EQ(server_.slice_writes(), 2);
}

// Held devices keep their taints in the plan: that the server stored one is proof.
TEST_F(NoTaintsTest, AStoredTaintIsProof) {  // SLC-12
  Instance& instance = Published(3);
  std::vector<vnpu::Chip> chips = Chips(3);
  chips[1].health = vnpu::Health::kCritical;
  instance.Set([](SlicePublisher::Wanted& wanted) { wanted.inputs.records = {RecordOf(2)}; });
  instance.SetChips(chips);
  ASSERT_TRUE(WaitForDevices(2));
  server_.SetFeatures(/*device_taints=*/true, /*partitionable_devices=*/true);
  chips[2].health = vnpu::Health::kCritical;
  instance.SetChips(chips);
  ASSERT_TRUE(WaitForDevices(3));
  EXPECT_TRUE(server_.Slices()[0]["spec"]["devices"][1].contains("taints"));
}

// --- several instances ---

// --- servers without counters ---

class NoCountersTest : public PublisherTest {
 protected:
  NoCountersTest() : PublisherTest({.partitionable_devices = false}) {}

  Instance& PublishedParts(const SlicePublisher::Options& options) {
    Instance& instance = Make(options);
    instance.Set([](SlicePublisher::Wanted& wanted) {
      wanted.inputs.devices.vnpu_mode = VnpuMode::kDynamic;
    });
    std::vector<vnpu::Chip> chips = Chips(2);
    for (vnpu::Chip& chip : chips) {
      chip.board_id = 0x33;
      chip.aicore_count = 20;
      chip.memory_mib = 32768;
      chip.partitioning.emplace();
    }
    instance.SetChips(chips);
    instance.Start();
    EXPECT_TRUE(instance.WaitUntilReady());
    return instance;
  }
};

// Parts without counters would be handed out beside the whole chip.
TEST_F(NoCountersTest, ChipsAreOfferedWhole) {  // SLC-12
  ::testing::internal::CaptureStderr();
  Instance& instance = PublishedParts(Quick());
  for (int i = 0; i < 10; ++i) instance.Settle();
  EXPECT_EQ(DeviceNames(), (std::vector<std::string>{"npu-0", "npu-1"}));
  const int writes = server_.slice_writes();
  for (int i = 0; i < 20; ++i) instance.Settle();
  EXPECT_EQ(server_.slice_writes(), writes);  // no loop
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("counters (feature gate DRAPartitionableDevices)"));
  EXPECT_THAT(log, HasSubstr("chips are offered whole only"));
}

TEST_F(NoCountersTest, PartsComeWithAServerThatKeepsThem) {  // SLC-12
  SlicePublisher::Options options = Quick();
  options.retry_counters_after = absl::ZeroDuration();
  Instance& instance = PublishedParts(options);
  for (int i = 0; i < 10; ++i) instance.Settle();
  EXPECT_EQ(Devices(), 2);
  server_.SetFeatures(/*device_taints=*/true, /*partitionable_devices=*/true);
  server_.CloseWatches();
  ASSERT_TRUE(Eventually([&] { return Devices() > 2; }));
  instance.Settle();
  bool counters = false;
  for (const auto& slice : server_.Slices()) {
    counters = counters || slice["spec"].contains("sharedCounters");
  }
  EXPECT_TRUE(counters);
}

TEST_F(PublisherTest, TheNewestPublishesAndTheOlderStepsBack) {  // SLC-09
  Instance& old_one = Make(Quick(), "old");
  old_one.SetChips(Chips(2, "old"));
  old_one.Start();
  ASSERT_TRUE(old_one.WaitUntilReady());

  Instance& new_one = Make(Quick(), "new");
  new_one.Start();
  new_one.Settle();
  // It does not know its chips yet, so the old one goes on.
  EXPECT_FALSE(new_one.publisher().ready().ok());
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);
  EXPECT_TRUE(WaitForDevices(2));
  EXPECT_EQ(Model(0), "old");

  const absl::Duration start = Monotonic();
  new_one.SetChips(Chips(2, "new"));
  EXPECT_TRUE(Eventually([&] { return Model(0) == "new"; }));
  std::printf("handed over after %s\n", absl::FormatDuration(Monotonic() - start).c_str());
  ASSERT_TRUE(new_one.WaitUntilReady());
  EXPECT_TRUE(old_one.WaitUntilReady());  // the newer one's business now
  EXPECT_EQ(Count("delete"), 0);          // no gap

  server_.ClearRequests();
  old_one.SetChips(Chips(3, "old"));
  for (int i = 0; i < 3; ++i) {
    old_one.Settle();
    new_one.Settle();
  }
  ASSERT_EQ(server_.DeleteSlices(kNode), 1);
  EXPECT_TRUE(WaitForDevices(2));
  EXPECT_EQ(Model(0), "new");
  for (const sim::RecordedRequest& request : server_.Requests()) {
    EXPECT_EQ(request.user_agent, "new") << request.verb;
  }
}

TEST_F(PublisherTest, TheOlderFollowsWhenTheNewestEnds) {  // SLC-09
  SlicePublisher::Options options = Quick();
  options.restore_edits_after = absl::Hours(1);
  Instance& old_one = Published(2, options);
  Instance& new_one = Make(options);
  new_one.SetChips(Chips(2, "new"));
  new_one.Start();
  EXPECT_TRUE(Eventually([&] { return Model(0) == "new"; }));
  new_one.Stop();
  // What the other wrote is no foreign edit: at once.
  EXPECT_TRUE(Eventually([&] { return Model(0) == "910B3"; }));
  EXPECT_TRUE(old_one.WaitUntilReady());
}

TEST_F(PublisherTest, TheMiddleOneOfThreeIsReadyAndSilent) {
  Instance& first = Make(Quick(), "first");
  Instance& second = Make(Quick(), "second");
  Instance& third = Make(Quick(), "third");
  for (Instance* instance : {&third, &second, &first}) {
    instance->SetChips(Chips(1, instance == &third ? "third" : "other"));
    instance->Start();
    ASSERT_TRUE(instance->WaitUntilReady());
  }
  EXPECT_EQ(Model(0), "third");
  EXPECT_EQ(server_.slice_writes(), 1);
}

TEST_F(PublisherTest, AMissingRoleDirectoryIsAnError) {
  auto client = kube::CreateRestClient({.server = server_.url()}, "test");
  ASSERT_THAT(client, IsOk());
  SlicePublisher publisher(Quick(), **client, PublisherRole(roles_.File("missing"), 1), [] {
    SlicePublisher::Wanted wanted;
    wanted.known = true;
    return wanted;
  });
  publisher.Start();
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(publisher.ready()); }));
  EXPECT_THAT(publisher.ready(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
}

}  // namespace
}  // namespace ascend::kubeletplugin
