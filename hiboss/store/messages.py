"""Messages and their envelopes: storing them, and the moment they arrive."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..address import Address
from ..envelope import Accepted, Draft, Status, Waits
from ..errors import KeyReused, NoRecipient, NotBound, NotFound, UnknownRecipient, UnknownSender, nearest
from .book import Entry
from .database import Connection, Row
from .writer import Tx

_INSERT_MESSAGE = """
INSERT INTO message (conversation, seq, thread, reply_to, sender, caller, from_boss, from_name, subject,
                     type, text, attachments, interruptible, auto, deliver_at, run, trace, hops,
                     metadata, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_INSERT_ENVELOPE = """
INSERT INTO envelope (message, recipient, binding, status, priority, arrived, waits, wake_at, done_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def insert(tx: Tx, draft: Draft, now: int) -> Accepted:
    """Store a message with one envelope for each recipient; what is due now arrives at once."""
    if draft.key is not None and (first := repeated(tx, draft.caller, draft.key, draft.digest)):
        return first
    sender = _sender(tx, draft)
    parent = _parent(tx, draft, sender) if draft.reply_to else None
    recipients = _recipients(tx, draft, sender, parent)
    conversation = tx.book.conversation((sender.id, *[r.id for r in recipients]), now)
    # Due now: it arrives in the transaction that accepts it. Deferred: when its time comes.
    seq = tx.book.next_seq(conversation) if draft.deliver_at is None else None
    message = _insert_message(tx, draft, sender, parent, conversation, seq, now)
    envelopes = tuple([_insert_envelope(tx, draft, message, sender, r, now) for r in recipients])
    if draft.key is not None:
        tx.execute(
            "INSERT INTO sent_key (caller, key, message, digest) VALUES (?, ?, ?, ?)",
            (draft.caller, draft.key, message, draft.digest),
        )
    return Accepted(
        message=message,
        conversation=conversation,
        thread=(parent["thread"] or parent["id"]) if parent else message,
        envelopes=envelopes,
        deliver_at=draft.deliver_at,
    )


def repeated(tx: Tx, caller: int, key: str, digest: bytes | None) -> Accepted | None:
    """The first answer to this caller's key, if it was given before."""
    row = tx.execute(
        """
        SELECT k.digest, m.id, m.conversation, m.thread, m.deliver_at
        FROM sent_key k JOIN message m ON m.id = k.message WHERE k.caller = ? AND k.key = ?
        """,
        (caller, key),
    ).fetchone()
    if row is None:
        return None
    found = tx.execute("SELECT id FROM envelope WHERE message = ? ORDER BY id", (row["id"],)).fetchall()
    if row["digest"] != digest:
        raise KeyReused(key=key, id=f"e{found[0]['id']}")
    return Accepted(
        message=row["id"],
        conversation=row["conversation"],
        thread=row["thread"] or row["id"],
        envelopes=tuple(e["id"] for e in found),
        deliver_at=row["deliver_at"],
        duplicate=True,
    )


def _insert_message(
    tx: Tx, draft: Draft, sender: Entry, parent: Row | None, conversation: int, seq: int | None, now: int
) -> int:
    attachments = [a.facts() for a in draft.attachments] if draft.attachments else None
    cursor = tx.execute(
        _INSERT_MESSAGE,
        (
            conversation,
            seq,
            (parent["thread"] or parent["id"]) if parent else None,
            parent["id"] if parent else None,
            sender.id,
            draft.caller,
            draft.from_boss,
            draft.from_name,
            draft.subject,
            int(draft.kind),
            draft.text,
            json.dumps(attachments, ensure_ascii=False) if attachments else None,
            draft.interruptible,
            draft.auto,
            draft.deliver_at,
            draft.run,
            draft.trace,
            draft.hops,
            json.dumps(draft.metadata, ensure_ascii=False) if draft.metadata else None,
            now,
        ),
    )
    return int(cursor.lastrowid or 0)


def _insert_envelope(tx: Tx, draft: Draft, message: int, sender: Entry, recipient: Entry, now: int) -> int:
    deferred = draft.deliver_at is not None
    # A person's box holds mail as done: nobody works through it one by one.
    done = not deferred and recipient.address.kind == "user"
    cursor = tx.execute(
        _INSERT_ENVELOPE,
        (
            message,
            recipient.id,
            _binding(tx, sender, recipient) if recipient.address.kind == "channel" else None,
            int(Status.DONE if done else Status.PENDING),
            int(draft.priority),
            None if deferred else tx.book.next_arrived(),
            int(Waits.DEFERRED) if deferred else None,
            draft.deliver_at,
            now if done else None,
        ),
    )
    return int(cursor.lastrowid or 0)


def _sender(tx: Tx, draft: Draft) -> Entry:
    entry = tx.book.entry(draft.sender)
    if entry is not None and not draft.sees_all and entry.id != draft.caller:
        entry = None  # a namesake who came while this was under way
    if entry is None and draft.sender.kind == "channel":
        return tx.book.add(draft.sender)  # only the boss may speak for a channel; api saw to it
    if entry is None:
        raise UnknownSender(address=str(draft.sender), hint=hint(tx, draft.sender))
    return entry


def _recipients(tx: Tx, draft: Draft, sender: Entry, parent: Row | None) -> Sequence[Entry]:
    addresses = draft.to or _reply_addresses(tx, sender, parent)
    found: dict[int, Entry] = {}
    for address in addresses:
        entry = tx.book.entry(address)
        if entry is None and address.kind == "channel":
            raise NotBound(sender=str(sender.address), adapter=address.adapter, address=str(address))
        if entry is None:
            raise UnknownRecipient(address=str(address), hint=hint(tx, address))
        found[entry.id] = entry
    return list(found.values())


def _reply_addresses(tx: Tx, sender: Entry, parent: Row | None) -> Sequence[Address]:
    """Where a reply without recipients goes: to the writer, or on to those one wrote to oneself."""
    if parent is None:
        raise NoRecipient()
    own = parent["sender"] == sender.id
    rows = tx.execute(
        f"""
        SELECT kind, name, retired_at FROM address
        WHERE id {"IN (SELECT recipient FROM envelope WHERE message = ?)" if own else "= ?"} ORDER BY id
        """,
        (parent["id"] if own else parent["sender"],),
    ).fetchall()
    for row in rows:
        if row["retired_at"] is not None:  # a namesake who came later is somebody else
            raise UnknownRecipient(address=f"{row['kind']}:{row['name']}", hint="")
    return [Address(row["kind"], row["name"]) for row in rows]


def _parent(tx: Tx, draft: Draft, sender: Entry) -> Row:
    """The message replied to, when the sender has part in it; a foreign one is not there."""
    assert draft.reply_to
    kind, number = draft.reply_to
    row: Row | None = tx.execute(
        f"""
        SELECT m.id, m.thread, m.sender, m.deleted_at FROM message m
        WHERE m.id = {"(SELECT message FROM envelope WHERE id = ?)" if kind == "envelope" else "?"}
        """,
        (number,),
    ).fetchone()
    if row is None or row["deleted_at"] is not None or not _has_part(tx, row, draft, sender):
        raise NotFound(what=kind, value=f"{kind[0]}{number}")
    return row


def _has_part(tx: Tx, message: Row, draft: Draft, sender: Entry) -> bool:
    if draft.sees_all or message["sender"] == sender.id:
        return True
    received = tx.execute(
        "SELECT 1 FROM envelope WHERE message = ? AND recipient = ? AND arrived IS NOT NULL",
        (message["id"], sender.id),
    ).fetchone()
    return received is not None


def _binding(tx: Tx, sender: Entry, recipient: Entry) -> int:
    """The platform account this sender posts with there; pinned to the envelope."""
    row = tx.execute(
        """
        SELECT b.id FROM binding_agent ba JOIN binding b ON b.id = ba.binding
        WHERE ba.agent = ? AND b.adapter = ? AND b.removed_at IS NULL ORDER BY b.id LIMIT 1
        """,
        (sender.id, recipient.address.adapter),
    ).fetchone()
    if row is None:
        raise NotBound(
            sender=str(sender.address), adapter=recipient.address.adapter, address=str(recipient.address)
        )
    return int(row["id"])


def hint(tx: Tx | Connection, address: Address) -> str:
    """' (did you mean agent:nex?)' from those who are here."""
    rows = tx.execute(
        """
        SELECT kind || ':' || name AS text FROM address
        WHERE retired_at IS NULL AND kind <> 'channel' LIMIT 1000
        """
    )
    return nearest(str(address), [row["text"] for row in rows])
