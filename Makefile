# Everything sets itself up: the first target that is made builds .venv, and so does a change of pyproject.toml.
PYTHON ?= python3
EXTRAS ?= dev,bench
BIN := .venv/bin
READY := .venv/.ready
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist worksteal
CODE := $(wildcard src tests bench examples)

.PHONY: demo test test-interop test-full check package bench clean
.DELETE_ON_ERROR:

demo: $(READY)                ## see a small team of agents at work
	$(BIN)/python examples/demo.py

test: $(READY)                ## our own tests, without the long sweeps
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --ignore tests/interop

test-interop: $(READY)        ## third-party suites and clients
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/interop

test-full: $(READY)           ## every test
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m ""

check: $(READY) package       ## style, types, the direction of imports, and what would be published
	$(BIN)/python -m ruff check $(CODE)
	$(BIN)/python -m ruff format --check $(CODE)
	$(BIN)/python -m mypy $(CODE)
	$(BIN)/lint-imports

package: $(READY)             ## build wheel and sdist in dist, as an index would take them
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/python -m twine check --strict dist/*

bench: $(READY)               ## measure, and compare with others
	$(BIN)/python -m bench

clean:                        ## remove all that was built, .venv too
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .schemathesis .bench build dist
	find src tests $(wildcard bench examples) -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
	  echo "AOF needs Python 3.11 or newer, and there is no '$(PYTHON)' here. Name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "AOF needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@
