// The program as a whole, on the mock library: what one process does to the other.
#include "vnpu/agent/agent_process.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/runtime/clock.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "vnpu/agent/ping.h"

namespace ascend::agent {
namespace {

using ::ascend::vnpu::Health;
using ::ascend::vnpu::LibraryState;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

TEST_F(AgentProcessTest, ServesTheChipsOfTheNodeAndSaysSoOnce) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const auto inventory = client_->Current().inventory;
  EXPECT_EQ(inventory->library_path, std::filesystem::canonical(library_));
  EXPECT_EQ(inventory->driver_version, "25.5.1");
  EXPECT_EQ(inventory->chips[3].physical_id, 3);
  EXPECT_EQ(inventory->chips[3].model, "910B3");

  // Many polls later nothing more was said.
  SetCall("dcmi_get_device_health", {{"return", -8255}});
  ASSERT_TRUE(
      WaitUntil([](const View& v) { return v.inventory->chips[0].health == Health::kUnknown; }));
  agent->Signal(SIGTERM);
  const Exit exit = agent->Wait();
  EXPECT_EQ(exit.code, 0);
  EXPECT_THAT(exit.out, AllOf(HasSubstr("ascend-npu-agent starts"), HasSubstr("version="),
                              HasSubstr(absl::StrCat("instance=", inventory->agent_instance)),
                              HasSubstr("ascend-npu-agent ends")));
  const auto count = [&exit](absl::string_view text) {
    int found = 0;
    for (size_t at = exit.out.find(std::string(text)); at != std::string::npos;
         at = exit.out.find(std::string(text), at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("NPU library ready"), 1);
  EXPECT_EQ(count("chip appeared"), 8);
  EXPECT_EQ(count("chip health changed"), 8);
  EXPECT_TRUE(WaitDisconnected());
}

TEST_F(AgentProcessTest, AChipIsPulledOutPutBackAndSick) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  EditNode([](nlohmann::json& node) { node["chips"][2]["present"] = false; });
  ASSERT_TRUE(WaitAllWell(7));
  for (const vnpu::Chip& chip : client_->Current().inventory->chips) EXPECT_NE(chip.physical_id, 2);
  EditNode([](nlohmann::json& node) { node["chips"][2]["present"] = true; });
  ASSERT_TRUE(WaitAllWell(8));
  EditNode([](nlohmann::json& node) { node["chips"][5]["health"] = 3; });
  ASSERT_TRUE(
      WaitUntil([](const View& v) { return v.inventory->chips[5].health == Health::kCritical; }));
  EXPECT_TRUE(agent->WaitForOutput("msg=\"chip health changed\" chip=5 health=critical"));
  EXPECT_THAT(agent->output(),
              AllOf(HasSubstr("msg=\"chip vanished\" chip=2"), HasSubstr("chip appeared")));
}

TEST_F(AgentProcessTest, TellsWhoUsesAChip) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  EXPECT_EQ(client_->Current().inventory->chips[2].busy, std::vector<int>());
  const int self = getpid();
  EditNode([self](nlohmann::json& node) {
    node["chips"][2]["processes"] = {{{"pid", self}, {"memoryBytes", 4096}}};
  });
  ASSERT_TRUE(WaitUntil(
      [self](const View& v) { return v.inventory->chips[2].busy == std::vector<int>{self}; }));
  auto chips = client_->ListProcesses({2, 3, 9}, kLong);
  ASSERT_THAT(chips, IsOk());
  ASSERT_THAT(*chips, SizeIs(3));
  EXPECT_TRUE((*chips)[0].known);
  ASSERT_THAT((*chips)[0].processes, SizeIs(1));
  EXPECT_EQ((*chips)[0].processes[0].pid, self);
  EXPECT_EQ((*chips)[0].processes[0].memory_bytes, 4096);
  EXPECT_THAT((*chips)[0].processes[0].name, HasSubstr("agent_process"));
  EXPECT_TRUE((*chips)[1].known);
  EXPECT_THAT((*chips)[1].processes, SizeIs(0));
  EXPECT_FALSE((*chips)[2].known);

