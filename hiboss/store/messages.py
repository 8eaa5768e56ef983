"""Write messages: check a draft, and insert the message with its envelopes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..core import clock
from ..core.address import BOSS, SYSTEM, Address
from ..core.envelope import Accepted, Draft, Kind
from ..core.errors import Archived, InvalidParams
from ..core.events import EnvelopesArrived, EnvelopesDeferred, EnvelopeSettled
from . import (
    conversation_routes,
    envelopes,
    forwarding,
    sent_keys,
    stand_ins,
    tags,
    threads,
)
from .connection import Row
from .conversation_routes import Addressed
from .group_commit import Tx
from .recipients import parent_of, resolve, sender_of
from .writer_cache import LiveAddress

_INSERT_MESSAGE = """
INSERT INTO message (conversation, seq, thread, reply_to, sender, caller, from_boss, from_name, subject,
                     type, text, attachments, interruptible, auto, deliver_at, run, trace, hops,
                     channel, metadata, created_at, arrived_at, place, context, parse_mode, session,
                     ack_within, repeats)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def insert(tx: Tx, draft: Draft, now: int) -> Accepted:
    """Store a message with one envelope for each recipient; if it is due now, it arrives at once."""
    if draft.key is not None and (first := sent_keys.repeated(tx, draft)):
        return first
    sender = sender_of(tx, draft)
    parent = parent_of(tx, draft, sender) if draft.reply_to else None
    if parent is not None and draft.run is None and _is_agent(draft, sender):
        # An agent continues what it answers, also if it fetches its mail: so no loop escapes the limits.
        draft = draft._replace(trace=parent["trace"], hops=parent["hops"] + 1, named=False)
    resolved = resolve(tx, draft, sender, parent, now)
    found, to_group = resolved.recipients, resolved.conversation is not None
    if to_group:
        draft = draft._replace(conversation=resolved.conversation, gone=draft.gone + resolved.gone)
    chats = [one for one in found if one.to_boss]
    recipients = _instead_of_chats(tx, found) if chats else found
    parties = [one.recipient.id for one in recipients] + list(draft.gone)
    conversation = stand_ins.conversation_of(tx, draft, sender, parties, parent, now, to_chats=bool(chats))
    _check(tx, draft, sender, conversation, found)  # the last one, before anything is written
    routes = tx.cache.routes().of.get(conversation)
    if routes:
        recipients = conversation_routes.recipients_of(draft, sender, recipients, routes)
        parties = [*(one.recipient.id for one in recipients), *draft.gone]
    # Due now: it arrives in this transaction. Deferred: it arrives when its time comes (overdue.py).
    seq = tx.cache.next_seq(conversation) if draft.deliver_at is None else None
    message = _insert_message(tx, draft, sender, parent, conversation, seq, now)
    inserted = _insert_envelopes(tx, draft, message, recipients, now)
    failed = tuple([envelopes.insert_failed(tx, message, one, draft.binding, now) for one in draft.gone])
    inserted += failed
    if seq is not None:
        arrived = EnvelopesArrived(
            now, message, conversation, seq, sender.id, inserted, parties, tx.cache.last_arrived
        )
        _arrived(tx, arrived, parent, failed)
    posted: list[int] = []
    if (boss := tx.cache.reach().boss) in parties:
        posted = _forward(tx, draft, message, inserted[parties.index(boss)], chats, parent, now)
    named = tuple(inserted)
    if chats or routes or to_group:
        named = sent_keys.named_envelopes(tx, draft, message)
    if seq is not None:
        tx.arrived_for += parties if not draft.context else ()  # then nobody has anything to do
    else:
        assert draft.deliver_at is not None
        deferred = (message, conversation, sender.id, (*inserted, *posted))
        tx.facts.append(EnvelopesDeferred(now, *deferred, draft.deliver_at))
    if draft.key is not None:
        sent_keys.insert(tx, draft, message, resolved.skipped)
    return Accepted(
        message=message,
        conversation=conversation,
        thread=(parent["thread"] or parent["id"]) if parent else message,
        envelopes=named,
        deliver_at=draft.deliver_at,
        recipients=_who_acts(draft, recipients),
        lanes=_lanes(draft, found),
        failed=failed,
        elsewhere=parent is not None and parent["conversation"] != conversation,
        skipped=resolved.skipped,
        ack_by=None if seq is None or draft.ack_within is None else now + draft.ack_within,
    )


def _who_acts(draft: Draft, recipients: Sequence[Addressed]) -> tuple[int, ...]:
    """Return the address ids of those who have something to do with a message."""
    if draft.context:
        return ()
    return tuple([one.recipient.id for one in recipients if not (one.is_copy or one.context)])


def _arrived(tx: Tx, fact: EnvelopesArrived, parent: Row | None, failed: Sequence[int]) -> None:
    """Tell that a message has arrived, and note it in its thread."""
    tx.facts.append(fact)
    if failed:
        tx.facts += [EnvelopeSettled(fact.at, one, "failed") for one in failed]
    if parent is not None:
        threads.note(tx, parent["thread"] or parent["id"], fact.conversation, fact.message)


def _check(tx: Tx, draft: Draft, sender: LiveAddress, conversation: int, found: Sequence[Addressed]) -> None:
    """Raise if nobody can acknowledge a draft that asks for it, or if its conversation takes no messages."""
    if draft.ack_within is not None and _nobody_acknowledges(draft, found):
        raise InvalidParams(detail="nobody who gets this can acknowledge it: leave ack_by (--ack-by) out")
    # What a platform brings is never refused, nor what hiboss records.
    if draft.caller is not None and draft.kind is not Kind.EVENT and sender.address != SYSTEM:
        check_open(tx, conversation)


def check_open(tx: Tx, conversation: int) -> None:
    """Raise Archived if nothing more is said in a conversation."""
    if conversation in tx.cache.closed():
        group = stand_ins.group_of(tx, conversation)
        undo = f"hiboss conversation archive c{conversation} --undo"
        raise Archived(name=f"c{conversation}" if group is None else str(group), undo=undo)


def _nobody_acknowledges(draft: Draft, found: Sequence[Addressed]) -> bool:
    """Tell whether all who get a draft are channels, or only read it along."""
    # Who gets a deferred one for a group is not known yet.
    if draft.deliver_at is not None and any(one.recipient.address.kind == "group" for one in found):
        return False
    return all(one.is_context or (one.binding is not None and not one.to_boss) for one in found)


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
    resolve(tx, draft, sender, parent, clock.now())
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
            draft.session,
            draft.ack_within,
            draft.repeats,
        ),
    )
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


def _place(tx: Tx, address: Address) -> int:
    return (tx.cache.live_address(address) or tx.cache.add_address(address)).id
