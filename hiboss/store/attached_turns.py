"""Turns that open sessions take: how far each got. They go on without the daemon, over its restarts.

A turn begins like every run (run_start.py): the daemon holds its envelopes. Before the session is told, they
are given to it, as by a claim without an end (`submitted`). From then on they are the session's until its
turn ends, its process is gone, or the boss detaches it. So nobody else works on them.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.envelope import Priority
from ..core.events import RunHandedOver
from . import agents, counters, envelope_marks, envelopes
from .connection import Connection, Row
from .group_commit import Tx
from .run_start import Turn

YEARS_MS = 100 * 365 * 24 * 3_600_000  # a claim without an end: no session is open for so long


class Progress(NamedTuple):
    """How far a turn got."""

    submitted_at: int | None = None
    held_at: int | None = None
    seen_at: int | None = None
    by: str | None = None  # nudge; stop, step: a hook that reported this took the text


def submit(tx: Tx, turn: Turn, by: str, now: int) -> bool:
    """Give a turn to its session, before it is told; False if the run is to end. It may be repeated."""
    row = tx.execute(
        """
        UPDATE run SET submitted_at = ifnull(submitted_at, ?), submitted_by = ?
        WHERE id = ? AND status = 'running' AND ends_as IS NULL RETURNING submitted_at
        """,
        (now, by, turn.run),
    ).fetchone()
    if row is None:
        return False
    claim = None
    for number in turn.envelopes + turn.notices:
        claim = claim or counters.next_claim(tx)
        envelopes.give(tx, number, claim, now + YEARS_MS)
    tx.facts.append(RunHandedOver(now, turn.run, turn.agent, turn.followed_in, "submitted"))
    return True


def note_held(tx: Tx, turn: Turn, now: int) -> None:
    """Note that the harness holds the mail back until a person allows it."""
    if tx.execute(
        """
        UPDATE run SET held_at = ? WHERE id = ? AND status = 'running' AND seen_at IS NULL AND held_at IS NULL
        """,
        (now, turn.run),
    ).rowcount:
        tx.facts.append(RunHandedOver(now, turn.run, turn.agent, turn.followed_in, "held"))


def note_seen(tx: Tx, turn: Turn, now: int) -> None:
    """Note that the session has the mail of a turn."""
    if tx.execute(
        "UPDATE run SET seen_at = ? WHERE id = ? AND status = 'running' AND seen_at IS NULL", (now, turn.run)
    ).rowcount:
        tx.facts.append(RunHandedOver(now, turn.run, turn.agent, turn.followed_in, "seen"))


def note_unseen(tx: Tx, run: int) -> bool:
    """Take it back that a session has a turn: it never got the text. False if it has fetched it itself."""
    return bool(
        tx.execute(
            """
            UPDATE run SET seen_at = NULL WHERE id = ?1 AND status = 'running' AND NOT EXISTS (
                SELECT 1 FROM run_envelope x JOIN envelope e ON e.id = x.envelope
                WHERE x.run = ?1 AND e.read_at IS NOT NULL)
            """,
            (run,),
        ).rowcount
    )


def open_of(connection: Connection | Tx, session: int) -> int | None:
    """Return the run that a session has now; None if it has none."""
    row = connection.execute(
        "SELECT id FROM run INDEXED BY run_attached WHERE attached = ? AND status = 'running'", (session,)
    ).fetchone()
    return None if row is None else int(row["id"])


def left_open(connection: Connection | Tx) -> list[Row]:
    """Return the runs that sessions had when an earlier daemon ended, with their sessions."""
    return connection.execute(
        """
        SELECT r.id, r.attached, r.agent FROM run r INDEXED BY run_attached
        WHERE r.attached IS NOT NULL AND r.status = 'running' AND r.submitted_at IS NOT NULL ORDER BY r.id
        """
    ).fetchall()


def adopt(tx: Tx, run: int, boot: int) -> Turn | None:
    """Return a turn that an earlier daemon gave to a session, as one of this daemon; None if it has ended."""
    row = tx.execute(
        "UPDATE run SET boot = ? WHERE id = ? AND status = 'running' RETURNING *", (boot, run)
    ).fetchone()
    agent = None if row is None else agents.attached(tx, row["agent"])
    if row is None or agent is None:
        return None
    found = tx.execute(
        """
        SELECT e.id, e.priority FROM run_envelope x JOIN envelope e ON e.id = x.envelope
        WHERE x.run = ? ORDER BY e.id
        """,
        (run,),
    ).fetchall()
    return Turn(
        run=run,
        kind="turn",
        agent=row["agent"],
        name=agent["name"],
        provider=row["provider"],
        settings=None,
        secrets=None,
        workspace=agent["workspace"],
        reply=agent["reply"],
        envelopes=tuple(int(one["id"]) for one in found if one["priority"] != Priority.NOTICE),
        notices=tuple(int(one["id"]) for one in found if one["priority"] == Priority.NOTICE),
        trace=row["trace"],
        hops=row["hops"],
        reply_conversation=row["reply_conversation"],
        reply_message=row["reply_message"],
        after_message=row["after_message"],
        conversation=row["conversation"],
        session=None,
        attached=row["attached"],
    )


def progress(connection: Connection | Tx, run: int) -> Progress:
    """Return how far a turn got."""
    row = connection.execute(
        "SELECT submitted_at, held_at, seen_at, submitted_by FROM run WHERE id = ?", (run,)
    ).fetchone()
    return Progress() if row is None else Progress(*row)


def answered_by_hand(connection: Connection | Tx, turn: Turn) -> bool:
    """Tell whether the agent has answered a turn itself: it wrote into the conversation that is answered."""
    row = connection.execute(
        """
        SELECT 1 FROM message INDEXED BY message_sender
        WHERE sender = ? AND id > ? AND conversation = ? AND deliver_at IS NULL AND deleted_at IS NULL LIMIT 1
        """,
        (turn.agent, turn.after_message, turn.reply_conversation),
    ).fetchone()
    return row is not None


def answered(connection: Connection | Tx, turn: Turn) -> str | None:
    """Return who gets the final text of a turn, for the session; None: nobody does."""
    if turn.reply != "auto" or turn.reply_conversation is None:
        return None
    rows = connection.execute(
        """
        SELECT a.kind || ':' || a.name AS name FROM participant p JOIN address a ON a.id = p.address
        WHERE p.conversation = ? AND p.left_seq IS NULL AND p.address <> ? AND p.role <> 'guest' ORDER BY a.id
        """,
        (turn.reply_conversation, turn.agent),
    ).fetchall()
    return ", ".join(row["name"] for row in rows) or None


class Waiting(NamedTuple):
    """Mail that waits for a session."""

    id: int
    sender: str
    text: str


def waiting(connection: Connection | Tx, agent: int, limit: int = 10) -> list[Waiting]:
    """Return the mail that is due for an agent, the first of it."""
    rows = connection.execute(
        """
        SELECT e.id, a.kind || ':' || a.name AS sender, ifnull(m.subject, substr(m.text, 1, 1000)) AS text
        FROM (SELECT id, message FROM envelope INDEXED BY envelope_due
              WHERE recipient = ? AND binding IS NULL AND status = 0 AND arrived IS NOT NULL AND waits IS NULL
                AND held_by IS NULL AND priority < ?
              ORDER BY priority, arrived LIMIT ?) e
        JOIN message m ON m.id = e.message JOIN address a ON a.id = m.sender
        """,
        (agent, int(Priority.NOTICE), limit),
    ).fetchall()
    return [Waiting(int(row["id"]), str(row["sender"]), str(row["text"])) for row in rows]


def answer_by_hand(tx: Tx, agent: int, replied_to: tuple[str, int], now: int) -> None:
    """An open session answers mail itself, beside its turns: that mail is done, if it was waiting."""
    kind, number = replied_to
    rows = tx.execute(
        """
        SELECT id FROM envelope INDEXED BY envelope_message
        WHERE message = iif(?1 = 'envelope', (SELECT message FROM envelope WHERE id = ?2), ?2)
          AND recipient = ?3 AND status = 0 AND arrived IS NOT NULL AND waits IS NULL AND held_by IS NULL
        """,
        (kind, number, agent),
    ).fetchall()
    for row in rows:
        envelope_marks.acknowledge(tx, row["id"], now)


def has(connection: Connection | Tx, envelope: int) -> bool:
    """Tell whether an open session has an envelope now."""
    row = connection.execute(
        """
        SELECT 1 FROM run_envelope x INDEXED BY run_envelope_envelope JOIN run r ON r.id = x.run
        WHERE x.envelope = ? AND r.status = 'running' AND r.attached IS NOT NULL
        """,
        (envelope,),
    ).fetchone()
    return row is not None


def is_settled(connection: Connection | Tx, turn: Turn) -> bool:
    """Tell whether nothing is left to do of a turn: somebody has settled all its envelopes meanwhile."""
    marks = ",".join("?" * len(turn.envelopes))
    query = f"SELECT 1 FROM envelope WHERE id IN ({marks}) AND status = 0 LIMIT 1"
    return connection.execute(query, turn.envelopes).fetchone() is None


def was_of(connection: Connection | Tx, run: int, session: int) -> bool:
    """Tell whether a run was a turn of a session."""
    query = "SELECT 1 FROM run WHERE id = ? AND attached = ?"
    return connection.execute(query, (run, session)).fetchone() is not None
