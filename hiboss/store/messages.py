"""Write messages: check a draft, and insert the message with its envelopes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..core.address import BOSS, Address
from ..core.envelope import Accepted, Draft
from ..core.errors import KeyReused
from ..core.events import EnvelopesArrived, EnvelopesDeferred, EnvelopeSettled
from . import conversation_routes, envelopes, forwarding, stand_ins
from .connection import Row
from .conversation_routes import Addressed
from .group_commit import Tx
from .recipients import addressed, parent_of, sender_of
from .writer_cache import LiveAddress

_INSERT_MESSAGE = """
INSERT INTO message (conversation, seq, thread, reply_to, sender, caller, from_boss, from_name, subject,
                     type, text, attachments, interruptible, auto, deliver_at, run, trace, hops,
                     channel, metadata, created_at, arrived_at, place, context, parse_mode)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def insert(tx: Tx, draft: Draft, now: int) -> Accepted:
    """Store a message with one envelope for each recipient; if it is due now, it arrives at once."""
    if draft.key is not None and (first := repeated(tx, draft)):
        return first
    sender = sender_of(tx, draft)
    parent = parent_of(tx, draft, sender) if draft.reply_to else None
    if parent is not None and draft.run is None and _is_agent(draft, sender):
        # An agent continues what it answers, also if it fetches its mail: so no loop escapes the limits.
        draft = draft._replace(trace=parent["trace"], hops=parent["hops"] + 1, named=False)
    found = addressed(tx, draft, sender, parent)  # the last check, before anything is written
    chats = [one for one in found if one.to_boss]
    recipients = _instead_of_chats(tx, found) if chats else found
    parties = [one.recipient.id for one in recipients] + list(draft.gone)
    conversation = stand_ins.conversation_of(tx, draft, sender, parties, parent, now, to_chats=bool(chats))
    routes = tx.cache.routes().of.get(conversation)
    if routes:
        recipients = conversation_routes.recipients_of(draft, sender, recipients, routes)
        parties = [*(one.recipient.id for one in recipients), *draft.gone]
    # Due now: it arrives in this transaction. Deferred: it arrives when its time comes (overdue.py).
    seq = tx.cache.next_seq(conversation) if draft.deliver_at is None else None
    message = _insert_message(tx, draft, sender, parent, conversation, seq, now)
    inserted = _insert_envelopes(tx, draft, message, recipients, now)
    failed: tuple[int, ...] = ()
    if draft.gone:
        failed = tuple([envelopes.insert_failed(tx, message, one, draft.binding, now) for one in draft.gone])
        inserted += failed
    if seq is not None:
        last = tx.cache.last_arrived
        tx.facts.append(EnvelopesArrived(now, message, conversation, seq, sender.id, inserted, parties, last))
        tx.facts += [EnvelopeSettled(now, one, "failed") for one in failed]
    posted: list[int] = []
    boss = tx.cache.reach().boss
    if boss in parties:
        posted = _forward(tx, draft, message, inserted[parties.index(boss)], chats, parent, now)
    named = tuple(inserted) if not (chats or routes) else _named_envelopes(tx, draft, message)
    if seq is not None:
        tx.arrived_for += parties if not draft.context else ()  # then nobody has anything to do
    else:
        assert draft.deliver_at is not None
        of = (message, conversation, sender.id, (*inserted, *posted))
        tx.facts.append(EnvelopesDeferred(now, *of, draft.deliver_at))
    if draft.key is not None:
        tx.execute(
            "INSERT INTO sent_key (caller, key, message, digest) VALUES (?, ?, ?, ?)",
            (draft.caller, draft.key, message, draft.digest),
        )
    return Accepted(
        message=message,
        conversation=conversation,
        thread=(parent["thread"] or parent["id"]) if parent else message,
        envelopes=named,
        deliver_at=draft.deliver_at,
        recipients=()
        if draft.context
        else tuple([one.recipient.id for one in recipients if not one.is_copy]),
        lanes=_lanes(draft, found),
        failed=failed,
    )


def _insert_envelopes(
    tx: Tx, draft: Draft, message: int, recipients: Sequence[Addressed], now: int
) -> list[int]:
    how = draft.priority, draft.deliver_at, now
    return [
        envelopes.insert(
            tx,
            message,
            one.recipient,
            one.binding,
            *how,
            context=draft.context or (one.routed_from is not None and one.is_context),
            routed_from=one.routed_from,
        )
        for one in recipients
    ]


