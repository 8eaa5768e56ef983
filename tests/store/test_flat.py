"""Hot statements cost the same among 20,000 rows as among 1,000; flat_soak.py does it with 100,000.

Counted exactly, in steps of SQLite's virtual machine, so no clock is involved; allowed is a fifth more.
What costs twice as much among 100,000 costs a fifth more among 20,000, and those are filled in a fifth of
the time. The same counting is seen to fail on statements that are not flat.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.address import BOSS, Address
from hiboss.core.envelope import Box, Draft, Status
from hiboss.core.paths import Home
from hiboss.store import (
    acknowledgements,
    addresses,
    agents,
    boss,
    counters,
    envelope_marks,
    envelope_rows,
    envelope_walks,
    envelopes,
    messages,
    paging,
    tokens,
)
from hiboss.store.connection import Connection, connect
from hiboss.store.group_commit import Tx
from hiboss.store.invariants import violations
from hiboss.store.paging import Position, Query
from tests.store.chat_scene import fresh

pytestmark = pytest.mark.slow

SMALL, LARGE = 1_000, int(os.environ.get("FLAT_ROWS", "20000"))
ALLOWED = 1.2  # times as much
NOW = 1_800_000_000_000
NEX, ADA = Address("agent", "nex"), Address("agent", "ada")
BOSS_ID, NEX_ID, ADA_ID = 1, 2, 3
TOKEN = "hba_for-the-flat-test"
FRESH = 12  # pending envelopes on top of every population

# What most rows are, as columns of `envelope`; `n` counts from 1. All are from ada to nex.
SETTLED = {"status": "1", "done_at": "n", "read_at": "n", "arrived": "n"}
POPULATIONS = {
    "settled": SETTLED,
    "archived": {**SETTLED, "box": "1"},
    "pending": {"status": "0", "arrived": "n"},
    "failed": {"status": "2", "done_at": "n", "arrived": "n"},
    "cancelled": {"status": "3", "done_at": "n", "arrived": "n"},
    "deferred": {"status": "0", "waits": "0", "wait_until": f"{NOW} + n"},
}

# A hot statement, given the connection and how many rows there are.
Hot = Callable[[Connection, int], Any]


# --- filling -----------------------------------------------------------------------------------


@contextmanager
def filled(directory: Path, population: dict[str, str], size: int) -> Iterator[Connection]:
    """Open a database with this many envelopes of one kind, and a few fresh ones. It may be changed."""
    home = Home(str(directory / f"{size}"))
    home.create()
    shutil.copyfile(_template(directory, population, size), home.database)
    with closing(connect(home, wait_seconds=1)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


def _template(directory: Path, population: dict[str, str], size: int) -> Path:
    """Return a database that is filled once for all tests and workers of a run: that takes seconds."""
    run = next(one for one in directory.parents if one.parent.name.startswith("pytest-of-"))
    place = run / "filled"  # conftest.py removes it
    place.mkdir(exist_ok=True)
    name = hashlib.sha256(f"{size} {population}".encode()).hexdigest()[:16]
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = place / f"{name}.db"
        if not found.exists():
            with tempfile.TemporaryDirectory(dir=place) as making:
                os.replace(_filled_anew(Path(making), population, size), found)
    return found


def _filled_anew(directory: Path, population: dict[str, str], size: int) -> str:
    with fresh(directory / "home") as (connection, home):
        connection.execute("BEGIN")
        tx = Tx(connection)
        assert boss.add_boss(tx, "Ada", "UTC", NOW) == BOSS_ID
        assert [agents.register(tx, name, {}, NOW) for name in ("nex", "ada")] == [NEX_ID, ADA_ID]
        tokens.insert(tx, TOKEN, "agent", NEX_ID, NOW)
        _fill(connection, tx.cache.conversation((NEX_ID, ADA_ID), NOW), population, size)
        for number in range(FRESH):
            draft = Draft(sender=ADA, caller=ADA_ID, to=(NEX,), text="fresh", key=f"{number}", digest=b"d")
            messages.insert(tx, draft, NOW)
        tx.cache.flush()
        connection.execute("COMMIT")
        assert connection.execute("SELECT count(*) FROM envelope").fetchone()[0] == size + FRESH
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return str(home.database)


def _fill(connection: Connection, conversation: int, population: dict[str, str], size: int) -> None:
    arrives = "arrived" in population
    numbers = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < {size})"
    connection.execute(
        f"""
        {numbers} INSERT INTO message (id, conversation, sender, caller, text, created_at,
                                       seq, arrived_at, deliver_at)
        SELECT n, {conversation}, 3, 3, 'x', n, {"n, n, NULL" if arrives else f"NULL, NULL, {NOW} + n"} FROM t
        """
    )
    connection.execute(
        f"""
        {numbers} INSERT INTO envelope (message, recipient, {", ".join(population)})
        SELECT n, {NEX_ID}, {", ".join(population.values())} FROM t
        """
    )
    connection.execute(
        "INSERT INTO reading (envelope, reader, at) SELECT id, recipient, read_at FROM envelope WHERE read_at > 0"
    )
    if arrives:
        connection.execute("UPDATE conversation SET last_seq = ?", (size,))
        connection.execute("UPDATE counter SET value = ? WHERE name = 'arrived'", (size,))


# --- counting ----------------------------------------------------------------------------------


def steps(connection: Connection, hot: Hot, size: int) -> int:
    """Return how many steps SQLite's virtual machine takes; roll back all changes."""
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    connection.execute("SAVEPOINT counting")
    connection.set_progress_handler(step, 1)
    try:
        hot(connection, size)
    finally:
        connection.set_progress_handler(None, 0)
        connection.execute("ROLLBACK TO counting")
        connection.execute("RELEASE counting")
    return count


