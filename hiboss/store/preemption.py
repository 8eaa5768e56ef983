"""Set a run aside for an envelope that cannot wait: whether it may be, and all that is written for it.

A run that works on its turn can be set aside if its messages allow it (`interruptible`), and the busy policy
of its agent: with `end-of-turn` nothing that arrives is a reason. With `steer`, what people write there
reaches the turn, or waits. The envelopes of the run are due again when it has ended, and have not failed.
What it was set aside for is the next turn of its agent (`lane.next_envelope`): also if something else came
earlier, or has waited for long. Its processes are ended
after COMMIT (hiboss/agents/preemption.py). What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.address import BOSS, SYSTEM
from ..core.envelope import Kind, Lane, Priority
from . import agents, controls, envelopes, lanes, notices, run_cancels
from .connection import Connection, Row
from .controls import Control
from .group_commit import Tx
from .lane_index import BINDING, PLACE

LOOKED_THROUGH = 100  # the newest messages of a conversation among which a person's is searched
# So often is an envelope set aside for critical mail of agents: else they could keep it from its end.
LIMIT = 3


class Found(NamedTuple):
    """An envelope, and the run that is to be set aside for it."""

    run: int
    agent: int
    envelope: int
    message: int
    sender: int  # of the message
    conversation: int
    critical: bool  # it is critical; else a person wrote it where the run works
    started_at: int  # the run
    ends: bool = True  # the run ends for it; else it is given to the run, or waits


# --- whether something that came is a reason -----------------------------------------


def find(connection: Connection | Tx, agent: int, now: int) -> Found | None:
    """Return the envelope for which the running turn of an agent is to be set aside; None: there is none.

    Critical mail is one, unless the run works on critical mail itself; that of agents, unless what it works
    on was set aside for such mail often enough. What a person wrote in the conversation of the run since it
    began is one for an agent with the busy policy `interrupt`; with `steer` the run does not end for that.
    """
    run = running(connection, agent)
    if run is None or run["busy"] == "end-of-turn" or why_not(run) is not None:
        return None
    if not may_begin(connection, agent, now):
        return None
    row, critical = None, run["priority"] != Priority.CRITICAL
    if critical:
        row = _critical(connection, agent, run["id"])
    if row is None and run["busy"] in ("interrupt", "steer"):
        row, critical = next(iter(said_by_people(connection, agent, run)), None), False
    if row is None:
        return None
    known = (row["id"], row["message"], row["sender"], row["conversation"])
    ends = critical or run["busy"] == "interrupt"
    return Found(run["id"], agent, *known, critical, run["started_at"], ends)


def running(connection: Connection | Tx, agent: int) -> Row | None:
    """Return the turn that an agent works on now, with what decides whether it can be set aside."""
    row: Row | None = connection.execute(_RUNNING, (agent,)).fetchone()
    return row


# `priority`: of the most urgent of its envelopes. `kept`: one whose sender wants no interruption.
_RUNNING = """
    SELECT r.id, r.conversation, r.reply_conversation, r.after_message, r.started_at, r.paused_at, r.ends_as,
           g.busy, min(e.priority) AS priority, min(iif(m.interruptible, NULL, e.id)) AS kept
    FROM run r INDEXED BY run_running
    JOIN agent g ON g.address = r.agent
    JOIN run_envelope x ON x.run = r.id JOIN envelope e ON e.id = x.envelope
    JOIN message m ON m.id = e.message
    WHERE r.status = 'running' AND r.agent = ? AND r.kind = 'turn' AND r.attached IS NULL GROUP BY r.id
"""


def _critical(connection: Connection | Tx, agent: int, run: int) -> Row | None:
    """Return the critical mail of an agent for which its run is set aside: the first that came.

    It is searched among the oldest that wait, then among the newest: it must not cost more if many wait.
    """
    agents_too = not _at_limit(connection, run)
    for order in ("ASC", "DESC"):
        query = _CRITICAL.format(order=order)
        row: Row | None = connection.execute(query, (agent, run, agents_too)).fetchone()
        if row is not None:
            return row
    return None


# Of an address `s`: whether it is an agent, and not hiboss itself.
_IS_AGENT = f"(s.kind = 'agent' AND s.fold <> '{SYSTEM.fold}')"
# Not what the agent sent to itself: it could set itself aside without an end. Nor what was set aside for
# this run.
_CRITICAL = f"""
    SELECT e.id, e.message, m.sender, m.conversation
    FROM (SELECT id, message, arrived, preempted_by FROM envelope INDEXED BY envelope_due
          WHERE recipient = ?1 AND binding IS NULL AND priority = {Priority.CRITICAL:d} AND status = 0
            AND arrived IS NOT NULL AND waits IS NULL AND held_by IS NULL
          ORDER BY arrived {{order}} LIMIT {LOOKED_THROUGH}) e
    JOIN message m ON m.id = e.message JOIN address s ON s.id = m.sender
    WHERE m.deleted_at IS NULL AND m.type <> {Kind.EVENT:d} AND m.sender <> ?1
      AND (?3 OR NOT {_IS_AGENT})
      AND (e.preempted_by IS NULL OR NOT EXISTS (
          SELECT 1 FROM run_envelope x JOIN envelope y ON y.id = x.envelope
          WHERE x.run = ?2 AND y.message = e.preempted_by))
    ORDER BY e.arrived LIMIT 1
