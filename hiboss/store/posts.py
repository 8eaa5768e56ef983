"""Posts: the chunks of an envelope, stored before the first is posted, and which of them were posted.

A chunk can make several posts, like an album: the first is in `post`, the others are in `post_part`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.envelope import Lane
from .accounts import SAME_ACCOUNT
from .connection import Connection, Row
from .group_commit import Tx


def posted(tx: Tx | Connection, envelope: int) -> list[Row]:
    """Return the stored chunks of an envelope, in order; `posted_at` is NULL for those not posted yet."""
    return tx.execute(
        "SELECT chunk, content, platform_id, posted_at FROM post WHERE envelope = ? ORDER BY chunk",
        (envelope,),
    ).fetchall()


def begun(tx: Tx | Connection, envelopes: Sequence[int]) -> int:
    """Return of how many of these envelopes something is posted and was not taken back."""
    marks = ",".join("?" * len(envelopes))
    row = tx.execute(
        f"""
        SELECT count(DISTINCT envelope) FROM post
        WHERE envelope IN ({marks}) AND posted_at IS NOT NULL AND deleted_at IS NULL
        """,
        envelopes,
    ).fetchone()
    return int(row[0])


def plan(tx: Tx, envelope: int, chunks: list[str]) -> None:
    """Store the chunks before the first is posted, so that a retry continues with the first unposted one."""
    for number, content in enumerate(chunks):
        tx.execute(
            "INSERT OR IGNORE INTO post (envelope, chunk, content) VALUES (?, ?, ?)",
            (envelope, number, content),
        )


def plan_anew(tx: Tx, lane: Lane, envelope: int = 0) -> None:
    """Forget the chunks that are planned for a place where they are posted otherwise now.

    Not those of an envelope of which some are posted, nor of one in hand, but for this one.
    """
    tx.execute(
        """
        DELETE FROM post WHERE envelope IN (
            SELECT id FROM envelope INDEXED BY envelope_box WHERE recipient = ?1 AND box = 0 AND status = 0
              AND binding = ?2 AND handovers > 0 AND (held_by IS NULL OR id = ?3))
          AND NOT EXISTS (SELECT 1 FROM post o WHERE o.envelope = post.envelope AND o.posted_at IS NOT NULL)
        """,
        (*lane, envelope),
    )


def insert(tx: Tx, envelope: int, number: int, content: str) -> None:
    """Put a chunk before the first that is not posted, which has this number."""
    # In two steps: no two chunks may have one number in between.
    tx.execute("UPDATE post SET chunk = -1 - chunk WHERE envelope = ? AND chunk >= ?", (envelope, number))
    tx.execute("UPDATE post SET chunk = -chunk WHERE envelope = ? AND chunk < 0", (envelope,))
    tx.execute("INSERT INTO post (envelope, chunk, content) VALUES (?, ?, ?)", (envelope, number, content))


def chat_renamed(tx: Tx, address: int, old: str) -> None:
    """Note that what was posted to a place so far has ids of the chat as it was."""
    sent = "SELECT id FROM envelope INDEXED BY envelope_box WHERE recipient = ?1"
    for table in ("post", "post_part"):
        tx.execute(
            f"""
            UPDATE {table} SET chat = ?2
            WHERE chat IS NULL AND platform_id IS NOT NULL AND envelope IN ({sent})
            """,
            (address, old),
        )


def quoted(tx: Tx | Connection, message: int, lane: Lane) -> str | None:
    """Return the platform's id of a message that is replied to in a lane; None if it is not in that place.

    That is the same chat and the same topic. What is for a topic that is gone is in the chat itself. Of a
    message with several posts it is that of the first.
    """
    row = tx.execute(
        f"""
        WITH here AS (
            SELECT c.id, c.platform_id, c.kind, c.was, c.address AS chat,
                   iif(l.gone_at IS NULL, l.address, c.address) AS location
            FROM place l JOIN contact c ON c.id = l.contact WHERE l.address = ?3 AND l.binding = ?2)
        SELECT * FROM (
            SELECT u.platform_id FROM platform_update u
            JOIN message m ON m.id = u.message
            JOIN here ON u.chat IN (here.platform_id, iif(here.kind = 'private', here.was, NULL))
                AND ifnull(m.place, m.sender) = here.location
            WHERE u.message = ?1 AND u.binding IN {SAME_ACCOUNT.format("?2")} AND u.platform_id IS NOT NULL
            ORDER BY u.id LIMIT 1)
        UNION ALL
        SELECT p.platform_id FROM envelope e INDEXED BY envelope_message
        JOIN post p ON p.envelope = e.id AND p.chunk = (
            SELECT min(o.chunk) FROM post o WHERE o.envelope = e.id AND o.deleted_at IS NULL)
        JOIN here ON ifnull(p.chat, here.platform_id) = here.platform_id OR here.kind = 'private'
        LEFT JOIN place t ON t.address = e.recipient AND t.binding = ?2 AND t.contact = here.id
        WHERE e.message = ?1 AND e.binding IN {SAME_ACCOUNT.format("?2")} AND p.platform_id IS NOT NULL
          AND iif(t.gone_at <= p.posted_at, here.chat, e.recipient) = here.location
        LIMIT 1
        """,
        (message, lane.binding, lane.address),
    ).fetchone()
    return row["platform_id"] if row else None


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
