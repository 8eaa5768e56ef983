"""All reads of one function see the same state of the database, whatever is written meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.settings import DEFAULTS
from hiboss.store.connection import Connection
from hiboss.store.store import Store
from tests.support.daemons import set_up

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
        assert store.read(around_a_write(store)) == (2, 2)
        assert store.read(boots) == 3
        assert await store.read_in_thread(around_a_write(store)) == (3, 3)
        assert await store.read_in_thread(boots) == 4

    with_store(tmp_path, story)


def test_reads_inside_a_read_belong_to_its_snapshot_on_either_thread(tmp_path: Path) -> None:
    async def story(store: Store) -> None:
        def read(_: Connection) -> tuple[int, int]:
            before = store.read(boots)
            boot_again(store)
            return before, store.read(boots)

        assert store.read(read) == (2, 2)
        assert await store.read_in_thread(read) == (3, 3)
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
