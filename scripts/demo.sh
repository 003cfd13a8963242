#!/usr/bin/env bash
# Builds what ships and runs it on a mock node, with a simulated API server and kubelet.
#   demo.sh MOCK_NODE
set -euo pipefail
cd "$(dirname "$0")/.."
chips=${1:-8x910B3}

cmake --preset release >/dev/null
cmake --build --preset release --target \
  ascend-npu-agent ascend-dra-kubeletplugin ascend-mock-node ascend_mock_dcmi ascend-dra-sim \
  >build/release/demo-build.log 2>&1 || {
  cat build/release/demo-build.log >&2
  exit 1
}
exec build/release/test/sim/ascend-dra-sim demo --mock-node "$chips" \
  --bin-dir build/release/vnpu/agent --bin-dir build/release/kubeletplugin \
  --bin-dir build/release/vnpu/dcmi/mock --mock-lib build/release/vnpu/dcmi/mock/lib/libdcmi.so \
  --mock-nodes-dir vnpu/dcmi/mock/nodes
