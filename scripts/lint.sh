#!/usr/bin/env bash
# Checks form: formatting, shell scripts, documentation, and C++ by clang-tidy.
#   lint.sh [--all]   clang-tidy on every file instead of those that changed lately
set -euo pipefail
cd "$(dirname "$0")/.."
all=0
[[ ${1:-} == --all ]] && all=1

passed=0
failed=0
check() { # NAME COMMAND...
  local name=$1 log
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "lint: $name failed" >&2
    tail -n 100 "$log" >&2
  fi
  rm -f "$log"
}

formatting() {
  git ls-files -z -- '*.cc' '*.h' '*.c' | xargs -0 clang-format-19 --dry-run -Werror
}
shell_scripts() {
  { git ls-files -z -- '*.sh' && printf '.ci/run\0'; } | xargs -0 shellcheck -x
}
python_syntax() {
  git ls-files -z -- '*.py' | xargs -0 python3 -c '
import ast, sys
for path in sys.argv[1:]:
    ast.parse(open(path, encoding="utf-8").read(), path)'
}
documentation() { python3 scripts/check_docs.py; }

# What changed since the branch left main; on main itself, in the last commits.
changed_sources() {
  local base
  if ((all)); then
    git ls-files -- '*.cc'
    return
  fi
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -z $base || $base == $(git rev-parse HEAD) ]]; then
    base=$(git rev-parse --verify --quiet HEAD~5 || git hash-object -t tree /dev/null)
  fi
  git diff --name-only --diff-filter=d "$base" -- '*.cc'
}

clang_tidy() {
  local files
  mapfile -t files < <(changed_sources)
  ((${#files[@]})) || return 0
  cmake --preset tidy || return 1
  # Generated headers must exist before anything is parsed.
  cmake --build --preset tidy --target generated_sources || return 1
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy-19 -p build/tidy --quiet
}

# Every public header compiles by itself.
headers() { cmake --preset dev && cmake --build --preset dev --target all_verify_interface_header_sets; }

check "formatting (clang-format-19)" formatting
check "shell scripts (shellcheck)" shell_scripts
check "python syntax" python_syntax
check "documentation" documentation
check "clang-tidy" clang_tidy
((all)) && check "headers stand alone" headers
echo "lint: $passed passed, $failed failed"
((failed == 0))
