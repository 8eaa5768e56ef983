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

    Not of an agent as a whole: other runs of it may begin. A run that has ended in a pause counts too. Where
    there is none: a conversation with one agent, or an envelope that it sent. Never the agent itself, and no
    guest of a conversation.
    """
    meant = (*target.runs, *target.held) or (() if target.run is None else (target.run,))
    if target.run is None and target.conversation is None and target.envelope is None:
        return False
    if meant:
        return all(_wrote(connection, who, run) for run in meant)
    if target.conversation is not None:
        return _is_at_home(connection, who, target.conversation)
    return target.envelope is not None and bool(target.envelope["sender"] == who)


def paused_by(target: Target, who: int | None) -> bool:
    """Tell whether somebody has paused one of the runs of a target, also if it has ended since."""
    return any(
        run["paused_by"] == who for run in (*target.runs, *target.held) if run["paused_by"] is not None
    )


def _is_at_home(connection: Connection | Tx, who: int, conversation: int) -> bool:
    """Tell whether a conversation is private and somebody is a party of it, not as a guest."""
    row = connection.execute(
        """
        SELECT 1 FROM conversation c JOIN participant p ON p.conversation = c.id
        WHERE c.id = ? AND c.kind = 'private' AND p.address = ? AND p.left_seq IS NULL AND p.role <> 'guest'
        """,
        (conversation, who),
    ).fetchone()
    return row is not None


def _wrote(connection: Connection | Tx, who: int, run: Row) -> bool:
    row = connection.execute(
        """
        SELECT c.kind = 'private' AND r.kind = 'turn' AND NOT EXISTS (
            SELECT 1 FROM run_envelope x JOIN envelope e ON e.id = x.envelope
            JOIN message m ON m.id = e.message
            WHERE x.run = r.id AND (m.conversation <> r.conversation OR m.sender <> ?1)
              AND e.priority <> 4)  -- notices ride along
        FROM run r JOIN conversation c ON c.id = r.conversation
        WHERE r.id = ?2 AND r.agent <> ?1 AND NOT EXISTS (
            SELECT 1 FROM participant p
            WHERE p.conversation = r.conversation AND p.address = ?1 AND p.role = 'guest')
        """,
        (who, run["id"]),
    ).fetchone()
    return row is not None and bool(row[0])
