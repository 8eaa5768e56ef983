"""Who speaks in the place of an agent: in which conversation, for whom, and who gets the answers.

Somebody stands in for an agent while a route holds (conversation_routes.py), or when it answers a single
envelope that was routed to it. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.address import SYSTEM, Address
from ..core.envelope import Draft
from .connection import Connection, Row
from .conversation_routes import members
from .group_commit import Tx
from .writer_cache import LiveAddress


def conversation_of(
    tx: Tx,
    draft: Draft,
    sender: LiveAddress,
    parties: Sequence[int],
    parent: Row | None,
    now: int,
    *,
    to_chats: bool,
) -> int:
    """Return the conversation of a draft. `to_chats`: it is for the boss, by chats of his that were named."""
    if draft.conversation is not None and not to_chats:
        return draft.conversation
    in_its_place = None
    if draft.conversation is None and (parent is not None or sender.id in tx.cache.routes().destinations):
        in_its_place = spoken_in(tx, sender.id, parties, parent)
    return in_its_place or tx.cache.conversation((sender.id, *parties), now)


def spoken_in(tx: Tx, sender: int, parties: Sequence[int], parent: Row | None) -> int | None:
    """Return the conversation in which somebody writes to these parties in the place of an agent; None: none.

    That is where it gets the mail of the agent, or the one of what it answers, if that was routed to it.
    """
    answers = parent is not None and parent["routed_from"] not in (None, sender)
    if not answers and sender not in tx.cache.routes().destinations:
        return None
    if not answers and parent is not None and members(tx, parent["conversation"]) == {sender, *parties}:
        return None  # it goes on with what is its own
    rows = tx.execute(
        """
        SELECT r.conversation, r.agent FROM conversation_route r
        JOIN participant p ON p.conversation = r.conversation AND p.address = ?2 AND p.role <> 'guest'
        WHERE r.destination = ?1 ORDER BY r.conversation = ?3 DESC, r.conversation
        """,
        (sender, parties[0], None if parent is None else parent["conversation"]),
    ).fetchall()
    places = [(row["conversation"], row["agent"]) for row in rows]
    if answers and parent is not None:
        places.insert(0, (parent["conversation"], parent["routed_from"]))
    for conversation, agent in places:
        of_both = {one for number, one in places if number == conversation} | {agent}
        if set(parties) == members(tx, conversation) - of_both:
            return int(conversation)
    return None


class InPlace(NamedTuple):
    """In whose place somebody writes to a chat."""

    conversation: int
    agent: int  # address id


def stands_in(
    tx: Tx | Connection, sender: int, recipient: int, parent: int | None, conversation: int | None
) -> InPlace | None:
    """Return in whose place somebody writes to a chat, as an answer to `parent`; None: for itself.

    That holds only for a party of the conversation that it has, or of which it got what it answers: who got
    one message of an agent may write to nobody else in its place. `conversation`: where it is said, if known.
    """
    row = tx.execute(_STANDS_IN, (sender, recipient, parent, conversation)).fetchone()
    return None if row is None else InPlace(*row)


_STANDS_IN = """
    WITH said_in (conversation) AS (SELECT ifnull(?4, (SELECT conversation FROM message WHERE id = ?3))),
    has (conversation, agent, answers) AS (
        SELECT m.conversation, e.routed_from, 1 FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.message = ?3 AND e.recipient = ?1 AND e.routed_from <> ?1
        UNION ALL SELECT conversation, agent, 0 FROM conversation_route WHERE destination = ?1)
    SELECT h.conversation, h.agent FROM has h
    WHERE EXISTS (SELECT 1 FROM participant p WHERE p.conversation = h.conversation AND p.address = ?2
                  AND p.role <> 'guest' AND p.left_seq IS NULL)
      AND NOT EXISTS (  -- it goes on with what is its own
          SELECT 1 FROM said_in s JOIN participant p ON p.conversation = s.conversation
          AND p.address = ?1 AND p.role <> 'guest' AND p.left_seq IS NULL
          JOIN participant o ON o.conversation = s.conversation AND o.address = ?2 AND o.left_seq IS NULL
          WHERE s.conversation <> h.conversation)
    ORDER BY h.conversation = (SELECT conversation FROM said_in) DESC, h.answers DESC, h.conversation LIMIT 1
"""


def stood_in_for(tx: Tx, conversation: int | None, writer: int) -> list[LiveAddress]:
    """Return for whom somebody speaks in a conversation now: what answers it is for them."""
    routes = tx.cache.routes().of.get(conversation or 0, ())
    return [one.agent for one in routes if one.destination.id == writer]


def in_group(tx: Tx, conversation: int, writer: int, answers: int | None) -> frozenset[int]:
    """Return the agents of a group in whose place somebody writes there, as an answer to a message.

    It has their mail there, or got what it answers in their place. Not who has left: for that one nobody
    speaks.
    """
    rows = tx.execute(
        """
        SELECT p.address FROM participant p
        WHERE p.conversation = ?1 AND p.left_seq IS NULL AND p.role <> 'guest' AND p.address IN (
            SELECT agent FROM conversation_route WHERE conversation = ?1 AND destination = ?2
            UNION SELECT e.routed_from FROM envelope e JOIN message m ON m.id = e.message
            WHERE e.message = ?3 AND m.conversation = ?1 AND e.recipient = ?2 AND e.routed_from <> ?2)
        """,
        (conversation, writer, answers),
    )
    return frozenset(row["address"] for row in rows)


def writers(tx: Tx, message: int | None) -> frozenset[int]:
    """Return who wrote a message of a group, and the agents in whose place: an answer to it is for all."""
    query = "SELECT conversation, sender, reply_to FROM message WHERE id = ?"
    row = None if message is None else tx.execute(query, (message,)).fetchone()
    if row is None:
        return frozenset()
    in_place = in_group(tx, row["conversation"], row["sender"], row["reply_to"])
    return in_place | {row["sender"]}


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

    Not those in whose place it answers. What agent:system asked, it reads no answer to. In a group, the
    group itself.
    """
    group = group_of(tx, conversation)
    if group is not None:
        return [group]
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


def group_of(tx: Tx, conversation: int | None) -> Address | None:
    """Return the address of a group by its conversation; None if it is none, or was deleted."""
    row = tx.execute(
        """
        SELECT a.name FROM conversation c JOIN address a ON a.id = c.address AND a.retired_at IS NULL
        WHERE c.id = ? AND c.kind = 'group'
        """,
        (conversation,),
    ).fetchone()
    return None if row is None else Address("group", row["name"])


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
