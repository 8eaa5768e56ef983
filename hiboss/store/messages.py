"""Write messages: check a draft, and insert the message with its envelopes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..core.address import BACKGROUND, SYSTEM, Address
from ..core.envelope import Accepted, Draft
from ..core.errors import (
    KeyReused,
    NoProvider,
    NoRecipient,
    NotBound,
    NotFound,
    UnknownRecipient,
    UnknownSender,
)
from . import envelopes
from .addresses import near_address
from .connection import Row
from .group_commit import Tx
from .writer_cache import LiveAddress

_INSERT_MESSAGE = """
INSERT INTO message (conversation, seq, thread, reply_to, sender, caller, from_boss, from_name, subject,
                     type, text, attachments, interruptible, auto, deliver_at, run, trace, hops,
                     channel, metadata, created_at, arrived_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def insert(tx: Tx, draft: Draft, now: int) -> Accepted:
    """Store a message with one envelope for each recipient; if it is due now, it arrives at once."""
    if draft.key is not None and (first := repeated(tx, draft.caller, draft.key, draft.digest)):
        return first
    sender = _sender(tx, draft)
    parent = _parent(tx, draft, sender) if draft.reply_to else None
    if parent is not None and draft.run is None and _is_agent(draft, sender):
        # An agent continues what it answers, also if it fetches its mail: so no loop escapes the limits.
        draft = draft._replace(trace=parent["trace"], hops=parent["hops"] + 1, named=False)
    recipients = _recipients(tx, draft, sender, parent)
    bindings = _bindings(tx, draft, sender, recipients, parent)  # the last check, before anything is written
    conversation = tx.cache.conversation((sender.id, *[r.id for r in recipients]), now)
    # Due now: it arrives in this transaction. Deferred: it arrives when its time comes (overdue.py).
    seq = tx.cache.next_seq(conversation) if draft.deliver_at is None else None
    message = _insert_message(tx, draft, sender, parent, conversation, seq, now)
    inserted = tuple(
        [
            envelopes.insert(tx, message, r, binding, draft.priority, draft.deliver_at, now)
            for r, binding in zip(recipients, bindings, strict=True)
        ]
    )
    if seq is not None:
        tx.arrived_for += [r.id for r in recipients]
    if draft.key is not None:
        tx.execute(
            "INSERT INTO sent_key (caller, key, message, digest) VALUES (?, ?, ?, ?)",
            (draft.caller, draft.key, message, draft.digest),
        )
    return Accepted(
        message=message,
        conversation=conversation,
        thread=(parent["thread"] or parent["id"]) if parent else message,
        envelopes=inserted,
        deliver_at=draft.deliver_at,
        recipients=tuple([r.id for r in recipients]),
        lanes=_lanes(draft, recipients, bindings),
    )


def _is_agent(draft: Draft, sender: LiveAddress) -> bool:
    """Tell whether an agent sends this itself, and not the boss in its name."""
    return sender.address.kind == "agent" and sender.id == draft.caller


def check(tx: Tx, draft: Draft) -> dict[str, int]:
    """Raise the error that sending this draft now would raise; return the ids of its addresses."""
    sender = _sender(tx, draft)
    parent = _parent(tx, draft, sender) if draft.reply_to else None
    _bindings(tx, draft, sender, _recipients(tx, draft, sender, parent), parent)
    entries = {str(one): tx.cache.live_address(one) for one in (draft.sender, *draft.to)}
    return {address: entry.id for address, entry in entries.items() if entry is not None}


def _bindings(
    tx: Tx, draft: Draft, sender: LiveAddress, recipients: Sequence[LiveAddress], parent: Row | None
) -> list[int | None]:
    return [
        _binding(tx, draft, sender, one, parent) if one.address.kind == "channel" else None
        for one in recipients
    ]


def _lanes(
    draft: Draft, recipients: Sequence[LiveAddress], bindings: Sequence[int | None]
) -> tuple[tuple[int, int], ...]:
    if draft.deliver_at is not None:
        return ()
    pairs = zip(recipients, bindings, strict=True)
    return tuple([(recipient.id, binding) for recipient, binding in pairs if binding is not None])


def repeated(tx: Tx, caller: int | None, key: str, digest: bytes | None) -> Accepted | None:
    """Return the first answer for this key of the caller; None if the key is new.

    Raise KeyReused if the key was used for other content.
    """
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
    tx: Tx,
    draft: Draft,
    sender: LiveAddress,
    parent: Row | None,
    conversation: int,
    seq: int | None,
    now: int,
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
            json.dumps(draft.channel, ensure_ascii=False) if draft.channel else None,
            json.dumps(draft.metadata, ensure_ascii=False) if draft.metadata else None,
            now,
            None if seq is None else now,
        ),
    )
    number = int(cursor.lastrowid or 0)
    if draft.named:
        # A namespace of its own for each caller, and a trace of its own for each message: whoever uses
        # one name for many messages adds no runs to the trace of anybody.
        tx.execute(
            """
            UPDATE message SET trace = (SELECT kind || ':' || name FROM address WHERE id = message.caller)
                || '/' || trace || '/m' || id WHERE id = ?
            """,
            (number,),
        )
    return number


