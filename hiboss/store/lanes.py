"""Lanes: claiming what is due for a place, and settling what came of it.

A row of `lane` exists only for a lane that has something to say: that it is paused, or
what it has met. Everything here runs inside the writer.
"""

from __future__ import annotations

from ..core.contracts.failures import Failure
from ..core.envelope import Lane
from . import due_envelopes, notices, posts
from .connection import Connection, Row
from .envelopes import NEXT_START, EnvelopeRow
from .group_commit import Tx

GIVE_UP_MS = 24 * 3600 * 1000
GIVE_UP_FAILURES = 10
EAGER_MS = 5_000  # new activity tries a waiting lane again, at most so often


# --- claiming ------------------------------------------------------------------------


def claim(tx: Tx, lane: Lane, now: int, boot: int, *, eager: bool = False) -> EnvelopeRow | None:
    """The next envelope of a lane, marked as in hand; None when there is nothing to do now."""
    state = get(tx, lane)
    if not may_go(state, now, eager=eager):
        return None
    found = due_envelopes.due(tx, lane.address, now, 1, binding=lane.binding)
    if not found:
        return None
    if state is not None:
        tried(tx, state, now)
    # Before it is handed over: whatever happens now, we know that it may have been.
    tx.execute(
        "UPDATE envelope SET held_by = ?, wake_at = ?, handovers = handovers + 1 WHERE id = ?",
        (boot, NEXT_START, found[0].id),
    )
    facts: EnvelopeRow = dict(tx.execute(_TO_POST, (found[0].id,)).fetchone())
    facts["posted"] = posts.posted(tx, found[0].id)
    facts["platform_reply_to"] = _answered(tx, facts["reply_to"], lane) if facts["reply_to"] else None
    return facts


# What a letter is made of, and no more: a full envelope has four times as many columns.
_TO_POST = """
    SELECT e.id, m.text, m.type, m.subject, m.attachments, m.reply_to,
           s.kind || ':' || s.name AS from_address, r.kind || ':' || r.name AS to_address,
           coalesce(m.from_name, u.name, g.display) AS from_name
    FROM envelope e
    JOIN message m ON m.id = e.message
    JOIN address s ON s.id = m.sender
    JOIN address r ON r.id = e.recipient
    LEFT JOIN user u ON u.address = m.sender
    LEFT JOIN agent g ON g.address = m.sender
    WHERE e.id = ?
"""


def _answered(tx: Tx, message: int, lane: Lane) -> str | None:
    """What the platform calls the message this replies to, if it lies there too."""
    row = tx.execute(
        """
        SELECT platform_id FROM platform_update WHERE message = ?1 AND binding = ?2
        UNION ALL
        SELECT p.platform_id FROM envelope e INDEXED BY envelope_message
        JOIN post p ON p.envelope = e.id AND p.chunk = 0
        WHERE e.message = ?1 AND e.recipient = ?3 AND e.binding = ?2
        LIMIT 1
        """,
        (message, lane.binding, lane.address),
    ).fetchone()
    return row["platform_id"] if row else None


def may_go(state: Row | None, now: int, *, eager: bool) -> bool:
    """Whether a lane may take something in hand now."""
    if state is None:
        return True
    if state["state"] == "waiting":
        return eager and abs(now - (state["tried_at"] or 0)) >= EAGER_MS  # a clock set back has waited too
    return bool(state["state"] == "open")


def tried(tx: Tx, state: Row, now: int) -> None:
    """A lane with something to say takes something in hand again."""
    tx.execute(
        "UPDATE lane SET state = 'open', wake_at = NULL, tried_at = ? WHERE id = ?", (now, state["id"])
    )


# --- settling ------------------------------------------------------------------------


def done(tx: Tx, lane: Lane, envelope: int, now: int) -> None:
    tx.execute(
        "UPDATE envelope SET status = 1, done_at = ?, held_by = NULL, wake_at = NULL WHERE id = ?",
        (now, envelope),
    )
    recovered(tx, lane)


def recovered(tx: Tx, lane: Lane) -> None:
    """The platform answered, if only about one envelope: whatever this lane had met is over."""
    tx.execute(
        """
        UPDATE lane SET failures = 0, first_failed_at = NULL, error_kind = NULL, error_text = NULL,
               error_at = NULL, boss_told_at = NULL
        WHERE address = ? AND ifnull(binding, 0) = ? AND failures > 0
        """,
        (lane.address, lane.binding or 0),
    )


