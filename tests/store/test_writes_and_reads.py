"""Writes and reads of the store: the groups of the one writer, and reads that see one state."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.address import Address
from hiboss.core.errors import HibossError, NotFound, StoreFull, UnknownRecipient
from hiboss.core.events import EnvelopeRead, EnvelopesArrived, Fact
from hiboss.core.settings import DEFAULTS, Settings
from hiboss.store.connection import Connection
from hiboss.store.group_commit import Tx
from hiboss.store.store import Store
from tests.store.chat_scene import NEX
from tests.store.written_house import Operation, WrittenHouse
from tests.support.daemons import set_up
from tests.support.failures import seeded

KAI = Address("agent", "kai")


def sending(house: WrittenHouse, text: str) -> Operation:
    return house.sending(NEX, KAI, text=text)


def then(operation: Operation, error: Exception) -> Operation:
    """An operation that does its work and fails after it."""

    def failing(tx: Tx) -> None:
        operation(tx)
        raise error

    return failing


def stored(house: WrittenHouse) -> list[tuple[str, int]]:
    """Return the texts for kai with their sequence numbers."""
    rows = house.execute("SELECT text, seq FROM message WHERE sender = ? ORDER BY id", NEX)
    return [(row["text"], row["seq"]) for row in rows]


def numbered(*texts: str) -> list[tuple[str, int]]:
    return [(text, place) for place, text in enumerate(texts, start=1)]


def test_operations_that_fail_leave_the_others_of_their_group_alone(written: WrittenHouse) -> None:
    chance = seeded(7)
    operations, expected = [], []
    for text in map(str, range(400)):
        kind = chance.choice([ValueError, sqlite3.IntegrityError, UnknownRecipient, None])
        if kind is None:
            expected.append(text)
            operations.append(sending(written, text))
        elif kind is UnknownRecipient:
            operations.append(written.sending(NEX, Address("agent", "nobody")))
        else:
            operations.append(then(sending(written, text), kind(text)))
    kinds = {type(one) for one in written.group(*operations) if isinstance(one, Exception)}
    assert kinds == {ValueError, UnknownRecipient, sqlite3.IntegrityError}
    # Whole, in order, with numbers that have no gap where an operation was rolled back.
    assert stored(written) == numbered(*expected)


def test_each_caller_hears_the_outcome_of_its_own_operation(written: WrittenHouse) -> None:
    operations = [
        then(sending(written, "x"), NotFound(what="n", value=n)) if n % 3 else (lambda tx, n=n: n)
        for n in range(100)
    ]
    outcomes = written.group(*operations)
    assert [one.value if isinstance(one, NotFound) else one for one in outcomes] == list(range(100))
    assert stored(written) == []


def test_an_operations_own_failure_fails_only_itself_whatever_error_it_is(written: WrittenHouse) -> None:
    """Also an OperationalError, which SQLite uses for its own statements as for the file."""

    def half_done(statement: str) -> Operation:
        def operation(tx: Tx) -> None:
            tx.execute("INSERT INTO config (key, value) VALUES (?, 'half')", (statement,))
            tx.execute(statement)

        return operation

    own = [
        "INSERT INTO config (key, value) VALUES ('epoch', 'again')",  # a constraint refuses it
        "INSERT INTO no_such_table VALUES (1)",
        "SELECT no_such_column FROM message",
        "this is not SQL",
        "SELECT rowid FROM search WHERE search MATCH 'what is \"this'",
        "SELECT abs(-9223372036854775808)",
        "SELECT zeroblob(2000000000)",
        "SELECT json('{')",
        f"SELECT 1 WHERE 1 IN ({','.join('?' * 300_000)})",
    ]
    operations = [sending(written, "first")]
    for number, statement in enumerate(own):
        operations += [half_done(statement), lambda tx, one=statement: tx.execute(one)]
        operations.append(sending(written, f"{number}"))
    operations += [
        lambda tx: tx.execute("SELECT ?", (2**63,)),
        lambda tx: tx.execute("SELECT ?", ("\ud800",)),
    ]
    failed = [one for one in written.group(*operations) if isinstance(one, Exception)]
    assert len(failed) == 2 * len(own) + 2
    assert not any(isinstance(one, HibossError) for one in failed)  # no error about the database
    assert stored(written) == numbered("first", *(f"{number}" for number in range(len(own))))
    assert written.execute("SELECT * FROM config WHERE value = 'half'") == []


def full(tx: Tx) -> None:
    """Fail by an error about the file, not about this operation: there is no room for more pages."""
    (pages,) = tx.execute("PRAGMA page_count").fetchone()
    tx.execute(f"PRAGMA max_page_count = {pages}")
    try:
        tx.execute("INSERT INTO config (key, value) VALUES ('large', CAST(zeroblob(10000000) AS TEXT))")
    finally:
        tx.execute("PRAGMA max_page_count = 4294967294")


def dangling(tx: Tx) -> None:
    """Fail at the COMMIT, by a constraint that is deferred."""
    tx.execute("PRAGMA defer_foreign_keys = ON")
    tx.execute("INSERT INTO token (hash, kind, holder, created_at) VALUES (x'00', 'agent', 999, 0)")


@pytest.mark.parametrize(("breaks", "told"), [(full, StoreFull), (dangling, Exception)])
def test_when_the_group_fails_every_caller_in_it_is_told_and_nothing_is_stored(
    written: WrittenHouse, breaks: Operation, told: type[Exception]
) -> None:
    written.write(sending(written, "before"))
    lost = written.group(sending(written, "x"), sending(written, "y"), breaks, sending(written, "z"))
    assert [isinstance(one, told) for one in lost] == [True] * 4
    written.write(sending(written, "after"))
    assert stored(written) == numbered("before", "after")


def test_an_operation_whose_caller_has_gone_is_written_all_the_same(written: WrittenHouse) -> None:
    async def work() -> None:
        written.writer.submit(sending(written, "caller gone")).cancel()
        await written.writer.submit(sending(written, "still here"))

    written.loop.run_until_complete(work())
    assert stored(written) == numbered("caller gone", "still here")


@pytest.mark.parametrize("group", [1, 2, 7, 1_024])
def test_groups_of_any_size_store_the_same(written: WrittenHouse, group: int) -> None:
    written.writer._settings = Settings(group_operations=group)
    written.group(*(sending(written, f"{n}") for n in range(100)))
    assert stored(written) == numbered(*(f"{n}" for n in range(100)))


# --- facts ---------------------------------------------------------------------------


def test_callers_get_their_answers_and_facts_are_told_even_if_what_follows_a_write_fails(
    written: WrittenHouse,
) -> None:
    told: list[str] = []
    groups: list[list[Fact]] = []

    def fail(recipients: list[int]) -> None:
        raise RuntimeError("told of somebody")

    written.loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
    written.writer.publish, written.writer.arrived = groups.append, fail
    for text in ("one", "two"):
        assert written.write(sending(written, text)).envelopes
    written.loop.run_until_complete(asyncio.sleep(0))
    assert set(told) == {"told of somebody"} and len(groups) == 2


def published(house: WrittenHouse, *operations: Operation) -> list[list[int]]:
    """Write operations in one group; return the messages that were told to have arrived, for each group."""
    groups: list[list[Fact]] = []
    house.writer.publish = groups.append
    house.group(*operations)
    first = int(house.execute("SELECT max(id) AS id FROM message WHERE sender <> ?", NEX)[0]["id"])
    return [[one.message - first for one in group if isinstance(one, EnvelopesArrived)] for group in groups]


def failing(after: Operation | None = None) -> Callable[[Tx], Any]:
    def operation(tx: Tx) -> None:
        if after is not None:
            after(tx)
        tx.facts.append(EnvelopeRead(1, 4711))
        raise ValueError("it does not work out")

    return operation


def test_facts_are_published_in_the_order_of_the_writes_after_the_commit(written: WrittenHouse) -> None:
    assert published(written, *[sending(written, f"{n}") for n in range(5)]) == [[1, 2, 3, 4, 5]]


def test_an_operation_that_fails_tells_nothing_and_the_others_of_its_group_do(written: WrittenHouse) -> None:
    assert published(written, sending(written, "a"), failing(), sending(written, "b")) == [[1, 2]]
    # The next one changes something first: the group begins again, with savepoints.
    lost = failing(sending(written, "lost"))
    assert published(written, sending(written, "c"), lost, sending(written, "d")) == [[3, 4]]


def test_a_group_that_is_rolled_back_tells_nothing(written: WrittenHouse) -> None:
    def break_the_transaction(tx: Tx) -> None:
        tx.execute("ROLLBACK")

    assert published(written, sending(written, "a"), break_the_transaction, sending(written, "b")) == []
    assert stored(written) == []
    assert published(written, sending(written, "c")) == [[1]]


# --- reads --------------------------------------------------------------------------


Story = Callable[[Store], Awaitable[None]]


def with_store(directory: Path, story: Story) -> None:
    async def run() -> None:
        store = await Store.open(set_up(directory), DEFAULTS)
        try:
            await story(store)
        finally:
            await store.close()

    asyncio.run(run())


def boots(connection: Connection) -> int:
    return int(connection.execute("SELECT value FROM counter WHERE name = 'boot'").fetchone()[0])


def boot_again(store: Store) -> None:
    """Write on the connection of the writer, which has nothing to do now."""
    store._connection.execute("UPDATE counter SET value = value + 1 WHERE name = 'boot'")


def around_a_write(store: Store) -> Callable[[Connection], tuple[int, int]]:
    def read(connection: Connection) -> tuple[int, int]:
        before = boots(connection)
        boot_again(store)
        return before, boots(connection)

    return read


def test_the_reads_of_one_function_are_one_snapshot(tmp_path: Path) -> None:
    async def story(store: Store) -> None:
        assert store.read(around_a_write(store)) == (2, 2) and store.read(boots) == 3
        assert await store.read_in_thread(around_a_write(store)) == (3, 3)
        assert await store.read_in_thread(boots) == 4

    with_store(tmp_path, story)


def test_reads_inside_a_read_belong_to_its_snapshot_on_either_thread(tmp_path: Path) -> None:
    async def story(store: Store) -> None:
        def read(_: Connection) -> tuple[int, int]:
            before = store.read(boots)
            boot_again(store)
            return before, store.read(boots)

        assert store.read(read) == (2, 2) and await store.read_in_thread(read) == (3, 3)
        assert store.read(boots) == 4

    with_store(tmp_path, story)


def test_a_snapshot_ends_with_its_function_even_if_that_fails(tmp_path: Path) -> None:
    async def story(store: Store) -> None:
        def failing(connection: Connection) -> Any:
            boots(connection)
            raise ValueError("after a read")

        def wrong(connection: Connection) -> Any:
            return connection.execute("SELECT * FROM no_such_table")

        for query, error in ((failing, ValueError), (wrong, sqlite3.OperationalError)):
            with pytest.raises(error):
                store.read(query)
            with pytest.raises(error):
                await store.read_in_thread(query)
        boot_again(store)
        assert store.read(boots) == await store.read_in_thread(boots) == 3
        # No snapshot is left open: the whole WAL can be taken over into the database.
        busy, pages, moved = store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert (busy, pages, moved) == (0, 0, 0)

    with_store(tmp_path, story)
