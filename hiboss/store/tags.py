"""The tags of a message: whom it mentions, its scopes and its refs.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core import mentions
from ..core.address import Address
from ..core.envelope import Draft, Kind
from .addresses import is_known
from .group_commit import Tx


def insert(tx: Tx, message: int, draft: Draft) -> None:
    """Store the tags of a new message: those that its sender gave, and whom its text mentions."""
    if draft.tags:
        _insert(tx, message, draft.tags)
    if "@" in draft.text:
        _insert(tx, message, _mentioned(tx, message, draft.text, draft.kind))


def follow_edit(tx: Tx, message: int, text: str, kind: Kind) -> None:
    """Store whom the new wording of a message mentions, in place of the one before."""
    tx.execute("DELETE FROM tag WHERE message = ? AND kind = 'mention'", (message,))
    _insert(tx, message, _mentioned(tx, message, text, kind))


def _mentioned(tx: Tx, message: int, text: str, kind: Kind) -> list[tuple[str, str, str]]:
    """Return the mentions in a text of agents, people, groups and roles that its author may know of."""
    found = []
    for word in mentions.find(text, kind):
        for of in ("agent", "user", "group"):
            entry = tx.cache.live_address(Address(of, word))
            if entry is not None and (of != "group" or _knows(tx, message, entry.id)):
                found.append(("mention", word, of))
        if word == mentions.EVERYBODY or _is_role(tx, word):
            found.append(("mention", word, "role"))
    return found


def _knows(tx: Tx, message: int, group: int) -> bool:
    """Tell whether the author of a message may know that there is a group: who reads it learns it too."""
    author = tx.execute("SELECT sender FROM message WHERE id = ?", (message,)).fetchone()["sender"]
    return is_known(tx, group, None if author == tx.cache.reach().boss else author)


def _is_role(tx: Tx, word: str) -> bool:
    row = tx.execute(
        "SELECT 1 FROM agent WHERE role = ? COLLATE NOCASE AND deleted_at IS NULL", (word,)
    ).fetchone()
    return row is not None


def _insert(tx: Tx, message: int, tags: Sequence[tuple[str, str, str]]) -> None:
    for kind, name, value in tags:
        tx.execute(
            "INSERT OR IGNORE INTO tag (message, kind, name, value) VALUES (?, ?, ?, ?)",
            (message, kind, name, value),
        )
