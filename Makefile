# Everything a fresh machine needs is Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# Tests that need the UCI files read them from here, and skip where the folder is absent.
export SUBSWARM_DATA ?= $(wildcard $(CURDIR)/../shared/datasets)
PYTEST_JOBS ?= 2

.PHONY: demo test test-oldest check format clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

$(OLDEST)/.ready: pyproject.toml constraints/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --editable ".[test]" --constraint constraints/oldest.txt
	touch $@

demo: $(VENV)/.ready  ## choose features of the breast-cancer table for 5 nearest neighbours
	$(BIN)/subswarm select breast-cancer --model knn --seed 1

test: $(VENV)/.ready  ## the tests on the newest releases, warnings as errors
	$(BIN)/python -m pytest -n $(PYTEST_JOBS)

test-oldest: $(OLDEST)/.ready  ## the tests on the oldest supported releases
	$(OLDEST)/bin/python -m pytest -n $(PYTEST_JOBS)

check: $(VENV)/.ready  ## format, lint, types, import layers, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(PYTEST_JOBS)

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
