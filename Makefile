# `make help` lists the targets. Every target that needs the virtual environment makes it first.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

# Empty: the first of python3.11, python3.12, python3.13 and python3 that is new enough.
PYTHON ?=
export PYTHON

# More arguments for the program behind run, test, soak and bench: make test ARGS="-k parser"
ARGS ?=

# How long `make hunt` and `make fuzz` start new rounds.
MINUTES ?= 10

# Tests marked with one xdist_group stay on one worker, so that they can share a Spark session. As
# they wait for Spark much of the time, there is one worker more than there are cores.
WORKERS := $(shell expr $$(nproc) + 1)
PYTEST := $(BIN)/pytest -n $(WORKERS) --maxprocesses 8 --dist loadgroup

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run check test coverage lint format bench hunt fuzz soak lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with the tested versions of everything

$(STAMP): pyproject.toml constraints.txt
	@bash tools/setup.sh

run: $(STAMP) ## run the demo
	$(BIN)/tidegate demo $(ARGS)

check: lint ## the inner loop: lint, and the tests that are quick and need no Spark
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q -m "not spark and not slow and not soak" $(ARGS)

test: $(STAMP) ## run the whole test suite
	$(PYTEST) $(ARGS)

coverage: $(STAMP) ## run the whole test suite and report what it covers, which takes longer
	$(PYTEST) --cov --cov-report=term:skip-covered $(ARGS)

lint: $(STAMP) ## check style, format, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict src tests tools
	$(BIN)/lint-imports

format: $(STAMP) ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP) ## measure the speed of this machine
	$(BIN)/tidegate bench $(ARGS)

soak: $(STAMP) ## run the property tests with a hundred times the examples, and 100,000 random overlays
	HYPOTHESIS_PROFILE=soak $(PYTEST) -m "hypothesis or soak" $(ARGS)
	$(BIN)/tidegate simulate --verify --runs 100000 --jobs 0

hunt: $(STAMP) ## run the property tests and random overlays with fresh seeds for MINUTES=10
	$(BIN)/python tools/hunt.py --minutes $(MINUTES) -n $(WORKERS) --maxprocesses 8 --dist loadgroup $(ARGS)

fuzz: $(STAMP) ## send decoders and brokers mutated sessions for MINUTES=10
	$(BIN)/python tools/fuzz.py --minutes $(MINUTES) $(ARGS)

lock: ## write constraints.txt again from pyproject.toml
	bash tools/lock.sh

clean: ## remove .venv and everything generated
	rm -rf $(VENV) build dist .coverage .coverage.* .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -exec rm -rf {} +
