"""Which envelopes an agent's next turn contains, and where its final text goes."""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import SYSTEM
from ..core.envelope import Lane
from . import due_envelopes, lanes
from .connection import Connection, Row
from .group_commit import Tx

TURN_ENVELOPES = 10


LOOKED_THROUGH = 10  # when a lane has met trouble: what has failed least often goes first


class ReplyTarget(NamedTuple):
    conversation: int | None
    message: int | None


NOWHERE = ReplyTarget(None, None)


def next_turn(
    tx: Tx | Connection, agent: Row, found: list[due_envelopes.Due], now: int, notices: int | None
) -> list[Row]:
    """The envelopes of one conversation; what has failed before comes alone."""
    first = found[0]
    if len(found) > 1:
        first = min(found, key=lambda one: envelope_facts(tx, [one.id])[0]["attempts"])
    [leader] = envelope_facts(tx, [first.id])
    if leader["attempts"] or agent["busy"] == "followup":
        return [leader]
    # Apart from notices: as many as are looked through may lie before it.
    together = due_envelopes.due(
        tx, agent["id"], now, TURN_ENVELOPES, conversation=first.conversation, apart_from=notices
    )
    rows = [one for one in envelope_facts(tx, [one.id for one in together]) if not one["attempts"]]
    # Results of several errands must not be answered in one place, nor with a question beside them.
    if any(is_said(agent["id"], one) for one in rows):
        here = (None, first.conversation)
        return [one for one in rows if _asked_from(tx, agent["id"], one).conversation in here]
    place = _asked_from(tx, agent["id"], rows[0])
    return [one for one in rows if _asked_from(tx, agent["id"], one) == place]


def envelope_facts(tx: Tx | Connection, numbers: list[int]) -> list[Row]:
    rows = tx.execute(
        f"""
        SELECT e.id, e.attempts, m.id AS message, m.sender, m.conversation, m.hops, m.auto, m.reply_to,
               ifnull(m.trace, 'm' || m.id) AS trace
        FROM envelope e JOIN message m ON m.id = e.message WHERE e.id IN ({",".join("?" * len(numbers))})
        """,
        numbers,
    ).fetchall()
    by_id = {row["id"]: row for row in rows}
    return [by_id[number] for number in numbers]


def reply_target(tx: Tx, agent: int, conversation: int, rows: list[Row]) -> ReplyTarget:
    """Where the final text goes: back; but what was made by a machine, or by the agent itself (a note
    for later), is not answered there.

    Then it goes to where the agent asked from: to the place that the run would have answered
    which sent what these are answers to, or sent the note. Each such step leads to an earlier message, so
    answers travel back along the way the questions came, and come to rest.
    """
    said = [one for one in rows if is_said(agent, one)]
    if said:
        return ReplyTarget(conversation, int(said[-1]["message"]))
    place = _asked_from(tx, agent, rows[0])
    return NOWHERE if place.conversation == conversation else place


def is_said(agent: int, row: Row) -> bool:
    """Whether somebody else said it, who may be answered there: no machine, and not the agent to itself."""
    return not row["auto"] and row["sender"] != agent


def _asked_from(tx: Tx | Connection, agent: int, row: Row) -> ReplyTarget:
    if is_said(agent, row):
        return NOWHERE
    asked = row["message"] if row["sender"] == agent else row["reply_to"]
    while asked is not None:
        found = tx.execute(
            """
            SELECT r.kind, r.reply_conversation, r.reply_message FROM message asked
            JOIN run r ON r.id = asked.run WHERE asked.id = ? AND asked.sender = ?
            """,
            (asked, agent),
        ).fetchone()
        if found is None:
            break
        if found["kind"] == "turn":
            return ReplyTarget(found["reply_conversation"], found["reply_message"])
        asked = found["reply_message"]  # asked by a task in the background: go on from where that was given
    return NOWHERE


def notices_of(tx: Tx | Connection, agent: int) -> int | None:
    """The conversation in which agent:system tells this agent things."""
    row = tx.execute(
        """
        SELECT c.id FROM address s JOIN conversation c
            ON c.key = CASE WHEN s.id < ?1 THEN s.id || ',' || ?1 ELSE ?1 || ',' || s.id END
        WHERE s.fold = ?2 AND s.retired_at IS NULL
        """,
        (agent, SYSTEM.fold),
    ).fetchone()
    return row["id"] if row else None


def notices_riding(tx: Tx | Connection, agent: int, notices: int | None, now: int) -> list[int]:
    """Notices start no turn; they come along with the next."""
    if notices is None:
        return []
    return [one.id for one in due_envelopes.due(tx, agent, now, TURN_ENVELOPES, conversation=notices)]


def preview(connection: Connection, agent: Row, now: int) -> list[int]:
    """The envelopes of the next turn, without taking them."""
    notices = notices_of(connection, agent["id"])
    state = lanes.get(connection, Lane(agent["id"], None))
    troubled = state is not None and state["failures"] > 0
    found = due_envelopes.due(
        connection, agent["id"], now, LOOKED_THROUGH if troubled else 1, apart_from=notices
    )
    if not found:
        return []
    rows = next_turn(connection, agent, found, now, notices)
    riding = [] if rows[0]["attempts"] else notices_riding(connection, agent["id"], notices, now)
    return [int(one["id"]) for one in rows] + riding
