"""Which envelopes an agent's next turn contains, and where its final text goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.envelope import Lane
from . import due_envelopes, lanes, reactions, surroundings
from .connection import Connection, Row
from .group_commit import Tx

TURN_ENVELOPES = 10
LOOKED_THROUGH = 10  # after failures: of the first so many, the one that failed least often is next


class ReplyTarget(NamedTuple):
    """Where a final text goes, and which message it replies to."""

    conversation: int | None
    message: int | None


NOWHERE = ReplyTarget(None, None)


class Beside(NamedTuple):
    """What a turn shows beside its envelopes. Chosen when it begins, and read later."""

    around: surroundings.Scope | None = None  # what was said around them in a group chat
    reactions: reactions.NewReactions = reactions.NONE


NOTHING = Beside()


def next_turn(tx: Tx | Connection, agent: Row, found: list[due_envelopes.Due], now: int) -> list[Row]:
    """Return the envelopes of the next turn, all of one conversation; one that failed before is alone."""
    first = found[0]
    if len(found) > 1:
        first = min(found, key=lambda one: envelope_facts(tx, [one.id])[0]["attempts"])
    [leader] = envelope_facts(tx, [first.id])
    if leader["attempts"] or agent["busy"] == "followup":
        return [leader]
    together = due_envelopes.due(
        tx, agent["id"], now, TURN_ENVELOPES, conversation=first.conversation, notices=False
    )
    rows = [one for one in envelope_facts(tx, [one.id for one in together]) if not one["attempts"]]
    # Results of several traces must not be answered in one place, nor together with a question.
    if any(wants_answer(agent["id"], one) for one in rows):
        here = (None, first.conversation)
        return [one for one in rows if _asked_from(tx, agent["id"], one).conversation in here]
    place = _asked_from(tx, agent["id"], rows[0])
    return [one for one in rows if _asked_from(tx, agent["id"], one) == place]


def envelope_facts(tx: Tx | Connection, numbers: list[int]) -> list[Row]:
    """Return the columns that selection needs, in the order of the numbers."""
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
    """Return where the final text of a turn goes: to its conversation, if somebody wants an answer there.

    A turn of only automatic messages, or of notes of the agent to itself, is not answered there.
    Its text goes to where the agent asked from: the reply target of the run that sent the
    question (or the note). Each such step leads to an earlier message, so answers go back
    the way the questions came, and the trace ends.
    """
    asking = [one for one in rows if wants_answer(agent, one)]
    if asking:
        return ReplyTarget(conversation, int(asking[-1]["message"]))
    place = _asked_from(tx, agent, rows[0])
    return NOWHERE if place.conversation == conversation else place


def wants_answer(agent: int, row: Row) -> bool:
    """Tell whether a message may be answered: it is not automatic and not from the agent itself."""
    return not row["auto"] and row["sender"] != agent


def _asked_from(tx: Tx | Connection, agent: int, row: Row) -> ReplyTarget:
    """Return the reply target of the run that asked the question to which this is the answer."""
    if wants_answer(agent, row):
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
        asked = found["reply_message"]  # asked by a background task: continue with the message that gave it
    return NOWHERE


def waiting_notices(tx: Tx | Connection, agent: int, now: int) -> list[int]:
    """Return the due notices of an agent: they start no turn, and are shown in the next one."""
    return [one.id for one in due_envelopes.due(tx, agent, now, TURN_ENVELOPES, notices=True)]


def beside(tx: Tx | Connection, agent: int, conversation: int, envelopes: Sequence[int], last: int) -> Beside:
    """Return what a turn with these envelopes shows beside them. `last`: the id of the last message."""
    return Beside(
        surroundings.scope(tx, agent, conversation, envelopes, last),
        reactions.new_ones(tx, agent, conversation),
    )


def preview_beside(connection: Connection, agent: int, envelopes: Sequence[int]) -> Beside:
    """Return what the turn with these envelopes would show beside them if it began now."""
    if not envelopes:
        return NOTHING
    conversation = envelope_facts(connection, [envelopes[0]])[0]["conversation"]
    last = connection.execute("SELECT ifnull(max(id), 0) FROM message").fetchone()[0]
    return beside(connection, agent, conversation, envelopes, last)


def preview(connection: Connection, agent: Row, now: int) -> list[int]:
    """Return the envelopes of the next turn without starting it."""
    state = lanes.get(connection, Lane(agent["id"], None))
    failed_before = state is not None and state["failures"] > 0
    found = due_envelopes.due(
        connection, agent["id"], now, LOOKED_THROUGH if failed_before else 1, notices=False
    )
    if not found:
        return []
    rows = next_turn(connection, agent, found, now)
    shown = [] if rows[0]["attempts"] else waiting_notices(connection, agent["id"], now)
    return [int(one["id"]) for one in rows] + shown
