# `make` alone lists the targets. Every target first sets up what it needs.

BIN := .venv/bin
STAMP := .venv/.set-up
# The tools for the documentation are installed on demand.
UV_DOCS = NO_MKDOCS_2_WARNING=1 UV_PROJECT_ENVIRONMENT=.venv $$(scripts/find-uv) run --frozen --inexact --group docs
# Tests start many processes, which must share compiled bytecode even if PYTHONDONTWRITEBYTECODE is set.
TEST_ENV = PYTHONDONTWRITEBYTECODE=

.DEFAULT_GOAL := help
.PHONY: help set-up demo test fuzz check bench docs docs-serve clean

help: ## show this help
	@echo "Fishweir: standing queries over streams. Targets:"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "Each target installs what it needs; only Python 3.11 or newer is required."

set-up: $(STAMP) ## install everything needed into .venv (including Java, if there is none)

$(STAMP): pyproject.toml uv.lock scripts/set-up scripts/find-uv
	@scripts/set-up
	@touch $@

demo: $(STAMP) ## run the engine on a small stream
	$(BIN)/fishweir demo

test: $(STAMP) ## run all tests, or some: make test ARGS="tests/test_java.py -k version"
	$(TEST_ENV) $(BIN)/pytest $(or $(ARGS),-n 3 --dist loadgroup --no-loadscope-reorder)

fuzz: $(STAMP) ## run the randomized tests with new seeds and fifteen times as many examples
	$(TEST_ENV) FISHWEIR_HYPOTHESIS=fuzz $(BIN)/pytest -k "oracle or random or equal" $(ARGS)

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

clean: ## remove what set-up and runs have created; keeps homes and bench-results
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log demo-home site
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
