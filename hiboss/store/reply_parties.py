"""Who gets a message that names nobody: a reply, or what is said in a conversation.

A reply goes to all parties of the thread but its author, silent ones too.

Those are the members of the conversations that the thread is in, as far as the author is one of them. So
nobody gets a reply whom its author cannot know to be in the thread. In a group the reply is for the group;
what was said to all agents is answered to who said it.
What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.address import BACKGROUND, BOSS, SYSTEM, Address
from ..core.errors import NoRecipient, NotFound, UnknownRecipient
from . import conversations, group_delivery, threads
from .connection import Row
from .group_commit import Tx
from .stand_ins import group_of, stood_in_for
from .stray_forwards import IN_HIS_CHAT
from .writer_cache import LiveAddress


class Parties(NamedTuple):
    """Who gets a reply, and who cannot get it any more."""

    addresses: Sequence[Address]
    gone: Sequence[str] = ()


def of_thread(tx: Tx, sender: LiveAddress, parent: Row | None) -> Parties:
    """Return who gets a reply to a message: the other parties of its thread, its sender first."""
    if parent is None:
        raise NoRecipient()
    group = group_of(tx, parent["conversation"])
    if group is not None and group_delivery.is_all(tx, parent["conversation"]):
        return of_sender(tx, sender, parent)
    if group is not None:
        return Parties([group])
    rows = tx.execute(
        f"""
        SELECT DISTINCT a.id, a.kind, a.name, a.retired_at FROM participant p
        JOIN address a ON a.id = p.address JOIN conversation c ON c.id = p.conversation AND c.kind <> 'group'
        WHERE p.conversation IN ({_CONVERSATIONS.format(",".join(map(str, _in(tx, parent))))})
          AND p.left_seq IS NULL AND p.role <> 'guest' AND a.id <> ?1 ORDER BY a.id <> ?3, a.id
        """,
        (sender.id, parent["conversation"], parent["sender"]),
    ).fetchall()
    in_their_place = {one.id for one in _spoken_for(tx, sender, parent)}
    others = [row for row in rows if row["id"] not in in_their_place and not _is_machine(row, parent)]
    live = [Address(row["kind"], row["name"]) for row in others if row["retired_at"] is None]
    gone = [f"{row['kind']}:{row['name']}" for row in others if row["retired_at"] is not None]
    if not live or _was_in_its_place(tx, sender, parent, [row["id"] for row in rows]):
        return of_sender(tx, sender, parent)
    if parent["sender"] == sender.id:  # to the same again: it may have named chats of the boss
        named = _named(tx, sender, parent)
        by_chat = any(one.kind == "channel" for one in named) and BOSS in live and BOSS not in named
        live = [*named, *(one for one in live if one not in named and not (by_chat and one == BOSS))]
    return Parties(live, gone)


def of_conversation(tx: Tx, sender: LiveAddress, conversation: int, *, sees_all: bool) -> Parties:
    """Return who gets what somebody says in a conversation: its other parties now; of a group the group.

    Raise NotFound if it is not in it now, and has nobody's mail there. In a group the boss always may.
    """
    group = group_of(tx, conversation)
    if group is not None and (sees_all or group_delivery.is_all(tx, conversation)):
        return Parties([group])
    rows = tx.execute(
        """
        SELECT c.key, a.id, a.kind, a.name, a.retired_at FROM conversation c
        JOIN participant p ON p.conversation = c.id AND p.left_seq IS NULL AND p.role <> 'guest'
        JOIN address a ON a.id = p.address WHERE c.id = ? ORDER BY a.id
        """,
        (conversation,),
    ).fetchall()
    in_their_place = {one.id for one in stood_in_for(tx, conversation, sender.id)}
    if not in_their_place and sender.id not in [row["id"] for row in rows]:
        raise NotFound(what="conversation", value=f"c{conversation}", where="hiboss conversation list")
    if group is not None:
        return Parties([group])
    if rows[0]["key"] == conversations.key([sender.id]):
        return Parties([sender.address])
    others = [row for row in rows if row["id"] not in {sender.id, *in_their_place}]
    named = [Address(row["kind"], row["name"]) for row in others]
    live = [
        one
        for one, row in zip(named, others, strict=True)
        if row["retired_at"] is None and one != SYSTEM  # which reads nothing
    ]
    if not live:
        raise UnknownRecipient(address=str(named[0]), hint="") if named else NoRecipient()
    return Parties(live, [str(one) for one in named if one not in live and one != SYSTEM])


def _named(tx: Tx, sender: LiveAddress, parent: Row) -> list[Address]:
    """Return to whom else somebody sent a message; nobody, if one of those, or the group, was deleted."""
    try:
        found = of_sender(tx, sender, parent).addresses
    except UnknownRecipient:
        return []
    return [one for one in found if one != sender.address]


# Of the conversations of a thread, those in which somebody (?1) is; and that of what is answered (?2), where
# it may write in the place of an agent.
_CONVERSATIONS = """
    SELECT t.id FROM conversation t WHERE t.id IN ({}) AND EXISTS (
        SELECT 1 FROM participant own WHERE own.conversation = t.id AND own.address = ?1
          AND own.left_seq IS NULL AND own.role <> 'guest')
    UNION SELECT ?2
