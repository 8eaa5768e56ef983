"""Start runs: an agent's next turn, or a task in the background.

One transaction holds the envelopes and writes the run and its token. Another one settles the
run (run_settlement.py): reply, outcome, done marks. So a crash leaves all of a step or none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.envelope import Lane
from ..core.events import AgentChanged, RunStarted
from . import (
    agents,
    breaker_holds,
    deleted_envelopes,
    envelopes,
    lanes,
    limit_asks,
    moved_mail,
    provider_sessions,
    reactions,
    stand_ins,
    tokens,
)
from .connection import Connection, Row
from .group_commit import Tx
from .provider_sessions import NO_SESSION, SessionStart, Told
from .run_limits import Bounds
from .turn_selection import (
    NOTHING,
    Beside,
    ReplyTarget,
    beside,
    first_due,
    next_turn,
    of_turn,
    reply_target,
    turn_taken,
    waiting_notices,
    wants_answer,
)


class Turn(NamedTuple):
    """A run that has been started: its agent, its envelopes, and where its answer goes."""

    run: int
    kind: str  # turn, background
    agent: int
    name: str
    provider: str
    settings: str | None  # of the provider, as JSON
    secrets: str | None  # the file with its secrets
    workspace: str | None
    reply: str
    envelopes: tuple[int, ...]
    notices: tuple[int, ...]  # notices shown in the same turn
    trace: str
    hops: int
    reply_conversation: int | None  # where the final text goes
    reply_message: int | None  # the message that it replies to there
    after_message: int  # the id of the last message when the run began
    conversation: int
    session: str | None  # the provider's session, to be resumed
    beside: Beside = NOTHING  # what it shows beside its envelopes
    session_is_new: bool = False  # hiboss made its id, and no turn is known to have begun it
    session_why_new: str | None = None  # why the one before is not resumed (provider_sessions.TurnSession)
    session_settings: str | None = None  # those of the provider that its session depends on
    session_conversation: int = 0  # whose memory it uses: its own, or where it is answered
    attached: int | None = None  # the open session that takes it

    @property
    def followed_in(self) -> int | None:
        """The conversation whose parties may follow its output; None: only the agent and the boss may.

        The output of an agent that sends its answers itself is not what the others get.
        """
        return self.reply_conversation if self.kind == "turn" and self.reply == "auto" else None

    @property
    def lane(self) -> Lane:
        return Lane(self.agent, None)

    @property
    def told(self) -> Told:
        """Who reports something about the session."""
        return Told(self.run, self.session_settings)

    def answering_in(self, conversation: int | None) -> Turn:
        """Return it with the conversation of its row: another one if its chat has become one with another."""
        return (
            self
            if conversation == self.reply_conversation
            else self._replace(reply_conversation=conversation)
        )


class Start(NamedTuple):
    """What is needed to start a run: its token, time, boot number, limits and session."""

    token: str
    now: int
    boot: int
    bounds: Bounds
    session: SessionStart = SessionStart()
    attached: int | None = None  # the open session that takes the turn


# --- an agent's turn -----------------------------------------------------------------


def begin(tx: Tx, agent: int, start: Start, *, eager: bool = False) -> Turn | None:
    """Start the next turn of an agent; None if there is nothing to do now."""
    now = start.now
    if breaker_holds.is_pulled(tx):
        return None
    row = agents.with_provider(tx, agent) if start.attached is None else agents.attached(tx, agent)
    state = lanes.get(tx, Lane(agent, None))
    if row is None or row["paused_at"] is not None or not _may_start(state, start, eager):
        return None
    found = first_due(tx, agent, state, now)
    if not found:
        return None
    rows = next_turn(tx, row, found, now)
    numbers = [int(one["id"]) for one in rows]
    if len(deleted_envelopes.without_deleted(tx, numbers, now)) < len(rows):  # while they were in hand
        return begin(tx, agent, start, eager=eager)
    conversation = int(rows[0]["conversation"])
    if moved_mail.follow(tx, conversation, agent, numbers, now):  # made, or ended, while they were in hand
        return begin(tx, agent, start, eager=eager)
    leading = next((one for one in rows if wants_answer(agent, one)), rows[0])
    trace, hops = str(leading["trace"]), max(one["hops"] for one in rows)
    if any(limit_asks.pause_over_limit(tx, row, one, start.bounds, now) for one in rows):
        return None
    if state is not None:
        lanes.mark_tried(tx, state, now)
        turn_taken(tx, state)
    target = reply_target(tx, agent, conversation, rows, now)
    place = of_turn(tx, agent, rows)
    shown = [] if rows[0]["attempts"] else waiting_notices(tx, agent, place)
    shown = deleted_envelopes.without_deleted(tx, shown, now) if shown else []
    shows = beside(tx, agent, place, rows, _last_message(tx))
    return _start(tx, row, "turn", conversation, (numbers, shown), (trace, hops), target, start, shows)


def _may_start(state: Row | None, start: Start, eager: bool) -> bool:
    """Tell whether an agent's lane may start a turn. What its provider waits for holds no open session."""
    if start.attached is not None and state is not None:
        return bool(state["state"] != "paused")
    return lanes.may_start(state, start.now, eager=eager)


