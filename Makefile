# Two commands do all their own set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test test-all test-gpu fuzz crash faults lint docs bench clean

# Of `make fuzz`: its time, and how many processes (none: one per core).
FUZZ_MINUTES ?= 10
FUZZ_JOBS ?=

demo: $(INSTALLED)
	$(BIN)/lgcn train --dataset digits --seed 0 --set max_epochs=200

test: lint
	$(BIN)/python -m pytest -n auto --durations=20

test-all: $(INSTALLED)
	$(BIN)/python -m pytest -n auto -m "not gpu" --timeout 900

test-gpu:
	PYTHONPATH=src $(PYTHON) -m pytest -m gpu --timeout 900

# The properties of the test suite with random seeds, once; then the targets of tests/fuzz.
fuzz: $(INSTALLED)
	failed=0; \
	$(BIN)/python -m pytest -q -n $(or $(FUZZ_JOBS),auto) --hypothesis-profile=random \
		-m "hypothesis and not slow and not gpu" || failed=1; \
	$(BIN)/python -m tests.fuzz --minutes $(FUZZ_MINUTES) $(if $(FUZZ_JOBS),--jobs $(FUZZ_JOBS)) \
		|| failed=1; \
	exit $$failed

# Kills commands while they write, at random moments. CRASH_REPORT=FILE keeps a report.
CRASH_KILLS ?= 200
crash: $(INSTALLED)
	$(BIN)/python -m tests.crash --kills $(CRASH_KILLS) $(if $(CRASH_REPORT),--report $(CRASH_REPORT))

# Faults in long trainings on several workers. FAULTS_REPORT=FILE keeps a report.
FAULTS ?= 100
faults: $(INSTALLED)
	$(BIN)/python -m tests.workers.faults --faults $(FAULTS) $(if $(FAULTS_REPORT),--report $(FAULTS_REPORT))

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Builds the documentation and serves it at http://127.0.0.1:8000; nothing is loaded from elsewhere.
docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks

# torch comes first and alone: with it in place pip looks for no other build of it.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'lgcn needs Python 3.11 or later')"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv build dist src/*.egg-info
