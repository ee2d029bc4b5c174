# What a person types. Everything runs in .venv, with the versions of constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONFIG ?= configs/lab.toml
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
.PHONY: help run test check docs compare-doc bench bench-models bench-search clean install

help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

run: install ## Tune both architectures and workloads on the embedded lab; take it down again
	@sh scripts/system-packages guests || echo "going on without virtual machines" >&2
	@trap '$(BIN)/intop lab down -c $(CONFIG)' EXIT; \
	trap 'exit 130' INT TERM HUP; \
	$(BIN)/intop lab up -c $(CONFIG) && $(BIN)/intop doctor -c $(CONFIG) && \
	{ $(BIN)/intop tune -c $(CONFIG) $(ARGS) || [ $$? -eq 3 ]; }

test: install check ## Run all linters and all tests
	@sh scripts/system-packages guests tests
	@# Most of the time tests wait for a load to end, so three at once take little more than one on
	@# two processors. The longest files come first: see tests/conftest.py.
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

check: install ## Run the linters only: ruff, mypy, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

docs: install ## Make docs/commands.md, docs/parameters.md and the picture of the pipeline
	@$(BIN)/python -m scripts.references

compare-doc: install ## Write docs/compare.md and its figures from the store of the last `make run`
	@$(BIN)/intop compare x86 arm -c $(CONFIG) --markdown --output docs/compare.md --figures docs/images/compare

bench: install ## Measure what our side of the load can carry
	@$(BIN)/python benchmarks/rate.py

bench-models: install ## Hold the models against published errors: DATA=folder RUNS=5 SIZES=all
	@$(BIN)/python benchmarks/models.py $(DATA) --runs $(or $(RUNS),30) --sizes $(SIZES) \
	    --results $(RESULTS) --systems $(SYSTEMS)

bench-search: install ## Hold the search for the best against published ones: DATA=folder RUNS=3
	@$(BIN)/python -m benchmarks.search $(DATA) --runs $(or $(RUNS),20) --results $(RESULTS)

clean: ## Remove what was built and installed here; measured data stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

install: $(VENV)/ready ## Install what is missing: system packages, virtual environment
	@sh scripts/system-packages

$(VENV)/ready: pyproject.toml constraints.txt
	@sh scripts/system-packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "intop needs Python 3.11 or later: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@
