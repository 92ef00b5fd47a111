# make demo | test | test-all | engines | lint | schemas | docs | bench: everything is installed into .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out/sample
WORKERS ?= 2
# The folder of real corpora that tests and benchmarks read (CONTRIBUTING.md).
export FINPILE_DATA ?= data
# Without the bytecode of all modules, most of which nothing imports: imports write that of theirs.
PIP := $(BIN)/python -m pip install -q --no-compile -c constraints.txt
export PYTHONDONTWRITEBYTECODE :=
# What compiles Numba's kernels; before the tests, whose processes would compile them at the same time.
KERNELS := finpile.clean.warmup finpile.dedup finpile_tokenizer
# pip, which runs beside it, takes the project off the path for a moment.
COMPILE := PYTHONPATH=tokenizer $(BIN)/python
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo test tests test-all engines install-engines lint style types ready $(KERNELS) schemas docs bench clean

demo: $(VENV)/.core  ## install, build the sample corpus, say where the report is
	$(BIN)/finpile build pipelines/configs/sample.yaml -o $(OUT)

test: ready  ## what CI runs: mypy takes a minute of one core, which is idle as long in the tests
	+$(MAKE) --no-print-directory --jobs=2 types tests

tests: $(VENV)/.dev
	$(PYTEST) -m "not slow"

test-all: ready  ## the same, with the tests that take minutes or need the real corpora
	+$(MAKE) --no-print-directory types
	-+$(MAKE) --no-print-directory install-engines
	$(PYTEST)

engines: install-engines  ## Spark and Flink as clusters on this machine build the sample on an S3 server (Java, Maven, Go)
	$(BIN)/python -m pytest -q -rs tests/pipelines/test_engines.py

install-engines: $(VENV)/.dev  ## what `engines` needs; nothing is started
	$(PIP) -e ".[s3]"
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

# The kernels need only what a build needs: one core compiles them while pip installs the rest on the other.
ready: $(VENV)/.core
	+$(MAKE) --no-print-directory --jobs=2 $(VENV)/.dev $(KERNELS) style

$(KERNELS): $(VENV)/.core
	$(COMPILE) -c "import $@; $@.compile_kernels()"
	$(COMPILE) -m tests.support.checked_kernels $@

schemas: $(VENV)/.dev  ## render schemas/ from the code
	$(BIN)/python schemas/render.py

docs: $(VENV)/.docs  ## guides, decisions and the API reference as pages in site/
	$(BIN)/python -m mkdocs build --strict --quiet

bench: $(VENV)/.dev  ## our hot loops against peers, FINPILE_DATA holding the pinned corpus; results go to benchmarks/results
	$(BIN)/python -m benchmarks.tokenizer $(FINPILE_DATA)
	$(BIN)/python -m benchmarks.dedup $(FINPILE_DATA)
	$(BIN)/python -m benchmarks.dedup.adversarial

$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.core: $(VENV)/.pip pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.pip pyproject.toml constraints.txt
	$(PIP) -e ".[dev]"
	touch $@ $(VENV)/.core

$(VENV)/.docs: $(VENV)/.pip pyproject.toml constraints.txt
	$(PIP) -e ".[docs]"
	touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) out site .mypy_cache .ruff_cache .pytest_cache