# --- a task in the background --------------------------------------------------------

# Its run was paused and ended with the daemon. It has no lane that would hold it until it is resumed.
_PAUSED = """
EXISTS (SELECT 1 FROM run_envelope x CROSS JOIN run p ON p.id = x.run
        WHERE x.envelope = e.id AND p.paused_by IS NOT NULL AND p.status <> 'running')
"""


def begin_background(tx: Tx, envelope: int, start: Start) -> Turn | None:
    """Start a task for agent:background as a run of the agent that gave it; None if it cannot start."""
    if breaker_holds.is_pulled(tx):
        return None
    facts = tx.execute(
        f"""
        SELECT e.id, m.id AS message, m.sender, m.conversation, m.hops, ifnull(m.trace, 'm' || m.id) AS trace
        FROM envelope e JOIN message m ON m.id = e.message
        WHERE e.id = ? AND e.status = 0 AND e.waits IS NULL AND e.held_by IS NULL AND NOT {_PAUSED}
        """,
        (envelope,),
    ).fetchone()
    if facts is None or not deleted_envelopes.without_deleted(tx, [envelope], start.now):
        return None
    row = agents.with_provider(tx, facts["sender"], any_mode=True)
    if row is None or row["paused_at"] is not None:
        return None
    if limit_asks.pause_over_limit(tx, row, facts, start.bounds, start.now):
        return None
    target = ReplyTarget(facts["conversation"], facts["message"])
    trace = (str(facts["trace"]), int(facts["hops"]))
    return _start(tx, row, "background", facts["conversation"], ([envelope], []), trace, target, start)


class Tasks(NamedTuple):
    found: list[int]
    more: bool  # those of paused agents are in front, and others may be behind them


def tasks_due(connection: Connection, background: int, limit: int, look_through: int = -1) -> Tasks:
    """Return the due tasks of agent:background, in order; not paused ones, nor those of paused agents.

    `look_through`: of the first so many tasks only, which costs the same whatever waits behind them.
    """
    if breaker_holds.is_pulled(connection):  # none can start: they would be looked for again and again
        return Tasks([], more=False)
    rows = connection.execute(
        f"""
        SELECT e.id, g.address FROM (
            SELECT id, message, priority, arrived FROM envelope INDEXED BY envelope_due
            WHERE recipient = ? AND binding IS NULL AND status = 0 AND arrived IS NOT NULL
              AND waits IS NULL AND held_by IS NULL
            ORDER BY priority, arrived LIMIT ?) e
        CROSS JOIN message m ON m.id = e.message
        LEFT JOIN agent g ON g.address = m.sender AND g.paused_at IS NULL AND g.provider IS NOT NULL
             AND NOT {_PAUSED}
        ORDER BY e.priority, e.arrived
        """,
        (background, look_through),
    )
    found, looked_at = [], 0
    for row in rows:
        looked_at += 1
        if row["address"] is not None:
            found.append(row["id"])
            if len(found) == limit:
                return Tasks(found, more=False)
    return Tasks(found, more=looked_at == look_through)


