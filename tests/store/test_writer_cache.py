"""The address book: whatever is rolled back, the numbers it gives out have no gap and no double.

Driven through the real writer over a real database. `group` makes several operations wait
behind one another, so that they are surely written in one transaction.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiboss.core.address import Address
from hiboss.core.envelope import Draft
from hiboss.core.errors import NotFound, StoreFull, UnknownRecipient
from hiboss.core.paths import Home
from hiboss.core.settings import DEFAULTS
from hiboss.store import agents, messages, writer_cache
from hiboss.store.connection import Connection, connect
from hiboss.store.group_commit import Tx, Writer
from hiboss.store.invariants import violations
from hiboss.store.migrations import migrate

Operation = Callable[[Tx], Any]
NAMES = ("ada", "bob", "eve")


class Refused(Exception):
    """What an operation of these tests fails with."""


class Bench:
    """A writer, and a second connection that sees what is committed."""

    def __init__(self, writer: Writer, connection: Connection) -> None:
        self.writer = writer
        self.connection = connection

    async def group(self, *operations: Operation) -> list[Any]:
        """Their answers or errors, all written in one transaction."""
        begun, opened = threading.Event(), threading.Event()

        def gate(tx: Tx) -> bool:
            begun.set()
            return opened.wait(30)

        passed = self.writer.submit(gate)
        assert await asyncio.to_thread(begun.wait, 30)  # a group of its own; what comes now is the next one
        waiting = [self.writer.submit(operation) for operation in operations]
        opened.set()
        assert await passed
        return await asyncio.gather(*waiting, return_exceptions=True)

    def seqs(self) -> dict[int, list[int]]:
        """The sequence of each conversation in the order its messages were written."""
        rows = self.connection.execute("SELECT conversation, seq FROM message ORDER BY id").fetchall()
        found: dict[int, list[int]] = {}
        for row in rows:
            found.setdefault(row["conversation"], []).append(row["seq"])
        return found

    def arrived(self) -> list[int]:
        rows = self.connection.execute("SELECT arrived FROM envelope ORDER BY id")
        return [row["arrived"] for row in rows]

    def check(self, sent: int) -> None:
        """So many messages to one recipient each are there, numbered without gap or double."""
        assert violations(self.connection) == []
        assert self.arrived() == list(range(1, sent + 1))
        for seqs in self.seqs().values():
            assert seqs == list(range(1, len(seqs) + 1))
        counter = self.connection.execute("SELECT value FROM counter WHERE name = 'arrived'").fetchone()
        assert counter["value"] == sent


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A migrated database in which ada, bob and eve are registered; to be copied."""
    home = Home(str(tmp_path_factory.mktemp("book")))
    home.create()
    connection = connect(home, wait_seconds=5)
    migrate(connection, home)
    for name in NAMES:
        agents.register(Tx(connection), name, {}, now=0)
    connection.close()  # leaves no WAL behind
    yield Path(home.database)


@asynccontextmanager
async def _bench(template: Path) -> AsyncIterator[Bench]:
    with tempfile.TemporaryDirectory() as directory:
        home = Home(directory)
        shutil.copy(template, home.database)
        connection, second = connect(home, wait_seconds=5), connect(home, wait_seconds=5, read_only=True)
        writer = Writer(connection, home, DEFAULTS)
        try:
            yield Bench(writer, second)
        finally:
            await writer.close()
            connection.close()
            second.close()


def on_a_bench(template: Path, work: Callable[[Bench], Awaitable[None]]) -> None:
    async def run() -> None:
        async with _bench(template) as bench:
            await work(bench)

    asyncio.run(run())


# --- operations ----------------------------------------------------------------------


def send(sender: str, to: str, text: str = "hello") -> Operation:
    def operation(tx: Tx) -> Any:
        entry = tx.cache.live_address(Address("agent", sender))
        assert entry is not None
        draft = Draft(sender=entry.address, caller=entry.id, to=(Address("agent", to),), text=text)
        return messages.insert(tx, draft, now=0)

    return operation


