# make demo | test | test-all | engines | lint | schemas | docs | bench: everything is installed into .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out/sample
WORKERS ?= 2
# The folder of real corpora that tests and benchmarks read (CONTRIBUTING.md).
export FINPILE_DATA ?= data
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-all engines install-engines lint style types fast-tests all-tests schemas docs bench clean

demo: $(VENV)/.core  ## install, build the sample corpus, say where the report is
	$(BIN)/finpile build pipelines/configs/sample.yaml -o $(OUT)

test: style  ## what CI runs
	+$(MAKE) --no-print-directory --jobs=2 types fast-tests

test-all: style  ## the same, with the tests that take minutes or need the real corpora
	-+$(MAKE) --no-print-directory install-engines
	+$(MAKE) --no-print-directory --jobs=2 types all-tests

engines: install-engines  ## Spark and Flink as clusters on this machine build the sample on an S3 server (Java, Maven, Go)
	$(BIN)/python -m pytest -q -rs tests/pipelines/test_engines.py

install-engines: $(VENV)/.dev  ## what `engines` needs; nothing is started
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[s3]"
	pipelines/runners/stores/up --install
	pipelines/runners/spark/up --install
	pipelines/runners/flink/up --install

lint: style types  ## style, layers, types

style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

fast-tests: $(VENV)/.dev
	$(PYTEST) -m "not slow"

all-tests: $(VENV)/.dev
	$(PYTEST)

schemas: $(VENV)/.dev  ## render schemas/ from the code
	$(BIN)/python schemas/render.py

docs: $(VENV)/.docs  ## guides, decisions and the API reference as pages in site/
	$(BIN)/python -m mkdocs build --strict --quiet

bench: demo $(VENV)/.dev  ## our hot loops against peers, FINPILE_DATA holding the pinned corpus; results go to benchmarks/results
	$(BIN)/python -m benchmarks.dedup.signatures $(OUT)
	$(BIN)/python -m benchmarks.tokenizer $(FINPILE_DATA)
	$(BIN)/python -m benchmarks.dedup $(FINPILE_DATA)
	$(BIN)/python -m benchmarks.dedup.adversarial

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.core: $(VENV)/.pip pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.pip pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.core

$(VENV)/.docs: $(VENV)/.pip pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[docs]"
	touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) out site .mypy_cache .ruff_cache .pytest_cache
