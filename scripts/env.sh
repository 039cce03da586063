#!/usr/bin/env bash
# Makes the environment of this checkout, or leaves it alone when it is whole.
#
#   scripts/env.sh                   .venv, by the machine's own Python
#   scripts/env.sh VENV PYTHON       VENV, by that Python (needs .venv, whose uv it uses)
#
# An environment is whole when its stamp is what scripts/stamp.py says now. In all other cases (requirements changed,
# checkout moved, Python gone or updated, install interrupted) it is made anew: with uv's cache that takes seconds, and
# nothing has to be known about how it broke. A whole one is found without asking the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=${1:-.venv}
python=${2:-}
uv=.venv/bin/uv

# A user's settings may say where packages come from, not where they go: `uv` is always told the environment.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV UV_SYSTEM_PYTHON UV_PYTHON UV_REQUIRE_HASHES UV_CONSTRAINT UV_OVERRIDE

# The interpreter behind a command, if it works and is new enough. Asked for its base, since the command may be the very
# environment that is about to be removed, activated in the caller's shell.
interpreter() {
  "$1" -I - 2>/dev/null <<'PY'
import os, sys
if sys.version_info >= (3, 11):
    base = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
    print(base if os.path.exists(base) else sys.executable)
PY
}

find_python() {
  local command found
  for command in python3 python3.13 python3.12 python3.11; do
    found=$(interpreter "$command") || continue # a command may be there and fail, as version managers' do
    if [[ -n $found ]]; then
      echo "$found"
      return
    fi
  done
  echo "Foreword needs Python 3.11 or newer, but python3 is $(python3 --version 2>/dev/null || echo missing)" \
    "and no python3.11, python3.12 or python3.13 is on the PATH." >&2
  return 1
}

stamp() { "$venv/bin/python" -I scripts/stamp.py 2>/dev/null; }

whole() {
  local now
  [[ -f $venv/stamp ]] && now=$(stamp) && [[ $now == "$(<"$venv/stamp")" ]]
}

# pip brings uv, by the user's way to packages; the second step is told to forget the user's settings, because some
# (target, prefix, user) would put it elsewhere.
bootstrap() {
  local wheels=$venv/wheels
  "$venv/bin/python" -m pip download --quiet -q --no-input --disable-pip-version-check \
    --no-deps --only-binary :all: --require-hashes -r requirements/uv.txt --dest "$wheels"
  PIP_CONFIG_FILE=/dev/null "$venv/bin/python" -m pip --isolated install --quiet -q --disable-pip-version-check \
    --no-index --no-deps "$wheels"/*.whl
  rm -rf "$wheels"
}

# uv does not read pip's settings; whoever has a mirror there means it for us too.
follow_pip_index() {
  local index
  index=${PIP_INDEX_URL:-$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)}
  if [[ -n $index && -z ${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-} ]]; then
    export UV_DEFAULT_INDEX=$index
  fi
}

build() {
  rm -rf "$venv" # and with it the stamp: whatever is interrupted below is found unfinished
  if [[ $venv == .venv ]]; then
    if ! "$python" -m venv "$venv"; then
      echo "$python could not make an environment; some systems pack that apart (Debian: apt-get install python3-venv)." >&2
      return 1
    fi
    bootstrap
  else
    "$python" -m venv --without-pip "$venv"
  fi
  follow_pip_index
  "$uv" pip sync --quiet --python "$venv/bin/python" --require-hashes requirements/dev.txt
  "$uv" pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --offline --editable .
  stamp >"$venv/stamp.new"
  mv "$venv/stamp.new" "$venv/stamp"
}

# Two makes at once in one checkout: the second waits, then finds the work done. (Not every system has flock.)
exec 9>"$venv.lock"
if command -v flock >/dev/null; then flock 9; fi

if ! whole; then
  [[ -n $python ]] || python=$(find_python)
  echo "Making $venv with $("$python" --version) …"
  build
fi
