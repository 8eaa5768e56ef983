"""Runs that gave no sign of life for too long: the state of their agent says so, and the boss is told once.

A sign of life is any report of the provider, or a call that the run makes. Nothing is ended here: that is
for the limits of a run, or for the boss.
"""

from __future__ import annotations

import asyncio
from functools import partial

from ..agents.run_execution import Execution
from ..core.settings import Settings
from ..store import stuck_notices
from ..store.store import Store
from .deadlines import Deadlines
from .presence import Presence

AGAIN_SECONDS = 2.0  # until a stuck run is looked at again


class StuckRuns:
    """Watches the runs that are active. Use it on the event loop's thread only."""

    def __init__(self, store: Store, settings: Settings, deadlines: Deadlines, presence: Presence) -> None:
        self._store = store
        self._settings = settings
        self._deadlines = deadlines
        self._presence = presence
        self._told: set[int] = set()  # runs that the boss knows of
        self._telling: set[asyncio.Task[None]] = set()

    def run_begun(self, execution: Execution) -> None:
        self._look_in(execution, self._settings.stuck_seconds)

    def run_ended(self, run: int) -> None:
        self._deadlines.forget(("stuck", run))
        self._told.discard(run)

    async def close(self) -> None:
        if self._telling:
            await asyncio.wait(self._telling)

    def _look_in(self, execution: Execution, seconds: float) -> None:
        self._deadlines.note(("stuck", execution.turn.run), seconds, partial(self._look, execution))

    def _look(self, execution: Execution) -> None:
        """See whether a run is stuck now, or not any more, and look again when it may have changed.

        A run that ends is looked at no more: it stays silent, and does not go on.
        """
        limit, turn = self._settings.stuck_seconds, execution.turn
        silent, is_ending = self._silent(execution), execution.ending is not None
        is_stuck = silent is not None and silent >= limit and not is_ending
        if is_stuck != self._presence.is_stuck(turn.run):
            self._presence.stuck(turn.run, turn.agent, is_stuck)
        if is_stuck and turn.run not in self._told:
            self._told.add(turn.run)
            task = asyncio.get_running_loop().create_task(self._tell(execution, limit))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
        if not is_ending:
            self._look_in(execution, AGAIN_SECONDS if is_stuck else limit - (silent or 0.0))

    def _silent(self, execution: Execution) -> float | None:
        """Return for how many seconds a run gave no sign of life; None while that does not count."""
        silent = execution.silent_seconds
        called = self._presence.called_ago(execution.turn.run)
        return silent if silent is None or called is None else min(silent, called)

    async def _tell(self, execution: Execution, seconds: float) -> None:
        run = execution.turn.run
        await self._store.timed_write_until_done(
            lambda tx, now: stuck_notices.tell_boss(tx, run, seconds, now)
        )
