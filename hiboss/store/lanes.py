"""Lanes: claim what is due for a place, and settle its outcome.

A row of `lane` exists only for a lane that is or was paused, or had a failure. What takes a
Tx runs inside the writer.
"""

from __future__ import annotations

from ..core.address import BOSS
from ..core.contracts.failures import Failure
from ..core.envelope import Lane
from . import due_envelopes, envelopes, notices, posts
from .connection import Connection, Row
from .envelope_rows import EnvelopeRow
from .group_commit import Tx

GIVE_UP_MS = 24 * 3600 * 1000
GIVE_UP_FAILURES = 10
EAGER_MS = 5_000  # new activity retries a waiting lane, at most this often


# --- claiming ------------------------------------------------------------------------


def claim(tx: Tx, lane: Lane, now: int, boot: int, *, eager: bool = False) -> EnvelopeRow | None:
    """Hold the next envelope of a lane and return it; None if there is nothing to do now."""
    state = get(tx, lane)
    if not may_start(state, now, eager=eager):
        return None
    found = due_envelopes.due(tx, lane.address, now, 1, binding=lane.binding)
    if not found:
        return None
    if state is not None:
        mark_tried(tx, state, now)
    envelopes.hold(tx, found[0].id, boot)
    facts: EnvelopeRow = dict(tx.execute(_TO_POST, (found[0].id,)).fetchone())
    facts["posted"] = posts.posted(tx, found[0].id)
    facts["platform_reply_to"] = _platform_id(tx, facts["reply_to"], lane) if facts["reply_to"] else None
    return facts


# Only the columns of a letter: a full envelope has four times as many.
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


def _platform_id(tx: Tx, message: int, lane: Lane) -> str | None:
    """Return the platform's id of the message replied to; None if it is not on the platform."""
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


def may_start(state: Row | None, now: int, *, eager: bool) -> bool:
    """Tell whether a lane may deliver something now."""
    if state is None:
        return True
    if state["state"] == "waiting":
        if state["not_before"] is not None and now < state["not_before"]:
            return False
        return eager and abs(now - (state["tried_at"] or 0)) >= EAGER_MS  # abs: a clock set back
    return bool(state["state"] == "open")


def mark_tried(tx: Tx, state: Row, now: int) -> None:
    """Open a lane that has a row, and store that it was tried now."""
    tx.execute(
        "UPDATE lane SET state = 'open', wake_at = NULL, not_before = NULL, tried_at = ? WHERE id = ?",
        (now, state["id"]),
    )


# --- settling ------------------------------------------------------------------------


def done(tx: Tx, lane: Lane, envelope: int, now: int) -> None:
    """Settle an envelope as done."""
    envelopes.done(tx, envelope, now)
    recovered(tx, lane)


def recovered(tx: Tx, lane: Lane) -> None:
    """Clear the failures of a lane: the platform answered, even if only to refuse one envelope."""
    tx.execute(
        """
        UPDATE lane SET failures = 0, first_failed_at = NULL, not_before = NULL, error_kind = NULL,
               error_text = NULL, error_at = NULL, boss_told_at = NULL
        WHERE address = ? AND ifnull(binding, 0) = ? AND failures > 0
        """,
        (lane.address, lane.binding or 0),
    )


def retry_later(
    tx: Tx, lane: Lane, envelope: int, failure: Failure, until: int, now: int, *, told: bool = False
) -> None:
    """Release a held envelope after a lane failure: the lane waits in its order, the boss is told once."""
    if not envelopes.failed_once(tx, envelope, failure, now):
        return  # its binding ended meanwhile, which settled it
    row = record_failure(tx, lane, failure, until, now, told=told)
    # After a day of retries, not after one failure and a day without a running daemon.
    if row["first_failed_at"] <= now - GIVE_UP_MS and row["failures"] >= GIVE_UP_FAILURES:
        _give_up(tx, lane, failure, now)


def record_failure(tx: Tx, lane: Lane, failure: Failure, until: int, now: int, *, told: bool = False) -> Row:
    """Store a failure of a lane: it waits until a time, and the boss is told once. Return its row.

    `told`: the platform named that time, so nothing is tried before it.
    """
    row: Row = tx.execute(
        """
        INSERT INTO lane (address, binding, state, wake_at, failures, first_failed_at, error_kind,
                          error_text, error_at, tried_at, not_before)
        VALUES (?1, ?2, 'waiting', ?3, 1, ?4, ?5, ?6, ?4, ?4, ?7)
        ON CONFLICT (address, ifnull(binding, 0)) DO UPDATE SET
            state = CASE state WHEN 'paused' THEN 'paused' ELSE 'waiting' END,
            wake_at = CASE state WHEN 'paused' THEN NULL ELSE ?3 END,
            failures = failures + 1, first_failed_at = ifnull(first_failed_at, ?4),
            error_kind = ?5, error_text = ?6, error_at = ?4, tried_at = ?4, not_before = ?7
        RETURNING id, failures, first_failed_at, boss_told_at
        """,
        (lane.address, lane.binding, until, now, failure.kind, failure.text, until if told else None),
    ).fetchone()
    if row["boss_told_at"] is None:
        notices.tell_boss_of_lane(tx, lane.address, failure.text, now)
        tx.execute("UPDATE lane SET boss_told_at = ? WHERE id = ?", (now, row["id"]))
    return row


