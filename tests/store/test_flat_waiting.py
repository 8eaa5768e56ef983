"""Schedules, waiting, asks and what cannot wait cost the same among 20,000 rows as among 1,000 (test_flat.py).

Among so many envelopes, and with so many schedules, slots, cursors or settled asks beside them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hiboss.core.address import BOSS
from hiboss.core.envelope import Draft, Priority, Status
from hiboss.store import (
    ask_answers,
    ask_times,
    asks,
    messages,
    overdue,
    paging,
    poll_positions,
    preemption,
    schedule_firing,
    schedule_slots,
    schedules,
)
from hiboss.store.ask_answers import Query as AskQuery
from hiboss.store.asks import NewAsk
from hiboss.store.connection import Connection
from hiboss.store.envelope_walks import UNREAD
from hiboss.store.group_commit import Tx
from hiboss.store.paging import Position, Query
from hiboss.store.preemption import Found
from tests.store.test_flat import (
    ADA,
    ADA_ID,
    BOSS_ID,
    FRESH,
    NEX,
    NEX_ID,
    NOW,
    POPULATIONS,
    Hot,
    not_flat,
    write,
)
from tests.store.test_flat_runs import numbers, taken, with_runs

pytestmark = pytest.mark.slow


# --- schedules and waiting -----------------------------------------------------------------------

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
    connection.execute(
        f"""
        {numbers(size)} INSERT INTO schedule (id, owner, every_ms, draft, created_at, begun_at, next_at)
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
        {numbers(size)} INSERT INTO schedule_slot (schedule, slot, last_slot, outcome, at)
        SELECT {size + 1}, n, n, 'skipped', n FROM t
        """
    )
    connection.execute(
        f"{numbers(size)} INSERT INTO poll_position (holder, session, position, updated_at) SELECT {NEX_ID}, 's' || n, n, 1 FROM t"
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


SCHEDULES: dict[str, Hot] = {
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


# --- asks ----------------------------------------------------------------------------------------

NEW = NewAsk(NEX_ID, BOSS_ID, "Deploy?", ("yes", "no"), expires_at=NOW + 1000)


def with_asks(connection: Connection, size: int) -> None:
    """Add this many settled asks of nex to ada with their buttons, and three open ones, one of which is due."""
    connection.execute(
        f"""
        {numbers(size)} INSERT INTO ask (id, asker, asked, message, digest, state, created_at, answer, answered_by,
                                   answered_at, reply, options, question)
        SELECT n, {NEX_ID}, {ADA_ID}, n, x'00', 'answered', n, 'yes', {ADA_ID}, n, n, '["yes"]', 'x' FROM t
        """
    )
    connection.execute(
        f"""
        {numbers(size)} INSERT INTO button (message, label, action, argument, pressed_at)
        SELECT n, 'yes', 'ask.answer', n || ':0', n FROM t
        """
    )
    tx = Tx(connection)
    for number in range(3):
        asks.create(tx, NEW._replace(question=f"{number}?", expires_at=NOW + number), NOW)
    tx.cache.flush()


def listing(sees: int | None, state: str | None, *, old: bool = False) -> Hot:
    return lambda c, n: ask_answers.listed(c, AskQuery(sees, state, n // 2 if old else None, 10))


ASKS: dict[str, Hot] = {
    "the open ones of all": listing(None, "open"),
    "all": listing(None, None),
    "an old page": listing(None, "answered", old=True),
    "the open ones of who asks much": listing(NEX_ID, "open"),
    "all of who asks much": listing(NEX_ID, None),
    "all of who is asked much": listing(ADA_ID, None, old=True),
    "one": lambda c, n: ask_answers.visible(c, n // 2, NEX_ID),
    "the next wake": lambda c, n: overdue.next_wake(c),
    "what is due": lambda c, n: ask_times.due(c, NOW),
    "creating": write(lambda tx, n: asks.create(tx, NEW, NOW)),
    "answering": write(lambda tx, n: ask_answers.answer(tx, n + 1, "yes", BOSS_ID, NOW)),
    "cancelling": write(lambda tx, n: ask_answers.cancel(tx, n + 1, NEX_ID, NOW)),
    "ending": write(lambda tx, n: ask_times.wake(tx, n + 1, NOW)),
    "a deleted message": write(lambda tx, n: ask_answers.end_of_message(tx, n // 2, NEX_ID, None, NOW)),
    "a deleted party": write(lambda tx, n: ask_answers.end_of_party(tx, ADA_ID, "x", NOW)),
    "of a message": write(lambda tx, n: ask_answers.of_message(tx, n // 2)),
    "a clock that was set": write(lambda tx, n: ask_times.move_waits(tx, 1000)),
}


# --- whether a run is set aside, looked up each time that mail comes for an agent which has a turn ---


def with_a_turn(connection: Connection, size: int) -> None:
    """Let nex work on a turn, as if all other mail had come since it began."""
    with_runs(connection, size)
    connection.execute("UPDATE agent SET busy = 'interrupt' WHERE address = ?", (NEX_ID,))
    connection.execute("UPDATE run SET after_message = 0 WHERE id = ?", (taken(Tx(connection)).run,))


def nothing(connection: Connection, size: int) -> None:
    assert preemption.find(connection, NEX_ID, NOW) is None


def found(tx: Tx) -> Found:
    one = preemption.find(tx, NEX_ID, NOW)
    assert one is not None
    return one


def critical(tx: Tx, size: int) -> None:
    draft = Draft(sender=ADA, caller=ADA_ID, to=(NEX,), text="now", priority=Priority.CRITICAL)
    sent = messages.insert(tx, draft, NOW)
    assert (found(tx).envelope, found(tx).critical) == (sent.envelopes[0], True)


def said(tx: Tx, size: int) -> None:
    sent = messages.insert(tx, Draft(sender=BOSS, caller=BOSS_ID, to=(NEX,), text="now", conversation=1), NOW)
    assert (found(tx).envelope, found(tx).critical) == (sent.envelopes[0], False)


def set_aside(tx: Tx, size: int) -> None:
    critical(tx, size)
    assert preemption.for_news(tx, NEX_ID, NOW) is not None
    assert preemption.for_news(tx, NEX_ID, NOW) is None  # it is ending already


PREEMPTION: dict[str, Hot] = {
    "nothing that cannot wait": nothing,
    "critical mail": write(critical),
    "what a person says": write(said),
    "a run is set aside": write(set_aside),
}


# --- the tests -----------------------------------------------------------------------------------

ALSO: dict[str, Hot] = {"a poll": polling, "waiting": lambda c, n: paging.page(c, waiting(None))}
AFTER = {name: hot for name, hot in SCHEDULES.items() if "cursor" in name or "last" in name}


@pytest.mark.parametrize(
    ("statements", "prepare", "population"),
    [
        (SCHEDULES | ALSO, with_schedules, "settled"),
        (SCHEDULES | ALSO, with_schedules, "pending"),
        # Waiting after a cursor does not pass over what was there before.
        (AFTER, with_schedules, "failed"),
        (AFTER, with_schedules, "deferred"),
        (ASKS, with_asks, "settled"),
        (PREEMPTION, with_a_turn, "settled"),
        (PREEMPTION, with_a_turn, "pending"),
    ],
)
def test_what_waits_costs_the_same_among_20_000_as_among_1_000(
    tmp_path: Path, statements: dict[str, Hot], prepare: Hot, population: str
) -> None:
    assert not_flat(tmp_path, POPULATIONS[population], statements, prepare=prepare) == {}


def schedules_are_fired(connection: Connection, size: int) -> None:
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


def asks_are_answered(connection: Connection, size: int) -> None:
    tx = Tx(connection)
    assert overdue.next_wake(tx) == NOW
    assert ask_times.due(tx, NOW) == [size + 1]
    assert [row["id"] for row in ask_answers.listed(connection, AskQuery(NEX_ID))] == [
        size + 3,
        size + 2,
        size + 1,
    ]
    assert len(ask_answers.listed(connection, AskQuery(None, None, size // 2, 10))) == 10
    assert ask_answers.answer(tx, size + 1, "yes", BOSS_ID, NOW)["state"] == "answered"
    assert ask_times.due(tx, NOW) == []
    tx.cache.flush()


@pytest.mark.parametrize(
    ("done", "prepare"), [(schedules_are_fired, with_schedules), (asks_are_answered, with_asks)]
)
def test_what_is_counted_is_really_done(tmp_path: Path, done: Hot, prepare: Hot) -> None:
    """In the small database: a statement that finds nothing would be flat anywhere."""
    assert not_flat(tmp_path, POPULATIONS["settled"], {"done": done}, large=2_000, prepare=prepare) == {}
