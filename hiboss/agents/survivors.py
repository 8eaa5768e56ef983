"""Runs of whose processes some may still be there although they were told to end, until the boss is told.

A provider ends its program itself, so only the mark of the run (process_control.py) says which run it was.
"""

from __future__ import annotations

import logging

from ..core.address import BOSS
from ..store import notices
from ..store.group_commit import Tx
from ..store.run_start import Turn

log = logging.getLogger(__name__)
_marks: set[str] = set()  # after a crash the next daemon ends what is left, and logs it again


def note(mark: str) -> None:
    """Note that it is not sure that all processes with a mark have ended."""
    _marks.add(mark)
    log.warning("Perhaps not all processes of the run %s have ended.", mark, extra={"action": "run"})


def noted(mark: str) -> bool:
    """Tell whether processes with a mark may still be there."""
    return mark in _marks


def forget(mark: str) -> None:
    _marks.discard(mark)


def tell_boss(tx: Tx, turn: Turn, mark: str, now: int) -> None:
    """Tell the boss, if that was noted of a run. It is over; nobody else would look for its processes."""
    if mark not in _marks:
        return
    text = (
        f"r{turn.run} of agent:{turn.name} is over, but perhaps not all its processes have ended: they start"
        " others faster than they are found, or do not end.\n"
        f"To look for them: grep -lz HIBOSS_RUN={mark} /proc/[0-9]*/environ"
    )
    notices.notify(tx, BOSS, text, now)
