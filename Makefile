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

# Pytest rewrites each assert, 13 s of work in a fresh clone: done once here, and not by each worker. Kept also
# where nothing may be cached.
.venv/rewritten: .venv/developers $(wildcard tests/*.py tests/*/*.py tests/*/*/*.py)
	for half in 'tests/[a-c]*/' 'tests/[d-z]*/'; do \
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --collect-only -qq -p no:cacheprovider $$half > /dev/null & done; wait
	touch $@

# Tests make their homes in memory where there is room: a disk lets each COMMIT wait (here 4 ms), and no test
# takes the power away.
MEMORY = $(shell [ -w /dev/shm ] && [ $$(df -Pk /dev/shm | awk 'NR == 2 {print $$4}') -gt 4000000 ] && echo TMPDIR=/dev/shm)

test: lint .venv/rewritten
	PYTHONDONTWRITEBYTECODE= $(MEMORY) $(BIN)/pytest -n 5 --dist worksteal -o tmp_path_retention_count=1 $(ARGS)

# The module installs only what is missing, or not the pinned version. No account and no key is needed.
real: .venv/developers
	$(BIN)/python -m tests.real.programs
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest tests/real -n 3 --dist worksteal $(ARGS)

bench: .venv/developers
	$(BIN)/python -m compileall -q hiboss
	$(BIN)/python -m bench $(ARGS)

# Also: make soak SOAK=tests.telegram.kill_soak (or out_kill_soak), tests.acceptance.mailboxes_soak, tests.store.migration_soak,
# tests.store.flat_soak, tests.web.reconnect_soak, tests.web.openapi_soak, tests.bulk_soak (every row of the tests in bulk, of which
# `make test` takes some of each kind)
soak: .venv/developers
	$(BIN)/python -m $(SOAK) $(ARGS)

docs: .venv/developers
	$(BIN)/python -m docs.record_examples
	$(BIN)/python -m docs.generate
