"""Attached sessions: harnesses that are open in a terminal as an agent, as their hooks report them.

Which agent a session is: the one that a person named; else the one that this session was before (a resumed
one), or that this process was (after /clear); else one that sessions in the same directory were, if none of
them is open now; else a new one, named after the directory. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from typing import Any, NamedTuple

from ..core.address import RESERVED
from ..core.errors import CannotAttach
from ..core.events import AgentChanged
from . import addresses, agents, tokens
from .connection import Connection, Row
from .group_commit import Tx

NAME_CHARACTERS = 48  # of a name that is made from a directory, before a number is added
MOST_NUMBER = 1_000  # of agents that are named after one directory

_SELECT = """
SELECT s.*, a.name FROM attached_session s JOIN address a ON a.id = s.agent
"""


class Arrival(NamedTuple):
    """What the start hook of a harness reports."""

    client: str  # claude, codex
    session: str  # the harness's own id
    pid: int  # of the harness
    pid_started: str
    directory: str  # where it was opened
    named: str | None = None  # the agent that a person named
    details: dict[str, Any] = {}  # how its doors are found  # noqa: RUF012
    again: bool = False  # it did not start just now: a hook of one of its turns found that it is not attached


class Attached(NamedTuple):
    """A session that is attached now."""

    id: int
    agent: int
    name: str
    token: str | None  # a new one; None: the one that it has is still valid
    is_new_agent: bool


def attach(tx: Tx, arrival: Arrival, token: str, has: str, now: int) -> Attached:
    """Attach a session, or go on with one that is attached. `token`: for it, if what it `has` is not valid.

    It keeps its agent over resume, restart, /clear and compaction.
    """
    known = _known(tx, arrival)
    if arrival.again and known is not None and known["ended_why"] == "detached":
        raise CannotAttach(why="it was detached (hiboss agent detach), until its next start")
    _end_closed(tx, arrival, now)
    agent = _agent(tx, arrival, known)
    is_new = agent is None
    if agent is None:
        agent = _register(tx, arrival, now)
    row = known if known is not None and known["agent"] == agent else None
    if known is not None and row is None:  # the same session under another agent
        end(tx, known["id"], "closed", now)
        tx.execute(
            "UPDATE attached_session SET session = 'was ' || id || ' ' || session WHERE id = ?",
            (known["id"],),
        )
    number = _insert(tx, arrival, agent, now) if row is None else _again(tx, arrival, row, now)
    valid = tokens.find(tx, tokens.digest(has)) if has else None
    keeps = valid is not None and valid["attached"] == number
    if not keeps:
        _end_tokens(tx, number, now)
        tokens.insert(tx, token, "agent", agent, now, attached=number)
    tx.facts.append(AgentChanged(now, agent))
    tx.arrived_for.append(agent)
    name = str(get(tx, number)["name"])
    return Attached(number, agent, name, None if keeps else token, is_new)


def _known(tx: Tx, arrival: Arrival) -> Row | None:
    """Return what is stored of this session, or of this process before it had another session (/clear)."""
    row: Row | None = tx.execute(
        f"{_SELECT} WHERE s.client = ? AND s.session = ?", (arrival.client, arrival.session)
    ).fetchone()
    if row is None and not arrival.details.get("shared_process"):
        row = tx.execute(
            f"{_SELECT} WHERE s.ended_at IS NULL AND s.client = ? AND s.pid = ? AND s.pid_started = ?",
            (arrival.client, arrival.pid, arrival.pid_started),
        ).fetchone()
    return row


def _end_closed(tx: Tx, arrival: Arrival, now: int) -> None:
    """End sessions in the same directory whose terminals were closed, where one process has many sessions.

    Only how many terminals are open there is known: so those that did nothing for the longest time.
    """
    terminals = arrival.details.get("terminals")
    if not isinstance(terminals, int) or not arrival.details.get("shared_process"):
        return
    rows = tx.execute(
        f"""
        {_SELECT} WHERE s.ended_at IS NULL AND s.client = ? AND s.pid = ? AND s.directory = ?
          AND s.session <> ? ORDER BY s.since DESC, s.id DESC
        """,
        (arrival.client, arrival.pid, arrival.directory, arrival.session),
    ).fetchall()
    for row in rows[max(0, terminals - 1) :]:
        if row["state"] == "idle" and _has_no_turn(tx, row["id"]):
            end(tx, row["id"], "closed", now)


def _has_no_turn(tx: Tx, number: int) -> bool:
    query = "SELECT 1 FROM run INDEXED BY run_attached WHERE attached = ? AND status = 'running'"
    return tx.execute(query, (number,)).fetchone() is None


def _agent(tx: Tx, arrival: Arrival, known: Row | None) -> int | None:
    if arrival.named is not None:
        row = agents.get(tx, arrival.named)  # raises UnknownAgent
        _check_may_attach(row)
        return int(row["id"])
    before = None if known is None else agents.by_id(tx, known["agent"])
    if before is not None:
        _check_may_attach(before)
        return int(before["id"])
    if known is not None and known["ended_why"] == "deleted" and known["ended_at"] is not None:
        raise CannotAttach(why="its agent was deleted; open a new session")
    found = tx.execute(
        """
        SELECT s.agent FROM attached_session s INDEXED BY attached_session_place
        JOIN agent g ON g.address = s.agent AND g.deleted_at IS NULL
        WHERE s.client = ? AND s.directory = ? AND s.named = 0 AND NOT EXISTS (
            SELECT 1 FROM attached_session o INDEXED BY attached_session_agent
            WHERE o.agent = s.agent AND o.ended_at IS NULL)
          AND ifnull(g.paused_kind, '') <> 'tokens'
        ORDER BY s.agent LIMIT 1
        """,
        (arrival.client, arrival.directory),
    ).fetchone()
    return None if found is None else int(found["agent"])


def _check_may_attach(row: Row) -> None:
    """Raise for an agent whose tokens were revoked: a session must not get it a new one."""
    if row["paused_kind"] == "tokens":
        raise CannotAttach(why=f"the tokens of {row['name']} were revoked")


def _register(tx: Tx, arrival: Arrival, now: int) -> int:
    """Register an agent for a session, named after its directory."""
    base = agent_name(os.path.basename(arrival.directory)) or arrival.client
    harness = {"claude": "Claude Code", "codex": "Codex"}[arrival.client]
    fields = {
        "mode": "pull",
        "workspace": arrival.directory,
        "description": f"{harness}, open in a terminal",
    }
    for number in range(1, MOST_NUMBER):
        name = base if number == 1 and base.lower() not in RESERVED else f"{base}-{max(number, 2)}"
        if addresses.is_free(tx, name):
            return agents.register(tx, name, fields, now)
    raise CannotAttach(why=f"there are {MOST_NUMBER} agents that are named {base}")


def agent_name(directory: str) -> str:
    """Return a name for an agent made from that of a directory; an empty text if nothing of it is left."""
    plain = unicodedata.normalize("NFKD", directory).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")[:NAME_CHARACTERS].strip("-")


def _insert(tx: Tx, arrival: Arrival, agent: int, now: int) -> int:
    cursor = tx.execute(
        """
        INSERT INTO attached_session (agent, client, session, named, pid, pid_started, directory, since,
                                      started_at, details, state, of_person)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            agent,
            arrival.client,
            arrival.session,
            arrival.named is not None,
            arrival.pid,
            arrival.pid_started,
            arrival.directory,
            now,
            now,
            json.dumps(arrival.details),
            *_state(arrival),
        ),
    )
    return int(cursor.lastrowid or 0)


