"""Run blocking calls that may hang, a few at once, in threads of their own.

A file system that does not answer (a network share that is gone) blocks a thread for ever. In the
shared thread pool a few such threads would block everything else, and the stop of the daemon. Here
a call that takes longer than HANGS_SECONDS no longer counts: another one gets its place.

Not all at once: a hundred threads that want the interpreter's lock keep the event loop from it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from ..core.contracts.failures import LaneError

T = TypeVar("T")
PARALLEL = 8  # calls that run and do not hang
HANGS_SECONDS = 0.5
IDLE_LOOKS = 10  # after which a thread without work ends


class _Call:
    """One call, and where its outcome goes."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self._loop.create_future()
        self.started = 0.0  # it has not begun
        self.ended = False

    def run(self) -> None:
        try:
            result = self._work()
        except Exception as error:  # noqa: BLE001 - raised again where it is awaited
            self._tell(self.future.set_exception, error)
        else:
            self._tell(self.future.set_result, result)
        self.ended = True

    def _tell(self, tell: Callable[[Any], None], outcome: Any) -> None:
        def in_loop() -> None:
            if not self.future.done():
                tell(outcome)

        try:
            self._loop.call_soon_threadsafe(in_loop)
        except RuntimeError:
            pass  # the loop is closed: the daemon has stopped


class _Threads:
    """Threads that work off calls. They are reused: to start one costs as much as a small file."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._waiting: deque[_Call] = deque()
        self._running: set[_Call] = set()
        self._idle = 0  # threads without work

    def submit(self, call: _Call) -> None:
        """Run a call when a place is free."""
        with self._change:
            self._waiting.append(call)
            self._call_threads()

    def _call_threads(self) -> None:
        """Have a thread for each call that may begin; and while calls wait, one that looks for places."""
        free = self._free()
        if self._idle < min(len(self._waiting), max(free, 1)):
            threading.Thread(target=self._work_off, name="blocking calls", daemon=True).start()
            self._idle += 1  # until it takes a call
        elif free > 0:
            self._change.notify()

    def withdraw(self, call: _Call) -> bool:
        """Take back a call; return whether it had not begun."""
        with self._change:
            if call in self._waiting:
                self._waiting.remove(call)
            return not call.started

    def _free(self) -> int:
        hangs = monotonic() - HANGS_SECONDS
        return PARALLEL - sum(call.started > hangs for call in self._running)

    def _work_off(self) -> None:
        while (call := self._next()) is not None:
            call.run()
            with self._change:
                self._running.discard(call)
                self._idle += 1

    def _next(self) -> _Call | None:
        """Return a call that may begin; None if there was none for a while."""
        with self._change:
            looks = 0
            while not (self._waiting and self._free() > 0):
                if not self._waiting:
                    looks += 1
                if looks > IDLE_LOOKS:
                    self._idle -= 1
                    return None
                self._change.wait(HANGS_SECONDS)
            self._idle -= 1
            call = self._waiting.popleft()
            call.started = monotonic()
            self._running.add(call)
            if self._waiting:
                self._call_threads()
            return call


_threads = _Threads()
_abandoned: dict[str, _Call] = {}  # by place: a call whose caller was cancelled


async def run_blocking(place: str, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function in a thread; return or raise what it does.

    Raises LaneError while an earlier call for the same place still hangs, so that threads do not pile up.
    """
    earlier = _abandoned.get(place)
    if earlier is not None and not earlier.ended:
        raise LaneError("hangs", f"{place} does not answer")
    _abandoned.pop(place, None)
    call = _Call(partial(function, *arguments))
    _threads.submit(call)
    try:
        return await call.future  # type: ignore[no-any-return] # what the function returned
    except asyncio.CancelledError:
        if not _threads.withdraw(call):
            _abandoned[place] = call
        raise
