"""Somebody sets the clock of the machine: schedules go on, a slot is recorded once, and what waits for a length of time waits for it."""

from __future__ import annotations

import threading
from typing import Any

from hiboss.core import clock
from hiboss.core.envelope import Lane
from hiboss.store.lanes import list_all
from tests.routing.test_lane_backoff import REFUSAL, SCRIPTED, Channel
from tests.routing.test_schedules_frozen import (
    DAY,
    HOUR,
    MINUTE,
    START,
    counted,
    create,
    next_at,
    sent,
    slots,
)
from tests.support.in_process_daemon import InProcessDaemon, frozen


@frozen()
async def test_a_clock_set_back_sends_no_slot_of_a_cron_expression_twice(daemon: InProcessDaemon) -> None:
    number = await create(daemon, cron="0 * * * *", catch_up="all")
    await daemon.move(hours=2)
    await daemon.move(hours=-2)
    assert slots(daemon, number) == [(HOUR, "fired"), (2 * HOUR, "fired")]
    await daemon.move(hours=2)
    assert sent(daemon) == 2
    await daemon.move(hours=-2)
    await daemon.ask("cron.disable", id=number)
    await daemon.ask("cron.enable", id=number)  # counts from the present clock
    await daemon.move(hours=3)
    assert slots(daemon, number) == [(HOUR, "fired"), (2 * HOUR, "fired"), (3 * HOUR, "fired")]
    assert sent(daemon) == 3


@frozen()
async def test_an_interval_goes_on_when_the_clock_is_set_back(daemon: InProcessDaemon) -> None:
    number, daily = await create(daemon, every="2s"), await create(daemon, every="24h", text="daily")
    for count in range(1, 4):
        await daemon.move(seconds=2)
        assert sent(daemon) == count
    daemon.set_clock(hours=-2)
    for count in range(4, 8):
        await daemon.move(seconds=2)
        assert sent(daemon) == count
    await daemon.move(hours=23, minutes=59, seconds=45)
    assert sent(daemon, "daily") == 0
    await daemon.move(seconds=1)
    assert sent(daemon, "daily") == 1  # 24 hours have passed, and not 26
    shown = (await daemon.ask("cron.show", id=daily))["slots"]
    assert [one["slot"] for one in shown] == [clock.iso(START + 22 * HOUR)]
    assert counted(daemon, number)["fired"] == sent(daemon)


@frozen()
async def test_an_interval_goes_on_when_the_clock_was_set_back_while_no_daemon_ran(
    daemon: InProcessDaemon,
) -> None:
    await create(daemon, every="2s")
    await daemon.move(seconds=2)
    await daemon.close()
    daemon.set_clock(days=-2)
    await daemon.open()
    await daemon.move(seconds=2)
    assert sent(daemon) == 2


@frozen()
async def test_an_interval_that_is_enabled_after_the_clock_was_set_back_does_not_wait_for_the_old_time(
    daemon: InProcessDaemon,
) -> None:
    number = await create(daemon, every="10s")
    await daemon.move(seconds=15)
    await daemon.ask("cron.disable", id=number)
    daemon.set_clock(hours=-2)
    await daemon.move()
    await daemon.ask("cron.enable", id=number)
    assert await next_at(daemon, number) == clock.iso(clock.now() + 10_000)
    for count in range(2, 5):
        await daemon.move(seconds=10)
        assert sent(daemon) == count
    await daemon.move(hours=2)  # over the times of the slots before
    assert counted(daemon, number)["fired"] == sent(daemon)


@frozen()
async def test_an_interval_waits_as_long_when_the_clock_is_set_forward(daemon: InProcessDaemon) -> None:
    number = await create(daemon, every="1h")
    await daemon.move(minutes=20)
    daemon.set_clock(days=3)
    await daemon.move()
    assert slots(daemon, number) == []
    await daemon.move(minutes=40)
    assert counted(daemon, number) == {"fired": 1}


