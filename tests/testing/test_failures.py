"""What a failed test shows, and what is left of the daemon that it used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
    assert "seed 4711" in done.stdout
    assert "make test ARGS='test_story.py::test_first'" in done.stdout
