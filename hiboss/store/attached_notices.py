"""Tell the boss of mail that an open session does not take."""

from __future__ import annotations

from ..core.address import BOSS
from . import notices
from .group_commit import Tx
from .run_start import Turn


def not_taken(tx: Tx, turn: Turn, now: int) -> None:
    """Tell the boss that an idle session was told of mail several times, and did nothing."""
    mail = ", ".join(f"e{number}" for number in turn.envelopes)
    text = (
        f"The open session of agent:{turn.name} does not take its mail ({mail}), although it was told several"
        " times. Perhaps it asks something in its terminal. Look there; or give its mail back, so that"
        f" it waits for the next session or is worked on by a run:\nhiboss agent detach {turn.name}"
    )
    notices.notify(tx, BOSS, text, now)
