"""Routes of conversations: who gets what is for an agent there, in its place, until that is undone.

A message keeps its conversation and its order there. While a route holds, an envelope for the agent goes to
the destination, with `routed_from`. After a handoff the agent reads along: it gets a copy, which is done on
arrival and starts no turn. What the agent itself still says there, the destination gets as a copy. A copy is
an envelope with its recipient in `routed_from`. What takes a Tx runs inside the writer, which keeps all routes
in memory (writer_cache): a send into any other conversation costs one look into a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.address import SYSTEM, Address
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

    @property
    def is_copy(self) -> bool:
        return self.routed_from == self.recipient.id

    @property
    def is_context(self) -> bool:
        """True: an agent only reads it along. A person looks at all that is in the box."""
        return self.is_copy and self.recipient.address.kind == "agent"


# --- the rows ------------------------------------------------------------------------


def find(tx: Tx, conversation: int, agent: int) -> Route | None:
    """Return the route of an agent in a conversation; None if it gets its mail there itself."""
    routes = tx.cache.routes().of.get(conversation, ())
    return next((one for one in routes if one.agent.id == agent), None)


def put(tx: Tx, conversation: int, agent: int, to: int, control: int, *, handed_over: bool) -> None:
    """Let a destination get the mail of an agent in a conversation, in place of the one before it."""
    end(tx, conversation, agent)
    tx.execute(
        "INSERT INTO conversation_route (conversation, agent, destination, kind, control) VALUES (?, ?, ?, ?, ?)",
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
    """Two conversations become one: its routes are those of both; of two for one agent, that of the kept one."""
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
        "SELECT joined_seq, left_seq FROM participant WHERE conversation = ? AND address = ? ORDER BY joined_seq",
        (conversation, address),
    ).fetchall()
    if known and (known[-1]["left_seq"] is None or not stays):
        return
    if known and known[-1]["joined_seq"] == last + 1:  # it left, and nothing was said since
        tx.execute(
            "UPDATE participant SET left_seq = NULL WHERE conversation = ? AND address = ? AND joined_seq = ?",
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
    """Note that a guest is shown nothing more of a conversation, unless it stands in for another agent there."""
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


def redirect(routes: Sequence[Route], sender: int, recipients: Sequence[Addressed]) -> list[Addressed]:
    """Return who gets a message in a conversation with these routes, copies last."""
    named = {one.recipient.id for one in recipients}
    replaced = {one.agent.id: one for one in routes if one.agent.id in named}
    got = [one for one in recipients if one.recipient.id not in replaced]
    copies: list[Addressed] = []
    for route in routes:
        to = route.destination
        if route.agent.id in replaced and to.id != sender:
            got.append(Addressed(to, routed_from=route.agent.id))
        elif route.agent.id == sender:
            copies.append(_copy(to))
        if route.handed_over and (route.agent.id in replaced or to.id == sender):
            copies.append(_copy(route.agent))
    once = {one.recipient.id: one for one in reversed([*got, *copies])}  # the first of each counts
    # Nobody is left if somebody writes only to the agent whose mail it gets: then it is meant for that one.
    return list(once.values())[::-1] or list(recipients)


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
                envelopes.end(tx, number, now)
                continue
            envelopes.reroute(tx, number, to, agent.id, now)
            copies += [_copy(agent)] if handed_over else []
        elif agent.id == message["sender"] and to.id not in has:
            copies.append(_copy(to))
        elif to.id == message["sender"] and handed_over and agent.id not in has:
            copies.append(_copy(agent))
        has.add(to.id)
    return copies


# --- who speaks in the place of an agent ---------------------------------------------


def spoken_in(tx: Tx, sender: int, parties: Sequence[int], parent: Row | None) -> int | None:
    """Return the conversation in which somebody writes to these parties in the place of an agent; None: none.

    That is where it gets the mail of the agent, or the one of what it answers, if that was routed to it.
    """
    rows = tx.execute(
        """
        SELECT r.conversation, r.agent FROM conversation_route r
        JOIN participant p ON p.conversation = r.conversation AND p.address = ?2 AND p.role <> 'guest'
        WHERE r.destination = ?1
        """,
        (sender, parties[0]),
    ).fetchall()
    places = [(row["conversation"], row["agent"]) for row in rows]
    if parent is not None and parent["routed_from"] not in (None, sender):
        places.insert(0, (parent["conversation"], parent["routed_from"]))
    for conversation, agent in places:
        of_both = {one for number, one in places if number == conversation} | {agent}
        if set(parties) == members(tx, conversation) - of_both:
            return int(conversation)
    return None


def members(tx: Tx, conversation: int) -> set[int]:
    """Return the parties of a conversation, without guests."""
    rows = tx.execute(
        "SELECT address FROM participant WHERE conversation = ? AND left_seq IS NULL AND role <> 'guest'",
        (conversation,),
    )
    return {row["address"] for row in rows}


def stood_in_for(tx: Tx, conversation: int | None, writer: int) -> list[LiveAddress]:
    """Return for whom somebody speaks in a conversation now: what answers it is for them, and so comes to it."""
    routes = tx.cache.routes().of.get(conversation or 0, ())
    return [one.agent for one in routes if one.destination.id == writer]


def was_routed(tx: Tx, message: int, to: Address) -> bool:
    """Tell whether somebody got a message in the place of an agent."""
    row = tx.execute(
        """
        SELECT 1 FROM envelope e JOIN address a ON a.id = e.recipient AND a.fold = ?
        WHERE e.message = ? AND e.routed_from <> e.recipient
        """,
        (to.fold, message),
    ).fetchone()
    return row is not None


def others(tx: Tx, conversation: int | None, sender: int, run: int) -> list[Address]:
    """Return who gets the answer of a run in a conversation: the other parties.

    Not those in whose place it answers. What agent:system asked, it reads no answer to.
    """
    rows = tx.execute(
        """
        SELECT a.kind, a.name FROM participant p JOIN address a ON a.id = p.address
        WHERE p.conversation = ?1 AND p.left_seq IS NULL AND p.role <> 'guest' AND a.retired_at IS NULL
          AND a.id <> ?2 AND a.fold <> ?4
          AND NOT EXISTS (SELECT 1 FROM conversation_route r
                          WHERE r.conversation = ?1 AND r.agent = a.id AND r.destination = ?2)
          AND NOT EXISTS (SELECT 1 FROM run_envelope x JOIN envelope e ON e.id = x.envelope
                          JOIN message m ON m.id = e.message AND m.conversation = ?1
                          WHERE x.run = ?3 AND e.routed_from = a.id)
        ORDER BY a.id
        """,
        (conversation, sender, run, SYSTEM.fold),
    ).fetchall()
    return [Address(row["kind"], row["name"]) for row in rows]


def asks_for_summary(tx: Tx, sender: int) -> bool:
    """Tell whether hiboss itself wants an answer: it asks for nothing but summaries."""
    system = tx.cache.live_address(SYSTEM)
    return system is not None and system.id == sender


def summary_for(tx: Tx, conversation: int, agent: int) -> LiveAddress | None:
    """Return who has the conversation of an agent now, and gets its summary; None: nobody."""
    routes = tx.cache.routes().of.get(conversation, ())
    own = sorted(routes, key=lambda one: one.agent.id != agent)
    return next((one.destination for one in own if one.destination.id != agent), None)


def is_summary(tx: Tx, answers: int | None) -> bool:
    """Tell whether a run that answers this message writes a summary."""
    row = tx.execute("SELECT sender FROM message WHERE id = ? AND NOT auto", (answers,)).fetchone()
    return row is not None and asks_for_summary(tx, row["sender"])
