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
KERNELS := finpile_tokenizer finpile.clean.warmup finpile.dedup
CHECKED := $(KERNELS:%=checked-%)
# pip, which runs beside it, takes the project off the path for a moment.
COMPILE := PYTHONPATH=tokenizer:pipelines $(BIN)/python -m tests.support.kernels
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo test tests test-all engines install-engines lint style types ready $(KERNELS) $(CHECKED) schemas docs bench clean

demo: $(VENV)/.core  ## install, build the sample corpus, say where the report is
	$(BIN)/finpile build pipelines/configs/sample.yaml -o $(OUT)

test:  ## what CI runs
	+$(MAKE) --no-print-directory --jobs=3 ready types tests

tests: ready
	$(PYTEST) -m "not slow"

test-all:  ## the same, with the tests that take minutes or need the real corpora
	+$(MAKE) --no-print-directory --jobs=3 ready types
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

# While pip installs, and waits for the network, two jobs compile the kernels whose packages are there.
ready: $(VENV)/.dev $(KERNELS) $(CHECKED) style

finpile_tokenizer checked-finpile_tokenizer: $(VENV)/.tokenizer
$(filter finpile.%,$(KERNELS)) $(filter checked-finpile.%,$(CHECKED)): $(VENV)/.core

$(KERNELS):
	$(COMPILE) $@

$(CHECKED): checked-%:
	$(COMPILE) --checked $*

schemas: $(VENV)/.dev  ## render schemas/ from the code
	$(BIN)/python schemas/render.py

docs: $(VENV)/.docs  ## guides, decisions and the API reference as pages in site/
	$(BIN)/python -m mkdocs build --strict --quiet

bench: $(VENV)/.dev  ## our hot loops against peers, FINPILE_DATA holding the pinned corpus; results go to benchmarks/results
	$(BIN)/python -m benchmarks.tokenizer $(FINPILE_DATA)
	$(BIN)/python -m benchmarks.dedup $(FINPILE_DATA)
	$(BIN)/python -m benchmarks.dedup.adversarial

# That of Python 3.11 takes twice the CPU time.
$(VENV)/.pip:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	touch $@

$(VENV)/.tokenizer: $(VENV)/.pip constraints.txt
	$(PIP) numba numpy pyarrow
	touch $@

$(VENV)/.core: $(VENV)/.tokenizer pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e ".[dev]"
	touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) -e ".[docs]"
	touch $@

clean:
	rm -rf $(VENV) out site .mypy_cache .ruff_cache .pytest_cache
