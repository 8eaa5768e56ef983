"""What all tests share: hypothesis without deadlines; a daemon for the module, two agents, a team, the boss."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from hiboss.testing.running_daemon import RunningDaemon
from tests.real import programs as real_programs
from tests.support import forked_daemons, forked_programs
from tests.support.parties import Party, agents, checked_daemon
from tests.support.python_agents import Boss, Team

# Until the tests are collected: it finds nothing to free, and takes a fifth of that time.
gc.disable()

# Deadlines would be timed assertions, and this machine may be busy with other things.
settings.register_profile("hiboss", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hiboss")

# A shell gives what it runs in the background no SIGINT, and programs hand that on: tests press Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Thousands of daemons would want the one port. Tests of HTTP say `web_enabled="on", web_port=0`.
os.environ["HIBOSS_WEB_ENABLED"] = "off"

RunningDaemon.spawn = staticmethod(forked_daemons.spawn)
forked_programs.fork_daemons(lambda: forked_programs.address(forked_programs.DAEMON))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    real_programs.say_what_was_skipped(terminalreporter)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove the large databases that tests/store/test_flat.py has filled for all workers."""
    if not hasattr(session.config, "workerinput"):
        factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        shutil.rmtree(factory.getbasetemp() / "filled", ignore_errors=True)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection: to walk them takes a third of a second."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with checked_daemon(tmp_path_factory.mktemp("d")) as running:
        yield running


@pytest.fixture
def two(daemon: RunningDaemon) -> tuple[Party, Party]:
    ada, bob = agents(daemon, 2)
    return ada, bob


@pytest.fixture(scope="module")
def team(daemon: RunningDaemon, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(daemon, tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)