def half_done(sender: str, to: str) -> Operation:
    """Writes two messages, then fails."""

    def operation(tx: Tx) -> Any:
        send(sender, to)(tx)
        send(sender, to)(tx)
        raise Refused

    return operation


def takes_numbers(conversation: int) -> Operation:
    """Takes numbers, writes nothing, then fails."""

    def operation(tx: Tx) -> Any:
        tx.cache.next_seq(conversation)
        tx.cache.next_seq(conversation)
        tx.cache.next_arrived()
        raise Refused

    return operation


def breaks_the_group(sender: str, to: str) -> Operation:
    """Fails in a way that speaks of the file, not of this operation: all of its group is lost."""

    def operation(tx: Tx) -> Any:
        send(sender, to)(tx)
        tx.execute(f"PRAGMA max_page_count = {tx.execute('PRAGMA page_count').fetchone()[0]}")
        try:  # there is no room for so much
            tx.execute("INSERT INTO config (key, value) VALUES ('x', CAST(zeroblob(10000000) AS TEXT))")
        finally:
            tx.execute("PRAGMA max_page_count = 4294967294")

    return operation


# --- tests ---------------------------------------------------------------------------


def test_numbers_go_up_one_by_one_in_the_order_of_sending(template: Path) -> None:
    async def work(bench: Bench) -> None:
        await bench.group(send("ada", "bob"), send("bob", "ada"), send("ada", "eve"))
        await bench.group(send("ada", "bob"))
        assert list(bench.seqs().values()) == [[1, 2, 3], [1]]
        bench.check(sent=4)

    on_a_bench(template, work)


@pytest.mark.parametrize("failing", [half_done("ada", "bob"), half_done("bob", "eve"), send("ada", "nobody")])
def test_an_operation_that_fails_leaves_no_gap_in_its_group(failing: Operation, template: Path) -> None:
    async def work(bench: Bench) -> None:
        answers = await bench.group(
            send("ada", "bob"), failing, send("ada", "bob"), failing, send("bob", "eve")
        )
        assert [isinstance(answer, Exception) for answer in answers] == [False, True, False, True, False]
        assert sorted(map(len, bench.seqs().values())) == [1, 2]
        bench.check(sent=3)
        await bench.group(send("ada", "bob"))
        bench.check(sent=4)

    on_a_bench(template, work)


def test_an_operation_that_takes_numbers_and_writes_nothing_gives_them_back(template: Path) -> None:
    async def work(bench: Bench) -> None:
        (first,) = await bench.group(send("ada", "bob"))
        takes = takes_numbers(first.conversation)
        answers = await bench.group(takes, send("ada", "bob"), takes, send("ada", "bob"), takes)
        assert [type(answer) for answer in answers[::2]] == [Refused] * 3
        bench.check(sent=3)
        await bench.group(send("ada", "bob"))
        bench.check(sent=4)

    on_a_bench(template, work)


def test_a_conversation_begun_by_what_was_rolled_back_is_begun_anew(template: Path) -> None:
    async def work(bench: Bench) -> None:
        await bench.group(half_done("ada", "bob"), send("ada", "eve"))
        await bench.group(half_done("ada", "bob"))
        bench.check(sent=1)
        await bench.group(send("ada", "bob"), send("ada", "eve"))
        assert sorted(map(tuple, bench.seqs().values())) == [(1,), (1, 2)]
        bench.check(sent=3)

    on_a_bench(template, work)


def test_an_agent_registered_by_what_was_rolled_back_is_not_known(template: Path) -> None:
    def registers(tx: Tx) -> None:
        agents.register(tx, "kai", {}, now=0)
        assert tx.cache.live_address(Address("agent", "kai")) is not None
        raise Refused

    async def work(bench: Bench) -> None:
        _, unknown = await bench.group(registers, send("ada", "kai"))
        assert isinstance(unknown, UnknownRecipient)
        await bench.group(lambda tx: agents.register(tx, "kai", {}, now=0), send("ada", "kai"))
        bench.check(sent=1)

    on_a_bench(template, work)


