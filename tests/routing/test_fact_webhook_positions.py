"""How far webhooks are with the facts: no arrival is lost or sent twice, whatever they miss in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from hiboss.core import clock
from hiboss.core.events import UserChanged
from hiboss.routing import fact_webhooks, facts
from tests.support.fact_receivers import FactReceiver, fact_receiver
from tests.support.in_process_daemon import InProcessDaemon, frozen

MANY = fact_webhooks.AT_ONCE + 50  # more than are kept, and than are stored at once
ARRIVALS = {"topics": ["envelope.arrived"], "addresses": ["agent:nex"]}


async def subscribed(daemon: InProcessDaemon, server: FactReceiver, **params: Any) -> None:
    await daemon.ask("webhook.subscribe", **{"name": "out", "url": server.url, **ARRIVALS, **params})


def position(daemon: InProcessDaemon) -> int:
    return int(daemon.rows("SELECT arrived FROM webhook_subscription")[0][0])


def last_arrived(daemon: InProcessDaemon) -> int:
    return int(daemon.rows("SELECT max(arrived) FROM envelope")[0][0])


def posted(server: FactReceiver) -> list[str]:
    return [one["envelopes"][0]["id"] for one in server.facts("envelope.arrived")]


@contextmanager
def behind() -> Iterator[None]:
    """Let webhooks store nothing meanwhile and fall behind soon; else it depends on the machine what they miss."""
    store, goes_on = fact_webhooks.Follower._insert, asyncio.Event()

    async def wait(follower: fact_webhooks.Follower, some: Sequence[dict[str, Any]]) -> None:
        await goes_on.wait()
        await store(follower, some)

    with patch.object(fact_webhooks.Follower, "_insert", wait), patch.object(facts, "AT_ONCE", 20):
        yield
        goes_on.set()


async def sent(daemon: InProcessDaemon, number: int, to: str = "agent:nex") -> list[str]:
    """Send so many at the same time; return their ids in the order in which they arrived."""
    found = await asyncio.gather(*(daemon.send(to, text=f"{one}") for one in range(number)))
    return sorted((ids[0] for ids in found), key=lambda one: int(one[1:]))


@frozen(kept_facts=10)
async def test_more_facts_than_are_kept_cost_no_arrival_and_other_facts_one_gap(
    daemon: InProcessDaemon,
) -> None:
    with fact_receiver() as server:
        await subscribed(daemon, server, topics=["envelope.arrived", "run.ended"])
        with behind():
            numbers = await sent(daemon, MANY)
        await daemon.until(lambda: len(server.posts) >= MANY)
        await daemon.until(lambda: len(posted(server)) >= MANY)
        assert posted(server) == numbers
        await daemon.until(lambda: server.facts("gap"))


@frozen(kept_facts=10)
async def test_a_webhook_of_arrivals_alone_is_told_of_no_gap(daemon: InProcessDaemon) -> None:
    with fact_receiver() as server:
        await subscribed(daemon, server)
        with behind():
            numbers = await sent(daemon, MANY)
        await daemon.until(lambda: len(server.posts) >= MANY)
        await daemon.until(lambda: len(posted(server)) >= MANY)
        assert posted(server) == numbers and server.facts("gap") == []


@frozen(quiet=False, lock_wait_seconds=0.05)
async def test_while_the_store_cannot_be_used_facts_wait(daemon: InProcessDaemon) -> None:
    with fact_receiver() as server:
        await subscribed(daemon, server, topics=["presence"], addresses=[])
        with daemon.locked():
            person = int(daemon.rows("SELECT address FROM user")[0][0])
            daemon.daemon.wiring.facts.tell(UserChanged(clock.now(), person, "online"))
            await daemon.until(lambda: any("waits for the store" in one for one in daemon.warnings()))
            assert server.posts == []
        await daemon.until(lambda: server.facts("presence"))


@frozen()
async def test_arrivals_for_others_move_the_position_now_and_then(daemon: InProcessDaemon) -> None:
    await daemon.register("ada")
    with fact_receiver() as server:
        await subscribed(daemon, server)
        begin = position(daemon)
        found = daemon.daemon.wiring.fact_webhooks
        for start in range(0, fact_webhooks.NOTE_EVERY, 500):
            await asyncio.gather(*(daemon.send("agent:ada", who="ada", text=f"{start}") for _ in range(500)))
        assert position(daemon) == begin
        await found.note_positions()
        assert position(daemon) == last_arrived(daemon) == begin + fact_webhooks.NOTE_EVERY
        numbers = await sent(daemon, 3)
        await daemon.until(lambda: len(posted(server)) == 3)
        assert posted(server) == numbers


@frozen()
async def test_positions_are_noted_while_webhooks_come_and_go(daemon: InProcessDaemon) -> None:
    await daemon.register("ada")
    with fact_receiver() as server, patch.object(fact_webhooks, "NOTE_EVERY", 1):
        await subscribed(daemon, server)
        await daemon.send("agent:ada", who="ada")
        noted = asyncio.create_task(daemon.daemon.wiring.fact_webhooks.note_positions())
        await asyncio.sleep(0)  # they have begun
        await subscribed(daemon, server, name="another")
        await noted
        assert position(daemon) == last_arrived(daemon)


@frozen()
async def test_what_arrived_between_the_last_fact_and_the_stop_is_posted_after_the_start(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("ada")
    with fact_receiver() as server:
        await subscribed(daemon, server)
        before = await sent(daemon, 5)
        await daemon.until(lambda: len(posted(server)) == 5)
        await sent(daemon, 5, "agent:ada")
        # As after a crash: what was stored about the last three is lost.
        await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE status = 0 AND binding > 0"))
        await daemon.close()
        arrived = [row["arrived"] for row in daemon.rows("SELECT arrived FROM envelope ORDER BY id LIMIT 5")]
        daemon.change("UPDATE webhook_subscription SET arrived = ?", arrived[1])
        await daemon.open()
        await daemon.until(lambda: len(server.posts) >= 13)
        assert [one for one in posted(server)[5:] if one in before] == before[2:]


@frozen()
async def test_mail_that_arrives_later_is_caught_up_too(daemon: InProcessDaemon) -> None:
    with fact_receiver() as server:
        await subscribed(daemon, server)
        (deferred,) = await daemon.send(deliver_at="+2h")
        (now,) = await daemon.send()
        await daemon.until(lambda: posted(server) == [now])
        await daemon.close()
        daemon.tick(hours=3)
        await daemon.open()
        await daemon.until(lambda: posted(server) == [now, deferred])
