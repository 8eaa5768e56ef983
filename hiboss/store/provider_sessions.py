"""Sessions: a provider's own memory, resumed from turn to turn.

The last one is stored for each agent, provider and scope (session_scopes.py). Only turns use it: a task in
the background runs beside them, and two runs in one session would lose what one of them said. A run keeps
what it reports under `run.session_scope`. That becomes NULL when the session is ended from outside: then the
run goes on in it, and the next turn begins another one. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from . import ask_rules, session_scopes
from .connection import Connection, Row
from .group_commit import Tx
from .session_policy import BY_POLICY, CHANGED, LOST, REFRESHED, why_not_resumed


class SessionKind(NamedTuple):
    """What the sessions of a provider are like."""

    own_ids: bool = False  # hiboss makes their ids
    settings: frozenset[str] = frozenset()  # of the provider; a session is not resumed with others


class SessionStart(NamedTuple):
    """What is needed to find or begin the session of a turn."""

    new_id: str = ""  # for a new session, if hiboss makes the id
    kinds: Mapping[str, SessionKind] = MappingProxyType({})  # by provider


class TurnSession(NamedTuple):
    """The session of a turn."""

    id: str | None = None  # to be resumed; None: the provider begins one, if it has any
    is_new: bool = False  # hiboss made the id, and no turn is known to have begun it
    scope: str | None = None  # where it is kept
    settings: str | None = None  # those that it depends on
    why_new: str | None = None  # why the one before is not resumed (session_policy); None: it is, or was none


NO_SESSION = TurnSession()


def new_id() -> str:
    """Return an id for a session that hiboss makes."""
    return str(uuid.uuid4())


# --- of a turn -----------------------------------------------------------------------


def begin(
    tx: Tx, agent: Row, conversation: int, envelopes: Sequence[int], start: SessionStart, now: int
) -> TurnSession:
    """Return the session of a turn that begins; a new one whose id hiboss makes is stored before it is used.

    A turn that was interrupted goes on where it was, whatever the policy says: else it would do again what it
    has done.
    """
    kind = start.kinds.get(agent["provider"], SessionKind())
    settings = session_settings(agent["provider_config"], kind)
    scope = session_scopes.key(tx, agent, conversation)
    of = (agent["id"], agent["provider"], scope)
    row = _row(tx, *of)
    why = None if row is None else why_not_resumed(tx, row, agent, settings, now)
    if why in BY_POLICY and row is not None and row["stale_at"] is None:
        why = None if _interrupted(tx, envelopes, row["session"]) else why
    if row is not None and why is None:
        tx.execute(
            # A beginning in the future: the clock was set back since.
            f"UPDATE provider_session SET used_at = ?4, begun_at = min(begun_at, ?4) {_OF}",
            (*of, now),
        )
        return TurnSession(row["session"], row["begun_at"] is None, scope, settings, row["stale_why"])
    if row is not None and row["stale_at"] is None:
        tx.execute(f"UPDATE provider_session SET stale_at = ?4, stale_why = ?5 {_OF}", (*of, now, why))
        ask_rules.end_of_sessions(tx, agent["id"], now)
    if not kind.own_ids:
        return TurnSession(None, False, scope, settings, why)
    _put_own(tx, of, start.new_id, settings, why, now)
    return TurnSession(start.new_id, True, scope, settings, why)


def session_settings(config: str | None, kind: SessionKind) -> str | None:
    """Return those settings of a provider, of all as JSON, that its sessions depend on."""
    given = json.loads(config) if config and kind.settings else {}
    found = {name: given[name] for name in sorted(kind.settings) if name in given}
    return json.dumps(found) if found else None


_OF = "WHERE agent = ?1 AND provider = ?2 AND scope = ?3"


def _row(connection: Connection | Tx, agent: int, provider: str, scope: str) -> Row | None:
    row: Row | None = connection.execute(
        f"SELECT * FROM provider_session {_OF}", (agent, provider, scope)
    ).fetchone()
    return row


def _interrupted(tx: Tx, envelopes: Sequence[int], session: str) -> bool:
    """Tell whether a turn with one of these envelopes ended in the midst of this session."""
    row = tx.execute(
        f"""
        SELECT 1 FROM run_envelope x INDEXED BY run_envelope_envelope JOIN run r ON r.id = x.run
        WHERE x.envelope IN ({",".join("?" * len(envelopes))}) AND r.status = 'interrupted' AND r.session = ?
        """,
        (*envelopes, session),
    ).fetchone()
    return row is not None


def _put_own(
    tx: Tx, of: tuple[int, str, str], session: str, settings: str | None, why: str | None, now: int
) -> None:
    """Store an id that hiboss made, in the place of the session before."""
    tx.execute(
        """
        INSERT OR REPLACE INTO provider_session
            (agent, provider, scope, session, used_at, settings, stale_why)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        (*of, session, now, settings, why),
    )


