"""Leases end and waiting lanes are tried at their time, to the millisecond: under a clock set by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiboss.core import clock
from hiboss.core.errors import TooLate
from hiboss.testing.frozen_clock import NOON
from tests.support.clockwork import Envelope, Office, frozen

START = clock.to_ms(NOON)
MINUTE = 60_000
NEVER = 3600  # a heartbeat so rare that it finds nothing here


async def claim(office: Office, who: str = "nex", **params: object) -> list[Envelope]:
    taken = await office.ask("envelope.claim", who, **params)
    return list(taken["envelopes"])


async def texts(office: Office, who: str = "nex", **params: object) -> list[str]:
    return [one["text"] for one in await claim(office, who, **params)]


# --- leases -----------------------------------------------------------------------------


@frozen(heartbeat_seconds=NEVER)
async def test_a_lease_ends_at_its_time_and_what_it_held_comes_back_redelivered(office: Office) -> None:
    (number,) = await office.send()
    (taken,) = await claim(office, lease="10m")
    assert (taken["id"], taken["waits"], taken["redelivered"]) == (number, "lease", False)
    await office.ring(minutes=9, seconds=59, milliseconds=999)
    await office.settle()
    assert await claim(office) == []
    await office.ring(milliseconds=1)  # by the job alone
    await office.settle()
    back = await office.get(number)
    assert (back["status"], back["waits"], back["redelivered"]) == ("pending", None, True)
    (again,) = await claim(office)
    assert (again["id"], again["redelivered"], again["attempts"]) == (number, True, 0)
    (row,) = office.rows("SELECT handovers FROM envelope")
    assert row["handovers"] == 2


@frozen()
async def test_what_comes_back_keeps_its_place_before_what_came_later(office: Office) -> None:
    await office.flood(["-1s"] * 3, text="old")
    assert await texts(office, lease="1m") == ["old"] * 3
    arrived = office.arrived()
    await office.send(text="new")
    await office.move(minutes=1)
    assert office.arrived()[:3] == arrived
    assert await texts(office) == ["old"] * 3 + ["new"]


@frozen()
async def test_what_was_acknowledged_or_released_in_time_is_left_alone_at_the_end(office: Office) -> None:
    done, given_back = [(await office.send(text=text))[0] for text in ("done", "given back")]
    assert await texts(office, lease="10m") == ["done", "given back"]
    await office.move(minutes=5)
    await office.ask("envelope.ack", "nex", ids=[done])
    await office.ask("envelope.release", "nex", ids=[given_back])
    assert await texts(office, lease="10m") == ["given back"]  # a lease of its own, to 12:15
    await office.move(minutes=5)  # when the first would have ended
    assert await claim(office) == []
    await office.move(minutes=4, seconds=59, milliseconds=999)
    assert await claim(office) == []
    await office.move(milliseconds=1)
    assert await texts(office) == ["given back"]
    assert (await office.get(done))["status"] == "done"


@frozen()
async def test_a_lease_outlives_a_restart_and_ends_at_the_same_time(office: Office) -> None:
    await office.send()
    await claim(office, lease="10m")
    await office.restart(minutes=9)
    assert await claim(office) == []
    await office.restart(seconds=59, milliseconds=999)
    assert await claim(office) == []
    await office.restart(milliseconds=1)
    (back,) = await claim(office, lease="10m")
    assert back["redelivered"]
    await office.restart(days=1)  # it ended while nobody was there
    assert await texts(office) == ["hello"]


@frozen()
async def test_a_clock_set_back_ends_no_lease_early_and_none_twice(office: Office) -> None:
    await office.send()
    await claim(office, lease="10m")
    await office.move(hours=-3)
    await office.move(hours=3, minutes=9, seconds=59, milliseconds=999)
    assert await claim(office) == []
    await office.move(milliseconds=1)
    assert await texts(office, lease="1h") == ["hello"]
    await office.move(minutes=-30)
    await office.move(minutes=30)
    assert await claim(office) == []  # the second lease still holds


@frozen(heartbeat_seconds=NEVER)
async def test_a_short_lease_moves_the_bell_before_deferred_mail(office: Office) -> None:
    await office.send(text="now")
    await office.send(text="later", deliver_at="+1h")
    assert office.scheduler.next_wake == START + 60 * MINUTE
    await claim(office, lease="30s")
    assert office.scheduler.next_wake == START + MINUTE // 2
    await office.ring(seconds=30)
    await office.settle()
    assert office.scheduler.next_wake == START + 60 * MINUTE
    assert await texts(office, lease="1h") == ["now"]


@frozen()
async def test_a_thousand_leases_of_many_ending_at_one_instant_all_come_back(office: Office) -> None:
    names = [f"a{n}" for n in range(10)]
    await office.register(*names)
    for name in names:
        await office.flood(["-1s"] * 100, f"agent:{name}")
        assert len(await claim(office, name, limit=100, lease="10m")) == 100
    arrived = office.arrived()
    await office.move(minutes=9, seconds=59, milliseconds=999)
    assert len(office.rows("SELECT 1 FROM envelopes WHERE waits = 'lease'")) == 1_000
    await office.move(milliseconds=1)
    assert office.rows("SELECT 1 FROM envelope WHERE waits IS NOT NULL OR wake_at IS NOT NULL") == []
    assert office.rows("SELECT 1 FROM envelope WHERE claimed_by IS NOT NULL") == []
    assert office.arrived() == arrived
    for name in names:
        taken = await claim(office, name, limit=100)
        assert len(taken) == 100 and all(one["redelivered"] for one in taken)


@frozen()
async def test_the_end_of_a_lease_brings_nothing_back_to_somebody_deleted(office: Office) -> None:
    await office.register("kai")
    (number,) = await office.send("agent:kai")
    await claim(office, "kai", lease="10m")
    with pytest.raises(TooLate):
        await office.ask("envelope.cancel", "nex", ids=[number])
    await office.ask("agent.delete", name="kai")
    await office.move(minutes=10)
    envelope = await office.get(number)
    assert (envelope["status"], envelope["waits"]) == ("failed", None)


@frozen()
async def test_after_its_lease_a_late_acknowledgement_still_counts(office: Office) -> None:
    (number,) = await office.send()
    await claim(office, lease="10m")
    await office.move(minutes=11)
    with pytest.raises(TooLate):  # there is nothing in hand to give back
        await office.ask("envelope.release", "nex", ids=[number])
    assert await office.ask("envelope.ack", "nex", ids=[number]) == {"changed": 1}
    assert await claim(office) == []


# --- waiting lanes ----------------------------------------------------------------------


def _place(office: Office) -> Path:
    return Path(office.home.path).parent / "place"


def _posts(office: Office) -> list[str]:
    return [json.loads(line)["chunk"] for line in (_place(office) / "posts.jsonl").read_text().splitlines()]


async def _lane(office: Office) -> dict[str, object]:
    (lane,) = (await office.ask("lane.list"))["lanes"]
    return dict(lane)


async def _waits(office: Office, failures: int) -> str:
    """Wait until the lane has met so many errors; when it is tried again."""
    await office.until(
        lambda: office.rows("SELECT 1 FROM lane WHERE state = 'waiting' AND failures = ?", failures)
    )
    return str((await _lane(office))["next_try_at"])


def error(**facts: object) -> str:
    return json.dumps({"do": "lane_error", "text": "nobody answers", **facts})


@frozen(adapter_modules="hiboss.testing.scripted_adapter", heartbeat_seconds=NEVER, quiet=False)
async def test_a_waiting_lane_is_tried_at_its_time_and_goes_on_in_order(office: Office) -> None:
    address = await office.bind(_place(office), error(retry_after=60))
    await office.send(address, text="one")
    assert await _waits(office, 1) == clock.iso(START + MINUTE)
    await office.send(address, text="two")  # within five seconds of the last try: it does not try again
    assert (await office.ask("daemon.status"))["next_wake_at"] == clock.iso(START + MINUTE)
    await office.send(text="beside", deliver_at=clock.iso(START + MINUTE - 1))  # waking that is not for it
    await office.ring(seconds=59, milliseconds=999)
    await office.settle()
    assert await office.inbox() == ["beside"]
    assert _posts(office) == [] and (await _lane(office))["state"] == "waiting"
    await office.ring(milliseconds=1)
    await office.until(lambda: _posts(office) == ["one", "two"])
    await office.until(lambda: not office.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    lane = await _lane(office)
    assert (lane["state"], lane["failures"], lane["next_try_at"]) == ("open", 0, None)


@frozen(adapter_modules="hiboss.testing.scripted_adapter", heartbeat_seconds=NEVER, quiet=False)
async def test_a_lane_that_goes_on_failing_waits_longer_each_time(office: Office) -> None:
    address = await office.bind(_place(office), *[error()] * 7)
    await office.send(address)
    for failures, patience in enumerate((5, 30, 120, 600, 3600, 3600, 3600), start=1):
        until = clock.to_ms(
            clock.from_ms(clock.parse(await _waits(office, failures), now=0, zone=NOON.tzinfo))
        )  # type: ignore[arg-type]
        assert 0.9 * patience <= (until - clock.now()) / 1000 <= 1.1 * patience
        await office.ring(milliseconds=until - clock.now() - 1)
        await office.settle()
        assert (await _lane(office))["failures"] == failures and _posts(office) == []
        await office.ring(milliseconds=1)
    await office.until(lambda: _posts(office) == ["hello"])
    await office.until(lambda: not office.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    (told,) = office.rows("SELECT count(*) FROM envelopes WHERE \"to\" = 'user:boss'")
    assert told[0] == 1  # once for all of this


@frozen(adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_a_paused_lane_is_not_woken_by_the_time_it_waited_for(office: Office) -> None:
    address = await office.bind(_place(office), error(retry_after=60))
    await office.send(address, text="one")
    await _waits(office, 1)
    await office.ask("lane.pause", address=address)
    await office.send(address, text="two", deliver_at="+2m")
    await office.move(minutes=5)
    assert _posts(office) == [] and (await _lane(office))["state"] == "paused"
    assert (await _lane(office))["due"] == 2
    await office.ask("lane.resume", address=address)
    await office.until(lambda: _posts(office) == ["one", "two"])
    await office.until(lambda: not office.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))


@frozen(adapter_modules="hiboss.testing.scripted_adapter", quiet=False)
async def test_what_waits_for_one_instant_in_different_ways_is_all_woken_then(office: Office) -> None:
    address = await office.bind(_place(office), error(retry_after=600))
    await office.send(address, text="posted")
    await _waits(office, 1)
    await office.send(text="leased")
    await claim(office, lease="10m")
    (deferred,) = await office.send(text="deferred", deliver_at="+10m")
    (status,) = [await office.ask("daemon.status")]
    assert status["next_wake_at"] == clock.iso(START + 10 * MINUTE)
    await office.move(minutes=9, seconds=59, milliseconds=999)
    assert _posts(office) == [] and await claim(office) == []
    await office.move(milliseconds=1)
    assert await texts(office) == ["leased", "deferred"]
    await office.until(lambda: _posts(office) == ["posted"])
    await office.until(lambda: not office.rows("SELECT 1 FROM envelope WHERE held_by IS NOT NULL"))
    assert (await office.get(deferred))["late_seconds"] is None
