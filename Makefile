# Every target does its own set-up: Python 3.11+ and make are all it needs. `make` alone lists the targets.

VENV := .venv
PYTHON_IN_VENV := $(VENV)/bin/python -P
CODE := $(wildcard broker subscribers tests benchmarks examples)
SCRIPTS := $(wildcard .ci/*.py)
# Worker processes for the tests, and arguments for what a target runs: make test JOBS=4 ARGS="-k topics". Two for
# each core: the tests of processes wait for them most of their time.
JOBS ?= $(shell echo $$((2 * $$(nproc 2>/dev/null || echo 1))))
ARGS ?=

# The pages that the conformance tests read may be given relative to here; tests run from other directories too.
ifdef PRXBUS_PAGES
pages := $(shell cd -- "$(PRXBUS_PAGES)" && pwd)
$(if $(pages),,$(error PRXBUS_PAGES=$(PRXBUS_PAGES) is not a directory))
override PRXBUS_PAGES := $(pages)
export PRXBUS_PAGES
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test lint format types coverage bench wheel clean

help: ## list the targets
	@echo "usage: make TARGET"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

demo: $(VENV)/.ready-run ## start a bus, replay a recorded agent session through hooks, show what each did
	$(VENV)/bin/prxbus demo $(ARGS)

test: $(VENV)/.ready-dev ## run every test, in parallel and in random order
	$(PYTHON_IN_VENV) -m pytest -n $(JOBS) --maxprocesses 8 --dist worksteal $(ARGS)

lint: $(VENV)/.ready-dev ## check the format, the style and the import rules
	$(PYTHON_IN_VENV) -m ruff format --check .
	$(PYTHON_IN_VENV) -m ruff check .
	$(VENV)/bin/lint-imports --no-logo

format: $(VENV)/.ready-dev ## rewrite the code in the house format
	$(PYTHON_IN_VENV) -m ruff check --fix .
	$(PYTHON_IN_VENV) -m ruff format .

types: $(VENV)/.ready-bench ## check the types, strictly, tests included
	$(PYTHON_IN_VENV) -m mypy $(CODE) $(SCRIPTS)

coverage: $(VENV)/.ready-dev ## each sans-IO room reaches every branch from its own unit tests
	$(PYTHON_IN_VENV) .ci/coverage_rooms.py

bench: $(VENV)/.ready-bench ## measure prxbus beside its peers (quick look: make bench ARGS=--quick)
	@.ci/peers
	$(PYTHON_IN_VENV) -m benchmarks.run --plot benchmarks/results/latest.svg $(ARGS)

wheel: $(VENV)/.ready-dev ## build the wheel into dist/
	rm -rf build
	$(PYTHON_IN_VENV) -m build --wheel --no-isolation $(ARGS)

clean: ## remove everything that the other targets made
	rm -rf $(VENV) build dist htmlcov .coverage .hypothesis
	rm -rf *.egg-info .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(CODE) .ci -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each set of extras; the set-up is repeated when what it installs has changed.
SETUP := pyproject.toml constraints.txt broker/version.py .ci/setup

$(VENV)/.ready-run: $(SETUP)
	@.ci/setup $(VENV) run
	@touch $@

$(VENV)/.ready-dev: $(SETUP)
	@.ci/setup $(VENV) run,wasm,dev
	@touch $@

$(VENV)/.ready-bench: $(SETUP)
	@.ci/setup $(VENV) run,wasm,dev,bench
	@touch $@