  // Gone by itself; and a library without the call does not turn "unknown" into "none".
  EditNode([](nlohmann::json& node) { node["chips"][2]["processes"] = nlohmann::json::array(); });
  ASSERT_TRUE(
      WaitUntil([](const View& v) { return v.inventory->chips[2].busy == std::vector<int>(); }));
  EditNode([](nlohmann::json& node) { node["hiddenSymbols"] = {"dcmi_get_device_resource_info"}; });
  ASSERT_TRUE(WaitUntil([](const View& v) { return v.inventory->chips[2].busy == std::nullopt; }));
  chips = client_->ListProcesses({2}, kLong);
  ASSERT_THAT(chips, IsOk());
  EXPECT_FALSE((*chips)[0].known);
  EXPECT_THAT((*chips)[0].error, HasSubstr("dcmi_get_device_resource_info"));
}

TEST_F(AgentProcessTest, AChipThatHangsWhenAskedDoesNotHoldUpTheAsker) {
  // So slow a rhythm that the library is asked by the question, not by the poll.
  poll_interval_ = "1h";
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  SetCall("dcmi_get_device_resource_info", {{"physicalID", 3}, {"hang", true}});
  const absl::Duration start = Clock::Real().Monotonic();
  const auto chips = client_->ListProcesses({2, 3, 4}, absl::Seconds(1));
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(10));
  ASSERT_THAT(chips, IsOk());
  ASSERT_THAT(*chips, SizeIs(3));
  EXPECT_TRUE((*chips)[0].known) << (*chips)[0].error;
  EXPECT_FALSE((*chips)[1].known);
  EXPECT_THAT((*chips)[1].error, HasSubstr("did not answer in time"));
  EXPECT_FALSE((*chips)[2].known);
  EXPECT_THAT((*chips)[2].error, HasSubstr("chip 3"));
  EXPECT_THAT(Ping(socket_, kLong), IsOk()) << "the process itself lives";
  ClearCalls();
  const auto after = client_->ListProcesses({3}, kLong);
  ASSERT_THAT(after, IsOk());
  EXPECT_TRUE((*after)[0].known) << (*after)[0].error;
}

constexpr char kTemplate[] = "vir05_1c_16g";

size_t VnpusOf(const View& view, size_t chip) {
  const vnpu::Chip& found = view.inventory->chips[chip];
  return found.partitioning.has_value() ? found.partitioning->vnpus.size() : 99;
}

TEST_F(AgentProcessTest, MakesAndDestroysVnpusAndTheInventoryFollows) {
  // So slow a rhythm that each reading is one that a call asked for.
  poll_interval_ = "1h";
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const std::string uuid = client_->Current().inventory->chips[2].uuid;
  EXPECT_EQ(VnpusOf(client_->Current(), 2), 0u);
  ASSERT_THAT(client_->PrepareVnpuModes(kLong), IsOk());
  ASSERT_TRUE(WaitUntil([](const View& v) {
    return v.inventory->vdevice_mode == vnpu::VdeviceMode::kContainer &&
           v.inventory->vnpu_recovery == false;
  }));

  const auto made =
      client_->CreateVnpu({.physical_id = 2, .uuid = uuid, .template_name = kTemplate}, kLong);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->template_name, kTemplate);
  EXPECT_GE(made->id, 132);
  EXPECT_EQ(made->amounts[vnpu::Resource::kAicore], 5);
  ASSERT_TRUE(WaitUntil([](const View& v) { return VnpusOf(v, 2) == 1; }));
  const auto listed = client_->ListVnpus(2, kLong);
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(*listed, std::vector<vnpu::Vnpu>{*made});

  EXPECT_THAT(client_->CreateVnpu({.physical_id = 2, .template_name = "vir99"}, kLong),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("chip 2"), HasSubstr("vir99"), HasSubstr("-8001"))));
  EXPECT_THAT(
      client_->CreateVnpu({.physical_id = 2, .uuid = "X", .template_name = kTemplate}, kLong),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(uuid)));
  EXPECT_THAT(
      client_->DestroyVnpu({.physical_id = 2, .id = made->id, .template_name = "vir99"}, kLong),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(kTemplate)));

  const VnpuReference reference = {
      .physical_id = 2, .uuid = uuid, .id = made->id, .template_name = kTemplate};
  EXPECT_THAT(client_->DestroyVnpu(reference, kLong), IsOk());
  EXPECT_TRUE(WaitUntil([](const View& v) { return VnpusOf(v, 2) == 0; }));
  EXPECT_THAT(client_->DestroyVnpu(reference, kLong), IsOk());
}