# --- of a run under way --------------------------------------------------------------


class Told(NamedTuple):
    """Which run reports something about its session, and with which settings it began."""

    run: int
    settings: str | None  # of its provider, those that a session depends on


def note(tx: Tx, told: Told, session: str, kind: SessionKind, now: int) -> None:
    """Store the session of a run that is running; the next turn of its scope resumes it.

    Not for a run in the background, nor when its session was ended from outside, or its agent has been
    deleted, or has another provider by now, or other settings of it that its sessions depend on.
    """
    tx.execute("UPDATE run SET session = ? WHERE id = ? AND status = 'running'", (session, told.run))
    agent = tx.execute(
        """
        SELECT g.provider_config FROM run r JOIN agent g ON g.address = r.agent
        WHERE r.id = ? AND g.deleted_at IS NULL AND g.provider = r.provider
        """,
        (told.run,),
    ).fetchone()
    if agent is None or session_settings(agent["provider_config"], kind) != told.settings:
        tx.execute(
            "UPDATE run SET session_scope = NULL WHERE id = ? AND status = 'running'",
            (told.run,),
        )
    tx.execute(
        """
        INSERT INTO provider_session (agent, provider, scope, session, begun_at, used_at, settings)
        SELECT agent, provider, session_scope, ?1, ?2, ?2, ?4 FROM run
        WHERE id = ?3 AND status = 'running' AND session_scope IS NOT NULL
        ON CONFLICT (agent, provider, scope) DO UPDATE SET
            -- Another id of one that was resumed: the same memory goes on in it.
            begun_at = iif(stale_at IS NULL, ifnull(begun_at, excluded.begun_at), excluded.begun_at),
            context = iif(stale_at IS NULL, context, NULL),
            cost = iif(stale_at IS NULL, cost, 0),
            memory_hash = iif(stale_at IS NULL, memory_hash, NULL),
            session = excluded.session, used_at = excluded.used_at, settings = excluded.settings,
            stale_at = NULL, stale_why = NULL
        """,
        (session, now, told.run, told.settings),
    )
    _end_rules(tx, told.run, now)  # of the session that this one replaces


def lost(tx: Tx, told: Told, session: str, new_id: str | None, now: int) -> None:
    """A run could not resume this session: it is not given again. One stored meanwhile stays.

    `new_id`: of the session that it begins instead, if hiboss makes the id.
    """
    _end_of_run(tx, told.run, session, now)
    if new_id is None:
        tx.execute("UPDATE run SET session = NULL WHERE id = ? AND session = ?", (told.run, session))
    else:
        row = tx.execute(
            "UPDATE run SET session = ? WHERE id = ? RETURNING agent, provider, session_scope",
            (new_id, told.run),
        ).fetchone()
        if row["session_scope"] is not None:
            _put_own(tx, tuple(row), new_id, told.settings, LOST, now)
    _end_rules(tx, told.run, now)


