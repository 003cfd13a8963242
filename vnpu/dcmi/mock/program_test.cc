// The command line of ascend-mock-node.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "base/core/temp_dir.h"
#include "gtest/gtest.h"

namespace {

using ::ascend::IsOkAndHolds;
using ::ascend::ReadFile;
using ::testing::HasSubstr;
using ::testing::Not;

struct Result {
  int exit_code;
  std::string output;  // both streams
};

Result Tool(const std::string& arguments) {
  FILE* const pipe = popen((ASCEND_MOCK_NODE_PROGRAM " " + arguments + " 2>&1").c_str(), "r");
  std::string output;
  char buffer[4096];
  size_t count;
  while ((count = fread(buffer, 1, sizeof(buffer), pipe)) > 0) output.append(buffer, count);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

class MockNodeProgramTest : public ::testing::Test {
 protected:
  std::string root() const { return directory_.File("root"); }
  std::string node() const { return directory_.File("node"); }
  void Create() {
    const Result result =
        Tool("create --node 8x910B3 --no-device-nodes --root " + root() + " --node-dir " + node());
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  ascend::TempDir directory_;
};

TEST_F(MockNodeProgramTest, ListsTheShippedNodes) {
  const Result result = Tool("list");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* name : {"8x910A", "8x910B3", "16xA3", "2x300I-sparse", "1x950PR"}) {
    EXPECT_THAT(result.output, HasSubstr(name));
  }
}

TEST_F(MockNodeProgramTest, CreatesANodeAndBreaksIt) {
  Create();
  EXPECT_THAT(ReadFile(root() + "/etc/hccn.conf"), IsOkAndHolds(HasSubstr("address_0=")));
  EXPECT_EQ(
      Tool("chip --node-dir " + node() + " --physical-id 3 --set present=false --set health=3")
          .exit_code,
      0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"present\": false")));
  EXPECT_EQ(
      Tool("call --node-dir " + node() + " --name dcmi_get_card_list --delay 100ms").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"delayMs\": 100")));
  EXPECT_EQ(
      Tool("call --node-dir " + node() + " --name dcmi_get_card_list --return -8005").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"return\": -8005")));
  EXPECT_EQ(Tool("call --node-dir " + node() + " --clear").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"calls\": {}")));
}

TEST_F(MockNodeProgramTest, PutsAProcessOnAChipAndTakesItOff) {
  Create();
  const std::string chip = "process --node-dir " + node() + " --physical-id 3 ";
  EXPECT_EQ(Tool(chip + "--pid 4242 --memory-bytes 1073741824").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"pid\": 4242")));
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("1073741824")));
  EXPECT_EQ(Tool(chip + "--pid 4242 --remove").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(Not(HasSubstr("4242"))));
  const Result gone = Tool(chip + "--pid 4242 --remove");
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.output, HasSubstr("no process 4242"));
  EXPECT_EQ(Tool(chip + "--pid 17").exit_code, 0);
  EXPECT_EQ(Tool(chip + "--clear").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(Not(HasSubstr("\"pid\": 17"))));
}

TEST_F(MockNodeProgramTest, MakesVnpusAsAnAdministrator) {
  Create();
  const std::string directory = " --node-dir " + node() + " ";
  Result result = Tool("vnpu create" + directory + "--physical-id 2 --template vir05_1c_16g");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output, "132\n");
  EXPECT_EQ(
      Tool("vnpu create" + directory + "--physical-id 0 --template vir10_3c_32g --id 110").output,
      "110\n");
  EXPECT_EQ(Tool("vnpu set" + directory + "--id 110 busy=true status=1").exit_code, 0);
  result = Tool("vnpu list" + directory);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("\"template\": \"vir10_3c_32g\""));
  EXPECT_THAT(result.output, HasSubstr("\"busy\": true"));
  EXPECT_EQ(Tool("vnpu destroy" + directory + "--id 110").exit_code, 0);
  result = Tool("vnpu destroy" + directory + "--id 110");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("110"));
  EXPECT_EQ(Tool("reboot" + directory + "--permute-ids").exit_code, 0);
  EXPECT_THAT(Tool("vnpu list" + directory).output, HasSubstr("\"id\": 133"));
  EXPECT_EQ(Tool("vnpu mode" + directory + "--recovery off --vdevice vm").exit_code, 0);
  EXPECT_EQ(Tool("reboot" + directory).exit_code, 0);
  result = Tool("vnpu list" + directory);
  EXPECT_THAT(result.output, HasSubstr("\"vnpus\": []"));
  EXPECT_THAT(result.output, HasSubstr("\"vdeviceMode\": \"vm\""));
  EXPECT_THAT(result.output, HasSubstr("\"recovery\": false"));
}

TEST_F(MockNodeProgramTest, LetsFaultsComeAndGo) {
  Create();
  const std::string chip = " --node-dir " + node() + " --chip 3 ";
  Result result = Tool("fault add" + chip + "--code 80E01801 --severity critical --text HBM");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  result = Tool("fault list --node-dir " + node());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("\"code\": \"80E01801\""));
  EXPECT_THAT(result.output, HasSubstr("\"severity\": \"critical\""));
  EXPECT_EQ(Tool("fault oneshot" + chip + "--code 8C2FA009").exit_code, 0);
  EXPECT_EQ(Tool("fault add" + chip + "--code 1 --no-event --no-list").exit_code, 0);
  EXPECT_EQ(Tool("fault clear" + chip + "--code 0x80e01801").exit_code, 0);
  EXPECT_EQ(Tool("fault clear" + chip + "--all --no-event").exit_code, 0);
  EXPECT_THAT(Tool("fault list --node-dir " + node()).output, HasSubstr("\"faults\": []"));
  const auto events = ReadFile(node() + "/state/events.jsonl");
  ASSERT_THAT(events, ascend::IsOk());
  EXPECT_EQ(std::count(events->begin(), events->end(), '\n'), 3);
  result = Tool("fault clear" + chip + "--all");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("no such fault"));
  result = Tool("fault add" + chip + "--code hbm");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("hex digits"));
}

TEST_F(MockNodeProgramTest, LosesChipsAndLinks) {
  Create();
  const std::string chip = " --node-dir " + node() + " --physical-id 3 ";
  EXPECT_EQ(Tool("network" + chip + "down").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"networkHealth\": 3")));
  EXPECT_EQ(Tool("lose" + chip).exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"present\": false")));
  EXPECT_EQ(Tool("return" + chip + "--bus-id 0000:7f:00.0 --logic-id 7").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("0000:7f:00.0")));
  EXPECT_EQ(Tool("return" + chip + "--logic-id 9").exit_code, 1);
  EXPECT_EQ(Tool("resets --node-dir " + node() +
                 " --duration 50ms --unit chip --stops-at 2 "
                 "--outband off")
                .exit_code,
            0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"durationMs\": 50")));
  EXPECT_EQ(Tool("events --node-dir " + node() + " --lose recovered --delay 10ms").exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"recovered\"")));
  EXPECT_EQ(Tool("events --node-dir " + node()).exit_code, 0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(Not(HasSubstr("\"recovered\""))));
}

TEST_F(MockNodeProgramTest, RefusesFaultsThatMakeNoSense) {
  Create();
  const std::string chip = " --node-dir " + node() + " --chip 3 ";
  for (const std::string& arguments :
       {"fault" + chip, "fault add" + chip, "fault clear" + chip, std::string("fault add --code 1"),
        "fault clear" + chip + "--all --code 1", "fault add" + chip + "--code 1 --severity bad",
        "network" + chip + "slow", "network" + chip, "resets --node-dir " + node(),
        "resets --node-dir " + node() + " --duration soon",
        "resets --node-dir " + node() + " --unit rack",
        "events --node-dir " + node() + " --lose all", std::string("lose --chip 3")}) {
    EXPECT_EQ(Tool(arguments).exit_code, 2) << arguments;
  }
  EXPECT_EQ(Tool("lose --node-dir " + node() + " --chip 99").exit_code, 1);
}

