#!/usr/bin/env bash
# The part of consumers.sh that changes mounts: call it in a mount namespace of its own.
#   podman.sh DIR ASCEND_CDI     DIR/cdi holds the CDI files, DIR/host the files of the mock node
set -euo pipefail

dir=$1 ascend_cdi=$2

# The mock node's files appear in their places, and podman's own state stays in DIR.
make_node() {
  local top name
  mkdir -p "$dir/dev" "$dir/overlay"
  mount -t tmpfs -o mode=755 tmpfs "$dir/overlay"
  for top in etc usr/local; do
    mkdir -p "$dir/overlay/$top/upper" "$dir/overlay/$top/work"
    mkdir -p "$dir/host/$top"
    mount -t overlay -o "lowerdir=$dir/host/$top:/$top,upperdir=$dir/overlay/$top/upper,workdir=$dir/overlay/$top/work" overlay "/$top"
  done
  mount -t tmpfs -o mode=755 tmpfs "$dir/dev"
  for name in null zero full random urandom tty; do
    cp -a "/dev/$name" "$dir/dev/"
  done
  mkdir "$dir/dev/pts" "$dir/dev/shm" "$dir/dev/mqueue"
  ln -s pts/ptmx "$dir/dev/ptmx"
  ln -s /proc/self/fd "$dir/dev/fd"
  cp -a "$dir/host/dev/." "$dir/dev/"
  mount --rbind /dev/pts "$dir/dev/pts"
  mount --bind "$dir/dev" /dev
  mount --bind "$dir/dev/pts" /dev/pts 2>/dev/null || mount -t devpts -o ptmxmode=666 devpts /dev/pts
  mount -t tmpfs tmpfs /dev/shm
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /etc/cdi /run/cdi /etc/containers
  mount -t tmpfs tmpfs /etc/cdi
  cp "$dir"/cdi/* /run/cdi/
  echo '{"default": [{"type": "insecureAcceptAnything"}]}' >/etc/containers/policy.json
}

# The driver that wrote the CDI files is gone, and with it the metadata that it mounts. Its directory
# was one of its own: nothing else is there.
make_metadata() {
  local path
  while read -r path; do
    metadata_roots+=("${path%%/kubelet/*}")
    mkdir -p "${path%/*}"
    echo '{}' >"$path"
  done < <(jq -r '.devices[].containerEdits.mounts[]?.hostPath | select(contains("/device-metadata/"))' /run/cdi/*.json)
}
metadata_roots=()
trap '((${#metadata_roots[@]} == 0)) || rm -rf "${metadata_roots[@]}"' EXIT

make_rootfs() {
  mkdir -p "$dir/rootfs/bin" "$dir/rootfs/dev" "$dir/rootfs/proc" "$dir/rootfs/sys" "$dir/rootfs/etc" "$dir/rootfs/tmp"
  cp /bin/busybox "$dir/rootfs/bin/busybox"
  ln -sf busybox "$dir/rootfs/bin/sh"
}

podman_run() { # RUNTIME DEVICE... -- COMMAND...
  local runtime=$1 options=()
  shift
  while [[ $1 != -- ]]; do
    options+=(--device "$1")
    shift
  done
  shift
  podman --root "$dir/storage" --runroot /run/podman --tmpdir /run/podman-tmp --cgroup-manager cgroupfs \
    --storage-driver vfs --events-backend file --runtime "$runtime" \
    run --rm --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --net none --security-opt seccomp=unconfined \
    "${options[@]}" --rootfs "$dir/rootfs" "$@"
}

# A runtime that keeps the configuration instead of running it.
make_recorder() {
  cat >"$dir/recorder" <<RECORDER
#!/bin/sh
while [ \$# -gt 0 ]; do
  case \$1 in
    --bundle | -b) cp "\$2/config.json" "$dir/config.json" ;;
  esac
  shift
done
echo "the configuration is kept" >&2
exit 1
RECORDER
  chmod +x "$dir/recorder"
}

# DIR/config.json as podman gives it to a runtime.
record() { # DEVICE...
  rm -f "$dir/config.json"
  podman_run "$dir/recorder" "$@" -- /bin/busybox true >"$dir/podman.log" 2>&1 || true
  [[ -s $dir/config.json ]] || {
    echo "podman gave its runtime no configuration:"
    cat "$dir/podman.log"
    return 1
  }
}

# What CDI changes, apart from what podman makes up anew for each container. Variables come in any
# order, as podman has them in a map before the injection.
relevant() {
  jq -S '{env: ([.process.env[] | select(test("^(HOSTNAME|container)=") | not)] | sort), devices: .linux.devices,
          rules: .linux.resources.devices, hooks: .hooks, gids: .process.user.additionalGids,
          mounts: [.mounts[] | select(.destination | test("^/(run|etc|dev|sys|proc)(/|$)") | not)
                   | {destination, type, source, options}]}' "$1"
}

# podman with the device has the same as podman without it and ours injected.
same_configuration() { # DEVICE...
  record || return 1
  cp "$dir/config.json" "$dir/before.json"
  record "$@" || return 1
  local device options=()
  for device in "$@"; do options+=(--device "$device"); done
  # podman 4.3 has the library's v0.5.2, which injects as v0.5.4 does.
  "$ascend_cdi" --spec-dir /etc/cdi --spec-dir /run/cdi inject --as-library v0.5.4 "${options[@]}" \
    <"$dir/before.json" >"$dir/ours.json"
  diff <(relevant "$dir/config.json") <(relevant "$dir/ours.json") || {
    echo "podman (<) and ascend-cdi (>) differ for $*"
    return 1
  }
}

nodes_of() { # the device nodes of a configuration made by CDI
  jq -r '.linux.devices[].path' "$1"
}

main() {
  make_node
  make_metadata
  make_rootfs
  make_recorder
  local devices device path
  mapfile -t devices < <("$ascend_cdi" --spec-dir /run/cdi --json list | jq -r '.devices[].name')
  ((${#devices[@]} > 0)) || {
    echo "no devices in /run/cdi"
    exit 1
  }
  for device in "${devices[@]}"; do
    same_configuration "$device"
  done
  same_configuration "${devices[@]}"
  # All the container sees, under a real runtime.
  mapfile -t paths < <(nodes_of "$dir/config.json")
  for path in "${paths[@]}"; do echo "test -c $path"; done >"$dir/rootfs/check"
  echo "echo all there" >>"$dir/rootfs/check"
  podman_run "$(command -v runc)" "${devices[@]}" -- /bin/sh -e /check | grep -x 'all there'
}

main
