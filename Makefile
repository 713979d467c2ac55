# Every target sets itself up in .venv and is quick the second time (see .ci/venv).
#   make demo PYTHON=/path/to/python3.12     use that Python (3.10 or newer)
#   make test ARGS='-k chain'                pass words on to the command
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-all test-matrix lint bench clean

PYTHON ?=
ARGS ?=
export PYTHON
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

help: ## what can be made
	@sed -n 's/^\([a-z-]*\): .*## /\1|/p' Makefile | awk -F'|' '{printf "make %-10s %s\n", $$1, $$2}'

demo: ## record, verify and tamper with a real agent run; no key, no network
	@sh .ci/venv demo
	@$(BIN)/python -m otel_agentrec demo $(ARGS)
	@echo; echo "The command otel-agentrec stands in .venv/bin here: . .venv/bin/activate"

test: ## the default tests
	@sh .ci/venv dev
	@$(PYTEST) $(ARGS)

test-all: ## all tests, also slow ones and those that need servers or frameworks
	@sh .ci/venv dev
	@$(PYTEST) --all $(ARGS)

test-matrix: ## every test there is, also each cell of the kill matrices (an hour and more)
	@sh .ci/venv dev
	@$(PYTEST) --all --matrix $(ARGS)

lint: ## ruff, mypy --strict, and the floors (import-linter)
	@sh .ci/venv dev
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy
	@$(BIN)/lint-imports --no-logo

bench: ## measure; ARGS=quick for under 3 minutes
	@sh .ci/venv dev
	@$(BIN)/python -m benchmarks $(ARGS)

clean: ## remove what the targets above made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