def test_an_agent_deleted_by_what_was_rolled_back_is_still_there_and_one_deleted_is_not(
    template: Path,
) -> None:
    def deletes(tx: Tx) -> None:
        agents.delete(tx, "bob", now=1)
        raise Refused

    async def work(bench: Bench) -> None:
        await bench.group(send("ada", "bob"), deletes, send("ada", "bob"))
        bench.check(sent=2)
        _, unknown = await bench.group(lambda tx: agents.delete(tx, "bob", now=1), send("ada", "bob"))
        assert isinstance(unknown, UnknownRecipient)
        bench.check(sent=2)

    on_a_bench(template, work)


def test_a_lost_group_is_lost_for_all_and_its_numbers_are_given_again(template: Path) -> None:
    async def work(bench: Bench) -> None:
        await bench.group(send("ada", "bob"))
        answers = await bench.group(send("ada", "bob"), send("ada", "eve"), breaks_the_group("bob", "eve"))
        assert [type(answer) for answer in answers] == [StoreFull] * 3
        bench.check(sent=1)
        await bench.group(send("ada", "bob"), send("ada", "eve"), send("bob", "eve"))
        bench.check(sent=4)

    on_a_bench(template, work)


def test_a_full_disk_loses_the_group_and_no_number(template: Path) -> None:
    def allow(pages: int) -> Operation:
        return lambda tx: tx.execute(f"PRAGMA max_page_count = {pages}").fetchone()[0]

    async def work(bench: Bench) -> None:
        await bench.group(send("ada", "bob"))
        (most,) = await bench.group(allow(1))  # fewer than there are already means: no page more
        big = send("ada", "bob", text="x" * 500_000)
        answers = await bench.group(send("ada", "bob"), big, send("ada", "eve"))
        assert [type(answer) for answer in answers] == [StoreFull] * 3
        bench.check(sent=1)
        assert await bench.group(allow(most + 1_000)) == [most + 1_000]
        await bench.group(send("ada", "bob"), big)
        bench.check(sent=3)

    on_a_bench(template, work)


def test_a_number_in_a_conversation_that_is_not_there_is_refused(template: Path) -> None:
    async def work(bench: Bench) -> None:
        (answer,) = await bench.group(lambda tx: tx.cache.next_seq(4711))
        assert isinstance(answer, NotFound)

    on_a_bench(template, work)


def test_the_books_memory_stays_bounded_also_when_many_sends_are_refused(
    template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_cache, "MEMORY", 20)

    def size(tx: Tx) -> int:
        return sum(len(value) for value in vars(tx.cache).values() if isinstance(value, (dict, list)))

    async def work(bench: Bench) -> None:
        for number in range(60):
            name = f"agent-{number}"
            await bench.group(lambda tx, name=name: agents.register(tx, name, {}, now=0))
            await bench.group(send("ada", name), send("ada", "nobody"))
        (held,) = await bench.group(size)
        assert held <= 2 * writer_cache.MEMORY
        bench.check(sent=60)

    on_a_bench(template, work)


OPERATIONS = st.one_of(
    st.tuples(st.just(send), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just(half_done), st.sampled_from(NAMES), st.sampled_from(NAMES)),
    st.tuples(st.just(send), st.sampled_from(NAMES), st.just("nobody")),
    st.tuples(st.just(breaks_the_group), st.sampled_from(NAMES), st.sampled_from(NAMES)),
)


@settings(max_examples=30)
@given(groups=st.lists(st.lists(OPERATIONS, min_size=1, max_size=6), max_size=6))
def test_whatever_fails_in_whatever_group_the_numbers_have_no_gap(
    template: Path, groups: list[list[Any]]
) -> None:
    async def work(bench: Bench) -> None:
        sent = 0
        for group in groups:
            answers = await bench.group(*(make(sender, to) for make, sender, to in group))
            sent += sum(not isinstance(answer, Exception) for answer in answers)
            lost = any(make is breaks_the_group for make, _, _ in group)
            good = 0 if lost else sum(make is send and to != "nobody" for make, _, to in group)
            assert sum(not isinstance(answer, Exception) for answer in answers) == good
        bench.check(sent)

    on_a_bench(template, work)
