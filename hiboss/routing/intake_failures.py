"""What is said of an update that could not be digested, and how its chat waits until the next try."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from ..core import bounded_calls
from ..core.contracts.failures import ERROR_CHARACTERS, LaneError, Refused, named_seconds
from ..core.errors import Busy, HibossError, HomeUnusable, StoreError
from ..core.quoting import storable
from ..core.work_queue import WorkQueue

# Between two tries while the platform cannot be reached: as long as it has failed so far, within these.
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
AGAIN_SECONDS = 1.0  # at least between two tries of a line, however often the platform answers other calls
MOST_PLATFORM_SECONDS = 86_400.0  # for which failures of the platform count as no tries


def is_of_the_store(error: HibossError) -> bool:
    """Tell whether an error is about the store or the home, and not about what came in."""
    return isinstance(error, (Busy, StoreError, HomeUnusable))


def problem_of(error: BaseException) -> str:
    if isinstance(error, Refused):
        return storable(error.why, ERROR_CHARACTERS)
    if isinstance(error, (LaneError, HibossError)):
        return storable(error, ERROR_CHARACTERS)
    if isinstance(error, bounded_calls.TookTooLong):
        return "it took too long"
    return f"{type(error).__name__}: {storable(error, ERROR_CHARACTERS)}"


class Line(NamedTuple):
    """The updates of one chat, digested in order."""

    binding: int
    chat: str


class Later(Exception):
    """The line waits for some seconds."""

    def __init__(self, seconds: float, *, is_named: bool = False) -> None:
        super().__init__(seconds)
        self.seconds = seconds
        self.is_named = is_named  # by the platform


def later_after(error: BaseException, pause: float) -> Later:
    """Return what to raise after a failure: the line waits as long as the platform said, else for `pause`."""
    named = named_seconds(error.retry_after) if isinstance(error, LaneError) else None
    return Later(pause if named is None else named, is_named=named is not None)


@dataclass(slots=True)
class LineState:
    """What is remembered of a line that waits. Times are of the loop's clock."""

    until: float = 0.0  # not before; 0: it waits no more
    is_named: bool = False  # the platform named this time
    timer: asyncio.TimerHandle | None = None
    seen: int = 0  # the last update that NotYet was said for
    waits: int = 0  # how often in a row without a new one
    failing_since: float | None = None  # the platform fails
    failed_at: float = 0.0  # the last time
    early: int = 0  # how often it waited for the id of a post

    def pause_of_platform(self) -> float | None:
        """Note that the platform failed; return the pause until the next try, None after a day."""
        self.failed_at = asyncio.get_running_loop().time()
        if self.failing_since is None:
            self.failing_since = self.failed_at
        lasted = self.failed_at - self.failing_since
        if lasted >= MOST_PLATFORM_SECONDS:
            return None
        return min(max(lasted, SHORTEST_PAUSE), LONGEST_PAUSE)


class LineWaits:
    """The lines that wait, and the timers that wake them."""

    def __init__(self, queue: WorkQueue[Line]) -> None:
        self._queue = queue
        self._states: dict[Line, LineState] = {}

    def state(self, line: Line) -> LineState:
        return self._states.setdefault(line, LineState())

    def known(self, line: Line) -> LineState | None:
        return self._states.get(line)

    def forget(self, line: Line) -> bool:
        """Forget that a line waited; return whether the platform failed."""
        return self._states.pop(line, LineState()).failing_since is not None

    def close(self) -> None:
        for state in self._states.values():
            if state.timer is not None:
                state.timer.cancel()

    def wait(self, line: Line, later: Later) -> None:
        """Look at a line again after some time."""
        if self._queue.closed:
            return
        state, loop = self.state(line), asyncio.get_running_loop()
        if state.timer is not None:
            state.timer.cancel()
        state.until, state.is_named = loop.time() + later.seconds, later.is_named
        state.timer = loop.call_later(later.seconds, self._end_wait, line, state)

    def _end_wait(self, line: Line, state: LineState) -> None:
        """Wake a line whose time is over. The loop's clock may still be a moment before that time."""
        state.until = 0.0
        self._queue.wake(line)

    def try_again(self, binding: int) -> None:
        """Wake the lines of an account that wait because its platform failed: it answers again.

        Not before a time that the platform named. A line that failed a moment ago waits until a second is
        over: a platform that answers some calls and fails at others is not asked without end.
        """
        now = asyncio.get_running_loop().time()
        waiting = [
            (line, state)
            for line, state in self._states.items()
            if line.binding == binding and state.failing_since is not None and now < state.until
        ]
        if any(state.is_named for _, state in waiting):
            return
        for line, state in waiting:
            self.wait(line, Later(min(max(0.0, state.failed_at + AGAIN_SECONDS - now), state.until - now)))
