#!/usr/bin/env bash
# The CDI library against the reference: recorded and generated cases, and what the driver writes read
# by the Go library and by podman. Ends with "cdi: N passed, M failed".
#   cdi.sh [--seed N|random]
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset release >/dev/null
cmake --build --preset release --target \
  ascend-cdi ascend-npu-agent ascend-dra-kubeletplugin ascend-mock-node ascend_mock_dcmi ascend-dra-sim \
  >build/release/cdi-build.log 2>&1 || {
  cat build/release/cdi-build.log >&2
  exit 1
}

passed=0
failed=0
step() { # COMMAND...: prints what it prints and counts its last "N passed, M failed"
  local log status=0
  log=$(mktemp)
  "$@" 2>&1 | tee "$log" || status=1
  if [[ $(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1) =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    ((status == 0 || BASH_REMATCH[2] > 0)) || failed=$((failed + 1))
  else
    failed=$((failed + 1))
  fi
  rm -f "$log"
}

step build/release/cdi/ascend-cdi replay cdi/testdata/*.jsonl
step test/cdi/run.sh --ascend-cdi build/release/cdi/ascend-cdi "$@"
step test/cdi/consumers.sh --build build/release
echo "cdi: $passed passed, $failed failed"
((failed == 0))
