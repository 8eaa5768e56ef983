"""Which envelopes an agent's next turn contains, what is shown beside them, and where its final text goes.

A turn belongs to one conversation: its answer goes there, and its session remembers that conversation. So
does each message (`session_scopes.belongs_to`). What a turn shows beside its envelopes (notices, reactions,
what was said around them) is of messages that belong to the conversation of the turn: it reaches nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.envelope import Lane
from . import due_envelopes, group_delivery, lanes, reactions, session_scopes, stand_ins, surroundings
from .connection import Connection, Row
from .group_commit import Tx
from .session_scopes import belongs_to

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
    meanwhile: surroundings.Copies | None = None  # what was said while somebody else had the conversation


NOTHING = Beside()


def first_due(tx: Tx | Connection, agent: int, state: Row | None, now: int) -> list[due_envelopes.Due]:
    """Return the envelopes one of which leads the next turn; none if nothing is due. `state`: of its lane.

    What a run was set aside for leads it, whatever else is due.
    """
    if state is not None and state["next_envelope"] is not None:
        row = tx.execute(
            """
            SELECT e.id, m.conversation FROM envelope e JOIN message m ON m.id = e.message
            WHERE e.id = ? AND e.recipient = ? AND e.status = 0 AND e.arrived IS NOT NULL
              AND e.waits IS NULL AND e.held_by IS NULL
            """,
            (state["next_envelope"], agent),
        ).fetchone()
        if row is not None:
            return [due_envelopes.Due(row["id"], row["conversation"], leads=True)]
    failed_before = state is not None and state["failures"] > 0
    return due_envelopes.due(tx, agent, now, LOOKED_THROUGH if failed_before else 1, notices=False)


def turn_taken(tx: Tx, state: Row) -> None:
    """Note that a turn of an agent begins: it is what was to be the next one, or that cannot be any more."""
    if state["next_envelope"] is not None:
        tx.execute("UPDATE lane SET next_envelope = NULL WHERE id = ?", (state["id"],))


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
    numbers = [one.id for one in together]
    if first.leads and first.id not in numbers:  # many others came before it
        numbers[TURN_ENVELOPES - 1 :] = [first.id]
    rows = [one for one in envelope_facts(tx, numbers) if not one["attempts"]]
    return _answered_together(tx, agent["id"], rows, leader if first.leads else None)


def _answered_together(tx: Tx | Connection, agent: int, rows: list[Row], leader: Row | None) -> list[Row]:
    """Return those of these envelopes that one final text can answer; `leader`: it must be among them."""
    is_of_turn = _is_of(tx, belongs_to(tx, (leader or rows[0])["message"], rows[0]["conversation"]))
    rows = [one for one in rows if is_of_turn(one["message"], one["conversation"])]
    # Results of several traces must not be answered in one place, nor together with a question.
    if any(wants_answer(agent, one) for one in rows):
        here = (None, rows[0]["conversation"])
        fit = [one for one in rows if _asked_from(tx, agent, one).conversation in here]
        if leader is None or leader["id"] in [one["id"] for one in fit]:
            return fit
    place = _asked_from(tx, agent, leader or rows[0])
    return [one for one in rows if _asked_from(tx, agent, one) == place]


def envelope_facts(tx: Tx | Connection, numbers: list[int]) -> list[Row]:
    """Return the columns that selection needs, in the order of the numbers."""
    rows = tx.execute(
        f"""
        SELECT e.id, e.attempts, m.id AS message, m.sender, m.conversation, m.hops, m.auto, m.reply_to,
               ifnull(m.trace, 'm' || m.id) AS trace, EXISTS (
                   SELECT 1 FROM ask k INDEXED BY ask_reply WHERE k.reply = m.id AND k.run IS NOT NULL
               ) AS answers_ask
        FROM envelope e JOIN message m ON m.id = e.message WHERE e.id IN ({",".join("?" * len(numbers))})
        """,
        numbers,
    ).fetchall()
    by_id = {row["id"]: row for row in rows}
    return [by_id[number] for number in numbers]


def reply_target(tx: Tx, agent: int, conversation: int, rows: list[Row], now: int) -> ReplyTarget:
    """Return where the final text of a turn goes: to its conversation, if somebody wants an answer there.

    A turn of only automatic messages, or of notes of the agent to itself, is not answered there.
    Its text goes to where the agent asked from: the reply target of the run that sent the
    question (or the note). Each such step leads to an earlier message, so answers go back
    the way the questions came, and the trace ends. So does the answer of a person to an ask of a run:
    it is answered where that run would have answered, else where it was given.
    """
    asking = [one for one in rows if wants_answer(agent, one)]
    if asking:
        last = asking[-1]
        if group_delivery.is_all(tx, conversation):  # in private: it is not for all agents
            return ReplyTarget(tx.cache.conversation((agent, last["sender"]), now), int(last["message"]))
        if not stand_ins.asks_for_summary(tx, last["sender"]):
            return ReplyTarget(conversation, int(last["message"]))
        to = stand_ins.summary_for(tx, conversation, agent)
        if to is None:  # it was given back meanwhile: nobody needs it
            return NOWHERE
        return ReplyTarget(tx.cache.conversation((agent, to.id), now), int(last["message"]))
    place = _asked_from(tx, agent, rows[0])
    given = [one for one in rows if one["answers_ask"] and not one["auto"]]
    if given and place.conversation is None:
        return ReplyTarget(conversation, int(given[-1]["message"]))
    return NOWHERE if place.conversation == conversation and not given else place


def wants_answer(agent: int, row: Row) -> bool:
    """Tell whether a message wants an answer of its own.

    Not what is automatic, from the agent itself, or the answer to what a run of it asked.
    """
    return not row["auto"] and row["sender"] != agent and not row["answers_ask"]


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


# --- the conversation of a turn ------------------------------------------------------


def of_turn(tx: Tx | Connection, agent: int, rows: list[Row]) -> int:
    """Return the conversation that a turn with these envelopes belongs to."""
    first = rows[0]
    asked = _asked_from(tx, agent, first)
    if any(wants_answer(agent, one) for one in rows) or asked.conversation is None or asked.message is None:
        return belongs_to(tx, first["message"], first["conversation"])
    return belongs_to(tx, asked.message, asked.conversation)


def _is_of(tx: Tx | Connection, place: int) -> reactions.IsOfTurn:
    """Return the test whether a message belongs to a conversation. It reads little for many messages."""
    of_agents: dict[int, bool] = {}

    def test(message: int, conversation: int) -> bool:
        if conversation not in of_agents:
            of_agents[conversation] = session_scopes.is_of_agents(tx, conversation)
        if of_agents[conversation]:
            return belongs_to(tx, message, conversation) == place
        return conversation == place

    return test


def waiting_notices(tx: Tx | Connection, agent: int, place: int) -> list[int]:
    """Return the due notices of an agent that its next turn shows: they start none.

    `place`: the conversation of the turn.
    """
    return due_envelopes.notices(tx, agent, place, TURN_ENVELOPES)


def beside(tx: Tx | Connection, agent: int, place: int, envelopes: Sequence[Row], last: int) -> Beside:
    """Return what a turn with these envelopes shows beside them. `last`: the id of the last message.

    `place`: the conversation of the turn. What was said around the envelopes is not shown elsewhere.
    """
    new, conversation = reactions.new_ones(tx, agent, _is_of(tx, place)), envelopes[0]["conversation"]
    if conversation != place:
        return Beside(reactions=new)
    numbers = [one["id"] for one in envelopes]
    around = surroundings.scope(tx, agent, conversation, numbers, last)
    return Beside(around, new, surroundings.copies(tx, agent, conversation, last))


def preview_beside(connection: Connection, agent: int, envelopes: Sequence[int]) -> Beside:
    """Return what the turn with these envelopes would show beside them if it began now."""
    if not envelopes:
        return NOTHING
    rows = envelope_facts(connection, list(envelopes))
    rows = [one for one in rows if one["conversation"] == rows[0]["conversation"]]  # not the notices
    last = connection.execute("SELECT ifnull(max(id), 0) FROM message").fetchone()[0]
    return beside(connection, agent, of_turn(connection, agent, rows), rows, last)


def preview(connection: Connection, agent: Row, now: int) -> list[int]:
    """Return the envelopes of the next turn without starting it."""
    found = first_due(connection, agent["id"], lanes.get(connection, Lane(agent["id"], None)), now)
    if not found:
        return []
    rows = next_turn(connection, agent, found, now)
    shown = []
    if not rows[0]["attempts"]:
        shown = waiting_notices(connection, agent["id"], of_turn(connection, agent["id"], rows))
    return [int(one["id"]) for one in rows] + shown