def failing_seconds(tx: Tx | Connection, lane: Lane, now: int) -> float:
    """Return for how long a lane has failed; 0 if it has not."""
    state = get(tx, lane)
    if state is None or state["first_failed_at"] is None:
        return 0.0
    return max(0.0, (now - int(state["first_failed_at"])) / 1000)


def _give_up(tx: Tx, lane: Lane, failure: Failure, now: int) -> None:
    """Fail the envelopes that this lane could not deliver for a day."""
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
    """Give up envelopes: they stay stored, and each sender except `not_told` gets one notice.

    `tried`: count one more attempt.
    """
    senders: dict[int, list[Row]] = {}
    for number in numbers:
        if not envelopes.fail(tx, number, failure, now, tried=tried):
            continue  # settled meanwhile; its sender was told then
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


def retry_held_later(tx: Tx, lane: Lane, failure: Failure, until: int, now: int) -> None:
    """Release everything this lane holds after a failure (see `retry_later`)."""
    for number in envelopes.held(tx, lane):
        retry_later(tx, lane, number, failure, until, now)


def free_after_crash(tx: Tx, now: int) -> int:
    """Free everything that a daemon held when it crashed; return how much.

    What was in hand at several crashes in a row is given up and the boss is told: no work may
    crash the daemon for ever.
    """
    freed, suspects = envelopes.free_after_crash(tx)
    if suspects:
        boss = tx.cache.live_address(BOSS)
        text = f"the daemon crashed {envelopes.CRASHES} times in a row while it was being delivered"
        fail(tx, suspects, Failure("crashed", text), now, not_told=boss.id if boss else None)
        notices.tell_boss_of_crashes(tx, suspects, text, now)
    return freed


# --- reading, pausing, resuming ------------------------------------------------------


def get(connection: Tx | Connection, lane: Lane) -> Row | None:
    """Return the row of a lane; None if it never was paused and never failed."""
    row: Row | None = connection.execute(
        "SELECT * FROM lane WHERE address = ? AND ifnull(binding, 0) = ?", (lane.address, lane.binding or 0)
    ).fetchone()
    return row


def of_address(connection: Tx | Connection, address: int) -> list[Lane]:
    """Return the lanes of an address: an agent's own, or one for each binding that may post there."""
    rows = connection.execute(
        """
        SELECT binding FROM lane WHERE address = ?1
        UNION SELECT c.binding FROM contact c JOIN binding b ON b.id = c.binding AND b.removed_at IS NULL
        WHERE c.address = ?1
        UNION SELECT NULL FROM agent WHERE address = ?1 AND deleted_at IS NULL
        """,
        (address,),
    ).fetchall()
    return [Lane(address, row["binding"]) for row in rows]


def reopen_after_clock_change(tx: Tx, now: int) -> list[Lane]:
    """Open and return the lanes that were tried in the future: the clock was set back since."""
    rows = tx.execute(
        """
        UPDATE lane SET state = 'open', wake_at = NULL, not_before = NULL, tried_at = NULL
        WHERE state = 'waiting' AND tried_at > ? RETURNING address, binding
        """,
        (now,),
    ).fetchall()
    return [Lane(row["address"], row["binding"]) for row in rows]


def reopen_binding(tx: Tx, binding: int, now: int) -> None:
    """Open the waiting lanes of a binding, because its adapter runs again; not those told to wait."""
    tx.execute(
        """
        UPDATE lane SET state = 'open', wake_at = NULL
        WHERE binding = ? AND state = 'waiting' AND ifnull(not_before, 0) <= ?
        """,
        (binding, now),
    )


def with_work(connection: Connection, binding: int) -> list[Lane]:
    """Return the lanes of a binding in which something is due: one lookup for each place."""
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


def list_all(connection: Connection) -> list[Row]:
    """Return all lanes of active bindings, and all others with a row, with state, failures and number due."""
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
        JOIN address a ON a.id = p.id AND a.retired_at IS NULL
        LEFT JOIN lane l ON l.address = p.id AND ifnull(l.binding, 0) = ifnull(p.binding, 0)
        ORDER BY a.fold, p.binding
        """
    ).fetchall()


def pause(tx: Tx, lane: Lane, now: int) -> bool:
    """Pause a lane; return whether it was not paused before."""
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
    """Open a lane at once if it is in one of these states; return whether it was."""
    marks = ",".join("?" * len(states))
    return bool(
        tx.execute(
            f"""
            UPDATE lane SET state = 'open', wake_at = NULL, not_before = NULL, tried_at = NULL
            WHERE address = ? AND ifnull(binding, 0) = ? AND state IN ({marks})
            """,
            (lane.address, lane.binding or 0, *states),
        ).rowcount
    )
