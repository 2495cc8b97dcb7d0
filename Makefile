# Everything a fresh machine needs is Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# Tests that need the UCI files read them from here, and skip where the folder is absent.
export SUBSWARM_DATA ?= $(wildcard $(CURDIR)/../shared/datasets)
PYTEST_JOBS ?= 2

.PHONY: demo test test-oldest check docs pictures browser format clean

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

demo: $(VENV)/.ready  ## choose features of the breast-cancer table for naive Bayes, with an honest figure
	$(BIN)/subswarm select breast-cancer --model nb --held-out 5 --seed 1

browser:  ## Chromium for the tests of pages, where it is missing and may be installed; else those tests are skipped
	@command -v chromedriver >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& { apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; }; } \
		|| echo "no Chromium here: the tests of pages are skipped"

test: $(VENV)/.ready browser  ## the tests on the newest releases, warnings as errors
	$(BIN)/python -m pytest -n $(PYTEST_JOBS)

test-oldest: $(OLDEST)/.ready  ## the tests on the oldest supported releases
	$(OLDEST)/bin/python -m pytest -n $(PYTEST_JOBS)

check: $(VENV)/.ready browser  ## format, lint, types, import layers, tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(PYTEST_JOBS)

docs: $(VENV)/.ready  ## the documentation as docs/_build/index.html; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -E -b html docs docs/_build

pictures: $(VENV)/.ready  ## every picture in the documentation
	$(BIN)/python docs/pictures/method.py
	$(BIN)/python docs/pictures/searches.py
	$(BIN)/python docs/pictures/ranks.py
	$(BIN)/python docs/pictures/report.py
	$(BIN)/subswarm bench growth --out docs/img/growth.png

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build docs/_build