def waits(tx: Tx, lane: Lane, envelope: int, failure: Failure, until: int, now: int) -> None:
    """Nothing gets through: the lane waits, in its order, and the boss is told once."""
    held = tx.execute("SELECT held_by FROM envelope WHERE id = ?", (envelope,)).fetchone()[0]
    if held is None:
        return  # its binding ended meanwhile, and it was settled with that
    tx.execute(
        """
        UPDATE envelope SET held_by = NULL, wake_at = NULL, attempts = attempts + 1,
               error_kind = ?1, error_text = ?2, error_at = ?3, first_failed_at = ifnull(first_failed_at, ?3)
        WHERE id = ?4
        """,
        (failure.kind, failure.text, now, envelope),
    )
    row = meets(tx, lane, failure, until, now)
    # A day of trying, not a day asleep after one failure.
    if row["first_failed_at"] <= now - GIVE_UP_MS and row["failures"] >= GIVE_UP_FAILURES:
        _give_up(tx, lane, failure, now)


def meets(tx: Tx, lane: Lane, failure: Failure, until: int, now: int) -> Row:
    """A lane has met something that stops it: it waits, and the boss is told once."""
    row: Row = tx.execute(
        """
        INSERT INTO lane (address, binding, state, wake_at, failures, first_failed_at, error_kind,
                          error_text, error_at, tried_at)
        VALUES (?1, ?2, 'waiting', ?3, 1, ?4, ?5, ?6, ?4, ?4)
        ON CONFLICT (address, ifnull(binding, 0)) DO UPDATE SET
            state = CASE state WHEN 'paused' THEN 'paused' ELSE 'waiting' END,
            wake_at = CASE state WHEN 'paused' THEN NULL ELSE ?3 END,
            failures = failures + 1, first_failed_at = ifnull(first_failed_at, ?4),
            error_kind = ?5, error_text = ?6, error_at = ?4, tried_at = ?4
        RETURNING id, failures, first_failed_at, boss_told_at
        """,
        (lane.address, lane.binding, until, now, failure.kind, failure.text),
    ).fetchone()
    if row["boss_told_at"] is None:
        notices.tell_boss_of_lane(tx, lane.address, failure.text, now)
        tx.execute("UPDATE lane SET boss_told_at = ? WHERE id = ?", (now, row["id"]))
    return row


def failures(tx: Tx | Connection, lane: Lane) -> int:
    state = get(tx, lane)
    return int(state["failures"]) if state is not None else 0


def _give_up(tx: Tx, lane: Lane, failure: Failure, now: int) -> None:
    """What this lane has failed to deliver for a day."""
    rows = tx.execute(
        """
        SELECT e.id FROM envelope e INDEXED BY envelope_due JOIN message m ON m.id = e.message
        WHERE e.recipient = ? AND e.binding IS ? AND e.status = 0 AND e.arrived IS NOT NULL
          AND e.waits IS NULL AND e.held_by IS NULL AND ifnull(e.first_failed_at, m.arrived_at) <= ?
        """,
        (lane.address, lane.binding, now - GIVE_UP_MS),
    ).fetchall()
    fail(tx, [row["id"] for row in rows], failure, now)


def fail(
    tx: Tx,
    numbers: list[int],
    failure: Failure,
    now: int,
    *,
    tried: bool = False,
    not_told: int | None = None,
) -> None:
    """Give envelopes up: they are kept, and each sender gets one notice, but not `not_told`.

    `tried`: this was one more attempt.
    """
    senders: dict[int, list[Row]] = {}
    for number in numbers:
        failed = tx.execute(
            """
            UPDATE envelope SET status = 2, done_at = ?1, held_by = NULL, waits = NULL, wake_at = NULL,
                   attempts = attempts + ?5, error_kind = ?2, error_text = ?3, error_at = ?1,
                   first_failed_at = ifnull(first_failed_at, ?1)
            WHERE id = ?4 AND status = 0
            """,
            (now, failure.kind, failure.text, number, int(tried)),
        ).rowcount
        if not failed:
            continue  # settled meanwhile, and whoever sent it was told
        row = tx.execute(
            """
            SELECT e.id, e.message, m.sender, a.kind || ':' || a.name AS address
            FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
            WHERE e.id = ?
            """,
            (number,),
        ).fetchone()
        senders.setdefault(row["sender"], []).append(row)
    senders.pop(not_told or 0, None)
    for sender, rows in senders.items():
        notices.tell_sender(tx, sender, rows, failure.text, now, again=failure.kind != "unbound")


# --- holds ---------------------------------------------------------------------------


def broke_off(tx: Tx, lane: Lane, failure: Failure, until: int, now: int) -> None:
    """Whatever this lane has in hand waits with it."""
    rows = tx.execute(
        f"""
        SELECT id FROM envelope INDEXED BY envelope_wake
        WHERE wake_at = {NEXT_START} AND recipient = ? AND binding IS ?
        """,
        (lane.address, lane.binding),
    ).fetchall()
    for row in rows:
        waits(tx, lane, row["id"], failure, until, now)


