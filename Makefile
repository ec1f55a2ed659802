# `make demo` and `make test` install all they need into .venv; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin
# Whole files to one worker each, which compiles what they share once; in their order, so that no long one ends alone.
PYTEST := $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder
# Tests re-use compiled programs between runs.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.venv/jax-cache
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0.1

.PHONY: demo test test-all lint bench docs lock audit outdated clean help

help:
	@echo "make demo      make a phantom CT, segment its cochlea, score it; results and pictures in out/demo"
	@echo "make test      lint, types, import rules and all tests but the slow studies"
	@echo "make test-all  the same with the slow studies"
	@echo "make bench     the engine's benchmarks (ratios measured side by side)"
	@echo "make docs      run the examples of the documentation, then build its site: out/site"
	@echo "make audit     look up known holes in what requirements.lock installs (needs the network)"
	@echo "make outdated  what is installed and older than the newest of the index"
	@echo "make lock      resolve requirements.lock anew from pyproject.toml"

.venv/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

demo: .venv/.installed
	$(BIN)/logishape demo --out out/demo --overwrite

lint: .venv/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test: lint
	$(PYTEST) -m "not slow" tests/unit
	LOGISHAPE_CHECK_TYPES=0 $(PYTEST) -m "not slow" --ignore tests/unit

test-all: lint
	$(PYTEST)

bench: .venv/.installed
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/batch.py

.venv/.docs: .venv/.installed requirements-docs.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-docs.lock
	touch $@

# What the pages show is run before it is published, the long examples too.
docs: .venv/.docs
	LOGISHAPE_CHECK_TYPES=0 $(PYTEST) tests/test_site.py tests/test_documents.py::test_snippets_run_in_order \
	  tests/unit/io/test_page.py tests/unit/test_cochlea_phantom.py::test_the_page_runs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site is in out/site: $(BIN)/python -m http.server -b 127.0.0.1 -d out/site"

lock: .venv/.installed
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --python-version 3.11 --extra distance --extra mcmc --extra train --group dev \
	  pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --python-version 3.11 --constraint requirements.lock --group docs -o requirements-docs.lock

# --strict: a package that cannot be looked up is an error, not a hole that nobody knows of.
audit: .venv/.installed
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements.lock

outdated: .venv/.installed
	$(BIN)/python -m pip list --outdated

clean:
	rm -rf .venv out
