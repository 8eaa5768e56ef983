"""Whom the target of a control concerns: who may see it, and who wrote all that it works on."""

from __future__ import annotations

from .connection import Connection, Row
from .control_targets import Target
from .group_commit import Tx


def is_party(connection: Connection | Tx, who: int, conversation: int | None) -> bool:
    """Tell whether an address is a party of a conversation now."""
    row = connection.execute(
        "SELECT 1 FROM participant WHERE conversation = ? AND address = ? AND left_seq IS NULL",
        (conversation, who),
    ).fetchone()
    return row is not None


def sees_run(connection: Connection | Tx, who: int, run: Row) -> bool:
    """Tell whether an address may know of a run: its agent, and the parties where it works or answers."""
    places = (run["conversation"], run["reply_conversation"])
    return run["agent"] == who or any(is_party(connection, who, one) for one in places)


def sees_envelope(who: int, envelope: Row) -> bool:
    """Tell whether an address sent or received an envelope; not where the boss has it forwarded to."""
    received = envelope["recipient"] == who and envelope["arrived"] is not None
    sent = envelope["sender"] == who and (envelope["forwards"] is None or envelope["addressed"])
    return bool(received or sent)


def wrote_all(connection: Connection | Tx, who: int, target: Target) -> bool:
    """Tell whether somebody wrote all that the runs of a target work on, each alone with its agent.

    Not of an agent as a whole: other runs of it may begin. Where nothing runs: a conversation with one agent,
    or an envelope that it sent.
    """
    meant = target.runs or (() if target.run is None else (target.run,))
    if target.run is None and target.conversation is None and target.envelope is None:
        return False
    if meant:
        return all(_wrote(connection, who, run) for run in meant)
    if target.conversation is not None:
        return is_party(connection, who, target.conversation) and _is_private(connection, target.conversation)
    return target.envelope is not None and bool(target.envelope["sender"] == who)


def _is_private(connection: Connection | Tx, conversation: int) -> bool:
    row = connection.execute("SELECT kind FROM conversation WHERE id = ?", (conversation,)).fetchone()
    return row is not None and bool(row["kind"] == "private")


def _wrote(connection: Connection | Tx, who: int, run: Row) -> bool:
    row = connection.execute(
        """
        SELECT c.kind = 'private' AND r.kind = 'turn' AND NOT EXISTS (
            SELECT 1 FROM run_envelope x JOIN envelope e ON e.id = x.envelope
            JOIN message m ON m.id = e.message
            WHERE x.run = r.id AND (m.conversation <> r.conversation OR m.sender <> ?1)
              AND e.priority <> 4)  -- notices ride along
        FROM run r JOIN conversation c ON c.id = r.conversation WHERE r.id = ?2 AND r.agent <> ?1
        """,
        (who, run["id"]),
    ).fetchone()
    return row is not None and bool(row[0])