@frozen()
async def test_a_slot_is_recorded_once_after_the_clock_went_forward_and_back(daemon: InProcessDaemon) -> None:
    number = await create(daemon, cron="0 * * * *", catch_up="once")
    daemon.set_clock(hours=10)
    await daemon.move()
    assert slots(daemon, number) == [(HOUR, "missed"), (10 * HOUR, "fired")]
    daemon.set_clock(hours=-10)
    await daemon.move()
    assert slots(daemon, number) == [(10 * HOUR, "fired")]  # the others have not been missed after all
    await daemon.ask("cron.disable", id=number)
    await daemon.ask("cron.enable", id=number)
    for _ in range(11):
        await daemon.move(hours=1)
        daemon.check()
    assert slots(daemon, number) == [(hour * HOUR, "fired") for hour in range(1, 12)] and sent(daemon) == 11


@frozen()
async def test_a_clock_set_back_and_a_downtime_after_it_stop_nothing(daemon: InProcessDaemon) -> None:
    hourly = await create(daemon, cron="0 * * * *", catch_up="skip")
    other = await create(daemon, every="1m", catch_up="skip")
    await daemon.move(hours=1)
    await daemon.move(hours=-1)
    for number in (hourly, other):
        await daemon.ask("cron.disable", id=number)
        await daemon.ask("cron.enable", id=number)
    await daemon.restart(days=7, minutes=30)
    assert await next_at(daemon, hourly) == clock.iso(START + 7 * DAY + HOUR)
    assert await next_at(daemon, other) == clock.iso(START + 7 * DAY + 31 * MINUTE)
    (row,) = daemon.rows(
        "SELECT count(*), count(DISTINCT message) FROM schedule_slot WHERE outcome = 'fired'"
    )
    assert row[0] == row[1] == sent(daemon)


@frozen()
async def test_deferred_mail_does_not_wait_for_the_catch_up_of_schedules(daemon: InProcessDaemon) -> None:
    for _ in range(5):
        await create(daemon, cron="* * * * *", timezone="Europe/Berlin")
    [later] = await daemon.send(deliver_at=clock.iso(START + 7 * DAY + 1_000))
    await daemon.close()
    daemon.tick(days=7)
    await daemon.open()
    await daemon.until(lambda: daemon.rows("SELECT 1 FROM schedule_slot"))
    daemon.tick(seconds=1)  # in the middle of it
    await daemon.until(lambda: later in daemon.arrived())
    assert daemon.rows("SELECT 1 FROM schedule WHERE next_at <= ?", START + 7 * DAY)
    await daemon.settle()
    assert {sum(counted(daemon, f"s{number}").values()) for number in range(1, 6)} == {7 * 1440}


# --- what waits for a length of time ------------------------------------------------


STEPS = [{"hours": -2}, {"hours": 2}, {"days": -400}, {"days": 400}]


async def claimed(daemon: InProcessDaemon, **params: Any) -> list[str]:
    return [one["text"] for one in (await daemon.ask("envelope.claim", "nex", **params))["envelopes"]]


@frozen()
async def test_a_lease_lasts_as_long_as_it_was_given_for(daemon: InProcessDaemon) -> None:
    await daemon.send(text="leased")
    assert await claimed(daemon, lease="10m") == ["leased"]
    for by in STEPS:
        await daemon.move(minutes=4)
        daemon.set_clock(**by)
        await daemon.move(minutes=5, seconds=59)
        assert await claimed(daemon) == [], by
        await daemon.move(seconds=1)
        assert await claimed(daemon, lease="10m") == ["leased"], by


@frozen()
async def test_a_clock_that_was_set_while_no_daemon_ran_changes_no_lease(daemon: InProcessDaemon) -> None:
    await daemon.send(text="leased")
    assert await claimed(daemon, lease="10m") == ["leased"]
    for by in STEPS:
        await daemon.close()
        daemon.set_clock(**by)
        daemon.tick(minutes=9)
        await daemon.open()
        await daemon.settle()
        assert await claimed(daemon) == [], by
        await daemon.move(minutes=1)
        assert await claimed(daemon, lease="10m") == ["leased"], by


