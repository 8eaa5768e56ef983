"""End the processes of recorded runs from outside: their daemon has died, or does not answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from ..store.connection import Row
from . import process_control
from .process_control import RunProcesses


def mark(epoch: str, run: int) -> str:
    """Return the mark of a run: unique over all runs of all homes, for it identifies processes."""
    return f"{epoch}-r{run}"


async def end_recorded(epoch: str, runs: Iterable[Row]) -> None:
    """End the processes of these runs. They are found by pid and start time, and by mark."""
    await process_control.end(await find(epoch, runs), leader_gone=lambda: False)


async def find(epoch: str, runs: Iterable[Row]) -> RunProcesses:
    """Return how the processes of these runs are recognised; each row has `id`, `pid` and `pid_started`."""
    rows = list(runs)
    marks = frozenset(mark(epoch, row["id"]) for row in rows)
    sessions = {
        row["pid"]
        for row in rows
        if row["pid_started"] is not None and process_control.started_at(row["pid"]) == row["pid_started"]
    }
    for pid in await asyncio.to_thread(process_control.marked, marks) if marks else []:
        try:
            sessions.add(os.getsid(pid))
        except ProcessLookupError:
            pass
    sessions.discard(os.getsid(0))
    return RunProcesses(frozenset(sessions), marks)
