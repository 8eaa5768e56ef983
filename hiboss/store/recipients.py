"""Who sends a draft, to whom it goes, and what it answers: checked when it is stored."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import clock
from ..core.address import BACKGROUND, SYSTEM, Address
from ..core.envelope import Draft
from ..core.errors import NoProvider, NoRecipient, NotBound, NotFound, UnknownRecipient, UnknownSender
from . import topics
from .accounts import SAME_ACCOUNT
from .addresses import near_address
from .connection import Connection, Row
from .conversation_routes import Addressed
from .group_commit import Tx
from .stand_ins import spoken_in, stands_in, stood_in_for
from .stray_forwards import IN_HIS_CHAT
from .writer_cache import LiveAddress


def addressed(tx: Tx, draft: Draft, sender: LiveAddress, parent: Row | None) -> list[Addressed]:
    """Return the recipients of a draft; raise if the sender may not send to one of them."""
    found = _recipients(tx, draft, sender, parent)
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


def _recipients(tx: Tx, draft: Draft, sender: LiveAddress, parent: Row | None) -> Sequence[LiveAddress]:
    addresses = draft.to or (() if draft.gone else _reply_addresses(tx, sender, parent))
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


def _reply_addresses(tx: Tx, sender: LiveAddress, parent: Row | None) -> Sequence[Address]:
    """Return where a reply without recipients goes: to the sender of the message replied to.

    A reply to one's own message goes to the same recipients again.
    """
    if parent is None:
        raise NoRecipient()
    own = parent["sender"] == sender.id
    instead = [one for one in stood_in_for(tx, parent["conversation"], parent["sender"]) if one != sender]
    if instead:
        return [one.address for one in instead]
    rows = tx.execute(
        f"""
        SELECT kind, name, retired_at FROM address
        WHERE id {f"IN ({_SENT_TO})" if own else "= ?"} ORDER BY id
        """,
        (parent["id"] if own else parent["sender"],),
    ).fetchall()
    for row in rows:
        if row["retired_at"] is not None:  # a later holder of the same name is somebody else
            raise UnknownRecipient(address=f"{row['kind']}:{row['name']}", hint="")
    return [Address(row["kind"], row["name"]) for row in rows]


# Not where the boss has it forwarded to. A chat that its sender named, only while that is his.
# What was routed was for another one, who gets the next one again unless a route holds. Not to readers.
_SENT_TO = f"""
    SELECT ifnull(e.routed_from, e.recipient) FROM envelope e
    WHERE e.message = ? AND CASE WHEN e.forwards IS NULL THEN e.routed_from IS NOT e.recipient
                                 ELSE e.addressed AND {IN_HIS_CHAT} END
"""


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
    if row is None or (row["deleted_at"] is not None and knows) or not _may_see(row, draft, sender):
        raise NotFound(what=kind, value=f"{kind[0]}{number}")
    return row


def _may_see(message: Row, draft: Draft, sender: LiveAddress) -> bool:
    return draft.sees_all or message["sender"] == sender.id or bool(message["received"])


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
    `conversation`: where it is said, if that is known.
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
    if place is not None:
        came += tx.execute(_LAST_CAME_BY, (recipient, place.conversation)).fetchall()
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