def settled(tx: Tx, run: int, now: int, *, in_use: bool = False) -> None:
    """A run has ended: note when its session was used, how full it is, and what it has cost.

    `in_use`: something of the run may go on in it. Then no other turn resumes it.
    """
    row = tx.execute("SELECT session, session_scope, context, cost FROM run WHERE id = ?", (run,)).fetchone()
    if row["session"] is None:
        return
    if in_use:
        _end_of_run(tx, run, row["session"], now)
        tx.execute("UPDATE run SET session_scope = NULL WHERE id = ?", (run,))
    tx.execute(
        f"""
        UPDATE provider_session
        SET used_at = ?, context = ifnull(?, context), cost = cost + ifnull(?, 0) {_OF_RUN}
        """,
        (now, row["context"], row["cost"], row["session"], run),
    )
    if in_use or row["session_scope"] is None:  # its rules held while it ran
        _end_rules(tx, run, now)


_OF_RUN = """
WHERE session = ? AND stale_at IS NULL AND (agent, provider, scope) =
      (SELECT agent, provider, session_scope FROM run WHERE id = ?)
"""


def _end_of_run(tx: Tx, run: int, session: str, now: int) -> None:
    tx.execute(
        f"UPDATE provider_session SET stale_at = ?, stale_why = '{LOST}' {_OF_RUN}", (now, session, run)
    )


def _end_rules(tx: Tx, run: int, now: int) -> None:
    row = tx.execute("SELECT agent FROM run WHERE id = ?", (run,)).fetchone()
    ask_rules.end_of_sessions(tx, row["agent"], now)


# --- what it has cost, and the memory that it was shown --------------------------------


def _of_run(connection: Connection | Tx, run: int) -> Row | None:
    """Return the session that a run uses."""
    row: Row | None = connection.execute(
        """
        SELECT p.cost, p.memory_hash FROM run r JOIN provider_session p
            ON p.agent = r.agent AND p.provider = r.provider AND p.scope = r.session_scope
        WHERE r.id = ? AND p.session = r.session AND p.stale_at IS NULL
        """,
        (run,),
    ).fetchone()
    return row


def cost(connection: Connection | Tx, run: int) -> float | None:
    """Return what the turns of the session of a run have cost before it; None if it has no session yet."""
    row = _of_run(connection, run)
    return None if row is None else row["cost"]


def memory_hash(connection: Connection | Tx, run: int) -> str | None:
    """Return the hash of the files of memory that the session of a run was last shown; None: of none."""
    row = _of_run(connection, run)
    return None if row is None else row["memory_hash"]


def note_memory(tx: Tx, run: int, shown: str | None) -> None:
    """Store the hash of the files of memory that the session of a run has been shown."""
    row = tx.execute("SELECT session FROM run WHERE id = ?", (run,)).fetchone()
    tx.execute(f"UPDATE provider_session SET memory_hash = ? {_OF_RUN}", (shown, row["session"], run))


# --- ended from outside --------------------------------------------------------------


def refresh(tx: Tx, agent: Row, conversation: int | None, now: int) -> int:
    """Let the next turns of an agent begin new sessions: of a conversation, or all. Return how many ended.

    A run that is under way goes on in its session, which is not resumed after it.
    """
    scope = None if conversation is None else session_scopes.key(tx, agent, conversation)
    return _end(tx, agent["id"], scope, REFRESHED, now)


def scope_changed(tx: Tx, agent: int, now: int) -> None:
    """The sessions of an agent are for others than before: none is resumed."""
    _end(tx, agent, None, CHANGED, now)


def _end(tx: Tx, agent: int, scope: str | None, why: str, now: int) -> int:
    """End the sessions of a scope, or all of an agent."""
    ended = tx.execute(
        """
        UPDATE provider_session SET stale_at = ?1, stale_why = ?2
        WHERE agent = ?3 AND (?4 IS NULL OR scope = ?4) AND stale_at IS NULL
        """,
        (now, why, agent, scope),
    ).rowcount
    if why == REFRESHED:  # somebody wants it to know nothing: also not what was said before one was lost
        tx.execute(
            "UPDATE provider_session SET stale_why = ?1 WHERE agent = ?2 AND (?3 IS NULL OR scope = ?3)",
            (why, agent, scope),
        )
    _keep_nothing(tx, agent, scope)
    ask_rules.end_of_sessions(tx, agent, now)
    return ended


