#!/usr/bin/env bash
# Builds the fuzz targets of cdi/fuzz (preset `fuzz`) and runs each for some time from a copy of its
# corpus; ends with "N passed, M failed". Inputs that crash, hang or eat memory are kept in
# build/fuzz/findings; run the target with such a file as its argument to see it again.
#   fuzz.sh [SECONDS] [TARGET...]   e.g. fuzz.sh 60 fuzz_yaml; default: 30 seconds, all targets
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=30
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
targets=("$@")
if ((${#targets[@]} == 0)); then
  for source in cdi/fuzz/fuzz_*.cc; do targets+=("$(basename "$source" .cc)"); done
fi

findings=build/fuzz/findings
mkdir -p "$findings"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
for target in "${targets[@]}"; do
  corpus=$work/$target
  mkdir "$corpus"
  [[ ! -d cdi/fuzz/corpus/$target ]] || cp cdi/fuzz/corpus/"$target"/* "$corpus"
  log=build/fuzz/$target.log
  if "build/fuzz/cdi/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=8192 -artifact_prefix="$findings/$target-" "$corpus" >"$log" 2>&1; then
    passed=$((passed + 1))
    echo "$target: $(sed -nE 's/^Done ([0-9]+) runs.*/\1 runs/p' "$log")"
  else
    failed=$((failed + 1))
    echo "$target failed; its output is in $log:" >&2
    tail -n 40 "$log" >&2
  fi
done
echo "fuzz: $passed passed, $failed failed"
((failed == 0))
