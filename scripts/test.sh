#!/usr/bin/env bash
# Configures, builds and runs the tests of one CMake preset; ends with "N passed, N failed".
#   test.sh dev|release|asan|tsan [CTEST ARGUMENTS...]
# With tsan only what is labelled `concurrency` is built and run.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?usage: test.sh PRESET [CTEST ARGUMENTS...]}
shift

start=$SECONDS
cmake --preset "$preset" >/dev/null
target=all
[[ $preset == tsan ]] && target=concurrency_tests
cmake --build --preset "$preset" --target "$target"

log=build/$preset/test.log
failed=0
ctest --preset "$preset" --verbose --no-tests=error "$@" >"$log" 2>&1 || failed=1

# One CTest entry is one program with many tests: count the tests.
passed=$(sed -nE 's/^[0-9]+: \[  PASSED  \] ([0-9]+) tests?\.$/\1/p' "$log" | paste -sd+ | bc)
failures=$(sed -nE 's/^[0-9]+: \[  FAILED  \] ([0-9]+) tests?, listed below:$/\1/p' "$log" | paste -sd+ | bc)
skipped=$(sed -nE 's/^[0-9]+: \[  SKIPPED \] ([0-9]+) tests?, listed below:$/\1/p' "$log" | paste -sd+ | bc)
passed=${passed:-0} failures=${failures:-0} skipped=${skipped:-0}
if ((failed)); then
  # A program that crashed or hung has no summary of its own.
  grep -E '^[0-9]+: \[  FAILED  \]|\*\*\*(Failed|Timeout|Exception)' "$log" >&2 || true
  # The end of what each failed program said, for those who see no more than this output.
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#([0-9]+): .*\*\*\*.*/\1/p' "$log" | while read -r number; do
    grep -E "^$number: " "$log" | tail -n 60 | cut -c1-200 >&2
  done
  ((failures > 0)) || failures=1
  echo "The whole output is in $log" >&2
fi
((skipped == 0)) || grep -E '^[0-9]+: \[  SKIPPED \]' "$log" >&2
echo "test ($preset): $passed passed, $failures failed, $skipped skipped in $((SECONDS - start)) s"
exit "$failed"
