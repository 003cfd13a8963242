#include "vnpu/agent/vnpu_operations.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "vnpu/dcmi/abi.h"
#include "vnpu/dcmi/status.h"
#include "vnpu/fake_dcmi.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::FakeDcmi;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kTemplate[] = "vir05_1c_16g";

absl::Status Code(int code, absl::string_view function) {
  return dcmi::StatusFromCode(code, function);
}

class VnpuOperationsTest : public ::testing::Test {
 protected:
  static vnpu::Chip ChipOf(int id) {
    return {.physical_id = id, .card_id = id, .device_id = 0, .uuid = "AA"};
  }
  absl::StatusOr<vnpu::Vnpu> Create(VnpuRequest request = {.template_name = kTemplate}) {
    return CreateVnpu(dcmi_, ChipOf(1), request, calling_);
  }
  absl::Status Destroy(int id, const std::string& template_name = kTemplate) {
    return DestroyVnpu(dcmi_, ChipOf(1), {.id = id, .template_name = template_name}, calling_);
  }
  // The nth call of a method (from 1), or each (0), is answered with the status, before or after
  // its work.
  static FakeDcmi::Hook Failing(std::string method, absl::Status status, int nth = 0) {
    return [=, count = 0](absl::string_view called, dcmi::ChipAddress) mutable {
      if (called != method || (++count != nth && nth != 0)) return absl::OkStatus();
      return status;
    };
  }
  int Calls(absl::string_view method) {
    int count = 0;
    for (const std::string& call : dcmi_.calls()) count += call == absl::StrCat(method, " 1");
    return count;
  }

  FakeDcmi dcmi_{2};
  std::vector<std::string> functions_;
  const std::function<void(absl::string_view)> calling_ = [this](absl::string_view function) {
    functions_.emplace_back(function);
  };
};

TEST_F(VnpuOperationsTest, CreatesListsAndDestroys) {
  const auto made = Create();
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->id, 116);
  EXPECT_EQ(made->template_name, kTemplate);
  EXPECT_THAT(functions_,
              ElementsAre("dcmi_get_device_info", "dcmi_create_vdevice", "dcmi_get_device_info"));
  EXPECT_THAT(ListVnpus(dcmi_, ChipOf(1), calling_), IsOkAndHolds(ElementsAre(*made)));
  EXPECT_THAT(ListVnpus(dcmi_, ChipOf(0), calling_), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Destroy(116), IsOk());
  EXPECT_THAT(dcmi_.Ids(1), IsEmpty());
  EXPECT_THAT(Destroy(116), IsOk()) << "one that is not there is no failure";
  EXPECT_EQ(Calls("DestroyVnpu"), 1);
}

TEST_F(VnpuOperationsTest, PassesTheWishesOn) {
  const auto made = Create({.template_name = kTemplate, .id = 120, .vgroup = 2});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->id, 120);
  EXPECT_EQ(made->vgroup, 2);
}

TEST_F(VnpuOperationsTest, AnIdThatIsTakenIsNoWishTheLibraryCouldFulfil) {
  dcmi_.Add(1, {.id = 116, .template_name = kTemplate});
  const auto made = Create({.template_name = kTemplate, .id = 116});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->id, 117);
  ASSERT_THAT(dcmi_.requests(), SizeIs(1));
  EXPECT_EQ(dcmi_.requests()[0].id, std::nullopt);
}

TEST_F(VnpuOperationsTest, DropsWishesThatTheLibraryDoesNotTake) {
  const absl::Status invalid = Code(DCMI_INVALID_PARAMETER, "dcmi_create_vdevice");
  dcmi_.Before([this, invalid](absl::string_view method, dcmi::ChipAddress) {
    if (method != "CreateVnpu") return absl::OkStatus();
    const dcmi::VnpuRequest request = dcmi_.requests().back();
    return request.id.has_value() || request.vgroup.has_value() ? invalid : absl::OkStatus();
  });
  const auto made = Create({.template_name = kTemplate, .id = 120, .vgroup = 2});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->id, 116);
  ASSERT_THAT(dcmi_.requests(), SizeIs(3));
  EXPECT_EQ(dcmi_.requests()[1].id, std::nullopt);
  EXPECT_EQ(dcmi_.requests()[1].vgroup, 2);
  EXPECT_EQ(dcmi_.requests()[2].vgroup, std::nullopt);
}

