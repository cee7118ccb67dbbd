# `make` alone lists what there is. Every target first sets up what it needs, in .venv.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup extras browser demo test fuzz architectures lint bench docs clean

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/installed  ## create .venv and install cascaded there, with pinned versions

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("cascaded needs Python 3.10 or newer, $(PYTHON) is " + sys.version.split()[0] + ": run make PYTHON=python3.11") if sys.version_info < (3, 10) else None'
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	@touch $@

extras: .venv/extended  ## also install the optional parts: Ray, tensorboard, playwright, ONNX, FastAPI, Gradio, and the packages whose models the tests convert

.venv/extended: .venv/installed
	$(PIP) --editable '.[cluster,tensorboard,browser,export,serve,live,trainers,architectures]'
	@touch $@

.venv/documented: .venv/installed
	$(PIP) --editable '.[docs]'
	@touch $@

browser: setup  ## find a Chromium for the tests that open pages in one, or install Debian's
	@$(BIN)/python -m tests.browser || { command -v apt-get > /dev/null \
	  && apt-get -qq update && apt-get -qq install --no-install-recommends --yes chromium; } \
	  || { echo 'no browser found and none could be installed: install chromium, or set CASCADED_BROWSER to its path' >&2; exit 1; }

demo: setup  ## evaluate the shipped networks on photographs, train a small one, write a page (three minutes)
	$(BIN)/cascaded demo

test: lint  ## lint, type-check and run the tests (five minutes on two cores)
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal

fuzz: setup  ## the long tests: damaged files, processes killed at many moments, all combinations, a Ray cluster, a wheel
	OMP_NUM_THREADS=1 $(BIN)/pytest -m long --numprocesses auto --dist worksteal

architectures: .venv/extended  ## convert every architecture of the tests, and write docs/architectures.md (ten minutes)
	OMP_NUM_THREADS=1 $(BIN)/pytest -m architectures --numprocesses auto --dist worksteal
	OMP_NUM_THREADS=1 $(BIN)/python -m scripts.architectures

lint: setup  ## ruff and pyright alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright

bench: setup  ## time, memory and operations at the sizes of docs/performance.md (a quarter of an hour)
	$(BIN)/cascaded bench --width 16 64 --batch-size 64 128 --json out/bench.json

docs: .venv/documented  ## the documentation, into site/
	$(BIN)/mkdocs build --strict

clean:  ## remove what the other targets made
	rm -rf .venv build dist out site .pytest_cache .ruff_cache .hypothesis cascaded.egg-info