TEST_F(MockNodeProgramTest, StandsForTheKernelUntilItIsTold) {
  Create();
  const std::string directory = " --node-dir " + node() + " ";
  ASSERT_EQ(Tool("vnpu create" + directory + "--physical-id 2 --template vir05_1c_16g").exit_code,
            0);
  FILE* const kernel = popen(("exec " ASCEND_MOCK_NODE_PROGRAM " kernel --no-device-nodes --root " +
                              root() + directory + "& echo $!; wait $!")
                                 .c_str(),
                             "r");
  ASSERT_NE(kernel, nullptr);
  char line[64];
  ASSERT_NE(fgets(line, sizeof(line), kernel), nullptr);
  const int pid = atoi(line);
  ASSERT_GT(pid, 1);
  ASSERT_NE(fgets(line, sizeof(line), kernel), nullptr);
  EXPECT_STREQ(line, "ready\n");
  EXPECT_THAT(ascend::ListDirectory(root() + "/dev"),
              IsOkAndHolds(::testing::ElementsAre("vdavinci132")));
  EXPECT_EQ(kill(pid, SIGTERM), 0);
  EXPECT_EQ(pclose(kernel), 0);
}

TEST_F(MockNodeProgramTest, TakesACallThatFailsAfterItsWork) {
  Create();
  EXPECT_EQ(Tool("call --node-dir " + node() +
                 " --name dcmi_create_vdevice --physical-id 1 --return -8005 --after-work")
                .exit_code,
            0);
  EXPECT_THAT(ReadFile(node() + "/node.json"), IsOkAndHolds(HasSubstr("\"afterWork\": true")));
}

TEST_F(MockNodeProgramTest, CopiesItsDescriptionBelowTheRootByDefault) {
  const Result result = Tool("create --node 16xA3 --no-device-nodes --root " + root());
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(ReadFile(root() + "/etc/ascend-dra/mock-node/node.json"),
              IsOkAndHolds(HasSubstr("\"A3\"")));
}

TEST_F(MockNodeProgramTest, RejectsABadCommandLineInOneLine) {
  for (const char* arguments : {"",
                                "explode",
                                "create",
                                "create --node 8x910B3",
                                "create --node x --root y --major 0",
                                "call --node-dir x --name dcmi_init",
                                "call --node-dir x --hang",
                                "call --node-dir x --name dcmi_init --delay soon",
                                "call --node-dir x --name dcmi_init --clear --hang",
                                "chip --node-dir x --physical-id 1",
                                "process --node-dir x --physical-id 1",
                                "process --node-dir x --physical-id 1 --pid -4",
                                "process --node-dir x --physical-id 1 --clear --pid 4",
                                "process --node-dir x --physical-id 1 --pid many",
                                "call --node-dir x --name dcmi_init --after-work",
                                "call --node-dir x --name dcmi_init --after-work --clear",
                                "vnpu",
                                "vnpu list",
                                "vnpu create --node-dir x --physical-id 1",
                                "vnpu create --node-dir x --template vir01",
                                "vnpu destroy --node-dir x",
                                "vnpu set --node-dir x --id 100",
                                "vnpu mode --node-dir x",
                                "vnpu mode --node-dir x --recovery maybe",
                                "vnpu mode --node-dir x --vdevice docker",
                                "reboot",
                                "kernel --node-dir x",
                                "kernel --node-dir x --root y --major 0"}) {
    const Result result = Tool(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.output.find('\n'), result.output.size() - 1) << result.output;
  }
}

TEST_F(MockNodeProgramTest, NamesWhatFailed) {
  Result result = Tool("create --node 9x910 --root " + root());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("9x910"));
  Create();
  result = Tool("chip --node-dir " + node() + " --physical-id 11 --set present=false");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("11"));
  result = Tool("vnpu create --node-dir " + node() + " --physical-id 1 --template vir02");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("vir02"));
  result = Tool("vnpu set --node-dir " + node() + " --id 100 busy=true");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("no vNPU 100"));
  const std::string commands[] = {"vnpu create --physical-id 1 --template vir02", "reboot",
                                  "kernel --no-device-nodes --root " + root()};
  for (const std::string& command : commands) {
    result = Tool(command + " --node-dir " + root() + "/none");
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_THAT(result.output, HasSubstr("none")) << command;
  }
}

TEST_F(MockNodeProgramTest, PrintsHelpAndVersion) {
  EXPECT_EQ(Tool("--help").exit_code, 0);
  EXPECT_EQ(Tool("call --help").exit_code, 0);
  EXPECT_EQ(Tool("process --help").exit_code, 0);
  EXPECT_EQ(Tool("--version").exit_code, 0);
}

}  // namespace
