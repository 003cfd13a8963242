#!/usr/bin/env bash
# Builds the programs of the end-to-end node, or finds them in the cache.
#
# One Go module per family: their k8s.io versions differ. The binaries live
# outside the work tree in <cache>/programs/<family>-<version>-<hash of go.mod>/,
# so a second run only looks. Prints the directories as one PATH-like line.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ASCEND_DRA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ascend-dra}/programs

# family, and the module whose version names the cache entry
families=(
  "cni-plugins github.com/containernetworking/plugins"
  "etcd go.etcd.io/etcd/server/v3"
  "containerd github.com/containerd/containerd/v2"
  "kubernetes k8s.io/kubernetes"
)

die() {
  echo "build.sh: $*" >&2
  exit 1
}

# The version of a required module, from go.mod.
module_version() {
  awk -v module="$2" '$1 == module && $2 ~ /^v/ { print $2; exit }
                      $1 == "require" && $2 == module { print $3; exit }' "$1/go.mod"
}

build() {
  local module_dir=$1 version=$2 out=$3 flags="-s -w" number
  command -v go >/dev/null ||
    die "go is missing: install Go 1.26.8 or newer (https://go.dev/dl) to build $(basename "$module_dir")"
  if [[ $(basename "$module_dir") == kubernetes ]]; then
    # Charts check kubeVersion; unstamped it reads v0.0.0-master.
    number=${version#v}
    local stamp=k8s.io/component-base/version
    flags+=" -X $stamp.gitVersion=$version -X $stamp.gitMajor=${number%%.*}"
    number=${number#*.}
    flags+=" -X $stamp.gitMinor=${number%%.*}"
  fi
  echo "building $(basename "$module_dir") $version (only this once)" >&2
  rm -rf "$out.part"
  mkdir -p "$out.part"
  (cd "$module_dir" && CGO_ENABLED=0 GOFLAGS=-mod=readonly nice -n 15 \
    go build -trimpath -ldflags "$flags" -o "$out.part/" tool) >&2 ||
    die "building $(basename "$module_dir") $version failed"
  # The module root of etcd is package server.
  [[ ! -e $out.part/server ]] || mv "$out.part/server" "$out.part/etcd"
  mv "$out.part" "$out"
}

main() {
  local line family module version key path=""
  mkdir -p "$cache"
  exec 9>"$cache/.lock"
  flock 9
  for line in "${families[@]}"; do
    read -r family module <<<"$line"
    version=$(module_version "$here/$family" "$module")
    [[ -n $version ]] || die "$family/go.mod does not require $module"
    key=$family-$version-$(sha256sum <"$here/$family/go.mod" | cut -c1-12)
    [[ -d $cache/$key ]] || build "$here/$family" "$version" "$cache/$key"
    path+=${path:+:}$cache/$key
  done
  echo "$path"
}

main
