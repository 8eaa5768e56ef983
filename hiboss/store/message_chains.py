"""The chain from a message up to the first one of its thread: what it answers, what that answers."""

from __future__ import annotations

from typing import NamedTuple

from . import envelope_rows, message_rows
from .connection import Connection
from .visibility import sees

LONGEST = 10_000  # messages that are looked through
SHOWN = 100


class Chain(NamedTuple):
    thread: int
    links: list[int | None]  # from the first to the one asked for; None: some that the viewer may not see
    left_out: int  # links at the beginning that are not shown


def up_to_root(connection: Connection, given: tuple[str, int], viewer: int | None) -> Chain:
    """Return the chain of a message that the viewer may see; else raise NotFound."""
    message = message_rows.visible(connection, given, viewer)
    rows = connection.execute(
        f"""
        WITH RECURSIVE up (id, depth) AS (
            SELECT ?1, 0 UNION ALL
            SELECT p.reply_to, up.depth + 1 FROM up JOIN message p ON p.id = up.id
            WHERE p.reply_to IS NOT NULL AND up.depth < {LONGEST})
        SELECT m.id, ?2 IS NULL OR {sees("?2")} AS seen FROM up JOIN message m ON m.id = up.id
        ORDER BY up.depth
        """,
        (message, viewer),
    ).fetchall()
    links: list[int | None] = []
    for row in rows:
        if row["seen"]:
            links.append(row["id"])
        elif links[-1] is not None:  # one gap, however many are in it
            links.append(None)
    thread = envelope_rows.thread_of(connection, message)
    return Chain(thread, links[:SHOWN][::-1], max(0, len(links) - SHOWN))
