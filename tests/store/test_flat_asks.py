"""Asks cost the same among 20,000 settled ones as among 1,000. Counted as in test_flat.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.store import ask_answers, ask_times, asks, overdue
from hiboss.store.ask_answers import Query
from hiboss.store.asks import NewAsk
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from tests.store.test_flat import ADA_ID, BOSS_ID, NEX_ID, NOW, POPULATIONS, Hot, not_flat, write

NEW = NewAsk(NEX_ID, BOSS_ID, "Deploy?", ("yes", "no"), expires_at=NOW + 1000)


def with_asks(connection: Connection, size: int) -> None:
    """Add this many settled asks of nex to ada with their buttons, and three open ones, one of which is due."""
    numbers = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {size})"
    connection.execute(
        f"""
        {numbers} INSERT INTO ask (id, asker, asked, message, digest, state, created_at, answer, answered_by,
                                   answered_at, reply, options, question)
        SELECT n, {NEX_ID}, {ADA_ID}, n, x'00', 'answered', n, 'yes', {ADA_ID}, n, n, '["yes"]', 'x' FROM t
        """
    )
    connection.execute(
        f"""
        {numbers} INSERT INTO button (message, label, action, argument, pressed_at)
        SELECT n, 'yes', 'ask.answer', n || ':0', n FROM t
        """
    )
    tx = Tx(connection)
    for number in range(3):
        asks.create(tx, NEW._replace(question=f"{number}?", expires_at=NOW + number), NOW)
    tx.cache.flush()


def listing(sees: int | None, state: str | None, *, old: bool = False) -> Hot:
    return lambda c, n: ask_answers.listed(c, Query(sees, state, n // 2 if old else None, 10))


HOT: dict[str, Hot] = {
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


@pytest.mark.parametrize("population", ["settled"])
def test_asks_cost_the_same_among_20_000_as_among_1_000(tmp_path: Path, population: str) -> None:
    assert not_flat(tmp_path, POPULATIONS[population], HOT, prepare=with_asks) == {}


def test_what_is_counted_is_really_done(tmp_path: Path) -> None:
    """In the small database: a statement that finds nothing would be flat anywhere."""

    def done(connection: Connection, size: int) -> None:
        tx = Tx(connection)
        assert overdue.next_wake(tx) == NOW
        assert ask_times.due(tx, NOW) == [size + 1]
        assert [row["id"] for row in ask_answers.listed(connection, Query(NEX_ID))] == [
            size + 3,
            size + 2,
            size + 1,
        ]
        assert len(ask_answers.listed(connection, Query(None, None, size // 2, 10))) == 10
        assert ask_answers.answer(tx, size + 1, "yes", BOSS_ID, NOW)["state"] == "answered"
        assert ask_times.due(tx, NOW) == []
        tx.cache.flush()

    assert not_flat(tmp_path, POPULATIONS["settled"], {"done": done}, large=2_000, prepare=with_asks) == {}
