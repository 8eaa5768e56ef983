"""Who is here, as callers see it: the presence of agents at work, stuck runs, and who types."""

from __future__ import annotations

from typing import Any

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.followers import following
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party
from tests.support.present_people import EventClock, SilentRun, hearing, opened, presence
from tests.support.python_agents import Boss, Team, status_of, wait_until_idle
from tests.support.waits import wait_until


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


def test_an_agent_runs_types_while_it_writes_and_is_idle_again(team: Team, chief: Boss) -> None:
    kai = team.hire(
        """
wait_for("write")
while not os.path.exists(os.path.join(HERE, "end")):
    print("some words", flush=True)  # again and again: who writes no more soon types no more
    time.sleep(0.05)
"""
    )
    assert shown(chief, kai) == "idle"
    with following(team.daemon) as follower:
        follower.subscribe(chief.token, topics=["presence"], addresses=[kai.address])
        chief.say(kai, text="go")
        assert follower.next("presence")["presence"] == shown_as_status(chief, kai) == "running"
        team.place("write").touch()
        fact = follower.next("presence")
        assert (fact["presence"], fact["state"]) == ("typing", "running")
        assert shown(kai, kai) == "typing"  # the agents themselves see it too
        team.place("end").touch()
        wait_until(lambda: shown_as_status(chief, kai) == "idle")
        wait_until_idle(team.daemon)


def test_an_agent_that_asks_waits_for_an_answer(team: Team, chief: Boss) -> None:
    kai = team.hire(
        """
call("ask.create", question="Deploy?", options=["yes", "no"])
wait_for("asked")
print("NO_REPLY")
"""
    )
    assert chief.call("agent.notify", name=kai.name, when="waiting")["told"] is False
    chief.say(kai, text="go")
    wait_until(lambda: shown_as_status(chief, kai) == "waiting")
    assert chief.status(kai)["state"] == "asks"
    wait_until(
        lambda: any(one["text"].startswith(f"{kai.address} waits for") for one in chief.list(page_size=100))
    )
    team.place("asked").touch()
    wait_until(
        lambda: shown_as_status(chief, kai) == "idle"
    )  # the question is still open; no run waits for it


# --- runs without a sign of life, on a clock that the test moves ---------------------


STUCK_SECONDS = 301  # a second more than a run may be silent


@frozen()
async def test_the_boss_is_told_once_of_a_run_without_a_sign_of_life_and_what_helps(
    daemon: InProcessDaemon,
) -> None:
    run = await SilentRun.begin(daemon)
    with hearing(daemon, "presence") as listener:
        run.clock.move(seconds=STUCK_SECONDS)
        fact = await listener.hear()
        assert (fact["agent"], fact["presence"], fact["state"]) == ("agent:kai", "stuck", "stuck")
        assert "gives no sign of life" in (await status_of(daemon, "kai"))["why"]
        run.program.path.with_name("first").touch()  # it goes on, writes, and is stuck again
        assert (await listener.hear())["presence"] in ("typing", "running")
        await daemon.until(lambda: run.execution.silent_seconds < STUCK_SECONDS)
        run.clock.move(seconds=STUCK_SECONDS)
        assert await run.presence() == "stuck"
    [text] = await run.told()
    assert f"hiboss run tail {run.id}" in text and f"hiboss control cancel --run {run.id}" in text
    assert await run.end() == "completed" and await run.presence() == "idle"


@frozen()
async def test_a_run_that_calls_is_not_stuck_though_it_says_nothing(daemon: InProcessDaemon) -> None:
    run = await SilentRun.begin(daemon)
    for _ in range(3):
        await run.call("agent.self")
        run.clock.move(seconds=STUCK_SECONDS - 10)
        assert await run.presence() == "running"
    assert await run.told() == []
    run.clock.move(seconds=20)
    assert await run.presence() == "stuck"
    await run.end()


@frozen()
async def test_a_paused_run_and_one_that_asks_are_not_stuck(daemon: InProcessDaemon) -> None:
    run = await SilentRun.begin(daemon)
    await daemon.ask("control.send", event="stream.pause", run=run.id)
    run.clock.move(seconds=STUCK_SECONDS)
    assert await run.presence() == "offline"
    await daemon.ask("control.send", event="stream.resume", run=run.id)
    ask, waits = await run.asks()
    run.clock.move(seconds=STUCK_SECONDS)
    assert await run.presence() == "waiting"
    await run.is_answered(ask, waits)
    assert await run.told() == []
    run.clock.move(seconds=STUCK_SECONDS)
    assert await run.presence() == "stuck"
    await run.end()


@frozen(quiet=False, lock_wait_seconds=0.02)
async def test_a_stuck_run_whose_outcome_cannot_be_stored_is_not_watched_any_more(
    daemon: InProcessDaemon,
) -> None:
    run = await SilentRun.begin(daemon)
    run.clock.move(seconds=STUCK_SECONDS)
    assert await run.presence() == "stuck"
    await run.told()
    with daemon.locked():
        for name in ("first", "second"):
            run.program.path.with_name(name).touch()
        await daemon.until(lambda: run.execution.ending)
        run.clock.move(seconds=STUCK_SECONDS)
        assert await run.presence() != "stuck"
        readings = run.clock.readings
        await daemon.until(lambda: sum("A change waits" in line for line in daemon.warnings()) >= 3)
        assert run.clock.readings - readings < 10  # a timer that is always due reads it thousands of times
    assert await run.ended() == "completed"


# --- who types -----------------------------------------------------------------------


def test_the_others_of_a_conversation_hear_who_types_and_nobody_else(
    daemon: RunningDaemon, two: tuple[Party, Party], chief: Boss, eve: Party
) -> None:
    kai, zoe = two
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
    assert chief.refusal("presence.typing", conversation=number) == "not_found"  # he reads along, no more


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


def test_people_are_listed_with_their_presence(daemon: RunningDaemon, chief: Boss) -> None:
    with following(daemon) as follower:
        follower.subscribe(chief.token)
        people: list[dict[str, Any]] = chief.call("user.list")["users"]
        assert [one["presence"] for one in people if one["boss"]] == ["online"]
        assert chief.call("presence.get", address="boss")["state"] is None
    wait_until(lambda: chief.call("presence.get", address="boss")["presence"] == "offline")
