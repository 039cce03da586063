#!/usr/bin/env bash
# Runs the checks:
#
#   scripts/test.sh lint     style, types, layers, spelling
#   scripts/test.sh quick    for between two edits: ruff, and the core's tests that are not slow, with few examples each
#   scripts/test.sh all      lint, all tests on the main Python, those that are not slow on the newest one, and on those
#                            between the ones of the core, where a difference between versions would show first
#
# One failing check does not hide the next: all run, and the last lines name what failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

supported=(3.11 3.12 3.13)
core=(tests/kernel tests/prompt tests/tools tests/session)
bin=.venv/bin
failed=()

check() { # check NAME COMMAND…: a heading, what the command says, and a note when it fails
  local name=$1 before=$SECONDS
  shift
  echo "── $name"
  if ! "$@"; then
    failed+=("$name")
    echo "   $name failed after $((SECONDS - before)) s" >&2
  fi
}

lint() {
  check "ruff format" "$bin/ruff" format --check --quiet .
  check "ruff check" "$bin/ruff" check --quiet .
  check "mypy" "$bin/mypy" --no-error-summary
  check "basedpyright" "$bin/basedpyright"
  check "import layers" "$bin/lint-imports" --no-logo
  check "codespell" "$bin/codespell"
}

pytest_with() { # pytest_with VENV OPTION…: two workers, which is what CI has cores for
  local venv=$1
  shift
  "$venv/bin/python" -m pytest -n 2 "$@"
}

version_of() { "$1" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

# Where Python $1 may be: on the PATH, with pyenv, or where uv looks. Nothing is downloaded.
candidates() {
  local release
  echo "python$1"
  if command -v pyenv >/dev/null; then
    for release in $(pyenv versions --bare --skip-aliases | grep -E "^${1//./\\.}\.[0-9]+$" | sort -Vr); do
      echo "$(pyenv prefix "$release")/bin/python"
    done
  fi
  "$bin/uv" python find --quiet --no-project --system --offline --no-python-downloads "$1" || true
}

# The first candidate that runs and is what it is said to be: a command may be there only to say that its Python is not.
find_python() {
  local candidate
  while IFS= read -r candidate; do
    if [[ $(version_of "$candidate") == "$1" ]]; then
      echo "$candidate"
      return
    fi
  done < <(candidates "$1" 2>/dev/null)
}

other_pythons() {
  local main version python
  main=$(version_of "$bin/python")
  local tested=("$main") missing=() others=() chosen
  local -A pythons=()
  for version in "${supported[@]}"; do
    [[ $version != "$main" ]] || continue
    python=$(find_python "$version")
    if [[ -z $python ]]; then
      missing+=("$version")
      continue
    fi
    others+=("$version")
    pythons[$version]=$python
  done
  for version in "${others[@]}"; do
    check "environment for Python $version" bash scripts/env.sh ".venv-$version" "${pythons[$version]}"
    chosen=("${core[@]}")
    [[ $version != "${others[-1]}" ]] || chosen=()
    HYPOTHESIS_PROFILE=${HYPOTHESIS_PROFILE:-quick} \
      check "tests on Python $version" pytest_with ".venv-$version" -m "not slow" "${chosen[@]}"
    tested+=("$version")
  done
  echo "── Pythons: tested ${tested[*]}${missing[*]+; not found here: ${missing[*]}}"
}

case ${1-} in
  lint) lint ;;
  quick)
    check "ruff check" "$bin/ruff" check --quiet .
    HYPOTHESIS_PROFILE=${HYPOTHESIS_PROFILE:-quick} check "quick tests" pytest_with .venv -m "not slow" "${core[@]}"
    ;;
  all)
    lint
    check "tests on Python $(version_of "$bin/python")" pytest_with .venv
    other_pythons
    ;;
  *)
    sed -n 's/^# \{0,1\}//; 2,8p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac

if ((${#failed[@]})); then
  printf 'FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