"""


def _was_in_its_place(tx: Tx, sender: LiveAddress, parent: Row, parties: Sequence[int]) -> bool:
    """Tell whether somebody wrote a message in the place of an agent, and does not do so any more.

    The answer is for that one alone: it is no party of the conversation.
    """
    writer = parent["sender"]
    is_party = writer == sender.id or writer in parties
    return not is_party and not stood_in_for(tx, parent["conversation"], writer)


def _in(tx: Tx, parent: Row) -> list[int]:
    """Return the conversations of the thread of a message."""
    root = parent["thread"] or parent["id"]
    first = tx.execute("SELECT conversation FROM message WHERE id = ?", (root,)).fetchone()
    return [first["conversation"], *threads.conversations(tx, root)]


def _spoken_for(tx: Tx, sender: LiveAddress, parent: Row) -> list[LiveAddress]:
    """Return the agents in whose place somebody answers: they need not get it."""
    found = stood_in_for(tx, parent["conversation"], sender.id)
    if parent["routed_from"] not in (None, sender.id):
        found = [*found, LiveAddress(parent["routed_from"], sender.address)]
    return found


def _is_machine(row: Row, parent: Row) -> bool:
    """Tell whether somebody reads no replies: agent:system, and agent:background but to its own results."""
    address = Address(row["kind"], row["name"])
    return address == SYSTEM or (address == BACKGROUND and row["id"] != parent["sender"])


def of_sender(tx: Tx, sender: LiveAddress, parent: Row | None) -> Parties:
    """Return who gets a reply that is only for the sender of the message.

    A reply to one's own message goes to the same recipients again.
    """
    if parent is None:
        raise NoRecipient()
    own = parent["sender"] == sender.id
    if own and (group := group_of(tx, parent["conversation"])) is not None:
        return Parties([group])
    instead = [one for one in stood_in_for(tx, parent["conversation"], parent["sender"]) if one != sender]
    if instead:
        return Parties([one.address for one in instead])
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
    return Parties([Address(row["kind"], row["name"]) for row in rows])


# Not where the boss has it forwarded to. A chat that its sender named, only while that is his.
# What was routed was for another one, who gets the next one again unless a route holds. Not to readers.
_SENT_TO = f"""
    SELECT ifnull(e.routed_from, e.recipient) FROM envelope e
    WHERE e.message = ? AND CASE WHEN e.forwards IS NULL THEN e.routed_from IS NOT e.recipient
                                 ELSE e.addressed AND {IN_HIS_CHAT} END
"""