def _state(arrival: Arrival) -> tuple[str, bool]:
    """Return what a session does that is attached now, and whether that is of its person.

    One that is attached in a turn gets no mail before its end: the mail would join the words of its person.
    """
    return ("busy", True) if arrival.again else ("idle", False)


def _again(tx: Tx, arrival: Arrival, row: Row, now: int) -> int:
    """Note that a session which is known was opened again, cleared or compacted."""
    same = row["ended_at"] is None and (row["pid"], row["pid_started"]) == (arrival.pid, arrival.pid_started)
    tx.execute(
        """
        UPDATE attached_session SET session = ?1, pid = ?2, pid_started = ?3, details = ?4, ended_at = NULL,
               ended_why = NULL, state = iif(?5, state, ?8), since = iif(?5, since, ?6),
               of_person = iif(?5, of_person, ?9), started_at = iif(?5, started_at, ?6)
        WHERE id = ?7
        """,
        (
            arrival.session,
            arrival.pid,
            arrival.pid_started,
            json.dumps(arrival.details),
            same,
            now,
            row["id"],
            *_state(arrival),
        ),
    )
    return int(row["id"])


# --- while it is open ----------------------------------------------------------------


def get(connection: Connection | Tx, number: int) -> Row:
    """Return a session by its number."""
    row: Row = connection.execute(f"{_SELECT} WHERE s.id = ?", (number,)).fetchone()
    return row