def _sender(tx: Tx, draft: Draft) -> LiveAddress:
    entry = tx.cache.live_address(draft.sender)
    if entry is not None and not draft.sees_all and entry.id != draft.caller:
        entry = None  # the name now belongs to somebody else, registered since the request came
    if entry is None and draft.sender.kind == "channel":
        return tx.cache.add_address(draft.sender)  # only the boss may send as a channel; api checked that
    if entry is None or (entry.address == SYSTEM and entry.id != draft.caller):
        raise UnknownSender(address=str(draft.sender), hint=near_address(tx, draft.sender))
    return entry


def _recipients(tx: Tx, draft: Draft, sender: LiveAddress, parent: Row | None) -> Sequence[LiveAddress]:
    addresses = draft.to or _reply_addresses(tx, sender, parent)
    found: dict[int, LiveAddress] = {}
    for address in addresses:
        entry = tx.cache.live_address(address)
        if entry is not None and entry.address == SYSTEM:
            entry = None  # it only sends
        if entry is not None and entry.address == BACKGROUND:
            _check_has_provider(tx, sender)
        if entry is None and address.kind == "channel":
            raise NotBound(sender=str(sender.address), adapter=address.adapter, address=str(address))
        if entry is None:
            raise UnknownRecipient(address=str(address), hint=near_address(tx, address))
        found[entry.id] = entry
    return list(found.values())


def _check_has_provider(tx: Tx, sender: LiveAddress) -> None:
    """Check that a sender to agent:background is an agent with a provider: that provider does the task."""
    row = tx.execute("SELECT provider FROM agent WHERE address = ?", (sender.id,)).fetchone()
    if row is None:
        raise UnknownRecipient(address=str(BACKGROUND), hint=" for you (it takes tasks of agents only)")
    if row["provider"] is None:
        raise NoProvider(name=sender.address.name)


def _reply_addresses(tx: Tx, sender: LiveAddress, parent: Row | None) -> Sequence[Address]:
    """Return where a reply without recipients goes: to the sender of the message replied to.

    A reply to one's own message goes to the same recipients again.
    """
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
        if row["retired_at"] is not None:  # a later holder of the same name is somebody else
            raise UnknownRecipient(address=f"{row['kind']}:{row['name']}", hint="")
    return [Address(row["kind"], row["name"]) for row in rows]


def _parent(tx: Tx, draft: Draft, sender: LiveAddress) -> Row:
    """Return the message replied to; raise NotFound if the sender neither sent nor received it."""
    assert draft.reply_to
    kind, number = draft.reply_to
    row: Row | None = tx.execute(
        f"""
        SELECT m.id, m.thread, m.sender, m.deleted_at, m.hops, ifnull(m.trace, 'm' || m.id) AS trace
        FROM message m
        WHERE m.id = {"(SELECT message FROM envelope WHERE id = ?)" if kind == "envelope" else "?"}
        """,
        (number,),
    ).fetchone()
    # A machine or a platform does not know that it was deleted, and what they bring must not be lost.
    knows = not draft.auto and draft.caller is not None
    if row is None or (row["deleted_at"] is not None and knows) or not _may_see(tx, row, draft, sender):
        raise NotFound(what=kind, value=f"{kind[0]}{number}")
    return row


def _may_see(tx: Tx, message: Row, draft: Draft, sender: LiveAddress) -> bool:
    if draft.sees_all or message["sender"] == sender.id:
        return True
    received = tx.execute(
        "SELECT 1 FROM envelope WHERE message = ? AND recipient = ? AND arrived IS NOT NULL",
        (message["id"], sender.id),
    ).fetchone()
    return received is not None


def _binding(tx: Tx, draft: Draft, sender: LiveAddress, recipient: LiveAddress, parent: Row | None) -> int:
    """Return the binding that this sender posts with there; it is stored in the envelope.

    A reply uses the binding that its message came in by. Only the agents of a binding and the
    boss may use it, and only for places it may post to.
    """
    rows = tx.execute(
        """
        SELECT b.id FROM contact c JOIN binding b ON b.id = c.binding
        WHERE c.address = ?1 AND c.state IN ('allowed', 'boss') AND b.removed_at IS NULL
          AND (?2 OR EXISTS (SELECT 1 FROM binding_agent ba WHERE ba.binding = b.id AND ba.agent = ?3))
        ORDER BY b.id
        """,
        (recipient.id, draft.sees_all and sender.address.kind == "user", sender.id),
    ).fetchall()
    if not rows:
        raise NotBound(
            sender=str(sender.address), adapter=recipient.address.adapter, address=str(recipient.address)
        )
    usable = [int(row["id"]) for row in rows]
    if parent is not None:
        came = tx.execute("SELECT binding FROM platform_update WHERE message = ?", (parent["id"],)).fetchone()
        if came is not None and came["binding"] in usable:
            return int(came["binding"])
    return usable[0]
