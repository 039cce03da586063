#!/usr/bin/env bash
# Locks the dependencies: one file for every system and every Python from 3.11 on, with hashes and without addresses.
# Options are handed on to `uv pip compile` (`--upgrade`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Annotations would name this folder's files in uv's own way, the header its command line: neither is worth the noise.
compile() {
  .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
    --no-emit-index-url --no-emit-find-links "$@"
}

compile "$@" --group bootstrap --output-file requirements/uv.txt
compile "$@" pyproject.toml --all-extras --group dev --output-file requirements/dev.txt
# What users get, at the versions that the tests ran with.
compile pyproject.toml --constraint requirements/dev.txt --output-file requirements/base.txt

if grep -n '://' requirements/*.txt; then
  echo "An address got into a lock file; see above." >&2
  exit 1
fi
