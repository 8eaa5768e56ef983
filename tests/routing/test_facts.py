"""The facts of the daemon: what is told when, and that a slow reader stops nobody."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hiboss.core.errors import StoreError
from hiboss.core.events import RunProgress
from tests.support.followers import Listener
from tests.support.in_process_daemon import InProcessDaemon, frozen


def listen(daemon: InProcessDaemon, *topics: str) -> Listener:
    return Listener(daemon.daemon.wiring.facts, *topics)


def ids(event: dict[str, Any]) -> list[str]:
    return [one["id"] for one in event["envelopes"]]


@frozen()
async def test_mail_that_arrives_is_announced_at_once_or_when_its_time_comes(daemon: InProcessDaemon) -> None:
    listener = listen(daemon, "envelope.arrived", "envelope.deferred")
    later = await daemon.send(deliver_at="+1h")
    now = await daemon.send("agent:nex", "user:boss")
    deferred, first = await listener.hear(), await listener.hear()
    assert (deferred["topic"], ids(deferred)) == ("envelope.deferred", later)
    assert (first["topic"], ids(first)) == ("envelope.arrived", now)
    assert [one["to"] for one in first["envelopes"]] == ["agent:nex", "user:boss"]
    await daemon.move(hours=1)
    second = await listener.hear()
    assert ids(second) == later
    assert second["at"] == deferred["until"] > first["at"]


@frozen(at=None)
async def test_what_is_accepted_is_on_disk_before_it_is_announced(daemon: InProcessDaemon) -> None:
    listener = listen(daemon, "envelope.arrived")
    sending = asyncio.create_task(daemon.send())
    event = await listener.hear()
    assert daemon.rows("SELECT id FROM envelopes WHERE id = ?", *ids(event))
    await sending


@frozen(at=None, quiet=False, adapter_modules="hiboss.testing.scripted_adapter")
async def test_the_life_of_a_post_is_told_in_facts(daemon: InProcessDaemon) -> None:
    topics = ("adapter.running", "envelope.settled", "envelope.waits", "lane.waiting", "lane.open")
    listener = listen(daemon, *topics)
    directory = Path(daemon.home.path).parent / "place"
    address = await daemon.bind(
        directory,
        '{"do": "ok"}',
        '{"do": "envelope_error", "text": "no"}',
        '{"do": "lane_error", "retry_after": 0.1}',
    )
    sent = [(await daemon.send(address, text=f"{i}"))[0] for i in range(3)]
    running, done, failed, waits, waiting, opened, last = [await listener.hear() for _ in range(7)]
    assert (running["topic"], f"channel:{running['account']}") == ("adapter.running", address)
    assert [(event["envelope"], event["status"]) for event in (done, failed, last)] == [
        (sent[0], "done"),
        (sent[1], "failed"),
        (sent[2], "done"),
    ]
    assert (waits["topic"], waits["envelope"], waits["until"]) == ("envelope.waits", sent[2], None)
    assert [(event["topic"], event["address"]) for event in (waiting, opened)] == [
        ("lane.waiting", address),
        ("lane.open", address),
    ]
    assert waiting["until"] > waiting["at"]
    retried = listen(daemon, "envelope.retried", "envelope.settled")
    await daemon.ask("envelope.retry", "nex", ids=[sent[1]])
    again = [await retried.hear() for _ in range(2)]
    assert [(event["topic"], event["envelope"]) for event in again] == [
        ("envelope.retried", sent[1]),
        ("envelope.settled", sent[1]),
    ]


@frozen(at=None, kept_facts=20)
async def test_a_reader_that_is_not_ready_costs_no_memory_and_is_told_of_a_gap_once(
    daemon: InProcessDaemon,
) -> None:
    slow, quick = listen(daemon, "envelope.arrived"), listen(daemon, "envelope.arrived")
    slow.ready = False
    for number in range(1, 101):
        await daemon.send()
        assert (await quick.hear())["seq"] == number
    assert slow.subscription.fresh == []
    slow.read_on()
    gap = await slow.hear()
    assert gap["topic"] == "gap"
    await daemon.send()
    assert [(await one.hear())["seq"] for one in (slow, quick)] == [101, 101]


@frozen(at=None, kept_facts=200)
async def test_a_reader_that_comes_back_in_time_misses_nothing_however_much_it_is(
    daemon: InProcessDaemon,
) -> None:
    listener = listen(daemon, "envelope.arrived", "envelope.read")
    listener.ready = False
    sent = [(await daemon.send(text="x"))[0] for _ in range(90)]
    await daemon.ask("envelope.read", "nex", ids=sent)
    listener.read_on()
    heard = [await listener.hear() for _ in range(180)]
    assert [event["seq"] for event in heard[:90]] == list(range(1, 91))
    assert [event["envelope"] for event in heard[90:]] == sent
    numbers = [event["number"] for event in heard]
    assert numbers == list(range(numbers[0], numbers[0] + 180))


@frozen(at=None)
async def test_more_at_once_than_are_written_at_once_comes_in_order(daemon: InProcessDaemon) -> None:
    listener = listen(daemon, "envelope.arrived")
    await asyncio.gather(*(daemon.send() for _ in range(2_000)))
    assert [(await listener.hear())["seq"] for _ in range(2_000)] == list(range(1, 2_001))


@frozen(at=None)
async def test_the_output_of_runs_does_not_fill_the_memory(daemon: InProcessDaemon) -> None:
    facts = daemon.daemon.wiring.facts
    for _ in range(40):
        facts.tell(RunProgress(0, 1, 1, None, 1, "delta", "x" * 1_000_000))
    listener = Listener(facts, after=0)
    assert listener.gap is True
    kept = Listener(facts, after=facts.number - 10)
    assert kept.gap is False
    assert [len((await kept.hear())["text"]) for _ in range(10)] == [1_000_000] * 10


@frozen(at=None, quiet=False)
async def test_when_the_store_cannot_be_read_those_who_follow_are_told_of_a_gap(
    daemon: InProcessDaemon,
) -> None:
    listener = listen(daemon, "envelope.read")
    [number] = await daemon.send()
    store = daemon.daemon.wiring._store
    read = store.read

    def broken(query: Any) -> Any:
        raise StoreError(path="hiboss.db", detail="no such disk")

    marked = asyncio.ensure_future(daemon.ask("envelope.read", "nex", ids=[number]))
    await asyncio.sleep(0)
    store.read = broken  # type: ignore[method-assign]
    assert (await listener.hear())["topic"] == "gap"
    store.read = read  # type: ignore[method-assign]
    await asyncio.gather(marked, return_exceptions=True)
    [other] = await daemon.send()
    await daemon.ask("envelope.read", "nex", ids=[other])
    assert (await listener.hear())["envelope"] == other
