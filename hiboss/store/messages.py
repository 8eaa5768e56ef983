"""Write messages: check a draft, and insert the message with its envelopes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..core.address import Address
from ..core.envelope import Accepted, Draft
from ..core.events import EnvelopesArrived, EnvelopesDeferred, EnvelopeSettled
from . import destinations, envelopes, forwarding, sent_keys, tags, threads
from .connection import Row
from .conversation_routes import Addressed
from .destinations import Destination
from .group_commit import Tx

_ALWAYS = "conversation, seq, sender, caller, text, created_at, arrived_at"
_MORE = """thread, reply_to, from_boss, from_name, subject, type, attachments, interruptible, auto,
           deliver_at, run, trace, hops, channel, metadata, place, context, parse_mode, session,
           ack_within, repeats, about"""


def _inserting(columns: str) -> str:
    return f"INSERT INTO message ({columns}) VALUES ({', '.join('?' * len(columns.split(',')))})"


_INSERT_MESSAGE = _inserting(f"{_ALWAYS}, {_MORE}")
# Most messages have the defaults of all other columns: to bind them costs a third of the statement.
_INSERT_PLAIN = _inserting(_ALWAYS)


def insert(tx: Tx, draft: Draft, now: int) -> Accepted:
    """Store a message with one envelope for each recipient; if it is due now, it arrives at once."""
    if draft.key is not None and (first := sent_keys.repeated(tx, draft)):
        return first
    plain = destinations.is_plain(draft)
    draft, to = destinations.find(tx, draft, now, plain=plain)
    # Due now: it arrives in this transaction. Deferred: it arrives when its time comes (overdue.py).
    seq = tx.cache.next_seq(to.conversation) if draft.deliver_at is None else None
    message = _insert_message(tx, draft, to, seq, now, plain=plain)
    inserted = _insert_envelopes(tx, draft, message, to.recipients, now)
    failed: tuple[int, ...] = ()
    if draft.gone:
        failed = tuple([envelopes.insert_failed(tx, message, one, draft.binding, now) for one in draft.gone])
        inserted += failed
    if seq is not None:
        place = now, message, to.conversation, seq, to.sender.id
        _arrived(tx, EnvelopesArrived(*place, inserted, to.parties, tx.cache.last_arrived), to.parent, failed)
    posted: list[int] = []
    if (boss := tx.cache.reach().boss) in to.parties:
        posted = _forward(tx, draft, message, inserted[to.parties.index(boss)], to, now)
    named = sent_keys.named_envelopes(tx, draft, message) if to.is_renamed else tuple(inserted)
    if seq is not None:
        tx.arrived_for += to.parties if not draft.context else ()  # then nobody has anything to do
    else:
        assert draft.deliver_at is not None
        deferred = (message, to.conversation, to.sender.id, (*inserted, *posted))
        tx.facts.append(EnvelopesDeferred(now, *deferred, draft.deliver_at))
    if draft.key is not None:
        sent_keys.insert(tx, draft, message, to.skipped)
    return _accepted(draft, message, to, named, failed, None if seq is None else now)


def _accepted(
    draft: Draft,
    message: int,
    to: Destination,
    named: tuple[int, ...],
    failed: tuple[int, ...],
    arrived_at: int | None,
) -> Accepted:
    thread, elsewhere = message, False
    if to.parent is not None:
        thread = to.parent["thread"] or to.parent["id"]
        elsewhere = to.parent["conversation"] != to.conversation
    ack_by = None if arrived_at is None or draft.ack_within is None else arrived_at + draft.ack_within
    who = to.actors, to.lanes, failed, elsewhere, to.skipped
    return Accepted(message, to.conversation, thread, named, draft.deliver_at, False, *who, ack_by)


def _arrived(tx: Tx, fact: EnvelopesArrived, parent: Row | None, failed: Sequence[int]) -> None:
    """Tell that a message has arrived, and note it in its thread."""
    tx.facts.append(fact)
    if failed:
        tx.facts += [EnvelopeSettled(fact.at, one, "failed") for one in failed]
    if parent is not None:
        threads.note(tx, parent["thread"] or parent["id"], fact.conversation, fact.message)


def _insert_envelopes(
    tx: Tx, draft: Draft, message: int, recipients: Sequence[Addressed], now: int
) -> list[int]:
    how = draft.priority, draft.deliver_at, now
    within = draft.ack_within if draft.deliver_at is None else None
    ack_by = None if within is None else now + within
    return [
        envelopes.insert(
            tx,
            message,
            one.recipient,
            one.binding,
            *how,
            context=draft.context or one.is_context,
            routed_from=one.routed_from,
            offered=one.offered,
            ack_by=ack_by if one.binding is None and not one.is_context else None,
        )
        for one in recipients
    ]


def _forward(
    tx: Tx,
    draft: Draft,
    message: int,
    box: int,
    to: Destination,
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
        for one in to.chats
    ]
    if posted or draft.deliver_at is not None or not draft.forward:
        return posted
    asked_there = to.parent is not None and to.parent["place"] is not None
    if asked_there or tx.cache.reach().place is not None:
        forwarding.arrived(tx, box, now)
    return posted


def _insert_message(tx: Tx, draft: Draft, to: Destination, seq: int | None, now: int, *, plain: bool) -> int:
    arrived_at = None if seq is None else now
    always = to.conversation, seq, to.sender.id, draft.caller, draft.text, now, arrived_at
    if plain:
        cursor = tx.execute(_INSERT_PLAIN, always)
    else:
        cursor = tx.execute(_INSERT_MESSAGE, (*always, *_more(tx, draft, to.parent)))
    number = int(cursor.lastrowid or 0)
    if draft.tags or "@" in draft.text:
        tags.insert(tx, number, draft)
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


def _more(tx: Tx, draft: Draft, parent: Row | None) -> tuple[Any, ...]:
    """Return the columns that most messages leave at their defaults."""
    attachments = [a.facts() for a in draft.attachments]
    return (
        (parent["thread"] or parent["id"]) if parent else None,
        parent["id"] if parent else None,
        draft.from_boss,
        draft.from_name,
        draft.subject,
        int(draft.kind),
        json.dumps(attachments, ensure_ascii=False) if attachments else None,
        draft.interruptible,
        draft.auto,
        draft.deliver_at,
        draft.run,
        draft.trace,
        draft.hops,
        json.dumps(draft.channel, ensure_ascii=False) if draft.channel else None,
        json.dumps(draft.metadata, ensure_ascii=False) if draft.metadata else None,
        None if draft.place is None else _place(tx, draft.place),
        draft.context,
        draft.parse_mode,
        draft.session,
        draft.ack_within,
        draft.repeats,
        draft.about,
    )


def _place(tx: Tx, address: Address) -> int:
    return (tx.cache.live_address(address) or tx.cache.add_address(address)).id