TEST_F(VnpuOperationsTest, SaysWhatTheLibrarysRefusalMeans) {
  struct Case {
    int code;
    absl::StatusCode expected;
    std::string advice;
  };
  const std::vector<Case> cases = {
      {-8020, absl::StatusCode::kFailedPrecondition, "end the processes"},
      {-8013, absl::StatusCode::kFailedPrecondition, "end the processes"},
      {-8005, absl::StatusCode::kFailedPrecondition, "end the processes"},
      {-8001, absl::StatusCode::kInvalidArgument, "template-info"},
      {-8002, absl::StatusCode::kPermissionDenied, "privileged container"},
      {-8255, absl::StatusCode::kUnimplemented, "no vNPUs"},
      {-8012, absl::StatusCode::kUnavailable, "NOT_READY"},
  };
  for (const Case& c : cases) {
    dcmi_.Before(Failing("CreateVnpu", Code(c.code, "dcmi_create_vdevice")));
    EXPECT_THAT(Create(),
                StatusIs(c.expected, AllOf(HasSubstr("chip 1"), HasSubstr(kTemplate),
                                           HasSubstr(absl::StrCat(c.code)), HasSubstr(c.advice))));
    EXPECT_THAT(dcmi_.Ids(1), IsEmpty());
  }
}

TEST_F(VnpuOperationsTest, WithoutAListNothingIsMade) {
  dcmi_.Before(Failing("Vnpus", Code(DCMI_INNER_ERR, "dcmi_get_device_info")));
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kInternal, HasSubstr("-8005")));
  dcmi_.Before(Failing("Vnpus", Code(DCMI_NOT_SUPPORT, "dcmi_get_device_info")));
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("-8255")));
  EXPECT_THAT(dcmi_.requests(), IsEmpty());
}

TEST_F(VnpuOperationsTest, WhatAFailedCreationMadeIsDestroyedAgain) {
  dcmi_.Add(1, {.id = 116, .template_name = kTemplate});
  dcmi_.After(Failing("CreateVnpu", Code(DCMI_INNER_ERR, "dcmi_create_vdevice")));
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("-8005"), HasSubstr("destroyed again"))));
  EXPECT_THAT(dcmi_.Ids(1), ElementsAre(116)) << "only the one that was there before";
}

TEST_F(VnpuOperationsTest, AWishIsNotDroppedWhileTheRefusedOneExists) {
  // The code says "not made", the list says otherwise.
  dcmi_.After(Failing("CreateVnpu", Code(DCMI_INVALID_PARAMETER, "dcmi_create_vdevice")));
  EXPECT_THAT(Create({.template_name = kTemplate, .id = 120}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("destroyed again")));
  EXPECT_THAT(dcmi_.requests(), SizeIs(1));
  EXPECT_THAT(dcmi_.Ids(1), IsEmpty());
}

TEST_F(VnpuOperationsTest, ALeftOverThatCannotBeDestroyedIsNamed) {
  dcmi_.After(Failing("CreateVnpu", Code(DCMI_INNER_ERR, "dcmi_create_vdevice")));
  dcmi_.Before(Failing("DestroyVnpu", Code(DCMI_RESOURCE_OCCUPIED, "dcmi_set_destroy_vdevice")));
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kUnavailable,
                                 AllOf(HasSubstr("vNPU 116 was made nevertheless"),
                                       HasSubstr("dcmi_set_destroy_vdevice returned -8020"))));
  EXPECT_THAT(dcmi_.Ids(1), ElementsAre(116));
}

TEST_F(VnpuOperationsTest, ANewVnpuOfAnotherTemplateIsNotOurs) {
  dcmi_.Before([this](absl::string_view method, dcmi::ChipAddress) {
    if (method != "CreateVnpu") return absl::OkStatus();
    dcmi_.Add(1, {.id = 119, .template_name = "vir10_3c_32g"});
    dcmi_.Add(1, {.id = 118});
    return Code(DCMI_RESOURCE_OCCUPIED, "dcmi_create_vdevice");
  });
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 AllOf(HasSubstr("vNPU 118 has appeared"), Not(HasSubstr("119")))));
  EXPECT_THAT(dcmi_.Ids(1), ElementsAre(118, 119));
}

