#include "kubeletplugin/slices/limits.h"

#include <functional>
#include <random>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/core/status_matchers.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "test/sim/slice_validation.h"

namespace ascend::kubeletplugin {
namespace {

using ::testing::HasSubstr;

kube::SliceDevice Device(const std::string& name = "npu-0") {
  kube::SliceDevice device;
  device.name = name;
  return device;
}

kube::ResourceSlice Slice(int devices) {
  kube::ResourceSlice slice;
  slice.name = "00000-npu.huawei.com-node-1";
  slice.driver = "npu.huawei.com";
  slice.node_name = "node-1";
  slice.pool_name = "node-1";
  slice.pool_generation = 1;
  for (int i = 0; i < devices; ++i) slice.devices.push_back(Device(absl::StrCat("npu-", i)));
  return slice;
}

kube::DeviceTaint Taint(const std::string& key, const std::string& value,
                        const std::string& effect = "NoSchedule") {
  return {.key = key, .value = value, .effect = effect, .time_added = ""};
}

bool ServerAccepts(const kube::SliceDevice& device) {
  kube::ResourceSlice slice = Slice(0);
  slice.devices.push_back(device);
  nlohmann::json json = kube::ToJson(slice);
  return sim::DecodeSlice("2026-11-30T03:00:00Z", &json).ok() &&
         sim::ValidateSlice(json, nullptr).empty();
}

// --- SLC-02: each limit at N and N+1, one table ---

struct LimitCase {
  const char* what;
  size_t limit;
  std::function<kube::SliceDevice(size_t)> make;
};

TEST(LimitsTest, EachLimitOfADevice) {  // SLC-02
  const LimitCase cases[] = {
      {"device name", 63, [](size_t n) { return Device(std::string(n, 'a')); }},
      {"attributes", kMaxAttributesAndCapacities,
       [](size_t n) {
         kube::SliceDevice device = Device();
         for (size_t i = 0; i < n; ++i) device.attributes[absl::StrCat("a", i)] = true;
         return device;
       }},
      {"attributes and capacities together", kMaxAttributesAndCapacities,
       [](size_t n) {
         kube::SliceDevice device = Device();
         device.capacity["memory"] = "64Gi";
         device.capacity["aicore"] = "20";
         for (size_t i = 2; i < n; ++i) device.attributes[absl::StrCat("a", i)] = int64_t{1};
         return device;
       }},
      {"attribute name", kMaxIdentifier,
       [](size_t n) {
         kube::SliceDevice device = Device();
         device.attributes[std::string(n, 'a')] = true;
         return device;
       }},
      {"capacity name", kMaxIdentifier,
       [](size_t n) {
         kube::SliceDevice device = Device();
         device.capacity[std::string(n, 'a')] = "1";
         return device;
       }},
      {"domain of an attribute", kMaxDomain,
       [](size_t n) {
         kube::SliceDevice device = Device();
         device.attributes[absl::StrCat(std::string(n - 2, 'a'), ".b/name")] = true;
         return device;
       }},
      {"attribute string", kMaxAttributeString,
       [](size_t n) {
         kube::SliceDevice device = Device();
         device.attributes["model"] = std::string(n, 'x');
         return device;
       }},
      {"attribute version", kMaxAttributeString,
       [](size_t n) {
         kube::SliceDevice device = Device();
         device.attributes["v"] = kube::Version{absl::StrCat("1.2.3-", std::string(n - 6, 'x'))};
         return device;
       }},
      {"taints", kMaxTaints,
       [](size_t n) {
         kube::SliceDevice device = Device();
         for (size_t i = 0; i < n; ++i) device.taints.push_back(Taint(absl::StrCat("k", i), ""));
         return device;
       }},
      {"taint value", 63,
       [](size_t n) {
         kube::SliceDevice device = Device();
         device.taints.push_back(Taint("key", std::string(n, 'v')));
         return device;
       }},
      {"taint key", 63,
       [](size_t n) {
         kube::SliceDevice device = Device();
         device.taints.push_back(Taint(absl::StrCat("d.io/", std::string(n, 'k')), "v"));
         return device;
       }},
  };
  for (const LimitCase& test : cases) {
    SCOPED_TRACE(test.what);
    EXPECT_THAT(CheckDevice(test.make(test.limit)), IsOk());
    EXPECT_TRUE(ServerAccepts(test.make(test.limit)));
    EXPECT_THAT(CheckDevice(test.make(test.limit + 1)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device ")));
  }
}

TEST(LimitsTest, DevicesOfASlice) {  // SLC-01, SLC-02
  EXPECT_THAT(CheckSlice(Slice(0)), IsOk());
  EXPECT_THAT(CheckSlice(Slice(kMaxDevicesPerSlice)), IsOk());
  EXPECT_THAT(CheckSlice(Slice(kMaxDevicesPerSlice + 1)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 64 devices")));

  kube::ResourceSlice twice = Slice(3);
  twice.devices[2].name = "npu-0";
  EXPECT_THAT(CheckSlice(twice),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("npu-0: the name is used")));

  kube::ResourceSlice bad_device = Slice(3);
  bad_device.devices[1].attributes["numa-1"] = true;
  EXPECT_THAT(CheckSlice(bad_device),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device npu-1")));
}

TEST(LimitsTest, NamesOfASlice) {
  kube::ResourceSlice slice = Slice(1);
  slice.driver = absl::StrCat(std::string(60, 'd'), ".io");
  EXPECT_THAT(CheckSlice(slice), IsOk());
  for (const std::string& driver :
       {std::string(64, 'd'), std::string(), std::string("Npu.io"), std::string("a..b")}) {
    slice.driver = driver;
    EXPECT_THAT(CheckSlice(slice),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("driver")))
        << driver;
  }
  slice = Slice(1);
  for (const std::string& pool : {std::string("a/b.c"), std::string(253, 'p')}) {
    slice.pool_name = pool;
    EXPECT_THAT(CheckSlice(slice), IsOk()) << pool;
  }
  for (const std::string& pool :
       {std::string(), std::string("a/"), std::string("A"), std::string(254, 'p')}) {
    slice.pool_name = pool;
    EXPECT_THAT(CheckSlice(slice), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pool")))
        << pool;
  }
  slice = Slice(1);
  slice.node_name = "";
  EXPECT_THAT(CheckSlice(slice),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node name")));
  slice = Slice(1);
  slice.name = "bad_name";
  EXPECT_THAT(CheckSlice(slice),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("slice name")));
}

TEST(LimitsTest, RefusesBadNamesAndValues) {  // SLC-02
  for (const char* name : {"", "-a", "a-", "A", "a.b", "a_b", "a b", "\xff"}) {
    EXPECT_THAT(CheckDevice(Device(name)), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  for (const char* name : {"", "numa-1", "1a", "a.b", "dom/", "/a", "a/b/c", "Dom.io/a", "a\n"}) {
    kube::SliceDevice device = Device();
    device.attributes[name] = true;
    EXPECT_THAT(CheckDevice(device), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
    device = Device();
    device.capacity[name] = "1";
    EXPECT_THAT(CheckDevice(device), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  for (const char* quantity :
       {"", "Gi", "1GiB", "1,5", "1..2", ".5", "-1", "0x10", "1 Gi", "1234567890123456789"}) {
    kube::SliceDevice device = Device();
    device.capacity["memory"] = quantity;
    EXPECT_THAT(CheckDevice(device), StatusIs(absl::StatusCode::kInvalidArgument)) << quantity;
  }
  for (const char* quantity : {"0", "20", "64Gi", "1.5k", "100m", "65535Mi"}) {
    kube::SliceDevice device = Device();
    device.capacity["memory"] = quantity;
    EXPECT_THAT(CheckDevice(device), IsOk()) << quantity;
    EXPECT_TRUE(ServerAccepts(device)) << quantity;
  }
  for (const kube::DeviceTaint& taint :
       {Taint("", "v"), Taint("a b", "v"), Taint("k", "a b"), Taint("k", "-v"), Taint("d.io/", "v"),
        Taint("D.io/k", "v"), Taint("k", "v", "NoRun"), Taint("k", "v", "")}) {
    kube::SliceDevice device = Device();
    device.taints.push_back(taint);
    EXPECT_THAT(CheckDevice(device), StatusIs(absl::StatusCode::kInvalidArgument))
        << taint.key << "=" << taint.value << ":" << taint.effect;
  }
}

TEST(LimitsTest, TextIsUtf8) {  // SLC-03
  for (const char* text : {"", "910B3", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80"}) {
    kube::SliceDevice device = Device();
    device.attributes["model"] = std::string(text);
    EXPECT_THAT(CheckDevice(device), IsOk()) << text;
  }
  for (const char* text : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    kube::SliceDevice device = Device();
    device.attributes["model"] = std::string(text);
    EXPECT_THAT(CheckDevice(device),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UTF-8")));
  }
}

TEST(LimitsTest, WhatPassesIsAcceptedByTheServer) {  // SLC-02
  std::mt19937 random(20261130);                     // the same names every time
  const std::string alphabet("abzAZ019-_./ \n\xc3\xa4\xff\0", 18);
  const auto text = [&](size_t longest) {
    std::string result;
    const size_t length = std::uniform_int_distribution<size_t>(0, longest)(random);
    for (size_t i = 0; i < length; ++i) {
      result += alphabet[std::uniform_int_distribution<size_t>(0, alphabet.size() - 1)(random)];
    }
    return result;
  };
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    kube::SliceDevice device = Device(i % 5 == 0 ? text(6) : "npu-0");
    if (i % 5 == 1) device.attributes[text(8)] = text(3);
    if (i % 5 == 2) device.capacity[text(5)] = text(4);
    if (i % 5 == 3) device.taints.push_back(Taint(text(6), text(3)));
    if (i % 5 == 4) device.attributes["v"] = kube::Version{absl::StrCat("1.2.", text(4))};
    if (!CheckDevice(device).ok()) continue;
    ++accepted;
    ASSERT_TRUE(ServerAccepts(device)) << kube::ToJson(device).dump();
  }
  EXPECT_GT(accepted, 100);
}

TEST(LimitsTest, CounterSets) {
  const auto with = [](size_t sets, size_t counters) {
    kube::SliceDevice device = Device("npu-0");
    for (size_t i = 0; i < sets; ++i) {
      kube::CounterSet& set = device.consumes_counters.emplace_back();
      set.name = absl::StrCat("npu-", i);
      for (size_t k = 0; k < counters; ++k) set.counters[absl::StrCat("c-", k)] = "1";
    }
    return device;
  };
  for (const auto& [sets, counters, good] : {std::tuple(size_t{0}, size_t{0}, true),
                                             {2, 32, true},
                                             {3, 1, false},
                                             {1, 33, false},
                                             {1, 0, false}}) {
    const kube::SliceDevice device = with(sets, counters);
    EXPECT_EQ(CheckDevice(device).ok(), good) << sets << " sets of " << counters;
    EXPECT_EQ(ServerAccepts(device), good) << sets << " sets of " << counters;
  }
  for (const auto& [name, counter, value] :
       {std::tuple("npu_0", "aicore", "1"), {"npu-0", "AI", "1"}, {"npu-0", "aicore", "x"}}) {
    kube::SliceDevice device = Device("npu-0");
    device.consumes_counters = {{name, {{counter, value}}}};
    EXPECT_FALSE(CheckDevice(device).ok()) << name << counter << value;
    EXPECT_FALSE(ServerAccepts(device)) << name << counter << value;
  }

  kube::ResourceSlice slice;
  slice.name = slice.node_name = slice.pool_name = "n1";
  slice.driver = "npu.huawei.com";
  for (int i = 0; i < 8; ++i) {
    slice.shared_counters.push_back({absl::StrCat("npu-", i), {{"aicore", "20"}}});
  }
  EXPECT_THAT(CheckSlice(slice), IsOk());
  slice.devices = {Device("npu-0")};
  EXPECT_THAT(CheckSlice(slice), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("both")));
  slice.devices.clear();
  slice.shared_counters.push_back({"npu-8", {{"aicore", "20"}}});
  EXPECT_THAT(CheckSlice(slice),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 8 counter sets")));
  slice.shared_counters = {{"npu-0", {{"aicore", "20"}}}, {"npu-0", {{"aicore", "20"}}}};
  EXPECT_THAT(CheckSlice(slice),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("appears twice")));
}

TEST(LimitsTest, StrictSemver) {  // SLC-04
  for (const char* good : {"0.0.0", "25.5.1", "1.2.3-rc1", "1.2.3-rc.1", "1.2.3--", "1.2.3+001",
                           "1.2.3-a+b.c", "1.2.3-0a", "10.20.30"}) {
    EXPECT_TRUE(IsStrictSemver(good)) << good;
  }
  for (const char* bad : {"", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.03",
                          "1.2.3-", "1.2.3-01", "1.2.3-a..b", "1.2.3+", "1.2.3+a_b", "1.2.3 ",
                          "25.5.1.b030", "24.1.rc2", "1.2.-3", "1..3", "a.b.c"}) {
    EXPECT_FALSE(IsStrictSemver(bad)) << bad;
  }
}

}  // namespace
}  // namespace ascend::kubeletplugin
