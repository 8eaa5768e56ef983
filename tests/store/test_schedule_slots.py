"""Slots of schedules in a real database: each is recorded once, whatever the clock does, and in small transactions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiboss.store import agents, boss, schedule_firing, schedules
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from hiboss.store.invariants import INVARIANTS, violations
from hiboss.store.schedule_firing import CATCH_UP, WORK
from tests.store.chat_scene import fresh

START = 1_906_545_600_000  # 2030-06-01 12:00 UTC
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
BOUND = WORK + 2 * CATCH_UP + 100  # of one transaction: the last schedule may go over by a message


class Timetable:
    """A database with the boss and agents, in which a test fires schedules at times of its own."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.tx = Tx(connection)
        self.now = START
        boss.add_boss(self.tx, "Ada", "UTC", START)
        self.nex = agents.register(self.tx, "nex", {}, START)

    def create(self, *to: str, **columns: Any) -> int:
        kept = {
            "from": "agent:nex",
            "to": list(to or ["user:boss"]),
            "text": "tick",
            "subject": None,
            "type": "text",
            "priority": "normal",
            "attachments": [],
            "from_boss": False,
            "from_name": None,
            "addresses": {},
        }
        return schedules.insert(self.tx, self.nex, {"draft": json.dumps(kept), **columns}, self.now)

    def fire(self) -> int:
        """Fire what is due in one transaction; return how many messages were sent."""
        fired = schedule_firing.fire_due(self.tx, self.now, lambda tx, owner: None)
        self.tx.cache.flush()
        return len(fired)

    def catch_up(self) -> int:
        """Fire until nothing is due; return in how many transactions."""
        number = 0
        while self.value("SELECT count(*) FROM schedule WHERE next_at <= ?", self.now):
            self.fire()
            number += 1
        return number

    def set_back(self, by: int, *, noticed: bool = True) -> None:
        self.now -= by
        after: int | None = 0
        while noticed and after is not None:
            after = schedules.after_clock_step(self.tx, self.now, by, after)

    def row(self, number: int) -> Any:
        return self.connection.execute("SELECT * FROM schedule WHERE id = ?", (number,)).fetchone()

    def value(self, query: str, *values: Any) -> int:
        return int(self.connection.execute(query, values).fetchone()[0] or 0)

    def slots(self, number: int) -> list[tuple[int, str, int]]:
        """Return the records of a schedule in the order of the slots: minutes after the start, outcome, number."""
        rows = self.connection.execute(
            "SELECT * FROM schedule_slot WHERE schedule = ? ORDER BY era, slot", (number,)
        ).fetchall()
        return [((row["slot"] - START) // MINUTE, row["outcome"], row["number"]) for row in rows]

    def counted(self, number: int) -> dict[str, int]:
        rows = self.connection.execute(
            "SELECT outcome, sum(number) FROM schedule_slot WHERE schedule = ? GROUP BY outcome", (number,)
        ).fetchall()
        return {row[0]: row[1] for row in rows}

    def check(self) -> None:
        self.tx.cache.flush()
        assert violations(self.connection) == []


@contextmanager
def timetable(directory: Path | str) -> Iterator[Timetable]:
    with fresh(directory) as (connection, _):
        connection.execute("BEGIN")
        table = Timetable(connection)
        yield table
        table.check()


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Timetable]:
    with timetable(tmp_path / "home") as one:
        yield one


# --- in small transactions -------------------------------------------------------------------------


def test_the_catch_up_of_twenty_schedules_is_done_in_small_transactions(table: Timetable) -> None:
    numbers = [table.create(cron="* * * * *", timezone="Europe/Berlin") for _ in range(20)]
    table.now += DAY + 30 * SECOND
    recorded, transactions = 0, 0
    while table.value("SELECT count(*) FROM schedule WHERE next_at <= ?", table.now):
        changes = table.connection.total_changes
        table.fire()
        assert table.connection.total_changes - changes < 100
        before, recorded = recorded, table.value("SELECT sum(number) FROM schedule_slot")
        assert 0 < recorded - before <= BOUND
        transactions += 1
    assert transactions >= 20 * 1440 // BOUND > 10
    for number in numbers:
        assert table.slots(number) == [(1, "missed", 1440 - 1), (1440, "fired", 1)]


def test_what_is_on_time_does_not_wait_for_the_catch_up_of_others(table: Timetable) -> None:
    for _ in range(20):
        table.create(cron="* * * * *")
    table.now += 7 * DAY
    table.create(at=table.now + SECOND)
    table.now += SECOND
    assert table.fire() >= 1
    assert not table.value("SELECT count(*) FROM schedule WHERE at IS NOT NULL AND next_at IS NOT NULL")


def test_messages_to_many_that_are_made_up_for_are_spread_over_transactions(table: Timetable) -> None:
    to = [f"agent:a{n}" for n in range(50)]
    for name in to:
        agents.register(table.tx, name.partition(":")[2], {}, START)
    numbers = [table.create(*to, cron="* * * * *", catch_up="all", overlap="queue") for _ in range(3)]
    table.now += 120 * MINUTE
    sent = 0
    while table.value("SELECT count(*) FROM schedule WHERE next_at <= ?", table.now):
        table.fire()
        before, sent = sent, table.value("SELECT count(*) FROM envelope")
        assert sent - before <= BOUND
    assert [table.counted(one) for one in numbers] == [{"missed": 20, "fired": 100}] * 3
    assert table.value("SELECT count(DISTINCT message) FROM schedule_slot") == 300
    fired = [slot for slot, outcome, _ in table.slots(numbers[0]) if outcome == "fired"]
    assert fired == list(range(21, 121))


def test_a_year_of_seconds_is_one_record(table: Timetable) -> None:
    number = table.create(every_ms=SECOND)
    table.now += 365 * DAY
    assert table.catch_up() < 5 and sum(table.counted(number).values()) == 365 * 86_400
    assert [one[1] for one in table.slots(number)].count("missed") == 1


# --- whatever the clock does -----------------------------------------------------------------------


def test_slots_that_were_not_sent_are_sent_at_their_time_after_the_clock_was_set_back(
    table: Timetable,
) -> None:
    """A clock that was wrong by a year does not stop a schedule for a year."""
    number = table.create(cron="0 * * * *")
    table.now += 365 * DAY
    table.catch_up()
    table.set_back(365 * DAY)
    assert table.row(number)["next_at"] == START + HOUR
    for _ in range(3):
        table.now += HOUR
        table.catch_up()
    assert table.slots(number)[:3] == [(60, "fired", 1), (120, "fired", 1), (180, "fired", 1)]
    assert [one[1] for one in table.slots(number)[3:]] == ["fired"]  # a year later


def test_missed_slots_before_the_new_time_stay_missed(table: Timetable) -> None:
    number = table.create(cron="0 * * * *", catch_up="skip")
    table.now += 10 * HOUR + 30 * MINUTE
    table.catch_up()
    table.set_back(5 * HOUR)
    table.catch_up()
    assert table.slots(number) == [(60, "missed", 5)]
    table.now += 30 * MINUTE
    table.catch_up()
    assert table.slots(number) == [(60, "missed", 5), (360, "fired", 1)]


def test_many_schedules_are_corrected_in_chunks(table: Timetable) -> None:
    numbers = [table.create(every_ms=HOUR) for _ in range(schedules.CHUNK + 5)]
    table.now += MINUTE
    broken = numbers[3]
    table.connection.execute("UPDATE schedule SET draft = '{' WHERE id = ?", (broken,))
    changes = table.connection.total_changes
    assert schedules.after_clock_step(table.tx, table.now - DAY, DAY) == numbers[schedules.CHUNK - 1]
    assert table.connection.total_changes - changes <= 3 * schedules.CHUNK
    table.set_back(DAY)
    wrong = {number for number in numbers if table.row(number)["next_at"] > table.now + HOUR}
    assert wrong == {broken}  # it alone; it is disabled when it is due
    table.connection.execute("UPDATE schedule SET draft = '{}' WHERE id = ?", (broken,))


ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["pass", "forward", "back", "unnoticed"]), st.integers(1, 40)),
    st.tuples(st.sampled_from(["off", "on", "run", "other zone", "catch up"]), st.just(0)),
)
KINDS = st.fixed_dictionaries(
    {
        "when": st.sampled_from(
            [{"cron": "*/5 * * * *"}, {"cron": "0 * * * *"}, {"every_ms": 7 * MINUTE}, {"every_ms": 2 * HOUR}]
        ),
        "catch_up": st.sampled_from(["skip", "once", "all"]),
        "overlap": st.sampled_from(["skip", "queue"]),
    }
)


