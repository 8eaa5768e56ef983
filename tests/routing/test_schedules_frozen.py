"""Schedules with a clock that the test moves: downtime, overlap, zones, restarts."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import Any

from hiboss.core import clock
from hiboss.testing.frozen_clock import NOON
from tests.support.in_process_daemon import InProcessDaemon, frozen

START = clock.to_ms(NOON)
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


async def create(daemon: InProcessDaemon, who: str = "nex", **params: Any) -> str:
    """Create a schedule that sends to the boss: there envelopes are done at once, so nothing overlaps."""
    params = {"to": "user:boss", "text": "tick"} | params
    return str((await daemon.ask("cron.create", who, **params))["id"])


def slots(daemon: InProcessDaemon, number: str) -> list[tuple[int, str]]:
    """Return the outcome of each slot, as milliseconds after noon; of missed ones in a row only the first."""
    rows = daemon.rows("SELECT * FROM schedule_slot WHERE schedule = ? ORDER BY slot", int(number[1:]))
    return [(row["slot"] - START, row["outcome"]) for row in rows]


def counted(daemon: InProcessDaemon, number: str) -> dict[str, int]:
    """Return how many slots had each outcome."""
    rows = daemon.rows(
        "SELECT outcome, sum(number) FROM schedule_slot WHERE schedule = ? GROUP BY outcome", int(number[1:])
    )
    return {row[0]: row[1] for row in rows}


def sent(daemon: InProcessDaemon, text: str = "tick") -> int:
    (row,) = daemon.rows("SELECT count(*) FROM message WHERE text = ?", text)
    return int(row[0])


async def next_at(daemon: InProcessDaemon, number: str) -> str | None:
    found: str | None = (await daemon.ask("cron.show", id=number))["next_at"]
    return found


# --- on time -------------------------------------------------------------------------


@frozen()
async def test_a_schedule_fires_at_its_minute_and_not_a_millisecond_before(daemon: InProcessDaemon) -> None:
    number = await create(daemon, cron="30 12 * * *", to="agent:nex")
    await daemon.move(minutes=29, seconds=59, milliseconds=999)
    assert sent(daemon) == 0
    await daemon.ring(milliseconds=1)
    await daemon.settle()
    assert await daemon.inbox() == ["tick"] and slots(daemon, number) == [(30 * MINUTE, "fired")]
    assert await next_at(daemon, number) == clock.iso(START + 30 * MINUTE + DAY)
    await daemon.move(hours=5)
    assert sent(daemon) == 1


@frozen()
async def test_an_interval_goes_on_in_step_however_late_each_slot_was_looked_at(
    daemon: InProcessDaemon,
) -> None:
    number = await create(daemon, every="90s")
    for _ in range(3):
        await daemon.move(seconds=100)
    assert slots(daemon, number) == [(n * 90_000, "fired") for n in (1, 2, 3)]


@frozen(at=datetime(2030, 3, 30, 12, tzinfo=UTC))
async def test_over_the_spring_change_a_missing_time_fires_once_at_the_first_minute(
    daemon: InProcessDaemon,
) -> None:
    await create(daemon, cron="30 2 * * *", timezone="Europe/Berlin", text="night")
    await create(daemon, cron="0 * * * *", timezone="Europe/Berlin", text="hour", catch_up="all")
    await daemon.move(hours=12, minutes=59)
    assert (sent(daemon, "night"), sent(daemon, "hour")) == (0, 12)
    await daemon.move(minutes=1)  # one in the morning UTC: two becomes three
    assert (sent(daemon, "night"), sent(daemon, "hour")) == (1, 13)
    await daemon.move(hours=1)
    assert (sent(daemon, "night"), sent(daemon, "hour")) == (1, 14)


@frozen(at=datetime(2030, 10, 26, 12, tzinfo=UTC))
async def test_over_the_autumn_change_a_doubled_time_fires_once_and_every_hour_twice(
    daemon: InProcessDaemon,
) -> None:
    await create(daemon, cron="30 2 * * *", timezone="Europe/Berlin", text="night")
    await create(daemon, cron="0 * * * *", timezone="Europe/Berlin", text="hour", catch_up="all")
    await daemon.move(hours=12, minutes=30)
    assert (sent(daemon, "night"), sent(daemon, "hour")) == (1, 12)
    await create(daemon, cron="30 2 * * *", timezone="Europe/Berlin", text="late to the party")
    await daemon.move(hours=1)
    assert (sent(daemon, "night"), sent(daemon, "hour")) == (1, 13) and sent(daemon, "late to the party") == 0
    await daemon.move(hours=24)
    assert (sent(daemon, "night"), sent(daemon, "late to the party")) == (2, 1)


@frozen(schedules_per_caller=1_000)
async def test_a_thousand_at_one_instant_all_fire_once(daemon: InProcessDaemon) -> None:
    numbers = await asyncio.gather(*(create(daemon, at="+1h", text=f"{n}") for n in range(1_000)))
    await daemon.move(minutes=59, seconds=59)
    assert daemon.number_arrived() == 0
    await daemon.move(seconds=1)
    assert sorted(int(row["text"]) for row in daemon.rows("SELECT text FROM message")) == list(range(1_000))
    (row,) = daemon.rows(
        "SELECT count(*), count(DISTINCT schedule) FROM schedule_slot WHERE outcome = 'fired'"
    )
    assert tuple(row) == (1_000, len(set(numbers)))
    assert not daemon.rows("SELECT 1 FROM schedule WHERE enabled OR next_at IS NOT NULL")


# --- after a downtime ----------------------------------------------------------------


@frozen()
async def test_after_a_week_a_daily_schedule_makes_up_for_as_much_as_it_wants(
    daemon: InProcessDaemon,
) -> None:
    found = {}
    for catch_up in ("skip", "once", "all"):
        found[catch_up] = await create(daemon, cron="0 9 * * *", catch_up=catch_up, text=catch_up)
    await daemon.restart(days=7)
    assert [sent(daemon, catch_up) for catch_up in found] == [0, 1, 7]
    nine = [21 * HOUR + n * DAY for n in range(7)]
    assert slots(daemon, found["skip"]) == [(nine[0], "missed")]
    assert counted(daemon, found["skip"]) == {"missed": 7}
    assert slots(daemon, found["once"]) == [(nine[0], "missed"), (nine[6], "fired")]
    assert counted(daemon, found["once"]) == {"missed": 6, "fired": 1}
    assert slots(daemon, found["all"]) == [(slot, "fired") for slot in nine]
    envelopes = daemon.rows("SELECT id FROM envelopes ORDER BY arrived")
    late = [(await daemon.get(row["id"])) for row in envelopes]
    expected = [3 * 3600 + 86400 * n for n in reversed(range(7))]
    assert [one["late_seconds"] for one in late if one["text"] == "all"] == expected
    assert [one["late_seconds"] for one in late if one["text"] == "once"] == [3 * 3600]
    for number in found.values():
        assert await next_at(daemon, number) == clock.iso(START + nine[6] + DAY)
    await daemon.restart()
    assert daemon.number_arrived() == 8


@frozen()
async def test_a_week_of_minutes_is_counted_and_not_sent(daemon: InProcessDaemon) -> None:
    found = {}
    for catch_up in ("skip", "once", "all"):
        found[catch_up] = await create(daemon, cron="* * * * *", catch_up=catch_up)
    await daemon.restart(days=7, seconds=30)
    week = 7 * 1440
    assert counted(daemon, found["skip"]) == {"missed": week - 1, "fired": 1}  # the last is within the grace
    assert counted(daemon, found["once"]) == {"missed": week - 1, "fired": 1}
    assert counted(daemon, found["all"]) == {"missed": week - 100, "fired": 100}
    last_hundred = [(week - n) * MINUTE for n in reversed(range(100))]
    assert [slot for slot, outcome in slots(daemon, found["all"]) if outcome == "fired"] == last_hundred
    assert len(daemon.rows("SELECT 1 FROM schedule_slot")) < 150
    await daemon.move(seconds=30)
    assert counted(daemon, found["once"]) == {"missed": week - 1, "fired": 2}


@frozen()
async def test_a_week_of_seconds_is_counted_and_not_sent(daemon: InProcessDaemon) -> None:
    found = {}
    for catch_up in ("skip", "once", "all"):
        found[catch_up] = await create(daemon, every="1s", catch_up=catch_up, to="agent:nex")
    queued = await create(daemon, every="1s", catch_up="all", overlap="queue", to="agent:nex")
    await daemon.restart(days=7)
    week = 7 * 86400
    for catch_up, number in found.items():  # an envelope that waits in a box blocks the next ones
        assert counted(daemon, number)["fired"] == 1, catch_up
        assert sum(counted(daemon, number).values()) == week, catch_up
    assert counted(daemon, queued) == {"missed": week - 100, "fired": 100}
    assert len(daemon.rows("SELECT 1 FROM schedule_slot")) < 400


@frozen()
async def test_a_minute_late_still_counts_as_met_and_a_millisecond_more_does_not(
    daemon: InProcessDaemon,
) -> None:
    at_one = await create(daemon, cron="0 13 * * *", catch_up="skip")
    at_two = await create(daemon, cron="0 14 * * *", catch_up="skip")
    await daemon.restart(hours=1, minutes=1)
    assert slots(daemon, at_one) == [(HOUR, "fired")]
    await daemon.restart(hours=1, milliseconds=1)
    assert slots(daemon, at_two) == [(2 * HOUR, "missed")] and sent(daemon) == 1


@frozen()
async def test_what_fires_late_is_labelled_and_what_fires_within_a_second_is_not(
    daemon: InProcessDaemon,
) -> None:
    await create(daemon, cron="0 13 * * *", text="late")
    await create(daemon, every="1h59m59.5s", text="in time")
    await daemon.restart(hours=2)
    found = daemon.rows("SELECT id FROM envelopes")
    late = {one["text"]: one["late_seconds"] for one in [await daemon.get(row["id"]) for row in found]}
    assert late == {"late": 3600, "in time": None}


@frozen()
async def test_a_restart_at_the_very_second_fires_once_and_in_time(daemon: InProcessDaemon) -> None:
    number = await create(daemon, cron="0 13 * * *", to="agent:nex", overlap="queue", catch_up="all")
    await daemon.restart(hours=1)
    assert slots(daemon, number) == [(HOUR, "fired")]
    for _ in range(2):
        await daemon.restart()
    await daemon.move()
    assert slots(daemon, number) == [(HOUR, "fired")] and sent(daemon) == 1
    (envelope,) = daemon.rows("SELECT id FROM envelopes")
    assert (await daemon.get(envelope["id"]))["late_seconds"] is None


@frozen()
async def test_missed_and_skipped_slots_are_listed_with_their_number_and_reason(
    daemon: InProcessDaemon,
) -> None:
    number = await create(daemon, every="1h", to="agent:nex", catch_up="once")
    await daemon.restart(hours=5)
    await daemon.move(hours=1)
    shown = (await daemon.ask("cron.show", "nex", id=number))["slots"]
    assert [(one["outcome"], one["number"], one["reason"]) for one in shown] == [
        ("skipped", 1, "the message before is not done"),
        ("fired", 1, None),
        ("missed", 4, "the daemon was not running"),
    ]
    assert (shown[2]["slot"], shown[2]["last_slot"]) == (
        clock.iso(START + HOUR),
        clock.iso(START + 4 * HOUR),
    )
    assert shown[1]["message"].startswith("m") and shown[0]["message"] is None


@frozen()
async def test_a_schedule_to_the_boss_goes_on_while_his_phone_cannot_be_reached(
    daemon: InProcessDaemon,
) -> None:
    phone = f"{daemon.home.path}-phone"
    await daemon.ask("agent.bind", name="nex", adapter_type="folder", settings={"path": phone})
    reach = f"channel:folder:{os.path.basename(phone)}"
    await daemon.ask("boss.set", reach=reach)
    await daemon.ask("lane.pause", address=reach)
    number = await create(daemon, every="1h")
    for _ in range(3):
        await daemon.move(hours=1)
    assert counted(daemon, number) == {"fired": 3}


# --- overlap -------------------------------------------------------------------------


@frozen()
async def test_while_the_one_before_is_not_done_the_next_is_skipped_or_queued(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    skip = await create(daemon, every="1h", to="agent:nex", text="skip")
    queue = await create(daemon, every="1h", to="agent:kai", text="queue", overlap="queue")
    for _ in range(3):
        await daemon.move(hours=1)
    assert slots(daemon, skip) == [(HOUR, "fired"), (2 * HOUR, "skipped"), (3 * HOUR, "skipped")]
    assert slots(daemon, queue) == [(HOUR, "fired"), (2 * HOUR, "fired"), (3 * HOUR, "fired")]
    assert (await daemon.inbox(), await daemon.inbox("kai")) == (["skip"], ["queue"] * 3)
    (one,) = (await daemon.ask("envelope.claim", "nex"))["envelopes"]
    await daemon.move(hours=1)  # claimed is not done
    assert slots(daemon, skip)[-1] == (4 * HOUR, "skipped")
    await daemon.ask("envelope.ack", "nex", ids=[one["id"]])
    await daemon.move(hours=1)
    assert slots(daemon, skip)[-1] == (5 * HOUR, "fired")


@frozen()
async def test_of_several_recipients_the_last_one_must_be_done(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    number = await create(daemon, every="1h", to=["agent:nex", "agent:kai"])
    await daemon.move(hours=1)
    for who in ("nex", "kai"):
        (one,) = (await daemon.ask("envelope.claim", who))["envelopes"]
        await daemon.ask("envelope.ack", who, ids=[one["id"]])
        await daemon.move(hours=1)
    assert slots(daemon, number) == [(HOUR, "fired"), (2 * HOUR, "skipped"), (3 * HOUR, "fired")]


# --- zones and clocks ----------------------------------------------------------------


@frozen()
async def test_schedules_without_a_zone_follow_the_boss_and_the_others_do_not(
    daemon: InProcessDaemon,
) -> None:
    follows = await create(daemon, cron="0 9 * * *", text="boss")
    stays = await create(daemon, cron="0 9 * * *", timezone="Asia/Tokyo", text="tokyo")
    counts = await create(daemon, every="1h", text="hour")
    resting = await create(daemon, cron="0 9 * * *", text="resting")
    await daemon.ask("cron.disable", id=resting)
    await daemon.ask("boss.set", timezone="Europe/Berlin")
    shown = {one["id"]: one for one in (await daemon.ask("cron.list"))["schedules"]}
    assert shown[follows]["next_at"] == "2030-06-02T07:00:00.000Z"
    assert shown[follows]["timezone"] == "Europe/Berlin"
    assert shown[stays]["next_at"] == "2030-06-02T00:00:00.000Z"
    assert shown[counts]["next_at"] == clock.iso(START + HOUR) and shown[resting]["next_at"] is None
    await daemon.move(hours=19)
    assert (sent(daemon, "boss"), sent(daemon, "tokyo")) == (1, 1)
    await daemon.ask("boss.set", timezone="America/New_York")  # where it becomes nine o'clock again
    await daemon.move(hours=6)
    assert (sent(daemon, "boss"), sent(daemon, "tokyo")) == (2, 1)
    assert slots(daemon, follows) == [(19 * HOUR, "fired"), (25 * HOUR, "fired")]


@frozen(heartbeat_seconds=1)
async def test_a_zone_changed_while_a_slot_is_due_does_not_lose_it(daemon: InProcessDaemon) -> None:
    number = await create(daemon, cron="0 13 * * *")
    daemon.tick(hours=1)
    await daemon.ask("boss.set", timezone="Europe/Berlin")
    await daemon.settle()
    assert slots(daemon, number) == [(HOUR, "fired")]
    assert await next_at(daemon, number) == clock.iso(START + 23 * HOUR)


# --- changing them -------------------------------------------------------------------


@frozen()
async def test_what_was_due_while_disabled_is_not_made_up_for(daemon: InProcessDaemon) -> None:
    number = await create(daemon, every="1h", catch_up="all")
    await daemon.ask("cron.disable", "nex", id=number)
    assert await next_at(daemon, number) is None
    await daemon.move(hours=5, minutes=30)
    await daemon.restart()
    await daemon.ask("cron.enable", "nex", id=number)
    assert await next_at(daemon, number) == clock.iso(START + 6 * HOUR)
    await daemon.move(minutes=30)
    assert slots(daemon, number) == [(6 * HOUR, "fired")]


@frozen(heartbeat_seconds=1)
async def test_a_schedule_set_while_it_is_due_fires_that_slot_and_goes_on_as_set(
    daemon: InProcessDaemon,
) -> None:
    number = await create(daemon, cron="0 13 * * *", text="old")
    daemon.tick(hours=1)  # the scheduler has not looked yet
    await daemon.ask("cron.set", "nex", id=number, text="new", cron="0 15 * * *")
    await daemon.settle()
    assert slots(daemon, number) == [(HOUR, "fired")] and (sent(daemon, "old"), sent(daemon, "new")) == (0, 1)
    assert await next_at(daemon, number) == clock.iso(START + 3 * HOUR)


@frozen()
async def test_a_schedule_disabled_while_it_is_due_records_that_slot(daemon: InProcessDaemon) -> None:
    number = await create(daemon, cron="0 13 * * *")
    daemon.tick(hours=1)
    await daemon.ask("cron.disable", "nex", id=number)
    await daemon.settle()
    assert slots(daemon, number) == [(HOUR, "missed")] and sent(daemon) == 0


@frozen()
async def test_a_new_time_counts_from_now(daemon: InProcessDaemon) -> None:
    number = await create(daemon, cron="0 13 * * *")
    await daemon.ask("cron.set", "nex", id=number, every="10m")
    assert await next_at(daemon, number) == clock.iso(START + 10 * MINUTE)
    await daemon.ask("cron.set", "nex", id=number, at="+2h")
    assert await next_at(daemon, number) == clock.iso(START + 2 * HOUR)
    await daemon.move(hours=3)
    assert slots(daemon, number) == [(2 * HOUR, "fired")]


@frozen()
async def test_running_one_by_hand_leaves_its_own_times(daemon: InProcessDaemon) -> None:
    number = await create(daemon, cron="0 13 * * *")
    runs = [await daemon.ask("cron.run", "nex", id=number) for _ in range(3)]
    assert all(run["fired"] and len(run["ids"]) == 1 for run in runs)
    assert len({run["ids"][0] for run in runs}) == 3
    assert await next_at(daemon, number) == clock.iso(START + HOUR)
    daemon.tick(hours=1)
    await daemon.ask("cron.run", "nex", id=number)  # at the exact millisecond of its own slot
    await daemon.move()
    await daemon.ask("cron.run", "nex", id=number)
    assert sent(daemon) == 6
    assert (HOUR, "fired") in slots(daemon, number)
    assert await next_at(daemon, number) == clock.iso(START + HOUR + DAY)


@frozen()
async def test_a_single_time_in_the_past_is_late_or_missed(daemon: InProcessDaemon) -> None:
    late = await create(daemon, at="-2h", text="late")
    missed = await create(daemon, at="-2h", text="missed", catch_up="skip")
    await daemon.settle()
    assert slots(daemon, late) == [(-2 * HOUR, "fired")] and slots(daemon, missed) == [(-2 * HOUR, "missed")]
    assert (sent(daemon, "late"), sent(daemon, "missed")) == (1, 0)
    for number in (late, missed):
        shown = await daemon.ask("cron.show", "nex", id=number)
        assert (shown["enabled"], shown["next_at"]) == (False, None)
        await daemon.ask("cron.enable", "nex", id=number)
    await daemon.move(days=1)
    assert daemon.number_arrived() == 1


@frozen()
async def test_a_recipient_who_is_gone_ends_a_schedule_and_its_owner_is_told_once(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    number = await create(daemon, every="1h", to="agent:kai", catch_up="all", overlap="queue")
    await daemon.ask("agent.delete", name="kai")
    await daemon.restart(hours=5)
    assert counted(daemon, number) == {"failed": 1, "missed": 4}
    (notice,) = await daemon.inbox()
    assert number in notice and "agent:kai" in notice
    shown = await daemon.ask("cron.show", "nex", id=number)
    assert (shown["enabled"], shown["next_at"]) == (False, None)
    await daemon.move(days=1)
    assert len(await daemon.inbox()) == 1