def not_flat(
    directory: Path,
    population: dict[str, str],
    statements: Mapping[str, Hot],
    *,
    large: int = LARGE,
    prepare: Hot = lambda connection, size: None,
) -> dict[str, tuple[int, int]]:
    """Return the statements that cost more in the large database than is allowed, with both costs."""
    counted: dict[str, list[int]] = {name: [] for name in statements}
    for size in (SMALL, large):
        with filled(directory, population, size) as connection:
            prepare(connection, size)
            if size == SMALL:
                assert violations(connection) == []  # the rows are such as the store itself makes
            for name, hot in statements.items():
                counted[name].append(steps(connection, hot, size))
    return {name: (small, big) for name, (small, big) in counted.items() if big > ALLOWED * small}


# --- the hot statements ------------------------------------------------------------------------


def page(query: Query) -> Hot:
    return lambda connection, size: paging.page(connection, query)


def deep(walk: str, **words: Any) -> Hot:
    """Return a page that begins in the middle."""

    def run(connection: Connection, size: int) -> Any:
        query = Query(**{"owner": NEX_ID, **words})
        second, of = size // 2 if walk == "o" else 0, envelope_walks.kind(query)
        middle = Position(walk=walk, number=size // 2, second=second, of=of)
        return paging.page(connection, replace(query, after=middle))

    return run


def next_page(**words: Any) -> Hot:
    """Return the page after the first one; it always exists and has at most five entries."""

    def run(connection: Connection, size: int) -> Any:
        first = paging.page(connection, Query(**{"owner": NEX_ID, "limit": 5, **words}))
        assert first.next is not None
        return paging.page(connection, Query(**{"owner": NEX_ID, "limit": 5, "after": first.next, **words}))

    return run


def write(operation: Callable[[Tx, int], Any]) -> Hot:
    """Run an operation of the writer with an empty cache."""

    def run(connection: Connection, size: int) -> Any:
        tx = Tx(connection)
        result = operation(tx, size)
        tx.cache.flush()
        return result

    return run


def send(**words: Any) -> Hot:
    def run(tx: Tx, size: int) -> Any:
        draft = Draft(**{"sender": ADA, "caller": ADA_ID, "to": (NEX,), "text": "x", "digest": b"d", **words})
        return messages.insert(tx, draft, NOW)

    return write(run)


TO_READ = (Status.PENDING, Status.DONE, Status.FAILED)
LISTS: dict[str, Query] = {
    "inbox": Query(owner=NEX_ID),
    "inbox, oldest first": Query(owner=NEX_ID, oldest_first=True),
    "inbox, unread": Query(owner=NEX_ID, unread=True, statuses=TO_READ),
    "inbox, unread, oldest first": Query(owner=NEX_ID, unread=True, statuses=TO_READ, oldest_first=True),
    **{f"inbox, {status.word}": Query(owner=NEX_ID, statuses=(status,)) for status in Status},
    "an empty inbox": Query(owner=BOSS_ID),
    "archived": Query(owner=NEX_ID, box=Box.ARCHIVED),
    "trash": Query(owner=NEX_ID, box=Box.TRASH),
    "outbox": Query(owner=ADA_ID, outbox=True),
    "outbox, oldest first": Query(owner=ADA_ID, outbox=True, oldest_first=True),
    "an empty outbox": Query(owner=NEX_ID, outbox=True),
    "for the boss": Query(owner=NEX_ID, with_deferred=True),
    "for the boss, pending": Query(owner=NEX_ID, with_deferred=True, statuses=(Status.PENDING,)),
    "for the boss, oldest first": Query(owner=NEX_ID, with_deferred=True, oldest_first=True),
}

HOT: dict[str, Hot] = {
    **{name: page(query) for name, query in LISTS.items()},
    # More than there are fresh ones: the walk must find out where they end.
    **{f"{name}, 100": page(replace(query, limit=100)) for name, query in LISTS.items()},
    "inbox, next page": next_page(),
    "inbox, deep": deep("a"),
    "inbox, deep, oldest first": deep("a", oldest_first=True),
    "inbox, pending, next page": next_page(statuses=(Status.PENDING,)),
    "inbox, unread, next page": next_page(unread=True, statuses=TO_READ),
    "outbox, next page": next_page(owner=ADA_ID, outbox=True),
    "outbox, deep": deep("o", owner=ADA_ID, outbox=True),
    "for the boss, next page": next_page(with_deferred=True),
    "for the boss, deep in what is deferred": deep("d", with_deferred=True),
    "a thread": lambda c, n: paging.page(c, Query(owner=NEX_ID, thread=n // 2)),
    "how many": lambda c, n: paging.count(c, Query(owner=NEX_ID), 100),
    "fetch": lambda c, n: envelope_rows.fetch(c, list(range(n // 2, n // 2 + 10))),
    "visible": lambda c, n: envelope_rows.visible(c, n // 2, None),
    "recipients": lambda c, n: envelope_rows.recipients(c, n // 2),
    "find an address": lambda c, n: addresses.find_address(c, NEX),
    "a token": lambda c, n: tokens.find(c, tokens.digest(TOKEN)),
    "a wrong token": lambda c, n: tokens.find(c, tokens.digest("hba_wrong")),
    "the boss": lambda c, n: boss.find_boss(c),
    "counts": lambda c, n: counters.counts(c, 100),
    "read": write(lambda tx, n: envelope_marks.mark_read(tx, [n + FRESH], NEX_ID, NOW)),
    "acknowledge": write(lambda tx, n: acknowledgements.acknowledge(tx, [n + FRESH], NEX_ID, NOW)),
    "acknowledge all, a chunk": write(
        lambda tx, n: acknowledgements.acknowledge_due(tx, NEX_ID, n + FRESH, 10, NOW)
    ),
    "archive": write(lambda tx, n: envelope_marks.put_into(tx, [n + FRESH], NEX_ID, Box.ARCHIVED, NOW)),
    "cancel": write(lambda tx, n: envelopes.cancel(tx, [n + FRESH], ADA_ID, NOW)),
    "send": send(),
    "send to the boss": send(to=(BOSS,)),
    "send to several": send(to=(NEX, BOSS)),
    "send with a new key": send(key="new"),
    "send with a key used before": send(key="3"),
    "send later": send(deliver_at=NOW + 5),
    "reply": send(sender=NEX, caller=NEX_ID, to=(), reply_to=("envelope", 1), sees_all=True),
}


@pytest.mark.parametrize("population", POPULATIONS)
def test_hot_statements_are_flat(tmp_path: Path, population: str) -> None:
    assert not_flat(tmp_path, POPULATIONS[population], HOT) == {}


def test_a_page_that_is_not_flat_is_read_off_the_loop(tmp_path: Path) -> None:
    """A filtered list may have to skip many rows; then the query itself must say so."""
    narrow = {
        "by a sender": Query(owner=NEX_ID, senders=(BOSS_ID,)),
        "by time": Query(owner=NEX_ID, created_before=0),
        "unread and failed": Query(owner=NEX_ID, unread=True, statuses=(Status.FAILED,)),
        "outbox, failed": Query(owner=ADA_ID, outbox=True, statuses=(Status.FAILED,)),
        "outbox, read by nobody": Query(owner=ADA_ID, outbox=True, unread=True),
        "outbox, to the boss": Query(owner=ADA_ID, outbox=True, recipients=(BOSS_ID,)),
    }
    statements: dict[str, Hot] = {name: page(query) for name, query in narrow.items()}
    found = not_flat(tmp_path, POPULATIONS["pending"], statements, large=10_000)
    assert "by a sender" in found and [name for name in found if not narrow[name].filtered] == []


# --- the counting itself -------------------------------------------------------------------------


def test_the_counting_notices_statements_that_are_not_flat(tmp_path: Path) -> None:
    slow: dict[str, Hot] = {
        "a scan": lambda c, n: c.execute("SELECT sum(arrived) FROM envelope").fetchall(),
        "no index": lambda c, n: c.execute("SELECT id FROM envelope WHERE done_at = 3").fetchall(),
        "a sort": lambda c, n: c.execute("SELECT id FROM envelope ORDER BY done_at LIMIT 1").fetchall(),
        "an offset": lambda c, n: c.execute(f"SELECT id FROM envelope LIMIT 1 OFFSET {n - 5}").fetchall(),
        "a change": lambda c, n: c.execute("UPDATE envelope SET attempts = 1 WHERE attempts = 0"),
    }
    assert set(not_flat(tmp_path, SETTLED, slow, large=5_000)) == set(slow)


def test_the_counting_notices_an_index_that_is_not_what_it_was(tmp_path: Path) -> None:
    def spoil(connection: Connection, size: int) -> None:
        connection.execute("DROP INDEX envelope_box")
        connection.execute("CREATE INDEX envelope_box ON envelope (recipient)")

    assert {"inbox", "inbox, pending", "archived"} <= set(
        not_flat(tmp_path, SETTLED, HOT, large=5_000, prepare=spoil)
    )
