"""Read runs: one run, a page of runs, and the state of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from ..core.envelope import Priority
from ..core.shortening import shorten
from .connection import Connection, Row
from .due_envelopes import MAIL
from .envelope_rows import QUOTED, recipients

_SELECT = """
SELECT r.*, a.name AS agent_name,
       (SELECT group_concat('e' || x.envelope, ',') FROM run_envelope x WHERE x.run = r.id) AS envelopes
FROM run r JOIN address a ON a.id = r.agent
"""
# A named trace ends with the id of its message: '0' is the character after '/'.
_OF_TRACE = "r.trace IN (SELECT ?1 UNION SELECT trace FROM run WHERE trace > ?1 || '/' AND trace < ?1 || '0')"
LOOKED_THROUGH = 1_000  # pending envelopes of an agent that are searched
AT_ONCE = 20  # runs of one agent that may be active when the last ended one is searched
ALREADY_SENT = 20  # messages that an agent is told it already sent, at most


def get(connection: Connection, run: int) -> Row | None:
    """Return a run; None if there is none with this id."""
    row: Row | None = connection.execute(f"{_SELECT} WHERE r.id = ?", (run,)).fetchone()
    return row


class Page(NamedTuple):
    rows: list[Row]
    more: bool


def page(
    connection: Connection,
    *,
    agent: int | None,
    status: str | None,
    trace: str | None,
    before: int | None,
    limit: int,
    most_bytes: int,
) -> Page:
    """Return runs, newest first; all, or only those of one agent, trace or status.

    `trace` is also the beginning of traces that a caller named: agent:kai/nightly.
    A page that reaches `most_bytes` in JSON ends there; it has at least one run.
    """
    index = "run_trace" if trace is not None else "run_agent" if agent is not None else None
    source = _SELECT.replace("FROM run r JOIN", f"FROM run r INDEXED BY {index} JOIN") if index else _SELECT
    terms, values = ["1"], []
    for term, value in (
        (_OF_TRACE, trace),
        ("r.agent = ?", agent),
        ("r.status = ?", status),
        ("r.id < ?", before),
    ):
        if value is not None:
            terms.append(term)
            values.append(value)
    found: list[Row] = []
    left = most_bytes
    for row in connection.execute(
        f"{source} WHERE {' AND '.join(terms)} ORDER BY r.id DESC LIMIT ?", (*values, limit + 1)
    ):
        left -= sum(len(orjson.dumps(row[column])) for column in ("final_text", "error", "note"))
        if len(found) == limit or (found and left < 0):
            return Page(found, more=True)
        found.append(row)
    return Page(found, more=False)


def last(connection: Connection, agent: int) -> Row | None:
    """Return the last run of an agent that has ended; None if there is none."""
    row: Row | None = connection.execute(
        f"""
        {_SELECT} WHERE r.id = (
            SELECT id FROM (SELECT id, status FROM run INDEXED BY run_agent WHERE agent = ?
                            ORDER BY id DESC LIMIT {AT_ONCE})
            WHERE status <> 'running' ORDER BY id DESC LIMIT 1)
        """,
        (agent,),
    ).fetchone()
    return row


def running(connection: Connection, agent: int) -> list[Row]:
    """Return the active runs of an agent."""
    return connection.execute(
        f"{_SELECT.replace('FROM run r JOIN', 'FROM run r INDEXED BY run_running JOIN')}"
        " WHERE r.status = 'running' AND r.agent = ? ORDER BY r.id",
        (agent,),
    ).fetchall()


def in_conversation(connection: Connection, agent: int, conversation: int) -> Row | None:
    """Return the active turn of an agent whose answer goes to this conversation."""
    rows = [
        row
        for row in running(connection, agent)
        if row["reply_conversation"] == conversation and row["kind"] == "turn"
    ]
    return rows[0] if rows else None


def oldest_unanswered(connection: Connection, agent: int) -> int | None:
    """Return when the oldest pending envelope of an agent arrived, without notices; None if there is none.

    Envelopes that wait, for example for a retry, are found among the first that are pending.
    """
    due = " UNION ALL ".join(
        f"""
        SELECT * FROM (SELECT arrived, message FROM envelope INDEXED BY envelope_due
            WHERE recipient = ?1 AND binding IS NULL AND priority = {priority:d} AND status = 0
              AND arrived IS NOT NULL AND waits IS NULL ORDER BY arrived LIMIT 1)
        """
        for priority in MAIL
    )
    row = connection.execute(
        f"""
        SELECT m.arrived_at FROM ({due} UNION ALL
            SELECT * FROM (
                SELECT arrived, message FROM (
                    SELECT arrived, message, priority FROM envelope INDEXED BY envelope_box
                    WHERE recipient = ?1 AND box = 0 AND status = 0 AND arrived IS NOT NULL
                    ORDER BY arrived LIMIT {LOOKED_THROUGH})
                WHERE priority <> {Priority.NOTICE:d} ORDER BY arrived LIMIT 1)
        ) e JOIN message m ON m.id = e.message ORDER BY e.arrived LIMIT 1
        """,
        (agent,),
    ).fetchone()
    return row["arrived_at"] if row else None


def next_retry(connection: Connection, agent: int) -> Row | None:
    """Return time and error of the next retry of a failed turn; None if there is none."""
    row: Row | None = connection.execute(
        f"""
        SELECT wake_at, error_text FROM (
            SELECT wake_at, waits, error_text FROM envelope INDEXED BY envelope_box
            WHERE recipient = ? AND box = 0 AND status = 0 AND arrived IS NOT NULL
            ORDER BY arrived LIMIT {LOOKED_THROUGH})
        WHERE waits = 1 ORDER BY wake_at LIMIT 1
        """,
        (agent,),
    ).fetchone()
    return row


def already_sent(connection: Connection, envelopes: Sequence[int]) -> list[tuple[str, list[str], str]]:
    """Return what earlier, unsuccessful runs with these envelopes sent: id, recipients, quote."""
    if not envelopes:
        return []
    rows = connection.execute(
        f"""
        SELECT DISTINCT m.id, substr(m.text, 1, {QUOTED}) AS text
        FROM run_envelope x INDEXED BY run_envelope_envelope
        JOIN run r ON r.id = x.run AND r.status IN ('interrupted', 'failed', 'cancelled')
        JOIN message m INDEXED BY message_sender
            ON m.sender = r.agent AND m.id > r.after_message AND m.id <= r.last_message AND m.run = r.id
        WHERE x.envelope IN ({",".join("?" * len(envelopes))}) AND m.deleted_at IS NULL
        ORDER BY m.id DESC LIMIT ?
        """,
        (*envelopes, ALREADY_SENT),
    ).fetchall()
    return [
        (f"m{row['id']}", recipients(connection, row["id"]), shorten(row["text"])) for row in reversed(rows)
    ]
