"""Places: who is at work and who stands in line, when only so many may work at the same time.

Whoever is woken while at work looks once more afterwards, so no wake is ever lost.
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
    """Belongs to the event loop's thread. `work` is done for a key; True: something new came for it."""

    def __init__(
        self, number: Callable[[], int], work: Callable[[K, bool], Coroutine[Any, Any, None]]
    ) -> None:
        self._number = number  # asked each time: it is a setting
        self._work = work
        self._working: dict[K, asyncio.Task[None]] = {}
        self._again: dict[K, bool] = {}  # woken while they worked
        self._line: dict[K, bool] = {}  # woken, and no place free
        self._closed = False
        self.left: Callable[[K], None] = lambda key: None  # told when one has left its place

    @property
    def closed(self) -> bool:
        return self._closed

    def wake(self, key: K, *, eager: bool = False) -> None:
        """Let it work: now, when a place is free, or once more."""
        if self._closed:
            return
        if key in self._working:
            self._again[key] = self._again.get(key, False) or eager
        elif len(self._working) >= self._number():
            self._line[key] = self._line.get(key, False) or eager
        else:
            task = asyncio.create_task(self._work(key, eager))
            self._working[key] = task
            task.add_done_callback(partial(self._finished, key))

    def once_more(self, key: K) -> None:
        """Said by one at work: there may be more, and others come first."""
        self._again.setdefault(key, False)

    def _finished(self, key: K, task: asyncio.Task[None]) -> None:
        del self._working[key]
        if not task.cancelled() and task.exception() is not None:
            log.error("Work was left behind.", exc_info=task.exception(), extra={"action": "work"})
        eager = self._again.pop(key, None)
        if eager is not None:
            self._line[key] = eager
        if not self._closed:
            self.left(key)
        while self._line and not self._closed and len(self._working) < self._number():
            nearest = next(iter(self._line))
            self.wake(nearest, eager=self._line.pop(nearest))

    def close(self) -> list[asyncio.Task[None]]:
        """Nobody begins any more; those still at work."""
        self._closed = True
        self._line.clear()
        return list(self._working.values())
