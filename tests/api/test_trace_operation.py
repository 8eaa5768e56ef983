"""`envelope.trace`: one message followed through its envelopes, the runs that had it, and what came of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hiboss.api.operation import REGISTRY, Level
from hiboss.store import traces
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import Party, agent, agents
from tests.support.python_agents import Boss, Team
from tests.support.shell_agents import Program
from tests.support.waits import wait_until

Trace = dict[str, Any]


def trace(who: Party, number: str) -> Trace:
    found: Trace = who.call("envelope.trace", id=number)
    return found


def messages(found: Trace) -> list[tuple[str, str]]:
    """Return what came of it: who sent it, and how it begins."""
    return [(one["sender"], one["preview"]) for one in found["messages"]]


def test_a_trace_shows_the_message_its_envelopes_its_runs_and_the_answer(
    daemon: RunningDaemon, chief: Boss, team: Team
) -> None:
    kai = team.hire('print("all is green")')
    sent = chief.send(kai, text="how is the build?", subject="Build")
    [number] = sent["ids"]
    wait_until(lambda: chief.get(number)["status"] == "done")
    found = trace(chief, number)
    assert found == trace(chief, sent["message"])
    assert (found["message"]["id"], found["message"]["preview"]) == (sent["message"], "Build")
    [envelope] = found["envelopes"]
    assert (envelope["id"], envelope["to"], envelope["receipt"]["state"]) == (number, kai.address, "done")
    [run] = found["runs"]
    assert (run["agent"], run["status"], run["error"]) == (kai.name, "completed", None)
    assert run["id"] == envelope["receipt"]["run"] == found["messages"][0]["run"]
    assert messages(found) == [(kai.address, "all is green")]
    assert (found["messages"][0]["reply_to"], found["more"], found["more_runs"]) == (
        sent["message"],
        False,
        False,
    )


def test_what_came_of_it_goes_on_through_what_others_were_asked_and_shows_only_what_is_ones_own(
    daemon: RunningDaemon, chief: Boss, tmp_path: Path
) -> None:
    asking, answering = Program(tmp_path / "kai"), Program(tmp_path / "lin")
    answering.waits("echo yes, green")
    lin = agent(daemon, provider="command", settings={"command": answering.command})
    asking.sends(lin.address, "is it green?", "echo NO_REPLY")
    kai = agent(daemon, provider="command", settings={"command": asking.command})
    nex = agent(daemon)
    number = nex.tell(kai, text="how is the build?")
    wait_until(lambda: chief.get(number)["status"] == "done")
    [asked] = lin.ids()
    asking.answers("it is green")
    answering.let_go()
    wait_until(nex.ids)
    whole = [(kai.address, "is it green?"), (lin.address, "yes, green"), (kai.address, "it is green")]
    assert messages(trace(chief, number)) == whole
    assert messages(trace(nex, number)) == whole[2:]
    assert messages(trace(lin, asked)) == [(lin.address, "yes, green")]


def test_replies_of_people_and_of_agents_without_turns_are_followed(
    chief: Boss, nex: Party, kai: Party
) -> None:
    first = nex.tell(kai, text="one")
    second = kai.send(text="two", reply_to=first)["ids"][0]
    nex.send(text="three", reply_to=second)
    nex.tell(kai, text="something else")
    assert messages(trace(nex, first)) == [(kai.address, "two"), (nex.address, "three")]
    assert messages(trace(nex, second)) == [(nex.address, "three")]


def test_a_sender_sees_every_envelope_of_a_message_and_a_recipient_only_its_own(
    daemon: RunningDaemon,
) -> None:
    nex, kai, lin, eve = agents(daemon, 4)
    sent = nex.send(kai, lin)
    assert [one["id"] for one in trace(nex, sent["message"])["envelopes"]] == sent["ids"]
    assert [one["to"] for one in trace(lin, sent["message"])["envelopes"]] == [lin.address]
    assert lin.refusal("envelope.trace", id=sent["ids"][0]) == "not_found"
    assert {
        eve.refusal("envelope.trace", id=number)
        for number in (*sent["ids"], sent["message"], "m999999", "e999999")
    } == {"not_found"}


def test_a_deferred_message_is_not_found_by_its_recipient_before_it_arrives(nex: Party, kai: Party) -> None:
    sent = nex.send(kai, deliver_at="+1h")
    assert trace(nex, sent["message"])["envelopes"][0]["receipt"]["state"] == "deferred"
    for number in (*sent["ids"], sent["message"]):
        assert kai.refusal("envelope.trace", id=number) == "not_found"


def test_the_error_of_a_run_is_for_its_agent_and_the_boss(
    daemon: RunningDaemon, tmp_path: Path, chief: Party
) -> None:
    program = Program(tmp_path)
    program.exits(3, "the secret plan of kai")
    kai = agent(daemon, provider="command", settings={"command": program.command})
    (nex,) = agents(daemon, 1)
    number = nex.tell(kai)
    wait_until(lambda: any(one["status"] == "failed" for one in trace(chief, number)["runs"]))
    for who in (chief, kai):
        assert "the secret plan" in trace(who, number)["runs"][0]["error"]
    [run] = trace(nex, number)["runs"]
    assert (run["error"], run["status"]) == (None, "failed") and run["error_kind"]
    assert "secret" not in str(trace(nex, number))


def test_a_deleted_message_shows_no_text_in_a_trace(nex: Party, kai: Party) -> None:
    number = nex.tell(kai, text="the first", subject="a subject")
    kai.call("message.delete", id=kai.send(text="the answer", reply_to=number)["ids"][0])
    nex.call("message.delete", id=number)
    found = trace(nex, number)
    assert (found["message"]["deleted"], found["message"]["preview"]) == (True, "")
    assert [(one["deleted"], one["preview"]) for one in found["messages"]] == [(True, "")]


def test_more_messages_than_are_shown_are_said_to_be_more(nex: Party, kai: Party) -> None:
    number = nex.tell(kai)
    kai.flood(nex, 130, reply_to=number)
    found = trace(nex, number)
    assert (len(found["messages"]), found["more"]) == (100, True)
    assert [one["preview"] for one in found["messages"]] == [str(one) for one in range(100)]


@pytest.mark.slow
def test_a_walk_costs_the_same_beside_many_other_messages_of_the_same_sender(
    daemon: RunningDaemon, nex: Party, kai: Party
) -> None:

    def cost(number: str) -> int:
        """Return how many steps of SQLite the walk takes, in hundreds."""
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        with daemon.database() as database:
            database.row_factory = sqlite3.Row
            database.set_progress_handler(count, 100)
            traces.came_of(database, int(number[1:]))  # type: ignore[arg-type]
        return steps

    sent = nex.send(kai)
    kai.send(text="yes", reply_to=sent["ids"][0])
    before = cost(sent["message"])
    kai.flood(nex, 2_000)
    assert cost(sent["message"]) <= before + 1


def test_everybody_may_trace_what_they_may_see() -> None:
    assert (
        REGISTRY["envelope.trace"].level is Level.RESTRICTED and REGISTRY["envelope.trace"].effect == "read"
    )
