"""When callers were last seen: by any call, kept over a restart. And whether agents are here now."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from hiboss.routing.deadlines import Deadlines
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent, boss
from tests.support.present_people import EventClock, hearing, opened, presence

NOON = "2030-06-01T12:0"


def listed(daemon: RunningDaemon, name: str) -> dict[str, Any]:
    """Return an agent as agent.list shows it to the boss: this call is not its own."""
    (found,) = [one for one in boss(daemon).call("agent.list")["agents"] if one["name"] == name]
    return dict(found)


async def seen(daemon: InProcessDaemon, name: str = "nex") -> str | None:
    agents = (await daemon.ask("agent.list"))["agents"]
    (found,) = [one["last_seen_at"] for one in agents if one["name"] == name]
    return None if found is None else str(found)


# --- by any action -------------------------------------------------------------------


def test_a_heartbeat_says_who_and_when(daemon: RunningDaemon) -> None:
    bob = agent(daemon)
    beat = bob.call("agent.heartbeat")
    assert beat["address"] == bob.address
    found = listed(daemon, bob.name)["last_seen_at"]
    assert datetime.fromisoformat(beat["at"]) >= datetime.fromisoformat(found)
    assert boss(daemon).call("agent.heartbeat")["address"] == "user:boss"
    assert bob.refusal("agent.heartbeat", name="other") == "invalid_params"


def test_every_call_is_a_sign_of_life(daemon: RunningDaemon) -> None:
    for method, params in (
        ("agent.self", {}),
        ("agent.list", {}),
        ("envelope.list", {}),
        ("envelope.send", {"to": "user:boss", "text": "here I am"}),
        ("envelope.wait", {"timeout": "0.001s"}),
        ("envelope.poll", {}),
        ("envelope.watch", {"timeout": "0.001s"}),
    ):
        bob = agent(daemon)
        assert listed(daemon, bob.name)["last_seen_at"] is None
        bob.call(method, **params)
        assert listed(daemon, bob.name)["last_seen_at"] is not None, method


def test_a_call_that_is_refused_for_its_content_is_one_too_and_a_wrong_token_is_none(
    daemon: RunningDaemon,
) -> None:
    bob, eve = agent(daemon), agent(daemon)
    assert bob.refusal("envelope.get", id="e999999") == "not_found"
    assert listed(daemon, bob.name)["last_seen_at"] is not None
    assert Party(daemon, eve.address, eve.token + "x").refusal("agent.heartbeat") == "bad_token"
    bob.send(eve)  # receiving mail is not a call
    boss(daemon).call("envelope.list", address=eve.address)
    assert listed(daemon, eve.name)["last_seen_at"] is None


# --- when ----------------------------------------------------------------------------


@frozen()
async def test_the_last_sign_of_life_counts(daemon: InProcessDaemon) -> None:
    assert await seen(daemon) is None
    await daemon.ask("agent.heartbeat", "nex")
    assert (await seen(daemon) or "").startswith(f"{NOON}0:00")
    await daemon.move(minutes=5)
    assert (await seen(daemon) or "").startswith(f"{NOON}0:00")
    await daemon.ask("envelope.list", "nex")
    assert (await seen(daemon) or "").startswith(f"{NOON}5:00")


@frozen()
async def test_it_outlives_a_clean_restart(daemon: InProcessDaemon) -> None:
    await daemon.ask("agent.heartbeat", "nex")
    await daemon.ask("agent.heartbeat", "boss")
    await daemon.restart(minutes=5)
    assert (await seen(daemon) or "").startswith(f"{NOON}0:00")
    (row,) = daemon.rows("SELECT last_seen_at FROM user WHERE boss = 1")
    assert row["last_seen_at"] is not None  # the boss too


# --- without a write for each --------------------------------------------------------


@frozen()
async def test_polling_writes_nothing_but_the_beat_s_one_note(daemon: InProcessDaemon) -> None:
    await daemon.send("agent:nex", who="boss", from_="user:boss")
    await daemon.ask("envelope.poll", "nex")
    await daemon.settle()
    await daemon.daemon.wiring.presence.flush()
    connection = daemon._connect()
    try:
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        for _ in range(200):
            daemon.tick(milliseconds=5)
            assert (await daemon.ask("envelope.poll", "nex"))["timed_out"]
            await daemon.ask("agent.heartbeat", "nex")
            await daemon.ask("envelope.wait", "boss", timeout="0.001s", address="user:boss")
        assert connection.execute("PRAGMA data_version").fetchone()[0] == version
        await daemon.daemon.wiring.presence.flush()  # what every heartbeat does
        assert connection.execute("PRAGMA data_version").fetchone()[0] != version
    finally:
        connection.close()
    (row,) = daemon.rows(
        "SELECT a.last_seen_at FROM agent a JOIN address d ON d.id = a.address WHERE d.name = 'nex'"
    )
    assert row["last_seen_at"] == int(datetime.fromisoformat(f"{NOON}0:01+00:00").timestamp() * 1000)


# --- agents that fetch their mail ----------------------------------------------------


@frozen()
async def test_an_agent_that_fetches_its_mail_is_offline_five_minutes_after_its_last_call(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")  # mode pull
    clock = EventClock(daemon)
    with hearing(daemon, "presence") as listener:
        assert await presence(daemon, "kai") == "offline"
        await daemon.ask("agent.heartbeat", "kai")
        assert await presence(daemon, "kai") == "idle"
        clock.move(seconds=301)
        assert await presence(daemon, "kai") == "offline"
        facts = [await listener.hear() for _ in range(2)]
        assert [one["agent"] for one in facts] == ["agent:kai"] * 2
        # `state` says that it gets no turns, whether it is here or not.
        assert {one["state"] for one in facts} == {"fetches"} and facts[-1]["presence"] == "offline"


@frozen()
async def test_it_is_here_as_long_as_it_is_connected_or_waits_for_mail(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    clock = EventClock(daemon)
    page = await opened(daemon, "kai")
    clock.move(minutes=60)
    assert await presence(daemon, "kai") == "idle"
    page.close()
    clock.move(minutes=4)
    assert await presence(daemon, "kai") == "idle"
    clock.move(seconds=61)
    assert await presence(daemon, "kai") == "offline"
    waiting = asyncio.create_task(daemon.ask("envelope.wait", "kai", timeout="1h"))
    await daemon.until(lambda: daemon.daemon.wiring.presence._open)
    clock.move(minutes=30)
    assert await presence(daemon, "kai") == "idle"
    await daemon.send("agent:kai")
    await waiting
    clock.move(minutes=6)
    assert await presence(daemon, "kai") == "offline"


@frozen()
async def test_who_called_just_before_a_restart_is_still_here_after_it(daemon: InProcessDaemon) -> None:
    await daemon.register("kai", "zoe")
    await daemon.ask("agent.heartbeat", "zoe")
    daemon.tick(minutes=4)
    await daemon.ask("agent.heartbeat", "kai")
    await daemon.restart(minutes=2)
    assert [await presence(daemon, one) for one in ("kai", "zoe")] == ["idle", "offline"]
    EventClock(daemon).move(seconds=181)
    assert await presence(daemon, "kai") == "offline"


@frozen()
async def test_calls_of_an_agent_that_gets_turns_change_nothing_of_its_presence(
    daemon: InProcessDaemon,
) -> None:
    await daemon.ask("agent.set", name="nex", provider="demo")
    clock = EventClock(daemon)
    before = daemon.daemon.wiring.facts.number
    await daemon.ask("agent.heartbeat", "nex")
    clock.move(minutes=6)
    assert (await presence(daemon, "nex"), daemon.daemon.wiring.facts.number) == ("idle", before)


@frozen()
async def test_an_agent_without_a_provider_and_a_deleted_one_are_offline(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    daemon.change("UPDATE agent SET mode = 'run' WHERE provider IS NULL")  # no operation does that
    assert await presence(daemon, "kai") == "offline"
    await daemon.ask("agent.delete", name="kai")
    assert await presence(daemon, "agent:kai") == "offline"


@frozen(quiet=False)
async def test_a_paused_agent_is_offline_and_so_is_everybody_while_the_breaker_is_pulled(
    daemon: InProcessDaemon,
) -> None:
    await daemon.ask("agent.set", name="nex", provider="demo")
    await daemon.ask("agent.pause", name="nex")
    assert await presence(daemon, "nex") == "offline"
    await daemon.ask("agent.resume", name="nex")
    assert await presence(daemon, "nex") == "idle"
    await daemon.ask("breaker.pull")
    assert await presence(daemon, "nex") == "offline"
    await daemon.ask("breaker.release")
    assert await presence(daemon, "nex") == "idle"


# --- runs ----------------------------------------------------------------------------


@frozen()
async def test_a_run_that_writes_types_until_some_seconds_after_its_last_words(
    daemon: InProcessDaemon,
) -> None:
    wiring, clock = daemon.daemon.wiring, EventClock(daemon)
    nex = daemon.rows("SELECT id FROM address WHERE fold = 'agent:nex'")[0]["id"]
    with hearing(daemon, "presence") as listener:
        for _ in range(50):
            wiring.presence.progressed(9, nex, "delta")
        assert wiring.presence.writes(9)
        clock.move(seconds=4)
        wiring.presence.progressed(9, nex, "delta")
        clock.move(seconds=4)
        assert wiring.presence.writes(9)
        clock.move(seconds=2)
        assert not wiring.presence.writes(9)
        wiring.presence.progressed(9, nex, "delta")
        wiring.presence.run_ended(9)  # that is told by the end of the run
        assert not wiring.presence.writes(9)
        assert [(await listener.hear())["agent"] for _ in range(3)] == ["agent:nex"] * 3


# --- people -------------------------------------------------------------------------


async def with_ann(daemon: InProcessDaemon) -> None:
    await daemon.ask("user.register", name="ann", profile=True)


@frozen()
async def test_a_person_is_online_while_something_is_open_and_offline_when_the_last_one_closes(
    daemon: InProcessDaemon,
) -> None:
    await with_ann(daemon)
    with hearing(daemon, "presence") as listener:
        assert await presence(daemon, "ann") == "offline"
        first, second = await opened(daemon, "ann"), await opened(daemon, "ann")
        assert await presence(daemon, "user:ann") == "online"
        first.close()
        assert await presence(daemon, "ann") == "online"
        second.close()
        assert await presence(daemon, "ann") == "offline"
        facts = [await listener.hear() for _ in range(2)]  # one for each change, and none besides
        assert [(one["user"], one["presence"]) for one in facts] == [
            ("user:ann", "online"),
            ("user:ann", "offline"),
        ]
        assert all("agent" not in one and one["topic"] == "presence" for one in facts)


@frozen()
async def test_who_does_nothing_for_five_minutes_is_away_until_the_next_sign(daemon: InProcessDaemon) -> None:
    await with_ann(daemon)
    clock = EventClock(daemon)
    page = await opened(daemon, "ann")
    with hearing(daemon, "presence") as listener:
        clock.move(seconds=299)
        assert await presence(daemon, "ann") == "online"
        clock.move(seconds=2)
        assert await presence(daemon, "ann") == "away"
        # What a page does by itself when something arrives is no sign of a person.
        await daemon.ask("envelope.list", "ann")
        await daemon.ask("envelope.poll", "ann")
        assert await presence(daemon, "ann") == "away"
        await daemon.send("agent:nex", who="ann", from_="user:ann")
        assert await presence(daemon, "ann") == "online"
        clock.move(minutes=6)
        page.close()
        told = [(await listener.hear())["presence"] for _ in range(4)]
        assert told == ["away", "online", "away", "offline"]


@frozen()
async def test_a_single_command_makes_nobody_online(daemon: InProcessDaemon) -> None:
    await with_ann(daemon)
    with hearing(daemon, "presence") as listener:
        await daemon.send("agent:nex", who="ann", from_="user:ann")
        assert await presence(daemon, "ann") == "offline"
        await opened(daemon, "ann")
        assert (await listener.hear())["presence"] == "online"  # and nothing was told before


@frozen()
async def test_setting_the_wall_clock_sends_nobody_away(daemon: InProcessDaemon) -> None:
    await with_ann(daemon)
    await opened(daemon, "ann")
    for step in (12, -24):
        daemon.set_clock(hours=step)
        daemon.daemon.wiring.deadlines.look()
        assert await presence(daemon, "ann") == "online"


@frozen()
async def test_what_comes_from_the_boss_in_a_channel_makes_him_online_for_five_minutes(
    daemon: InProcessDaemon,
) -> None:
    clock = EventClock(daemon)
    daemon.daemon.wiring._boss_spoke()
    assert await presence(daemon, "boss") == "online"
    clock.move(minutes=4)
    daemon.daemon.wiring._boss_spoke()
    clock.move(minutes=4)
    assert await presence(daemon, "boss") == "online"
    clock.move(seconds=61)
    assert await presence(daemon, "boss") == "offline"


@frozen()
async def test_a_restart_forgets_who_had_something_open_and_who_comes_back_is_online(
    daemon: InProcessDaemon,
) -> None:
    await with_ann(daemon)
    await opened(daemon, "ann")
    await daemon.restart()
    assert await presence(daemon, "ann") == "offline"
    await opened(daemon, "ann")
    assert await presence(daemon, "ann") == "online"


@frozen()
async def test_presence_of_a_person_is_for_all_and_only_where_it_was_asked_for(
    daemon: InProcessDaemon,
) -> None:
    await with_ann(daemon)
    await daemon.register("kai")
    page = await opened(daemon, "kai")
    narrow = await opened(daemon, "nex", addresses=["agent:nex"])
    await opened(daemon, "ann")
    await daemon.until(lambda: any(b'"user:ann"' in one for one in page.heard))
    assert narrow.heard == []


@frozen()
async def test_a_thousand_followers_get_one_fact_when_somebody_comes(daemon: InProcessDaemon) -> None:
    await with_ann(daemon)
    pages = [await opened(daemon, "boss") for _ in range(1_000)]
    pages[0].ready = False  # one does not read
    await opened(daemon, "ann")
    await daemon.until(lambda: all(one.heard for one in pages[1:]))
    await daemon.send("agent:nex")  # what comes next comes after it
    await daemon.until(lambda: all(b"envelope.arrived" in one.heard[-1] for one in pages[1:]))
    told = [[line for line in one.heard if b'"user:ann"' in line] for one in pages]
    assert [len(one) for one in told] == [0] + [1] * 999


# --- the one timer -------------------------------------------------------------------


def test_what_is_noted_again_goes_on_and_what_is_over_is_told_once_by_one_timer() -> None:
    async def story() -> None:
        now, ended = 0.0, []
        deadlines = Deadlines(lambda: now)
        assert deadlines.note("a", 6, lambda: ended.append("a"))
        assert not deadlines.note("a", 6, lambda: ended.append("a"))
        for number in range(1_000):
            deadlines.note(number, 300, lambda: ended.append("late"))
        assert deadlines.note("b", 3, lambda: ended.append("b"))
        now = 5.0
        deadlines.note("a", 6, lambda: ended.append("a again"))
        deadlines.look()
        assert (ended, "a" in deadlines, "b" in deadlines) == (["b"], True, False)
        now = 11.0
        deadlines.look()
        deadlines.look()
        assert ended == ["b", "a again"]
        assert deadlines.forget(5) and not deadlines.forget("a")
        now = 301.0
        deadlines.look()
        assert ended.count("late") == 999
        assert deadlines._timer is None  # nothing is left to wait for

    asyncio.run(story())


def test_the_timer_itself_ends_what_is_over() -> None:
    async def story() -> None:
        deadlines, over = Deadlines(), asyncio.Event()
        deadlines.note("long", 3_600, lambda: None)
        deadlines.note("short", 0.01, over.set)
        async with asyncio.timeout(30):
            await over.wait()
        assert "long" in deadlines
        deadlines.close()

    asyncio.run(story())
