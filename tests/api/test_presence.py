"""Who is here, as callers see it: the presence of agents at work, stuck runs, and who types."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_with, wait_until
from tests.support.followers import following
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent
from tests.support.present_people import EventClock, hearing, opened, presence
from tests.support.python_agents import Boss, Team, wait_until_idle


def shown(party: Party, who: Party) -> str:
    """Return the presence of somebody, the same wherever it is shown."""
    found = party.call("presence.get", address=who.address)["presence"]
    listed = {one["address"]: one["presence"] for one in party.call("presence.list")["presence"]}
    assert listed[who.address] in (found, shown_as_status(party, who))
    return str(found)


def shown_as_status(party: Party, who: Party) -> str:
    return str(party.call("agent.status", name=who.name)["agent"]["presence"])


def conversation(one: Party, other: Party) -> str:
    return str(one.call("conversation.messages", **{"with": other.address})["conversation"])


# --- agents at work ------------------------------------------------------------------


def test_an_agent_runs_types_while_it_writes_and_is_idle_again(team: Team, ada: Boss) -> None:
    kai = team.hire(
        """
wait_for("write")
print("some words", flush=True)
wait_for("end")
"""
    )
    assert shown(ada, kai) == "idle"
    with following(team.daemon) as follower:
        follower.subscribe(ada.token, topics=["presence"], addresses=[kai.address])
        ada.say(kai, text="go")
        assert follower.next("presence")["presence"] == "running"
        assert shown_as_status(ada, kai) == "running"
        team.place("write").touch()
        fact = follower.next("presence")
        assert (fact["presence"], fact["state"]) == ("typing", "running")
        assert shown(kai, kai) == "typing"  # the agents themselves see it too
        team.place("end").touch()
        wait_until(lambda: shown_as_status(ada, kai) == "idle")
        wait_until_idle(team.daemon)


def test_an_agent_that_asks_waits_for_an_answer(team: Team, ada: Boss) -> None:
    kai = team.hire(
        """
call("ask.create", question="Deploy?", options=["yes", "no"])
wait_for("asked")
print("NO_REPLY")
"""
    )
    assert ada.call("agent.notify", name=kai.name, when="waiting")["told"] is False
    ada.say(kai, text="go")
    wait_until(lambda: shown_as_status(ada, kai) == "waiting")
    assert ada.status(kai)["state"] == "asks"
    wait_until(
        lambda: any(one["text"].startswith(f"{kai.address} waits for") for one in ada.list(page_size=100))
    )
    team.place("asked").touch()
    wait_until(lambda: shown_as_status(ada, kai) == "idle")  # the question is still open; no run waits for it


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon that takes half a second of silence for a sign that a run is stuck."""
    with daemon_with(tmp_path_factory.mktemp("d"), stuck_seconds=0.5) as running:
        yield running
        running.check()


@pytest.fixture
def stuck(strict: RunningDaemon, tmp_path: Path) -> Team:
    return Team(strict, tmp_path)


def told_stuck(ada: Boss, kai: Party) -> list[str]:
    return [
        one["text"] for one in ada.list(page_size=100) if f"{kai.address} seems to be stuck" in one["text"]
    ]


def test_the_boss_is_told_once_of_a_run_without_a_sign_of_life_and_what_helps(stuck: Team) -> None:
    ada = Boss(stuck.daemon)
    kai = stuck.hire(
        """
wait_for("first")
print("alive", flush=True)
wait_for("second")
"""
    )
    with following(stuck.daemon) as follower:
        follower.subscribe(ada.token, topics=["presence"], addresses=[kai.address])
        ada.say(kai, text="go")
        facts = [follower.next("presence") for _ in range(2)]
        assert [one["presence"] for one in facts] == ["running", "stuck"]
        assert facts[1]["state"] == "stuck"
        wait_until(lambda: told_stuck(ada, kai))
        run = kai.runs()[0]["id"]
        assert "gives no sign of life" in ada.status(kai)["why"]
        stuck.place("first").touch()  # it goes on, writes, and is stuck again
        assert follower.next("presence")["presence"] in ("typing", "running")
        wait_until(lambda: shown_as_status(ada, kai) == "stuck")
        [text] = told_stuck(ada, kai)
        assert f"hiboss run tail {run}" in text and f"hiboss control cancel --run {run}" in text
        stuck.place("second").touch()
        wait_until(lambda: shown_as_status(ada, kai) == "idle")


