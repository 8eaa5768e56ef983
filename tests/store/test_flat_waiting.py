"""Schedules and waiting cost the same among 20,000 rows as among 1,000.

Counted as in test_flat.py: among so many envelopes, and with so many schedules, slots and
cursors beside them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiboss.core.envelope import Status
from hiboss.store import overdue, paging, poll_positions, schedule_firing, schedule_slots, schedules
from hiboss.store.connection import Connection
from hiboss.store.envelope_walks import UNREAD
from hiboss.store.group_commit import Tx
from hiboss.store.paging import Position, Query
from tests.store.test_flat import ADA_ID, FRESH, NEX_ID, NOW, POPULATIONS, Hot, not_flat, write

HOUR = 3_600_000
DRAFT = json.dumps(
    {
        "from": "agent:ada",
        "to": ["agent:nex"],
        "text": "x",
        "subject": None,
        "type": "text",
        "priority": "normal",
        "attachments": [],
        "from_boss": False,
        "from_name": None,
        "addresses": {},
    }
)


def with_schedules(connection: Connection, size: int) -> None:
    """Add this many schedules of nex that are not due, three of ada that are, and as many slots and sessions."""
    numbers = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {size})"
    connection.execute(
        f"""
        {numbers} INSERT INTO schedule (id, owner, every_ms, draft, created_at, begun_at, next_at)
        SELECT n, {NEX_ID}, {HOUR}, ?, {NOW}, {NOW}, {NOW} + {HOUR} + n FROM t
        """,
        (DRAFT,),
    )
    for number in range(3):
        connection.execute(
            "INSERT INTO schedule (owner, every_ms, draft, created_at, begun_at, next_at)"
            " VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
            (ADA_ID, HOUR, DRAFT, NOW - number - HOUR, NOW - number),
        )
    connection.execute(
        f"""
        {numbers} INSERT INTO schedule_slot (schedule, slot, last_slot, outcome, at)
        SELECT {size + 1}, n, n, 'skipped', n FROM t
        """
    )
    connection.execute(
        f"{numbers} INSERT INTO poll_position (holder, session, position, updated_at) SELECT {NEX_ID}, 's' || n, n, 1 FROM t"
    )


def anybody(tx: Tx, owner: int) -> None:
    """Every owner may send."""


def waiting(after: int | None) -> Query:
    """Read as envelope.wait and poll do."""
    return Query(
        owner=NEX_ID,
        unread=True,
        due=True,
        statuses=(Status.PENDING, Status.DONE),
        oldest_first=True,
        limit=10,
        after=None if after is None else Position(walk="a", number=after, of=UNREAD),
    )


def polling(connection: Connection, size: int) -> None:
    """Poll: read the position, read what came since, advance the position."""
    tx = Tx(connection)
    position = poll_positions.get(tx, NEX_ID, f"s{size}")
    assert position == size
    _, last = paging.page(connection, waiting(position)).found[-1]
    assert poll_positions.advance(tx, NEX_ID, f"s{size}", (position, last.number), NOW)


HOT: dict[str, Hot] = {
    "the next wake": lambda c, n: overdue.next_wake(c),
    "firing what is due": write(lambda tx, n: schedule_firing.fire_due(tx, NOW, anybody)),
    "firing nothing": write(lambda tx, n: schedule_firing.fire_due(tx, NOW - HOUR, anybody)),
    "one schedule": lambda c, n: schedules.get(c, n // 2, NEX_ID),
    "the schedules of one who has few": lambda c, n: list(schedules.list_all(c, ADA_ID)),
    "the last slots": lambda c, n: schedule_slots.last(c, n + 1, 20),
    "changing one": write(lambda tx, n: schedules.change(tx, n // 2, {"every_ms": 2 * HOUR}, NOW)),
    "a cursor": lambda c, n: poll_positions.get(c, NEX_ID, f"s{n // 2}"),
    "a cursor of a new session": lambda c, n: poll_positions.get(c, NEX_ID, "new"),
    "waiting after a cursor": lambda c, n: paging.page(c, waiting(n)),
    "waiting after the last": lambda c, n: paging.page(c, waiting(n + FRESH)),
}


@pytest.mark.parametrize("population", ["settled", "pending"])
def test_schedules_and_waiting_cost_the_same_among_20_000_as_among_1_000(
    tmp_path: Path, population: str
) -> None:
    statements = {**HOT, "a poll": polling, "waiting": lambda c, n: paging.page(c, waiting(None))}
    assert not_flat(tmp_path, POPULATIONS[population], statements, prepare=with_schedules) == {}


@pytest.mark.parametrize("population", ["failed", "deferred"])
def test_waiting_after_a_cursor_does_not_pass_over_what_was_there_before(
    tmp_path: Path, population: str
) -> None:
    kept = {name: hot for name, hot in HOT.items() if "cursor" in name or "last" in name}
    assert not_flat(tmp_path, POPULATIONS[population], kept, prepare=with_schedules) == {}


def test_what_is_counted_is_really_done(tmp_path: Path) -> None:
    """In the small database: a statement that finds nothing would be flat anywhere."""

    def done(connection: Connection, size: int) -> None:
        tx = Tx(connection)
        assert overdue.next_wake(tx) == NOW - 2
        assert (
            len(schedule_firing.fire_due(tx, NOW, anybody)) == 3
            and len(list(schedules.list_all(connection, ADA_ID))) == 3
        )
        assert overdue.next_wake(tx) == NOW + HOUR - 2
        assert len(schedule_slots.last(connection, size + 1, 20)) == 20
        assert len(paging.page(connection, waiting(size)).ids) == 10
        tx.cache.flush()

    assert (
        not_flat(tmp_path, POPULATIONS["settled"], {"done": done}, large=2_000, prepare=with_schedules) == {}
    )
