"""Asks: questions with options that wait for an answer. Here they are created and settled.

The first of answer, time-out and cancel settles an ask, by one compare-and-set; the others are told who was
first. Who may answer and cancel is in ask_answers.py, what follows in ask_replies.py, reminders and
time-outs in ask_times.py, what people read in ask_messages.py. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

from ..core.address import BOSS, Address
from ..core.clock import iso
from ..core.envelope import Draft, Priority
from ..core.errors import AskSettled, NotFound
from ..core.events import AgentChanged, AskCreated
from . import agent_pauses, ask_holders, ask_messages, ask_replies, ask_rules, buttons, messages
from .ask_closing import Settlement, close
from .connection import Connection, Row
from .group_commit import Tx

WHERE = "hiboss ask list"  # what is asked
REMINDERS_MS = (300_000, 900_000, 2_700_000, 7_200_000)  # after it was asked
LABEL_CHARACTERS = 40  # of a button; the whole option is in the text

SELECT = """
    SELECT k.*, a.kind || ':' || a.name AS asker_address, a.retired_at AS asker_retired,
           d.kind || ':' || d.name AS asked_address, d.retired_at AS asked_retired,
           b.kind || ':' || b.name AS by_address, m.conversation, m.deleted_at AS question_deleted
    FROM ask k JOIN address a ON a.id = k.asker JOIN address d ON d.id = k.asked
    JOIN message m ON m.id = k.message LEFT JOIN address b ON b.id = k.answered_by
"""


class NewAsk(NamedTuple):
    """A question that somebody wants to ask. Addresses are ids."""

    asker: int
    asked: int
    question: str
    options: tuple[str, ...]
    kind: str = "question"
    fallback: str | None = None  # the answer when the time is over
    expires_at: int | None = None  # None: it waits until somebody answers
    run: int | None = None  # the run that asks
    reply_to: int | None = None  # a message; None: the one that the run answers, if that is between the two
    tool: str | None = None  # of a permission
    subject: str | None = (
        None  # of a permission: exactly what a rule would be about; of a limit: limit_asks.py
    )
    in_turn: bool = False  # a provider asks it in its turn, and waits for the answer (run_asks.py)


class Created(NamedTuple):
    """The ask; a `duplicate` was asked before, by this run or an earlier run of the same turn."""

    id: int
    message: int
    duplicate: bool = False


def get(connection: Connection | Tx, ask: int) -> Row | None:
    """Return an ask, with the addresses of its parties and its conversation."""
    row: Row | None = connection.execute(f"{SELECT} WHERE k.id = ?", (ask,)).fetchone()
    return row


def need(connection: Connection | Tx, ask: int) -> Row:
    """Return an ask; raise NotFound if there is none."""
    row = get(connection, ask)
    if row is None:
        raise NotFound(what="ask", value=f"q{ask}", where=WHERE)
    return row


def open_of_run(connection: Connection | Tx, run: int) -> list[Row]:
    """Return the open asks of a run, oldest first."""
    return connection.execute(
        f"{SELECT} WHERE k.run = ? AND k.state = 'open' ORDER BY k.id", (run,)
    ).fetchall()


def options_of(ask: Row) -> tuple[str, ...]:
    return tuple(json.loads(ask["options"]))


# --- create --------------------------------------------------------------------------


def create(tx: Tx, new: NewAsk, now: int) -> Created:
    """Ask: send the question to who is asked, with buttons; or find what this turn asked before."""
    digest = _digest(new)
    if new.run is not None and not new.in_turn and (known := _asked_before(tx, new, digest)) is not None:
        # It is this run's now: so a second question with the same words is a new one.
        tx.execute("UPDATE ask SET run = ? WHERE id = ?", (new.run, known["id"]))
        tx.facts.append(AgentChanged(now, new.asker))
        return Created(known["id"], known["message"], duplicate=True)
    last = tx.execute("SELECT seq FROM sqlite_sequence WHERE name = 'ask'").fetchone()
    number = (last["seq"] if last else 0) + 1  # its text names it
    asked = ask_replies.address_of(tx, new.asked)
    message = _send(tx, number, new, asked, now)
    if asked.kind == "user":
        add_buttons(tx, message, number, new.options)
        text = tx.execute("SELECT text FROM message WHERE id = ?", (message,)).fetchone()["text"]
        if ask_messages.shows_all(text, new.tool, new.subject):
            ask_rules.add_buttons(tx, message, number, new.run, new.tool, new.subject, new.options)
    wake_at = min(now + REMINDERS_MS[0], new.expires_at or now + REMINDERS_MS[0])
    tx.execute(
        """
        INSERT INTO ask (id, kind, asker, asked, run, message, digest, created_at, expires_at, wake_at,
                         tool, fallback, options, subject, question, in_turn)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            *(number, new.kind, new.asker, new.asked, new.run, message, digest, now, new.expires_at, wake_at),
            *(new.tool, new.fallback, json.dumps(new.options, ensure_ascii=False), new.subject, new.question),
            new.in_turn,
        ),
    )
    ask_holders.follow(tx, message)
    tx.facts.append(AskCreated(now, number))
    if new.run is not None:
        tx.facts.append(AgentChanged(now, new.asker))  # it waits for an answer
    return Created(number, message)


