# `make` alone shows what can be done. Every target sets up what it needs first.

BIN := .venv/bin
STAMP := .venv/.set-up
# The documentation's tools are brought only when they are asked for.
UV_DOCS = NO_MKDOCS_2_WARNING=1 UV_PROJECT_ENVIRONMENT=.venv $$(scripts/find-uv) run --frozen --inexact --group docs
# Tests start many processes: they share what Python has compiled, also where it is told to write nothing.
TESTED = PYTHONDONTWRITEBYTECODE=

.DEFAULT_GOAL := help
.PHONY: help set-up demo test fuzz check bench docs docs-serve clean

help: ## show this
	@echo "Fishweir: standing queries over streams. What can be done here:"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "Each brings what it needs by itself; only Python 3.11 or newer has to be there."

set-up: $(STAMP) ## bring everything needed into .venv (also Java, where there is none)

$(STAMP): pyproject.toml uv.lock scripts/set-up scripts/find-uv
	@scripts/set-up
	@touch $@

demo: $(STAMP) ## show the engine at work on a small stream
	$(BIN)/fishweir demo

test: $(STAMP) ## run all tests; some of them: make test ARGS="tests/test_java.py -k version"
	$(TESTED) $(BIN)/pytest $(or $(ARGS),-n 3 --dist loadgroup --no-loadscope-reorder)

fuzz: $(STAMP) ## the tests on random queries and documents, with new draws
	$(TESTED) FISHWEIR_HYPOTHESIS=fuzz $(BIN)/pytest -k "oracle or random or equal" $(ARGS)

check: $(STAMP) ## lint (ruff) and types (mypy)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(STAMP) ## run the experiment of a paper: make bench NAME=niagaracq
	@test -n "$(NAME)" || { echo "Which experiment? For example: make bench NAME=niagaracq" >&2; exit 2; }
	$(BIN)/fishweir bench $(NAME)

docs: $(STAMP) ## build the documentation into site/
	$(UV_DOCS) mkdocs build --strict

docs-serve: $(STAMP) ## serve the documentation and rebuild it on every change
	$(UV_DOCS) mkdocs serve --strict

clean: ## remove what set-up and runs have made; homes and bench-results stay
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log demo-home site
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
