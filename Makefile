# make up        set up and run the daemon here
# make test      lint, types, shape, tests without a daemon, tests with one (5 minutes on 2 cores)
# make slow      kills, faults, pages, properties, fuzz (10 minutes)
# make real      tests with the real Claude Code, Codex and ACP agents (12 minutes; installs them first: 1.3 GB)
# make coverage  branch coverage of the package by `make test` and `make slow`
# make mutants   put forty defects in, one by one: which of them do the tests find? (an hour)
# make steady    run a layer many times, also beside busy loops and in random order, and keep a log
# make soak      many kills under load (long)      make bench  speed, as ratios (minutes)
# make lint      ruff and mypy                     make docs   the reference, from the code
#
# ARGS go to what is run. `make test ARGS=FILE` (or slow, real) runs that file alone, at once: no lint, no workers.
# ORDER=7 shuffles the tests with this seed. Only python3 (3.11+) with pip, and make, are assumed; the rest is
# installed into .venv.

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
ORDER ?=
SOAK ?= tests.acceptance.soak

# `docs` is also a directory, so it must be said here that it is never up to date.
.PHONY: up test slow real lint bench soak docs coverage mutants steady
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
PYTEST = PYTHONDONTWRITEBYTECODE= HIBOSS_TESTS_ORDER=$(ORDER) $(MEMORY) $(BIN)/pytest --durations=10
# Tests wait for processes and sockets: more workers than cores. Some modules take a minute, so work is stolen.
WORKERS = -n 5 --dist worksteal
# Which folders need no daemon; whatever is not named here is taken for one that does.
WITHOUT_DAEMON = tests/shape tests/core tests/store tests/bench tests/docs tests/testing
WITH_DAEMON = $(filter-out $(WITHOUT_DAEMON) tests/real tests/support,$(patsubst %/__init__.py,%,$(wildcard tests/*/__init__.py)))

ifeq ($(strip $(ARGS)),)
test: lint .venv/rewritten
	@$(PYTEST) $(WORKERS) -m 'not slow' $(WITHOUT_DAEMON); without=$$?; \
	$(PYTEST) $(WORKERS) -m 'not slow' $(WITH_DAEMON) && exit $$without

slow: .venv/rewritten
	$(PYTEST) $(WORKERS) -m slow $(WITHOUT_DAEMON) $(WITH_DAEMON)
else
test slow: .venv/developers
	$(PYTEST) $(ARGS)
endif

# The module installs only what is missing, or not the pinned version. No account and no key is needed.
real: .venv/developers
	$(BIN)/python -m tests.real.programs
	PYTHONDONTWRITEBYTECODE= HIBOSS_TESTS_ORDER=$(ORDER) $(BIN)/pytest --durations=10 $(or $(ARGS),tests/real -n 3 --dist worksteal)

coverage: .venv/rewritten
	rm -rf .coverage && mkdir .coverage
	$(MEMORY) $(BIN)/coverage run -m pytest $(WORKERS) $(or $(ARGS),$(WITHOUT_DAEMON) $(WITH_DAEMON))
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort=cover | tail -n 40

mutants: .venv/developers
	$(BIN)/python -m tests.mutants $(ARGS)

steady: .venv/developers
	$(BIN)/python -m tests.steady $(ARGS)

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