TEST_F(VnpuOperationsTest, TheSingleNewOneIsTheOneThatWasMade) {
  // The library's answer has another id than its list.
  dcmi_.Before([this](absl::string_view method, dcmi::ChipAddress) {
    if (method == "Vnpus" && dcmi_.requests().size() == 1) {
      dcmi_.Edit([](auto& chips) {
        auto& vnpus = chips.at({1, 0}).vnpus;
        if (auto node = vnpus.extract(116)) {
          node.key() = node.mapped().id = 123;
          vnpus.insert(std::move(node));
        }
      });
    }
    return absl::OkStatus();
  });
  const auto made = Create();
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->id, 123);
}

TEST_F(VnpuOperationsTest, ASuccessThatMadeNothingIsAFailure) {
  dcmi_.Before([this](absl::string_view method, dcmi::ChipAddress) {
    if (method == "Vnpus") {
      dcmi_.Edit([](auto& chips) { chips.at({1, 0}).vnpus.clear(); });
    }
    return absl::OkStatus();
  });
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kInternal,
                                 AllOf(HasSubstr("reported vNPU 116"), HasSubstr("not list"))));
  EXPECT_EQ(Calls("DestroyVnpu"), 1);
}

TEST_F(VnpuOperationsTest, WhatCannotBeListedAfterwardsIsDestroyed) {
  dcmi_.Before(Failing("Vnpus", absl::InternalError("no answer"), 2));
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kUnavailable,
                                 AllOf(HasSubstr("no answer"), HasSubstr("destroyed again"))));
  EXPECT_THAT(dcmi_.Ids(1), IsEmpty());
}

TEST_F(VnpuOperationsTest, AFailureWithoutAListAfterwardsSaysThatNobodyKnows) {
  dcmi_.Before([vnpus = 0](absl::string_view method, dcmi::ChipAddress) mutable {
    if (method == "CreateVnpu") return Code(DCMI_TIME_OUT, "dcmi_create_vdevice");
    if (method == "Vnpus" && ++vnpus > 1) return absl::InternalError("no answer");
    return absl::OkStatus();
  });
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kUnavailable,
                                 AllOf(HasSubstr("-8006"), HasSubstr("may be left"))));
}

// Somebody else makes one of the same template while ours is refused, or fails.
TEST_F(VnpuOperationsTest, WhatOthersMakeMeanwhileStays) {
  for (const int code : {DCMI_RESOURCE_OCCUPIED, DCMI_INNER_ERR}) {
    int id = code == DCMI_RESOURCE_OCCUPIED ? 120 : 121;
    dcmi_.Before([&](absl::string_view method, dcmi::ChipAddress) -> absl::Status {
      if (method != "CreateVnpu") return absl::OkStatus();
      dcmi_.Add(1, {.id = id, .template_name = kTemplate});
      return Code(code, "dcmi_create_vdevice");
    });
    // A refusal makes nothing, also not under the id that was asked for.
    const int wish = code == DCMI_RESOURCE_OCCUPIED ? 120 : 122;
    EXPECT_FALSE(Create({.template_name = kTemplate, .id = wish}).ok());
    EXPECT_THAT(dcmi_.Ids(1), Contains(id));
  }
}

TEST_F(VnpuOperationsTest, DestroysOnlyTheTemplateThatIsMeant) {
  dcmi_.Add(1, {.id = 116, .template_name = "vir10_3c_32g"});
  EXPECT_THAT(Destroy(116), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     AllOf(HasSubstr("vNPU 116"), HasSubstr("vir10_3c_32g"))));
  dcmi_.Add(1, {.id = 117});
  EXPECT_THAT(Destroy(117), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("does not tell")));
  EXPECT_THAT(dcmi_.Ids(1), ElementsAre(116, 117));
  EXPECT_EQ(Calls("DestroyVnpu"), 0);
}

