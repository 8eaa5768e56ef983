"""What was said around an agent in a group chat: to nobody of us, or to another agent of its account.

Another account in the same chat hears the same messages: those are not shown twice. Also what was said in a
conversation while somebody else had it (`copies`).

A turn with envelopes of a group chat shows them, up to the last message before its run began. They are
shown until a turn that showed them is completed (`participant.shown_upto`). In a group of hiboss each copy
knows by itself whether a turn has shown it: a stay may end before that, and a deferred message comes late.
Reads a bounded number of rows, however much was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import readings
from .connection import Connection
from .group_commit import Tx

MESSAGES = 50  # that a turn shows at most, the latest
BYTES = 8 * 1024  # of their texts, and of what is stored about their files
EXACT_TO = 1_000  # that are counted of those left out
LOOKED_THROUGH = MESSAGES + EXACT_TO + 50  # messages of the chat, also to the agent itself


class Scope(NamedTuple):
    """Which part of a chat is around a turn."""

    chat: int  # address id
    after: int  # message ids: those up to this one were shown before
    upto: int  # the last one


class Copies(NamedTuple):
    """Which copies of what was said in a conversation a turn shows: somebody else had it meanwhile."""

    conversation: int
    after: int  # message ids: those up to this one were shown before
    upto: int  # the last one
    of_group: bool = False  # what was shown before is known by each copy, and `after` is 0


class Said(NamedTuple):
    """What was said, oldest first, and how much more."""

    rows: list[dict[str, Any]]
    left_out: int | str  # earlier ones: 3, or 1000+


def scope(
    tx: Tx | Connection, agent: int, conversation: int, envelopes: Sequence[int], upto: int
) -> Scope | None:
    """Return what is around a turn with these envelopes; None if they come from no group chat."""
    row = tx.execute(
        f"""
        SELECT m.sender FROM envelope e JOIN message m ON m.id = e.message
        JOIN address a ON a.id = m.sender AND a.kind = 'channel'
        WHERE e.id IN ({",".join("?" * len(envelopes))})
          AND json_extract(m.channel, '$.chat.kind') IN ('group', 'channel') LIMIT 1
        """,
        envelopes,
    ).fetchone()
    if row is None:
        return None
    stay = tx.execute(
        "SELECT max(shown_upto) AS upto FROM participant WHERE conversation = ? AND address = ?",
        (conversation, agent),
    ).fetchone()
    return Scope(row["sender"], stay["upto"] or 0, upto)


def read(connection: Connection, agent: int, around: Scope) -> Said:
    """Return what was said there: at most MESSAGES with BYTES, the latest."""
    rows = connection.execute(
        """
        SELECT m.id, m.deleted_at IS NULL AND iif(
            EXISTS (SELECT 1 FROM envelope e WHERE e.message = m.id AND e.recipient = ?1), m.context,
            EXISTS (SELECT 1 FROM platform_update u JOIN binding_agent b ON b.binding = u.binding
                    WHERE u.message = m.id AND b.agent = ?1)) AS is_around
        FROM message m INDEXED BY message_sender
        WHERE m.sender = ?2 AND m.id > ?3 AND m.id <= ?4 ORDER BY m.id DESC LIMIT ?5
        """,
        (agent, *around, LOOKED_THROUGH),
    ).fetchall()
    return _latest(connection, [row["id"] for row in rows if row["is_around"]], len(rows))


def _latest(connection: Connection | Tx, numbers: Sequence[int], looked_at: int) -> Said:
    """Return those of these messages, latest first, that a turn shows. `looked_at`: among so many."""
    shown = _fitting(connection, numbers[:MESSAGES])
    left_out = len(numbers) - len(shown)
    if left_out > EXACT_TO or looked_at == LOOKED_THROUGH:
        return Said(shown, f"{min(left_out, EXACT_TO)}+" if left_out else 0)
    return Said(shown, left_out)


def _fitting(connection: Connection | Tx, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Return the latest of these messages that are small enough together, oldest first; at least one.

    If the latest alone is too large, only the beginning of its text is returned, and it is `cut`.
    """
    found: list[dict[str, Any]] = []
    left = BYTES
    for number in numbers:
        cursor = connection.execute(_SAID, (BYTES + 1, number))
        row = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
        size = len(row["text"].encode()) + len((row["attachments"] or "").encode())
        if size > left:
            if found:
                break
            whole, row["text"] = row["text"], row["text"].encode()[:BYTES].decode(errors="ignore")
            row["cut"] = whole != row["text"]
        found.append(row)
        left -= size
    return found[::-1]


