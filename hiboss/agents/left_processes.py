"""End the processes of recorded runs from outside: their daemon has died, or does not answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from ..store.connection import Row
from . import process_control, survivors
from .process_control import RunProcesses


def mark(marks: str, run: int) -> str:
    """Return the mark of a run: unique over all runs of all homes, for it identifies processes.

    `marks`: what those of a home begin with (store/counters.py).
    """
    return f"{marks}-r{run}"


async def end_recorded(marks: str, runs: Iterable[Row]) -> bool:
    """End the processes of these runs; return whether all are gone. They are found by pid, start and mark."""
    rows = list(runs)
    gone = await process_control.end(await find(marks, rows), leader_gone=lambda: False)
    if not gone:
        for row in rows:
            survivors.note(mark(marks, row["id"]))
    return gone


async def find(marks: str, runs: Iterable[Row]) -> RunProcesses:
    """Return how the processes of these runs are recognised; each row has `id`, `pid` and `pid_started`."""
    rows = list(runs)
    known = frozenset(mark(marks, row["id"]) for row in rows)
    sessions = {
        row["pid"]
        for row in rows
        if row["pid_started"] is not None and process_control.started_at(row["pid"]) == row["pid_started"]
    }
    for pid in await asyncio.to_thread(process_control.marked, known) if known else []:
        try:
            sessions.add(os.getsid(pid))
        except ProcessLookupError:
            pass
    sessions.discard(os.getsid(0))
    return RunProcesses(frozenset(sessions), known)