TEST_F(VnpuOperationsTest, TheListSaysWhetherItIsGone) {
  dcmi_.Add(1, {.id = 116, .template_name = kTemplate});
  dcmi_.Before(Failing("DestroyVnpu", Code(DCMI_RESOURCE_OCCUPIED, "dcmi_set_destroy_vdevice")));
  EXPECT_THAT(Destroy(116), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     AllOf(HasSubstr("vNPU 116"), HasSubstr("-8020"))));

  // Success, and there still.
  dcmi_.Before(nullptr);
  dcmi_.After([this](absl::string_view method, dcmi::ChipAddress) {
    if (method == "DestroyVnpu") dcmi_.Add(1, {.id = 116, .template_name = kTemplate});
    return absl::OkStatus();
  });
  EXPECT_THAT(Destroy(116), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("still listed")));

  // Failure, and gone.
  dcmi_.After(Failing("DestroyVnpu", Code(DCMI_INNER_ERR, "dcmi_set_destroy_vdevice")));
  EXPECT_THAT(Destroy(116), IsOk());

  // Success, and no list.
  dcmi_.Add(1, {.id = 116, .template_name = kTemplate});
  dcmi_.After(nullptr);
  dcmi_.Before(Failing("Vnpus", absl::InternalError("no answer"), 2));
  EXPECT_THAT(Destroy(116), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no answer")));
}

TEST_F(VnpuOperationsTest, AnotherChipInItsPlaceIsNotTouched) {
  EXPECT_THAT(CheckChip(dcmi_, ChipOf(1), "AA", calling_), IsOk());
  EXPECT_THAT(CheckChip(dcmi_, ChipOf(1), "", calling_), IsOk());
  EXPECT_THAT(CheckChip(dcmi_, ChipOf(1), "BB", calling_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("chip 1"), HasSubstr("AA"), HasSubstr("BB"))));
  vnpu::Chip unknown = ChipOf(1);
  unknown.uuid.clear();
  EXPECT_THAT(CheckChip(dcmi_, unknown, "BB", calling_), IsOk());
  dcmi_.Edit([](auto& chips) { chips.at({1, 0}).physical_id = 5; });
  EXPECT_THAT(CheckChip(dcmi_, ChipOf(1), "AA", calling_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("chip 5")));
}

TEST_F(VnpuOperationsTest, PreparesTheModesOnlyWhereNecessary) {
  EXPECT_THAT(PrepareVnpuModes(dcmi_, calling_), IsOk());
  EXPECT_THAT(dcmi_.calls(), ElementsAre("GetVdeviceMode -1", "GetVnpuRecovery -1"));
  dcmi_.SetModes(dcmi::VdeviceMode::kVm, true);
  EXPECT_THAT(PrepareVnpuModes(dcmi_, calling_), IsOk());
  EXPECT_THAT(dcmi_.GetVdeviceMode(), IsOkAndHolds(dcmi::VdeviceMode::kContainer));
  EXPECT_THAT(dcmi_.GetVnpuRecovery(), IsOkAndHolds(false));
}

TEST_F(VnpuOperationsTest, AModeThatTheProductLacksNeedsNoChange) {
  const absl::Status lacks = Code(DCMI_NOT_SUPPORT, "dcmi_get_vnpu_config_recover_mode");
  dcmi_.SetModes(dcmi::VdeviceMode::kContainer, lacks);
  EXPECT_THAT(PrepareVnpuModes(dcmi_, calling_), IsOk());
  dcmi_.SetModes(lacks, lacks);
  EXPECT_THAT(PrepareVnpuModes(dcmi_, calling_), StatusIs(absl::StatusCode::kUnimplemented));
  dcmi_.SetModes(Code(DCMI_OPER_NOT_PERMITTED, "dcmi_get_vdevice_mode"), false);
  EXPECT_THAT(PrepareVnpuModes(dcmi_, calling_),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("vNPU mode")));
}

TEST_F(VnpuOperationsTest, ARefusedModeSaysWhy) {
  dcmi_.SetModes(dcmi::VdeviceMode::kVm, true);
  dcmi_.Before(Failing("SetVdeviceMode", Code(DCMI_RESOURCE_OCCUPIED, "dcmi_set_vdevice_mode")));
  EXPECT_THAT(PrepareVnpuModes(dcmi_, calling_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("-8020"), HasSubstr("while the node has no vNPU"))));
  dcmi_.SetModes(dcmi::VdeviceMode::kContainer, true);
  // It takes the change and does nothing.
  dcmi_.After([this](absl::string_view method, dcmi::ChipAddress) {
    if (method == "SetVnpuRecovery") dcmi_.SetModes(dcmi::VdeviceMode::kContainer, true);
    return absl::OkStatus();
  });
  EXPECT_THAT(PrepareVnpuModes(dcmi_, calling_),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("recovery")));
}

}  // namespace
}  // namespace ascend::agent
