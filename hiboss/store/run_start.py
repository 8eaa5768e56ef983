"""Runs: an agent's turns, from the envelopes taken to the answer written.

A turn is taken in one transaction (envelopes in hand, run row, its token) and settled in one
(reply, outcome, done marks), so a crash leaves either all of it or none.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import SYSTEM
from . import agents, due_envelopes, lanes, run_limits, tokens
from .connection import Connection, Row
from .group_commit import Tx
from .lanes import NEXT_START, Lane
from .run_limits import Bounds

TURN_ENVELOPES = 10
LOOKED_THROUGH = 10  # when a lane has met trouble: what has failed least often goes first


class Turn(NamedTuple):
    """What a run is about."""

    run: int
    kind: str  # turn, background
    agent: int
    name: str
    provider: str
    settings: str | None  # the provider's, as JSON
    workspace: str | None
    reply: str
    envelopes: tuple[int, ...]
    riding: tuple[int, ...]  # notices that came along
    trace: str
    hops: int
    reply_conversation: int | None  # where a final text goes
    reply_message: int | None  # and what it answers there
    after_message: int  # the last message when it began

    @property
    def lane(self) -> Lane:
        return Lane(self.agent, None)


class Start(NamedTuple):
    """What a run begins with."""

    token: str
    now: int
    boot: int
    bounds: Bounds


class _Frame(NamedTuple):
    conversation: int | None
    message: int | None


_NOWHERE = _Frame(None, None)


# --- an agent's turn -----------------------------------------------------------------


def begin(tx: Tx, agent: int, start: Start, *, eager: bool = False) -> Turn | None:
    """The agent's next turn, taken in hand; None when there is nothing to do now."""
    now = start.now
    row = agents.with_provider(tx, agent)
    state = lanes.get(tx, Lane(agent, None))
    if row is None or row["paused_at"] is not None or not lanes.may_go(state, now, eager=eager):
        return None
    notices = notices_of(tx, agent)
    troubled = state is not None and state["failures"] > 0
    found = due_envelopes.due(tx, agent, now, LOOKED_THROUGH if troubled else 1, apart_from=notices)
    if not found:
        return None
    rows = next_turn(tx, row, found, now, notices)
    conversation = int(rows[0]["conversation"])
    leading = next((one for one in rows if _is_said(agent, one)), rows[0])
    trace, hops = str(leading["trace"]), max(one["hops"] for one in rows)
    if any(run_limits.stops(tx, row, one, start.bounds, now) for one in rows):
        return None
    if state is not None:
        lanes.tried(tx, state, now)
    frame = _frame(tx, agent, conversation, rows)
    riding = [] if rows[0]["attempts"] else _riding(tx, agent, notices, now)
    taken = [int(one["id"]) for one in rows]
    return _start(tx, row, "turn", conversation, (taken, riding), (trace, hops), frame, start)


def next_turn(
    tx: Tx | Connection, agent: Row, found: list[due_envelopes.Due], now: int, notices: int | None
) -> list[Row]:
    """The envelopes of one conversation; what has failed before comes alone."""
    first = found[0]
    if len(found) > 1:
        first = min(found, key=lambda one: _facts(tx, [one.id])[0]["attempts"])
    [leader] = _facts(tx, [first.id])
    if leader["attempts"] or agent["busy"] == "followup":
        return [leader]
    # Apart from notices: as many as are looked through may lie before it.
    together = due_envelopes.due(
        tx, agent["id"], now, TURN_ENVELOPES, conversation=first.conversation, apart_from=notices
    )
    rows = [one for one in _facts(tx, [one.id for one in together]) if not one["attempts"]]
    # Results of several errands must not be answered in one place, nor with a question beside them.
    if any(_is_said(agent["id"], one) for one in rows):
        here = (None, first.conversation)
        return [one for one in rows if _asked_from(tx, agent["id"], one).conversation in here]
    place = _asked_from(tx, agent["id"], rows[0])
    return [one for one in rows if _asked_from(tx, agent["id"], one) == place]


def _facts(tx: Tx | Connection, numbers: list[int]) -> list[Row]:
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


def _frame(tx: Tx, agent: int, conversation: int, rows: list[Row]) -> _Frame:
    """Where the final text goes: back; but what was made by a machine, or by the agent itself (a note
    for later), is not answered there.

    Then it goes to where the agent asked from: to the place that the run would have answered
    which sent what these are answers to, or sent the note. Each such step leads to an earlier message, so
    answers travel back along the way the questions came, and come to rest.
    """
    said = [one for one in rows if _is_said(agent, one)]
    if said:
        return _Frame(conversation, int(said[-1]["message"]))
    place = _asked_from(tx, agent, rows[0])
    return _NOWHERE if place.conversation == conversation else place


def _is_said(agent: int, row: Row) -> bool:
    """Whether somebody else said it, who may be answered there: no machine, and not the agent to itself."""
    return not row["auto"] and row["sender"] != agent


def _asked_from(tx: Tx | Connection, agent: int, row: Row) -> _Frame:
    if _is_said(agent, row):
        return _NOWHERE
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
            return _Frame(found["reply_conversation"], found["reply_message"])
        asked = found["reply_message"]  # asked by a task in the background: go on from where that was given
    return _NOWHERE


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


def _riding(tx: Tx | Connection, agent: int, notices: int | None, now: int) -> list[int]:
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
    riding = [] if rows[0]["attempts"] else _riding(connection, agent["id"], notices, now)
    return [int(one["id"]) for one in rows] + riding


# --- a task in the background --------------------------------------------------------


def begin_background(tx: Tx, envelope: int, start: Start) -> Turn | None:
    """A task somebody gave to agent:background, taken in hand as a run of theirs."""
    facts = tx.execute(
        """
        SELECT e.id, m.id AS message, m.sender, m.conversation, m.hops, ifnull(m.trace, 'm' || m.id) AS trace
        FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.id = ? AND e.status = 0 AND e.waits IS NULL AND e.held_by IS NULL
        """,
        (envelope,),
    ).fetchone()
    if facts is None:
        return None
    row = agents.with_provider(tx, facts["sender"], any_mode=True)
    if row is None or row["paused_at"] is not None:
        return None
    if run_limits.stops(tx, row, facts, start.bounds, start.now):
        return None
    frame = _Frame(facts["conversation"], facts["message"])
    errand = (str(facts["trace"]), int(facts["hops"]))
    return _start(tx, row, "background", facts["conversation"], ([envelope], []), errand, frame, start)


def tasks_due(connection: Connection, background: int, limit: int) -> list[int]:
    """What lies with agent:background and can begin, in order: nothing of agents that are paused."""
    rows = connection.execute(
        """
        SELECT e.id FROM envelope e INDEXED BY envelope_due
        JOIN message m ON m.id = e.message
        JOIN agent g ON g.address = m.sender AND g.paused_at IS NULL AND g.provider IS NOT NULL
        WHERE e.recipient = ? AND e.binding IS NULL AND e.status = 0 AND e.arrived IS NOT NULL
          AND e.waits IS NULL AND e.held_by IS NULL
        ORDER BY e.priority, e.arrived LIMIT ?
        """,
        (background, limit),
    ).fetchall()
    return [row["id"] for row in rows]


def _start(
    tx: Tx,
    agent: Row,
    kind: str,
    conversation: int,
    taken: tuple[list[int], list[int]],
    errand: tuple[str, int],
    frame: _Frame,
    start: Start,
) -> Turn:
    now, boot = start.now, start.boot
    last = tx.execute("SELECT ifnull(max(id), 0) FROM message").fetchone()[0]
    run = int(
        tx.execute(
            """
            INSERT INTO run (agent, kind, conversation, status, provider, boot, trace, hops, started_at,
                             reply_conversation, reply_message, after_message)
            VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (agent["id"], kind, conversation, agent["provider"], boot, *errand, now, *frame, last),
        ).lastrowid
        or 0
    )
    envelopes, riding = taken
    for number in envelopes + riding:
        tx.execute(
            "UPDATE envelope SET held_by = ?, wake_at = ?, handovers = handovers + 1 WHERE id = ?",
            (boot, NEXT_START, number),
        )
        tx.execute("INSERT INTO run_envelope (run, envelope) VALUES (?, ?)", (run, number))
    tokens.insert(tx, start.token, "run", agent["id"], now, run=run)
    return Turn(
        run=run,
        kind=kind,
        agent=agent["id"],
        name=agent["name"],
        provider=agent["provider"],
        settings=agent["provider_config"],
        workspace=agent["workspace"],
        reply="auto" if kind == "background" else agent["reply"],
        envelopes=tuple(envelopes),
        riding=tuple(riding),
        trace=errand[0],
        hops=errand[1],
        reply_conversation=frame.conversation,
        reply_message=frame.message,
        after_message=last,
    )


def note_process(tx: Tx, run: int, pid: int, started: str | None) -> None:
    tx.execute("UPDATE run SET pid = ?, pid_started = ? WHERE id = ?", (pid, started, run))


def note_pause(tx: Tx, run: int, now: int) -> None:
    tx.execute(
        "UPDATE run SET paused_at = ? WHERE id = ? AND status = 'running' AND paused_at IS NULL", (now, run)
    )


def note_resume(tx: Tx, run: int, now: int) -> None:
    tx.execute(
        """
        UPDATE run SET paused_ms = paused_ms + max(0, ?1 - paused_at), paused_at = NULL
        WHERE id = ?2 AND paused_at IS NOT NULL
        """,
        (now, run),
    )
