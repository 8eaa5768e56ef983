"""Sessions: a provider's own memory of a conversation, resumed from turn to turn.

There is one for each agent, conversation and provider. Only turns use it: a task in the background runs
beside them, and two runs in one session would lose what one of them said.
"""

from __future__ import annotations

from . import ask_rules
from .connection import Connection, Row
from .group_commit import Tx


def find(connection: Connection | Tx, agent: int, conversation: int, provider: str) -> str | None:
    """Return the session to resume; None if there is none, or it must not be resumed."""
    row: Row | None = connection.execute(
        """
        SELECT session FROM provider_session
        WHERE agent = ? AND scope = ? AND provider = ? AND stale_at IS NULL
        """,
        (agent, f"c{conversation}", provider),
    ).fetchone()
    return row["session"] if row else None


def note(tx: Tx, run: int, settings: str | None, session: str, now: int) -> None:
    """Store the session of a run that is running; the next turn of its conversation resumes it.

    Not for a run in the background, nor when its agent has been deleted, or has another provider or
    other settings of it by now.
    """
    tx.execute("UPDATE run SET session = ? WHERE id = ? AND status = 'running'", (session, run))
    tx.execute(
        """
        INSERT INTO provider_session (agent, scope, provider, session, begun_at, used_at)
        SELECT r.agent, 'c' || r.conversation, r.provider, ?1, ?2, ?2
        FROM run r JOIN agent g ON g.address = r.agent
        WHERE r.id = ?3 AND r.status = 'running' AND r.kind = 'turn' AND r.conversation IS NOT NULL
          AND g.deleted_at IS NULL AND g.provider = r.provider AND g.provider_config IS ?4
        ON CONFLICT (agent, scope, provider)
        DO UPDATE SET session = excluded.session, used_at = excluded.used_at, stale_at = NULL
        """,
        (session, now, run, settings),
    )
    _end_rules(tx, run, now)  # of the session that this one replaces


def mark_used(tx: Tx, agent: int, conversation: int, provider: str, now: int) -> None:
    tx.execute(
        "UPDATE provider_session SET used_at = ? WHERE agent = ? AND scope = ? AND provider = ?",
        (now, agent, f"c{conversation}", provider),
    )


def lost(tx: Tx, run: int, session: str, now: int) -> None:
    """A run could not resume this session: it is not given again. One stored meanwhile stays."""
    tx.execute("UPDATE run SET session = NULL WHERE id = ? AND session = ?", (run, session))
    tx.execute(
        """
        UPDATE provider_session SET stale_at = ?1
        WHERE session = ?2 AND (agent, scope, provider) =
              (SELECT agent, 'c' || conversation, provider FROM run WHERE id = ?3)
        """,
        (now, session, run),
    )
    _end_rules(tx, run, now)


def _end_rules(tx: Tx, run: int, now: int) -> None:
    row = tx.execute("SELECT agent FROM run WHERE id = ?", (run,)).fetchone()
    ask_rules.end_of_sessions(tx, row["agent"], now)


def end_all(tx: Tx, agent: int, now: int, provider: str | None = None) -> None:
    """Resume no session of an agent any more (of one provider, if given)."""
    tx.execute(
        """
        UPDATE provider_session SET stale_at = ?1
        WHERE agent = ?2 AND (?3 IS NULL OR provider = ?3) AND stale_at IS NULL
        """,
        (now, agent, provider),
    )
    ask_rules.end_of_sessions(tx, agent, now)


def forget(tx: Tx, agent: int) -> None:
    """Delete the sessions of an agent that is deleted."""
    tx.execute("DELETE FROM provider_session WHERE agent = ?", (agent,))


def end_in(tx: Tx, agent: int, conversation: int, now: int) -> None:
    """Resume no session of an agent in this conversation any more."""
    tx.execute(
        """
        UPDATE provider_session SET stale_at = ? WHERE agent = ? AND scope = ? AND stale_at IS NULL
        """,
        (now, agent, f"c{conversation}"),
    )
    ask_rules.end_of_sessions(tx, agent, now)
