"""What an agent or a user does with a message of its own: edit it, delete it. The boss deletes any.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import Address
from ..core.envelope import Status, Waits
from ..core.errors import EmptyMessage, NotAuthor, NotFound, NotMember, TooLate
from ..core.events import MessageDeleted, MessageRestored
from . import (
    ask_answers,
    ask_mail,
    chat_entries,
    deleted_envelopes,
    destinations,
    envelope_marks,
    envelope_rows,
    group_delivery,
    message_edits,
    post_changes,
)
from .connection import Connection, Row
from .group_commit import Tx
from .visibility import sees


def visible(connection: Connection | Tx, given: tuple[str, int], viewer: int | None) -> Row:
    """Return a message that the viewer may see, given by its id or that of an envelope; else raise NotFound.

    `viewer`: None sees all. `envelope` is one of it that the viewer sent or got; None: there is none.
    """
    kind, number = given
    message = number
    if kind == "envelope":
        message = envelope_rows.visible(connection, number, viewer)["message"]
    row: Row | None = connection.execute(
        f"""
        SELECT m.id, m.conversation, m.sender, m.caller, m.deleted_at, m.deleted_by, m.attachments,
               (SELECT a.kind || ':' || a.name FROM address a
                WHERE a.id = ifnull(m.caller, m.sender)) AS writer,
               (SELECT a.kind || ':' || a.name FROM address a WHERE a.id = m.sender) AS author,
               (SELECT a.kind || ':' || a.name FROM address a WHERE a.id = m.place) AS place,
               (SELECT min(e.id) FROM envelope e WHERE e.message = m.id
                AND (?2 IS NULL OR m.sender = ?2 OR e.recipient = ?2)) AS envelope
        FROM message m WHERE m.id = ?1 AND (?2 IS NULL OR {sees("?2")})
        """,
        (message, viewer),
    ).fetchone()
    if row is None:
        raise NotFound(what=kind, value=f"{kind[0]}{number}")
    return row


def check_there(row: Row, action: str) -> None:
    """Raise TooLate if a message was deleted."""
    if row["deleted_at"] is not None:
        known = f"m{row['id']}" if row["envelope"] is None else f"e{row['envelope']}"
        raise TooLate(id=known, action=action, state="deleted")


def edit(tx: Tx, row: Row, text: str, editor: int, now: int) -> bool:
    """Give a message another text; return whether it had another one. `row`: what `visible` returned.

    Its posts follow. Agents that have it already are told, as of an edit on a platform.
    """
    _check_author(tx, row, editor, "edit")
    ask_mail.check_edit(tx, row["id"])
    check_there(row, "edited")
    check_member(tx, row, editor, "edited")
    destinations.check_open(tx, row["conversation"])
    if not text.strip() and not row["attachments"]:
        raise EmptyMessage()
    if not message_edits.edit(tx, row["id"], text, (), now):
        return False
    post_changes.add(tx, row["id"], editor)
    earlier = message_edits.last_new_wording(tx, row["id"])
    if earlier is not None and message_edits.reword(tx, earlier, text, (), now):
        return True
    own = tx.execute("SELECT kind, name FROM address WHERE id = ?", (editor,)).fetchone()
    message_edits.tell(tx, row["id"], None, now, editor=Address(*own))
    return True


def _wrote(tx: Tx, row: Row, caller: int) -> bool:
    """Tell whether somebody wrote a message. What the boss wrote in the name of an agent, the boss wrote."""
    if row["caller"] is None:  # of those who call, only he also writes on platforms
        return bool(caller == row["sender"] == tx.cache.reach().boss)
    return bool(caller == row["caller"])


def _not_author(row: Row, caller: int, action: str, who: str) -> NotAuthor:
    # That the boss wrote it only that one is told in whose name it is.
    author = row["writer"] if caller == row["sender"] else row["author"]
    return NotAuthor(id=f"m{row['id']}", author=author, action=action, who=who)


def _check_author(tx: Tx, row: Row, caller: int, action: str) -> None:
    """Raise NotAuthor unless the caller wrote a message, and wrote it here."""
    if not _wrote(tx, row, caller):
        raise _not_author(row, caller, action, "only its author")
    if row["caller"] is None:
        where = row["place"] or row["author"]
        raise NotAuthor(id=f"m{row['id']}", author=row["author"], action=action, who=f"only in {where} you")


def check_member(tx: Tx, row: Row, caller: int, action: str) -> None:
    """Raise unless the caller may still write where a message was said: of a group, those who are in it.

    The boss may write to any.
    """
    talk = tx.execute(_GROUP, (row["conversation"], caller)).fetchone()
    if talk["deleted_at"] is not None:
        known = f"m{row['id']}" if row["envelope"] is None else f"e{row['envelope']}"
        raise TooLate(id=known, action=action, state="in a conversation that was deleted")
    if talk["kind"] != "group" or talk["present"] or caller == tx.cache.reach().boss:
        return
    if group_delivery.is_all(tx, row["conversation"]):  # it has no members
        return
    advice = "only its members change what was said there"
    if talk["open"]:
        advice = f"it is open: hiboss group join {talk['name']}"
    raise NotMember(address=talk["caller"], name=f"group:{talk['name']}", advice=advice)


_GROUP = """
    SELECT c.kind, c.name, c.open, c.deleted_at,
           EXISTS (SELECT 1 FROM participant p
                   WHERE p.conversation = c.id AND p.address = ?2 AND p.left_seq IS NULL) AS present,
           (SELECT a.kind || ':' || a.name FROM address a WHERE a.id = ?2) AS caller
    FROM conversation c WHERE c.id = ?1
