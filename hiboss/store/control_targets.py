"""What a control is about: an agent, a run, a conversation or an envelope; and what works there now."""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import NotFound
from .connection import Connection, Row
from .group_commit import Tx
from .lane_index import BINDING, PLACE


class Target(NamedTuple):
    """What a control is about, as it is in this transaction."""

    agent: int | None = None  # the address id of the agent concerned; None: there is none
    run: Row | None = None  # the run that was named, also if it has ended
    conversation: int | None = None  # the one that was named
    envelope: Row | None = None  # the one that was named
    runs: tuple[Row, ...] = ()  # that work there now; those of an agent also in the background
    held: tuple[Row, ...] = ()  # that have ended in a pause: what they worked on waits for the resume


_RUN = """
SELECT r.*, a.name AS agent_name, CASE WHEN r.kind = 'turn' AND g.reply = 'auto' THEN r.reply_conversation END
       AS followed_in
FROM run r {index} JOIN address a ON a.id = r.agent JOIN agent g ON g.address = r.agent
"""
_RUNNING = _RUN.format(index="INDEXED BY run_running") + " WHERE r.status = 'running' AND "
# Either its lane is paused because of it, or nothing has begun with its envelopes since.
_HELD = f"""
{_RUN.format(index="INDEXED BY run_paused")}
WHERE r.paused_by IS NOT NULL AND r.status <> 'running' AND (
    EXISTS (SELECT 1 FROM lane l WHERE {PLACE} = r.agent AND {BINDING} = 0 AND l.paused_run = r.id)
    OR EXISTS (
        SELECT 1 FROM run_envelope x JOIN envelope e ON e.id = x.envelope
        WHERE x.run = r.id AND e.status = 0 AND e.held_by IS NULL AND NOT EXISTS (
            SELECT 1 FROM run_envelope y WHERE y.envelope = x.envelope AND y.run > x.run)))
  AND """
_WORKS_ON = "EXISTS (SELECT 1 FROM run_envelope x WHERE x.run = r.id AND x.envelope = ?)"
WORKS_IN = "? IN (r.conversation, r.reply_conversation)"


def find(
    connection: Connection | Tx,
    *,
    agent: int | None = None,
    run: int | None = None,
    conversation: int | None = None,
    envelope: int | None = None,
) -> Target:
    """Return what is meant, with the runs that work there now; raise NotFound for an unknown id.

    An envelope beside another target says which one is meant there; alone it stands for the run that works
    on it. An agent beside a conversation says whose mail there is meant.
    """
    meant = None if envelope is None else _envelope(connection, envelope)
    if run is not None:
        row = _run(connection, run)
        return Target(
            *(row["agent"], row, None, meant),
            runs=(row,) if row["status"] == "running" else (),
            held=held(connection, "r.id = ?", run),
        )
    if agent is not None and conversation is not None:
        return _in_conversation(connection, conversation, meant)._replace(agent=agent)
    if agent is not None:
        found, ended = (get(connection, "r.agent = ?", agent) for get in (_running, held))
        return Target(agent, None, None, meant, found, ended)
    if conversation is not None:
        return _in_conversation(connection, conversation, meant)
    assert meant is not None
    found, ended = (get(connection, _WORKS_ON, meant["id"]) for get in (_running, held))
    concerned = (*found, *ended)[0]["agent"] if found or ended else meant["agent"]
    return Target(concerned, None, None, meant, found, ended)


def _run(connection: Connection | Tx, number: int) -> Row:
    row: Row | None = connection.execute(f"{_RUN.format(index='')} WHERE r.id = ?", (number,)).fetchone()
    if row is None:
        raise NotFound(what="run", value=f"r{number}", where="hiboss run list")
    return row


def _running(connection: Connection | Tx, which: str, *values: int) -> tuple[Row, ...]:
    return tuple(connection.execute(f"{_RUNNING} {which} ORDER BY r.id", values).fetchall())


def held(connection: Connection | Tx, which: str, *values: int) -> tuple[Row, ...]:
    """Return the runs that have ended in a pause, and whose work waits until somebody resumes it."""
    return tuple(connection.execute(f"{_HELD} {which} ORDER BY r.id", values).fetchall())


def _in_conversation(connection: Connection | Tx, number: int, envelope: Row | None) -> Target:
    """Return the runs that work on mail of a conversation, or answer there.

    The agent concerned is the one that works, else the one that is a party.
    """
    if connection.execute("SELECT 1 FROM conversation WHERE id = ?", (number,)).fetchone() is None:
        raise NotFound(what="conversation", value=f"c{number}")
    found, ended = (get(connection, WORKS_IN, number) for get in (_running, held))
    row = connection.execute(
        """
        SELECT g.address FROM participant p JOIN agent g ON g.address = p.address AND g.deleted_at IS NULL
        WHERE p.conversation = ? AND p.left_seq IS NULL AND p.role <> 'guest'
        ORDER BY g.mode <> 'run', g.address LIMIT 1
        """,
        (number,),
    ).fetchone()
    working = [one["agent"] for one in (*found, *ended)]
    agent = working[0] if working else None if row is None else row["address"]
    return Target(agent, None, number, envelope, found, ended)


def _envelope(connection: Connection | Tx, number: int) -> Row:
    """Return an envelope with the agent concerned: who gets it, else who sent it."""
    row: Row | None = connection.execute(
        """
        SELECT e.*, m.sender, m.conversation,
               coalesce((SELECT g.address FROM agent g WHERE g.address = e.recipient),
                        (SELECT g.address FROM agent g WHERE g.address = m.sender)) AS agent
        FROM envelope e JOIN message m ON m.id = e.message WHERE e.id = ?
        """,
        (number,),
    ).fetchone()
    if row is None:
        raise NotFound(what="envelope", value=f"e{number}")
    return row
