"""The notice about a run that gives no sign of life."""

from __future__ import annotations

from ..core.address import BOSS
from . import notices
from .group_commit import Tx


def tell_boss(tx: Tx, run: int, seconds: float, now: int) -> None:
    """Tell the boss that a run seems to be stuck, and what helps; nothing if it has ended meanwhile."""
    row = tx.execute(
        "SELECT a.name FROM run r JOIN address a ON a.id = r.agent WHERE r.id = ? AND r.status = 'running'",
        (run,),
    ).fetchone()
    if row is None:
        return
    text = (
        f"agent:{row['name']} seems to be stuck: r{run} gave no sign of life for {seconds:g} seconds.\n"
        f"To see what it did last: hiboss run tail r{run}\n"
        f"To end it: hiboss control cancel --run r{run}"
    )
    notices.notify(tx, BOSS, text, now)
