#!/usr/bin/env bash
# Runs the benchmarks in an environment of their own, which is made or mended first: .venv-bench with Foreword and its
# peers at the locked versions, and node/node_modules with the original. Options are those of `python -m benchmarks`.
#
# What cannot be had, for want of Node or of a network, is told in a line and does not take part.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=$PWD/.venv-bench
uv=.venv/bin/uv
python=$venv/bin/python
lock=benchmarks/requirements.txt

# A user's settings may say where packages come from, not where they go.
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV UV_SYSTEM_PYTHON UV_PYTHON UV_REQUIRE_HASHES UV_CONSTRAINT UV_OVERRIDE
# What is timed runs from bytecode, as an installed package does; it is kept apart from the sources.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX=$venv/bytecode

# uv does not read pip's settings; whoever has a mirror there means it for us too.
index=${PIP_INDEX_URL:-$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)}
if [[ -n $index && -z ${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-} ]]; then
  export UV_DEFAULT_INDEX=$index
fi

# What the environment was made from; it is run by the environment's own Python, so that a dead one has no stamp.
stamp() {
  "$python" -I - "$PWD" "$lock" pyproject.toml 2>/dev/null <<'PY'
import hashlib, pathlib, sys
read = [pathlib.Path(name).read_text(encoding="utf-8") for name in sys.argv[2:]]
print(hashlib.sha256("\0".join([sys.version, sys.argv[1], *read]).encode()).hexdigest())
PY
}

whole() {
  local now
  [[ -f $venv/stamp ]] && now=$(stamp) && [[ $now == "$(<"$venv/stamp")" ]]
}

build() {
  rm -rf "$venv" # and with it the stamp: whatever is interrupted below is found unfinished
  .venv/bin/python -c 'import sys; print("Making .venv-bench with Python", sys.version.split()[0], "…")' >&2
  .venv/bin/python -m venv --without-pip "$venv" &&
    "$uv" pip sync --quiet --python "$python" --require-hashes "$lock" &&
    "$uv" pip install --quiet --python "$python" --no-deps --no-build-isolation --offline --editable . &&
    stamp >"$venv/stamp"
}

node() { # the original's packages, as locked
  cd benchmarks/node
  [[ node_modules/.package-lock.json -nt package-lock.json ]] || npm ci --silent --no-audit --no-fund
}

if ! whole && ! build; then
  echo "The peers' libraries could not be installed: only what needs none takes part." >&2
  python=.venv/bin/python
fi
if ! command -v npm >/dev/null; then
  echo "There is no Node here: the original does not take part." >&2
elif ! (node); then
  echo "The original's packages could not be installed: it does not take part." >&2
fi
exec "$python" -m benchmarks "$@"