def _keep_nothing(tx: Tx, agent: int, scope: str | None = None) -> None:
    """Let runs that are under way leave no session behind."""
    tx.execute(
        """
        UPDATE run INDEXED BY run_running SET session_scope = NULL
        WHERE status = 'running' AND agent = ?1 AND (?2 IS NULL OR session_scope = ?2)
        """,
        (agent, scope),
    )


def forget(tx: Tx, agent: int) -> None:
    """Delete the sessions of an agent that is deleted."""
    tx.execute("DELETE FROM provider_session WHERE agent = ?", (agent,))
    _keep_nothing(tx, agent)


def forget_person(tx: Tx, person: int, now: int) -> None:
    """Delete the sessions with a person who is deleted, of all agents."""
    scope = session_scopes.of_person(person)
    for agent in _agents_with(tx, scope):
        _end(tx, agent, scope, REFRESHED, now)
    tx.execute("DELETE FROM provider_session WHERE scope = ?", (scope,))


def merge(tx: Tx, gone: int, kept: int, now: int) -> None:
    """Two conversations become one: of two sessions the one of the kept conversation is resumed."""
    scopes = (session_scopes.of_conversation(gone), session_scopes.of_conversation(kept))
    agents = _agents_with(tx, scopes[0])
    tx.execute(
        """
        DELETE FROM provider_session WHERE scope = ?2 AND stale_at IS NOT NULL AND EXISTS (
            SELECT 1 FROM provider_session g WHERE g.scope = ?1 AND g.stale_at IS NULL
              AND g.agent = provider_session.agent AND g.provider = provider_session.provider)
        """,
        scopes,
    )
    tx.execute("UPDATE OR IGNORE provider_session SET scope = ?2 WHERE scope = ?1", scopes)
    tx.execute("DELETE FROM provider_session WHERE scope = ?", scopes[:1])
    # A run keeps its session where it is now, unless another one is there.
    tx.execute(
        """
        UPDATE run INDEXED BY run_running SET session_scope = iif(EXISTS (
                SELECT 1 FROM provider_session p WHERE p.agent = run.agent AND p.provider = run.provider
                  AND p.scope = ?2 AND p.stale_at IS NULL AND p.session IS NOT run.session), NULL, ?2)
        WHERE status = 'running' AND session_scope = ?1
        """,
        scopes,
    )
    for agent in agents:
        ask_rules.end_of_sessions(tx, agent, now)


def _agents_with(tx: Tx, scope: str) -> list[int]:
    """Return the agents that have a session of this scope, or a run that may leave one."""
    rows = tx.execute(
        """
        SELECT agent FROM provider_session WHERE scope = ?1
        UNION SELECT agent FROM run INDEXED BY run_running WHERE status = 'running' AND session_scope = ?1
        """,
        (scope,),
    )
    return [row["agent"] for row in rows.fetchall()]


def move_times(tx: Tx, step: int) -> None:
    """The clock was set by so many milliseconds: sessions are as old, and as long unused, as before."""
    tx.execute("UPDATE provider_session SET used_at = used_at + ?1, begun_at = begun_at + ?1", (step,))


# --- shown ---------------------------------------------------------------------------


def listed(connection: Connection, agent: int, limit: int) -> list[Row]:
    """Return the sessions of an agent, the last used first."""
    return connection.execute(
        """
        SELECT s.*, a.kind || ':' || a.name AS person FROM provider_session s
        LEFT JOIN address a ON s.scope GLOB 'u*' AND a.id = CAST(substr(s.scope, 2) AS INTEGER)
        WHERE s.agent = ? ORDER BY s.used_at DESC, s.scope, s.provider LIMIT ?
        """,
        (agent, limit),
    ).fetchall()
