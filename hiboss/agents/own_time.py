"""What hiboss itself adds to a turn: from the claim to the start of its program, from the result to COMMIT.

The rest is the time of the program and its model. It is logged at level debug; `make bench` reads it there.
"""

from __future__ import annotations

import logging
from time import perf_counter

log = logging.getLogger(__name__)


class OwnTime:
    """The moments of one run, by the clock of this process."""

    def __init__(self) -> None:
        self._claimed_at = perf_counter()
        self._started_at: float | None = None
        self._result_at: float | None = None

    def program_started(self) -> None:
        if self._started_at is None:
            self._started_at = perf_counter()

    def result_seen(self) -> None:
        """The provider has the result of the turn; of several the last counts."""
        self._result_at = perf_counter()

    def committed(self, run: int) -> None:
        """Log it, if the run had both moments."""
        if self._started_at is not None and self._result_at is not None:
            before = (self._started_at - self._claimed_at) * 1000
            after = (perf_counter() - self._result_at) * 1000
            own = "r%d: claim to start %.2f ms, result to commit %.2f ms"
            log.debug(own, run, before, after, extra={"action": "own-time"})
