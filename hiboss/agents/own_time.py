"""What hiboss itself adds to a turn: from the claim to the start of its program, from its result to COMMIT.

What the program needs to end after its result is told apart: that is not hiboss's. It is measured and logged
only at level debug; `make bench` reads it there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter

from . import process_exit

log = logging.getLogger(__name__)


class OwnTime:
    """The moments of one run, by the clock of this process."""

    def __init__(self) -> None:
        self._claimed_at = perf_counter()
        self._started_at: float | None = None
        self._result_at: float | None = None
        self._ended_at: float | None = None
        self._stop_watching: Callable[[], None] = lambda: None

    def program_started(self, pid: int) -> None:
        if self._started_at is None and log.isEnabledFor(logging.DEBUG):
            self._started_at = perf_counter()
            self._stop_watching = process_exit.watch(pid, self._program_ended)

    def _program_ended(self) -> None:
        self._ended_at = perf_counter()

    def result_seen(self) -> None:
        """The provider has the result of the turn; of several the last counts."""
        self._result_at = perf_counter()

    def committed(self, run: int) -> None:
        """Log it, if the run had all these moments."""
        self._stop_watching()
        if self._started_at is None or self._result_at is None or self._ended_at is None:
            return
        moments = (self._claimed_at, self._started_at, self._result_at, self._ended_at, perf_counter())
        start, ending, commit = ((moments[number + 1] - moments[number]) * 1000 for number in (0, 2, 3))
        own = "r%d: claim to start %.2f ms, result to exit %.2f ms, exit to commit %.2f ms"
        log.debug(own, run, start, ending, commit, extra={"action": "own-time"})
