"""Give a stored message another wording, and tell who has it already; older ones are kept in `revision`."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..core.address import SYSTEM, Address
from ..core.envelope import Accepted, Attachment, Draft, Kind, Status, Waits
from ..core.escaping import name, quote, visible
from ..core.events import MessageEdited
from . import chat_entries, deleted_envelopes, envelope_marks, messages, notices, tags
from .connection import Row
from .group_commit import Tx
from .group_delivery import ALL

QUOTED_NAME, QUOTED_TEXT = 120, 2_000  # characters in a notice


def edit(tx: Tx, message: int, text: str, files: tuple[Attachment, ...], now: int) -> bool:
    """Change the text and the attachments; return whether anything was changed.

    Without files the attachments stay. An agent whose turn has not begun sees the new text.
    """
    query = "SELECT text, type, attachments, deleted_at FROM message WHERE id = ?"
    row = tx.execute(query, (message,)).fetchone()
    old = json.loads(row["attachments"]) if row["attachments"] else []
    new = _attachments(old, [one.facts() for one in files])
    if row["deleted_at"] is not None or (row["text"] == text and _same(new, old)):
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
    if "@" in text + row["text"]:
        tags.follow_edit(tx, message, text, Kind(row["type"]))
    chat_entries.note_change(tx, message, now)
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


def _same(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> bool:
    """Tell whether these are the same files. A platform may give a file another id each time."""
    return [(one["sha256"], one["name"]) for one in new] == [(one["sha256"], one["name"]) for one in old]


# --- agents that have it already -----------------------------------------------------


def tell(
    tx: Tx, message: int, note: str | None, now: int, *, editor: Address | None = None
) -> Accepted | None:
    """Tell the agents that have an edited message already. What still waits shows the new wording itself.

    What the boss edited comes to those who have it to answer as a new message, which starts a turn; who
    only read it along finds the new text there. Of what others edited all get a note that starts none: in a
    group of a platform it is said around them, else it is a notice. Who left a group is told nothing.
    Return the message that was made of the new wording; None: none was. `note`: what is missing of it.
    `editor`: who edited it here, and need not be told.
    """
    row = tx.execute(_EDITED, (message,)).fetchone()
    having = [] if row["context"] or row["retired_at"] is not None else _having_it(tx, message)
    told = [one for one in having if one.present and not (row["from_boss"] and one.reads_along)]
    agents = [one.address for one in told if one.address != editor]
    if not agents:
        return None
    channel = json.loads(row["channel"]) if row["channel"] else {}
    in_group = (channel.get("chat") or {}).get("kind") in ("group", "channel")
    if not row["from_boss"] and not in_group:
        for agent in agents:
            _notify(tx, agent, row, _notice(row, channel), now)
        return None
    wording = "; ".join(filter(None, [f"a new wording of m{message}", note]))
    files = json.loads(row["attachments"]) if row["attachments"] else []
    draft = Draft(
        sender=Address(row["kind"], row["name"]),
        caller=None,
        sees_all=True,
        to=tuple(agents),
        from_boss=bool(row["from_boss"]),
        place=None if row["place_name"] is None else Address("channel", row["place_name"]),
        text=row["text"],
        subject=row["subject"],
        attachments=tuple(Attachment.of(one) for one in files),
        from_name=row["from_name"],
        reply_to=("message", message),
        channel={**channel, "note": wording},
        conversation=row["conversation"],
        context=not row["from_boss"],
        repeats=True,
    )
    return messages.insert(tx, draft, now)


def _notify(tx: Tx, agent: Address, edited: Row, text: str, now: int) -> None:
    """Send an agent a notice of an edit, or give the one before it, which it has not read yet, this text."""
    # Not of the sender: it is told in the same way of mail that was not acknowledged (late_acks.py).
    unread = None
    if agent != Address(edited["kind"], edited["name"]):
        unread = tx.execute(_UNREAD_NOTICE, (edited["id"], str(SYSTEM), str(agent))).fetchone()
    if unread is None:
        notices.notify(tx, agent, text, now, about=edited["id"], quotes=True)
    else:
        edit(tx, unread["id"], text, (), now)
        envelope_marks.come_back(tx, unread["id"])  # a poll may have announced the text before


# By the thread: no other index has what answers a message.
_ANSWERS = """
    message m JOIN message n INDEXED BY message_thread
        ON n.thread = ifnull(m.thread, m.id) AND n.reply_to = m.id AND n.repeats
"""
_UNREAD_NOTICE = f"""
SELECT n.id FROM {_ANSWERS}
JOIN address s ON s.id = n.sender AND s.kind || ':' || s.name = ?2
JOIN envelope e ON e.message = n.id AND e.unread = 1 AND e.status = 0
    AND e.held_by IS NULL AND e.waits IS NULL