def _forward(
    tx: Tx,
    draft: Draft,
    message: int,
    box: int,
    chats: Sequence[Addressed],
    parent: Row | None,
    now: int,
) -> list[int]:
    """Post what is in the boss's box also to the chats of his that were named; or else where he wants it.

    Return the envelopes for the chats that were named.
    """
    times = (draft.deliver_at, now)
    posted = [
        envelopes.insert(
            tx, message, one.recipient, one.binding, draft.priority, *times, forwards=box, addressed=True
        )
        for one in chats
    ]
    if posted or draft.deliver_at is not None or not draft.forward:
        return posted
    asked_there = parent is not None and parent["place"] is not None
    if asked_there or tx.cache.reach().place is not None:
        forwarding.arrived(tx, box, now)
    return posted


def _is_agent(draft: Draft, sender: LiveAddress) -> bool:
    """Tell whether an agent sends this itself, and not the boss in its name."""
    return sender.address.kind == "agent" and sender.id == draft.caller


def check(tx: Tx, draft: Draft) -> dict[str, int]:
    """Raise the error that sending this draft now would raise; return the ids of its addresses."""
    sender = sender_of(tx, draft)
    parent = parent_of(tx, draft, sender) if draft.reply_to else None
    addressed(tx, draft, sender, parent)
    entries = {str(one): tx.cache.live_address(one) for one in (draft.sender, *draft.to)}
    return {address: entry.id for address, entry in entries.items() if entry is not None}


def _instead_of_chats(tx: Tx, addressed: Sequence[Addressed]) -> Sequence[Addressed]:
    """Return the recipients with the boss himself in place of his chats."""
    boss = tx.cache.live_address(BOSS)
    assert boss is not None  # there is a chat of his
    found = [Addressed(boss) if one.to_boss else one for one in addressed]
    return list({one.recipient.id: one for one in found}.values())


def _lanes(draft: Draft, addressed: Sequence[Addressed]) -> tuple[tuple[int, int], ...]:
    if draft.deliver_at is not None:
        return ()
    return tuple([(one.recipient.id, one.binding) for one in addressed if one.binding is not None])


def repeated(tx: Tx, draft: Draft) -> Accepted | None:
    """Return the first answer for the key of this draft; None if the key is new.

    Raise KeyReused if the key was used for other content.
    """
    key = draft.key
    row = tx.execute(
        """
        SELECT k.digest, m.id, m.conversation, m.thread, m.deliver_at
        FROM sent_key k JOIN message m ON m.id = k.message WHERE k.caller = ? AND k.key = ?
        """,
        (draft.caller, key),
    ).fetchone()
    if row is None:
        return None
    found = _named_envelopes(tx, draft, row["id"])
    if row["digest"] != draft.digest:
        raise KeyReused(key=key, id=f"e{found[0]}")
    return Accepted(
        message=row["id"],
        conversation=row["conversation"],
        thread=row["thread"] or row["id"],
        envelopes=found,
        deliver_at=row["deliver_at"],
        duplicate=True,
    )


def _named_envelopes(tx: Tx, draft: Draft, message: int) -> tuple[int, ...]:
    """Return the envelopes of those to whom a draft was sent, in their order.

    Of a forward and what it forwards, that is the one whose recipient the sender named.
    """
    rows = tx.execute(
        """
        SELECT e.id, e.forwards, e.addressed, a.kind, a.name
        FROM envelope e JOIN address a ON a.id = ifnull(e.routed_from, e.recipient)
        WHERE e.message = ? AND e.routed_from IS NOT e.recipient ORDER BY e.id
        """,
        (message,),
    ).fetchall()
    order = {address.fold: place for place, address in enumerate(draft.to)}
    folds = {row["id"]: Address(row["kind"], row["name"]).fold for row in rows}
    posted = {row["id"] for row in rows if row["addressed"]}
    boxes = {row["forwards"] for row in rows if row["id"] in posted and BOSS.fold not in order}
    own = [row["id"] for row in rows if row["forwards"] is None and row["id"] not in boxes]
    return tuple(sorted([*own, *posted], key=lambda number: (order.get(folds[number], 0), number)))


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
            None if draft.place is None else _place(tx, draft.place),
            draft.context,
            draft.parse_mode,
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


def _place(tx: Tx, address: Address) -> int:
    return (tx.cache.live_address(address) or tx.cache.add_address(address)).id