TEST_F(AgentProcessTest, AChipInUseIsNotDivided) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  SetCall("dcmi_create_vdevice", {{"physicalID", 2}, {"return", -8020}});
  EXPECT_THAT(client_->CreateVnpu({.physical_id = 2, .template_name = kTemplate}, kLong),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("-8020"), HasSubstr("end the processes"))));
  EXPECT_THAT(client_->CreateVnpu({.physical_id = 3, .template_name = kTemplate}, kLong), IsOk());
}

TEST_F(AgentProcessTest, AVnpuThatCannotBeDestroyedKeepsOnlyItsChip) {
  const auto agent = Start({"--chip-timeout", "100ms", "--stuck-timeout", "5s"});
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const auto made = client_->CreateVnpu({.physical_id = 0, .template_name = kTemplate}, kLong);
  ASSERT_THAT(made, IsOk());
  ASSERT_TRUE(WaitUntil([](const View& v) { return VnpusOf(v, 0) == 1; }));
  SetCall("dcmi_set_destroy_vdevice", {{"physicalID", 0}, {"hang", true}});
  const VnpuReference reference = {.physical_id = 0, .id = made->id, .template_name = kTemplate};
  EXPECT_THAT(client_->DestroyVnpu(reference, absl::Milliseconds(500)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("dcmi_set_destroy_vdevice"), HasSubstr("goes on"))));

  // The chip is shown as it was, and everything else as it is.
  ASSERT_TRUE(WaitUntil([](const View& v) { return !v.inventory->chips[0].stuck.empty(); }));
  const vnpu::Chip stuck = client_->Current().inventory->chips[0];
  EXPECT_THAT(stuck.stuck, HasSubstr("dcmi_set_destroy_vdevice"));
  EXPECT_EQ(stuck.health, Health::kUnknown);
  ASSERT_TRUE(stuck.partitioning.has_value());
  EXPECT_THAT(stuck.partitioning->vnpus, SizeIs(1));
  EXPECT_TRUE(agent->WaitForOutput("chip stuck"));
  const auto processes = client_->ListProcesses({0, 1}, kLong);
  ASSERT_THAT(processes, IsOk());
  EXPECT_FALSE((*processes)[0].known);
  EXPECT_THAT((*processes)[0].error, HasSubstr("dcmi_set_destroy_vdevice"));
  EXPECT_TRUE((*processes)[1].known) << (*processes)[1].error;

  const absl::Duration start = Clock::Real().Monotonic();
  const auto other = client_->CreateVnpu({.physical_id = 1, .template_name = kTemplate}, kLong);
  ASSERT_THAT(other, IsOk());
  ASSERT_TRUE(WaitUntil([](const View& v) { return VnpusOf(v, 1) == 1; }));
  EXPECT_THAT(
      client_->DestroyVnpu({.physical_id = 1, .id = other->id, .template_name = kTemplate}, kLong),
      IsOk());
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(2));
  EditNode([](nlohmann::json& node) { node["chips"][5]["health"] = 3; });
  ASSERT_TRUE(
      WaitUntil([](const View& v) { return v.inventory->chips[5].health == Health::kCritical; }));
  EXPECT_EQ(client_->Current().inventory->library, LibraryState::kReady);

  // Who wants the chip waits behind it, and is told so.
  EXPECT_THAT(client_->ListVnpus(0, absl::Milliseconds(300)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("not begun"), HasSubstr("dcmi_set_destroy_vdevice"))));

  // It returns, and the chip is as any other; the vNPU was not destroyed.
  ClearCalls();
  ASSERT_TRUE(WaitUntil([](const View& v) {
    return v.inventory->chips[0].stuck.empty() && v.inventory->chips[0].health == Health::kOk;
  }));
  EXPECT_TRUE(agent->WaitForOutput("chip answers again"));
  EXPECT_THAT(client_->DestroyVnpu(reference, kLong), IsOk());
  EXPECT_TRUE(WaitUntil([](const View& v) { return VnpusOf(v, 0) == 0; }));
}

