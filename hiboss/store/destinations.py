"""Where a draft goes: from whom, to whom, in which conversation. Checked when it is stored.

Who writes to whom is mostly the same again and again. What was found for a plain draft is kept in the
writer's cache, until anything it depends on changes there: addresses, conversations, routes, what is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core import clock
from ..core.address import BOSS, RESERVED, SYSTEM
from ..core.envelope import Draft, Kind
from ..core.errors import Archived, InvalidParams
from . import conversation_routes, stand_ins
from .connection import Row
from .conversation_routes import Addressed
from .group_commit import Tx
from .recipients import parent_of, resolve, sender_of
from .writer_cache import LiveAddress

_OPTIONS = Draft._fields.index("sees_all") + 1  # from here on all that most drafts leave at its default
KEPT_RECIPIENTS = 8  # at most: a hundred take 12 KB, and thousands of such lists would be kept
_NO_OPTIONS = tuple(Draft._field_defaults[name] for name in Draft._fields[_OPTIONS:])


class Destination(NamedTuple):
    """What a draft comes to, before anything of it is written."""

    sender: LiveAddress
    parent: Row | None  # what it answers
    recipients: Sequence[Addressed]  # who gets it
    parties: tuple[int, ...]  # their address ids, and of those who are gone
    chats: Sequence[Addressed]  # of the boss, that were named: it is posted there too
    conversation: int
    is_renamed: bool  # who gets it is not who was named: a group, a route, a chat of the boss
    actors: tuple[int, ...]  # address ids of those who have something to do with it
    lanes: tuple[tuple[int, int], ...]  # (address, binding) with something to post now
    skipped: tuple[str, ...]


def is_plain(draft: Draft) -> bool:
    """Tell whether a draft has nothing but a sender, recipients and a text."""
    return draft[_OPTIONS:] == _NO_OPTIONS


def find(tx: Tx, draft: Draft, now: int, *, plain: bool) -> tuple[Draft, Destination]:
    """Return where a draft goes, and the draft with what follows from that; raise if it may not go there.

    A conversation that does not exist yet is begun; nothing else is written.
    """
    if not plain:
        return _find(tx, draft, now)
    pair = draft.sender, draft.caller, draft.sees_all, draft.to
    known: Destination | None = tx.cache.destinations.get(pair)
    if known is None:
        draft, known = _find(tx, draft, now)
        if len(draft.to) <= KEPT_RECIPIENTS and _depends_on_the_cache_alone(tx, draft, known):
            tx.cache.destinations[pair] = known
    return draft, known


def check(tx: Tx, draft: Draft) -> dict[str, int]:
    """Raise the error that sending this draft now would raise; return the ids of its addresses."""
    sender = sender_of(tx, draft)
    parent = parent_of(tx, draft, sender) if draft.reply_to else None
    resolve(tx, draft, sender, parent, clock.now())
    entries = {str(one): tx.cache.live_address(one) for one in (draft.sender, *draft.to)}
    return {address: entry.id for address, entry in entries.items() if entry is not None}


def _depends_on_the_cache_alone(tx: Tx, draft: Draft, found: Destination) -> bool:
    """Tell whether nothing else was read to find it: accounts of a channel, members of a group.

    Nor who is in the conversation where somebody stands in for an agent: who joins there must not be told
    what that one says to another.
    """
    return (
        all(one.kind in ("agent", "user") for one in draft.to)
        and not any(one.kind == "agent" and one.name.lower() in RESERVED for one in draft.to)
        and found.sender.id not in tx.cache.routes().destinations
    )


def _find(tx: Tx, draft: Draft, now: int) -> tuple[Draft, Destination]:
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
    parties = (*(one.recipient.id for one in recipients), *draft.gone)
    conversation = stand_ins.conversation_of(tx, draft, sender, parties, parent, now, to_chats=bool(chats))
    _check(tx, draft, sender, conversation, found)  # the last one, before anything is written
    routes = tx.cache.routes().of.get(conversation)
    if routes:
        recipients = conversation_routes.recipients_of(draft, sender, recipients, routes)
        parties = (*(one.recipient.id for one in recipients), *draft.gone)
    return draft, Destination(
        sender,
        parent,
        recipients,
        parties,
        chats,
        conversation,
        is_renamed=bool(chats or routes or to_group),
        actors=_actors(draft, recipients),
        lanes=_lanes(draft, found),
        skipped=resolved.skipped,
    )


def _is_agent(draft: Draft, sender: LiveAddress) -> bool:
    """Tell whether an agent sends this itself, and not the boss in its name."""
    return sender.address.kind == "agent" and sender.id == draft.caller


def _actors(draft: Draft, recipients: Sequence[Addressed]) -> tuple[int, ...]:
    if draft.context:
        return ()
    return tuple([one.recipient.id for one in recipients if not (one.is_copy or one.context)])


def _lanes(draft: Draft, addressed: Sequence[Addressed]) -> tuple[tuple[int, int], ...]:
    if draft.deliver_at is not None:
        return ()
    return tuple([(one.recipient.id, one.binding) for one in addressed if one.binding is not None])


def _instead_of_chats(tx: Tx, addressed: Sequence[Addressed]) -> Sequence[Addressed]:
    """Return the recipients with the boss himself in place of his chats."""
    boss = tx.cache.live_address(BOSS)
    assert boss is not None  # there is a chat of his
    found = [Addressed(boss) if one.to_boss else one for one in addressed]
    return list({one.recipient.id: one for one in found}.values())


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