def copies(tx: Tx | Connection, agent: int, conversation: int, upto: int) -> Copies | None:
    """Return what an agent is to be shown of what it only read along; None: it gets all of it to answer."""
    row = tx.execute(
        """
        SELECT iif(c.kind = 'group', 0, ifnull(max(p.shown_upto), 0)), c.kind = 'group' FROM conversation c
        LEFT JOIN participant p ON p.conversation = c.id AND p.address = ?2
        WHERE c.id = ?1 AND (c.kind <> 'private' OR EXISTS (
            SELECT 1 FROM control k INDEXED BY control_conversation
            WHERE k.conversation = ?1 AND k.event = 'handoff' AND k.outcome = 'applied'))
        GROUP BY c.id
        """,
        (conversation, agent),
    ).fetchone()
    return None if row is None else Copies(conversation, row[0], upto, bool(row[1]))


def _envelope(tx: Tx, message: int, recipient: int) -> int:
    query = "SELECT id FROM envelope WHERE message = ? AND recipient = ?"
    return int(tx.execute(query, (message, recipient)).fetchone()["id"])


def read_copies(connection: Connection | Tx, agent: int, scope: Copies) -> Said:
    """Return what an agent has copies of: at most MESSAGES with BYTES, the latest."""
    found, looked_at = [], 0
    for row in connection.execute(_COPIES, (agent, *scope[:3], LOOKED_THROUGH)):
        if scope.of_group and row["was_shown"]:
            break  # with those before it, which were shown or left out then
        looked_at += row["id"] > scope.after
        if row["is_copy"]:
            found.append(row["id"])
    return _latest(connection, found, looked_at)


_COPIES = """
    SELECT m.id, m.id > ?3 AND m.id <= ?4 AND m.deleted_at IS NULL AND e.read_at IS NULL
               AND (e.routed_from = ?1 OR (e.context AND NOT m.context)) AS is_copy,
           e.context AND e.read_at IS NOT NULL AND EXISTS (
               SELECT 1 FROM reading r WHERE r.envelope = e.id AND r.reader = ?1 AND r.read = 1
               AND r.session GLOB 'r[0-9]*') AS was_shown  -- in a run
    FROM message m INDEXED BY message_seq
    LEFT JOIN envelope e INDEXED BY envelope_message ON e.message = m.id AND e.recipient = ?1
    WHERE m.conversation = ?2 AND m.seq IS NOT NULL ORDER BY m.seq DESC LIMIT ?5
"""


def mark_shown(tx: Tx, run: int, around: Scope | Copies, agent: int, now: int) -> None:
    """Store that a completed run has shown what was said around it."""
    if isinstance(around, Copies):
        for said in read_copies(tx, agent, around).rows:
            readings.note_read(tx, _envelope(tx, said["id"], agent), None, f"r{run}", now)
    tx.execute(
        """
        UPDATE participant SET shown_upto = max(shown_upto, ?1)
        WHERE conversation = (SELECT conversation FROM run WHERE id = ?2) AND address = ?3
        """,
        (around.upto, run, agent),
    )


_SAID = """
SELECT m.id, m.from_boss, m.from_name, m.reply_to, m.channel, m.attachments, m.created_at, m.edited_at,
       substr(m.text, 1, ?) AS text, 0 AS cut, a.kind || ':' || a.name AS address
FROM message m JOIN address a ON a.id = m.sender WHERE m.id = ?
"""