TEST_F(AgentProcessTest, EndsPromptlyWhileAVnpuCannotBeDestroyed) {
  const auto agent = Start({"--chip-timeout", "50ms"});
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const auto made = client_->CreateVnpu({.physical_id = 0, .template_name = kTemplate}, kLong);
  ASSERT_THAT(made, IsOk());
  SetCall("dcmi_set_destroy_vdevice", {{"physicalID", 0}, {"hang", true}});
  std::thread caller([&] {
    EXPECT_THAT(
        client_->DestroyVnpu({.physical_id = 0, .id = made->id, .template_name = kTemplate}, kLong),
        StatusIs(absl::StatusCode::kUnavailable));
  });
  EXPECT_TRUE(WaitUntil([](const View& v) { return !v.inventory->chips[0].stuck.empty(); }));
  const absl::Duration start = Clock::Real().Monotonic();
  agent->Signal(SIGTERM);
  const Exit exit = agent->Wait();
  EXPECT_EQ(exit.code, 0);
  EXPECT_THAT(exit.out, HasSubstr("left a call into the NPU library behind"));
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(10));
  caller.join();
}

TEST_F(AgentProcessTest, AVnpuOutlivesTheProcessThatMadeIt) {
  auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const auto made = client_->CreateVnpu({.physical_id = 4, .template_name = kTemplate}, kLong);
  ASSERT_THAT(made, IsOk());
  agent->Signal(SIGKILL);
  agent->Wait();
  ASSERT_TRUE(WaitDisconnected());
  EXPECT_THAT(client_->ListVnpus(4, kLong), StatusIs(absl::StatusCode::kUnavailable));
  agent = Start();
  ASSERT_TRUE(WaitAllWell(8));
  EXPECT_TRUE(WaitUntil([](const View& v) { return VnpusOf(v, 4) == 1; }));
  const auto listed = client_->ListVnpus(4, kLong);
  ASSERT_THAT(listed, IsOk());
  EXPECT_EQ(*listed, std::vector<vnpu::Vnpu>{*made});
}

TEST_F(AgentProcessTest, ADriverInstalledLaterIsFound) {
  const std::string real = library_;
  library_ = directory_.File("driver/libdcmi.so");
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitForState(LibraryState::kMissing));
  EXPECT_THAT(client_->Current().inventory->library_message,
              AllOf(HasSubstr(library_), HasSubstr("install the Ascend driver")));
  ASSERT_EQ(mkdir(directory_.File("driver").c_str(), 0755), 0);
  std::filesystem::copy_file(real, library_ + ".part");
  std::filesystem::rename(library_ + ".part", library_);
  EXPECT_TRUE(WaitAllWell(8));
}

