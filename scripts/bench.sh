#!/usr/bin/env bash
# Measures the driver on the simulated node beside what no driver can be faster than, and the CDI
# library beside the Go library on the same inputs, each in one run.
#   bench.sh [--check] [--driver-only] [MOCK_NODE]
# --check: exit 1 if the driver misses a goal. Figures go to build/bench/results.json.
set -euo pipefail
cd "$(dirname "$0")/.."
node=16x910B2C
driver_only=0
flags=()
for argument in "$@"; do
  case $argument in
    --check) flags+=("$argument") ;;
    --driver-only) driver_only=1 ;;
    -*)
      echo "bench.sh: unknown flag $argument" >&2
      exit 2
      ;;
    *) node=$argument ;;
  esac
done

build() { # TARGET...
  cmake --build --preset release --target "$@" >build/release/bench-build.log 2>&1 || {
    cat build/release/bench-build.log >&2
    exit 1
  }
}

cmake --preset release -D ASCEND_DRA_BUILD_BENCHMARKS=ON >/dev/null
build ascend-npu-agent ascend-dra-kubeletplugin ascend-mock-node ascend_mock_dcmi ascend-dra-bench
mkdir -p build/bench
release=build/release
"$release/test/bench/ascend-dra-bench" --mock-node "$node" --results build/bench/results.json \
  --bin-dir "$release/vnpu/agent" --bin-dir "$release/kubeletplugin" \
  --bin-dir "$release/vnpu/dcmi/mock" --mock-lib "$release/vnpu/dcmi/mock/lib/libdcmi.so" \
  --mock-nodes-dir vnpu/dcmi/mock/nodes ${flags[@]+"${flags[@]}"}
((driver_only)) && exit

build cdi_bench
reference=$(test/cdi/build_reference.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$release/cdi/bench/cdi_bench" --write-inputs="$work/inputs"
"$release/cdi/bench/cdi_bench" --benchmark_format=json >"$work/cpp.json" 2>/dev/null
"$reference" bench --inputs "$work/inputs" >"$work/go.jsonl"
echo
python3 scripts/compare_bench.py "$work/cpp.json" "$work/go.jsonl"
