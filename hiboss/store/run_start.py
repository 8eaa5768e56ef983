"""Runs: an agent's turns, from the envelopes taken to the answer written.

A turn is taken in one transaction (envelopes in hand, run row, its token) and settled in one
(reply, outcome, done marks), so a crash leaves either all of it or none.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.envelope import Lane
from . import agent_pauses, agents, due_envelopes, lanes, tokens
from .connection import Connection, Row
from .envelopes import NEXT_START
from .group_commit import Tx
from .run_limits import Bounds
from .turn_selection import (
    LOOKED_THROUGH,
    ReplyTarget,
    is_said,
    next_turn,
    notices_of,
    notices_riding,
    reply_target,
)


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
    leading = next((one for one in rows if is_said(agent, one)), rows[0])
    trace, hops = str(leading["trace"]), max(one["hops"] for one in rows)
    if any(agent_pauses.pause_over_limit(tx, row, one, start.bounds, now) for one in rows):
        return None
    if state is not None:
        lanes.tried(tx, state, now)
    frame = reply_target(tx, agent, conversation, rows)
    riding = [] if rows[0]["attempts"] else notices_riding(tx, agent, notices, now)
    taken = [int(one["id"]) for one in rows]
    return _start(tx, row, "turn", conversation, (taken, riding), (trace, hops), frame, start)


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
    if agent_pauses.pause_over_limit(tx, row, facts, start.bounds, start.now):
        return None
    frame = ReplyTarget(facts["conversation"], facts["message"])
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
    frame: ReplyTarget,
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
