"""Group commit: operations share a transaction, and the failure of one does not affect the others."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.address import Address
from hiboss.core.envelope import Draft
from hiboss.core.errors import HibossError, NotFound, StoreFull, UnknownRecipient
from hiboss.core.events import EnvelopeRead, EnvelopesArrived, Fact
from hiboss.core.paths import Home
from hiboss.core.settings import DEFAULTS, Settings
from hiboss.store import messages
from hiboss.store.connection import connect
from hiboss.store.group_commit import Tx, Writer
from hiboss.store.invariants import violations
from tests.support.daemons import set_up

NEX = Address("agent", "nex")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    home = set_up(tmp_path_factory.mktemp("d"))
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(home.database).read_bytes()


@pytest.fixture
def home(prepared: bytes, tmp_path: Path) -> Iterator[Home]:
    """Return a home that is set up; after the test its invariants are checked."""
    home = Home(str(tmp_path / "home"))
    home.create()
    Path(home.database).write_bytes(prepared)
    yield home
    with closing(connect(home, wait_seconds=1)) as connection:
        assert violations(connection) == []


def writing(home: Home, work: Callable[[Writer], Awaitable[Any]], settings: Settings = DEFAULTS) -> Any:
    async def run() -> Any:
        connection = connect(home, wait_seconds=5)
        writer = Writer(connection, home, settings)
        try:
            return await work(writer)
        finally:
            await writer.close()
            connection.close()

    return asyncio.run(run())


def at_once(home: Home, operations: list[Callable[[Tx], Any]], settings: Settings = DEFAULTS) -> list[Any]:
    """Return results and errors of operations that all wait at the same moment, so that they share groups."""

    async def work(writer: Writer) -> list[Any]:
        return await asyncio.gather(*(writer.submit(one) for one in operations), return_exceptions=True)

    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # holds the writer up until everything is queued

        async def held(writer: Writer) -> list[Any]:
            asyncio.get_running_loop().call_soon(other.execute, "ROLLBACK")
            return await work(writer)

        return list(writing(home, held, settings))


def sending(text: str, to: Address = NEX) -> Callable[[Tx], Any]:
    draft = Draft(sender=NEX, caller=2, to=(to,), text=text)
    return lambda tx: messages.insert(tx, draft, 1_000)


def then(operation: Callable[[Tx], Any], error: Exception) -> Callable[[Tx], Any]:
    """An operation that does its work and fails after it."""

    def failing(tx: Tx) -> None:
        operation(tx)
        raise error

    return failing


def stored(home: Home) -> list[tuple[str, int, int]]:
    with closing(connect(home, wait_seconds=1)) as connection:
        sql = (
            "SELECT m.text, m.seq, e.arrived FROM message m JOIN envelope e ON e.message = m.id ORDER BY m.id"
        )
        return [tuple(row) for row in connection.execute(sql)]


def test_operations_that_fail_leave_the_others_of_their_group_alone(home: Home) -> None:
    chance = random.Random(7)
    operations, expected = [], []
    for number in range(400):
        kind = chance.randrange(4)
        if kind == 0:
            operations.append(then(sending(f"{number}"), ValueError(f"{number}")))
        elif kind == 1:
            operations.append(sending(f"{number}", Address("agent", "nobody")))
        elif kind == 2:
            operations.append(then(sending(f"{number}"), sqlite3.IntegrityError(f"{number}")))
        else:
            operations.append(sending(f"{number}"))
            expected.append(f"{number}")
    outcomes = at_once(home, operations)
    kinds = {type(one) for one in outcomes if isinstance(one, Exception)}
    assert kinds == {ValueError, UnknownRecipient, sqlite3.IntegrityError}
    # Whole, in order, with numbers that have no gap where an operation was rolled back.
    assert stored(home) == [(text, place, place) for place, text in enumerate(expected, start=1)]


def test_each_caller_hears_the_outcome_of_its_own_operation(home: Home) -> None:
    operations = [
        then(sending("x"), NotFound(what="n", value=n)) if n % 3 else (lambda tx, n=n: n) for n in range(100)
    ]
    outcomes = at_once(home, operations)
    assert [one.value if isinstance(one, NotFound) else one for one in outcomes] == list(range(100))
    assert stored(home) == []


def test_a_statement_a_constraint_refuses_costs_its_own_operation_only(home: Home) -> None:
    def twice(tx: Tx) -> None:
        tx.execute("INSERT INTO config (key, value) VALUES ('first half', '')")
        tx.execute("INSERT INTO config (key, value) VALUES ('epoch', 'again')")

    outcomes = at_once(home, [sending("a"), twice, sending("b")])
    assert isinstance(outcomes[1], sqlite3.IntegrityError)
    assert [text for text, _, _ in stored(home)] == ["a", "b"]
    with closing(connect(home, wait_seconds=1)) as connection:
        assert connection.execute("SELECT 1 FROM config WHERE key = 'first half'").fetchone() is None


def test_an_operations_own_failure_fails_only_itself_whatever_error_it_is(home: Home) -> None:
    """Also an OperationalError, which SQLite uses for its own statements as for the file."""

    def half_done(statement: str, *values: Any) -> Callable[[Tx], Any]:
        def operation(tx: Tx) -> None:
            tx.execute("INSERT INTO config (key, value) VALUES (?, 'half')", (statement,))
            tx.execute(statement, values)

        return operation

    own = [
        "INSERT INTO no_such_table VALUES (1)",
        "SELECT no_such_column FROM message",
        "this is not SQL",
        "SELECT rowid FROM search WHERE search MATCH 'what is \"this'",
        "SELECT abs(-9223372036854775808)",
        "SELECT zeroblob(2000000000)",
        "SELECT json('{')",
        f"SELECT 1 WHERE 1 IN ({','.join('?' * 300_000)})",
    ]
    operations: list[Callable[[Tx], Any]] = [sending("first")]
    for number, statement in enumerate(own):
        operations += [half_done(statement), lambda tx, one=statement: tx.execute(one), sending(f"{number}")]
    operations += [
        lambda tx: tx.execute("SELECT ?", (2**63,)),
        lambda tx: tx.execute("SELECT ?", ("\ud800",)),
    ]
    outcomes = at_once(home, operations)
    failed = [one for one in outcomes if isinstance(one, Exception)]
    assert len(failed) == 2 * len(own) + 2
    assert not any(isinstance(one, HibossError) for one in failed)  # no error about the database
    assert [text for text, _, _ in stored(home)] == ["first", *(f"{number}" for number in range(len(own)))]
    with closing(connect(home, wait_seconds=1)) as connection:
        assert connection.execute("SELECT * FROM config WHERE value = 'half'").fetchall() == []


def test_when_the_group_fails_every_caller_in_it_is_told_and_nothing_is_stored(home: Home) -> None:
    def full(tx: Tx) -> None:
        """An error about the file, not about this operation: there is no room for more pages."""
        (pages,) = tx.execute("PRAGMA page_count").fetchone()
        tx.execute(f"PRAGMA max_page_count = {pages}")
        try:
            tx.execute("INSERT INTO config (key, value) VALUES ('large', CAST(zeroblob(10000000) AS TEXT))")
        finally:
            tx.execute("PRAGMA max_page_count = 4294967294")

    async def work(writer: Writer) -> list[Any]:
        before = await writer.submit(sending("before"))
        lost = await _held_group(writer, home, [sending("x"), sending("y"), full, sending("z")])
        after = await writer.submit(sending("after"))
        assert before.message == 1 and after.message == 2
        return lost

    lost = writing(home, work)
    assert [type(one) for one in lost] == [StoreFull] * 4
    assert stored(home) == [("before", 1, 1), ("after", 2, 2)]


async def _held_group(writer: Writer, home: Home, operations: list[Callable[[Tx], Any]]) -> list[Any]:
    """Return the outcomes of operations in one group: an operation before them blocks the writer."""
    with closing(sqlite3.connect(home.database, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        first = writer.submit(lambda tx: None)
        while writer.waiting:
            await asyncio.sleep(0.001)
        futures = [writer.submit(one) for one in operations]
        other.execute("ROLLBACK")
        await first
        return list(await asyncio.gather(*futures, return_exceptions=True))


def test_a_deferred_constraint_that_fails_at_commit_fails_the_group(home: Home) -> None:
    def dangling(tx: Tx) -> None:
        tx.execute("PRAGMA defer_foreign_keys = ON")
        tx.execute("INSERT INTO token (hash, kind, holder, created_at) VALUES (x'00', 'agent', 999, 0)")

    async def work(writer: Writer) -> list[Any]:
        lost = await _held_group(writer, home, [sending("x"), dangling])
        await writer.submit(sending("after"))
        return lost

    assert all(isinstance(one, Exception) for one in writing(home, work))
    assert stored(home) == [("after", 1, 1)]


def test_an_operation_whose_caller_has_gone_is_written_all_the_same(home: Home) -> None:
    async def work(writer: Writer) -> Any:
        gone = writer.submit(sending("caller gone"))
        gone.cancel()
        return await writer.submit(sending("still here"))

    assert writing(home, work).message == 2
    assert [text for text, _, _ in stored(home)] == ["caller gone", "still here"]


@pytest.mark.parametrize("group", [1, 2, 7, 1_024])
def test_groups_of_any_size_store_the_same(home: Home, group: int) -> None:
    at_once(home, [sending(f"{n}") for n in range(100)], Settings(group_operations=group))
    assert stored(home) == [(f"{n}", n + 1, n + 1) for n in range(100)]


def test_closing_writes_what_is_queued_first(home: Home) -> None:
    futures: list[asyncio.Future[Any]] = []

    async def work(writer: Writer) -> None:
        futures.extend(writer.submit(sending(f"{n}")) for n in range(500))

    writing(home, work)
    assert [text for text, _, _ in stored(home)] == [f"{n}" for n in range(500)]


def test_callers_get_their_answers_even_if_what_follows_a_write_fails(home: Home) -> None:
    def fail(recipients: list[int]) -> None:
        raise RuntimeError(f"told of {recipients}")

    async def work(writer: Writer) -> list[str]:
        told: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
        writer.arrived = fail

        def write(tx: Tx) -> str:
            tx.arrived_for.append(1)
            return "written"

        async with asyncio.timeout(30):
            assert [await writer.submit(write), await writer.submit(write)] == ["written", "written"]
        await asyncio.sleep(0)
        return told

    assert writing(home, work)[0] == "told of [1]"


# --- facts ---------------------------------------------------------------------------


def published(home: Home, *operations: Callable[[Tx], Any]) -> list[list[int]]:
    """Submit operations at once; return the messages that were told to have arrived, for each group."""

    async def work(writer: Writer) -> list[list[Fact]]:
        groups: list[list[Fact]] = []
        writer.publish = groups.append
        await writer.submit(lambda tx: None)  # so that the next ones are one group
        writer._expected = len(operations)
        futures = [writer.submit(one) for one in operations]
        await asyncio.gather(*futures, return_exceptions=True)
        return groups

    found: list[list[Fact]] = writing(home, work)
    return [[fact.message for fact in group if isinstance(fact, EnvelopesArrived)] for group in found]


def failing(after: Callable[[Tx], Any] | None = None) -> Callable[[Tx], Any]:
    def operation(tx: Tx) -> None:
        if after is not None:
            after(tx)
        tx.facts.append(EnvelopeRead(1, 4711))
        raise ValueError("it does not work out")

    return operation


def test_facts_are_published_in_the_order_of_the_writes_after_the_commit(home: Home) -> None:
    assert published(home, *[sending(f"{n}") for n in range(5)]) == [[1, 2, 3, 4, 5]]


def test_an_operation_that_fails_tells_nothing_and_the_others_of_its_group_do(home: Home) -> None:
    assert published(home, sending("a"), failing(), sending("b")) == [[1, 2]]
    # The next one changes something first: the group begins again, with savepoints.
    assert published(home, sending("c"), failing(sending("lost")), sending("d")) == [[3, 4]]


def test_a_group_that_is_rolled_back_tells_nothing(home: Home) -> None:
    def break_the_transaction(tx: Tx) -> None:
        tx.execute("ROLLBACK")

    assert published(home, sending("a"), break_the_transaction, sending("b")) == []
    assert stored(home) == []
    assert published(home, sending("c")) == [[1]]


def test_facts_are_published_even_if_what_else_follows_a_write_fails(home: Home) -> None:
    async def work(writer: Writer) -> list[list[Fact]]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: None)
        groups: list[list[Fact]] = []
        writer.publish, writer.arrived = groups.append, lambda recipients: [][0]
        await writer.submit(sending("a"))
        await asyncio.sleep(0)
        return groups

    assert len(writing(home, work)) == 1
