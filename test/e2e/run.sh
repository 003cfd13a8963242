#!/usr/bin/env bash
# Runs the end-to-end suite: one node per kind of mock node, many cases on each.
#   run.sh [--smoke] [--build DIR] [pytest arguments]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ASCEND_DRA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ascend-dra}
nodes=(8x910B3 16xA3 8x910B4 4x310P3)
declare -A vnpu_modes=([8x910B4]=dynamic [4x310P3]=dynamic)
export PYTHONPATH=$here/lib PYTHONDONTWRITEBYTECODE=1

make_venv() {
  local venv
  venv=$cache/venv-$(sha256sum <"$here/requirements.txt" | cut -c1-12)
  if [[ ! -d $venv ]]; then
    rm -rf "$venv.part"
    if ! /usr/bin/python3 -m venv "$venv.part" >&2; then
      echo "run.sh: python3 -m venv failed: apt-get install python3-venv" >&2
      exit 1
    fi
    "$venv.part/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
    mv "$venv.part" "$venv"
  fi
  echo "$venv/bin/python"
}

main() {
  local node_options=() pytest_options=(-p no:cacheprovider -c "$here/pytest.ini" --rootdir "$here")
  while (($#)); do
    case $1 in
      --smoke) pytest_options+=(-m smoke) ;;
      --build) node_options+=(--build "$2") && shift ;;
      -h | --help) sed -n '2,3s/^# *//p' "$0" && exit 0 ;;
      *) pytest_options+=("$1") ;;
    esac
    shift
  done
  local python results node
  python=$(make_venv)
  results=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory of now
  trap "rm -rf '$results'" EXIT
  for node in "${nodes[@]}"; do
    local pytest=("$python" -m pytest "${pytest_options[@]}" --chips "$node" "$here/cases")
    # Nothing selected for this node: do not bring it up.
    "${pytest[@]}" --collect-only -q >"$results/collected" 2>&1 || {
      (($? == 5)) && continue
      cat "$results/collected"
      exit 1
    }
    echo "== node $node"
    "$here/node.sh" run --chips "$node" --vnpu-mode "${vnpu_modes[$node]:-off}" "${node_options[@]}" -- \
      "${pytest[@]}" --junitxml "$results/$node.xml" || touch "$results/failed"
    [[ -e $results/$node.xml ]] || echo "$node" >>"$results/not-run"
  done
  "$python" "$here/lib/summary.py" "$results"
}

main "$@"
