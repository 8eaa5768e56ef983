"""Schedules by a clock the test moves: downtime, overlap, zones, restarts, a clock set wrong."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from hiboss.core import clock
from hiboss.testing.frozen_clock import NOON
from tests.support.clockwork import Office, frozen

START = clock.to_ms(NOON)
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


async def create(office: Office, who: str = "nex", **params: Any) -> str:
    """A schedule to the boss, whose box holds mail as done: nothing overlaps."""
    params = {"to": "user:boss", "text": "tick"} | params
    return str((await office.ask("cron.create", who, **params))["id"])


def slots(office: Office, number: str) -> list[tuple[int, str]]:
    """What became of each slot, as milliseconds after noon; of a row of missed ones the first."""
    rows = office.rows("SELECT * FROM schedule_slot WHERE schedule = ? ORDER BY slot", int(number[1:]))
    return [(row["slot"] - START, row["outcome"]) for row in rows]


def counted(office: Office, number: str) -> dict[str, int]:
    """How many slots ended in each way."""
    rows = office.rows(
        "SELECT outcome, sum(number) FROM schedule_slot WHERE schedule = ? GROUP BY outcome", int(number[1:])
    )
    return {row[0]: row[1] for row in rows}


def sent(office: Office, text: str = "tick") -> int:
    (row,) = office.rows("SELECT count(*) FROM message WHERE text = ?", text)
    return int(row[0])


async def next_at(office: Office, number: str) -> str | None:
    found: str | None = (await office.ask("cron.show", id=number))["next_at"]
    return found


# --- in time -------------------------------------------------------------------------


@frozen()
async def test_a_schedule_fires_at_its_minute_and_not_a_millisecond_before(office: Office) -> None:
    number = await create(office, cron="30 12 * * *", to="agent:nex")
    await office.move(minutes=29, seconds=59, milliseconds=999)
    assert sent(office) == 0
    await office.ring(milliseconds=1)
    await office.settle()
    assert await office.inbox() == ["tick"]
    assert slots(office, number) == [(30 * MINUTE, "fired")]
    assert await next_at(office, number) == clock.iso(START + 30 * MINUTE + DAY)
    await office.move(hours=5)
    assert sent(office) == 1


@frozen()
async def test_an_interval_goes_on_in_step_however_late_each_slot_was_looked_at(office: Office) -> None:
    number = await create(office, every="90s")
    for _ in range(3):
        await office.move(seconds=100)
    assert slots(office, number) == [(n * 90_000, "fired") for n in (1, 2, 3)]


@frozen(at=datetime(2030, 3, 30, 12, tzinfo=UTC))
async def test_over_the_spring_change_a_missing_time_fires_once_at_the_first_minute(office: Office) -> None:
    await create(office, cron="30 2 * * *", timezone="Europe/Berlin", text="night")
    await create(office, cron="0 * * * *", timezone="Europe/Berlin", text="hour", catch_up="all")
    await office.move(hours=12, minutes=59)
    assert (sent(office, "night"), sent(office, "hour")) == (0, 12)
    await office.move(minutes=1)  # one in the morning UTC: two becomes three
    assert (sent(office, "night"), sent(office, "hour")) == (1, 13)
    await office.move(hours=1)
    assert (sent(office, "night"), sent(office, "hour")) == (1, 14)


@frozen(at=datetime(2030, 10, 26, 12, tzinfo=UTC))
async def test_over_the_autumn_change_a_doubled_time_fires_once_and_every_hour_twice(office: Office) -> None:
    await create(office, cron="30 2 * * *", timezone="Europe/Berlin", text="night")
    await create(office, cron="0 * * * *", timezone="Europe/Berlin", text="hour", catch_up="all")
    await office.move(hours=12, minutes=30)
    assert (sent(office, "night"), sent(office, "hour")) == (1, 12)
    await create(office, cron="30 2 * * *", timezone="Europe/Berlin", text="late to the party")
    await office.move(hours=1)
    assert (sent(office, "night"), sent(office, "hour")) == (1, 13)
    assert sent(office, "late to the party") == 0
    await office.move(hours=24)
    assert (sent(office, "night"), sent(office, "late to the party")) == (2, 1)


@frozen()
async def test_a_thousand_at_one_instant_all_fire_once(office: Office) -> None:
    made = (create(office, at="+1h", text=f"{n}") for n in range(1_000))
    numbers = await asyncio.gather(*made)
    await office.move(minutes=59, seconds=59)
    assert office.number_arrived() == 0
    await office.move(seconds=1)
    texts = office.rows("SELECT text FROM message")
    assert sorted(int(row["text"]) for row in texts) == list(range(1_000))
    (row,) = office.rows(
        "SELECT count(*), count(DISTINCT schedule) FROM schedule_slot WHERE outcome = 'fired'"
    )
    assert tuple(row) == (1_000, len(set(numbers)))
    assert not office.rows("SELECT 1 FROM schedule WHERE enabled OR next_at IS NOT NULL")


# --- after a downtime ----------------------------------------------------------------


@frozen()
async def test_after_a_week_a_daily_schedule_makes_up_for_as_much_as_it_wants(office: Office) -> None:
    found = {}
    for catch_up in ("skip", "once", "all"):
        found[catch_up] = await create(office, cron="0 9 * * *", catch_up=catch_up, text=catch_up)
    await office.restart(days=7)
    assert [sent(office, catch_up) for catch_up in found] == [0, 1, 7]
    nine = [21 * HOUR + n * DAY for n in range(7)]
    assert slots(office, found["skip"]) == [(nine[0], "missed")]
    assert counted(office, found["skip"]) == {"missed": 7}
    assert slots(office, found["once"]) == [(nine[0], "missed"), (nine[6], "fired")]
    assert counted(office, found["once"]) == {"missed": 6, "fired": 1}
    assert slots(office, found["all"]) == [(slot, "fired") for slot in nine]
    envelopes = office.rows("SELECT id FROM envelopes ORDER BY arrived")
    late = [(await office.get(row["id"])) for row in envelopes]
    expected = [3 * 3600 + 86400 * n for n in reversed(range(7))]
    assert [one["late_seconds"] for one in late if one["text"] == "all"] == expected
    assert [one["late_seconds"] for one in late if one["text"] == "once"] == [3 * 3600]
    for number in found.values():
        assert await next_at(office, number) == clock.iso(START + nine[6] + DAY)
    await office.restart()
    assert office.number_arrived() == 8


@frozen()
async def test_once_is_the_rule_when_nothing_else_was_said(office: Office) -> None:
    number = await create(office, cron="0 9 * * *")
    await office.restart(days=3)
    assert counted(office, number) == {"missed": 2, "fired": 1}


@frozen()
async def test_a_week_of_minutes_is_counted_and_not_sent(office: Office) -> None:
    found = {}
    for catch_up in ("skip", "once", "all"):
        found[catch_up] = await create(office, cron="* * * * *", catch_up=catch_up)
    await office.restart(days=7, seconds=30)
    week = 7 * 1440
    assert counted(office, found["skip"]) == {"missed": week - 1, "fired": 1}  # the last is within the grace
    assert counted(office, found["once"]) == {"missed": week - 1, "fired": 1}
    assert counted(office, found["all"]) == {"missed": week - 100, "fired": 100}
    last_hundred = [(week - n) * MINUTE for n in reversed(range(100))]
    assert [slot for slot, outcome in slots(office, found["all"]) if outcome == "fired"] == last_hundred
    assert len(office.rows("SELECT 1 FROM schedule_slot")) < 150
    await office.move(seconds=30)
    assert counted(office, found["once"]) == {"missed": week - 1, "fired": 2}


@frozen()
async def test_a_week_of_seconds_is_counted_and_not_sent(office: Office) -> None:
    found = {}
    for catch_up in ("skip", "once", "all"):
        found[catch_up] = await create(office, every="1s", catch_up=catch_up, to="agent:nex")
    queued = await create(office, every="1s", catch_up="all", overlap="queue", to="agent:nex")
    await office.restart(days=7)
    week = 7 * 86400
    for catch_up, number in found.items():  # what waits in a box holds the others up
        assert counted(office, number)["fired"] == 1, catch_up
        assert sum(counted(office, number).values()) == week, catch_up
    assert counted(office, queued) == {"missed": week - 100, "fired": 100}
    assert len(office.rows("SELECT 1 FROM schedule_slot")) < 400


@frozen()
async def test_more_than_a_thousand_missed_still_leave_the_last_hundred(office: Office) -> None:
    number = await create(office, cron="* * * * *", catch_up="all")
    await office.restart(minutes=1_001, seconds=30)
    assert counted(office, number) == {"missed": 901, "fired": 100}


@frozen()
async def test_a_minute_late_still_counts_as_met_and_a_millisecond_more_does_not(office: Office) -> None:
    at_one = await create(office, cron="0 13 * * *", catch_up="skip")
    at_two = await create(office, cron="0 14 * * *", catch_up="skip")
    await office.restart(hours=1, minutes=1)
    assert slots(office, at_one) == [(HOUR, "fired")]
    await office.restart(hours=1, milliseconds=1)
    assert slots(office, at_two) == [(2 * HOUR, "missed")]
    assert sent(office) == 1


@frozen()
async def test_what_fires_late_is_labelled_and_what_fires_within_a_second_is_not(office: Office) -> None:
    await create(office, cron="0 13 * * *", text="late")
    await create(office, every="1h59m59.5s", text="in time")
    await office.restart(hours=2)
    found = office.rows("SELECT id FROM envelopes")
    late = {one["text"]: one["late_seconds"] for one in [await office.get(row["id"]) for row in found]}
    assert late == {"late": 3600, "in time": None}


@frozen()
async def test_a_restart_at_the_very_second_fires_once_and_in_time(office: Office) -> None:
    number = await create(office, cron="0 13 * * *", to="agent:nex", overlap="queue", catch_up="all")
    await office.restart(hours=1)
    assert slots(office, number) == [(HOUR, "fired")]
    for _ in range(2):
        await office.restart()
    await office.move()
    assert slots(office, number) == [(HOUR, "fired")] and sent(office) == 1
    (envelope,) = office.rows("SELECT id FROM envelopes")
    assert (await office.get(envelope["id"]))["late_seconds"] is None


@frozen()
async def test_missed_and_skipped_slots_are_listed_with_their_number_and_reason(office: Office) -> None:
    number = await create(office, every="1h", to="agent:nex", catch_up="once")
    await office.restart(hours=5)
    await office.move(hours=1)
    shown = (await office.ask("cron.show", "nex", id=number))["slots"]
    facts = [(one["outcome"], one["number"], one["reason"]) for one in shown]
    assert facts == [
        ("skipped", 1, "the one before is not done"),
        ("fired", 1, None),
        ("missed", 4, "no daemon ran"),
    ]
    assert (shown[2]["slot"], shown[2]["last_slot"]) == (
        clock.iso(START + HOUR),
        clock.iso(START + 4 * HOUR),
    )
    assert shown[1]["message"].startswith("m") and shown[0]["message"] is None


# --- overlap -------------------------------------------------------------------------


@frozen()
async def test_while_the_one_before_is_not_done_the_next_is_skipped_or_queued(office: Office) -> None:
    await office.register("kai")
    skip = await create(office, every="1h", to="agent:nex", text="skip")
    queue = await create(office, every="1h", to="agent:kai", text="queue", overlap="queue")
    for _ in range(3):
        await office.move(hours=1)
    assert slots(office, skip) == [(HOUR, "fired"), (2 * HOUR, "skipped"), (3 * HOUR, "skipped")]
    assert slots(office, queue) == [(HOUR, "fired"), (2 * HOUR, "fired"), (3 * HOUR, "fired")]
    assert (await office.inbox(), await office.inbox("kai")) == (["skip"], ["queue"] * 3)
    (one,) = (await office.ask("envelope.claim", "nex"))["envelopes"]
    await office.move(hours=1)  # claimed is not done
    assert slots(office, skip)[-1] == (4 * HOUR, "skipped")
    await office.ask("envelope.ack", "nex", ids=[one["id"]])
    await office.move(hours=1)
    assert slots(office, skip)[-1] == (5 * HOUR, "fired")


@frozen()
async def test_of_several_recipients_the_last_one_must_be_done(office: Office) -> None:
    await office.register("kai")
    number = await create(office, every="1h", to=["agent:nex", "agent:kai"])
    await office.move(hours=1)
    for who in ("nex", "kai"):
        (one,) = (await office.ask("envelope.claim", who))["envelopes"]
        await office.ask("envelope.ack", who, ids=[one["id"]])
        await office.move(hours=1)
    assert slots(office, number) == [(HOUR, "fired"), (2 * HOUR, "skipped"), (3 * HOUR, "fired")]


# --- zones and clocks ----------------------------------------------------------------


@frozen()
async def test_schedules_without_a_zone_follow_the_boss_and_the_others_do_not(office: Office) -> None:
    follows = await create(office, cron="0 9 * * *", text="boss")
    stays = await create(office, cron="0 9 * * *", timezone="Asia/Tokyo", text="tokyo")
    counts = await create(office, every="1h", text="hour")
    resting = await create(office, cron="0 9 * * *", text="resting")
    await office.ask("cron.disable", id=resting)
    await office.ask("boss.set", timezone="Europe/Berlin")
    shown = {one["id"]: one for one in (await office.ask("cron.list"))["schedules"]}
    assert shown[follows]["next_at"] == "2030-06-02T07:00:00.000Z"
    assert shown[follows]["timezone"] == "Europe/Berlin"
    assert shown[stays]["next_at"] == "2030-06-02T00:00:00.000Z"
    assert shown[counts]["next_at"] == clock.iso(START + HOUR)
    assert shown[resting]["next_at"] is None
    await office.move(hours=19)
    assert (sent(office, "boss"), sent(office, "tokyo")) == (1, 1)
    await office.ask("boss.set", timezone="America/New_York")  # where nine o'clock comes again
    await office.move(hours=6)
    assert (sent(office, "boss"), sent(office, "tokyo")) == (2, 1)
    assert slots(office, follows) == [(19 * HOUR, "fired"), (25 * HOUR, "fired")]


@frozen(heartbeat_seconds=1)
async def test_a_zone_changed_while_a_slot_is_due_does_not_lose_it(office: Office) -> None:
    number = await create(office, cron="0 13 * * *")
    office.tick(hours=1)
    await office.ask("boss.set", timezone="Europe/Berlin")
    await office.settle()
    assert slots(office, number) == [(HOUR, "fired")]
    assert await next_at(office, number) == clock.iso(START + 23 * HOUR)


@frozen()
async def test_a_clock_set_back_fires_nothing_twice(office: Office) -> None:
    number = await create(office, every="1h", catch_up="all")
    await office.move(hours=2)
    await office.move(hours=-2)
    assert slots(office, number) == [(HOUR, "fired"), (2 * HOUR, "fired")]
    await office.move(hours=2)
    assert sent(office) == 2
    await office.move(hours=-2)
    await office.ask("cron.disable", id=number)
    await office.ask("cron.enable", id=number)  # counts from the clock as it is
    await office.move(hours=3)
    assert slots(office, number) == [(HOUR, "fired"), (2 * HOUR, "fired"), (3 * HOUR, "fired")]
    assert sent(office) == 3


@frozen()
async def test_a_clock_set_back_and_a_downtime_after_it_stop_nothing(office: Office) -> None:
    hourly = await create(office, cron="0 * * * *", catch_up="skip")
    other = await create(office, every="1m", catch_up="skip")
    await office.move(hours=1)
    await office.move(hours=-1)
    for number in (hourly, other):
        await office.ask("cron.disable", id=number)
        await office.ask("cron.enable", id=number)
    await office.restart(days=7, minutes=30)
    assert await next_at(office, hourly) == clock.iso(START + 7 * DAY + HOUR)
    assert await next_at(office, other) == clock.iso(START + 7 * DAY + 31 * MINUTE)
    (row,) = office.rows(
        "SELECT count(*), count(DISTINCT message) FROM schedule_slot WHERE outcome = 'fired'"
    )
    assert row[0] == row[1] == sent(office)


@frozen()
async def test_a_clock_set_forward_counts_as_a_downtime(office: Office) -> None:
    number = await create(office, cron="0 9 * * *", catch_up="once")
    await office.move(days=5)
    assert counted(office, number) == {"missed": 4, "fired": 1}


# --- changing them -------------------------------------------------------------------


@frozen()
async def test_what_was_due_while_disabled_is_not_made_up_for(office: Office) -> None:
    number = await create(office, every="1h", catch_up="all")
    await office.ask("cron.disable", "nex", id=number)
    assert await next_at(office, number) is None
    await office.move(hours=5, minutes=30)
    await office.restart()
    await office.ask("cron.enable", "nex", id=number)
    assert await next_at(office, number) == clock.iso(START + 6 * HOUR)
    await office.move(minutes=30)
    assert slots(office, number) == [(6 * HOUR, "fired")]


@frozen(heartbeat_seconds=1)
async def test_a_schedule_set_while_it_is_due_fires_that_slot_and_goes_on_as_set(office: Office) -> None:
    number = await create(office, cron="0 13 * * *", text="old")
    office.tick(hours=1)  # nobody has noticed yet
    await office.ask("cron.set", "nex", id=number, text="new", cron="0 15 * * *")
    await office.settle()
    assert slots(office, number) == [(HOUR, "fired")]
    assert (sent(office, "old"), sent(office, "new")) == (0, 1)
    assert await next_at(office, number) == clock.iso(START + 3 * HOUR)


@frozen()
async def test_a_schedule_disabled_while_it_is_due_records_that_slot(office: Office) -> None:
    number = await create(office, cron="0 13 * * *")
    office.tick(hours=1)
    await office.ask("cron.disable", "nex", id=number)
    await office.settle()
    assert slots(office, number) == [(HOUR, "missed")] and sent(office) == 0


@frozen()
async def test_a_new_time_counts_from_now(office: Office) -> None:
    number = await create(office, cron="0 13 * * *")
    await office.ask("cron.set", "nex", id=number, every="10m")
    assert await next_at(office, number) == clock.iso(START + 10 * MINUTE)
    await office.ask("cron.set", "nex", id=number, at="+2h")
    assert await next_at(office, number) == clock.iso(START + 2 * HOUR)
    await office.move(hours=3)
    assert slots(office, number) == [(2 * HOUR, "fired")]


@frozen()
async def test_running_one_by_hand_leaves_its_own_times(office: Office) -> None:
    number = await create(office, cron="0 13 * * *")
    runs = [await office.ask("cron.run", "nex", id=number) for _ in range(3)]
    assert all(run["fired"] and len(run["ids"]) == 1 for run in runs)
    assert len({run["ids"][0] for run in runs}) == 3
    assert await next_at(office, number) == clock.iso(START + HOUR)
    office.tick(hours=1)
    await office.ask("cron.run", "nex", id=number)  # at the very millisecond of its own slot
    await office.move()
    await office.ask("cron.run", "nex", id=number)
    assert sent(office) == 6
    assert (HOUR, "fired") in slots(office, number)
    assert await next_at(office, number) == clock.iso(START + HOUR + DAY)


@frozen()
async def test_a_single_time_in_the_past_is_late_or_missed(office: Office) -> None:
    late = await create(office, at="-2h", text="late")
    missed = await create(office, at="-2h", text="missed", catch_up="skip")
    await office.settle()
    assert slots(office, late) == [(-2 * HOUR, "fired")]
    assert slots(office, missed) == [(-2 * HOUR, "missed")]
    assert (sent(office, "late"), sent(office, "missed")) == (1, 0)
    for number in (late, missed):
        shown = await office.ask("cron.show", "nex", id=number)
        assert (shown["enabled"], shown["next_at"]) == (False, None)
        await office.ask("cron.enable", "nex", id=number)
    await office.move(days=1)
    assert office.number_arrived() == 1


@frozen()
async def test_a_recipient_who_is_gone_ends_a_schedule_and_its_owner_is_told_once(office: Office) -> None:
    await office.register("kai")
    number = await create(office, every="1h", to="agent:kai", catch_up="all", overlap="queue")
    await office.ask("agent.delete", name="kai")
    await office.restart(hours=5)
    assert counted(office, number) == {"failed": 1, "missed": 4}
    (notice,) = await office.inbox()
    assert number in notice and "agent:kai" in notice
    shown = await office.ask("cron.show", "nex", id=number)
    assert (shown["enabled"], shown["next_at"]) == (False, None)
    await office.move(days=1)
    assert len(await office.inbox()) == 1
