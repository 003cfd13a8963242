#!/usr/bin/env bash
# Lets programs that are not ours read the CDI files of the real driver, for every shipped mock node:
#   - the reference library loads them without an error and finds the same devices as we do
#   - podman injects each device into a container: the configuration that its runtime gets has what
#     `ascend-cdi inject` adds
#   - one container per node runs under runc and sees the device nodes
#   consumers.sh --build DIR     a build tree with ascend-dra-sim, the driver, the mock and ascend-cdi
# Takes root; works in mount namespaces of its own, so that the host's /etc/cdi and /dev stay as they
# are. Needs podman, runc, busybox-static and jq.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
nodes_dir=$root/vnpu/dcmi/mock/nodes
build='' ascend_cdi=''
passed=0 failed=0

die() {
  echo "consumers.sh: $*" >&2
  exit 2
}

parse() {
  while (($#)); do
    case $1 in
      --build)
        (($# > 1)) || die "$1 needs a value"
        build=$(cd "$2" && pwd)
        shift
        ;;
      -h | --help) sed -n '2,9s/^# *//p' "$0" && exit 0 ;;
      *) die "unknown argument $1 (see --help)" ;;
    esac
    shift
  done
  [[ -n $build ]] || die "--build is missing"
  ((EUID == 0)) || die "must be root: device nodes are made"
  local program
  for program in podman runc jq unshare; do
    command -v "$program" >/dev/null || die "$program is missing: apt-get install --no-install-recommends podman runc jq"
  done
  [[ -x /bin/busybox ]] || die "/bin/busybox is missing: apt-get install busybox-static"
  ascend_cdi=$build/cdi/ascend-cdi
  [[ -x $ascend_cdi ]] || die "$ascend_cdi is missing"
}

check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$work/check.log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    sed 's/^/    /' "$work/check.log" | tail -n 20
  fi
}

# What ascend-dra-plugin writes on a mock node.
write_files() { # NODE DIR
  "$build/test/sim/ascend-dra-sim" cdi-files --mock-node "$1" --out "$2" --mock-nodes-dir "$nodes_dir" \
    --bin-dir "$build/vnpu/agent" --bin-dir "$build/kubeletplugin" --bin-dir "$build/vnpu/dcmi/mock" \
    --mock-lib "$build/vnpu/dcmi/mock/lib/libdcmi.so"
}

reference_agrees() { # DIR
  "$reference" load "$1" | jq -r '.devices[]' >"$work/theirs" || return 1
  "$ascend_cdi" --spec-dir "$1" --json list | jq -r '.devices[].name' >"$work/ours" || return 1
  [[ -s $work/ours ]] && diff "$work/theirs" "$work/ours"
}

main() {
  parse "$@"
  work=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory of now
  trap "rm -rf '$work'" EXIT
  reference=$("$here/build_reference.sh")
  local node path
  for path in "$nodes_dir"/*/; do
    node=$(basename "$path")
    mkdir -p "$work/$node/cdi"
    check "$node: the driver writes CDI files" write_files "$node" "$work/$node/cdi"
    check "$node: the reference library loads them" reference_agrees "$work/$node/cdi"
    check "$node: a mock node for podman" "$build/vnpu/dcmi/mock/ascend-mock-node" create --node "$node" \
      --nodes-dir "$nodes_dir" --root "$work/$node/host"
    check "$node: podman" unshare --mount --propagation private \
      "$here/podman.sh" "$work/$node" "$ascend_cdi"
  done
  echo "cdi consumers: $passed passed, $failed failed"
  ((failed == 0 && passed > 0))
}

main "$@"
