"""A queue of keys (lanes, agents) of which only a limited number work at the same time.

A key that is woken while it works is worked on once more afterwards, so no wake is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)


class WorkQueue(Generic[K]):
    """Call `work(key, eager)` for woken keys, on the event loop's thread. `eager`: something new came."""

    def __init__(
        self, limit: Callable[[], int], work: Callable[[K, bool], Coroutine[Any, Any, None]]
    ) -> None:
        self._limit = limit  # called each time: it is a setting
        self._work = work
        self._working: dict[K, asyncio.Task[None]] = {}
        self._again: dict[K, bool] = {}  # woken while it worked; the value is `eager`
        self._line: dict[K, bool] = {}  # woken while the limit was reached
        self._closed = False
        self.left: Callable[[K], None] = lambda key: None  # called when the work for a key has ended

    @property
    def closed(self) -> bool:
        return self._closed

    def wake(self, key: K, *, eager: bool = False) -> None:
        """Start the work for a key: now, when the limit allows it, or again after the current work."""
        if self._closed:
            return
        if key in self._working:
            self._again[key] = self._again.get(key, False) or eager
        elif len(self._working) >= self._limit():
            self._line[key] = self._line.get(key, False) or eager
        else:
            task = asyncio.create_task(self._work(key, eager))
            self._working[key] = task
            task.add_done_callback(partial(self._finished, key))

    def once_more(self, key: K) -> None:
        """Put a working key at the end of the queue: it may have more to do."""
        self._again.setdefault(key, False)

    def _finished(self, key: K, task: asyncio.Task[None]) -> None:
        del self._working[key]
        if not task.cancelled() and task.exception() is not None:
            log.error("Work was not finished.", exc_info=task.exception(), extra={"action": "work"})
        eager = self._again.pop(key, None)
        if eager is not None:
            self._line[key] = eager
        if not self._closed:
            self.left(key)
        while self._line and not self._closed and len(self._working) < self._limit():
            first = next(iter(self._line))
            self.wake(first, eager=self._line.pop(first))

    def close(self) -> list[asyncio.Task[None]]:
        """Start no more work; return the tasks that still work."""
        self._closed = True
        self._line.clear()
        return list(self._working.values())