def open_ones(connection: Connection | Tx, agent: int | None = None) -> list[Row]:
    """Return the sessions that are open, of one agent or of all, the oldest first."""
    if agent is not None:
        return connection.execute(
            f"{_SELECT} WHERE s.agent = ? AND s.ended_at IS NULL ORDER BY s.id", (agent,)
        ).fetchall()
    return connection.execute(f"{_SELECT} WHERE s.ended_at IS NULL ORDER BY s.id").fetchall()


def was_attached(connection: Connection | Tx, agent: int) -> bool:
    """Tell whether an agent waits for a session: it had one, and nobody detached the last one."""
    row = connection.execute(
        """
        SELECT ended_why FROM attached_session WHERE agent = ?
        ORDER BY ended_at IS NULL DESC, ended_at DESC, id DESC LIMIT 1
        """,
        (agent,),
    ).fetchone()
    return row is not None and row["ended_why"] != "detached"


def note_state(tx: Tx, number: int, state: str, of_person: bool, event: str | None, now: int) -> None:
    """Store what a session does now, and which report said so."""
    row = tx.execute(
        """
        UPDATE attached_session SET since = iif(state = ?2, since, ?5), state = ?2, of_person = ?3,
               last_event = ifnull(?4, last_event) WHERE id = ?1 RETURNING agent
        """,
        (number, state, of_person, event, now),
    ).fetchone()
    tx.facts.append(AgentChanged(now, row["agent"]))


def ended_lately(connection: Connection | Tx) -> list[tuple[int, str]]:
    """Return the processes of sessions that ended while their process perhaps went on."""
    rows = connection.execute(
        "SELECT pid, pid_started FROM attached_session WHERE ended_why <> 'gone' ORDER BY id DESC LIMIT 1000"
    ).fetchall()
    return [(int(row["pid"]), str(row["pid_started"])) for row in rows]


def detach_last(tx: Tx, agent: int) -> None:
    """Note of an agent without an open session that it waits for none any more."""
    tx.execute(
        """
        UPDATE attached_session SET ended_why = 'detached' WHERE id = (
            SELECT id FROM attached_session WHERE agent = ? AND ended_at IS NOT NULL
            ORDER BY ended_at DESC, id DESC LIMIT 1)
        """,
        (agent,),
    )
    tx.arrived_for.append(agent)


def end(tx: Tx, number: int, why: str, now: int, *, pid: int | None = None) -> bool:
    """Note that a session is over; False if it was before. Its token ends with it.

    `pid`: only if this is still its process.
    """
    row = tx.execute(
        """
        UPDATE attached_session SET ended_at = ?1, ended_why = ?2, state = 'idle', of_person = 0, since = ?1
        WHERE id = ?3 AND ended_at IS NULL AND (?4 IS NULL OR pid = ?4) RETURNING agent
        """,
        (now, why, number, pid),
    ).fetchone()
    if row is None:
        return False
    _end_tokens(tx, number, now)
    tx.facts.append(AgentChanged(now, row["agent"]))
    tx.arrived_for.append(row["agent"])
    return True


def end_of_agent(tx: Tx, agent: int, now: int) -> None:
    """End the sessions of an agent that is deleted."""
    for row in open_ones(tx, agent):
        end(tx, row["id"], "deleted", now)


def _end_tokens(tx: Tx, number: int, now: int) -> None:
    tx.execute("UPDATE token SET revoked_at = ? WHERE attached = ? AND revoked_at IS NULL", (now, number))