TEST_F(AgentProcessTest, ALibraryThatCannotBeLoadedIsAFailureThatMayPass) {
  const std::string real = library_;
  library_ = directory_.File("libdcmi.so");
  ASSERT_THAT(WriteFileAtomically(library_, "not ELF"), IsOk());
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitForState(LibraryState::kFailed));
  EXPECT_THAT(client_->Current().inventory->library_message, HasSubstr(library_));
  std::filesystem::copy_file(real, library_ + ".part");
  std::filesystem::rename(library_ + ".part", library_);
  EXPECT_TRUE(WaitAllWell(8));
}

TEST_F(AgentProcessTest, AFailingInitialisationIsRepeated) {
  SetCall("dcmi_init", {{"return", -8005}});
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitForState(LibraryState::kFailed));
  EXPECT_THAT(client_->Current().inventory->library_message,
              AllOf(HasSubstr("cannot be initialised"), HasSubstr("-8005")));
  ClearCalls();
  EXPECT_TRUE(WaitAllWell(8));
}

TEST_F(AgentProcessTest, AFailingEnumerationKeepsTheChips) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  // -8008 (no such device) must not be taken for a missing library.
  SetCall("dcmi_get_card_list", {{"return", -8008}});
  ASSERT_TRUE(WaitForState(LibraryState::kFailed));
  EXPECT_THAT(client_->Current().inventory->library_message, HasSubstr("-8008"));
  EXPECT_THAT(client_->Current().inventory->chips, SizeIs(8));
  ClearCalls();
  EXPECT_TRUE(WaitAllWell(8));
}

TEST_F(AgentProcessTest, ACallThatHangsIsShownAndRecoversWithTheLibrary) {
  const auto agent = Start({"--call-timeout", "100ms"});
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  SetCall("dcmi_get_card_list", {{"hang", true}});
  ASSERT_TRUE(WaitForState(LibraryState::kNotResponding));
  EXPECT_THAT(client_->Current().inventory->chips, SizeIs(8));
  EXPECT_EQ(client_->Current().inventory->chips[0].health, Health::kUnknown);
  EXPECT_THAT(Ping(socket_, kLong), IsOk()) << "the process itself lives";
  ClearCalls();
  EXPECT_TRUE(WaitAllWell(8));
}

TEST_F(AgentProcessTest, ACallThatNeverReturnsEndsTheProcess) {
  auto agent = Start({"--call-timeout", "50ms", "--stuck-timeout", "300ms"});
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  SetCall("dcmi_get_card_list", {{"hang", true}});
  const Exit exit = agent->Wait();
  EXPECT_EQ(exit.code, 3);
  EXPECT_THAT(exit.out, AllOf(HasSubstr("level=error msg=\"a call into the NPU library does not"),
                              HasSubstr("exitCode=3")));
  ASSERT_TRUE(WaitDisconnected());
  EXPECT_THAT(client_->Current().inventory->chips, SizeIs(8));

  ClearCalls();
  agent = Start();
  EXPECT_TRUE(WaitAllWell(8));
}

TEST_F(AgentProcessTest, EndsPromptlyDuringACallThatHangs) {
  const auto agent = Start({"--call-timeout", "50ms"});
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  SetCall("dcmi_get_card_list", {{"hang", true}});
  ASSERT_TRUE(WaitForState(LibraryState::kNotResponding));
  const absl::Duration start = Clock::Real().Monotonic();
  agent->Signal(SIGTERM);
  EXPECT_EQ(agent->Wait().code, 0);
  EXPECT_LT(Clock::Real().Monotonic() - start, absl::Seconds(10));
}

TEST_F(AgentProcessTest, ACrashOfTheLibraryTakesOnlyTheAgentWithIt) {
  auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const auto before = client_->Current().inventory;
  SetCall("dcmi_get_device_health", {{"crash", true}});
  const Exit exit = agent->Wait();
  EXPECT_NE(exit.code, 0);  // a signal; a sanitizer turns it into an exit code
  ASSERT_TRUE(WaitDisconnected());
  EXPECT_EQ(client_->Current().inventory, before);

  // The container's next start finds the socket of the dead one.
  ClearCalls();
  agent = Start();
  ASSERT_TRUE(WaitAllWell(8));
  EXPECT_NE(client_->Current().inventory->agent_instance, before->agent_instance);
}

