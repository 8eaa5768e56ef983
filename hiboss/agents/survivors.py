"""Runs of whose processes some may still be there although they were told to end, as long as nobody knows of it.

A provider ends its program itself, so only the mark of the run (process_control.py) says which run it was.
"""

from __future__ import annotations

import logging

from ..core.address import BOSS
from ..store import notices
from ..store.group_commit import Tx

log = logging.getLogger(__name__)
_marks: set[str] = set()  # in memory: after a crash the next daemon ends what is left, and logs it again


def note(mark: str) -> None:
    """Note that not all processes with a mark could be ended."""
    _marks.add(mark)
    log.warning("Not all processes of the run %s could be ended.", mark, extra={"action": "run"})


def take(mark: str) -> bool:
    """Tell whether that was noted of a run, and forget it."""
    known = mark in _marks
    _marks.discard(mark)
    return known


def tell_boss(tx: Tx, run: int, agent: str, mark: str, now: int) -> None:
    """Tell the boss that a run is over, and that processes of it may still be there."""
    text = (
        f"r{run} of agent:{agent} is over, but hiboss could not make sure that all its processes have ended:"
        " they may start others faster than they are found, or hang.\n"
        f"To look for them: grep -lz HIBOSS_RUN={mark} /proc/[0-9]*/environ"
    )
    notices.notify(tx, BOSS, text, now)
