"""People are online, away or offline, as facts that come only when it changes."""

from __future__ import annotations

import asyncio

from hiboss.routing.deadlines import Deadlines
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.present_people import EventClock, hearing, opened, presence


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
