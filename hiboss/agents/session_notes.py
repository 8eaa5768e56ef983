"""What a turn says about its session when that is a new one, so that nothing looks forgotten."""

from __future__ import annotations

from ..store import last_messages
from ..store.connection import Connection
from ..store.run_start import Turn
from ..store.session_policy import CHANGED, FULL, IDLE, LOST, REFRESHED, RESET

HISTORY_BYTES = 8_000  # of the last messages
_WHY = {
    LOST: "the one before cannot be resumed, so you do not remember it",
    REFRESHED: "you are to begin anew",
    RESET: "one begins each day",
    IDLE: "the one before was not used for long",
    FULL: "the one before was full",
    CHANGED: "your settings have changed",
}


def session_note(connection: Connection, turn: Turn, why: str | None) -> str:
    """Return what a turn says of its new session; empty if there was none before, or it is resumed.

    `why`: the turn's `session_why_new`. After a loss, which nobody wanted, the last messages of the
    conversation follow: those that the agent wrote, or has dealt with.
    """
    if why is None:
        return ""
    note = f"(new session: {_WHY[why]})"
    if why != LOST:
        return note
    lines = last_messages.lines(connection, turn.session_conversation, viewer=turn.agent)
    while lines and len("\n".join(lines).encode()) > HISTORY_BYTES:
        del lines[0]
    if not lines:
        return note
    return "\n".join([note, "The last messages of this conversation, oldest first:", *lines])
