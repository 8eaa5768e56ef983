"""Does the rig open the real Codex? The stories with open sessions build upon it."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from hiboss.testing.model_server import ModelServer, Say
from tests.real.open_codex import OpenCodex
from tests.real.programs import Programs

WAYS = [(), ("--no-daemon",)]


@pytest.mark.parametrize("way", WAYS, ids=["daemon", "alone"])
def test_takes_a_prompt_and_shows_the_answer(
    tmp_path: Path, programs: Programs, server: ModelServer, way: tuple[str, ...]
) -> None:
    server.script(Say("The heron has landed."))
    with OpenCodex(tmp_path, programs, server) as codex:
        codex.start(*way)
        assert (codex.daemon_pid is None) == bool(way)
        assert codex.socket.exists() == (not way)
        codex.type("where is the heron?")
        codex.wait_for("The heron has landed.")
        pids = [codex.pid, codex.daemon_pid]
        assert codex.thread_id in codex.rollouts[-1].name
    assert not any(psutil.pid_exists(one) for one in pids if one)


@pytest.mark.parametrize("way", WAYS, ids=["daemon", "alone"])
def test_escape_interrupts(
    tmp_path: Path, programs: Programs, server: ModelServer, way: tuple[str, ...]
) -> None:
    server.script(Say("Herons have long legs.", hold=True), Say("Second thoughts."))
    with OpenCodex(tmp_path, programs, server) as codex:
        codex.start(*way)
        codex.type("tell me")
        server.wait_held()
        codex.wait_for("Herons")
        codex.press("esc")
        codex.wait_for("Conversation interrupted")
        server.go_on()
        codex.type("and now?")
        assert "long legs" not in codex.wait_for("Second thoughts.")


@pytest.mark.parametrize("way", WAYS, ids=["daemon", "alone"])
def test_resumes_a_thread_after_close_and_after_kill(
    tmp_path: Path, programs: Programs, server: ModelServer, way: tuple[str, ...]
) -> None:
    server.script(Say("First answer."), Say("Second answer."), Say("Third answer."))
    with OpenCodex(tmp_path, programs, server) as codex:
        codex.start(*way)
        codex.type("one")
        codex.wait_for("First answer.")
        thread = codex.thread_id
        codex.close()
        codex.start(*way, "resume", thread)
        codex.wait_for("First answer.")
        codex.type("two")
        codex.wait_for("Second answer.")
        codex.kill()
        codex.close()
        codex.start(*way, "resume", thread)
        codex.type("three")
        codex.wait_for("Third answer.")
        assert [codex.thread_id] == [thread] and len(codex.rollouts) == 1


def test_runs_hooks_that_are_trusted(tmp_path: Path, programs: Programs, server: ModelServer) -> None:
    log = tmp_path / "log"
    hook = {"type": "command", "command": f"tr -d '\\n' >> {log}; echo >> {log}"}
    hooks = {event: [{"hooks": [hook]}] for event in ("SessionStart", "UserPromptSubmit", "Stop")}
    server.script(Say("It hooked."))
    with OpenCodex(tmp_path, programs, server, hooks=hooks, env={"HERON": "grey"}) as codex:
        codex.start("--no-daemon")
        codex.type("hello")
        codex.wait_for("It hooked.")
        codex.until(lambda: log.exists() and '"Stop"' in log.read_text())
        assert codex.thread_id in log.read_text()
