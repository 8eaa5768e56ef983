"""The rig of an open session (open_claude.py) with the real Claude Code."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from hiboss.testing.model_server import ModelServer, Say
from tests.real.open_claude import OpenClaude
from tests.real.programs import Programs

INTERRUPTED = "Interrupted"


def test_it_starts_takes_a_prompt_and_shows_the_answer(
    tmp_path: Path, programs: Programs, server: ModelServer
) -> None:
    server.script(Say("two herons"))
    with OpenClaude(tmp_path, programs, server) as claude:
        claude.wait_status("idle")
        claude.enter("what is on the lake?")
        claude.wait_for("two herons")
        assert server.turns[-1].last_user == "what is on the lake?"
        assert claude.record()["entrypoint"] == "cli"
        claude.wait_status("idle")
    assert not claude.runs
    assert not claude.left_behind()


def test_escape_interrupts_an_answer(tmp_path: Path, programs: Programs, server: ModelServer) -> None:
    server.script(Say("never said", hold=True), Say("said after"))
    with OpenClaude(tmp_path, programs, server) as claude:
        claude.enter("begin")
        server.wait_held()
        claude.wait_status("busy")
        claude.press("esc")
        claude.wait_for(INTERRUPTED)
        claude.wait_status("idle")
        claude.press("ctrl-u")
        claude.enter("go on")
        claude.wait_for("said after")


def test_clear_begins_another_session(tmp_path: Path, programs: Programs, server: ModelServer) -> None:
    with OpenClaude(tmp_path, programs, server) as claude:
        first, pid = claude.session_id, claude.pid
        claude.enter("remember the osprey")
        claude.wait_for("You said: remember the osprey")
        claude.wait_status("idle")
        claude.enter("/clear")
        claude.until(lambda: claude.record().get("sessionId") not in (None, first), "other session")
        claude.enter("what was it?")
        claude.wait_for("You said: what was it?")
        assert "osprey" not in server.turns[-1].everything
        assert claude.pid == pid


def test_a_closed_session_is_resumed(tmp_path: Path, programs: Programs, server: ModelServer) -> None:
    with OpenClaude(tmp_path, programs, server) as claude:
        session = claude.session_id
        claude.enter("remember the osprey")
        claude.wait_for("You said: remember the osprey")
        claude.wait_status("idle")
        claude.close()
        assert claude.wait_end() == 0
        assert not claude.record_path().exists()
    with OpenClaude(tmp_path, programs, server, arguments=["--resume", session]) as again:
        again.wait_for("remember the osprey")
        assert again.session_id == session
        again.enter("what was it?")
        again.wait_for("You said: what was it?")
        assert "remember the osprey" in server.turns[-1].everything


def test_a_killed_session_leaves_its_record(tmp_path: Path, programs: Programs, server: ModelServer) -> None:
    with OpenClaude(tmp_path, programs, server) as claude:
        claude.kill()
        assert claude.wait_end() == -signal.SIGKILL
        assert claude.record_path().exists()
        with pytest.raises(AssertionError, match="it has ended"):
            claude.wait_for("never")
