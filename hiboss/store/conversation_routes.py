"""Routes of conversations: who gets what is for an agent there, in its place, until that is undone.

A message keeps its conversation and its order there. While a route holds, an envelope for the agent goes to
the destination, with `routed_from`. After a handoff the agent reads along: it gets a copy, which is done on
arrival and starts no turn. What the agent itself still says there, the destination gets as a copy. A copy is
an envelope with its recipient in `routed_from`. What takes a Tx runs inside the writer, which keeps all
routes in memory (writer_cache): a send into any other conversation costs one look into a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.envelope import Draft, Kind
from . import envelopes
from .connection import Row
from .group_commit import Tx
from .writer_cache import LiveAddress, Route


class Addressed(NamedTuple):
    """One recipient of a message."""

    recipient: LiveAddress
    binding: int | None = None  # of a channel: the account that posts there
    to_boss: bool = False  # a chat of the boss: it is mail for him, posted there
    routed_from: int | None = None  # whose mail it is; the recipient itself: it is a copy
    context: bool = False  # it only reads it along
    offered: bool = False  # to several members of a group: one takes it

    @property
    def is_copy(self) -> bool:
        return self.routed_from == self.recipient.id

    @property
    def is_context(self) -> bool:
        """True: an agent only reads it along. A person looks at all that is in the box."""
        return self.context or (self.is_copy and self.recipient.address.kind == "agent")


# --- the rows ------------------------------------------------------------------------


def find(tx: Tx, conversation: int, agent: int) -> Route | None:
    """Return the route of an agent in a conversation; None if it gets its mail there itself."""
    routes = tx.cache.routes().of.get(conversation, ())
    return next((one for one in routes if one.agent.id == agent), None)


def put(tx: Tx, conversation: int, agent: int, to: int, control: int, *, handed_over: bool) -> None:
    """Let a destination get the mail of an agent in a conversation, in place of the one before it."""
    end(tx, conversation, agent)
    tx.execute(
        """
        INSERT INTO conversation_route (conversation, agent, destination, kind, control)
        VALUES (?, ?, ?, ?, ?)
        """,
        (conversation, agent, to, "handoff" if handed_over else "route", control),
    )
    tx.cache.forget_routes()
    enter(tx, conversation, to, stays=True)


def end(tx: Tx, conversation: int, agent: int) -> None:
    """End the route of an agent in a conversation, if there is one; its mail stays where it is."""
    row = tx.execute(
        "DELETE FROM conversation_route WHERE conversation = ? AND agent = ? RETURNING destination",
        (conversation, agent),
    ).fetchone()
    tx.cache.forget_routes()
    if row is not None:
        _leave(tx, conversation, row["destination"])


def of_destination(tx: Tx, destination: int) -> list[tuple[int, Route]]:
    """Return the conversations whose mail goes to somebody in the place of an agent, with the routes."""
    found = tx.cache.routes().of.items()
    return [(number, one) for number, routes in found for one in routes if one.destination.id == destination]


def of_agent(tx: Tx, agent: int) -> list[tuple[int, Route]]:
    """Return the conversations in which an agent does not get its mail, with the routes."""
    found = tx.cache.routes().of.items()
    return [(number, one) for number, routes in found for one in routes if one.agent.id == agent]


def merge(tx: Tx, gone: int, kept: int) -> None:
    """Two conversations become one, with the routes of both; of two for one agent, that of the kept one."""
    for table in ("conversation_route", "control"):
        tx.execute(f"UPDATE OR IGNORE {table} SET conversation = ?2 WHERE conversation = ?1", (gone, kept))
    tx.execute("DELETE FROM conversation_route WHERE conversation = ?", (gone,))
    tx.cache.forget_routes()
    guests = tx.execute(
        "SELECT DISTINCT address FROM participant WHERE conversation = ? AND role = 'guest'", (gone,)
    ).fetchall()
    for guest in [row["address"] for row in guests]:
        routes = tx.cache.routes().of.get(kept, ())
        enter(tx, kept, guest, stays=any(one.destination.id == guest for one in routes))


# --- guests --------------------------------------------------------------------------


def members(tx: Tx, conversation: int) -> set[int]:
    """Return the parties of a conversation, without guests."""
    rows = tx.execute(
        "SELECT address FROM participant WHERE conversation = ? AND left_seq IS NULL AND role <> 'guest'",
        (conversation,),
    )
    return {row["address"] for row in rows}


def enter(tx: Tx, conversation: int, address: int, *, stays: bool = False) -> None:
    """Note that somebody got mail of a conversation who is none of its parties.

    `stays`: from now on what is said there is for it too, until it leaves. What was said before it came is
    not shown to it, but for what it got.
    """
    tx.cache.flush()  # the last number is read below
    last = tx.execute("SELECT last_seq FROM conversation WHERE id = ?", (conversation,)).fetchone()[
        "last_seq"
    ]
    known = tx.execute(
        """
        SELECT joined_seq, left_seq FROM participant
        WHERE conversation = ? AND address = ? ORDER BY joined_seq
        """,
        (conversation, address),
    ).fetchall()
    if known and (known[-1]["left_seq"] is None or not stays):
        return
    if known and known[-1]["joined_seq"] == last + 1:  # it left, and nothing was said since
        tx.execute(
            """
            UPDATE participant SET left_seq = NULL
            WHERE conversation = ? AND address = ? AND joined_seq = ?
            """,
            (conversation, address, last + 1),
        )
        return
    tx.execute(
        """
        INSERT INTO participant (conversation, address, role, joined_seq, left_seq, shown_upto)
        VALUES (?, ?, 'guest', ?, ?, (SELECT ifnull(max(id), 0) FROM message))
        """,
        (conversation, address, last + 1, None if stays else last),
    )


def _leave(tx: Tx, conversation: int, guest: int) -> None:
    """Note that a guest is shown nothing more of a conversation, unless it stands in for another agent."""
    if any(one.destination.id == guest for one in tx.cache.routes().of.get(conversation, ())):
        return
    tx.cache.flush()
    tx.execute(
        """
        UPDATE participant SET left_seq = (SELECT last_seq FROM conversation WHERE id = ?1)
        WHERE conversation = ?1 AND address = ?2 AND role = 'guest' AND left_seq IS NULL
        """,
        (conversation, guest),
    )


# --- the rule for what is sent -------------------------------------------------------


def recipients_of(
    draft: Draft, sender: LiveAddress, recipients: Sequence[Addressed], routes: Sequence[Route]
) -> Sequence[Addressed]:
    """Return who gets a draft in a conversation with routes. What is deferred follows those of its time.

    The record of a control is for the agent that it is about, and what belongs to another conversation for
    whom it names. What nobody gets is not read along.
    """
    named = draft.kind is Kind.EVENT or draft.about is not None
    if draft.deliver_at is not None or named or not recipients:
        return recipients
    return redirect(routes, sender.id, recipients)


def redirect(routes: Sequence[Route], sender: int, recipients: Sequence[Addressed]) -> list[Addressed]:
    """Return who gets a message in a conversation with these routes, copies last."""
    named = {one.recipient.id: one for one in recipients}
    replaced = {one.agent.id: one for one in routes if one.agent.id in named}
    got = [one for one in recipients if one.recipient.id not in replaced]
    copies: list[Addressed] = []
    for route in routes:
        to = route.destination
        if route.agent.id in replaced and to.id != sender:
            got.append(_in_place(named[route.agent.id], to))
        elif route.agent.id == sender:
            copies.append(_copy(to))
        if route.handed_over and (route.agent.id in replaced or to.id == sender):
            copies.append(_copy(route.agent))
    once = {one.recipient.id: one for one in reversed([*got, *copies])}  # the first of each counts
    # Nobody is left if somebody writes only to the agent whose mail it gets: then it is meant for that one.
    return list(once.values())[::-1] or list(recipients)


def _in_place(of: Addressed, to: LiveAddress) -> Addressed:
    """Return how somebody gets what is for an agent: an agent only reads along what that one would."""
    context = of.context and to.address.kind == "agent"
    return Addressed(to, routed_from=of.recipient.id, context=context, offered=of.offered)


def _copy(who: LiveAddress) -> Addressed:
    return Addressed(who, routed_from=who.id)


def redirect_deferred(tx: Tx, message: Row, now: int) -> list[Addressed]:
    """Give deferred envelopes of a message that is about to arrive to whom they are routed now.

    `message`: its id, conversation and sender. Return who gets copies.
    """
    routes = tx.cache.routes().of.get(message["conversation"])
    if not routes:
        return []
    rows = tx.execute(
        "SELECT id, recipient, status, waits FROM envelope WHERE message = ? AND forwards IS NULL",
        (message["id"],),
    ).fetchall()
    has = {row["recipient"] for row in rows}
    deferred = {row["recipient"]: row["id"] for row in rows if row["status"] == 0 and row["waits"] == 0}
    copies: list[Addressed] = []
    for agent, to, handed_over in routes:
        number = deferred.get(agent.id)
        if number is not None and to.id != message["sender"]:
            if to.id in has:  # in the place of another agent
                envelopes.reroute(tx, number, agent, agent.id, now)
                continue
            envelopes.reroute(tx, number, to, agent.id, now)
            copies += [_copy(agent)] if handed_over else []
        elif agent.id == message["sender"] and to.id not in has:
            copies.append(_copy(to))
        elif to.id == message["sender"] and handed_over and agent.id not in has:
            copies.append(_copy(agent))
        has.add(to.id)
    return copies
