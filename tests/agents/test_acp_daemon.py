"""An ACP agent behind a real daemon: found, asked for permission, resumed, and its cost counted once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agents.acp_rig import AcpRig, chunk, ended, permission
from tests.support.daemons import daemon_fixture
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


def test_a_lost_session_is_followed_by_a_new_one_with_a_note(ada: Boss, worker: Worker, rig: AcpRig) -> None:
    ada.send(worker, text="my bird is the heron")
    worker.settled(1)
    unknown = {"error": {"code": -32002, "message": "Resource not found"}}
    rig.plan(chunk("which?"), session_resume=unknown, session_new={"result": {"sessionId": "s-2"}})
    ada.send(worker, text="which bird?")
    run = worker.settled(2)
    assert (run["status"], run["session"]) == ("completed", "s-2")
    found = ada.call("run.get", id=run["id"])["run"]
    assert "scripted 1.2 cannot resume it" in found["note"]
    assert "my bird is the heron" in given(rig)[-1][-1]


def test_it_is_found_by_saying_hello(worker: Worker, rig: AcpRig) -> None:
    found = worker.order("agent.check", name=worker.name)
    assert "scripted 1.2" in json.dumps(found) and rig.turns() == 0
