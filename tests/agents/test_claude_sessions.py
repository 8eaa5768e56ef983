"""The files that claude keeps of its sessions: whether one is saved, and who has it open. Without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hiboss.agents import process_control
from hiboss.agents.providers.claude import saved_sessions

SESSION = str(uuid.uuid4())
WAITS = "import sys\nprint(flush=True)\nsys.stdin.read()\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in ("projects/-a", "projects/-b", "sessions"):
        (tmp_path / name).mkdir(parents=True)
    return {"CLAUDE_CONFIG_DIR": str(tmp_path)}


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    with begun([sys.executable, "-c", WAITS]) as process:
        yield process


@contextmanager
def begun(arguments: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has begun, and waits until the test has finished with it."""
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        yield process
        process.communicate()


def note(environment: dict[str, str], pid: int, **facts: object) -> None:
    noted = {"pid": pid, "sessionId": SESSION, "procStart": process_control.started_at(pid), **facts}
    Path(environment["CLAUDE_CONFIG_DIR"], "sessions", f"{pid}.json").write_text(json.dumps(noted))


def test_the_configuration_directory_is_the_one_of_the_program() -> None:
    assert saved_sessions.directory({"CLAUDE_CONFIG_DIR": "/c", "HOME": "/h"}) == Path("/c")
    assert saved_sessions.directory({"HOME": "/h"}) == Path("/h/.claude")


def test_a_saved_session_is_found_in_every_project(environment: dict[str, str], tmp_path: Path) -> None:
    assert saved_sessions.saved_bytes(environment, SESSION) is None
    (tmp_path / "projects/-b" / f"{SESSION}.jsonl").write_text("{}\n")
    assert saved_sessions.saved_bytes(environment, SESSION) == 3
    assert saved_sessions.saved_bytes({"CLAUDE_CONFIG_DIR": str(tmp_path / "no")}, SESSION) is None


def test_a_running_program_that_notes_the_session_has_it_open(
    environment: dict[str, str], other: subprocess.Popen[bytes]
) -> None:
    assert saved_sessions.holder(environment, SESSION) == ""
    note(environment, other.pid)
    assert saved_sessions.holder(environment, SESSION) == f"claude (pid {other.pid})"
    assert saved_sessions.holder(environment, str(uuid.uuid4())) == ""


def test_a_number_that_belongs_to_another_process_now_does_not_count(
    environment: dict[str, str], other: subprocess.Popen[bytes]
) -> None:
    note(environment, other.pid, procStart="1")
    assert saved_sessions.holder(environment, SESSION) == ""


def test_a_process_that_has_ended_does_not_count(environment: dict[str, str]) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        started = process_control.started_at(gone.pid)
    note(environment, gone.pid, procStart=started)
    note(environment, os.getpid())
    Path(environment["CLAUDE_CONFIG_DIR"], "sessions", "7.json").write_text("{")
    Path(environment["CLAUDE_CONFIG_DIR"], "sessions", "8.json").write_text("[]")
    assert saved_sessions.holder(environment, SESSION) == ""


def test_a_process_that_has_ended_and_is_not_reaped_does_not_count(environment: dict[str, str]) -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        note(environment, ended.pid)
        assert saved_sessions.holder(environment, SESSION) == ""


def test_a_claude_with_the_session_in_its_arguments_has_it_open(
    environment: dict[str, str], tmp_path: Path
) -> None:
    session = str(uuid.uuid4())
    script = tmp_path / "claude.py"
    script.write_text(WAITS)
    arguments = [sys.executable, str(script), "--resume", session]
    with begun(arguments) as process:
        assert saved_sessions.holder(environment, session) == f"claude (pid {process.pid})"
        assert saved_sessions.holder(environment, str(uuid.uuid4())) == ""
    assert saved_sessions.holder(environment, session) == ""
    with begun([sys.executable, "-c", WAITS, session]):
        assert saved_sessions.holder(environment, session) == ""  # not claude
