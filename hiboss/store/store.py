"""The store as other parts use it: writes go through the writer thread, reads use their own connections."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ..core import clock
from ..core.envelope import Lane
from ..core.errors import Busy, HibossError, HomeUnusable, StoreError
from ..core.events import Fact
from ..core.paths import Home
from ..core.settings import Settings
from . import counters, schema_files, state_watches
from .connection import Connection, about_a_statement, connect, translate
from .group_commit import Tx, Writer
from .planned_writes import Done

log = logging.getLogger(__name__)
T = TypeVar("T")
U = TypeVar("U")
READERS = 2


class Store:
    """The open database. Open it with `Store.open`, while holding the daemon's lock."""

    def __init__(self, home: Home, settings: Settings, connection: Connection) -> None:
        self.home = home
        self._settings = settings
        self._connection = connection
        self._near = connect(home, wait_seconds=settings.lock_wait_seconds, read_only=True)
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="hiboss-reader")
        self._local = threading.local()
        self._pooled: list[Connection] = []
        self._writer = Writer(connection, home, settings)
        self._writer.before_commit = state_watches.tell_due
        self.epoch = counters.epoch(self._near)
        self.run_marks = counters.run_marks(self._near, home.identity)
        self.boot = 0

    @classmethod
    async def open(cls, home: Home, settings: Settings) -> Store:
        """Open the database, migrate it, and take a new boot number."""
        connection = connect(home, wait_seconds=settings.lock_wait_seconds)
        try:
            _bring_up_to_date(connection, home)
            store = cls(home, settings, connection)
        except sqlite3.Error as error:
            connection.close()
            raise translate(error, home) from error
        except HibossError:
            connection.close()
            raise
        store.boot = await store.write(store._begin)
        return store

    def _begin(self, tx: Tx) -> int:
        counters.note_home(tx, self.home.identity)
        return counters.next_boot(tx)

    @property
    def waiting(self) -> int:
        """The number of changes that are not written yet."""
        return self._writer.waiting

    @property
    def is_writing(self) -> bool:
        """Whether the writer takes changes. That they can be stored is not known before one is written."""
        return self._writer.is_alive

    def tell_arrivals(self, tell: Callable[[list[int]], None]) -> None:
        """Set the function that is called after each COMMIT with the addresses for which there is news."""
        self._writer.arrived = tell

    def tell_facts(self, publish: Callable[[list[Fact]], None]) -> None:
        """Set the function that is called after each COMMIT with the facts of that group, in order."""
        self._writer.publish = publish

    def tell_posts(self, tell: Callable[[list[Lane]], None]) -> None:
        """Set the function that is called after each COMMIT with the lanes that got a forward."""
        self._writer.to_post = tell

    def tell_chats(self, tell: Callable[[list[tuple[int, str]]], None]) -> None:
        """Set the function that is called after each COMMIT with the chats that may be read now."""
        self._writer.to_read = tell

    def write(self, operation: Callable[[Tx], T]) -> asyncio.Future[T]:
        """Run an operation in the writer; the future is done after COMMIT."""
        return self._writer.submit(operation)

    def enqueue(self, operation: Callable[[Tx], T], done: Done) -> None:
        """Do the same without a future: `done` is called after COMMIT."""
        self._writer.enqueue(operation, done)

    async def write_until_done(self, operation: Callable[[Tx], T]) -> T:
        """Run an operation that must not be lost: retry while the store is busy or cannot be used."""
        return await self.timed_write_until_done(lambda tx, now: operation(tx))

    async def timed_write_until_done(self, operation: Callable[[Tx, int], T]) -> T:
        """Do the same, with the time of each attempt.

        So what is decided by the time agrees with what is stored, also when somebody sets the clock
        meanwhile: that moves what waits, in the order of the writer (routing/clock_watch.py).
        """
        pause = 0.1
        while True:
            now = clock.now()
            try:
                return await self.write(lambda tx: operation(tx, now))  # noqa: B023 - awaited here
            except (Busy, StoreError, HomeUnusable) as error:  # HomeUnusable: read-only for a moment
                log.error("A change waits for the store: %s", error, extra={"action": "write"})
                await asyncio.sleep(pause)
                pause = min(pause * 2, 10.0)

    def read(self, query: Callable[[Connection], T]) -> T:
        """Run a fast read (one that follows an index) at once, on this thread; all it reads is one snapshot.

        Inside another read it is part of that one's snapshot. So several reads become one by a
        read around them, on the event loop's thread and in `read_in_thread`.
        """
        outer: Connection | None = getattr(self._local, "reading", None)
        if outer is not None:
            return query(outer)
        return self._read_snapshot(self._near, query)

    async def read_in_thread(self, query: Callable[[Connection], T]) -> T:
        """Run a read that may take long, on another thread; all it reads is one snapshot."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._read_pooled, query)

    async def read_and_go_on(self, query: Callable[[Connection], T], go_on: Callable[[T], U]) -> U:
        """Do the same, and go on with what was read, on that thread. The snapshot is closed: it may wait."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: go_on(self._read_pooled(query)))

    def _read_pooled(self, query: Callable[[Connection], T]) -> T:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = connect(self.home, wait_seconds=self._settings.lock_wait_seconds, read_only=True)
            self._local.connection = connection
            self._pooled.append(connection)
        return self._read_snapshot(connection, query)

    def _read_snapshot(self, connection: Connection, query: Callable[[Connection], T]) -> T:
        """Read in one transaction. It never waits for anything: an open snapshot keeps the WAL growing."""
        self._local.reading = connection
        try:
            connection.execute("BEGIN")
            return query(connection)
        except sqlite3.Error as error:
            if about_a_statement(error):
                raise
            raise translate(error, self.home) from error
        finally:
            self._local.reading = None
            connection.rollback()  # there is nothing to commit

    async def close(self) -> None:
        """Write what is queued, then close all connections."""
        await self._writer.close()
        await asyncio.to_thread(self._pool.shutdown)
        for connection in (*self._pooled, self._near, self._connection):
            connection.close()


def _bring_up_to_date(connection: Connection, home: Home) -> None:
    if schema_files.is_current(connection):
        schema_files.renew_derived(connection)
        return
    from .migrations import migrate  # 4 MB and a tenth of the start, for a store that has another schema

    migrate(connection, home)