@frozen()
async def test_the_retry_of_a_turn_comes_after_the_same_time(daemon: InProcessDaemon) -> None:
    await daemon.send(text="retried")
    failed = "UPDATE envelope SET waits = 1, wait_until = ?, attempts = 1"  # as a failed turn leaves it
    for by in STEPS:
        daemon.change(failed, clock.now() + 30_000)
        daemon.set_clock(**by)
        await daemon.move(seconds=29)
        assert daemon.rows("SELECT waits FROM envelope")[0]["waits"] == 1, by
        await daemon.move(seconds=1)
        assert daemon.rows("SELECT waits FROM envelope")[0]["waits"] is None, by


@frozen()
async def test_deferred_mail_arrives_when_the_clock_shows_its_time(daemon: InProcessDaemon) -> None:
    """That is a moment and no length: it follows the clock, and everybody can read it there."""
    for by in STEPS:
        (number,) = await daemon.send(deliver_at="+3h")
        at = clock.now() + 3 * 3_600_000
        daemon.set_clock(**by)
        daemon.scheduler.wakeup()
        await daemon.settle()
        assert (number in daemon.arrived()) == (clock.now() >= at), by


@frozen()
async def test_what_begins_to_wait_between_the_change_and_its_notice_lasts_as_long_as_it_should(
    daemon: InProcessDaemon,
) -> None:
    await daemon.send(text="leased")
    for by in STEPS:
        daemon.set_clock(**by)
        assert await claimed(daemon, lease="3h") == ["leased"], by
        await daemon.move(hours=2, minutes=59, seconds=59)
        assert await claimed(daemon) == [], by
        await daemon.move(seconds=1)


@frozen(**SCRIPTED)
async def test_a_lane_is_tried_after_the_time_that_was_named_and_not_before(daemon: InProcessDaemon) -> None:
    """Before it is noticed, and at the start of a daemon, whose adapters try what waits."""
    channel = Channel(daemon)
    await channel.bind()
    for by in ({}, *STEPS):
        for restart in (False, True):
            channel.script(REFUSAL)
            before = channel.posts()
            await channel.send()
            await channel.failed(1)
            if restart:
                await daemon.close()
                daemon.set_clock(**by)
                await daemon.open()
                await daemon.until(lambda: daemon.daemon.wiring.supervisor.slots[1].state == "running")
            else:
                daemon.set_clock(**by)
            assert not await channel.is_tried(), (by, restart)
            await daemon.move(seconds=59)
            assert not await channel.is_tried(), (by, restart)
            await daemon.move(seconds=1)
            await daemon.until(lambda: channel.posts() == before + 3 and not channel.lane()["failures"])  # noqa: B023


@frozen(**SCRIPTED)
async def test_a_claim_that_waits_for_the_store_while_the_clock_is_set_keeps_to_the_named_time(
    daemon: InProcessDaemon,
) -> None:
    channel = Channel(daemon)
    await channel.bind()
    wiring = daemon.daemon.wiring
    for by in STEPS:
        channel.script(REFUSAL)
        before, free = channel.posts(), threading.Event()
        await channel.send()
        await channel.failed(1)
        await daemon.move(seconds=10)
        lanes = wiring._store.read(lambda c: [Lane(row["address_id"], 1) for row in list_all(c)])
        # As if another program had locked it.
        busy = wiring._store.write(lambda tx, free=free: free.wait(60))  # type: ignore[misc]
        submitted = wiring._store._writer._submitted
        wiring.delivery.wake(lanes, eager=True)
        await daemon.until(lambda: wiring._store._writer._submitted > submitted)  # noqa: B023 - its claim waits
        daemon.set_clock(**by)
        daemon.scheduler.wakeup()
        await daemon.until(lambda: clock.now() == clock.wall())
        free.set()
        await busy
        await daemon.settle()
        assert not await channel.is_tried(), by
        await daemon.move(seconds=50)
        await daemon.until(lambda: channel.posts() == before + 2 and not channel.lane()["failures"])  # noqa: B023
