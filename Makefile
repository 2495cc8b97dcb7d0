# Everything a fresh machine needs is Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# Tests that need the UCI files read them from here, and skip where the folder is absent.
export SUBSWARM_DATA ?= $(wildcard $(CURDIR)/../shared/datasets)
PYTEST_JOBS ?= 2
# Settings of `make fuzz`; WHAT is exactness, inputs, files or all.
WHAT ?= all
SEED ?= 1
CASES ?= 2000
FUZZ_JOBS ?= 2

.PHONY: demo test test-oldest fuzz lint check coverage wheel boundscheck docs pictures browser format clean

$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable ".[cli]"
	touch $@

$(VENV)/.ready: $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

$(OLDEST)/.ready: pyproject.toml constraints/oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[test]" --constraint constraints/oldest.txt
	touch $@

demo: $(VENV)/.demo  ## select features of the breast-cancer table for naive Bayes, with a nested score
	$(BIN)/subswarm select breast-cancer --model nb --held-out 5 --seed 1

test: $(VENV)/.ready  ## the tests on the newest releases, warnings as errors
	$(BIN)/python -m pytest -n $(PYTEST_JOBS)

test-oldest: $(OLDEST)/.ready  ## the tests but the slow ones on the oldest supported releases; their numba has a cache of its own
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/numba $(OLDEST)/bin/python -m pytest -n $(PYTEST_JOBS) -m "not slow"

fuzz: $(VENV)/.ready  ## random tables, hostile inputs and damaged files: make fuzz WHAT=exactness SEED=1 CASES=20000
	$(BIN)/python -m tests.fuzz --what $(WHAT) --seed $(SEED) --cases $(CASES) --processes $(FUZZ_JOBS)

lint: $(VENV)/.ready  ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

coverage: $(VENV)/.ready  ## the tests, and which lines of pure Python they run
	$(BIN)/python -m pytest -n $(PYTEST_JOBS) --cov --cov-report=term --cov-fail-under=90

wheel: $(VENV)/.ready  ## build the sdist and the wheel, and import the wheel in an environment of its own
	rm -rf dist $(VENV)/wheel
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv $(VENV)/wheel
	$(VENV)/wheel/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd $(VENV)/wheel && bin/python -c "import subswarm; subswarm.SwarmSelector; print('imported', subswarm.__version__)"

check: lint coverage wheel  ## everything that must hold before a change is merged

boundscheck: $(VENV)/.ready  ## the tests with every array access of the compiled kernels checked; vector instructions are not, so neighbours run without them, too
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/boundscheck $(BIN)/python -m pytest -n $(PYTEST_JOBS)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/boundscheck SUBSWARM_SIMD=0 $(BIN)/python -m pytest -n $(PYTEST_JOBS) tests/test_engines_knn.py tests/test_knn_kernels.py

browser:  ## Chromium for the tests of pages, from Debian's packages; they are skipped where there is none
	command -v chromedriver >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; }

docs: $(VENV)/.ready  ## the documentation as docs/_build/index.html; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -E -b html docs docs/_build

pictures: $(VENV)/.ready  ## every picture in the documentation
	$(BIN)/python docs/pictures/method.py
	$(BIN)/python docs/pictures/searches.py
	$(BIN)/python docs/pictures/ranks.py
	$(BIN)/python docs/pictures/gallery.py
	$(BIN)/python docs/pictures/report.py
	$(BIN)/subswarm bench growth --out docs/img/growth.png

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(OLDEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build docs/_build
