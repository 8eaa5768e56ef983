"""One start of a run: of the next turn of an agent, or of a task in the background.

It has a transaction of its own, or that of the outcome of the turn before: then the two have one COMMIT.
"""

from __future__ import annotations

from typing import NamedTuple

from ..store import run_start
from ..store.group_commit import Tx
from ..store.run_start import Start, Turn
from .own_time import OwnTime


class Job(NamedTuple):
    """One entry of the work queue: an agent's next turn, or one task in the background."""

    kind: str  # turn, background
    number: int  # turn: the agent's address id; background: the envelope's id


class TurnStart:
    """What a run is started with, and the turn that came of it."""

    def __init__(self, job: Job, start: Start, *, eager: bool = False) -> None:
        self._job = job
        self._start = start
        self._eager = eager
        self.token = start.token
        self.own_time = OwnTime()
        self.turn: Turn | None = None  # None: there was nothing to do
        self.is_stored = False  # with the outcome of the turn before

    def begin(self, tx: Tx, now: int) -> None:
        """Start it. The writer may call this again."""
        start = self._start._replace(now=now)
        if self._job.kind == "turn":
            self.turn = run_start.begin(tx, self._job.number, start, eager=self._eager)
        else:
            self.turn = run_start.begin_background(tx, self._job.number, start)
