#!/usr/bin/env bash
# Locks what the benchmarks run with: for every system and every Python from 3.11 on, with hashes and without addresses.
# Options are handed on to `uv pip compile` (`--upgrade`). Foreword's own dependencies are as its tests have them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

lock=benchmarks/requirements.txt
.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
  --no-emit-index-url --no-emit-find-links --constraint requirements/base.txt "$@" \
  pyproject.toml benchmarks/requirements.in --output-file "$lock"

node_lock=benchmarks/node/package-lock.json
if command -v npm >/dev/null; then
  (cd benchmarks/node && npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund --silent)
fi

if grep -n '://' "$lock" "$node_lock"; then
  echo "An address got into a lock file; see above." >&2
  exit 1
fi