TEST_F(AgentProcessTest, AStoppedProcessCountsAsDisconnected) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  agent->Signal(SIGSTOP);
  EXPECT_TRUE(WaitDisconnected());
  EXPECT_THAT(Ping(socket_, absl::Milliseconds(100)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  agent->Signal(SIGCONT);
  EXPECT_TRUE(WaitAllWell(8));
}

TEST_F(AgentProcessTest, ASecondAgentIsRefused) {
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const Exit exit = Run(Arguments());
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.out, AllOf(HasSubstr("another agent"), HasSubstr(socket_)));
  EXPECT_THAT(Ping(socket_, kLong), IsOk());
}

TEST_F(AgentProcessTest, PingTellsWhetherAnAgentLives) {
  EXPECT_EQ(Run({"ping", "--control-socket", socket_}).code, 1);
  const auto agent = Start();
  Connect();
  ASSERT_TRUE(WaitAllWell(8));
  const Exit lives = Run({"ping", "--control-socket", socket_});
  EXPECT_EQ(lives.code, 0);
  EXPECT_THAT(lives.out, MatchesRegex("version=[0-9.]+ instance=[0-9a-f]+\n"));

  agent->Signal(SIGSTOP);
  const Exit hangs = Run({"ping", "--control-socket", socket_, "--timeout", "100ms"});
  EXPECT_EQ(hangs.code, 1);
  EXPECT_THAT(hangs.out, HasSubstr("does not answer within 100ms"));
}

TEST_F(AgentProcessTest, LogsJsonOnRequest) {
  const auto agent = Start({"--log-format", "json"});
  ASSERT_TRUE(agent->WaitForOutput("chip appeared"));
  const std::string line = agent->output().substr(0, agent->output().find('\n'));
  EXPECT_EQ(nlohmann::json::parse(line).at("msg"), "ascend-npu-agent starts");
}

TEST_F(AgentProcessTest, BadFlagsAreOneLineAndExitCodeTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--poll-interval", "1x"},
      {"--poll-interval", "0"},
      {"--poll-interval", "-1s"},
      {"--call-timeout", "inf"},
      {"--call-timeout"},
      {"--stuck-timeout", ""},
      {"--chip-timeout", "-1s"},
      {"--control-socket", "relative.sock"},
      {"--control-socket", "/" + std::string(200, 'x')},
      {"--log-format", "xml"},
      {"--v", "much"},
      {"--v", "-1"},
      {"--no-such-flag"},
      {"argument"},
      {"ping", "--control-socket", "relative.sock"},
      {"ping", "--timeout", "1x"},
      {"ping", "--libdcmi", "/x"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    const Exit exit = Run(arguments);
    EXPECT_EQ(exit.code, 2) << absl::StrJoin(arguments, " ");
    EXPECT_THAT(exit.out, MatchesRegex("ascend-npu-agent: [^\n]+\n"));
  }
}

TEST_F(AgentProcessTest, HelpAndVersionAreNoErrors) {
  EXPECT_THAT(Run({"--help"}).out, AllOf(HasSubstr("--call-timeout"), HasSubstr("ping")));
  EXPECT_EQ(Run({"--help"}).code, 0);
  EXPECT_EQ(Run({"ping", "--help"}).code, 0);
  EXPECT_THAT(Run({"--version"}).out, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_EQ(Run({"--version"}).code, 0);
}

TEST_F(AgentProcessTest, AMissingDirectoryOfTheSocketIsAClearError) {
  const Exit exit = Run({"--control-socket", directory_.File("none/agent.sock")});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.out, HasSubstr(directory_.File("none")));
}

}  // namespace
}  // namespace ascend::agent
