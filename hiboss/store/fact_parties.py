"""Who is concerned by a fact: its parties, who may see it, and its conversation.

Looked up when somebody follows, not when it happens. None of it changes later: an envelope keeps its
message, and a message its sender and its conversation. Only when two chats become one they change, and
then those who follow are told of a gap. Who is in a group does change: a fact concerns those who were in
it when it happened.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import events
from ..core.events import Fact
from .connection import Connection


class Concerned(NamedTuple):
    """What is not in a fact itself. The boss sees every fact, also one without parties."""

    parties: tuple[int, ...] = ()  # address ids
    conversation: int | None = None
    message: int | None = None
    sender: int | None = None
    recipient: int | None = None


def concerned(connection: Connection, fact: Fact) -> Concerned:
    """Return whom a fact concerns; nobody but the boss if what it is about is not there any more."""
    if isinstance(fact, events.EnvelopesArrived):
        return of_arrival(fact)
    if isinstance(fact, events.EnvelopesDeferred):
        return Concerned((fact.sender,), fact.conversation, fact.message, fact.sender)
    if isinstance(fact, events.EnvelopeRouted):
        found = _of_envelope(connection, fact.envelope)
        return found._replace(parties=(*found.parties, fact.routed_from))
    if isinstance(fact, events.OfEnvelope):
        return _of_envelope(connection, fact.envelope)
    if isinstance(fact, events.OfMessage):
        return _of_message(connection, fact.message)
    if isinstance(fact, events.OfRun):
        return _of_run(connection, fact)
    if isinstance(fact, events.AgentChanged | events.BindingRemoved):
        return Concerned((fact.agent,))
    if isinstance(fact, events.UserChanged):
        return Concerned((fact.user,))
    if isinstance(fact, events.TypingChanged):
        others = [one for one in _members_at(connection, fact.conversation, fact.at) if one != fact.who]
        return Concerned(tuple(others), fact.conversation)
    return _of_others(connection, fact)


def _of_others(connection: Connection, fact: Fact) -> Concerned:
    if isinstance(fact, events.OfAsk):
        return _of_ask(connection, fact.ask)
    if isinstance(fact, events.ControlSent):
        return _of_control(connection, fact)
    if isinstance(fact, events.OfConversation):
        return Concerned(tuple(fact.parties), fact.conversation)
    if isinstance(fact, events.ChatRenamed):
        return Concerned(tuple(fact.parties))
    if isinstance(fact, events.OfLane):
        return _of_lane(connection, fact.address, fact.binding)
    return Concerned()


def of_arrival(fact: events.EnvelopesArrived) -> Concerned:
    """Return whom mail concerns that arrived: the fact itself says it."""
    return Concerned((fact.sender, *fact.recipients), fact.conversation, fact.message, fact.sender)


def _of_envelope(connection: Connection, envelope: int) -> Concerned:
    row = connection.execute(
        """
        SELECT e.message, e.recipient, e.arrived, e.addressed, box.recipient AS boss, m.sender, m.conversation
        FROM envelope e JOIN message m ON m.id = e.message LEFT JOIN envelope box ON box.id = e.forwards
        WHERE e.id = ?
        """,
        (envelope,),
    ).fetchone()
    if row is None:
        return Concerned()
    sender, recipient = row["sender"], row["recipient"]
    # Its recipient knows nothing of an envelope that has not arrived.
    parties = (sender,) if row["arrived"] is None else (sender, recipient)
    if row["boss"] is not None and not row["addressed"]:
        parties = (row["boss"],)  # where he has his mail forwarded to is for nobody else to know
    return Concerned(parties, row["conversation"], row["message"], sender, recipient)


def _of_message(connection: Connection, message: int) -> Concerned:
    rows = connection.execute(
        """
        SELECT m.sender, m.conversation, e.recipient FROM message m
        LEFT JOIN envelope e ON e.message = m.id AND e.arrived IS NOT NULL WHERE m.id = ?
        """,
        (message,),
    ).fetchall()
    if not rows:
        return Concerned()
    recipients = [row["recipient"] for row in rows if row["recipient"] is not None]
    sender = rows[0]["sender"]
    return Concerned((sender, *recipients), rows[0]["conversation"], message, sender)


def _of_run(connection: Connection, fact: events.OfRun) -> Concerned:
    if fact.conversation is None:
        return Concerned((fact.agent,))
    there = _members_at(connection, fact.conversation, fact.at)
    return Concerned((fact.agent, *there), fact.conversation)


def _of_ask(connection: Connection, ask: int) -> Concerned:
    """Return who asked, who was asked, and who holds the question in its place."""
    row = connection.execute(
        """
        SELECT k.asker, k.asked, k.holder, m.conversation, m.id FROM ask k JOIN message m ON m.id = k.message
        WHERE k.id = ?
        """,
        (ask,),
    ).fetchone()
    if row is None:
        return Concerned()
    parties = (row["asker"], row["asked"], row["holder"])
    return Concerned(
        tuple(one for one in parties if one is not None),
        row["conversation"],
        row["id"],
        row["asker"],
        row["asked"],
    )


def _of_control(connection: Connection, fact: events.ControlSent) -> Concerned:
    """Return who may know of a control: who sent it, whom it is about, and who is in the conversation."""
    of = _of_message(connection, fact.message)
    there = _members_at(connection, of.conversation, fact.at) if of.conversation is not None else []
    return Concerned(tuple(dict.fromkeys((*of.parties, *there))), of.conversation, fact.message, of.sender)


def members(connection: Connection, conversation: int) -> list[int]:
    """Return the address ids of those who are in a conversation now, and get its mail."""
    rows = connection.execute(
        """
        SELECT DISTINCT p.address FROM participant p WHERE p.conversation = ? AND p.left_seq IS NULL
          AND NOT EXISTS (SELECT 1 FROM conversation_route r WHERE r.conversation = p.conversation
                          AND r.agent = p.address AND r.kind = 'route')
        """,
        (conversation,),
    )
    return [row["address"] for row in rows]


def _members_at(connection: Connection, conversation: int, at: int) -> list[int]:
    """Return who was in a conversation at a time, and got its mail. Only groups have others now than then."""
    row = connection.execute("SELECT kind FROM conversation WHERE id = ?", (conversation,)).fetchone()
    if row is None or row["kind"] != "group":
        return members(connection, conversation)
    rows = connection.execute(
        """
        SELECT DISTINCT p.address FROM participant p
        WHERE p.conversation = ?1 AND p.role <> 'guest' AND ifnull(p.joined_at, 0) <= ?2
          AND (p.left_at IS NULL OR p.left_at > ?2)
          AND NOT EXISTS (SELECT 1 FROM conversation_route r WHERE r.conversation = ?1
                          AND r.agent = p.address AND r.kind = 'route')
        UNION SELECT r.destination FROM conversation_route r JOIN control k ON k.id = r.control
        WHERE r.conversation = ?1 AND k.at <= ?2  -- a guest has no times of its own
        """,
        (conversation, at),
    )
    return [row["address"] for row in rows]


def _of_lane(connection: Connection, address: int | None, binding: int | None) -> Concerned:
    if binding is None:
        return Concerned(() if address is None else (address,))
    rows = connection.execute("SELECT agent FROM binding_agent WHERE binding = ?", (binding,))
    agents = tuple(row["agent"] for row in rows)
    return Concerned(agents if address is None else (address, *agents))


def address_name(connection: Connection, address: int) -> str:
    """Return an address as it is written, by its id."""
    row = connection.execute("SELECT kind || ':' || name FROM address WHERE id = ?", (address,)).fetchone()
    return str(row[0]) if row else ""
