"""Who the boss is on platforms: his id there, by which his chats and his words are known.

An id of a person never changes, and nobody else can have it. A private chat with the boss is his
(`contact.state` is boss), by whichever account of that platform. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.envelope import Lane
from . import forwarding, notices
from .accounts import KNOWN_AS
from .connection import Connection, Row
from .group_commit import Tx


def is_boss(tx: Tx | Connection, adapter: str, person: str | None) -> bool:
    """Tell whether this is the boss's id on a platform."""
    row = tx.execute("SELECT 1 FROM identity WHERE adapter = ? AND platform_id = ?", (adapter, person))
    return row.fetchone() is not None


def boss_ids(connection: Tx | Connection) -> dict[str, str]:
    """Return the boss's ids, by the type of the adapter."""
    rows = connection.execute("SELECT adapter, platform_id FROM identity ORDER BY adapter")
    return {row["adapter"]: row["platform_id"] for row in rows}


def set_boss(tx: Tx, adapter: str, person: str | None, now: int) -> None:
    """Set the boss's id on a platform; None: he has none there.

    Chats of an id that was his before are nobody's: somebody who named a wrong one must be able to mend it.
    """
    old = boss_ids(tx).get(adapter)
    if old == person:
        return
    tx.execute("DELETE FROM identity WHERE adapter = ?", (adapter,))
    for contact in _private_chats(tx, adapter, old):
        notices.end_reach(tx, contact["binding"], now, contact["id"], "it is not your chat any more")
        tx.execute("UPDATE contact SET state = 'asking', decided_at = ? WHERE id = ?", (now, contact["id"]))
    if person is None:
        return
    tx.execute(
        """
        INSERT INTO identity (adapter, platform_id, user, created_at)
        SELECT ?, ?, address, ? FROM user WHERE boss = 1
        """,
        (adapter, person, now),
    )
    for contact in _private_chats(tx, adapter, person):
        become_boss(tx, contact, now)


def _private_chats(tx: Tx, adapter: str, person: str | None) -> list[Row]:
    return tx.execute(
        """
        SELECT c.* FROM contact c JOIN binding b ON b.id = c.binding AND b.removed_at IS NULL
        WHERE b.adapter = ? AND c.platform_id = ? AND c.kind = 'private' ORDER BY c.id
        """,
        (adapter, person),
    ).fetchall()


def become_boss(tx: Tx, contact: Row, now: int) -> None:
    """A private chat is the boss's from now on. If he is reached nowhere, he is reached there."""
    tx.execute(
        """
        UPDATE contact SET state = 'boss', kind = 'private', pairing = NULL, pairing_until = NULL,
               decided_at = ? WHERE id = ?
        """,
        (now, contact["id"]),
    )
    if tx.cache.reach().place is None:
        forwarding.set_reach(tx, Lane(contact["address"], contact["binding"]), now)
    release(tx, contact)


def release(tx: Tx, contact: Row) -> None:
    """Let what was held of a chat come in now, in its order."""
    rows = tx.execute(
        f"""
        {KNOWN_AS}
        UPDATE platform_update SET outcome = NULL
        WHERE binding = ?1 AND outcome = 'held' AND chat IN (SELECT chat FROM known_as) RETURNING chat
        """,
        (contact["binding"], contact["platform_id"]),
    ).fetchall()
    chats = {row["chat"] for row in rows} | {contact["platform_id"]}
    tx.chats_for += [(contact["binding"], chat) for chat in sorted(chats)]
