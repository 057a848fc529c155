PYTHON ?= python3
UV ?= uv

BIN := .venv/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
PACKAGE := $(PIP) --no-index --no-deps --no-build-isolation --editable .
COMPILE := $(UV) pip compile -q --upgrade --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
	--custom-compile-command "make lock" pyproject.toml
# Remove the pins of list $(1) from list $(2), and let $(2) begin with $(1). A pin for more systems than in $(1) stays.
layer = awk 'NR == FNR { below[$$0]; next } /^[^ ]/ { stays = !($$0 in below) } stays' \
	requirements/$(1).txt requirements/$(2).txt | sed '1i -r $(1).txt' >requirements/layer \
	&& mv requirements/layer requirements/$(2).txt
PEERS := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["peers"], sep="\n")

# Tests start hundreds of processes: without bytecode each one would compile our modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install demo test test-long docs kills messages mutants bench peers loadtest lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

install: .venv/.run ## create .venv with firstclick, its reports and its server

demo: .venv/.run ## install, then run the demonstration
	@$(BIN)/firstclick demo

# Tests that compile most kernels.
COMPILING := tests/policies tests/doors tests/serve/log tests/test_records.py

test: .venv/.all ## install the tools too, then lint, type check and test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@echo "in one process first what compiles kernels: two would compile the same ..."
	$(BIN)/pytest $(COMPILING)
	$(BIN)/pytest -n 3 --dist loadfile $(addprefix --ignore=,$(COMPILING))
	@echo "all other policies, in plain Python ..."
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -m others

test-long: .venv/.docs ## the tests that take minutes: all policies compiled, kills, the site; SHARD=1/2 runs half of them
	SHARD=$(SHARD) $(BIN)/pytest -n 2 --dist worksteal -m long

docs: .venv/.docs ## build the site, into out/site; open out/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "the site is in out/site: open out/site/index.html"

kills: N ?= 1000
kills: .venv/.all ## kill N=1000 servers under load, and draw every slate again
	FIRSTCLICK_KILLS=$(N) $(BIN)/pytest -s -m long tests/faults/test_kills.py -k many_kills

messages: .venv/.all ## write the sentences of refusals again, to be read as a diff
	$(BIN)/pytest -q tests/doors/test_refusals.py tests/cli/test_mistakes.py --update-messages
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -m others tests/doors/test_refusals.py --update-messages

mutants: N ?= 40
mutants: .venv/.all ## plant N=40 random faults in PACKAGE=catalog, and list those that no test detects
	nice $(BIN)/python -m tests.support.fault_sample $(PACKAGE) --n $(N)

bench: .venv/.run ## measure the speed of the policies, into out/bench
	@$(BIN)/python -m benchmarks.bench --out out/bench --overwrite

peers: .venv/.run ## install the libraries of python -m benchmarks.bench --peers
	@$(BIN)/python -c '$(PEERS)' | $(PIP) -r /dev/stdin

loadtest: .venv/.run ## put a server under load, and measure it
	@$(BIN)/python -m benchmarks.loadtest

lock: ## pin the newest versions again (needs uv)
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: pip install uv, or make lock UV=/path/to/uv" >&2; exit 1; }
	$(COMPILE) --extra report --extra serve --extra postgresql --group build -o requirements/run.txt
	$(COMPILE) --all-extras --group dev -c requirements/run.txt -o requirements/test.txt
	$(COMPILE) --all-extras --group dev --group docs -c requirements/test.txt -o requirements/docs.txt
	@$(call layer,test,docs)
	@$(call layer,run,test)

clean: ## remove .venv, caches and build products
	rm -rf .venv build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
	-git clean -fdXq docs # pages that the site's build writes

# Stamps: a second make does nothing, a changed pin or pyproject.toml installs again.
# Each list of pins contains the one before: .docs stands for .all, and .all for .run.

.venv/.run: .venv/.made requirements/run.txt pyproject.toml
	@echo "installing what firstclick needs into .venv (under a minute on a fast line) ..."
	@$(PIP) --require-hashes -r requirements/run.txt
	@$(PACKAGE)
	@touch $@

.venv/.all: .venv/.made requirements/run.txt requirements/test.txt pyproject.toml
	@echo "installing firstclick's requirements and development tools into .venv (about a minute on a fast line) ..."
	@$(PIP) --require-hashes -r requirements/test.txt
	@$(PACKAGE)
	@touch .venv/.run $@

.venv/.docs: .venv/.made requirements/run.txt requirements/test.txt requirements/docs.txt pyproject.toml
	@echo "installing what the site and the tutorials need, too ..."
	@$(PIP) --require-hashes -r requirements/docs.txt
	@$(PACKAGE)
	@touch .venv/.run .venv/.all $@

.venv/.made:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: firstclick needs Python 3.11 or newer; try make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "firstclick needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1 | cut -d" " -f2); try make PYTHON=python3.12" >&2; exit 1; }
	@echo "setting up .venv with $$($(PYTHON) -V) ..."
	@$(PYTHON) -m venv --clear .venv
	@touch $@
