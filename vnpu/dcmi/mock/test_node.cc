#include "vnpu/dcmi/mock/test_node.h"

#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <utility>

#include "base/core/file.h"
#include "base/core/status_matchers.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "vnpu/dcmi/mock/node.h"
#include "vnpu/dcmi/mock/tree.h"

namespace ascend::dcmi::mock {
namespace {

std::string MustRead(const std::string& path) {
  auto text = ReadFile(path, 64 << 20);
  EXPECT_THAT(text, IsOk());
  return text.ok() ? *std::move(text) : "";
}

}  // namespace

TestNode::TestNode(absl::string_view shipped_name) {
  Write(MustRead(NodeFile(JoinPath(ASCEND_MOCK_NODES, shipped_name))));
  setenv("ASCEND_MOCK_NODE", directory().c_str(), 1);
}

TestNode::~TestNode() { unsetenv("ASCEND_MOCK_NODE"); }

const std::string& TestNode::Root() {
  if (root_.empty()) {
    root_ = directory_.File("root");
    Node node;
    std::string error;
    EXPECT_TRUE(ParseNode(MustRead(NodeFile(directory())), &node, &error)) << error;
    EXPECT_THAT(CreateTree(node, {.root = root_, .device_nodes = false}), IsOk());
  }
  return root_;
}

void TestNode::Set(int physical_id, const std::vector<std::string>& assignments) {
  ASSERT_THAT(SetOnChip(directory(), physical_id, assignments), IsOk());
}

void TestNode::Call(const CallEdit& edit) { ASSERT_THAT(SetCall(directory(), edit), IsOk()); }

void TestNode::Edit(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json node = nlohmann::json::parse(MustRead(NodeFile(directory())));
  change(node);
  Write(node.dump());
}

void TestNode::Write(absl::string_view node_json) {
  ASSERT_THAT(WriteFileAtomically(NodeFile(directory()), node_json, {.durable = false}), IsOk());
}

std::vector<std::string> TestNode::ShippedNames() {
  auto names = ListDirectory(ASCEND_MOCK_NODES);
  EXPECT_THAT(names, IsOk());
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

std::string TestNode::LibraryPath() { return ASCEND_MOCK_LIBRARY; }

std::string TestNode::CopyLibrary(const std::string& directory,
                                  const std::vector<std::string>& hidden) {
  std::string bytes = MustRead(LibraryPath());
  for (const std::string& name : hidden) {
    // A renamed symbol no longer fits its hash: a look-up finds neither name.
    const std::string entry = std::string(1, '\0') + name + std::string(1, '\0');
    const size_t position = bytes.find(entry);
    EXPECT_NE(position, std::string::npos) << name;
    if (position != std::string::npos) bytes[position + 1] = 'x';
  }
  const std::string path = JoinPath(directory, "libdcmi.so");
  EXPECT_THAT(WriteFileAtomically(path, bytes, {.mode = 0755, .durable = false}), IsOk());
  return path;
}

ReadWatch::ReadWatch(const std::string& directory) : fd_(inotify_init1(IN_CLOEXEC)) {
  EXPECT_GE(inotify_add_watch(fd_.get(), directory.c_str(), IN_CLOSE_NOWRITE), 0);
}

void ReadWatch::Wait() const {
  char events[4096];
  EXPECT_GT(read(fd_.get(), events, sizeof(events)), 0);
}

}  // namespace ascend::dcmi::mock
