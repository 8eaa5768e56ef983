"""What the tests stand on: failures, waits, sweeps, tests in bulk, and the real programs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import bulk_soak
from tests.real import programs
from tests.support import bulk
from tests.support.sweeps import sweep
from tests.support.waits import happens, wait_until

ROOT = Path(__file__).parents[2]
CONFTEST = """
import pytest
from tests.support import failures, forked_daemons
from tests.support.parties import checked_daemon
from hiboss.testing.running_daemon import RunningDaemon

RunningDaemon.spawn = staticmethod(forked_daemons.spawn)

def pytest_configure(config):
    config.pluginmanager.register(failures)

@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with checked_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running
"""
TESTS = """
from tests.support.failures import seeded

pids = []

def test_first(daemon):
    pids.append(daemon.pid)
    seeded(4711)
    assert daemon.call("daemon.ping") is None

def test_second(daemon):
    assert pids != [daemon.pid], "the daemon of a failed test is not used again"
    pids.append(daemon.pid)

def test_third(daemon):
    assert pids[-1] == daemon.pid, "that of one that passed is"
"""


def test_a_failure_shows_log_seed_and_command_and_the_next_test_has_a_new_daemon(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_story.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    assert "log of a daemon" in done.stdout and "[start] Daemon" in done.stdout
    assert "seed 4711" in done.stdout and "make test ARGS='test_story.py::test_first'" in done.stdout


# --- waits and sweeps -----------------------------------------------------------------


def test_a_failed_wait_says_what_was_awaited_and_what_was_there() -> None:
    numbers = [1]
    with pytest.raises(AssertionError) as failed:
        wait_until(lambda: [*numbers, len(numbers)] == [1, 2], 0)
    assert "waited 0 s for: [*numbers, len(numbers)] == [1, 2]" in str(failed.value)
    assert "there was instead: [1, 1] == [1, 2]" in str(failed.value)
    with pytest.raises(AssertionError, match=r"waited 0 s for: [^\n]*isdigit\nthere was instead: False"):
        asyncio.run(happens("x".isdigit, 0))


def test_a_condition_with_default_values_is_explained() -> None:
    with pytest.raises(AssertionError, match=r"instead: \(1 \+ 1\) == 3"):
        wait_until(lambda one=1: one + 1 == 3, 0)


def test_a_wait_returns_what_it_waited_for() -> None:
    found = iter([[], [], ["here"]])
    assert wait_until(lambda: next(found)) == ["here"]
    assert asyncio.run(happens(lambda: "there")) == "there"


def test_of_two_lambdas_in_a_line_the_one_that_was_awaited_is_shown() -> None:
    first, second = (lambda: 1 == 2, lambda: 3 == 4)
    with pytest.raises(AssertionError, match="for: 1 == 2"):
        wait_until(first, 0)
    with pytest.raises(AssertionError, match="for: 3 == 4"):
        wait_until(second, 0)


def test_a_sweep_goes_on_after_a_row_that_fails_and_names_it() -> None:
    seen = []
    with pytest.raises(AssertionError) as failed, sweep() as row:
        for number in range(3):
            with row(f"number {number}"):
                seen.append(number)
                assert number != 1
    assert seen == [0, 1, 2]
    assert "1 of 3 rows failed" in str(failed.value) and "number 1" in str(failed.value)


def test_a_sweep_without_rows_fails() -> None:
    with pytest.raises(AssertionError, match="no rows"), sweep():
        pass


# --- tests in bulk --------------------------------------------------------------------


ROWS = [(kind, number) for number in range(10) for kind in "abc"]


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bulk.VARIABLE, raising=False)  # the soak runs this too


def test_every_kind_is_taken_as_often_as_asked_in_the_order_of_the_rows() -> None:
    rows = [*ROWS, ("d", 0)]
    taken = bulk.some(rows, lambda row: row[0], each=2)
    assert sorted(kind for kind, _ in taken) == ["a", "a", "b", "b", "c", "c", "d"]
    assert taken == [row for row in rows if row in taken]
    assert taken == bulk.some(rows, lambda row: row[0], each=2)  # or the workers would not agree


def test_not_the_first_row_of_each_kind_is_taken() -> None:
    assert {number for _, number in bulk.some(ROWS, lambda row: row[0])} != {0}


def test_in_a_soak_every_row_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bulk.VARIABLE, "whole")
    assert (bulk.some(ROWS, lambda row: row[0]), bulk.number(3, 40)) == (ROWS, 40)


def test_the_soak_runs_the_modules_that_leave_rows_out() -> None:
    found = bulk_soak.modules()
    assert "tests/web/test_door_contract.py" in found and "tests/cli/test_bad_input_cli.py" in found
    assert "tests/cli/test_help.py" not in found


# --- the real programs ----------------------------------------------------------------


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=100
    )


def make_bwrap(directory: Path, script: str) -> None:
    (directory / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (directory / "bwrap").chmod(0o755)


def test_without_the_programs_nothing_runs_and_it_fails(tmp_path: Path) -> None:
    done = run("tests/real/test_codex_contract.py", "-n", "1", REAL_PROGRAMS=str(tmp_path))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert f"not installed in {tmp_path}" in done.stderr and "make real" in done.stderr
    assert "passed" not in done.stdout and "skipped" not in done.stdout


def test_who_does_not_name_them_does_not_even_collect_them() -> None:
    others = [f"--ignore={one}" for one in ROOT.glob("tests/*/") if one.name != "real"]
    done = run("tests", "--collect-only", *others)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr


def test_programs_of_another_pin_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamp = tmp_path / "stamp"
    make_bwrap(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(programs, "STAMP", stamp)
    monkeypatch.setattr(programs, "_node", lambda: tmp_path / "node")
    for pinned in (None, "an older one\n"):
        if pinned is not None:
            stamp.write_text(pinned)
        with pytest.raises(LookupError, match="not installed"):
            programs.find()
    stamp.write_text(programs._pinned())
    found = programs.find()
    assert found.claude.endswith("/claude") and str(tmp_path) in found.path


def test_without_a_bubblewrap_that_works_nothing_is_installed_and_the_advice_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="apt-get install bubblewrap"):
        programs.install()
    make_bwrap(tmp_path, "echo no namespaces today >&2; exit 1")
    with pytest.raises(SystemExit, match=r"no namespaces today.*needs user namespaces"):
        programs.install()
