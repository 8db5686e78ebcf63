# Two commands matter: `make run` and `make test`. Both work on a fresh machine with Python >= 3.11.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
CORPUS := .corpora/JSONTestSuite
BENCH  := .venv-bench
OUT    ?= evidence/$(shell date -u +%Y%m%dT%H%M%SZ)-frozen
DIR    ?= evidence/reference-frozen
SEEN   := run.py audit.py client harness plots tests bench fuzz

# Of `make fuzz`: how long in all, and which targets where it is not to be all of them.
SECONDS ?= 600
TARGETS ?=

.PHONY: run test corpora audit plot case freeze lint bench fuzz lock wheel clean help
.DEFAULT_GOAL := help

run: $(VENV)/run.stamp ## run the 22 frozen cases, archive, audit, draw
	@$(PY) run.py --suite frozen --out "$(OUT)"
	@$(PY) -m plots "$(OUT)"

test: $(VENV)/dev.stamp corpora ## the whole test suite
	@$(PY) -m pytest -n auto

corpora: $(CORPUS)/stamp ## fetch the JSON corpus that the tests read and nothing commits

audit: ## audit an archive: make audit DIR=evidence/...
	@$(PYTHON) -I -S audit.py "$(DIR)"

plot: $(VENV)/run.stamp ## draw an archive's previews: make plot DIR=evidence/...
	@$(PY) -m plots "$(DIR)"

case: $(VENV)/run.stamp ## make a new fault: make case ARGS="mine/cut --from frozen/seven-byte --cut 100"
	@$(PY) run.py case new $(ARGS)

freeze: $(VENV)/run.stamp ## freeze a suite on purpose: make freeze SUITE=mine
	@$(PY) run.py case freeze $(SUITE)

lint: $(VENV)/dev.stamp ## ruff and mypy --strict
	@$(PY) -m ruff check $(SEEN)
	@$(PY) -m ruff format --check $(SEEN)
	@$(PY) -m mypy

bench: $(BENCH)/bench.stamp ## time the client against its peers and write docs/performance.md: make bench ARGS=--quick
	@$(BENCH)/bin/python -m bench $(ARGS)

fuzz: .venv-fuzz/fuzz.stamp ## look for inputs on which client and auditor differ: make fuzz SECONDS=60
	@.venv-fuzz/bin/python -m fuzz run --seconds $(SECONDS) $(TARGETS)

lock: $(VENV)/dev.stamp ## lock the requirements again, on purpose
	@$(PY) -m pip install --quiet pip-tools
	@cd requirements && for set in run dev fuzz bench; do ../$(PY) -m piptools compile --quiet --generate-hashes \
	  --no-emit-options --no-header --strip-extras --allow-unsafe --output-file $$set.txt $$set.in; done

wheel: $(VENV)/dev.stamp ## build the wheel into dist/
	@$(PY) -m build --wheel --no-isolation

clean: ## remove what was built; evidence stays
	@rm -rf $(VENV) $(BENCH) .venv-fuzz .corpora fuzz/corpus dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

$(VENV)/run.stamp: requirements/run.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Endmark needs Python 3.11 or newer: make PYTHON=python3.12 run")'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@touch $@

$(VENV)/dev.stamp: requirements/dev.txt $(VENV)/run.stamp
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

$(CORPUS)/stamp: requirements/corpora.txt tests/corpora/json_suite.py $(VENV)/dev.stamp
	@$(PY) -m tests.corpora
	@touch $@

.venv-fuzz/fuzz.stamp: requirements/fuzz.txt
	@test -x .venv-fuzz/bin/python || $(PYTHON) -m venv .venv-fuzz
	@.venv-fuzz/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(BENCH)/bench.stamp: requirements/bench.txt
	@test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt
	@touch $@