JOIN address a ON a.id = e.recipient AND a.retired_at IS NULL AND a.kind || ':' || a.name = ?3
WHERE m.id = ?1 AND n.deleted_at IS NULL ORDER BY n.id DESC LIMIT 1
"""


def repeating(tx: Tx, message: int) -> list[Row]:
    """Return what has the text of a message: its new wordings, and the notices that quote it."""
    return tx.execute(
        f"SELECT n.id, n.deleted_at, n.deleted_by FROM {_ANSWERS} WHERE m.id = ? ORDER BY n.id", (message,)
    ).fetchall()


def last_new_wording(tx: Tx, message: int) -> int | None:
    """Return the message that `tell` made last of a new wording of this one; None: it made none."""
    row = tx.execute(
        f"""
        SELECT n.id FROM {_ANSWERS} WHERE m.id = ? AND n.sender = m.sender AND n.deleted_at IS NULL
        ORDER BY n.id DESC LIMIT 1
        """,
        (message,),
    ).fetchone()
    return None if row is None else int(row["id"])


def add_note(tx: Tx, message: int, note: str | None) -> None:
    """Add to what is noted about a message that came in, like a file that is missing."""
    if note:
        tx.execute(
            """
            UPDATE message SET channel = json_set(channel, '$.note',
                ifnull(json_extract(channel, '$.note') || '; ', '') || ?) WHERE id = ?
            """,
            (note, message),
        )


def reword(tx: Tx, message: int, text: str, files: tuple[Attachment, ...], now: int) -> bool:
    """Give the last new wording of an edited message another text; False: an agent has begun with it.

    For who left the group since then it is cancelled.
    """
    if not _waits(tx, message):
        return False
    left = tx.execute(
        f"""
        SELECT e.id FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
        WHERE m.id = ? AND m.repeats AND e.status = ? AND a.kind = 'agent' AND NOT {_PRESENT}
        """,
        (message, int(Status.PENDING)),
    ).fetchall()
    for one in left:
        deleted_envelopes.end(tx, one["id"], now)
    edit(tx, message, text, files, now)
    return True


def _waits(tx: Tx, message: int) -> bool:
    """Tell whether no agent was given a message to answer yet, so that it can still get another wording."""
    pending = tx.execute(
        """
        SELECT 1 FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.message = ? AND a.kind = 'agent' AND e.status = ?
        """,
        (message, int(Status.PENDING)),
    ).fetchone()
    return pending is not None and all(one.reads_along for one in _having_it(tx, message))


_EDITED = """
SELECT m.id, m.conversation, m.from_boss, m.from_name, m.subject, m.text, m.attachments, m.channel, m.context,
       s.kind, s.name, s.retired_at, p.name AS place_name
FROM message m JOIN address s ON s.id = m.sender LEFT JOIN address p ON p.id = m.place WHERE m.id = ?
"""


# Whether a recipient is in the conversation now. What is said to all agents has no members.
_PRESENT = f"""
    NOT EXISTS (SELECT 1 FROM conversation c JOIN address g ON g.id = c.address
                WHERE c.id = m.conversation AND c.kind = 'group' AND g.fold <> '{ALL.fold}'
                  AND NOT EXISTS (SELECT 1 FROM participant p WHERE p.conversation = c.id
                                  AND p.address = e.recipient AND p.left_seq IS NULL))
"""


class _Having(NamedTuple):
    """An agent that was given a message."""

    address: Address
    present: bool  # in its conversation: who left a group is not
    reads_along: bool


def _having_it(tx: Tx, message: int) -> list[_Having]:
    """Return the agents that were given a message: it is done, or in the hands of a run or of a claim."""
    rows = tx.execute(
        f"""
        SELECT a.kind, a.name, {_PRESENT} AS present,
               e.context OR e.routed_from IS e.recipient AS reads_along
        FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
        WHERE e.message = ? AND a.kind = 'agent' AND a.retired_at IS NULL
          AND (e.status = ? OR e.held_by IS NOT NULL OR e.waits IS ? OR e.acked_at IS NOT NULL)
        ORDER BY e.id
        """,
        (message, int(Status.DONE), int(Waits.LEASE)),
    ).fetchall()
    return [
        _Having(Address(row["kind"], row["name"]), bool(row["present"]), bool(row["reads_along"]))
        for row in rows
    ]


def _notice(row: Row, channel: dict[str, Any]) -> str:
    author = (channel.get("author") or {}).get("name") or row["from_name"]
    place = visible(f"{row['kind']}:{row['name']}")
    who = f"{name(author, QUOTED_NAME)} ({place})" if author else place
    files = f"\nIts files: {', '.join(quote(one, QUOTED_NAME) for one in _names(row))}" if _names(row) else ""
    return f"{who} edited m{row['id']}. It now reads: {quote(row['text'], QUOTED_TEXT)}{files}"


def _names(row: Row) -> list[str]:
    return [one["name"] for one in json.loads(row["attachments"])] if row["attachments"] else []
