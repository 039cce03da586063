# Every target makes what it needs; `make help` lists them.

# A foreign environment or import path must not leak into ours.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help run test quick lint faults format docs bench lock clean env

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

run: env ## show the review example's prompt, then play a session, log and rebuild it, and ask whose doing its prompts were
	@.venv/bin/foreword show examples/review/foreword.yaml --agent reviewer --annotate --contexts --tools
	@PATH="$(CURDIR)/.venv/bin:$$PATH" sh scripts/play.sh

test: env ## everything that CI checks; all of it on the main Python, most on the newest one found here, the core on others
	@bash scripts/test.sh all

quick: env ## the checks for between two edits, in under a minute
	@bash scripts/test.sh quick

lint: env ## style, types, layers and spelling, without the tests
	@bash scripts/test.sh lint

faults: env ## kill, unplug and race the log a thousand times; prints what was found
	@.venv/bin/python -m tests.faults

format: env ## put the code into shape
	@.venv/bin/ruff check --fix-only --quiet .
	@.venv/bin/ruff format .

docs: env ## write the pages again that are made from the code
	@.venv/bin/foreword catalog --markdown >.events.md || { rm -f .events.md; exit 1; }
	@mv .events.md docs/reference/events.md
	@.venv/bin/foreword lint --list --markdown >.lint.md || { rm -f .lint.md; exit 1; }
	@mv .lint.md docs/reference/lint/index.md

bench: env ## run the benchmarks, peers beside; QUICK=1 for one round, COMPARE=FILE for what changed since
	@bash benchmarks/run.sh $(if $(QUICK),--quick) $(if $(COMPARE),--compare '$(COMPARE)')

lock: env ## lock the dependencies again; `make lock UPGRADE=1` takes the newest
	@bash scripts/lock.sh $(if $(UPGRADE),--upgrade)

clean: ## remove what these targets made
	rm -rf .venv .venv.lock .venv-3.* .venv-bench benchmarks/node/node_modules dist build .coverage* .hypothesis .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests examples benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

env: # .venv, made or mended when needed
	@bash scripts/env.sh
