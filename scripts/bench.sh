#!/usr/bin/env bash
# Measures the driver on the simulated node, and the CDI library beside the Go library on the same
# inputs, in one run.
#   bench.sh MOCK_NODE
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/demo.sh "${1:-8x910B3}" measure

cmake --preset release -D ASCEND_DRA_BUILD_BENCHMARKS=ON >/dev/null
cmake --build --preset release --target cdi_bench >build/release/bench-build.log 2>&1 || {
  cat build/release/bench-build.log >&2
  exit 1
}
reference=$(test/cdi/build_reference.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/release/cdi/bench/cdi_bench --write-inputs="$work/inputs"
build/release/cdi/bench/cdi_bench --benchmark_format=json >"$work/cpp.json" 2>/dev/null
"$reference" bench --inputs "$work/inputs" >"$work/go.jsonl"
echo
python3 scripts/compare_bench.py "$work/cpp.json" "$work/go.jsonl"
