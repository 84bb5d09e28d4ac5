# Every target sets up what it needs by itself. ARGS go to the command: make test ARGS="-k budget"

.DEFAULT_GOAL := help
.PHONY: help demo serve baseline test lint bench soak strings snapshots lock clean
.NOTPARALLEL:

python := .venv/bin/python
# Nothing of a run leaves the machine.
export LANGSMITH_TRACING := false
# The Python to set up with, where you name one.
export PYTHON

help: ## Show this list
	@sed -nE 's/^([a-z]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 16

demo: ## Run the demonstration: three requests about this machine, and their traces
	@.ci/setup
	@$(python) -m demo $(ARGS)

serve: ## Run the demonstration's servers, and keep serving
	@.ci/setup
	@$(python) -m demo serve $(ARGS)

baseline: ## Ask the demonstration about machines with known faults, and compare (ARGS="--seed 12")
	@.ci/setup
	@$(python) -m demo baseline $(ARGS)

test: ## Run every check and all tests
	@.ci/setup tests
	@.ci/check $(ARGS)

lint: ## Run only the checks: lint, format, types, import contracts
	@.ci/setup
	@.ci/check lint

bench: ## Measure, print a table and write build/bench.json
	@.ci/setup tests
	@$(python) -m tests.bench $(ARGS)

soak: ## Kill processes and servers for ten minutes (ARGS="--minutes 60 --engine sqlite"); then try many more examples
	@.ci/setup tests
	@$(python) -m tests.soak $(ARGS)
	@TACHOGRAPH_SOAK=10 $(python) -m pytest -q --numprocesses=logical --timeout=3600 tests/property tests/audit

strings: ## Extract what the viewer says into its catalogue, for translators
	@.ci/setup tests
	@$(python) -m tests.strings

snapshots: ## Write down anew how the style guide and the pages look, after looking at build/screenshots
	@.ci/setup tests
	@SNAPSHOTS=renew $(python) -m pytest -q -n0 tests/browser/test_style.py tests/browser/test_every_page.py -k "agreed or every_page"
	@git --no-pager diff --stat tests/browser

lock: ## Lock the versions anew from pyproject.toml (ARGS=--upgrade takes the newest)
	@.ci/setup
	@.venv/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --all-extras --generate-hashes \
		--no-annotate --custom-compile-command "make lock" --quiet --output-file requirements.lock $(ARGS)

clean: ## Remove what was made, but not the data folder
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +
