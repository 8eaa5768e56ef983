"""What waits for a length of time knows nothing of the wall clock: somebody sets it, and nothing changes."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from hiboss.core import clock
from hiboss.core.envelope import Lane
from hiboss.store.lanes import list_all
from tests.routing.test_lane_backoff import MODULES, Channel, frozen_daemon
from tests.support.in_process_daemon import InProcessDaemon, frozen

STEPS = [{"hours": -2}, {"hours": 2}, {"days": -400}, {"days": 400}]


async def claimed(daemon: InProcessDaemon, **params: Any) -> list[str]:
    found = await daemon.ask("envelope.claim", "nex", **params)
    return [one["text"] for one in found["envelopes"]]


def on_both_sides(story: Any) -> Any:
    """Run a story once for each change of the clock."""

    @pytest.mark.parametrize("by", STEPS, ids=str)
    def test(tmp_path: Path, by: dict[str, float]) -> None:
        async def with_step(daemon: InProcessDaemon) -> None:
            await story(daemon, by)

        frozen()(with_step)(tmp_path)

    test.__name__ = story.__name__
    return test


@on_both_sides
async def test_a_lease_lasts_as_long_as_it_was_given_for(
    daemon: InProcessDaemon, by: dict[str, float]
) -> None:
    await daemon.send(text="leased")
    assert await claimed(daemon, lease="10m") == ["leased"]
    await daemon.move(minutes=4)
    daemon.set_clock(**by)
    await daemon.move(minutes=5, seconds=59)
    assert await claimed(daemon) == []
    await daemon.move(seconds=1)
    assert await claimed(daemon) == ["leased"]


@on_both_sides
async def test_a_clock_that_was_set_while_no_daemon_ran_changes_no_lease(
    daemon: InProcessDaemon, by: dict[str, float]
) -> None:
    await daemon.send(text="leased")
    assert await claimed(daemon, lease="10m") == ["leased"]
    await daemon.close()
    daemon.set_clock(**by)
    daemon.tick(minutes=9)
    await daemon.open()
    await daemon.settle()
    assert await claimed(daemon) == []
    await daemon.move(minutes=1)
    assert await claimed(daemon) == ["leased"]


@on_both_sides
async def test_the_retry_of_a_turn_comes_after_the_same_time(
    daemon: InProcessDaemon, by: dict[str, float]
) -> None:
    await daemon.send(text="retried")
    daemon.change(
        "UPDATE envelope SET waits = 1, wait_until = ?, attempts = 1", clock.now() + 30_000
    )  # as a failed turn leaves it
    daemon.set_clock(**by)
    await daemon.move(seconds=29)
    assert daemon.rows("SELECT waits FROM envelope")[0]["waits"] == 1
    await daemon.move(seconds=1)
    assert daemon.rows("SELECT waits FROM envelope")[0]["waits"] is None


@on_both_sides
async def test_deferred_mail_arrives_when_the_clock_shows_its_time(
    daemon: InProcessDaemon, by: dict[str, float]
) -> None:
    """That is a moment and no length: it follows the clock, and everybody can read it there."""
    (number,) = await daemon.send(deliver_at="+3h")
    at = clock.now() + 3 * 3_600_000
    daemon.set_clock(**by)
    daemon.scheduler.wakeup()
    await daemon.settle()
    assert (daemon.arrived() == [number]) == (clock.now() >= at)


@on_both_sides
async def test_what_begins_to_wait_between_the_change_and_its_notice_lasts_as_long_as_it_should(
    daemon: InProcessDaemon, by: dict[str, float]
) -> None:
    await daemon.send(text="leased")
    daemon.set_clock(**by)
    assert await claimed(daemon, lease="3h") == ["leased"]
    await daemon.move(hours=2, minutes=59, seconds=59)
    assert await claimed(daemon) == []
    await daemon.move(seconds=1)
    assert await claimed(daemon) == ["leased"]


@pytest.mark.parametrize("by", STEPS, ids=str)
@pytest.mark.parametrize("restart", [False, True])
def test_a_lane_is_tried_after_the_time_that_was_named_and_not_before(
    tmp_path: Path, by: dict[str, float], restart: bool
) -> None:
    """Before it is noticed, and at the start of a daemon, whose adapters try what waits."""

    async def story() -> None:
        async with frozen_daemon(tmp_path, **MODULES) as daemon:
            channel = Channel(daemon, tmp_path)
            channel.script({"do": "lane_error", "text": "slow down", "retry_after": 60})
            await channel.bind()
            await channel.send()
            await channel.failed(1)
            if restart:
                await daemon.close()
                daemon.set_clock(**by)
                await daemon.open()
                await daemon.until(lambda: daemon.daemon.wiring.supervisor.slots[1].state == "running")
            else:
                daemon.set_clock(**by)
            await channel.send()
            await asyncio.sleep(0.1)
            assert channel.posts() == 0 and (await channel.lane())["failures"] == 1
            await daemon.move(seconds=59)
            await channel.send()
            await asyncio.sleep(0.1)
            assert channel.posts() == 0
            await daemon.move(seconds=1)
            await daemon.until(lambda: channel.posts() == 3)

    asyncio.run(story())


@pytest.mark.parametrize("by", STEPS, ids=str)
def test_a_claim_that_waits_for_the_store_while_the_clock_is_set_keeps_to_the_named_time(
    tmp_path: Path, by: dict[str, float]
) -> None:
    async def story() -> None:
        async with frozen_daemon(tmp_path, **MODULES) as daemon:
            channel = Channel(daemon, tmp_path)
            channel.script({"do": "lane_error", "text": "slow down", "retry_after": 60})
            await channel.bind()
            await channel.send()
            await channel.failed(1)
            await daemon.move(seconds=10)
            wiring, free = daemon.daemon.wiring, threading.Event()
            lanes = wiring._store.read(lambda c: [Lane(row["address_id"], 1) for row in list_all(c)])
            busy = wiring._store.write(lambda tx: free.wait(10))  # as if another program had locked it
            wiring.delivery.wake(lanes, eager=True)
            await asyncio.sleep(0.05)  # its claim waits for the writer
            daemon.set_clock(**by)
            daemon.scheduler.wakeup()
            await daemon.until(lambda: clock.now() == clock.wall())
            free.set()
            await busy
            await daemon.settle()
            await channel.send()
            await asyncio.sleep(0.1)
            assert channel.posts() == 0 and (await channel.lane())["failures"] == 1
            await daemon.move(seconds=50)
            await daemon.until(lambda: channel.posts() == 2)

    asyncio.run(story())
