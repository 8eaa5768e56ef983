"""What waits for a length of time knows nothing of the wall clock: somebody sets it, and nothing changes."""

from __future__ import annotations

import threading
from typing import Any

from hiboss.core import clock
from hiboss.core.envelope import Lane
from hiboss.store.lanes import list_all
from tests.routing.test_lane_backoff import REFUSAL, SCRIPTED, Channel
from tests.support.in_process_daemon import InProcessDaemon, frozen

STEPS = [{"hours": -2}, {"hours": 2}, {"days": -400}, {"days": 400}]


async def claimed(daemon: InProcessDaemon, **params: Any) -> list[str]:
    found = await daemon.ask("envelope.claim", "nex", **params)
    return [one["text"] for one in found["envelopes"]]


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