def act(table: Timetable, number: int, what: str, by: int) -> None:
    row = schedules.get(table.tx, number, None)
    if what == "pass":  # time goes by, and the daemon runs
        for _ in range(by):
            table.now += 5 * MINUTE
            table.catch_up()
    elif what == "forward":  # no daemon ran
        table.now += by * HOUR
    elif what in ("back", "unnoticed"):
        table.set_back(by * HOUR, noticed=what == "back")
    elif what in ("off", "on"):
        schedules.change(table.tx, number, {"enabled": int(what == "on")}, table.now)
    elif what == "run":
        schedule_firing.run(table.tx, row, table.now, lambda tx, owner: None, None)
    elif what == "other zone":
        boss.change_boss(table.tx, None, "Asia/Kolkata" if table.now % 2 else "Europe/Berlin")
        schedules.follow_boss(table.tx, table.now)
    table.catch_up()


@pytest.mark.slow
@settings(max_examples=40)
@given(kind=KINDS, actions=st.lists(ACTIONS, max_size=12))
def test_whatever_happens_a_slot_is_recorded_once(
    kind: dict[str, Any], actions: list[tuple[str, int]]
) -> None:
    once = INVARIANTS["the slots of a schedule are recorded once"]
    with tempfile.TemporaryDirectory() as directory, timetable(directory) as table:
        number = table.create(**kind["when"], catch_up=kind["catch_up"], overlap=kind["overlap"])
        for what, by in actions:
            act(table, number, what, by)
            assert table.connection.execute(once).fetchall() == []
        sent = table.value("SELECT count(*) FROM message WHERE text = 'tick'")
        assert sent == table.counted(number).get("fired", 0)
        # However it was before: it sends again within one of its times, if it is enabled.
        schedules.change(table.tx, number, {"enabled": 1}, table.now)
        table.set_back(0)
        if kind["when"].get("every_ms"):
            assert table.row(number)["next_at"] <= table.now + kind["when"]["every_ms"]
