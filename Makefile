# make demo | test | test-all | lint | schemas | bench: everything is installed into .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out/sample
DATA ?= ../shared/data

.PHONY: demo test test-all lint schemas bench clean

demo: $(VENV)/.core  ## install, build the sample corpus, say where the report is
	$(BIN)/finpile build pipelines/configs/sample.yaml -o $(OUT)

test: lint  ## what CI runs
	$(BIN)/python -m pytest -m "not slow" -q

test-all: lint  ## the same, with the tests that take minutes or need the real corpora
	$(BIN)/python -m pytest -q

lint: $(VENV)/.dev  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

schemas: $(VENV)/.dev  ## render schemas/ from the code
	$(BIN)/python schemas/render.py

bench: demo $(VENV)/.dev  ## our hot loops against peers, DATA holding the pinned corpus; results go to benchmarks/results
	$(BIN)/python -m benchmarks.dedup.signatures $(OUT)
	$(BIN)/python -m benchmarks.tokenizer $(DATA)
	$(BIN)/python -m benchmarks.dedup $(DATA)
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

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache
