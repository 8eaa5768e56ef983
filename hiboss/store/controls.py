"""Controls: orders about something running or waiting, each stored with its outcome.

A control is written in one transaction with what it changes: its row, and a message of the type `event` in
the conversation it is about. That message is no mail: it starts no turn, lies in nobody's unread mail and
is posted nowhere. Processes are told after COMMIT (hiboss/agents/controls.py). What takes a Tx runs inside
the writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..core.address import Address
from ..core.envelope import Draft, Kind, Priority
from ..core.escaping import quote
from ..core.events import ControlSent
from ..core.shortening import shorten
from . import messages
from .connection import Connection, Row
from .control_targets import Target
from .group_commit import Tx

EVENTS = ("pause", "resume", "cancel", "preempt", "priority", "route", "handoff")
PREFIX = "stream."  # of an event outside the database: stream.pause
APPLIED, TOO_LATE, REFUSED = "applied", "too-late", "refused"
WHY_CHARACTERS, REASON_CHARACTERS = 300, 200


class Order(NamedTuple):
    """What somebody wants: an event, about exactly one agent, run, conversation or envelope."""

    event: str  # one of EVENTS
    actor: int  # the address id of who wants it
    by: str  # how that one is called in texts: the boss, agent:kai
    agent: int | None = None  # address id
    run: int | None = None
    conversation: int | None = None
    envelope: int | None = None  # also beside another target, where the event allows it
    to: int | None = None  # of route and handoff: address id
    level: Priority | None = None  # of priority
    reason: str | None = None
    meta: Mapping[str, Any] | None = None  # the actor's own
    requeue: bool = False  # of cancel: what the run works on is due again
    is_boss: bool = False  # only he lifts what a limit has paused
    why: str | None = None  # what is stored with a run that it ends; None: made of `by` and `reason`
    until_done: bool = False  # tried again while the store cannot be used: nobody would repeat it
    # Raises if the actor may not do this; called first in the transaction.
    check: Callable[[Tx, Target], None] = lambda tx, target: None
    # Raises where a door answers with an error, so that nothing is stored.
    decided: Callable[[Decision, Target], None] = lambda decision, target: None

    @property
    def explanation(self) -> str:
        """Why a run that this order ends has ended."""
        done = {"cancel": "cancelled", "pause": "paused", "preempt": "preempted"}.get(self.event, "ended")
        reason = f": {self.reason}" if self.reason else ""
        return self.why or f"{self.by} {done} it{reason}"


class Decision(NamedTuple):
    """What a control comes to. It is returned inside the transaction in which it was applied."""

    outcome: str  # APPLIED, TOO_LATE, REFUSED
    why: str | None = None  # of what was not applied; or a remark
    ended: tuple[int, ...] = ()  # runs that were told to end (run_cancels.note): their processes are ended
    changed: tuple[int, ...] = ()  # runs that were paused or resumed: their processes are stopped or go on
    woken: tuple[int, ...] = ()  # address ids of agents that may have something to do now
    recorded: Callable[[Tx, int], None] | None = None  # called in the transaction with the control's id


class Control(NamedTuple):
    """A control as it is recorded."""

    event: str
    actor: int
    agent: int | None = None
    run: int | None = None
    conversation: int | None = None
    envelope: int | None = None
    destination: int | None = None
    reason: str | None = None
    meta: Mapping[str, Any] | None = None

    @property
    def target(self) -> str | None:
        """What was named, with its id; None: the agent."""
        named = (("r", self.run), ("e", self.envelope), ("c", self.conversation))
        return next((f"{letter}{number}" for letter, number in named if number is not None), None)


class Recorded(NamedTuple):
    control: int
    message: int


def together(found: Iterable[Decision]) -> Decision:
    """Return one decision for several runs: applied if it was to one of them, with what the others said."""
    decisions = list(found)
    for outcome in (APPLIED, REFUSED, TOO_LATE):
        if any(one.outcome == outcome for one in decisions):
            break
    whys = dict.fromkeys(one.why for one in decisions if one.why)
    return Decision(
        outcome,
        "; ".join(whys) or None,
        ended=tuple(run for one in decisions for run in one.ended),
        changed=tuple(run for one in decisions for run in one.changed),
        woken=tuple(dict.fromkeys(agent for one in decisions for agent in one.woken)),
    )


# --- recording -----------------------------------------------------------------------


def record(tx: Tx, control: Control, outcome: str, why: str | None, now: int) -> Recorded:
    """Store a control with its outcome, as a row and as a message of the type event."""
    actor = _address(tx, control.actor)
    agent = control.agent if control.agent is not None else control.actor
    to = _address(tx, agent)
    entry = tx.cache.live_address(to)
    if entry is None or entry.id != agent:  # it was deleted
        to = actor
    target = control.target or str(_address(tx, agent))
    known = {"event": PREFIX + control.event, "target": target, "reason": control.reason, "outcome": outcome}
    if control.destination is not None:
        known["to"] = str(_address(tx, control.destination))
    draft = Draft(
        sender=actor,
        caller=control.actor,
        sees_all=True,
        to=(to,),
        text=_line(known, why),  # without the reason: whoever reads the conversation reads this
        kind=Kind.EVENT,
        auto=True,
        context=True,
        forward=False,
        from_boss=control.actor == tx.cache.reach().boss,
        metadata={**(control.meta or {}), "control": known},
        conversation=control.conversation or _conversation(tx, control),
    )
    message = messages.insert(tx, draft, now).message
    number = _insert(tx, control, message, outcome, why, now)
    about = (control.agent, control.run, control.envelope)
    tx.facts.append(ControlSent(now, number, PREFIX + control.event, outcome, control.actor, *about, message))
    return Recorded(number, message)


def _insert(tx: Tx, control: Control, message: int, outcome: str, why: str | None, now: int) -> int:
    conversation = tx.execute("SELECT conversation FROM message WHERE id = ?", (message,)).fetchone()
    cursor = tx.execute(
        """
        INSERT INTO control (message, event, actor, agent, run, conversation, envelope, destination, outcome,
                             why, reason, at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            *(message, control.event, control.actor, control.agent, control.run),
            *(conversation["conversation"], control.envelope, control.destination),
            *(outcome, why, control.reason, now),
        ),
    )
    return int(cursor.lastrowid or 0)


def _conversation(tx: Tx, control: Control) -> int | None:
    """Return the conversation of the run or the envelope; None: the private one of actor and agent."""
    for query, number in (
        ("SELECT conversation FROM run WHERE id = ?", control.run),
        (
            "SELECT m.conversation FROM envelope e JOIN message m ON m.id = e.message WHERE e.id = ?",
            control.envelope,
        ),
    ):
        row = None if number is None else tx.execute(query, (number,)).fetchone()
        if row is not None and row["conversation"] is not None:
            return int(row["conversation"])
    return None


def _line(known: Mapping[str, Any], why: str | None) -> str:
    """Return a control as one short line, for people and agents who read the conversation."""
    event = str(known["event"]).removeprefix(PREFIX)
    to = f" to {known['to']}" if "to" in known else ""
    remark = f" ({shorten(why, WHY_CHARACTERS)})" if why else ""
    return f"{event} {known['target']}{to}: {known['outcome']}{remark}"


class Shown(NamedTuple):
    """The record of a control as somebody reads it."""

    text: str
    metadata: dict[str, Any]


def shown(text: str, metadata: dict[str, Any], *, concerned: bool) -> Shown:
    """Return the record of a control, of which `text` is the line: the reason for those whom it concerns.

    The others do not read the metadata of its actor either.
    """
    known = metadata["control"]
    if not concerned:
        return Shown(text, {"control": {**known, "reason": None}})
    reason = known.get("reason")
    return Shown(f"{text}. Reason: {quote(reason, REASON_CHARACTERS)}" if reason else text, metadata)


def _address(tx: Tx | Connection, number: int) -> Address:
    row = tx.execute("SELECT kind, name FROM address WHERE id = ?", (number,)).fetchone()
    return Address(row["kind"], row["name"])


# --- reading -------------------------------------------------------------------------

_SELECT = """
SELECT k.*, a.kind || ':' || a.name AS actor_address, g.kind || ':' || g.name AS agent_address,
       d.kind || ':' || d.name AS destination_address
FROM control k {index} JOIN address a ON a.id = k.actor
LEFT JOIN address g ON g.id = k.agent LEFT JOIN address d ON d.id = k.destination
"""


class Page(NamedTuple):
    rows: list[Row]
    more: bool


def page(
    connection: Connection,
    *,
    agent: int | None = None,
    conversation: int | None = None,
    actor: int | None = None,
    viewer: int | None = None,
    before: int | None = None,
    limit: int,
) -> Page:
    """Return controls, newest first; all, or those about an agent, in a conversation, or of an actor.

    `viewer`: only those that this address sent or that are about it, or in a conversation it is a party of.
    """
    indexed = ((agent, "agent"), (conversation, "conversation"), (actor, "actor"))
    index = next((f"INDEXED BY control_{name}" for value, name in indexed if value is not None), "")
    terms, values = ["1"], []
    for term, value in (
        ("k.agent = ?", agent),
        ("k.conversation = ?", conversation),
        ("k.actor = ?", actor),
        ("k.id < ?", before),
        (_SEEN_BY, viewer),
    ):
        if value is not None:
            terms.append(term)
            values += [value] * term.count("?")
    rows = connection.execute(
        f"{_SELECT.format(index=index)} WHERE {' AND '.join(terms)} ORDER BY k.id DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    return Page(rows[:limit], len(rows) > limit)


_SEEN_BY = """
    (k.actor = ? OR k.agent = ? OR EXISTS (
        SELECT 1 FROM participant p WHERE p.conversation = k.conversation AND p.address = ?
          AND p.left_seq IS NULL))
"""