def free_holds(tx: Tx) -> int:
    """What a daemon had in hand when it ended comes back; that it was handed over stays known."""
    return tx.execute(
        f"""
        UPDATE envelope INDEXED BY envelope_wake SET held_by = NULL, wake_at = NULL
        WHERE wake_at = {NEXT_START}
        """
    ).rowcount


# --- looking and steering ------------------------------------------------------------


def get(connection: Tx | Connection, lane: Lane) -> Row | None:
    row: Row | None = connection.execute(
        "SELECT * FROM lane WHERE address = ? AND ifnull(binding, 0) = ?", (lane.address, lane.binding or 0)
    ).fetchone()
    return row


def of_address(connection: Tx | Connection, address: int) -> list[Lane]:
    """The lanes of a place: one for each binding that has, or had, something for it."""
    rows = connection.execute(
        """
        SELECT binding FROM lane WHERE address = ?1
        UNION SELECT c.binding FROM contact c JOIN binding b ON b.id = c.binding AND b.removed_at IS NULL
        WHERE c.address = ?1
        """,
        (address,),
    ).fetchall()
    return [Lane(address, row["binding"]) for row in rows]


def reopen_early(tx: Tx, now: int) -> list[Lane]:
    """The clock was set back: what was tried in the future need not wait for that to come again."""
    rows = tx.execute(
        """
        UPDATE lane SET state = 'open', wake_at = NULL, tried_at = NULL
        WHERE state = 'waiting' AND tried_at > ? RETURNING address, binding
        """,
        (now,),
    ).fetchall()
    return [Lane(row["address"], row["binding"]) for row in rows]


def reopen_binding(tx: Tx, binding: int) -> None:
    """Its adapter runs again: nothing there has to wait for its time."""
    tx.execute(
        "UPDATE lane SET state = 'open', wake_at = NULL WHERE binding = ? AND state = 'waiting'", (binding,)
    )


def with_work(connection: Connection, binding: int) -> list[Lane]:
    """The lanes of an account in which something is due: one look for each place, however much lies there."""
    rows = connection.execute(
        """
        SELECT DISTINCT c.address FROM contact c
        WHERE c.binding = ?1 AND c.address IS NOT NULL AND EXISTS (
            SELECT 1 FROM envelope e INDEXED BY envelope_due
            WHERE e.recipient = c.address AND e.binding = ?1 AND e.status = 0 AND e.arrived IS NOT NULL
              AND e.waits IS NULL)
        """,
        (binding,),
    ).fetchall()
    return [Lane(row["address"], binding) for row in rows]


def listed(connection: Connection) -> list[Row]:
    """Lanes that have something to say, or something due, with what they have met."""
    return connection.execute(
        """
        SELECT a.kind || ':' || a.name AS address, p.id AS address_id, p.binding,
               ifnull(l.state, 'open') AS state, l.wake_at, ifnull(l.failures, 0) AS failures,
               l.first_failed_at, l.error_kind, l.error_text, l.error_at, l.tried_at,
               (SELECT count(*) FROM envelope e INDEXED BY envelope_due
                WHERE e.recipient = p.id AND e.binding IS p.binding AND e.status = 0
                  AND e.arrived IS NOT NULL AND e.waits IS NULL) AS due
        FROM (SELECT c.address AS id, c.binding FROM contact c
              JOIN binding b ON b.id = c.binding AND b.removed_at IS NULL WHERE c.address IS NOT NULL
              UNION SELECT address, binding FROM lane) p
        JOIN address a ON a.id = p.id
        LEFT JOIN lane l ON l.address = p.id AND ifnull(l.binding, 0) = ifnull(p.binding, 0)
        ORDER BY a.fold, p.binding
        """
    ).fetchall()


def pause(tx: Tx, lane: Lane, now: int) -> bool:
    """Whether it was not paused before."""
    return bool(
        tx.execute(
            """
            INSERT INTO lane (address, binding, state) VALUES (?1, ?2, 'paused')
            ON CONFLICT (address, ifnull(binding, 0)) DO UPDATE SET state = 'paused', wake_at = NULL
            WHERE state <> 'paused'
            """,
            (lane.address, lane.binding),
        ).rowcount
    )


def reopen(tx: Tx, lane: Lane, states: tuple[str, ...]) -> bool:
    """Let it go on at once, if it is in one of these states."""
    marks = ",".join("?" * len(states))
    return bool(
        tx.execute(
            f"""
            UPDATE lane SET state = 'open', wake_at = NULL, tried_at = NULL
            WHERE address = ? AND ifnull(binding, 0) = ? AND state IN ({marks})
            """,
            (lane.address, lane.binding or 0, *states),
        ).rowcount
    )
