"""The writer: the one thread that changes the database.

Operations that wait at the same moment share one transaction and one fsync (group commit).
A caller gets the result of its operation only after COMMIT: what was answered is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ..core.crashpoint import AFTER_COMMIT, BEFORE_WRITE, IN_GROUP, crashpoint
from ..core.envelope import Lane
from ..core.errors import Busy
from ..core.events import Fact
from ..core.paths import Home
from ..core.settings import DEFAULTS, Settings
from .connection import Connection, about_a_statement, translate
from .planned_writes import Done, settle
from .writer_cache import WriterCache

log = logging.getLogger(__name__)

T = TypeVar("T")
LINGER_SECONDS = 0.001


class Tx:
    """What an operation works with: the connection in the group's transaction, and the writer's cache."""

    __slots__ = ("arrived_for", "cache", "chats_for", "execute", "facts", "posts_for", "settings")

    def __init__(self, connection: Connection, settings: Settings = DEFAULTS) -> None:
        self.execute = connection.execute
        self.settings = settings  # those in effect: a reload changes them in place
        self.cache = WriterCache(connection)
        self.arrived_for: list[int] = []  # recipients with news in this group; woken after its COMMIT
        self.facts: list[Fact] = []  # what changed in this group; published after its COMMIT
        self.posts_for: list[Lane] = []  # lanes that got a forward in this group; woken then too
        self.chats_for: list[tuple[int, str]] = []  # (binding, chat) that may be read now; woken then too

    def take_news(self) -> _News:
        """Return what is told after the COMMIT, and begin again with nothing."""
        news = self.arrived_for, self.posts_for, self.chats_for, self.facts
        self.arrived_for, self.posts_for, self.chats_for, self.facts = [], [], [], []
        return news


Operation = Callable[[Tx], Any]
_News = tuple[list[int], list[Lane], list[tuple[int, str]], list[Fact]]
_Waiting = tuple[Operation, Done]
_Outcome = tuple[Done, Any, BaseException | None]
_Run = Callable[[Operation, Done], _Outcome]


class _HalfDone(Exception):
    """An operation failed after it had changed something."""


class Writer:
    """Collects operations on the event loop's thread, and commits them in groups on its own thread."""

    def __init__(self, connection: Connection, home: Home, settings: Settings) -> None:
        self._connection = connection
        self._home = home
        self._settings = settings
        self._collected: list[_Waiting] = []  # not yet given to the thread
        self._handed_over = 0  # to the thread, and not answered yet
        self._expected = 1  # how many were under way when a group was last answered
        self._linger: asyncio.TimerHandle | None = None
        self._submitted = 0  # in total; only the loop's thread counts it
        self._begun = 0  # of those; only the writer's thread counts it
        self._queue: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._taken: list[_Waiting] = []  # from the queue, by the writer's thread
        self._tx = Tx(connection, settings)
        self.arrived: Callable[[list[int]], None] = lambda recipients: None  # set by daemon/wiring
        self.publish: Callable[[list[Fact]], None] = lambda facts: None  # set by daemon/wiring
        self.to_post: Callable[[list[Lane]], None] = lambda lanes: None  # set by daemon/wiring
        self.to_read: Callable[[list[tuple[int, str]]], None] = lambda chats: None  # set by daemon/wiring
        self.before_commit: Callable[[Tx], None] = lambda tx: None  # set by store.py
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, name="hiboss-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """The number of operations that were submitted and are in no group yet."""
        return self._submitted - self._begun

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def submit(self, operation: Callable[[Tx], T]) -> asyncio.Future[T]:
        """Queue an operation; its future is done after COMMIT. Raise Busy if the queue is full."""
        future: asyncio.Future[T] = self._loop.create_future()
        self.enqueue(operation, partial(settle, future))
        return future

    def enqueue(self, operation: Operation, done: Done) -> None:
        """Queue an operation; `done` is called after COMMIT. Raise Busy if the queue is full."""
        if self.waiting >= self._settings.writer_queue:
            waiting = self._settings.writer_queue
            raise Busy(what=f"{waiting} changes are waiting to be written, try again in a moment")
        self._submitted += 1
        self._collected.append((operation, done))
        # Give them to the thread together: when the ones before are done and as many came as were under way
        # then, or after LINGER_SECONDS. Woken by the first one, the writer would pay a COMMIT for a few, and
        # compete for the interpreter with the callers of the rest. A single caller never waits.
        if not self._handed_over:
            self._gather()

    def _gather(self) -> None:
        """The thread has nothing to do: give it what was collected, or wait a little for more."""
        if len(self._collected) >= self._expected:
            if self._expected == 1:
                self._hand_over()
            else:  # when those who are ready too have had their turn
                self._loop.call_soon(self._hand_over)
        elif self._linger is None:
            self._linger = self._loop.call_later(LINGER_SECONDS, self._hand_over)

    def _hand_over(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        if self._collected:
            self._handed_over += len(self._collected)
            self._queue.put(self._collected)
            self._collected = []

    async def close(self) -> None:
        """Write what is queued, then end the thread."""
        self._hand_over()
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _answer(self, outcomes: list[_Outcome], news: _News) -> None:
        """Tell the callers first: what follows from their writes must not keep an answer from them."""
        arrived_for, posts_for, chats_for, facts = news
        self._handed_over -= len(outcomes)
        self._expected = len(outcomes) + self._handed_over + len(self._collected)
        for done, result, error in outcomes:
            try:
                done(result, error)
            except Exception:  # it must not keep their answers from the others
                log.exception("A caller could not be told.", extra={"action": "write"})
        if self._collected and not self._handed_over:
            self._gather()
        try:
            if arrived_for:
                self.arrived(arrived_for)
            if posts_for:
                self.to_post(posts_for)
            if chats_for:
                self.to_read(chats_for)
        finally:
            if facts:  # a fact that is not published would be missed by those who follow, without a gap
                self.publish(facts)

    # --- on the writer's thread ----------------------------------------------------

    def _work(self) -> None:
        stopping = False
        while not stopping:
            group, stopping = self._next_group()
            if group:
                self._begun += len(group)
                outcomes = self._commit_group(group)
                self._loop.call_soon_threadsafe(self._answer, outcomes, self._tx.take_news())

    def _next_group(self) -> tuple[list[_Waiting], bool]:
        """Return the waiting operations, up to the limit of a group, and whether this is the last group."""
        stopping = False
        limit = self._settings.group_operations  # read once: a reload must not change it meanwhile
        while len(self._taken) < limit and not stopping:
            try:
                more = self._queue.get(block=not self._taken)
            except queue.Empty:
                break
            if more is None:
                stopping = True
            else:
                self._taken += more
        group, self._taken = self._taken[:limit], self._taken[limit:]
        if stopping and self._taken:
            self._queue.put(None)  # more than one group is left: stop after the next ones
        return group, stopping and not self._taken

    def _commit_group(self, group: list[_Waiting]) -> list[_Outcome]:
        """Commit a group. Each operation is done completely or not at all, whatever the others do."""
        crashpoint(BEFORE_WRITE)
        try:
            try:
                return self._transact(group, self._run)
            except _HalfDone:
                # Rare: an operation failed after its first change. Begin again with a savepoint
                # around each operation; without savepoints a send costs a fifth less.
                self._roll_back()
                return self._transact(group, self._run_in_savepoint)
        except Exception as error:  # noqa: BLE001 - the writer must survive every failure of a group
            return self._lose_group(group, error)

    def _transact(self, group: list[_Waiting], run: _Run) -> list[_Outcome]:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        outcomes = [run(operation, done) for operation, done in group]
        self.before_commit(self._tx)
        self._tx.cache.flush()
        crashpoint(IN_GROUP)
        execute("COMMIT")
        crashpoint(AFTER_COMMIT)
        return outcomes

    def _run(self, operation: Operation, done: Done) -> _Outcome:
        changes = self._connection.total_changes
        self._tx.cache.mark()
        told = len(self._tx.facts)
        try:
            return done, operation(self._tx), None
        except Exception as error:
            _raise_if_about_the_file(error, self._connection)
            if self._connection.total_changes != changes:
                raise _HalfDone from error
            self._tx.cache.back_to_mark(wrote=False)
            del self._tx.facts[told:]
            return done, None, error

    def _run_in_savepoint(self, operation: Operation, done: Done) -> _Outcome:
        execute = self._connection.execute
        self._tx.cache.mark(flush=True)
        execute("SAVEPOINT op")
        told = len(self._tx.facts)
        try:
            result = operation(self._tx)
        except Exception as error:  # noqa: BLE001 - given to the caller; its door logs defects
            _raise_if_about_the_file(error, self._connection)
            execute("ROLLBACK TO op")
            execute("RELEASE op")
            self._tx.cache.back_to_mark(wrote=True)
            del self._tx.facts[told:]
            return done, None, error
        execute("RELEASE op")
        return done, result, None

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.rollback()
        self._tx.cache.forget()
        self._tx.take_news()

    def _lose_group(self, group: list[_Waiting], error: Exception) -> list[_Outcome]:
        try:
            self._roll_back()
        except sqlite3.Error:  # nothing more can be done here; the next BEGIN reports the reason
            log.exception("A failed group could not be rolled back.", extra={"action": "write"})
        lost = translate(error, self._home) if isinstance(error, sqlite3.Error) else error
        log.error("A group of %d changes was not written: %s", len(group), lost, extra={"action": "write"})
        return [(done, None, lost) for _, done in group]


def _raise_if_about_the_file(error: Exception, connection: Connection) -> None:
    """Raise an error that the whole group shares: about the file, or one that ended the transaction."""
    if isinstance(error, sqlite3.Error) and not (about_a_statement(error) and connection.in_transaction):
        raise error
