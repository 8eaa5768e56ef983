"""A queue of keys (lanes, agents) of which only a limited number work at the same time.

Keys may belong to groups, and the limit holds for each group: what hangs in one group takes no
place from another. A key that is woken while it works is worked on once more afterwards, so no
wake is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
log = logging.getLogger(__name__)


class WorkQueue(Generic[K]):
    """Call `work(key, eager)` for woken keys, on the event loop's thread. `eager`: something new came."""

    def __init__(
        self,
        limit: Callable[[], int],
        work: Callable[[K, bool], Coroutine[Any, Any, None]],
        group: Callable[[K], Hashable] = lambda key: None,
    ) -> None:
        self._limit = limit  # of each group; called each time: it is a setting
        self._work = work
        self._group = group
        self._working: dict[K, asyncio.Task[None]] = {}
        self._places: Counter[Hashable] = Counter()  # by group: how many of its keys work
        self._aside: set[K] = set()  # they work, and take no place
        self._again: dict[K, bool] = {}  # woken while it worked; the value is `eager`
        self._first: set[K] = set()  # of these: they go before those that wait for a place
        self._lines: defaultdict[Hashable, dict[K, bool]] = defaultdict(dict)  # by group: no place was free
        self._closed = False
        self.left: Callable[[K], None] = lambda key: None  # called when the work for a key has ended

    @property
    def closed(self) -> bool:
        return self._closed

    def wake(self, key: K, *, eager: bool = False) -> None:
        """Start the work for a key: now, when the limit allows it, or again after the current work."""
        if self._closed:
            return
        group = self._group(key)
        if key in self._working:
            self._again[key] = self._again.get(key, False) or eager
        elif self._places[group] >= self._limit():
            line = self._lines[group]
            line[key] = line.get(key, False) or eager
        else:
            task = asyncio.create_task(self._work(key, eager))
            self._working[key] = task
            self._places[group] += 1
            task.add_done_callback(partial(self._finished, key))

    def once_more(self, key: K) -> None:
        """Put a working key at the end of the queue: it may have more to do."""
        self._again.setdefault(key, False)

    def is_working(self, key: K) -> bool:
        """Tell whether a key is worked on now."""
        return key in self._working

    def waiting(self, group: Hashable = None) -> int:
        """Return how many keys of a group wait for a place."""
        return len(self._lines.get(group, ()))

    def may_go_on(self, key: K) -> bool:
        """Tell whether a working key may go on with more work at once: nobody waits for its place."""
        group = self._group(key)
        waits = bool(self._lines.get(group)) or self._places[group] > self._limit()
        return key in self._working and key not in self._aside and not waits and not self._closed

    def keep_place(self, key: K) -> None:
        """Let a working key that is worked on once more have its place again before any other gets it."""
        if key in self._working:
            self._first.add(key)

    def set_aside(self, key: K) -> None:
        """Give the place of a working key to another one: it stands still for now."""
        if key in self._working and key not in self._aside:
            self._aside.add(key)
            self._places[self._group(key)] -= 1
            self._advance(self._group(key))

    def aside(self, group: Hashable) -> int:
        """Return how many keys of a group were set aside."""
        return sum(self._group(key) == group for key in self._aside)

    def take_back(self, key: K) -> None:
        """Let a key that was set aside take a place again, even above the limit."""
        if key in self._aside:
            self._aside.remove(key)
            self._places[self._group(key)] += 1

    def _finished(self, key: K, task: asyncio.Task[None]) -> None:
        group = self._group(key)
        del self._working[key]
        self.take_back(key)
        self._places[group] -= 1
        if not task.cancelled() and task.exception() is not None:
            log.error("Work was not finished.", exc_info=task.exception(), extra={"action": "work"})
        eager = self._again.pop(key, None)
        if eager is not None and key in self._first:
            self._lines[group] = {key: eager, **self._lines[group]}
        elif eager is not None:
            self._lines[group][key] = eager
        self._first.discard(key)
        try:
            if not self._closed:
                self.left(key)
        except Exception:  # the others must go on
            log.exception("What follows the work failed.", extra={"action": "work"})
        self._advance(group)

    def _advance(self, group: Hashable) -> None:
        """Give the free places of a group to those that wait for one."""
        line = self._lines[group]
        while line and not self._closed and self._places[group] < self._limit():
            first = next(iter(line))
            self.wake(first, eager=line.pop(first))
        if not line:
            del self._lines[group]
        if not self._places[group]:
            del self._places[group]

    def close(self) -> list[asyncio.Task[None]]:
        """Start no more work; return the tasks that still work."""
        self._closed = True
        self._lines.clear()
        return list(self._working.values())
