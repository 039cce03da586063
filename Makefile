# Every target makes what it needs; `make help` lists them.

# A foreign environment or import path must not leak into ours.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help run test quick lint format lock clean env

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: env ## show the review example's prompt, each stretch beside its owner
	@.venv/bin/foreword show examples/review/prompt.py:build --annotate --contexts --tools

test: env ## everything that CI checks, on every Python from 3.11 to 3.13 found here
	@bash scripts/test.sh all

quick: env ## the checks for between two edits, in under a minute
	@bash scripts/test.sh quick

lint: env ## style, types, layers and spelling, without the tests
	@bash scripts/test.sh lint

format: env ## put the code into shape
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

lock: env ## lock the dependencies again; `make lock UPGRADE=1` takes the newest
	@bash scripts/lock.sh $(if $(UPGRADE),--upgrade)

clean: ## remove what these targets made
	rm -rf .venv .venv.lock .venv-3.* dist build .coverage* .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests examples benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

env: # .venv, made or mended when needed
	@bash scripts/env.sh
