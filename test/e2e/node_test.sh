#!/usr/bin/env bash
# node.sh leaves nothing behind and hands on the exit status of its command.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT

snapshot() {
  {
    sort /proc/self/mountinfo | cut -d' ' -f3-
    ip -oneline link | cut -d: -f2
    find /sys/fs/cgroup -maxdepth 2 -type d -name 'ascend-dra-e2e-*'
    find /dev -maxdepth 1 -name 'davinci*'
    find /var/lib/kubelet /var/lib/containerd /etc/cdi /var/run/cdi /usr/local/Ascend -maxdepth 1 2>/dev/null || true
    find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'ascend-dra-e2e.*'
    pgrep -x 'kubelet|containerd|etcd|kube-scheduler' || true
  } >"$state/$1"
}

expect() {
  local wanted=$1 status=0
  shift
  snapshot before
  "$here/node.sh" run --no-driver -- "$@" 2>"$state/stderr" || status=$?
  if ((status != wanted)); then
    cat "$state/stderr"
    echo "node_test.sh: '$*' ended with $status instead of $wanted" >&2
    exit 1
  fi
  snapshot after
  if ! diff "$state/before" "$state/after"; then
    echo "node_test.sh: '$*' left something behind (see above)" >&2
    exit 1
  fi
}

expect 0 kubectl get nodes
expect 7 sh -c 'mknod /dev/davinci9 c 236 9; mkdir -p /usr/local/Ascend; sleep 1000 & exit 7'
rm -rf "$(sed -n 's/^node.sh: logs are in //p' "$state/stderr")"
echo "node_test.sh: 2 passed"
