"""What a control is about: an agent, a run, a conversation or an envelope; and what works there now."""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import NotFound
from .connection import Connection, Row
from .group_commit import Tx


class Target(NamedTuple):
    """What a control is about, as it is in this transaction."""

    agent: int | None = None  # the address id of the agent concerned; None: there is none
    run: Row | None = None  # the run that was named, also if it has ended
    conversation: int | None = None  # the one that was named
    envelope: Row | None = None  # the one that was named
    runs: tuple[Row, ...] = ()  # that work there now; those of an agent also in the background


_RUN = """
SELECT r.*, a.name AS agent_name, CASE WHEN r.kind = 'turn' AND g.reply = 'auto' THEN r.reply_conversation END
       AS followed_in
FROM run r {index} JOIN address a ON a.id = r.agent JOIN agent g ON g.address = r.agent
"""
_RUNNING = _RUN.format(index="INDEXED BY run_running") + " WHERE r.status = 'running' AND "


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
        return Target(row["agent"], row, None, meant, (row,) if row["status"] == "running" else ())
    if agent is not None and conversation is not None:
        return _in_conversation(connection, conversation, meant)._replace(agent=agent)
    if agent is not None:
        return Target(agent, None, None, meant, _running(connection, "r.agent = ?", agent))
    if conversation is not None:
        return _in_conversation(connection, conversation, meant)
    assert meant is not None
    works = "EXISTS (SELECT 1 FROM run_envelope x WHERE x.run = r.id AND x.envelope = ?)"
    found = _running(connection, works, meant["id"])
    concerned = found[0]["agent"] if found else meant["agent"]
    return Target(concerned, None, None, meant, found)


def _run(connection: Connection | Tx, number: int) -> Row:
    row: Row | None = connection.execute(f"{_RUN.format(index='')} WHERE r.id = ?", (number,)).fetchone()
    if row is None:
        raise NotFound(what="run", value=f"r{number}", where="hiboss run list")
    return row


def _running(connection: Connection | Tx, which: str, *values: int) -> tuple[Row, ...]:
    return tuple(connection.execute(f"{_RUNNING} {which} ORDER BY r.id", values).fetchall())


def _in_conversation(connection: Connection | Tx, number: int, envelope: Row | None) -> Target:
    """Return the runs that work on mail of a conversation, or answer there.

    The agent concerned is the one that works, else the one that is a party.
    """
    if connection.execute("SELECT 1 FROM conversation WHERE id = ?", (number,)).fetchone() is None:
        raise NotFound(what="conversation", value=f"c{number}")
    found = _running(connection, "? IN (r.conversation, r.reply_conversation)", number)
    row = connection.execute(
        """
        SELECT g.address FROM participant p JOIN agent g ON g.address = p.address AND g.deleted_at IS NULL
        WHERE p.conversation = ? AND p.left_seq IS NULL AND p.role <> 'guest'
        ORDER BY g.mode <> 'run', g.address LIMIT 1
        """,
        (number,),
    ).fetchone()
    agent = found[0]["agent"] if found else None if row is None else row["address"]
    return Target(agent, None, number, envelope, found)


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
