"""Who gets a message of a group, and who is to answer it.

Each present member gets an envelope, its sender none. People and channels get all of it. For an agent its
`respond` decides whether it is to answer; else it reads it along, with its next turn there.
The group itself has an envelope too: it is what the sender knows it by, and what a deferred message waits in.
What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import mentions
from ..core.address import Address
from ..core.envelope import Draft, Kind
from ..core.errors import EmptyGroup, Forbidden, NotMember, UnknownRecipient
from . import stand_ins
from .accounts import SAME_ACCOUNT
from .addresses import near_address
from .connection import Row
from .conversation_routes import Addressed
from .group_commit import Tx
from .writer_cache import LiveAddress

ALL = Address("group", "all")  # every agent that there is; nobody manages it


class Group(NamedTuple):
    """A group that a message is for."""

    conversation: int
    entry: LiveAddress


class Said(NamedTuple):
    """What of a message decides who is to answer it."""

    sender: LiveAddress
    text: str
    kind: Kind
    auto: bool
    place: Address | None = None  # the chat in which a person wrote it: it is not posted there again


class Fanout(NamedTuple):
    """Who gets a message of a group."""

    members: list[Addressed]
    gone: tuple[int, ...] = ()  # channels of it that no account may post to now


# --- finding the group ---------------------------------------------------------------


def find(
    tx: Tx, address: Address, sender: LiveAddress, now: int, *, sees_all: bool, answers: int | None = None
) -> Group:
    """Return the group with this address; raise if there is none, or the sender may not write to it.

    Its members may, and who has the mail of one of its agents, or answers (`answers`) what it got of that.
    The boss may write to every group, but only as itself: in the name of another, what that one may.
    """
    entry = tx.cache.live_address(address)
    if address.fold == ALL.fold:
        _check_may_broadcast(tx, sender, sees_all=sees_all)
        entry = entry or tx.cache.add_address(ALL)
        return Group(_conversation(tx, entry, now), entry)
    row = None if entry is None else tx.execute(_GROUP, (entry.id, sender.id)).fetchone()
    may = row is not None and (
        (sees_all and sender.id == tx.cache.reach().boss)
        or row["is_member"]
        or bool(stand_ins.in_group(tx, row["id"], sender.id, answers))
    )
    if entry is None or row is None or not (may or sees_all or row["open"]):
        raise UnknownRecipient(address=str(address), hint=near_address(tx, address))  # as if there were none
    if not may:
        advice = f"join it first: hiboss group join {entry.address.name}"
        if sees_all:  # the boss, in its name
            advice = f"add it first: hiboss group add {entry.address.name} {sender.address}"
        raise NotMember(address=str(sender.address), name=str(entry.address), advice=advice)
    return Group(row["id"], entry)


def _check_may_broadcast(tx: Tx, sender: LiveAddress, *, sees_all: bool) -> None:
    row = tx.execute("SELECT level FROM agent WHERE address = ?", (sender.id,)).fetchone()
    level = "standard" if row is None else row["level"]
    if not (sees_all or level == "privileged"):
        who = str(sender.address)
        raise Forbidden(operation=f"sending to {ALL}", needed="privileged", caller=who, level=level)


_GROUP = """
    SELECT c.id, c.open, EXISTS (SELECT 1 FROM participant p WHERE p.conversation = c.id AND p.address = ?2
                                 AND p.left_seq IS NULL AND p.role <> 'guest') AS is_member
    FROM conversation c WHERE c.address = ?1 AND c.deleted_at IS NULL
