"""The facts of the daemon: what is told when, and that a slow reader stops nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.errors import StoreError
from hiboss.core.events import RunProgress
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.followers import Follower, Listener, following
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import agent, boss
from tests.support.scripted_channels import Place, lane_error


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
    assert ids(second) == later and second["at"] == deferred["until"] > first["at"]


@frozen(at=None)
async def test_what_is_accepted_is_on_disk_before_it_is_announced(daemon: InProcessDaemon) -> None:
    listener = listen(daemon, "envelope.arrived")
    sending = asyncio.create_task(daemon.send())
    assert daemon.rows("SELECT id FROM envelopes WHERE id = ?", *ids(await listener.hear()))
    await sending


@frozen(at=None, quiet=False, adapter_modules="hiboss.testing.scripted_adapter")
async def test_the_life_of_a_post_is_told_in_facts(daemon: InProcessDaemon) -> None:
    topics = ("adapter.running", "envelope.settled", "envelope.waits", "lane.waiting", "lane.open")
    listener = listen(daemon, *topics)
    address = await daemon.bind(
        Path(daemon.home.path).parent / "place",
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
    assert (await slow.hear())["topic"] == "gap"
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
    assert Listener(facts, after=0).gap is True
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


# --- channels and boxes -------------------------------------------------------------


@pytest.fixture
def follower(daemon: RunningDaemon) -> Iterator[Follower]:
    with following(daemon) as one:
        yield one


def test_the_agent_hears_that_a_message_was_edited_and_that_somebody_reacted_to_it(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    follower.subscribe(place.owner.token, topics=["message.edited", "message.reacted"])
    place.comes_in("u1", text="teh first", message="m1")
    place.comes_in("u2", kind="edit", text="the first", message="m1")
    place.comes_in("u3", kind="edit", text="the first", message="m1")  # nothing new
    place.comes_in("u4", kind="reaction", emoji="👍", message="m1")
    place.comes_in("u5", kind="reaction", emoji="👍", message="m1", removed=True)
    (message,) = place.owner.list()
    about = {"message": message["message"], "from": place.address, "conversation": message["conversation"]}
    told = [follower.next() for _ in range(3)]
    assert all(about.items() <= one.items() for one in told)
    assert [(one["topic"], one.get("emoji"), one.get("removed")) for one in told] == [
        ("message.edited", None, None),
        ("message.reacted", "👍", False),
        ("message.reacted", "👍", True),
    ]


def test_a_binding_that_ends_is_told_to_the_boss_and_each_agent_hears_when_it_is_served_no_more(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    first, last = agent(daemon), agent(daemon)
    place = Place(tmp_path).bound(daemon, first)
    place.bind(last)
    chief = boss(daemon)
    with following(daemon) as of_first, following(daemon) as of_last:
        for one, token in ((follower, chief.token), (of_first, first.token), (of_last, last.token)):
            one.subscribe(token, topics=["binding.removed", "envelope.arrived"])
        place.unbind(first)
        chief.call("agent.delete", name=last.name)
        told = [follower.next("binding.removed") for _ in range(2)]
        binding, account = f"b{place.binding}", f"scripted:{place.name}"
        assert [(one["topic"], one["binding"], one["account"]) for one in told] == [
            ("binding.removed", binding, account)
        ] * 2
        assert [(one["agent"], one["ended"]) for one in told] == [
            (first.address, False),
            (last.address, True),
        ]
        heard = of_first.until("the end", first.token, to=first.address)
        assert [(one["agent"], one["ended"]) for one in heard] == [(first.address, False)]


def test_a_new_topic_of_a_chat_that_waits_is_told_as_waiting_at_once(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(lane_error(kind="rate_limited"))
    follower.subscribe(place.owner.token, topics=["lane.waiting"])
    place.owner.send(f"{place.address}/1", text="too much")
    assert {follower.next()["address"] for _ in range(2)} == {place.address, f"{place.address}/1"}
    place.owner.send(f"{place.address}/2", text="a new topic")
    told = follower.next()
    assert (told["topic"], told["address"]) == ("lane.waiting", f"{place.address}/2")
    assert told["until"] > told["at"]


def test_an_adapter_that_crashed_is_told_to_the_boss_with_its_error(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    follower.subscribe(boss(daemon).token, topics=["adapter.failed"])
    place.put_in_inbox("u1", wrong="no part of a message")
    told = follower.next()
    assert (told["topic"], told["binding"]) == ("adapter.failed", f"b{place.binding}") and told["error"]


def test_mail_that_is_also_posted_to_the_boss_s_chat_is_told_to_him_as_forwarded(
    follower: Follower, daemon: RunningDaemon, tmp_path: Path
) -> None:
    place, chief = Place(tmp_path).bound(daemon), boss(daemon)
    chief.call("boss.set", reach=place.address, forward="all")
    follower.subscribe(chief.token, topics=["envelope.forwarded", "envelope.settled"])
    number = agent(daemon).tell(chief, text="come home")
    forwarded, settled = follower.next("envelope.forwarded"), follower.next("envelope.settled")
    assert forwarded["topic"] == "envelope.forwarded" and forwarded["forwards"] == number
    assert (settled["envelope"], settled["to"]) == (forwarded["envelope"], place.address)
    chief.call("boss.set", reach="")


def test_what_a_recipient_does_with_its_mail_is_told_step_by_step(
    follower: Follower, daemon: RunningDaemon
) -> None:
    ada, bob = agent(daemon), agent(daemon)
    follower.subscribe(bob.token)
    number = ada.tell(bob)
    bob.call("envelope.claim", limit=1)
    bob.call("envelope.release", ids=[number])
    bob.call("envelope.ack", ids=[number])
    bob.call("envelope.archive", ids=[number])
    told = [one for one in follower.until("the end", bob.token, to=bob.address) if one["topic"] != "presence"]
    assert [one["topic"] for one in told] == [
        "envelope.arrived",
        "envelope.claimed",
        "envelope.due",
        "envelope.acknowledged",
        "envelope.moved",
    ]
    assert told[1]["until"] > told[1]["at"] and told[-1]["box"] == "archived"
    assert {one["envelope"] for one in told[1:]} == {number}
