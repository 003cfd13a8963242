#!/usr/bin/env bash
# Compares our CDI library with the reference library on generated cases.
#   run.sh --ascend-cdi PATH [--seed N|random] [--count N] [--keep DIR]
# Cases that fail are kept in DIR (default: build/cdi-differential) as failed.jsonl, with what was
# wrong in report.txt. The same seed gives the same cases.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ascend_cdi='' seed=1 count=20000
keep=$(cd "$here/../.." && pwd)/build/cdi-differential

die() {
  echo "run.sh: $*" >&2
  exit 2
}

parse() {
  while (($#)); do
    case $1 in
      --ascend-cdi | --seed | --count | --keep)
        (($# > 1)) || die "$1 needs a value"
        case $1 in
          --ascend-cdi) ascend_cdi=$2 ;;
          --seed) seed=$2 ;;
          --count) count=$2 ;;
          --keep) keep=$2 ;;
        esac
        shift
        ;;
      -h | --help) sed -n '2,5s/^# *//p' "$0" && exit 0 ;;
      *) die "unknown argument $1 (see --help)" ;;
    esac
    shift
  done
  [[ -n $ascend_cdi ]] || die "--ascend-cdi is missing"
  [[ -x $ascend_cdi ]] || die "$ascend_cdi is not a program"
  if [[ $seed == random ]]; then
    seed=$((RANDOM * 32768 + RANDOM))
  fi
}

# The cases of $1 that the report $2 names.
failed_cases() {
  grep -oE 'generated-[0-9]+-[0-9]+' "$2" | sort -u | sed 's/.*/"id":"&"/' | grep -F -f - "$1" || true
}

main() {
  parse "$@"
  local reference work status=0 last
  reference=$("$here/build_reference.sh")
  work=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory of now
  trap "rm -rf '$work'" EXIT
  "$reference" generate --seed "$seed" --count "$count" --differences "$here/differences.json" >"$work/cases.jsonl"
  echo "cdi differential: seed $seed, $(wc -l <"$work/cases.jsonl") cases"
  "$ascend_cdi" replay "$work/cases.jsonl" >"$work/report.txt" 2>&1 || status=$?
  last=$(tail -n 1 "$work/report.txt")
  if [[ ! $last =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    tail -n 20 "$work/report.txt" >&2
    die "ascend-cdi replay ended with code $status and without a result"
  fi
  local passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]}
  if ((passed + failed != count)); then
    die "ascend-cdi replay did not look at all cases: $last"
  fi
  if ((failed > 0 || status != 0)); then
    mkdir -p "$keep"
    cp "$work/report.txt" "$keep/report.txt"
    failed_cases "$work/cases.jsonl" "$work/report.txt" >"$keep/failed.jsonl"
    head -n 40 "$work/report.txt"
    echo "kept: $keep/failed.jsonl, $keep/report.txt"
  fi
  echo "cdi differential: $passed passed, $failed failed"
  ((failed == 0 && status == 0))
}

main "$@"