def _start(
    tx: Tx,
    agent: Row,
    kind: str,
    conversation: int,
    taken: tuple[list[int], list[int]],
    trace: tuple[str, int],  # its id, and the hops
    target: ReplyTarget,
    start: Start,
    shows: Beside = NOTHING,
) -> Turn:
    now, boot = start.now, start.boot
    remembers = _remembers(tx, conversation, target)
    session = NO_SESSION
    if kind == "turn" and start.attached is None:
        session = provider_sessions.begin(tx, agent, remembers, taken[0], start.session, now)
    last = _last_message(tx)
    shown, shown_notices = taken
    columns = (
        *(agent["id"], kind, conversation, agent["provider"], boot, *trace, now, *target, last),
        *(session.id, session.scope, reactions.stored(shows.reactions), start.attached),
    )
    run = _insert(tx, columns, shown + shown_notices, boot, now)
    tokens.insert(tx, start.token, "run", agent["id"], now, run=run)
    turn = Turn(
        run=run,
        kind=kind,
        agent=agent["id"],
        name=agent["name"],
        provider=agent["provider"],
        settings=agent["provider_config"],
        secrets=agent["provider_secrets"],
        workspace=agent["workspace"],
        reply="auto" if kind == "background" else agent["reply"],
        envelopes=tuple(shown),
        notices=tuple(shown_notices),
        trace=trace[0],
        hops=trace[1],
        reply_conversation=target.conversation,
        reply_message=target.message,
        after_message=last,
        conversation=conversation,
        session=session.id,
        beside=shows,
        session_is_new=session.is_new,
        session_why_new=session.why_new,
        session_settings=session.settings,
        session_conversation=remembers,
        attached=start.attached,
    )
    tx.facts += [RunStarted(now, run, turn.agent, turn.followed_in), AgentChanged(now, turn.agent)]
    return turn


def _last_message(tx: Tx) -> int:
    return int(tx.execute("SELECT ifnull(max(id), 0) FROM message").fetchone()[0])


def _insert(tx: Tx, columns: tuple[Any, ...], numbers: list[int], boot: int, now: int) -> int:
    """Write the run, and hold its envelopes."""
    cursor = tx.execute(
        """
        INSERT INTO run (agent, kind, conversation, status, provider, boot, trace, hops, started_at,
                         reply_conversation, reply_message, after_message, session, session_scope, reactions,
                         attached)
        VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        columns,
    )
    run = int(cursor.lastrowid or 0)
    for number in numbers:
        envelopes.hold(tx, number, boot, now)
        tx.execute("INSERT INTO run_envelope (run, envelope) VALUES (?, ?)", (run, number))
    return run


def _remembers(tx: Tx, conversation: int, target: ReplyTarget) -> int:
    """Return the conversation whose memory a turn uses: where it is answered, if anywhere.

    So an agent remembers what it wanted to know when the answer of another one comes. A summary it writes
    from what it knows of the conversation itself.
    """
    if target.conversation is None or stand_ins.is_summary(tx, target.message):
        return conversation
    return target.conversation


def answers_in(connection: Connection, turn: Turn) -> Turn:
    """Return a turn with the conversation that it answers in now."""
    row = connection.execute("SELECT reply_conversation FROM run WHERE id = ?", (turn.run,)).fetchone()
    return turn.answering_in(row["reply_conversation"])


def note_process(tx: Tx, run: int, pid: int, started: str | None) -> None:
    tx.execute("UPDATE run SET pid = ?, pid_started = ? WHERE id = ?", (pid, started, run))