def test_a_run_that_calls_is_not_stuck_though_it_says_nothing(stuck: Team) -> None:
    ada = Boss(stuck.daemon)
    kai = stuck.hire(
        """
end = time.monotonic() + 1.5
while time.monotonic() < end:
    call("agent.self")
    time.sleep(0.02)
print("fine")
"""
    )
    with following(stuck.daemon) as follower:
        follower.subscribe(ada.token, topics=["presence"], addresses=[kai.address])
        ada.say(kai, text="go")
        words = [follower.next("presence")["presence"]]
        while words[-1] != "idle":
            words.append(follower.next("presence")["presence"])
    assert "stuck" not in words and told_stuck(ada, kai) == []


def test_a_paused_run_and_one_that_asks_are_not_stuck(stuck: Team) -> None:
    ada = Boss(stuck.daemon)
    kai = stuck.hire('note("begun"); wait_for("resumed"); print("fine")')
    busy = stuck.hire("wait_for('never')")
    ada.say(kai, text="go")
    wait_until(lambda: kai.program.notes())
    ada.call("control.send", event="stream.pause", run=kai.runs()[0]["id"])
    assert shown_as_status(ada, kai) == "offline"
    ada.say(busy, text="go")
    wait_until(lambda: told_stuck(ada, busy))  # as long as that took, the paused one was silent
    assert told_stuck(ada, kai) == [] and shown_as_status(ada, kai) == "offline"
    ada.call("control.send", event="stream.cancel", run=busy.runs()[0]["id"])
    stuck.place("resumed").touch()
    ada.call("control.send", event="stream.resume", run=kai.runs()[0]["id"])
    wait_until(lambda: shown_as_status(ada, kai) == "idle")


# --- who types -----------------------------------------------------------------------


def test_the_others_of_a_conversation_hear_who_types_and_nobody_else(
    daemon: RunningDaemon, two: tuple[Party, Party], ada: Boss
) -> None:
    kai, zoe = two
    eve = agent(daemon)
    kai.send(zoe)
    number = conversation(kai, zoe)
    with following(daemon) as other, following(daemon) as own, following(daemon) as foreign:
        for follower, party in ((other, zoe), (own, kai), (foreign, eve)):
            follower.subscribe(party.token)
        assert kai.call("presence.typing", conversation=number) == {"conversation": number, "changed": True}
        assert kai.call("presence.typing", conversation=number, on=True)["changed"] is False
        assert kai.call("presence.typing", conversation=number, on=False)["changed"] is True
        facts = [other.next("presence.typing") for _ in range(2)]
        assert [(one["who"], one["conversation"], one["on"]) for one in facts] == [
            (kai.address, number, True),
            (kai.address, number, False),
        ]
        for follower, party in ((own, kai), (foreign, eve)):
            assert not [
                one for one in follower.until("then", party.token) if one["topic"] == "presence.typing"
            ]
    assert eve.refusal("presence.typing", conversation=number) == "not_found"
    assert ada.refusal("presence.typing", conversation=number) == "not_found"  # he reads along, no more


@frozen()
async def test_typing_ends_by_itself_after_six_seconds_unless_it_is_said_again(
    daemon: InProcessDaemon,
) -> None:
    clock = EventClock(daemon)
    await daemon.send("user:boss")
    number = (await daemon.ask("conversation.messages", **{"with": "agent:nex"}))["conversation"]
    with hearing(daemon, "presence.typing") as listener:
        for _ in range(3):
            await daemon.ask("presence.typing", conversation=number)
            clock.move(seconds=5)
        clock.move(seconds=2)
        heard = [await listener.hear() for _ in range(2)]
        assert [(one["who"], one["on"]) for one in heard] == [("user:boss", True), ("user:boss", False)]
        assert (await daemon.ask("presence.typing", conversation=number, on=False))["changed"] is False


@frozen()
async def test_a_person_who_types_is_not_away(daemon: InProcessDaemon) -> None:
    clock = EventClock(daemon)
    await daemon.send("user:boss")
    number = (await daemon.ask("conversation.messages", **{"with": "agent:nex"}))["conversation"]
    await opened(daemon)
    clock.move(minutes=6)
    assert await presence(daemon, "boss") == "away"
    await daemon.ask("presence.typing", conversation=number)
    assert await presence(daemon, "boss") == "online"


def test_people_are_listed_with_their_presence(daemon: RunningDaemon, ada: Boss) -> None:
    with following(daemon) as follower:
        follower.subscribe(ada.token)
        people: list[dict[str, Any]] = ada.call("user.list")["users"]
        assert [one["presence"] for one in people if one["boss"]] == ["online"]
        assert ada.call("presence.get", address="boss")["state"] is None
    wait_until(lambda: ada.call("presence.get", address="boss")["presence"] == "offline")
