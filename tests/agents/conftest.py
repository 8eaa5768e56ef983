"""What tests of agents share: async tests, the boss, an agent with a program, a rig of `acp`, open sessions."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.agents import process_control
from hiboss.agents.providers.acp import resumption
from hiboss.testing.running_daemon import RunningDaemon
from tests.agents.acp_rig import AcpRig
from tests.support.attached_sessions import Room, Session, room
from tests.support.shell_agents import Boss, Program, Worker, assert_idle, end_all
from tests.support.started_programs import mark_of

SECONDS = 600.0  # by the clock of the event loop: a limit for an async test, so that it ends; no test is about this time


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of the test needs time to end: TERM follows INT, and KILL follows TERM, soon."""
    monkeypatch.setattr(process_control, "STEP_SECONDS", 0.2)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A shell script without a daemon. Nothing of it is left, also if the test fails."""
    made = Program(tmp_path / "program")
    yield made
    left = process_control.RunProcesses(frozenset(made.pids), frozenset({mark_of(made)}))
    process_control.chase(left, signal.SIGKILL)


@pytest.fixture
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


@pytest.fixture
def worker(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Worker]:
    """An agent with a shell script. Its runs, and those of all others, end with the test and leave nothing behind."""
    made = Worker(daemon, tmp_path)
    yield made
    end_all(daemon)
    assert_idle(daemon, made.program)


@pytest.fixture
def rig(tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[AcpRig]:
    """A rig of `acp`, of which nothing may be left."""
    monkeypatch.setattr(resumption, "_failures", {})
    made = AcpRig(tmp_path)
    yield made
    assert not made.left_behind()


@pytest.fixture
def opens(daemon: RunningDaemon) -> Iterator[Room]:
    with room(daemon) as made:
        yield made


@pytest.fixture
def session(opens: Room) -> Session:
    return opens()