"""


class Deleted(NamedTuple):
    """What became of a message that was deleted."""

    changed: bool  # False: it was deleted before
    cancelled: int = 0  # envelopes that nobody had
    in_hand: int = 0  # envelopes that an agent works on
    posts: int = 0  # places in which it is taken back


def delete(tx: Tx, row: Row, why: str | None, caller: int, now: int, *, boss: bool) -> Deleted:
    """Delete a message for everybody: its content is not shown any more. `row`: what `visible` returned.

    Envelopes that nobody has are cancelled. What is posted of it is taken back, where the platform can. With
    it goes what has its text: its new wordings, and the notices that quote it.
    """
    if not boss and not _wrote(tx, row, caller):
        raise _not_author(row, caller, "delete", "only its author or the boss")
    if row["deleted_at"] is not None:
        return Deleted(False)
    ask_mail.check_delete(tx, row["id"], caller, boss=boss)
    copies = message_edits.repeating(tx, row["id"])
    while any(one["deleted_at"] == now for one in copies):
        now += 1  # `restore` tells by the time what was deleted with it from what was deleted before
    repeating = [one["id"] for one in copies if one["deleted_at"] is None]
    found = [_delete(tx, one, why, caller, now) for one in (row["id"], *repeating)]
    cancelled, in_hand = sum(one.cancelled for one in found), sum(one.in_hand for one in found)
    return Deleted(True, cancelled, in_hand, sum(one.posts for one in found))


def _delete(tx: Tx, message: int, why: str | None, caller: int, now: int) -> Deleted:
    tx.execute(
        "UPDATE message SET deleted_at = ?, deleted_by = ?, deleted_why = ? WHERE id = ?",
        (now, caller, why or None, message),
    )
    chat_entries.note_change(tx, message, now)
    tx.facts.append(MessageDeleted(now, message))
    ask_answers.end_of_message(tx, message, caller, why, now)
    envelope_marks.end_snoozes(tx, message)
    pending = tx.execute(
        """
        SELECT id, binding, held_by IS NOT NULL OR waits IS ? AS in_hand FROM envelope
        WHERE message = ? AND status = ? ORDER BY id
        """,
        (int(Waits.LEASE), message, int(Status.PENDING)),
    ).fetchall()
    free = [one["id"] for one in pending if not one["in_hand"]]
    for number in free:
        deleted_envelopes.end(tx, number, now)
    in_hand = sum(1 for one in pending if one["in_hand"] and one["binding"] is None)
    return Deleted(True, len(free), in_hand, post_changes.add(tx, message, caller))


class Restored(NamedTuple):
    """What became of a message that was deleted, and is not any more."""

    changed: bool  # False: it was not deleted
    posts: int = 0  # places in which it is still posted


def restore(tx: Tx, row: Row, caller: int, now: int, *, boss: bool) -> Restored:
    """Undo the deletion of a message: its content is shown again. `row`: what `visible` returned.

    Posts of it that are still there get its text again. What was cancelled stays so, and can be retried.
    What was deleted with it comes back too.
    """
    if not boss and not _wrote(tx, row, caller):
        raise _not_author(row, caller, "restore", "only its author or the boss")
    if row["deleted_at"] is None:
        return Restored(False)
    if not boss and row["deleted_by"] != caller:
        raise _not_author(row, caller, "restore", "the boss deleted it: only he")
    when = (row["deleted_at"], row["deleted_by"])
    found = message_edits.repeating(tx, row["id"])
    with_it = [one["id"] for one in found if (one["deleted_at"], one["deleted_by"]) == when]
    return Restored(True, sum(_restore(tx, one, caller, now) for one in (row["id"], *with_it)))


def _restore(tx: Tx, message: int, caller: int, now: int) -> int:
    tx.execute(
        "UPDATE message SET deleted_at = NULL, deleted_by = NULL, deleted_why = NULL WHERE id = ?",
        (message,),
    )
    chat_entries.note_change(tx, message, now)
    tx.facts.append(MessageRestored(now, message))
    envelope_marks.come_back(tx, message)
    return post_changes.add(tx, message, caller)
