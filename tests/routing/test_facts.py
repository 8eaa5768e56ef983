"""The events on the bus of the daemon: what is published when, and that a slow subscriber stops nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hiboss.core.events import (
    AdapterStarted,
    EnvelopesArrived,
    EnvelopeSettled,
    Event,
    Gap,
    LaneWaits,
    Subscription,
)
from tests.support.in_process_daemon import InProcessDaemon, frozen


def watch(daemon: InProcessDaemon, *kinds: type[Event], **how: Any) -> Subscription:
    return daemon.daemon.wiring.bus.subscribe(*kinds, **how)


async def hear(watcher: Subscription) -> Any:
    return await asyncio.wait_for(anext(watcher), 30)


def number(envelope: str) -> int:
    return int(envelope[1:])


@frozen()
async def test_mail_that_arrives_is_announced_at_once_or_when_its_time_comes(daemon: InProcessDaemon) -> None:
    watcher = watch(daemon, EnvelopesArrived)
    (later,) = await daemon.send(deliver_at="+1h")
    now = await daemon.send("agent:nex", "user:boss")
    first = await hear(watcher)
    assert first.envelopes == tuple(number(one) for one in now)
    assert len(set(first.recipients)) == 2
    await daemon.move(hours=1)
    second = await hear(watcher)
    assert second.envelopes == (number(later),)
    assert second.at - first.at == 3_600_000


@frozen(at=None, quiet=False, adapter_modules="hiboss.testing.scripted_adapter")
async def test_the_life_of_a_post_is_told_in_facts(daemon: InProcessDaemon) -> None:
    watcher = watch(daemon, AdapterStarted, EnvelopeSettled, LaneWaits)
    directory = Path(daemon.home.path).parent / "place"
    address = await daemon.bind(
        directory,
        '{"do": "ok"}',
        '{"do": "envelope_error", "text": "no"}',
        '{"do": "lane_error", "retry_after": 0.1}',
    )
    sent = [(await daemon.send(address, text=f"{i}"))[0] for i in range(3)]
    started, done, failed, waits, last = [await hear(watcher) for _ in range(5)]
    assert isinstance(started, AdapterStarted)
    assert started.address == address
    assert [(fact.envelope, fact.status, fact.error) for fact in (done, failed, last)] == [
        (number(sent[0]), "done", None),
        (number(sent[1]), "failed", "no"),
        (number(sent[2]), "done", None),
    ]
    assert isinstance(waits, LaneWaits)
    assert (waits.address, waits.until - waits.at) == (address, 100)


@frozen(at=None, adapter_modules="hiboss.testing.scripted_adapter")
async def test_who_does_not_listen_to_what_he_asked_for_holds_up_no_delivery(daemon: InProcessDaemon) -> None:
    slow, quick = watch(daemon, EnvelopeSettled, size=2), watch(daemon, EnvelopeSettled)
    directory = Path(daemon.home.path).parent / "place"
    address = await daemon.bind(directory)
    sent = [(await daemon.send(address, text=f"{i}"))[0] for i in range(30)]
    assert [(await hear(quick)).envelope for _ in sent] == [number(one) for one in sent]
    gap, *rest = [await hear(slow) for _ in range(3)]
    assert isinstance(gap, Gap)
    assert gap.missed == 28
    assert [fact.envelope for fact in rest] == [number(one) for one in sent[-2:]]


@frozen(at=None)
async def test_what_is_accepted_is_on_disk_before_it_is_announced(daemon: InProcessDaemon) -> None:
    watcher = watch(daemon, EnvelopesArrived)
    sending = asyncio.create_task(daemon.send())
    fact = await hear(watcher)
    assert daemon.rows("SELECT id FROM envelope WHERE id = ?", fact.envelopes[0])
    await sending
