// A slice publisher against a simulated API server: as many instances of the plugin on one node as
// a test likes.
#ifndef ASCEND_DRA_KUBELETPLUGIN_TESTING_PUBLISHER_FIXTURE_H_
#define ASCEND_DRA_KUBELETPLUGIN_TESTING_PUBLISHER_FIXTURE_H_

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/core/directory_watch.h"
#include "base/core/mutex.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "base/runtime/clock.h"
#include "gtest/gtest.h"
#include "kubeletplugin/kube/rest_client.h"
#include "kubeletplugin/slices/publisher.h"
#include "kubeletplugin/testing/judged.h"
#include "kubeletplugin/testing/lagging_client.h"
#include "nlohmann/json.hpp"
#include "test/sim/api_server.h"

namespace ascend::kubeletplugin {

inline constexpr char kDriver[] = "npu.huawei.com";
inline constexpr char kNode[] = "node-1";
inline constexpr absl::Duration kLong = absl::Seconds(20);

inline absl::Duration Monotonic() { return Clock::Real().Monotonic(); }

// For what tells nobody when it changes.
inline bool Eventually(const std::function<bool()>& condition) {
  const absl::Duration end = Monotonic() + kLong;
  while (!condition()) {
    if (Monotonic() >= end) return false;
    ::usleep(1000);
  }
  return true;
}

inline std::vector<vnpu::Chip> Chips(int count, const std::string& model = "910B3") {
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

inline std::shared_ptr<const ClaimRecord> RecordOf(int chip) {
  auto record = std::make_shared<ClaimRecord>();
  record->claim_uid = "uid-1";
  RecordedDevice device;
  device.device = absl::StrCat("npu-", chip);
  device.chips.push_back({.physical_id = chip});
  device.published.name = device.device;
  record->devices.push_back(std::move(device));
  return record;
}

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
      wanted.inputs.health = Judge(*inventory);
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
    for (const nlohmann::json& slice : server_.Slices()) {
      devices += static_cast<int>(slice["spec"].value("devices", nlohmann::json::array()).size());
    }
    return devices;
  }
  static int64_t Generation(const nlohmann::json& slice) {
    return slice["spec"]["pool"]["generation"];
  }
  std::vector<int64_t> Generations() const {
    std::vector<int64_t> generations;
    for (const nlohmann::json& slice : server_.Slices()) generations.push_back(Generation(slice));
    return generations;
  }
  std::vector<std::string> DeviceNames() const {
    std::vector<std::string> names;
    for (const nlohmann::json& slice : server_.Slices()) {
      for (const nlohmann::json& device : slice["spec"]["devices"]) names.push_back(device["name"]);
    }
    return names;
  }
  bool WaitForDevices(int count) {
    return Eventually([&] { return Devices() == count; });
  }
  // Somebody else changes slice `index`.
  void Edit(size_t index, const std::string& model) {
    nlohmann::json slice = server_.Slices().at(index);
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

}  // namespace ascend::kubeletplugin

#endif  // ASCEND_DRA_KUBELETPLUGIN_TESTING_PUBLISHER_FIXTURE_H_
