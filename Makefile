# Every target does its own set-up: a bare machine needs python3 (3.11 or newer, with venv) and make.
#
#   make analyze TRACES=/archive/2024-05 OUT=/warehouse    is the nightly job

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TRACES ?= data/samples
OUT    ?= warehouse

.DEFAULT_GOAL := help
.PHONY: help setup warm analyze test mutants test-nojit lint check bench docs samples clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## make the environment .venv with the package and its tools

# Filled beside the stamp, which is written last: an interrupted set-up is repeated.
$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

warm: $(VENV)/.warm ## compile the numba routines, once per change of the code

$(VENV)/.warm: $(VENV)/.ready $(shell find pipeline -name '*.py' -o -name '*.sql')
	@echo 'Compiling the routines, once: about half a minute.'
	@$(BIN)/python -m compileall -q pipeline/tracehouse
	@rm -rf $(VENV)/warm-up
	@$(BIN)/tracehouse analyze data/samples -o $(VENV)/warm-up --workers 1 > /dev/null
	@rm -rf $(VENV)/warm-up
	@touch $@

analyze: warm ## analyse TRACES (data/samples) into the warehouse OUT (warehouse)
	@$(BIN)/tracehouse analyze $(TRACES) -o $(OUT)

test: warm ## run every test
	@echo 'Compiling the formulas, once: about a minute.'
	@$(BIN)/python tests/compile_formulas.py
	$(BIN)/python -m pytest -n 2 --dist worksteal

mutants: warm ## read thousands of mutants of each kind with both readers
	TRACEHOUSE_MUTANTS=2000 $(BIN)/python -m pytest -n 2 tests/differential/test_mutants.py

test-nojit: setup ## run the routines' tests as plain Python
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 tests/unit/compute

lint: setup ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint test ## lint and test

bench: warm ## measure, and write docs/performance.md
	$(BIN)/python benchmarks/run.py

docs: setup ## write docs/reference from the schema, the SQL headers, the commands and the codes
	@$(BIN)/tracehouse docs docs/reference

samples: setup ## write data/samples anew
	@$(BIN)/python data/generate.py

clean: ## remove the environment, caches and everything built
	rm -rf $(VENV) warehouse dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
