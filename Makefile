# Two commands do all their own set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: demo test test-all test-gpu crash lint bench clean

demo: $(INSTALLED)
	$(BIN)/lgcn train --dataset digits --seed 0 --set max_epochs=200

test: lint
	$(BIN)/python -m pytest -n auto

test-all: $(INSTALLED)
	$(BIN)/python -m pytest -n auto -m "not gpu"

test-gpu:
	PYTHONPATH=src $(PYTHON) -m pytest -m gpu

# Kills commands while they write, at random moments. CRASH_REPORT=FILE keeps a report.
CRASH_KILLS ?= 200
crash: $(INSTALLED)
	$(BIN)/python -m tests.crash --kills $(CRASH_KILLS) $(if $(CRASH_REPORT),--report $(CRASH_REPORT))

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

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
