#!/usr/bin/env bash
# Harms every file system call of a plugin's life, one run each (docs/faults.md); ends with
# "N passed, N failed".
#   fault.sh                every point with every kind of harm
#   fault.sh kill-after:17  one run, with all that the program says (in the docs: kinds of harm)
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset dev >/dev/null
cmake --build --preset dev --target claims_fault_test
log=build/dev/fault.log
status=0
if (($# > 0)); then
  ASCEND_FAULT_ONLY=$1 build/dev/test/fault/claims_fault_test | tee "$log" || status=1
else
  ASCEND_FAULT_ALL=1 build/dev/test/fault/claims_fault_test >"$log" 2>&1 || status=1
fi
# The test's own line counts runs; a test program that died has none.
summary=$(sed -nE 's/^fault: (([0-9]+) points, ([0-9]+) runs: .*)$/\1/p' "$log")
if ((status)); then
  (($# > 0)) || grep -vE '^\[ +(RUN|OK) +\]' "$log" | tail -n 100 >&2
  echo "The whole output is in $log" >&2
  [[ -n $summary ]] || summary="0 passed, 1 failed"
fi
echo "fault: $summary"
exit "$status"
