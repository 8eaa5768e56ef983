"""Posts: the chunks of an envelope, stored before the first is posted, and which of them were posted.

A chunk can make several posts, like an album: the first is in `post`, the others are in `post_part`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .connection import Connection, Row
from .group_commit import Tx


def posted(tx: Tx | Connection, envelope: int) -> list[Row]:
    """Return the stored chunks of an envelope, in order; `posted_at` is NULL for those not posted yet."""
    return tx.execute(
        "SELECT chunk, content, platform_id, posted_at FROM post WHERE envelope = ? ORDER BY chunk",
        (envelope,),
    ).fetchall()


def plan(tx: Tx, envelope: int, chunks: list[str]) -> None:
    """Store the chunks before the first is posted, so that a retry continues with the first unposted one."""
    for number, content in enumerate(chunks):
        tx.execute(
            "INSERT OR IGNORE INTO post (envelope, chunk, content) VALUES (?, ?, ?)",
            (envelope, number, content),
        )


def chat_renamed(tx: Tx, address: int, old: str) -> None:
    """Note that what was posted to a place so far has ids of the chat as it was."""
    tx.execute(
        """
        UPDATE post SET chat = ?2 WHERE chat IS NULL AND platform_id IS NOT NULL
          AND envelope IN (SELECT id FROM envelope INDEXED BY envelope_box WHERE recipient = ?1)
        """,
        (address, old),
    )


def note_post(tx: Tx, envelope: int, number: int, content: str, ids: Sequence[str], now: int) -> None:
    """Store that a chunk was posted, with the platform's ids of its posts."""
    tx.execute(
        """
        INSERT INTO post (envelope, chunk, content, platform_id, posted_at) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (envelope, chunk) DO UPDATE SET platform_id = ?4, posted_at = ?5
        """,
        (envelope, number, content, ids[0], now),
    )
    for one in ids[1:]:
        tx.execute(
            "INSERT OR IGNORE INTO post_part (envelope, chunk, platform_id) VALUES (?, ?, ?)",
            (envelope, number, one),
        )
