"""The bus: subscribers get what they asked for, from then on; a slow one is told how many it missed."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from hiboss.core.events import (
    AdapterFailed,
    Bus,
    EnvelopesArrived,
    EnvelopeSettled,
    Event,
    Gap,
    LaneWaits,
    RunEnded,
    RunStarted,
    Subscription,
)


def settled(number: int) -> EnvelopeSettled:
    return EnvelopeSettled(at=number, envelope=number, status="done")


async def hear(watcher: Subscription, number: int) -> list[Event]:
    return [await asyncio.wait_for(anext(watcher), 30) for _ in range(number)]


def test_watchers_hear_every_fact_in_order() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe() as one, bus.subscribe() as other:
            facts = [settled(number) for number in range(5)]
            for fact in facts:
                bus.publish(fact)
            assert await hear(one, 5) == facts
            assert await hear(other, 5) == facts

    asyncio.run(story())


def test_a_watcher_hears_nothing_from_before_it_came() -> None:
    async def story() -> None:
        bus = Bus()
        bus.publish(settled(1))
        with bus.subscribe() as watcher:
            bus.publish(settled(2))
            assert await hear(watcher, 1) == [settled(2)]

    asyncio.run(story())


def test_a_watcher_may_ask_for_kinds() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe(LaneWaits, EnvelopesArrived) as watcher:
            waits = LaneWaits(at=2, address="channel:folder:x", error="away", until=3)
            arrived = EnvelopesArrived(at=3, envelopes=(1,), recipients=(2,))
            for fact in (settled(1), waits, AdapterFailed(at=2, binding=1, error="x"), arrived):
                bus.publish(fact)
            assert await hear(watcher, 2) == [waits, arrived]

    asyncio.run(story())


def test_a_run_is_heard_of_when_it_begins_and_when_it_ends_and_how() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe(RunStarted, RunEnded) as watcher:
            facts = [
                RunStarted(at=1, run=1, agent=2),
                RunEnded(at=2, run=1, agent=2, status="completed"),
                RunEnded(at=3, run=2, agent=2, status="failed", error="it ended with status 1"),
            ]
            for fact in (settled(1), *facts, settled(2)):
                bus.publish(fact)
            assert await hear(watcher, 3) == facts

    asyncio.run(story())


def test_a_slow_watcher_gets_a_gap_mark_and_then_what_is_newest() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe(size=3) as slow:
            for number in range(10):
                bus.publish(settled(number))
            gap, *rest = await hear(slow, 4)
            assert gap == Gap(at=7, missed=7)
            assert rest == [settled(7), settled(8), settled(9)]
            bus.publish(settled(10))
            assert await hear(slow, 1) == [settled(10)]  # the gap is told once

    asyncio.run(story())


def test_a_second_gap_is_told_too_and_counts_anew() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe(size=2) as slow:
            for number in range(3):
                bus.publish(settled(number))
            first = await hear(slow, 2)
            for number in range(3, 6):
                bus.publish(settled(number))
            second = await hear(slow, 3)
            assert first == [Gap(at=1, missed=1), settled(1)]
            assert second == [Gap(at=4, missed=2), settled(4), settled(5)]

    asyncio.run(story())


def test_kinds_not_asked_for_leave_no_gap() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe(LaneWaits, size=1) as watcher:
            waits = LaneWaits(at=1, address="a", error="e", until=2)
            bus.publish(waits)
            for number in range(10):
                bus.publish(settled(number))
            assert await hear(watcher, 1) == [waits]

    asyncio.run(story())


def test_a_slow_watcher_costs_the_others_nothing_and_publishing_never_waits() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe(size=1), bus.subscribe() as quick:
            for number in range(500):  # without once giving way to the loop
                bus.publish(settled(number))
            assert await hear(quick, 500) == [settled(number) for number in range(500)]

    asyncio.run(story())


def test_a_watcher_waits_for_what_is_still_to_come() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe() as watcher:
            hearing = asyncio.create_task(hear(watcher, 2))
            for number in range(2):
                await asyncio.sleep(0)
                assert not hearing.done()
                bus.publish(settled(number))
            assert await hearing == [settled(0), settled(1)]

    asyncio.run(story())


def test_a_watcher_that_is_cancelled_loses_nothing() -> None:
    async def story() -> None:
        bus = Bus()
        with bus.subscribe() as watcher:
            hearing = asyncio.create_task(hear(watcher, 1))
            await asyncio.sleep(0)
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            bus.publish(settled(1))
            assert await hear(watcher, 1) == [settled(1)]

    asyncio.run(story())


def test_who_has_left_is_not_kept() -> None:
    async def story() -> None:
        bus = Bus()
        assert not bus.watched
        watcher = bus.subscribe()
        assert bus.watched
        watcher.close()
        watcher.close()
        assert not bus.watched
        bus.publish(settled(1))  # and nobody minds

    asyncio.run(story())


def test_facts_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        settled(1).envelope = 2  # type: ignore[misc]
