"""Leases end and waiting lanes are tried at their time, to the millisecond: a clock moved by the test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiboss.core import clock
from hiboss.core.errors import TooLate
from hiboss.testing.frozen_clock import NOON
from tests.support.in_process_daemon import Envelope, InProcessDaemon, frozen

START = clock.to_ms(NOON)
MINUTE = 60_000
NEVER = 3600  # a heartbeat so rare that it finds nothing here


async def claim(daemon: InProcessDaemon, who: str = "nex", **params: object) -> list[Envelope]:
    return list((await daemon.ask("envelope.claim", who, **params))["envelopes"])


async def texts(daemon: InProcessDaemon, who: str = "nex", **params: object) -> list[str]:
    return [one["text"] for one in await claim(daemon, who, **params)]


# --- leases -----------------------------------------------------------------------------


@frozen(heartbeat_seconds=NEVER)
async def test_a_lease_ends_at_its_time_and_what_it_held_comes_back_redelivered(
    daemon: InProcessDaemon,
) -> None:
    (number,) = await daemon.send()
    (taken,) = await claim(daemon, lease="10m")
    assert (taken["id"], taken["waits"], taken["redelivered"]) == (number, "lease", False)
    await daemon.ring(minutes=9, seconds=59, milliseconds=999)
    await daemon.settle()
    assert await claim(daemon) == []
    await daemon.ring(milliseconds=1)  # by the timer job alone
    await daemon.settle()
    back = await daemon.get(number)
    assert (back["status"], back["waits"], back["redelivered"]) == ("pending", None, True)
    (again,) = await claim(daemon)
    assert (again["id"], again["redelivered"], again["attempts"]) == (number, True, 0)
    (row,) = daemon.rows("SELECT handovers FROM envelope")
    assert row["handovers"] == 2


@frozen()
async def test_what_comes_back_keeps_its_place_before_what_came_later(daemon: InProcessDaemon) -> None:
    await daemon.flood(["-1s"] * 3, text="old")
    assert await texts(daemon, lease="1m") == ["old"] * 3
    arrived = daemon.arrived()
    await daemon.send(text="new")
    await daemon.move(minutes=1)
    assert daemon.arrived()[:3] == arrived and await texts(daemon) == ["old"] * 3 + ["new"]


@frozen()
async def test_what_was_acknowledged_or_released_in_time_is_left_alone_at_the_end(
    daemon: InProcessDaemon,
) -> None:
    done, given_back = [(await daemon.send(text=text))[0] for text in ("done", "given back")]
    assert await texts(daemon, lease="10m") == ["done", "given back"]
    await daemon.move(minutes=5)
    await daemon.ask("envelope.ack", "nex", ids=[done])
    await daemon.ask("envelope.release", "nex", ids=[given_back])
    assert await texts(daemon, lease="10m") == ["given back"]  # a lease of its own, to 12:15
    await daemon.move(minutes=5)  # when the first lease would have ended
    assert await claim(daemon) == []
    await daemon.move(minutes=4, seconds=59, milliseconds=999)
    assert await claim(daemon) == []
    await daemon.move(milliseconds=1)
    assert await texts(daemon) == ["given back"] and (await daemon.get(done))["status"] == "done"


@frozen()
async def test_a_thousand_leases_of_many_ending_at_one_instant_all_come_back(daemon: InProcessDaemon) -> None:
    names = [f"a{n}" for n in range(10)]
    await daemon.register(*names)
    for name in names:
        await daemon.flood(["-1s"] * 100, f"agent:{name}")
        assert len(await claim(daemon, name, limit=100, lease="10m")) == 100
    arrived = daemon.arrived()
    await daemon.move(minutes=9, seconds=59, milliseconds=999)
    assert len(daemon.rows("SELECT 1 FROM envelopes WHERE waits = 'lease'")) == 1_000
    await daemon.move(milliseconds=1)
    assert daemon.rows("SELECT 1 FROM envelope WHERE waits IS NOT NULL OR wake_at IS NOT NULL") == []
    assert daemon.rows("SELECT 1 FROM envelope WHERE claim IS NOT NULL") == [] and daemon.arrived() == arrived
    for name in names:
        taken = await claim(daemon, name, limit=100)
        assert len(taken) == 100 and all(one["redelivered"] for one in taken)


@frozen()
async def test_the_end_of_a_lease_brings_nothing_back_to_somebody_deleted(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    (number,) = await daemon.send("agent:kai")
    await claim(daemon, "kai", lease="10m")
    with pytest.raises(TooLate):
        await daemon.ask("envelope.cancel", "nex", ids=[number])
    await daemon.ask("agent.delete", name="kai")
    await daemon.move(minutes=10)
    envelope = await daemon.get(number)
    assert (envelope["status"], envelope["waits"]) == ("failed", None)


@frozen()
async def test_after_its_lease_a_late_acknowledgement_still_counts(daemon: InProcessDaemon) -> None:
    (number,) = await daemon.send()
    await claim(daemon, lease="10m")
    await daemon.move(minutes=11)
    with pytest.raises(TooLate):  # nothing is held that could be released
        await daemon.ask("envelope.release", "nex", ids=[number])
    assert await daemon.ask("envelope.ack", "nex", ids=[number]) == {"changed": 1}
    assert await claim(daemon) == []


# --- waiting lanes ----------------------------------------------------------------------


def _place(daemon: InProcessDaemon) -> Path:
    return Path(daemon.home.path).parent / "place"


def _posts(daemon: InProcessDaemon) -> list[str]:
    return [json.loads(line)["chunk"] for line in (_place(daemon) / "posts.jsonl").read_text().splitlines()]


async def _lane(daemon: InProcessDaemon) -> dict[str, object]:
    (lane,) = (await daemon.ask("lane.list"))["lanes"]
    return dict(lane)


async def _waits(daemon: InProcessDaemon, failures: int) -> str:
    """Wait until the lane had so many failures; return when it is tried again."""
    await daemon.until(
        lambda: daemon.rows("SELECT 1 FROM lane WHERE state = 'waiting' AND failures = ?", failures)
    )
    return str((await _lane(daemon))["next_try_at"])


def error(**facts: object) -> str:
    return json.dumps({"do": "lane_error", "text": "nobody answers", **facts})


@frozen(adapter_modules="hiboss.testing.scripted_adapter", heartbeat_seconds=NEVER, quiet=False)
async def test_a_waiting_lane_is_tried_at_its_time_and_goes_on_in_order(daemon: InProcessDaemon) -> None:
    address = await daemon.bind(_place(daemon), error(retry_after=60))
    await daemon.send(address, text="one")
    assert await _waits(daemon, 1) == clock.iso(START + MINUTE)
    await daemon.send(address, text="two")  # within five seconds of the last try: it is not tried again
    assert (await daemon.ask("daemon.status"))["next_wake_at"] == clock.iso(START + MINUTE)
    await daemon.send(text="beside", deliver_at=clock.iso(START + MINUTE - 1))  # a wake for others
    await daemon.ring(seconds=59, milliseconds=999)
    await daemon.settle()
    assert await daemon.inbox() == ["beside"]
    assert _posts(daemon) == [] and (await _lane(daemon))["state"] == "waiting"
    await daemon.ring(milliseconds=1)
    await daemon.until(lambda: _posts(daemon) == ["one", "two"])
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    lane = await _lane(daemon)
    assert (lane["state"], lane["failures"], lane["next_try_at"]) == ("open", 0, None)


@frozen(adapter_modules="hiboss.testing.scripted_adapter", heartbeat_seconds=NEVER, quiet=False)
async def test_a_lane_that_goes_on_failing_waits_longer_each_time(daemon: InProcessDaemon) -> None:
    await daemon.send(await daemon.bind(_place(daemon), *[error()] * 7))
    for failures, patience in enumerate((5, 30, 120, 600, 3600, 3600, 3600), start=1):
        until = clock.to_ms(
            clock.from_ms(clock.parse(await _waits(daemon, failures), now=0, zone=NOON.tzinfo))
        )  # type: ignore[arg-type]
        assert 0.9 * patience <= (until - clock.now()) / 1000 <= 1.1 * patience
        await daemon.ring(milliseconds=until - clock.now() - 1)
        await daemon.settle()
        assert (await _lane(daemon))["failures"] == failures and _posts(daemon) == []
        await daemon.ring(milliseconds=1)
    await daemon.until(lambda: _posts(daemon) == ["hello"])
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    (told,) = daemon.rows("SELECT count(*) FROM envelopes WHERE \"to\" = 'user:boss'")
    assert told[0] == 1  # once for all of this


@frozen(adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_a_paused_lane_is_not_woken_by_the_time_it_waited_for(daemon: InProcessDaemon) -> None:
    address = await daemon.bind(_place(daemon), error(retry_after=60))
    await daemon.send(address, text="one")
    await _waits(daemon, 1)
    await daemon.ask("lane.pause", address=address)
    await daemon.send(address, text="two", deliver_at="+2m")
    await daemon.move(minutes=5)
    assert _posts(daemon) == [] and (await _lane(daemon))["state"] == "paused"
    assert (await _lane(daemon))["due"] == 2
    await daemon.ask("lane.resume", address=address)
    await daemon.until(lambda: _posts(daemon) == ["one", "two"])
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))


@frozen(adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_what_waits_for_one_instant_in_different_ways_is_all_woken_then(
    daemon: InProcessDaemon,
) -> None:
    await daemon.send((await daemon.bind(_place(daemon), error(retry_after=600))), text="posted")
    await _waits(daemon, 1)
    await daemon.send(text="leased")
    await claim(daemon, lease="10m")
    (deferred,) = await daemon.send(text="deferred", deliver_at="+10m")
    (status,) = [await daemon.ask("daemon.status")]
    assert status["next_wake_at"] == clock.iso(START + 10 * MINUTE)
    await daemon.move(minutes=9, seconds=59, milliseconds=999)
    assert _posts(daemon) == [] and await claim(daemon) == []
    await daemon.move(milliseconds=1)
    assert await texts(daemon) == ["leased", "deferred"]
    await daemon.until(lambda: _posts(daemon) == ["posted"])
    await daemon.until(lambda: not daemon.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    assert (await daemon.get(deferred))["late_seconds"] is None