def _digest(new: NewAsk) -> bytes:
    what = (new.kind, new.asked, new.question, new.options, new.tool, new.subject)
    return hashlib.sha256(json.dumps(what).encode()).digest()


def _asked_before(tx: Tx, new: NewAsk, digest: bytes) -> Row | None:
    """Return the same ask of this turn: of an earlier run that it repeats, or of this run.

    Of this run only one whose answer it has not got: after that, the same words are a new question. Those
    that were asked several times come in the order in which they were asked.
    """
    row: Row | None = tx.execute(
        """
        WITH turn AS (
            SELECT ?3 AS run
            UNION SELECT x.run FROM run_envelope y JOIN run_envelope x ON x.envelope = y.envelope
            WHERE y.run = ?3)
        SELECT k.id, k.message FROM turn JOIN ask k INDEXED BY ask_run ON k.run = turn.run
        WHERE k.asker = ?1 AND k.digest = ?2 AND (k.run <> ?3 OR k.state = 'open' OR EXISTS (
            SELECT 1 FROM envelope e WHERE e.message = k.reply AND e.recipient = ?1 AND e.status = 0))
        ORDER BY k.id LIMIT 1
        """,
        (new.asker, digest, new.run),
    ).fetchone()
    return row


def _send(tx: Tx, number: int, new: NewAsk, asked: Address, now: int) -> int:
    """Send the message of an ask; return its id."""
    asker = ask_replies.address_of(tx, new.asker)
    run = tx.execute("SELECT trace, hops, reply_message FROM run WHERE id = ?", (new.run,)).fetchone()
    conversation = tx.cache.conversation((new.asker, new.asked), now)
    reply_to = new.reply_to or (run["reply_message"] if run else None)
    here = tx.execute(
        "SELECT 1 FROM message WHERE id = ? AND conversation = ?", (reply_to, conversation)
    ).fetchone()
    draft = Draft(
        sender=asker,
        caller=new.asker,
        sees_all=True,
        to=(asked,),
        text=ask_messages.question(
            tx,
            number,
            ask_messages.body(number, new.question, new.tool, new.subject) if new.in_turn else new.question,
            new.options,
            until=new.expires_at,
            fallback=new.fallback,
        ),
        priority=Priority.HIGH,
        reply_to=("message", reply_to) if reply_to is not None and here else None,
        conversation=conversation,
        # An agent answers by a command: the final text of its turn is no answer to this.
        auto=asked.kind == "agent",
        from_boss=asker == BOSS,
        run=new.run,
        trace=run["trace"] if run else None,
        hops=run["hops"] + 1 if run else 0,
        metadata={"ask": f"q{number}"},
    )
    return messages.insert(tx, draft, now).message


def add_buttons(tx: Tx, message: int, ask: int, options: tuple[str, ...]) -> None:
    """Put a button for each option under a message about an ask."""
    labels = [ask_messages.label(one, LABEL_CHARACTERS) for one in options]
    buttons.add(tx, message, [(label, "ask.answer", f"{ask}:{at}") for at, label in enumerate(labels)])


# --- settle --------------------------------------------------------------------------


def settle(tx: Tx, ask: int, settlement: Settlement, now: int) -> Row:
    """Settle an open ask and return it; raise AskSettled, with who was first, if it is settled."""
    if not close(tx, ask, settlement, now):
        raise already_settled(need(tx, ask))
    row = need(tx, ask)
    ask_rules.remember(tx, row, now)
    if row["kind"] == "limit" and row["subject"] is None:
        agent_pauses.answered(tx, row, now)
    elif row["kind"] != "permission":  # a limit of schedules pauses nobody, so its asker must be told
        ask_replies.tell(tx, row, settlement.place, now)
    return need(tx, ask)


def already_settled(ask: Row) -> AskSettled:
    """Return the error that says who settled an ask, how and when."""
    return AskSettled(
        id=f"q{ask['id']}",
        first=ask_messages.outcome(ask),
        state=ask["state"],
        answer=ask["answer"],
        by=ask["by_address"],
        at=iso(ask["answered_at"]),
    )
