"""Who sends a draft, to whom it goes, and what it answers: checked when it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core import clock, mentions
from ..core.address import BACKGROUND, SYSTEM, Address
from ..core.envelope import Draft
from ..core.errors import (
    InvalidParams,
    NoProvider,
    NotBound,
    NotFound,
    TooLarge,
    UnknownRecipient,
    UnknownSender,
)
from . import group_delivery, reply_parties, topics, visibility
from .accounts import SAME_ACCOUNT
from .addresses import near_address
from .connection import Connection, Row
from .conversation_routes import Addressed
from .group_commit import Tx
from .stand_ins import spoken_in, stands_in, stood_in_for
from .writer_cache import LiveAddress


class Resolved(NamedTuple):
    """To whom a draft goes, and where it is said."""

    recipients: list[Addressed]
    conversation: int | None = None  # of a group
    gone: tuple[int, ...] = ()  # address ids: it is stored for them as failed
    skipped: tuple[str, ...] = ()  # parties of the thread whom the sender may not write to


def resolve(tx: Tx, draft: Draft, sender: LiveAddress, parent: Row | None, now: int) -> Resolved:
    """Return the recipients of a draft; raise if the sender may not send to one of them."""
    if not draft.to and not draft.gone:
        return _to_parties(tx, draft, sender, parent, now)
    if any(one.kind == "group" for one in draft.to):
        return _to_group(tx, draft, sender, parent, now)
    found = _addressed(tx, draft, sender, parent, _recipients(tx, sender, draft.to))
    if draft.auto and parent is not None and draft.conversation is not None:  # the answer of a run
        found = _reading_along(tx, draft, sender, parent, found)
    return Resolved(found)


def _to_group(tx: Tx, draft: Draft, sender: LiveAddress, parent: Row | None, now: int) -> Resolved:
    if len(draft.to) > 1:
        raise InvalidParams(
            detail="a message goes to one group, or to up to 100 other addresses; not to both"
        )
    answers = None if parent is None else int(parent["id"])
    group = group_delivery.find(tx, draft.to[0], sender, now, sees_all=draft.sees_all, answers=answers)
    found = group_delivery.addressed(tx, group, draft, sender, parent)
    return Resolved(found.members, group.conversation, found.gone)


def _parties(tx: Tx, draft: Draft, sender: LiveAddress, parent: Row | None) -> reply_parties.Parties:
    """Return who gets a draft that names nobody: all of its conversation or thread, or only a sender."""
    if draft.conversation is not None:
        return reply_parties.of_conversation(tx, sender, draft.conversation, sees_all=draft.sees_all)
    of = reply_parties.of_sender if draft.to_sender else reply_parties.of_thread
    return of(tx, sender, parent)


def _to_parties(tx: Tx, draft: Draft, sender: LiveAddress, parent: Row | None, now: int) -> Resolved:
    """Return who gets a draft that names nobody.

    If it is a reply to several, the agents that it neither answers nor mentions only read it along: one
    reply must not start a turn of everybody. Whom its sender may not write to is left out.
    """
    parties = _parties(tx, draft, sender, parent)
    if len(parties.addresses) > tx.settings.recipients:
        raise TooLarge(
            what="a message to the whole thread or conversation",
            size=f"{len(parties.addresses)} recipients",
            limit=str(tx.settings.recipients),
            advice=" (limits.recipients); answer only the sender (--to-sender), or name recipients (--to)",
        )
    if any(one.kind == "group" for one in parties.addresses):
        return _to_group(tx, draft._replace(to=tuple(parties.addresses)), sender, parent, now)
    if len(parties.addresses) == 1:
        found = _addressed(tx, draft, sender, parent, _recipients(tx, sender, parties.addresses))
        return Resolved(found, skipped=tuple(parties.gone))
    may, skipped = [], list(parties.gone)
    for entry in _recipients(tx, sender, parties.addresses):
        try:
            may += _addressed(tx, draft, sender, parent, [entry])
        except NotBound:
            skipped.append(str(entry.address))
    if not may:  # the error says what is wrong
        _addressed(tx, draft, sender, parent, _recipients(tx, sender, parties.addresses))
    found = may if parent is None else _reading_along(tx, draft, sender, parent, may)
    return Resolved(found, skipped=tuple(skipped))


def _reading_along(
    tx: Tx, draft: Draft, sender: LiveAddress, parent: Row, found: list[Addressed]
) -> list[Addressed]:
    """Return the recipients of a reply to several, each with whether it only reads along."""
    if len(found) == 1 or parent["sender"] == sender.id:
        return found
    answered = {
        parent["sender"],
        *(one.id for one in stood_in_for(tx, parent["conversation"], parent["sender"])),
    }
    called = _called(tx, mentions.find(draft.text, draft.kind), found)
    return [
        one
        if one.recipient.address.kind != "agent" or one.recipient.id in answered | called
        else one._replace(context=True)
        for one in found
    ]


def _called(tx: Tx, words: Sequence[str], found: Sequence[Addressed]) -> set[int]:
    """Return which of these recipients a text with these words after an @ calls: by name or role, or all."""
    agents = [one.recipient for one in found if one.recipient.address.kind == "agent"]
    if not words or not agents:
        return set()
    if mentions.EVERYBODY in words:
        return {one.id for one in agents}
    marks = ",".join("?" * len(agents))
    query = f"SELECT address, lower(role) AS role FROM agent WHERE address IN ({marks}) AND role IS NOT NULL"
    roles = {row["address"]: row["role"] for row in tx.execute(query, [one.id for one in agents])}
    return {one.id for one in agents if one.address.name.lower() in words or roles.get(one.id) in words}


def _addressed(
    tx: Tx, draft: Draft, sender: LiveAddress, parent: Row | None, found: Sequence[LiveAddress]
) -> list[Addressed]:
    """Return these recipients, channels with the account that posts there; raise if there is none."""
    if not any(one.address.kind == "channel" for one in found):
        return [Addressed(one) for one in found]
    said_in = draft.conversation or spoken_in(tx, sender.id, [one.id for one in found], parent)
    return [
        _by_account(tx, draft, sender, one, parent, said_in)
        if one.address.kind == "channel"
        else Addressed(one)
        for one in found
    ]


def sender_of(tx: Tx, draft: Draft) -> LiveAddress:
    """Return the sender of a draft; raise UnknownSender if it does not exist."""
    entry = tx.cache.live_address(draft.sender)
    if entry is not None and not draft.sees_all and entry.id != draft.caller:
        entry = None  # the name now belongs to somebody else, registered since the request came
    if entry is None and draft.sender.kind == "channel":
        return tx.cache.add_address(draft.sender)  # only the boss may send as a channel; api checked that
    if entry is None or (entry.address == SYSTEM and entry.id != draft.caller):
        raise UnknownSender(address=str(draft.sender), hint=near_address(tx, draft.sender))
    return entry


def _recipients(tx: Tx, sender: LiveAddress, addresses: Sequence[Address]) -> Sequence[LiveAddress]:
    found: dict[int, LiveAddress] = {}
    for address in addresses:
        entry = tx.cache.live_address(address)
        if entry is not None and entry.address == SYSTEM:
            entry = None  # it only sends
        if entry is not None and entry.address == BACKGROUND:
            _check_has_provider(tx, sender)
        if entry is None and address.kind == "channel":
            entry = topics.meet_topic(tx, address, sender, clock.now())
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


def parent_of(tx: Tx, draft: Draft, sender: LiveAddress) -> Row:
    """Return the message replied to; raise NotFound if the sender neither sent nor received it."""
    assert draft.reply_to
    kind, number = draft.reply_to
    row: Row | None = tx.execute(
        f"""
        SELECT m.id, m.thread, m.sender, m.place, m.deleted_at, m.hops, m.conversation,
               ifnull(m.trace, 'm' || m.id) AS trace, e.arrived IS NOT NULL AS received, e.routed_from
        FROM message m LEFT JOIN envelope e ON e.message = m.id AND e.recipient = ?
        WHERE m.id = {"(SELECT message FROM envelope WHERE id = ?)" if kind == "envelope" else "?"}
        """,
        (sender.id, number),
    ).fetchone()
    # A machine or a platform does not know that it was deleted, and what they bring must not be lost.
    knows = not draft.auto and draft.caller is not None
    if (
        row is None
        or (row["deleted_at"] is not None and knows)
        or not (draft.sees_all or row["received"] or visibility.may_see(tx, row["id"], sender.id))
    ):
        raise NotFound(what=kind, value=f"{kind[0]}{number}")
    return row


def _by_account(
    tx: Tx,
    draft: Draft,
    sender: LiveAddress,
    recipient: LiveAddress,
    parent: Row | None,
    conversation: int | None,
) -> Addressed:
    """Return with which binding this sender posts to a chat; it is stored in the envelope."""
    if draft.binding is not None:  # of hiboss itself, like a code for a stranger
        return Addressed(recipient, draft.binding)
    for_all = draft.sees_all and sender.address.kind == "user"
    answers = parent["id"] if parent else None
    found = account_for(tx, sender.id, recipient.id, answers, for_all=for_all, conversation=conversation)
    if found is None:
        raise NotBound(
            sender=str(sender.address), adapter=recipient.address.adapter, address=str(recipient.address)
        )
    return Addressed(recipient, *found)


def account_for(
    tx: Tx | Connection,
    sender: int,
    recipient: int,
    parent: int | None,
    *,
    for_all: bool = False,
    conversation: int | None = None,
) -> tuple[int, bool] | None:
    """Return the binding with which a sender posts to a chat, and whether the chat is the boss's.

    A reply uses the account that its message came in by, also if that was bound again since; else the one
    by which the chat is the boss's is preferred. An answer to a group that writes in the boss's chat (a
    folder has one chat for both) is for the group. Only the agents of a binding and the boss (`for_all`)
    may use it, and only for places it may post to: else None. Who writes in the place of an agent uses the
    accounts of that agent and no others, also the boss: there two bots may have a chat with one person.
    `conversation`: where it is said, if that is known. What answers nothing there leaves by the account that
    the chat last wrote by.
    """
    place = stands_in(tx, sender, recipient, parent, conversation)
    rows = tx.execute(
        """
        SELECT b.id, c.state FROM place p
        JOIN contact c ON c.id = p.contact JOIN binding b ON b.id = p.binding
        WHERE p.address = ?1 AND c.state IN ('allowed', 'boss') AND b.removed_at IS NULL
          AND (?2 OR EXISTS (SELECT 1 FROM binding_agent ba WHERE ba.binding = b.id AND ba.agent = ?3))
        ORDER BY c.state = 'boss' DESC, b.id
        """,
        (recipient, for_all and place is None, sender if place is None else place.agent),
    ).fetchall()
    usable = {int(row["id"]): row["state"] == "boss" for row in rows}
    if not usable:
        return None
    came = [] if parent is None else tx.execute(_CAME_BY, (parent, recipient)).fetchall()
    said_in = conversation if parent is None else None
    if place is not None or said_in is not None:
        last_in = said_in if place is None else place.conversation
        came += tx.execute(_LAST_CAME_BY, (recipient, last_in)).fetchall()
    for one in came:
        if one["binding"] in usable:
            return one["binding"], usable[one["binding"]] and not one["of_group"]
    return next(iter(usable.items()))


# The account that a message came in by, as it is bound now; and whether a group wrote it in this chat.
_CAME_BY = f"""
    SELECT l.id AS binding,
           m.sender = ?2 AND json_extract(m.channel, '$.chat.kind') IN ('group', 'channel') AS of_group
    FROM platform_update u JOIN message m ON m.id = u.message
    JOIN binding l ON l.id IN {SAME_ACCOUNT.format("u.binding")} AND l.removed_at IS NULL
    WHERE u.message = ?1
"""
# The account by which somebody (?1) last wrote in a conversation (?2), in the same form.
_LAST_CAME_BY = f"""
    SELECT l.id AS binding, json_extract(m.channel, '$.chat.kind') IN ('group', 'channel') AS of_group
    FROM (SELECT m.id, m.channel, u.binding FROM message m INDEXED BY message_seq
          JOIN platform_update u ON u.message = m.id
          WHERE m.conversation = ?2 AND m.seq IS NOT NULL AND m.sender = ?1 ORDER BY m.seq DESC LIMIT 1) m
    JOIN binding l ON l.id IN {SAME_ACCOUNT.format("m.binding")} AND l.removed_at IS NULL
"""
