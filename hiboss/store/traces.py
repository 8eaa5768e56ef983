"""What came of a message: the runs that worked on it, what those sent, what was replied, and so on.

It walks from message to message by indexes: from an envelope to its runs, from a run to what it sent, from a
thread to the replies in it. So it costs the same in a small store and in a large one.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from .connection import Connection, Row
from .envelope_rows import QUOTED
from .visibility import sees

ENVELOPES = 100  # of the message, that are shown
RUNS = 100  # that are shown
WALKED = 300  # messages that are looked at, also those that the viewer may not see
OF_RUN = 100  # messages of one run
IN_THREAD = 1_000  # messages of one thread that are searched for replies


class Walk(NamedTuple):
    """Message ids, oldest first, and whether there may be more."""

    ids: list[int]
    more: bool


def envelopes_of(connection: Connection, message: int, viewer: int | None) -> Walk:
    """Return the envelopes of a message that somebody may see, at most ENVELOPES.

    Its sender sees all but where the boss has it forwarded to, others see their own; None sees all.
    """
    rows = connection.execute(
        """
        SELECT e.id FROM envelope e INDEXED BY envelope_message JOIN message m ON m.id = e.message
        WHERE e.message = ?1 AND (?2 IS NULL OR (e.recipient = ?2 AND e.arrived IS NOT NULL)
            OR (m.sender = ?2 AND (e.forwards IS NULL OR e.addressed)))
        ORDER BY e.id LIMIT ?3
        """,
        (message, viewer, ENVELOPES + 1),
    ).fetchall()
    return Walk([row["id"] for row in rows[:ENVELOPES]], len(rows) > ENVELOPES)


def runs_of(connection: Connection, envelopes: Sequence[int]) -> list[Row]:
    """Return the runs that had these envelopes, oldest first, at most RUNS and one more."""
    if not envelopes:
        return []
    return connection.execute(
        f"""
        SELECT r.id, r.agent, a.name AS agent_name, r.kind, r.status, r.provider, r.started_at, r.ended_at,
               r.error_kind, r.error, r.answer
        FROM run r JOIN address a ON a.id = r.agent
        WHERE r.id IN (SELECT x.run FROM run_envelope x INDEXED BY run_envelope_envelope
                       WHERE x.envelope IN ({",".join("?" * len(envelopes))}))
        ORDER BY r.id LIMIT {RUNS + 1}
        """,
        tuple(envelopes),
    ).fetchall()


def came_of(connection: Connection, message: int) -> Walk:
    """Return the messages that came of one: what its runs sent, the replies to it, and what came of these."""
    found: list[int] = []
    waiting, known, runs = [message], {message}, set[int]()
    replies = _Replies(connection)
    while waiting:
        one = heappop(waiting)
        if one != message:
            found.append(one)
            if len(found) > WALKED:
                return Walk(found[:WALKED], more=True)
        for following in [*_sent_for(connection, one, runs), *replies.to(one)]:
            if following not in known:
                known.add(following)
                heappush(waiting, following)
    return Walk(found, replies.cut)


def _sent_for(connection: Connection, message: int, done: set[int]) -> list[int]:
    """Return what the runs sent that worked on a message; not of runs that were looked at before."""
    rows = connection.execute(
        """
        SELECT DISTINCT r.id, r.agent, r.after_message, r.last_message, r.answer
        FROM envelope e INDEXED BY envelope_message
        JOIN run_envelope x INDEXED BY run_envelope_envelope ON x.envelope = e.id JOIN run r ON r.id = x.run
        WHERE e.message = ?
        """,
        (message,),
    ).fetchall()
    found: list[int] = []
    for run in rows:
        if run["id"] not in done:
            done.add(run["id"])
            found += _sent_in(connection, run)
    return found


def _sent_in(connection: Connection, run: Row) -> list[int]:
    # Between the two ids, and from this sender: only few others than those of the run are read.
    sent = connection.execute(
        """
        SELECT id FROM message INDEXED BY message_sender
        WHERE sender = ?1 AND id > ?2 AND id <= ifnull(?3, 9e18) AND run = ?4 ORDER BY id LIMIT ?5
        """,
        (run["agent"], run["after_message"], run["last_message"], run["id"], OF_RUN),
    ).fetchall()
    # The result of a task in the background has another sender.
    return [row["id"] for row in sent] + ([] if run["answer"] is None else [run["answer"]])


class _Replies:
    """Finds the replies to messages. Each thread is read once, from the first message that is asked for."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._threads: dict[int, dict[int, list[int]]] = {}
        self.cut = False  # a thread had too many messages

    def to(self, message: int) -> list[int]:
        row = self._connection.execute(
            "SELECT ifnull(thread, id) FROM message WHERE id = ?", (message,)
        ).fetchone()
        if row is None:
            return []
        thread = int(row[0])
        if thread not in self._threads:
            self._threads[thread] = self._read(thread, message)
        return self._threads[thread].get(message, [])

    def _read(self, thread: int, after: int) -> dict[int, list[int]]:
        rows = self._connection.execute(
            """
            SELECT id, reply_to FROM message INDEXED BY message_thread
            WHERE thread = ? AND id > ? ORDER BY id LIMIT ?
            """,
            (thread, after, IN_THREAD + 1),
        ).fetchall()
        self.cut = self.cut or len(rows) > IN_THREAD
        found: dict[int, list[int]] = {}
        for number, reply_to in rows[:IN_THREAD]:
            found.setdefault(reply_to, []).append(number)
        return found


def visible(connection: Connection, messages: Sequence[int], viewer: int | None, most: int) -> list[Row]:
    """Return those of these messages that somebody may see, oldest first, at most so many; None sees all."""
    if not messages:
        return []
    return connection.execute(
        f"""
        SELECT m.id, m.conversation, m.thread, m.seq, m.reply_to, m.run, m.trace, m.hops, m.created_at,
               m.arrived_at, m.deleted_at, m.deliver_at, s.kind || ':' || s.name AS sender_address,
               iif(m.deleted_at IS NULL, m.subject, NULL) AS subject,
               iif(m.deleted_at IS NULL, substr(m.text, 1, {QUOTED}), '') AS text
        FROM message m JOIN address s ON s.id = m.sender
        WHERE (?1 IS NULL OR {sees("?1")}) AND m.id IN ({",".join("?" * len(messages))})
        ORDER BY m.id LIMIT {most:d}
        """,
        (viewer, *messages),
    ).fetchall()


def recipients(connection: Connection, messages: Sequence[int], most: int) -> dict[int, list[str]]:
    """Return to whom these messages went, by id, at most so many of each; not where they are forwarded to."""
    if not messages:
        return {}
    rows = connection.execute(
        f"""
        SELECT e.message, a.kind || ':' || a.name AS address FROM (
            SELECT message, recipient, row_number() OVER (PARTITION BY message ORDER BY id) AS number
            FROM envelope INDEXED BY envelope_message
            WHERE message IN ({",".join("?" * len(messages))}) AND forwards IS NULL) e
        JOIN address a ON a.id = e.recipient WHERE e.number <= {most:d} ORDER BY e.message, e.number
        """,
        tuple(messages),
    ).fetchall()
    found: dict[int, list[str]] = {}
    for row in rows:
        found.setdefault(row["message"], []).append(row["address"])
    return found
