"""ACP agents behind a real daemon, and sessions that are open in another program."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import process_control
from hiboss.agents.providers.acp import resumption
from hiboss.core.contracts.failures import LaneError, SessionLost
from tests.agents.acp_rig import AcpRig, chunk, ended, permission, take
from tests.agents.test_claude_program import WAITS, begun
from tests.support.daemons import daemon_fixture
from tests.support.raising import raised
from tests.support.shell_agents import Boss, Worker
from tests.support.waits import wait_until

RUN = {"name": "Bash", "title": "touch x", "rawInput": {"command": "touch x"}}


daemon = daemon_fixture()


@pytest.fixture
def worker(worker: Worker, rig: AcpRig) -> Worker:
    rig.plan(chunk("hello"))
    worker.change(provider="acp", workspace=str(rig.directory), settings=rig.good())
    return worker


def used(amount: float) -> dict[str, Any]:
    cost = {"amount": amount, "currency": "USD"}
    return {"update": {"sessionUpdate": "usage_update", "used": 3100, "size": 200_000, "cost": cost}}


def given(rig: AcpRig) -> list[list[str]]:
    """What each prompt said, in its blocks."""
    return [json.loads(line) for line in (rig.directory / "prompts").read_text().splitlines()]


def test_its_permission_is_an_ask_and_the_run_shows_what_was_given(
    ada: Boss, worker: Worker, rig: AcpRig
) -> None:
    rig.plan({"ask": [[permission(RUN, "allow_once", "reject_once")], "{chosen}"]})
    ada.send(worker, text="touch it")
    wait_until(lambda: worker.runs() and worker.runs()[0]["status"] == "running")
    run = worker.runs()[0]["id"]
    wait_until(lambda: ada.call("run.get", id=run)["questions"])
    [question] = ada.call("run.get", id=run)["questions"]
    ada.call("ask.answer", id=question["id"], choice="allow")
    assert worker.settled()["status"] == "completed"
    assert rig.told() == [{"outcome": {"outcome": "selected", "optionId": "allow_once"}}]
    [[instructions, text]] = given(rig)
    assert worker.name in instructions and "touch it" in text


def test_what_the_agent_takes_back_needs_no_answer_any_more(ada: Boss, worker: Worker, rig: AcpRig) -> None:
    asking = {"send": {"id": 9, **permission(RUN, "allow_once", "reject_once")}}
    taking_back = {"send": {"method": "$/cancel_request", "params": {"requestId": 9}}}
    rig.plan(asking, {"file": "go"}, taking_back, {"answered": 9}, {"file": "end"}, chunk("done"))
    ada.send(worker, text="touch it")
    wait_until(lambda: ada.call("ask.list", state="open")["asks"])
    [ask] = ada.call("ask.list", state="open")["asks"]
    (rig.directory / "go").touch()
    wait_until(lambda: ada.call("ask.get", id=ask["id"])["ask"]["state"] == "cancelled")
    assert worker.runs()[0]["status"] == "running" and not ada.call("ask.list", state="open")["asks"]
    (rig.directory / "end").touch()
    assert worker.settled()["status"] == "completed"
    assert rig.told() == [{"outcome": {"outcome": "cancelled"}}]


def test_a_second_turn_goes_on_in_the_session_and_costs_only_itself(
    ada: Boss, worker: Worker, rig: AcpRig
) -> None:
    counted = {"inputTokens": 100, "outputTokens": 7}
    rig.plan(chunk("one"), used(0.5), ended(usage=counted))
    ada.send(worker, text="first")
    assert worker.settled(1)["cost"] == 0.5
    rig.plan(chunk("two"), used(0.75), ended(usage=counted))
    ada.send(worker, text="second")
    second = worker.settled(2)
    assert (second["cost"], second["status"]) == (0.25, "completed")
    rig.plan(
        {"error": {"code": 400, "message": "odd"}}
    )  # what a failed turn cost is counted with the next one
    ada.send(worker, text="third")
    assert worker.settled(3)["cost"] is None
    rig.plan(chunk("four"), used(1.5), ended(usage=counted))
    wait_until(lambda: any(one["cost"] == 0.75 for one in worker.runs()))
    resumed = [one["sessionId"] for one in rig.received("session/resume")]
    assert set(resumed) == {"s-new"} and len(resumed) >= 3
    assert [len(blocks) for blocks in given(rig)][:2] == [2, 1]


def test_it_is_found_by_saying_hello(worker: Worker, rig: AcpRig) -> None:
    found = worker.order("agent.check", name=worker.name)
    assert "scripted 1.2" in json.dumps(found) and rig.turns() == 0


# --- sessions that are open in another program ----------------------------------------


SESSION = str(uuid.uuid4())
WRITER = {"error": {"code": -32600, "message": f"thread {SESSION} already has an active writer"}}


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[int]:
    """A process that has noted SESSION as its own, as Claude Code does it."""
    with begun([sys.executable, "-c", WAITS]) as process:
        noted = {"sessionId": SESSION, "procStart": process_control.started_at(process.pid)}
        notes = tmp_path / "config" / "sessions"
        notes.mkdir(parents=True)
        (notes / f"{process.pid}.json").write_text(json.dumps(noted))
        yield process.pid


def hello(name: str, **can: Any) -> dict[str, Any]:
    about = {"name": name, "version": "2"}
    capabilities = {"sessionCapabilities": {"resume": {}, **can}}
    return {"result": {"protocolVersion": 1, "agentInfo": about, "agentCapabilities": capabilities}}


def facts(rig: AcpRig) -> dict[str, Any]:
    environment = {**rig.task().environment, "CLAUDE_CONFIG_DIR": str(rig.directory / "config")}
    return {"session": SESSION, "environment": environment}


def test_a_session_that_claude_has_open_goes_on_in_a_copy(rig: AcpRig, holder: int) -> None:
    copied = {"result": {"sessionId": "the-copy"}}
    rig.plan(chunk("beside"), initialize=hello("@x/claude-agent-acp", fork={}), session_fork=copied)
    answer, run = take(rig, **facts(rig))
    assert (answer.text, run.sessions) == ("beside", ["the-copy"])
    assert answer.note and f"is open in claude (pid {holder})" in answer.note and "the-copy" in answer.note
    assert not rig.received("session/resume")
    assert [one["sessionId"] for one in rig.received("session/fork")] == [SESSION]
    assert [one["sessionId"] for one in rig.received("session/prompt")] == ["the-copy"]


def test_without_copies_a_session_that_claude_has_open_is_lost(rig: AcpRig, holder: int) -> None:
    rig.plan(chunk("beside"), initialize=hello("claude-agent-acp"))
    for _ in range(resumption.MOST_FAILURES + 1):
        caught = raised(SessionLost, take, rig, says="is open in claude", **facts(rig))
    assert "until hiboss restarts" not in caught.text
    assert not rig.received("session/resume") and not rig.received("session/prompt")


def test_sessions_of_other_agents_are_their_own_matter(rig: AcpRig, holder: int) -> None:
    rig.plan(chunk("again"), initialize=hello("another"))
    assert take(rig, **facts(rig))[1].sessions == [SESSION]


@pytest.mark.parametrize("forks", [False, True])
def test_a_session_that_the_agent_says_is_open_is_not_one_that_it_cannot_resume(
    rig: AcpRig, forks: bool
) -> None:
    can = {"fork": {}} if forks else {}
    copied = {"result": {"sessionId": "the-copy"}}
    rig.plan(
        chunk("beside"), initialize=hello("codex-acp", **can), session_resume=WRITER, session_fork=copied
    )
    for _ in range(resumption.MOST_FAILURES + 1):
        if forks:
            answer, run = take(rig, session=SESSION)
            assert run.sessions == ["the-copy"] and "is open in another program" in (answer.note or "")
            continue
        raised(SessionLost, take, rig, says=r"is open in another program$", session=SESSION)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"error": {"code": -32603, "message": "cannot copy it"}}, SessionLost),
        ({"result": {"sessionId": SESSION}}, SessionLost),
        ({"result": {}}, SessionLost),
        ({"error": {"code": -32000, "message": "Authentication required"}}, LaneError),
    ],
)
def test_a_copy_that_fails_loses_the_session_unless_every_turn_would_fail(
    rig: AcpRig, holder: int, reply: dict[str, Any], error: type[Exception]
) -> None:
    rig.plan(chunk("no"), initialize=hello("claude-agent-acp", fork={}), session_fork=reply)
    raised(error, take, rig, **facts(rig))
    assert not rig.received("session/prompt")