"""


def _at_limit(connection: Connection | Tx, run: int) -> bool:
    """Tell whether an envelope of a run was set aside for critical mail of agents often enough."""
    rows = connection.execute("SELECT envelope FROM run_envelope WHERE run = ?", (run,)).fetchall()
    return any(_times(connection, row["envelope"]) >= LIMIT for row in rows)


def _times(connection: Connection | Tx, envelope: int) -> int:
    """Return how often an envelope was set aside for mail of agents. Nobody ordered that (`cancelled_by`)."""
    row = connection.execute(
        f"""
        SELECT count(*) FROM (
            SELECT 1 FROM run_envelope x INDEXED BY run_envelope_envelope JOIN run r ON r.id = x.run
            JOIN message m ON m.id = r.preempted_by JOIN address s ON s.id = m.sender
            WHERE x.envelope = ? AND r.ends_as = 'preempted' AND r.cancelled_by IS NULL AND {_IS_AGENT}
            LIMIT {LIMIT + 1})
        """,
        (envelope,),
    ).fetchone()
    return int(row[0])


def said_by_people(connection: Connection | Tx, agent: int, run: Row) -> list[Row]:
    """Return what people have said since a run began, newest first: where it works, else where it answers."""
    for conversation in dict.fromkeys((run["conversation"], run["reply_conversation"])):
        since = (conversation, run["after_message"], agent)
        if rows := connection.execute(_OF_PEOPLE, since).fetchall():
            return rows
    return []


_OF_PEOPLE = f"""
    SELECT e.id, e.message, m.sender, m.conversation
    FROM (SELECT id, sender, conversation, auto, context, type, deleted_at
          FROM message INDEXED BY message_seq WHERE conversation = ?1 AND seq IS NOT NULL
          ORDER BY seq DESC LIMIT {LOOKED_THROUGH}) m
    CROSS JOIN envelope e INDEXED BY envelope_message ON e.message = m.id AND e.recipient = ?3
    JOIN address s ON s.id = m.sender
    WHERE m.id > ?2 AND s.kind IN ('user', 'channel') AND NOT m.auto AND NOT m.context
      AND m.deleted_at IS NULL AND m.type <> {Kind.EVENT:d}
      AND e.status = 0 AND e.arrived IS NOT NULL AND e.waits IS NULL AND e.held_by IS NULL
      AND NOT EXISTS (SELECT 1 FROM ask k INDEXED BY ask_reply WHERE k.reply = m.id)  -- it waits for that
    ORDER BY m.id DESC
"""


def why_not(run: Row) -> str | None:
    """Return why a run cannot be set aside; None: it can."""
    if run["ends_as"] is not None:
        return f"r{run['id']} is ending already"
    if run["paused_at"] is not None:
        return f"r{run['id']} is paused; resume it first, or cancel it"
    if run["kept"] is not None:
        return f"r{run['id']} works on e{run['kept']}, whose sender wants no interruption"
    return None


def may_begin(connection: Connection | Tx, agent: int, now: int) -> bool:
    """Tell whether the next turn of an agent could begin if its run ended now."""
    row = agents.with_provider(connection, agent)
    state = lanes.get(connection, Lane(agent, None))
    return row is not None and row["paused_at"] is None and lanes.may_start(state, now, eager=True)


# --- set it aside --------------------------------------------------------------------


def for_news(tx: Tx, agent: int, now: int) -> Found | None:
    """Set the run of an agent aside for what has come, if there is a reason; return what was done.

    That is a control of agent:system.
    """
    found = find(tx, agent, now)
    if found is None or not found.ends:
        return None
    what = f"e{found.envelope}"
    reason = f"{what} is critical" if found.critical else f"{what} was written by a person while it worked"
    if not set_aside(tx, found.run, found.envelope, f"set aside: {reason}", None):
        return None
    system = (tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)).id
    about = (agent, found.run, None, found.envelope)
    controls.record(tx, Control("preempt", system, *about, reason=reason), controls.APPLIED, None, now)
    if found.critical:
        _tell_of_limit(tx, found, now)
    return found


def _tell_of_limit(tx: Tx, found: Found, now: int) -> None:
    """Tell the boss of what was set aside now so often that mail of agents does it no more: once for each."""
    held = tx.execute("SELECT envelope FROM run_envelope WHERE run = ?", (found.run,)).fetchall()
    numbers = [f"e{row['envelope']}" for row in held if _times(tx, row["envelope"]) == LIMIT]
    query = f"SELECT name, {_IS_AGENT} AS is_agent FROM address s WHERE id = ?"
    agent, sender = (tx.execute(query, (one,)).fetchone() for one in (found.agent, found.sender))
    if not numbers or not sender["is_agent"]:
        return
    text = (
        f"Critical mail of agents has set aside what agent:{agent['name']} works on {LIMIT} times:"
        f" {', '.join(numbers)}. The last was e{found.envelope} of agent:{sender['name']}. From now on such"
        f" mail waits until that work is done; mail of people does not.\n"
        f"To look at it: hiboss control list --agent {agent['name']}"
    )
    notices.notify(tx, BOSS, text, now, about=found.message)


def set_aside(tx: Tx, run: int, envelope: int, why: str, by: int | None) -> bool:
    """Store that a run ends for an envelope, which is the next turn; return False if it is ending already.

    `by`: the address id of who wants it.
    """
    row = tx.execute("SELECT message, recipient FROM envelope WHERE id = ?", (envelope,)).fetchone()
    if not run_cancels.note(tx, run, why, by, run_cancels.PREEMPTED, preempted_by=row["message"]):
        return False
    held = tx.execute("SELECT envelope FROM run_envelope WHERE run = ?", (run,)).fetchall()
    envelopes.set_aside(tx, [one["envelope"] for one in held], row["message"])
    envelopes.put_first(tx, envelope)
    tx.execute(
        f"""
        INSERT INTO lane (address, next_envelope) VALUES (?1, ?2)
        ON CONFLICT ({PLACE}, {BINDING}) DO UPDATE SET next_envelope = ?2
        """,
        (row["recipient"], envelope),
    )
    return True
