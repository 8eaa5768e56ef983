"""Rules: answers to permissions that hold for more than once. The boss reads them and takes them back.

A rule is about exactly one agent, tool and subject, compared letter by letter, and remembers exactly one
answer: there are no patterns, and nothing means "always everything". With a session it holds only for that
session of the provider, and ends with it. What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.errors import CannotRemember
from ..core.escaping import visible
from ..core.shortening import shorten
from . import buttons
from .connection import Connection, Row
from .group_commit import Tx

ONCE, SESSION, RULE = "once", "session", "rule"
SCOPES = (ONCE, SESSION, RULE)

_SELECT = """
SELECT u.*, a.name AS agent_name, b.kind || ':' || b.name AS by_address
FROM ask_rule u JOIN address a ON a.id = u.agent JOIN address b ON b.id = u.created_by
"""


def match(
    connection: Connection | Tx, run: int, tool: str, subject: str, options: Sequence[str]
) -> Row | None:
    """Return the rule that answers a permission of a run; None: people are asked.

    The newest one counts, and only if its answer is one of the options.
    """
    if not tool or not subject:
        return None
    row: Row | None = connection.execute(
        f"""
        {_SELECT.replace("ask_rule u", "ask_rule u INDEXED BY ask_rule_agent")}
        JOIN run r ON r.id = ?1 AND r.agent = u.agent
        WHERE u.tool = ?2 AND u.removed_at IS NULL AND u.subject = ?3
          AND (u.session IS NULL OR u.session = r.session)
        ORDER BY u.id DESC LIMIT 1
        """,
        (run, tool, subject),
    ).fetchone()
    return row if row is not None and row["answer"] in options else None


def possible(
    connection: Connection | Tx, run: int | None, tool: str | None, subject: str | None
) -> list[str]:
    """Return the scopes that an answer to this can have: `once`, and what can be remembered."""
    if not tool or not subject:
        return [ONCE]
    return [ONCE, RULE] if _session(connection, run) is None else [ONCE, SESSION, RULE]


def add_buttons(
    tx: Tx,
    message: int,
    ask: int,
    run: int | None,
    tool: str | None,
    subject: str | None,
    options: Sequence[str],
) -> None:
    """Put buttons under a permission that remember its first option: what the asker hopes for."""
    option = visible(options[0])
    labels = {SESSION: f"{option} for this session", RULE: f"always {option} exactly this"}
    found = [one for one in possible(tx, run, tool, subject) if one != ONCE]
    buttons.add(tx, message, [(shorten(labels[one], 40), "ask.answer", f"{ask}:0:{one}") for one in found])


def remember(tx: Tx, ask: Row, now: int) -> int | None:
    """Make the rule of an answer and return its number; None: it holds only once. `ask`: as it was settled.

    An earlier rule about the same is replaced.
    """
    scope = ask["scope"]
    if ask["state"] != "answered" or scope in (None, ONCE):
        return None
    session = _session(tx, ask["run"]) if scope == SESSION else None
    tx.execute(
        """
        UPDATE ask_rule INDEXED BY ask_rule_agent SET removed_at = ?1
        WHERE agent = ?2 AND tool = ?3 AND removed_at IS NULL AND subject = ?4 AND session IS ?5
        """,
        (now, ask["asker"], ask["tool"], ask["subject"], session),
    )
    cursor = tx.execute(
        """
        INSERT INTO ask_rule (agent, tool, session, answer, ask, created_by, created_at, subject)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            *(ask["asker"], ask["tool"], session, ask["answer"], ask["id"]),
            *(ask["answered_by"], now, ask["subject"]),
        ),
    )
    return int(cursor.lastrowid or 0)


def check(tx: Tx, ask: Row, scope: str | None) -> None:
    """Raise CannotRemember if the answer to an ask cannot have this scope. Called before it is settled."""
    if scope not in (None, ONCE) and (why := _obstacle(tx, ask, scope)):
        raise CannotRemember(id=f"q{ask['id']}", scope=scope, why=why)


def _obstacle(tx: Tx, ask: Row, scope: str | None) -> str:
    if ask["kind"] != "permission":
        return "only the answer to a permission can be remembered"
    if not ask["tool"] or not ask["subject"]:
        return "it does not say exactly what would be allowed, or that contains a secret"
    if scope == SESSION and _session(tx, ask["run"]) is None:
        return "its run has no session that would go on; --scope rule holds for all"
    return ""


def _session(connection: Connection | Tx, run: int | None) -> str | None:
    row = connection.execute("SELECT session FROM run WHERE id = ?", (run,)).fetchone()
    return None if row is None else row["session"]


# --- read and remove -----------------------------------------------------------------


def listed(connection: Connection, agent: int | None, before: int | None, limit: int) -> list[Row]:
    """Return the rules in effect, newest first: of one agent, or of all."""
    return connection.execute(
        f"""
        {_SELECT} WHERE u.removed_at IS NULL AND (?1 IS NULL OR u.agent = ?1) AND (?2 IS NULL OR u.id < ?2)
        ORDER BY u.id DESC LIMIT ?3
        """,
        (agent, before, limit),
    ).fetchall()


def remove(tx: Tx, rule: int, now: int) -> Row | None:
    """Take a rule back and return it; None: there is no such rule. One that ended before stays so."""
    row: Row | None = tx.execute(f"{_SELECT} WHERE u.id = ?", (rule,)).fetchone()
    if row is not None and row["removed_at"] is None:
        tx.execute("UPDATE ask_rule SET removed_at = ? WHERE id = ?", (now, rule))
    return row


def end_of_agent(tx: Tx, agent: int, now: int) -> None:
    """End the rules of an agent that is deleted."""
    tx.execute(
        "UPDATE ask_rule INDEXED BY ask_rule_agent SET removed_at = ? WHERE agent = ? AND removed_at IS NULL",
        (now, agent),
    )


def end_of_sessions(tx: Tx, agent: int, now: int) -> None:
    """End the rules of an agent for sessions that no turn resumes any more, and no run uses."""
    tx.execute(
        """
        UPDATE ask_rule INDEXED BY ask_rule_agent SET removed_at = ?1
        WHERE agent = ?2 AND removed_at IS NULL AND session IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM provider_session p
                          WHERE p.agent = ?2 AND p.session = ask_rule.session AND p.stale_at IS NULL)
          AND NOT EXISTS (SELECT 1 FROM run r INDEXED BY run_running
                          WHERE r.status = 'running' AND r.agent = ?2 AND r.session = ask_rule.session)
        """,
        (now, agent),
    )
