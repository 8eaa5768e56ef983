"""Chats that have another id, as the platform says when something is posted: all that waits goes there.

It is the same as when the platform announces it (`places.rename_chat`), and the announcement may come before,
after or never. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from . import contacts, places
from .accounts import KNOWN_AS
from .group_commit import Tx


def moved(tx: Tx, binding: int, old: str, new: str, now: int) -> bool:
    """Give a chat the id that the platform named; return whether something can be posted there now.

    False: that is no id for it, or one that it had before: then nothing changes.
    """
    contact = places.contact_of(tx, binding, old)
    if contact is None:  # it was announced meanwhile
        return places.present_chat(tx, binding, old) != old
    if not _is_new(tx, binding, old, new):
        return False
    account = tx.execute("SELECT adapter FROM binding WHERE id = ?", (binding,)).fetchone()
    # As if it had been announced: so what comes late with the old id is known to be of this chat.
    tx.execute(
        """
        INSERT OR IGNORE INTO platform_update (binding, update_id, chat, platform_id, outcome, received_at)
        VALUES (?1, 'hiboss:' || ?2 || ':' || ?3, ?2, ?3, 'renamed', ?4)
        """,
        (binding, old, new, now),
    )
    places.rename_chat(tx, binding, account["adapter"], old, new, now)
    if (renamed := places.contact_of(tx, binding, new)) is not None:
        contacts.renamed(tx, renamed)
    return True


def _is_new(tx: Tx, binding: int, old: str, new: str) -> bool:
    """Tell whether this can be the new id of a chat: two that name each other would never come to an end."""
    if not new or any(one.isspace() or one in ":/" for one in new):
        return False
    row = tx.execute(
        f"{KNOWN_AS} SELECT count(*) FROM known_as WHERE chat = ?3", (binding, old, new)
    ).fetchone()
    return not row[0]
