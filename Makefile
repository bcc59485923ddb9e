# Needs a POSIX shell and Python 3.11 or newer with venv. `make PYTHON=/path/to/python test` picks
# the interpreter that .venv is made from; ARGS reaches pytest, the benchmarks or the demonstration.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
ARGS ?=

.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-browser real engines lint typing bench audit wheel-check tox clean

help:
	@echo "make demo         serve the demonstration model and ask it one sample"
	@echo "make test         run the tests"
	@echo "make test-slow    run the tests that kill servers or watch processes and clocks for long"
	@echo "make test-browser  run the tests of the dashboard in Chromium"
	@echo "make real         ask real models behind real servers (needs a C++ compiler)"
	@echo "make engines      run Ray and Spark over real servers (needs Java)"
	@echo "make lint         check style and format"
	@echo "make typing       check types"
	@echo "make bench        run the benchmarks"
	@echo "make chaos        run a server while everything around it fails"
	@echo "make fuzz         look for inputs that nobody thought of"
	@echo "make audit        look for known advisories of the locked packages (needs the network)"
	@echo "make wheel-check  build a wheel and try it in an empty environment"
	@echo "make tox          everything, on every Python that is here"
	@echo "make clean        remove what these made"

demo: $(VENV)/.installed
	@exec $(BIN)/python -m svc.cli.tour $(ARGS)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-slow: $(VENV)/.installed-test
	$(BIN)/python -m pytest --slow -m slow -n auto --dist worksteal $(ARGS)

test-browser: $(VENV)/.installed-test
	$(BIN)/python -m pytest --browser tests/browser $(ARGS)

# Real models and servers need other versions than we do, so they have an environment of their own.
# The first time compiles llama.cpp, which takes about seven minutes on two cores. It is compiled for
# any processor of the last ten years: a virtual machine may name instructions that it cannot carry
# out (AMX), with which its server ends at the first question.
REAL := .venv-real
real: $(VENV)/.installed-test
	@if command -v c++ >/dev/null; then $(MAKE) --no-print-directory $(REAL)/.installed; \
	else echo "no C++ compiler (Debian: apt-get install g++), so no real model is asked" >&2; fi
	SVC_REAL_PYTHON="$(CURDIR)/$(REAL)/bin/python" $(BIN)/python -m pytest --real tests/real $(ARGS)

$(REAL)/.installed: tests/real/requirements.txt $(VENV)/.installed
	rm -rf $(REAL) && $(BIN)/python -m venv $(REAL)
	CMAKE_ARGS="-DGGML_NATIVE=OFF" \
	  $(REAL)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# Ray and Spark have an environment of their own, too. What cannot be had is said loudly, its tests are
# left out, and the next time it is tried again.
ENGINES := .venv-engines
engines: $(VENV)/.installed-test
	@$(MAKE) --no-print-directory $(ENGINES)/.installed || test -x $(ENGINES)/bin/python
	SVC_ENGINES_PYTHON="$(CURDIR)/$(ENGINES)/bin/python" \
	  $(BIN)/python -m pytest --engines tests/engines $(ARGS)

$(ENGINES)/.installed: tests/engines/requirements.txt $(VENV)/.installed
	rm -rf $(ENGINES) && $(BIN)/python -m venv $(ENGINES)
	@all=yes; for package in $$(grep -v '^#' $<); do \
	  $(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check "$$package" || { \
	    all=no; echo "!!! $$package cannot be had, and is not tested !!!" >&2; }; \
	done; test $$all = yes && touch $@

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typing: $(VENV)/.installed-dev
	$(BIN)/mypy

bench: $(VENV)/.installed-test $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks $(ARGS)

.PHONY: chaos fuzz
chaos: $(VENV)/.installed-test
	$(BIN)/python -m tests.chaos $(ARGS)

fuzz: $(VENV)/.installed-test
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-20000} $(BIN)/python -m pytest -q -n auto --dist worksteal \
	  tests/fuzz tests/hostile/test_search.py $(ARGS)

# What deploy/ installs, and the lowest versions that are allowed.
AUDIT := $(VENV)/bin/pip-audit --disable-pip --progress-spinner off --format json
audit: $(VENV)/.installed-audit
	@status=0; \
	$(AUDIT) --require-hashes -r deploy/requirements.lock 2>/dev/null | $(BIN)/python deploy/audit.py \
	  || status=$$?; \
	$(AUDIT) --no-deps -r tests/requirements-lowest.txt 2>/dev/null | $(BIN)/python deploy/audit.py \
	  || status=$$?; \
	exit $$status

wheel-check: $(VENV)/.installed-test
	$(BIN)/python -m pytest --wheel tests/test_package.py $(ARGS)

tox: $(VENV)/.installed-dev
	$(BIN)/tox $(ARGS)

clean:
	rm -rf $(VENV) $(REAL) $(ENGINES) .tox .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first Python that is new enough and runs: a name on the PATH may be a shim of nothing.
$(VENV)/.installed: setup.cfg setup.py
	@for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  "$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$$python has no venv; on Debian: apt-get install python3-venv" >&2; continue; }; \
	  echo "making $(VENV) with $$("$$python" --version)"; \
	  rm -rf $(VENV) && "$$python" -m venv $(VENV) && exit 0; exit 1; \
	done; \
	echo "needs Python 3.11 or newer with venv; tried: $(or $(PYTHON),python3 python3.13 python3.12 python3.11)" >&2; \
	exit 1
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --editable .
	@touch $@

$(VENV)/.installed-%: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[$*]'
	@touch $@
