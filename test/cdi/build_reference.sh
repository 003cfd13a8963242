#!/usr/bin/env bash
# Builds cdi-reference, or finds it in the cache, and prints its path. The binary lives outside the
# work tree: <cache>/programs/cdi-reference-<version of the library>-<hash of the sources>/.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ASCEND_DRA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ascend-dra}/programs

die() {
  echo "build_reference.sh: $*" >&2
  exit 1
}

main() {
  local module=$here/reference version key
  version=$(awk '$1 == "tags.cncf.io/container-device-interface" { print $2 }' "$module/go.mod")
  [[ -n $version ]] || die "go.mod does not require the reference library"
  key=$(cd "$module" && cat go.mod go.sum ./*.go | sha256sum | cut -c1-12)
  local out=$cache/cdi-reference-$version-$key
  mkdir -p "$cache"
  exec 9>"$cache/.cdi-reference.lock"
  flock 9
  if [[ ! -x $out/cdi-reference ]]; then
    command -v go >/dev/null || die "go is missing: install Go 1.26 or newer (https://go.dev/dl)"
    echo "building cdi-reference $version (only this once)" >&2
    rm -rf "$out.part"
    mkdir "$out.part"
    (cd "$module" && CGO_ENABLED=0 GOFLAGS=-mod=readonly nice -n 15 \
      go build -trimpath -ldflags '-s -w' -o "$out.part/cdi-reference" .) >&2 || die "building cdi-reference failed"
    mv "$out.part" "$out"
  fi
  echo "$out/cdi-reference"
}

main
