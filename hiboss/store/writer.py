"""The one thread that changes the database.

Operations waiting at the same moment share one transaction and one fsync (group
commit). An operation's caller hears of it only after COMMIT: what was answered is on
disk.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..config import Settings
from ..crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP, crashpoint
from ..errors import Busy
from ..paths import Home
from .book import Book
from .database import Connection, translate

log = logging.getLogger(__name__)

T = TypeVar("T")

# SQLite errors that speak of one operation's own statement. All others speak of the file:
# then the whole group is lost, and every caller in it is told so.
_OWN_ERRORS = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError)


class Tx:
    """What an operation works with: the connection, inside the group's transaction, and the book."""

    __slots__ = ("book", "execute")

    def __init__(self, connection: Connection) -> None:
        self.execute = connection.execute
        self.book = Book(connection)


Operation = Callable[[Tx], Any]
_Waiting = tuple[Operation, "asyncio.Future[Any]"]
_Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]
_Run = Callable[[Operation, "asyncio.Future[Any]"], _Outcome]


class _HalfDone(Exception):
    """An operation failed after it had changed something."""


class Writer:
    def __init__(self, connection: Connection, home: Home, settings: Settings) -> None:
        self._connection = connection
        self._home = home
        self._group_limit = settings.group_operations
        self._queue_limit = settings.writer_queue
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._tx = Tx(connection)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="hiboss-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def submit(self, operation: Callable[[Tx], T]) -> asyncio.Future[T]:
        """Queue an operation; the future is done after COMMIT. A full queue refuses."""
        if self._queue.qsize() >= self._queue_limit:
            raise Busy(what=f"{self._queue_limit} changes are waiting to be written")
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.put((operation, future))
        return future

    async def close(self) -> None:
        """Write what is queued, then end the thread."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    # --- the writer's own thread ---------------------------------------------------

    def _work(self) -> None:
        stopping = False
        while not stopping:
            group, stopping = self._next_group()
            if group:
                outcomes = self._commit_group(group)
                self._loop.call_soon_threadsafe(_answer, outcomes)

    def _next_group(self) -> tuple[list[_Waiting], bool]:
        group: list[_Waiting] = []
        waiting = self._queue.get()
        while waiting is not None:
            group.append(waiting)
            if len(group) >= self._group_limit:
                return group, False
            try:
                waiting = self._queue.get_nowait()
            except queue.Empty:
                return group, False
        return group, True

    def _commit_group(self, group: list[_Waiting]) -> list[_Outcome]:
        """Every operation of the group happens whole or not at all, whatever the others do."""
        crashpoint(BEFORE_WRITE)
        try:
            try:
                return self._transact(group, self._run)
            except _HalfDone:
                # Rare: an operation failed after its first change. Begin again, with a
                # savepoint around each; without one a send is a fifth cheaper.
                self._roll_back()
                return self._transact(group, self._run_guarded)
        except Exception as error:  # noqa: BLE001 - the writer outlives whatever happens to a group
            return self._lose_group(group, error)

    def _transact(self, group: list[_Waiting], run: _Run) -> list[_Outcome]:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        outcomes = [run(operation, future) for operation, future in group]
        self._tx.book.flush()
        crashpoint(IN_GROUP)
        execute("COMMIT")
        crashpoint(AFTER_COMMIT)
        return outcomes

    def _run(self, operation: Operation, future: asyncio.Future[Any]) -> _Outcome:
        changes = self._connection.total_changes
        self._tx.book.mark()
        try:
            return future, operation(self._tx), None
        except Exception as error:
            _raise_if_of_the_file(error)
            if self._connection.total_changes != changes:
                raise _HalfDone from error
            self._tx.book.back_to_mark(wrote=False)
            return future, None, error

    def _run_guarded(self, operation: Operation, future: asyncio.Future[Any]) -> _Outcome:
        execute = self._connection.execute
        execute("SAVEPOINT op")
        self._tx.book.mark()
        try:
            result = operation(self._tx)
        except Exception as error:  # noqa: BLE001 - handed to the caller, whose door logs what is ours
            _raise_if_of_the_file(error)
            execute("ROLLBACK TO op")
            execute("RELEASE op")
            self._tx.book.back_to_mark(wrote=True)
            return future, None, error
        execute("RELEASE op")
        return future, result, None

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()
        self._tx.book.forget()

    def _lose_group(self, group: list[_Waiting], error: Exception) -> list[_Outcome]:
        try:
            self._roll_back()
        except sqlite3.Error:  # nothing more can be done here; the next BEGIN says what is wrong
            log.exception("A failed group could not be rolled back.", extra={"action": "write"})
        lost = translate(error, self._home) if isinstance(error, sqlite3.Error) else error
        log.error("Nothing of %d changes was written: %s", len(group), lost, extra={"action": "write"})
        return [(future, None, lost) for _, future in group]


def _raise_if_of_the_file(error: Exception) -> None:
    if isinstance(error, sqlite3.Error) and not isinstance(error, _OWN_ERRORS):
        raise error


def _answer(outcomes: list[_Outcome]) -> None:
    for future, result, error in outcomes:
        if future.done():  # the caller has gone; what it asked for is written all the same
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
