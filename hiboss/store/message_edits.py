"""Give a stored message another wording; the older ones are kept in `revision`."""

from __future__ import annotations

import json
from typing import Any

from ..core.envelope import Attachment
from ..core.events import MessageEdited
from .group_commit import Tx


def edit(tx: Tx, message: int, text: str, files: tuple[Attachment, ...], now: int) -> bool:
    """Change the text and the attachments; return whether anything was changed.

    Without files the attachments stay. An agent whose turn has not begun sees the new text.
    """
    row = tx.execute("SELECT text, attachments, deleted_at FROM message WHERE id = ?", (message,)).fetchone()
    old = json.loads(row["attachments"]) if row["attachments"] else []
    new = _attachments(old, [one.facts() for one in files])
    if row["deleted_at"] is not None or (row["text"] == text and new == old):
        return False
    if not new and not text.strip():
        return False  # nothing would be left of it
    tx.execute(
        """
        INSERT INTO revision (message, number, replaced_at, text, attachments)
        SELECT ?1, ifnull(max(number), 0) + 1, ?2, ?3, ?4 FROM revision WHERE message = ?1
        """,
        (message, now, row["text"], row["attachments"]),
    )
    tx.execute(
        "UPDATE message SET text = ?, attachments = ?, edited_at = ? WHERE id = ?",
        (text, json.dumps(new, ensure_ascii=False) if new else None, now, message),
    )
    tx.facts.append(MessageEdited(now, message))
    return True


def _attachments(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the attachments after an edit.

    An edit brings the files of its own update. Of a message that several updates made (an album), the
    files of the others stay: nobody knows which of them it replaces.
    """
    if not new:
        return old
    if len(old) <= 1:
        return new
    known = {one["sha256"] for one in old}
    return [*old, *[one for one in new if one["sha256"] not in known]]
