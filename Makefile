# What a person types. Everything runs in .venv, with the versions of constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONFIG ?= configs/lab.toml
# Installs what is needed of the system's packages.
PACKAGES := intop/lab/system-packages.sh
# Where it is set, each of many processes compiles our modules anew.
unexport PYTHONDONTWRITEBYTECODE
# Such as ARGS=--resume or ARGS=--new, for a second `make run` in the same folder.
ARGS ?=

# For bench-models and bench-search: the folder of the public tables, runs of each (as published), where
# results are kept; for bench-models also `all` sizes, and systems by name.
DATA ?= ../shared/bench
RUNS ?=
RESULTS ?= build/$@.json
SIZES ?= largest
SYSTEMS ?=

.DEFAULT_GOAL := help
.PHONY: help run quick test test-long test-machine fuzz-guard check docs compare-doc bench bench-models bench-search
.PHONY: clean install install-dev pytest

help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

run: $(VENV)/ready ## Tune both architectures and workloads on the embedded lab; take it down again
	@trap '$(BIN)/intop lab down -c $(CONFIG)' EXIT; \
	trap 'exit 130' INT TERM HUP; \
	$(BIN)/intop lab up -c $(CONFIG) && $(BIN)/intop doctor -c $(CONFIG) && \
	{ $(BIN)/intop tune -c $(CONFIG) $(ARGS) || [ $$? -eq 3 ]; }
	@echo 'To type intop in this shell: . $(BIN)/activate' >&2

test: $(VENV)/ready-dev ## Run all linters and all tests
	@sh $(PACKAGES) lab guests tests
	@$(MAKE) --no-print-directory -j 2 check pytest

pytest: $(VENV)/ready-dev
	@# Half of the time tests wait for a load to end, so there are three at once on two processors.
	@# Four take as long (15 min 8 s at af0137f, three 15 min 47 s at f4d943c), and disturb each other.
	@# The longest files come first: see tests/conftest.py.
	@# The longest test takes a minute or two. One that waits for ever fails, and shows where it waits.
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --timeout 600

quick: $(VENV)/ready-dev ## Run the tests that need no lab, no SSH and no PostgreSQL: a minute
	@# Stores are written to often, and a disk makes each write wait.
	@TMPDIR=$(firstword $(wildcard /dev/shm) /tmp) $(BIN)/python -m pytest -n 2 --timeout 60 \
	    -m 'not lab and not slow and not long and not machine'

test-long: $(VENV)/ready-dev ## Run the tests that make test leaves out because they take minutes: twenty of them
	@sh $(PACKAGES) lab guests tests
	@$(BIN)/python -m pytest -m long -n 2 --dist worksteal

test-machine: $(VENV)/ready-dev ## Run the tests that need a whole Debian machine and its boots; slow
	@sh $(PACKAGES) lab machines
	@$(BIN)/python -m pytest -m machine tests/machine

check: $(VENV)/ready-dev ## Run the linters only: ruff, mypy, import-linter, plain English
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m scripts.plain_english

docs: $(VENV)/ready-dev ## Generate commands.md, parameters.md, nginx.md, trials.md in docs/ and the picture of the pipeline
	@$(BIN)/python -m scripts.references

compare-doc: $(VENV)/ready-dev ## Write docs/compare.md and its figures from the store of the last `make run`
	@$(BIN)/intop compare x86 arm -c $(CONFIG) --markdown --output docs/compare.md --figures docs/images/compare

bench: $(VENV)/ready-dev ## Measure what our side of the load can carry
	@sh $(PACKAGES) lab
	@$(BIN)/python -m benchmarks rate

bench-models: $(VENV)/ready-dev ## Hold the models against published errors: DATA=folder RUNS=5 SIZES=all
	@$(BIN)/python -m benchmarks models $(DATA) --seeds $(or $(RUNS),30) --sizes $(SIZES) \
	    --results $(RESULTS) --systems $(SYSTEMS)

bench-search: $(VENV)/ready-dev ## Hold the search for the best against published ones: DATA=folder RUNS=3
	@$(BIN)/python -m benchmarks search $(DATA) --seeds $(or $(RUNS),20) --results $(RESULTS)

fuzz-guard: $(VENV)/ready-dev ## Hold the host's guard against its model, by SEQUENCES=10000 random ones (hours)
	@SEQUENCES=$(or $(SEQUENCES),10000) $(BIN)/python -m pytest -q -n 4 tests/hosts/test_guard_model.py

clean: ## Remove what was built and installed here; measured data stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

install: $(VENV)/ready ## Install intop and its Python packages into .venv
	@echo 'To type intop in this shell: . $(BIN)/activate' >&2

install-dev: $(VENV)/ready-dev ## Install the linters and the packages of the tests, too

$(VENV)/ready: pyproject.toml constraints.txt
	@sh $(PACKAGES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "intop needs Python 3.11 or later: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@# Python compiles what is imported; compiling all that is there takes half of the installation.
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable .
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $@
