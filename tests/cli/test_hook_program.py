"""`hiboss hook` and `hiboss watch --hook`, as a harness runs them: real processes, and never an error."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.attached_sessions import receipt, room
from tests.support.cli import HIBOSS, gone
from tests.support.daemons import started
from tests.support.open_harness import Harness
from tests.support.parties import agent
from tests.support.python_agents import Boss, texts
from tests.support.waits import wait_until

SILENT = {"rc": 0, "stdout": "", "stderr": ""}
MEGABYTES_15 = 15 * 1024 * 1024


@pytest.fixture
def harness(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Harness]:
    made = Harness(daemon.home.path, tmp_path / "desk", agent(daemon, mode="pull").name)
    yield made
    made.kill()


def sessions(ada: Boss, harness: Harness) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ada.call("attached.list")["sessions"]
    return [one for one in found if one["session"] == harness.session]


def waits(ada: Boss, harness: Harness) -> bool:
    return any(one["waiter"] for one in sessions(ada, harness))


def hooked(env: dict[str, str], stdin: bytes = b"{}", *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [HIBOSS, "hook", *(words or ("claude",))], input=stdin, capture_output=True, env=env
    )
    return {"rc": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode()}


# --- a session from its start to its end ---------------------------------------------------


def test_an_open_harness_is_woken_answers_and_is_woken_again(ada: Boss, harness: Harness) -> None:
    assert f"agent:{harness.agent}" in harness.start()
    wait_until(lambda: waits(ada, harness))
    [shown] = sessions(ada, harness)
    assert (shown["pid"], shown["state"]) == (harness.process.pid, "idle")
    for question, answer in [("how is the build?", "All is green."), ("and now?", "Still green.")]:
        [envelope] = ada.call("envelope.send", to=f"agent:{harness.agent}", text=question)["ids"]
        assert f"> {question}" in harness.woken()
        assert harness.stop(answer) == "" and receipt(ada, envelope) == "done"
    harness.prompt("a word of the person")
    ada.call("envelope.send", to=f"agent:{harness.agent}", text="a third")
    assert "> a third" in harness.stop("for the person")
    assert harness.stop("the third answer", active=True) == ""
    said = ada.call("conversation.messages", **{"with": f"agent:{harness.agent}"})["envelopes"]
    heard = [one["text"] for one in said if one["from"] != "user:boss"]
    assert sorted(heard) == sorted(["All is green.", "Still green.", "the third answer"])
    harness.end()
    assert sessions(ada, harness) == [] and harness.join()["rc"] == 0


def test_a_tool_of_the_harness_speaks_as_its_agent(ada: Boss, harness: Harness) -> None:
    harness.start()
    done = harness.run(HIBOSS, "send", "boss", "from a tool")
    assert done["rc"] == 0, done
    assert ("from a tool", f"agent:{harness.agent}") in [(one["text"], one["from"]) for one in ada.list()]
    bare = {"PATH": "/usr/bin:/bin", "HIBOSS_HOME": harness.home, "HOME": str(harness.directory)}
    done = harness.run(HIBOSS, "send", "boss", "stripped", env=bare, harness=False)
    assert done["rc"] != 0 and "process" in done["stderr"]
    assert "stripped" not in texts(ada.list())


# --- when it says nothing ------------------------------------------------------------------


@pytest.mark.parametrize(
    "env",
    [
        {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"},
        {"CLAUDE_CODE_ENTRYPOINT": ""},
        {"HIBOSS_RUN": "r1"},
    ],
)
def test_a_session_without_a_person_is_not_attached(ada: Boss, harness: Harness, env: dict[str, str]) -> None:
    given = harness.event("SessionStart", source="startup")
    assert harness.run(HIBOSS, "hook", "claude", stdin=given, env={**harness.variables(), **env}) == SILENT
    assert sessions(ada, harness) == []


def test_a_codex_without_a_person_is_not_attached(ada: Boss, harness: Harness, tmp_path: Path) -> None:
    thread = tmp_path / "rollout.jsonl"
    thread.write_text(json.dumps({"payload": {"originator": "codex_exec"}}) + "\n")
    for given in (harness.event("SessionStart", transcript_path=str(thread)), harness.event("SessionStart")):
        assert harness.run(HIBOSS, "hook", "codex", stdin=given) == SILENT
    assert sessions(ada, harness) == []


@pytest.mark.parametrize(
    "stdin",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"session_id": 5}', b'{"hook_event_name": "New"}', b"{}{}"],
)
def test_an_odd_event_is_answered_with_nothing(harness: Harness, stdin: bytes) -> None:
    assert hooked({**harness.variables(), "CLAUDE_PID": str(harness.process.pid)}, stdin) == SILENT


def test_a_home_that_does_not_exist_is_left_alone(harness: Harness, tmp_path: Path) -> None:
    env = {**harness.variables(), "HIBOSS_HOME": str(tmp_path / "none")}
    assert hooked(env, harness.event("SessionStart").encode()) == SILENT
    assert not (tmp_path / "none").exists()


def test_a_huge_prompt_is_taken(ada: Boss, harness: Harness) -> None:
    harness.start()
    assert harness.prompt("x" * 3_000_000) == ""
    assert sessions(ada, harness)[0]["state"] == "busy"
    harness.stop("y" * 3_000_000)
    wait_until(lambda: sessions(ada, harness)[0]["state"] == "idle")
    [envelope] = ada.call("envelope.send", to=f"agent:{harness.agent}", text="how is the build?")["ids"]
    harness.woken()
    harness.stop("z" * 3_000_000)
    wait_until(lambda: receipt(ada, envelope) == "returned")  # too long an answer, as of every run


def test_without_a_daemon_every_hook_is_silent_and_loads_little(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        harness = Harness(daemon.home.path, tmp_path / "desk", "nex")
        harness.start()
        daemon.kill()
        for name in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "StopFailure", "SessionEnd"):
            assert harness.hook(name) == {}
        loud = {**harness.variables(), "PYTHONPROFILEIMPORTTIME": "1", "CLAUDE_PID": str(harness.process.pid)}
        imported = hooked(loud, harness.event("Stop").encode())["stderr"]
        assert "hiboss.cli.hook.events" in imported
        assert not [one for one in ("typer", "pydantic", "asyncio", "sqlite3") if f" {one}\n" in imported]
        harness.kill()


def test_a_hung_daemon_costs_a_hook_its_time_limit_and_no_error(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        harness = Harness(daemon.home.path, tmp_path / "desk", "nex")
        harness.start()
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            assert harness.prompt("a word of the person") == ""
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        harness.kill()


# --- the waiter ----------------------------------------------------------------------------


def test_one_waiter_waits_for_a_harness(ada: Boss, harness: Harness) -> None:
    harness.start()
    first = harness.waiter
    wait_until(lambda: waits(ada, harness))
    assert harness.join(harness.arm()) == SILENT
    assert not gone(first or 0) and waits(ada, harness)


def test_a_waiter_is_small_and_does_nothing_while_it_waits(ada: Boss, harness: Harness) -> None:
    harness.start()
    wait_until(lambda: waits(ada, harness))
    waiter = psutil.Process(harness.waiter)
    wait_until(lambda: sleeps_for_a_second(waiter))  # it may have to finish its start
    assert waiter.memory_info().rss <= MEGABYTES_15


def sleeps_for_a_second(process: psutil.Process) -> bool:
    """Whether it does not wake up in a second. One that polls never sleeps so long."""
    before = process.num_ctx_switches().voluntary
    time.sleep(1)
    return process.num_ctx_switches().voluntary == before


def test_a_waiter_ends_when_its_harness_is_killed(ada: Boss, harness: Harness) -> None:
    harness.start()
    wait_until(lambda: waits(ada, harness))
    waiter = psutil.Process(harness.waiter)
    harness.kill()
    waiter.wait(30)
    wait_until(lambda: sessions(ada, harness) == [])


def test_a_waiter_ends_when_another_call_waits(ada: Boss, harness: Harness) -> None:
    harness.start()
    wait_until(lambda: waits(ada, harness))
    token = ada.daemon.home.known_session("claude", harness.session)["token"]
    with ada.daemon.connect() as connection:
        request = {"jsonrpc": "2.0", "id": 1, "method": "attached.wait", "params": {"token": token}}
        connection.sendall(json.dumps(request).encode() + b"\n")
        assert harness.join() == SILENT


def test_a_waiter_comes_back_after_the_daemon_was_killed(tmp_path: Path) -> None:
    with started(tmp_path) as daemon:
        ada = Boss(daemon)
        harness = Harness(daemon.home.path, tmp_path / "desk", "nex")
        harness.start()
        wait_until(lambda: waits(ada, harness))
        daemon.kill()
        daemon.start()
        wait_until(lambda: waits(ada, harness))
        ada.call("envelope.send", to="agent:nex", text="are you still there?")
        assert "> are you still there?" in harness.woken()
        harness.kill()


# --- whose token a command has -------------------------------------------------------------


def test_a_session_of_a_harness_is_named_by_its_own_variables(ada: Boss, harness: Harness) -> None:
    harness.start()
    base = {
        "PATH": "/usr/bin:/bin",
        "HIBOSS_HOME": harness.home,
        "HOME": str(harness.directory),
        "LANG": "C.UTF-8",
    }
    for named in (
        {"CLAUDE_CODE_SESSION_ID": harness.session},
        {"HIBOSS_AGENT": str(harness.agent)},
        {"HIBOSS_AGENT": str(harness.agent).upper(), "CLAUDE_CODE_SESSION_ID": harness.session},
    ):
        done = subprocess.run(
            [HIBOSS, "agent", "self", "--json"],
            env={**base, **named},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 and str(harness.agent) in done.stdout, (named, done)


@pytest.mark.parametrize(
    "name", ["CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID", "CODEX_SESSION_ID", "HIBOSS_AGENT"]
)
def test_a_session_that_is_not_attached_is_never_the_boss(daemon: RunningDaemon, name: str) -> None:
    env = {"PATH": "/usr/bin:/bin", "HIBOSS_HOME": daemon.home.path, name: "unknown", "LANG": "C.UTF-8"}
    done = subprocess.run([HIBOSS, "team", "--json"], env=env, capture_output=True, text=True, check=False)
    assert json.loads(done.stderr)["error"]["code"] == "agent_not_named"


@pytest.mark.parametrize("name", ["CODEX_THREAD_ID", "CODEX_SESSION_ID"])
def test_a_session_of_codex_is_named_by_its_own_variable(daemon: RunningDaemon, name: str) -> None:
    with room(daemon) as opens:
        session = opens(client="codex")
        env = {
            "PATH": "/usr/bin:/bin",
            "HIBOSS_HOME": daemon.home.path,
            "LANG": "C.UTF-8",
            name: session.session,
        }
        command = [HIBOSS, "agent", "self", "--json"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and session.name in done.stdout, done
