#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages of the named groups that are missing. Quiet and without
# root if none is.
#   install-packages.sh build|lint|cdi|fuzz|bench|e2e...
set -euo pipefail

build=(g++ cmake ninja-build ccache lld pkg-config protobuf-compiler protobuf-compiler-grpc
  libprotobuf-dev libgrpc++-dev libabsl-dev nlohmann-json3-dev libspdlog-dev libyaml-cpp-dev
  libcurl4-openssl-dev libssl-dev libcli11-dev libcpp-httplib-dev libgtest-dev libgmock-dev
  prometheus-cpp-dev openssl bc)
lint=(clang-19 clang-format-19 clang-tidy-19 shellcheck python3)
cdi=(podman runc busybox-static jq)
fuzz=(clang-19 libclang-rt-19-dev)
bench=(libbenchmark-dev)
e2e=(gcc libc6-dev runc iproute2 iptables openssl busybox-static python3-venv jq)

if (($# == 0)); then
  echo "usage: install-packages.sh build|lint|cdi|fuzz|bench|e2e..." >&2
  exit 2
fi
packages=()
for group in "$@"; do
  case "$group" in
    build) packages+=("${build[@]}") ;;
    lint) packages+=("${lint[@]}") ;;
    cdi) packages+=("${cdi[@]}") ;;
    fuzz) packages+=("${fuzz[@]}") ;;
    bench) packages+=("${bench[@]}") ;;
    e2e) packages+=("${e2e[@]}") ;;
    *)
      echo "install-packages.sh: unknown group $group" >&2
      exit 2
      ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
((${#missing[@]} == 0)) && exit 0

root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "These packages are missing; install them as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  root=(sudo)
fi
echo "Installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${root[@]}" apt-get update -qq &&
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}"; } >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
