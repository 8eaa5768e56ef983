"""What an agent or a user does with a message of its own: edit it, delete it. The boss deletes any.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import Address
from ..core.envelope import Status, Waits
from ..core.errors import EmptyMessage, NotAuthor, NotFound, TooLate
from ..core.events import MessageDeleted
from . import ask_answers, ask_mail, deleted_envelopes, envelope_rows, message_edits, post_changes
from .connection import Connection, Row
from .group_commit import Tx


def visible(connection: Connection | Tx, given: tuple[str, int], viewer: int | None) -> Row:
    """Return a message that the viewer sent or received, given by its id or that of an envelope.

    `viewer`: None sees all. Raise NotFound if there is none. `envelope` is one of it that the viewer sees.
    """
    kind, number = given
    message = number
    if kind == "envelope":
        message = envelope_rows.visible(connection, number, viewer)["message"]
    row: Row | None = connection.execute(
        """
        SELECT m.id, m.sender, m.caller, m.deleted_at, m.attachments,
               (SELECT a.kind || ':' || a.name FROM address a WHERE a.id = m.sender) AS author,
               (SELECT a.kind || ':' || a.name FROM address a WHERE a.id = m.place) AS place,
               (SELECT min(e.id) FROM envelope e WHERE e.message = m.id
                AND (?2 IS NULL OR m.sender = ?2 OR e.recipient = ?2)) AS envelope
        FROM message m WHERE m.id = ?1 AND (?2 IS NULL OR m.sender = ?2 OR EXISTS (
            SELECT 1 FROM envelope e WHERE e.message = m.id AND e.recipient = ?2 AND e.arrived IS NOT NULL))
        """,
        (message, viewer),
    ).fetchone()
    if row is None:
        raise NotFound(what=kind, value=f"{kind[0]}{number}")
    return row


def check_there(row: Row, action: str) -> None:
    """Raise TooLate if a message was deleted."""
    if row["deleted_at"] is not None:
        raise TooLate(id=f"e{row['envelope']}", action=action, state="deleted")


def edit(tx: Tx, row: Row, text: str, editor: int, now: int) -> bool:
    """Give a message another text; return whether it had another one. `row`: what `visible` returned.

    Its posts follow. Agents that have it already are told, as of an edit on a platform.
    """
    _check_author(row, editor, "edit")
    ask_mail.check_edit(tx, row["id"])
    check_there(row, "edited")
    if not text.strip() and not row["attachments"]:
        raise EmptyMessage()
    if not message_edits.edit(tx, row["id"], text, (), now):
        return False
    post_changes.add(tx, row["id"], editor)
    earlier = message_edits.last_new_wording(tx, row["id"])
    if earlier is not None and message_edits.waits(tx, earlier):  # no agent has begun with that one
        message_edits.edit(tx, earlier, text, (), now)
        return True
    own = tx.execute("SELECT kind, name FROM address WHERE id = ?", (editor,)).fetchone()
    message_edits.tell(tx, row["id"], None, now, editor=Address(*own))
    return True


def _check_author(row: Row, caller: int, action: str) -> None:
    """Raise NotAuthor unless the caller wrote a message, and wrote it here."""
    if caller not in (row["sender"], row["caller"]):
        raise NotAuthor(id=f"m{row['id']}", author=row["author"], action=action, who="only its author")
    if row["caller"] is None:
        where = row["place"] or row["author"]
        raise NotAuthor(id=f"m{row['id']}", author=row["author"], action=action, who=f"only in {where} you")


class Deleted(NamedTuple):
    """What became of a message that was deleted."""

    changed: bool  # False: it was deleted before
    cancelled: int = 0  # envelopes that nobody had
    in_hand: int = 0  # envelopes that an agent works on
    posts: int = 0  # places in which it is taken back


def delete(tx: Tx, row: Row, why: str | None, caller: int, now: int, *, boss: bool) -> Deleted:
    """Delete a message for everybody: its content is not shown any more. `row`: what `visible` returned.

    Envelopes that nobody has are cancelled. What is posted of it is taken back, where the platform can.
    """
    if not boss and caller not in (row["sender"], row["caller"]):
        raise NotAuthor(
            id=f"m{row['id']}", author=row["author"], action="delete", who="only its author or the boss"
        )
    if row["deleted_at"] is not None:
        return Deleted(False)
    ask_mail.check_delete(tx, row["id"], caller, boss=boss)
    tx.execute(
        "UPDATE message SET deleted_at = ?, deleted_by = ?, deleted_why = ? WHERE id = ?",
        (now, caller, why or None, row["id"]),
    )
    tx.facts.append(MessageDeleted(now, row["id"]))
    ask_answers.end_of_message(tx, row["id"], caller, why, now)
    pending = tx.execute(
        """
        SELECT id, binding, held_by IS NOT NULL OR waits IS ? AS in_hand FROM envelope
        WHERE message = ? AND status = ? ORDER BY id
        """,
        (int(Waits.LEASE), row["id"], int(Status.PENDING)),
    ).fetchall()
    free = [one["id"] for one in pending if not one["in_hand"]]
    for number in free:
        deleted_envelopes.end(tx, number, now)
    in_hand = sum(1 for one in pending if one["in_hand"] and one["binding"] is None)
    return Deleted(True, len(free), in_hand, post_changes.add(tx, row["id"], caller))
