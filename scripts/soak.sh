#!/usr/bin/env bash
# Random schedules, for longer than in the tests: claims in one process against a model, sixty-four
# callers at once, and the real programs killed round after round. Ends with "N passed, N failed".
#   soak.sh [SECONDS]          default: 200 rounds of a fixed seed; SECONDS: that long, with a new seed
#   SEED=N|random soak.sh ...  the schedule of that seed again, or a new one
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-0}
[[ $seconds =~ ^[0-9]+$ ]] || {
  echo "usage: soak.sh [SECONDS]" >&2
  exit 2
}
if [[ ${SEED:-} =~ ^[0-9]+$ ]]; then
  export ASCEND_SOAK_SEED=$SEED
elif ((seconds > 0)) || [[ ${SEED:-} == random ]]; then
  ASCEND_SOAK_SEED=$(date +%s)
  export ASCEND_SOAK_SEED
fi

build=build/release
cmake --preset release >/dev/null
cmake --build --preset release --target claims_model_test claims_race_test driver_soak_test \
  >"$build/soak-build.log" 2>&1 || {
  cat "$build/soak-build.log" >&2
  exit 1
}

passed=0
failed=0
run() { # NAME COMMAND...
  local name=$1 start=$SECONDS log=$build/soak-$1.log
  shift
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    grep -E '^(seed|growth)|temporary files' "$log" | cut -d: -f1,2 | cut -c1-200 || true
  else
    failed=$((failed + 1))
    echo "soak: $name failed; its output is in $log:" >&2
    grep -v '^time=' "$log" | tail -n 100 | cut -c1-300 >&2
  fi
  echo "soak: $name took $((SECONDS - start)) s"
}

# A schedule with an arbitrary seed is one of the four: the others would only repeat it.
filter='*'
[[ -z ${ASCEND_SOAK_SEED:-} ]] || filter='*/0'
run claims_model "$build/test/soak/claims_model_test" --gtest_filter="$filter"
run claims_race "$build/test/soak/claims_race_test"
if ((seconds > 0)); then
  ASCEND_SOAK_SECONDS=$seconds run driver "$build/test/soak/driver_soak_test"
else
  ASCEND_SOAK_ROUNDS=200 run driver "$build/test/soak/driver_soak_test"
fi
echo "soak: $passed passed, $failed failed"
((failed == 0))
