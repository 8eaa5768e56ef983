# make up    set up and run the daemon here       make test   lint, types, shape, all tests
# make lint  ruff and mypy                        make bench  speed, as ratios (minutes)
# make soak  many kills under load (long)         make docs   the reference, from the code
# make real  tests with the real Claude Code, Codex and ACP agents (installs them first: 1.3 GB)
# Only python3 (3.11+) with pip, and make, are assumed; the rest is installed into .venv.

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
SOAK ?= tests.acceptance.soak

# `docs` is also a directory, so it must be said here that it is never up to date.
.PHONY: up test real lint bench soak docs
.DEFAULT_GOAL := test

.venv/users: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable .
	$(BIN)/python -m compileall -q hiboss  # or every command would compile it, where nothing may be cached
	touch $@

.venv/developers: .venv/users
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@

up: .venv/users
	$(BIN)/hiboss up $(ARGS)

lint: .venv/developers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: lint
	# Pytest rewrites each assert, 8 s for each worker: let it keep that, also where nothing may be cached.
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n 5 --dist worksteal $(ARGS)

# The module installs only what is missing, or not the pinned version. No account and no key is needed.
real: .venv/developers
	$(BIN)/python -m tests.real.programs
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest tests/real -n 3 --dist worksteal $(ARGS)

bench: .venv/developers
	$(BIN)/python -m compileall -q hiboss
	$(BIN)/python -m bench $(ARGS)

# Also: make soak SOAK=tests.telegram.kill_soak, or SOAK=tests.telegram.out_kill_soak
soak: .venv/developers
	$(BIN)/python -m $(SOAK) $(ARGS)

docs: .venv/developers
	$(BIN)/python -m docs.record_examples
	$(BIN)/python -m docs.generate
