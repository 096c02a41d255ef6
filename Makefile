# Everything sets itself up: the first target that is made builds .venv, and so does a change of pyproject.toml.
PYTHON ?= python3
EXTRAS ?= dev,bench
BIN := .venv/bin
READY := .venv/.ready
SIDE_BY_SIDE := --numprocesses auto --maxprocesses 4 --dist worksteal
BROWSER_TESTS := tests/e2e/browser
CODE := $(wildcard src tests bench examples)
# Tests start hundreds of processes, and without bytecode each would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-interop test-browser test-full browser pictures check package bench clean
.DELETE_ON_ERROR:

demo: $(READY)                ## see a small team of agents at work
	$(BIN)/python examples/demo.py

test: $(READY)                ## our own tests, without the long sweeps
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) --ignore tests/interop --ignore $(BROWSER_TESTS)

test-interop: $(READY)        ## third-party suites and clients
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/interop

test-browser: $(READY) browser  ## the web board in a real browser
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(BROWSER_TESTS)

test-full: $(READY) browser   ## every test
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m ""

browser:                      ## install chromium, where that is possible
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update && \
	    DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends chromium fonts-dejavu-core >/dev/null; } || \
	  { echo "These tests need a browser. Install Debian's: sudo apt-get install chromium" >&2; exit 1; }

pictures: $(READY) browser    ## draw the pictures of the docs anew
	AOF_PICTURES=docs/howto/pictures $(BIN)/python -m pytest -n0 $(BROWSER_TESTS)/test_pictures.py

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