"""


def _conversation(tx: Tx, entry: LiveAddress, now: int) -> int:
    """Return the conversation of group:all, which begins with its first message."""
    row = tx.execute("SELECT id FROM conversation WHERE address = ?", (entry.id,)).fetchone()
    if row is None:
        row = tx.execute(
            """
            INSERT INTO conversation (kind, key, address, name, created_at) VALUES ('group', ?, ?, ?, ?)
            RETURNING id
            """,
            (f"g{entry.id}", entry.id, entry.address.name, now),
        ).fetchone()
    return int(row["id"])


def of_channel(tx: Tx, channel: Address) -> Address | None:
    """Return the group that a chat is a member of: what is written there is for the group. None: none."""
    entry = tx.cache.live_address(channel)
    if entry is None:
        return None
    row = tx.execute(
        """
        SELECT a.name FROM participant p JOIN conversation c ON c.id = p.conversation
            AND c.kind = 'group' AND c.deleted_at IS NULL AND c.archived_at IS NULL
        JOIN address a ON a.id = c.address AND a.retired_at IS NULL
        WHERE p.address = ? AND p.left_seq IS NULL AND p.role <> 'guest' ORDER BY c.id LIMIT 1
        """,
        (entry.id,),
    ).fetchone()
    return None if row is None else Address("group", row["name"])


def is_all(tx: Tx, conversation: int | None) -> bool:
    """Tell whether a conversation is that of all agents: what answers something there is not for all."""
    address = stand_ins.group_of(tx, conversation)
    return address is not None and address.fold == ALL.fold


def has_left(tx: Tx, conversation: int, address: int, answers: int | None) -> bool:
    """Tell whether somebody was in a group, or had mail of it, and may not write to it any more.

    The boss always may. `answers`: the message that it answers.
    """
    if address == tx.cache.reach().boss or is_all(tx, conversation):
        return False
    row = tx.execute(
        """
        SELECT count(*) > 0 AND sum(left_seq IS NULL AND role <> 'guest') = 0 FROM participant
        WHERE conversation = ? AND address = ?
        """,
        (conversation, address),
    ).fetchone()
    return bool(row[0]) and not stand_ins.in_group(tx, conversation, address, answers)


# --- its members ---------------------------------------------------------------------


def addressed(tx: Tx, group: Group, draft: Draft, sender: LiveAddress, parent: Row | None) -> Fanout:
    """Return who gets a message: the group itself first, then its members if it is due now."""
    own = Addressed(group.entry, context=True)
    if draft.deliver_at is not None:
        return Fanout([own])
    answers = None if parent is None else int(parent["id"])
    said = Said(sender, draft.text, draft.kind, draft.auto, draft.place)
    found = members(tx, group, said, answers)
    if not (found.members or found.gone):
        raise EmptyGroup(name=str(group.entry.address))
    if draft.context:
        found = found._replace(members=[one._replace(context=_is_agent(one)) for one in found.members])
    return found._replace(members=[own, *found.members])


def members(tx: Tx, group: Group, said: Said, answers: int | None) -> Fanout:
    """Return the members who get a message now. `answers`: the message that it answers.

    An agent in whose place it is said need not answer it.
    """
    spoken_for = stand_ins.in_group(tx, group.conversation, said.sender.id, answers)
    answered = stand_ins.writers(tx, answers)
    of_all = group.entry.address.fold == ALL.fold
    rows = tx.execute(_AGENTS if of_all else _MEMBERS, (group.conversation, said.sender.id)).fetchall()
    words = mentions.find(said.text, said.kind)
    named = {row["id"] for row in rows if _is_named(row, words, answered)} - spoken_for
    found, gone = [], []
    for row in rows:
        entry = LiveAddress(row["id"], Address(row["kind"], row["name"]))
        if said.place is not None and entry.address.fold == said.place.fold:
            continue
        if row["kind"] == "channel":
            binding = _account(tx, entry.id, row["binding"])
            found += [Addressed(entry, binding)] if binding is not None else []
            gone += [entry.id] if binding is None else []
        elif row["kind"] == "agent":
            along = entry.id in spoken_for
            found.append(Addressed(entry, context=True) if along else _to_agent(row, entry, said, named))
        else:
            found.append(Addressed(entry))
    return Fanout(found, tuple(gone))


_MEMBERS = """
    SELECT a.id, a.kind, a.name, p.respond, p.binding, g.role FROM participant p
    CROSS JOIN address a ON a.id = p.address LEFT JOIN agent g ON g.address = a.id
    WHERE p.conversation = ?1 AND p.left_seq IS NULL AND p.role <> 'guest' AND a.retired_at IS NULL
      AND a.id <> ?2 ORDER BY a.id
"""
_AGENTS = """
    SELECT a.id, a.kind, a.name, 'mentioned' AS respond, NULL AS binding, g.role FROM agent g
    CROSS JOIN address a ON a.id = g.address
    WHERE ?1 AND g.deleted_at IS NULL AND a.retired_at IS NULL AND a.id <> ?2 ORDER BY a.id
"""


def _is_named(row: Row, words: tuple[str, ...], answered: frozenset[int]) -> bool:
    """Tell whether a message mentions a member, by name or role, or answers something it said."""
    called = (row["name"].lower(), (row["role"] or "").lower(), mentions.EVERYBODY)
    return row["id"] in answered or any(word in words for word in called if word)


def _to_agent(row: Row, entry: LiveAddress, said: Said, named: set[int]) -> Addressed:
    """Return how an agent gets a message: to answer it, to read it along, or offered with others.

    What a machine made starts a turn only of those whom it names: else two agents that answer all would
    never stop.
    """
    respond = row["respond"]
    if entry.id in named:
        return Addressed(entry, context=respond == "never")
    by_person = said.sender.address.kind != "agent"
    if said.auto or said.kind is Kind.EVENT:
        return Addressed(entry, context=True)
    if respond == "claim" and not named:
        return Addressed(entry, offered=True)
    return Addressed(entry, context=not (respond == "all" or (respond == "people" and by_person)))


def _account(tx: Tx, channel: int, binding: int | None) -> int | None:
    """Return the account that posts to a channel of a group, as it is bound now; None: it may not."""
    row = tx.execute(
        f"""
        SELECT b.id FROM place p JOIN contact c ON c.id = p.contact AND c.state IN ('allowed', 'boss')
        JOIN binding b ON b.id = p.binding AND b.removed_at IS NULL
        WHERE p.address = ?1 AND b.id IN {SAME_ACCOUNT.format("?2")} LIMIT 1
        """,
        (channel, binding),
    ).fetchone()
    return None if row is None else int(row["id"])


def _is_agent(one: Addressed) -> bool:
    return one.recipient.address.kind == "agent"
