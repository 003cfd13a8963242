#include "test/bench/claims.h"

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "test/sim/test_slices.h"

namespace ascend::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Ne;

class ClaimSourceTest : public ::testing::Test {
 protected:
  ClaimSourceTest() { EXPECT_THAT(server_.Create(sim::MakeSlice(4)), IsOk()); }
  sim::ApiServer server_;
};

TEST_F(ClaimSourceTest, MakesAllocatedClaims) {
  absl::StatusOr<ClaimSource> source = ClaimSource::Create(server_, "two", {"npu-1", "npu-2"});
  ASSERT_THAT(source, IsOk());
  const absl::StatusOr<sim::ClaimRef> first = source->Make();
  const absl::StatusOr<sim::ClaimRef> second = source->Make();
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT(first->devices, ElementsAre("npu-1", "npu-2"));
  EXPECT_THAT(second->uid, Ne(first->uid));
  const auto stored = server_.Get("resourceclaims", second->namespace_name, second->name);
  ASSERT_THAT(stored, IsOk());
  EXPECT_EQ((*stored)["metadata"]["uid"], second->uid);
  EXPECT_EQ((*stored)["status"]["allocation"]["devices"]["results"][1]["device"], "npu-2");
}

TEST_F(ClaimSourceTest, DeletesWhatItMade) {
  absl::StatusOr<ClaimSource> source = ClaimSource::Create(server_, "one", {"npu-0"});
  ASSERT_THAT(source, IsOk());
  ASSERT_THAT(source->Make(), IsOk());
  EXPECT_THAT(source->DeleteAll(), IsOk());
  EXPECT_THAT(server_.List("resourceclaims"), IsEmpty());
}

TEST_F(ClaimSourceTest, UnknownDevice) {
  EXPECT_THAT(ClaimSource::Create(server_, "none", {"npu-9"}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace ascend::bench
