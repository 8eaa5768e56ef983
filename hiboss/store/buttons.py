"""Buttons under messages, and what a press of one does.

A platform only says which button was pressed, by whom and under which post. It counts if the boss pressed
it, in a chat of his, under a post of the message that it belongs to, and if nobody did before.
What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..core.contracts.adapter import Button
from ..core.envelope import Lane, Status
from .connection import Connection, Row
from .group_commit import Tx

_VALUE = re.compile("hb([0-9]{1,15})")


class Post(NamedTuple):
    """A post with buttons, on its platform."""

    lane: Lane
    place: str  # the part of the address behind the adapter
    contact: int
    platform_id: str


def add(tx: Tx, message: int, choices: Sequence[tuple[str, str, str]]) -> None:
    """Put buttons under a message: label, action and argument of each."""
    for label, action, argument in choices:
        tx.execute(
            "INSERT INTO button (message, label, action, argument) VALUES (?, ?, ?, ?)",
            (message, label, action, argument),
        )


def of_message(connection: Connection | Tx, message: int) -> tuple[Button, ...]:
    """Return the buttons that a post of a message has; none when one was pressed."""
    rows = connection.execute(
        """
        SELECT id, label FROM button b WHERE message = ?1
          AND NOT EXISTS (SELECT 1 FROM button p WHERE p.message = ?1 AND p.pressed_at IS NOT NULL)
        ORDER BY id
        """,
        (message,),
    )
    return tuple(Button(f"hb{row['id']}", row["label"]) for row in rows)


def find(tx: Tx, value: str | None) -> Row | None:
    """Return the button with this value, and whether one under its message was pressed; None: no such."""
    match = _VALUE.fullmatch(value or "")
    if match is None:
        return None
    row: Row | None = tx.execute(
        """
        SELECT b.*, EXISTS (SELECT 1 FROM button p WHERE p.message = b.message AND p.pressed_at IS NOT NULL)
               AS decided
        FROM button b WHERE b.id = ?
        """,
        (int(match[1]),),
    ).fetchone()
    return row


def looks_ours(value: str | None) -> bool:
    """Tell whether a value has the form of those that hiboss gives to buttons."""
    return _VALUE.fullmatch(value or "") is not None


def is_being_posted(tx: Tx, message: int, place: Lane) -> bool:
    """Tell whether a message is on its way to a place, and not all of it is confirmed."""
    row = tx.execute(
        "SELECT 1 FROM envelope WHERE message = ? AND recipient = ? AND binding = ? AND status = ?",
        (message, place.address, place.binding, int(Status.PENDING)),
    ).fetchone()
    return row is not None


def decide(tx: Tx, actions: str, argument: str, now: int) -> None:
    """Let no button about this do anything any more: it was decided. `actions`: how they begin."""
    tx.execute(
        """
        UPDATE button SET pressed_at = ?
        WHERE argument = ? AND substr(action, 1, ?) = ? AND pressed_at IS NULL
        """,
        (now, argument, len(actions), actions),
    )


# The arguments of the buttons of ask 2 are 2:0, 2:1 …; the sign after the colon ends that range.
_OF_ASK = "action = 'ask.answer' AND argument >= ?1 || ':' AND argument < ?1 || ';'"


def decide_ask(tx: Tx, ask: int, now: int) -> None:
    """Let no button about an ask do anything any more: it was settled."""
    tx.execute(f"UPDATE button SET pressed_at = ?2 WHERE {_OF_ASK} AND pressed_at IS NULL", (ask, now))


def about_ask(connection: Connection | Tx, ask: int) -> list[int]:
    """Return the messages with buttons about an ask: the question and its reminders."""
    rows = connection.execute(f"SELECT DISTINCT message FROM button WHERE {_OF_ASK}", (ask,))
    return [int(row["message"]) for row in rows]


def about(connection: Connection | Tx, actions: str, argument: str) -> list[int]:
    """Return the messages with buttons about this."""
    rows = connection.execute(
        "SELECT DISTINCT message FROM button WHERE argument = ? AND substr(action, 1, ?) = ?",
        (argument, len(actions), actions),
    )
    return [int(row["message"]) for row in rows]


def mark_pressed(tx: Tx, button: int, now: int) -> None:
    tx.execute("UPDATE button SET pressed_at = ? WHERE id = ?", (now, button))


def posts(connection: Connection | Tx, message: int) -> list[Post]:
    """Return the posts of a message, to take their buttons away."""
    rows = connection.execute(
        """
        SELECT e.recipient, e.binding, a.name, p.contact, o.platform_id FROM envelope e
        JOIN post o ON o.envelope = e.id AND o.platform_id IS NOT NULL
        JOIN address a ON a.id = e.recipient
        JOIN place p ON p.address = e.recipient AND p.binding = e.binding
        WHERE e.message = ?
          AND o.chunk = (SELECT max(l.chunk) FROM post l WHERE l.envelope = e.id)
        """,
        (message,),
    )
    return [
        Post(
            Lane(row["recipient"], row["binding"]),
            row["name"].split(":", 1)[1],
            row["contact"],
            row["platform_id"],
        )
        for row in rows
    ]
