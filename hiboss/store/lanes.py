"""Lanes: claim what is due for a place, and settle its outcome.

A row of `lane` exists only for a lane that is or was paused, had a failure, or has posted a part of
an envelope. The row without an address is that of a whole account (`Lane.account`): while the account
fails, one lane of the binding at a time tries it, and no other posts anything. What takes a Tx runs
inside the writer.
"""

from __future__ import annotations

from ..core.address import BOSS
from ..core.contracts.failures import Failure
from ..core.envelope import Lane
from . import breaker_holds, deleted_envelopes, due_envelopes, envelopes, forwarding, notices, posts
from .connection import Connection, Row
from .envelope_rows import EnvelopeRow
from .giving_up import CRASHED
from .giving_up import fail as fail
from .group_commit import Tx
from .lane_facts import tell_open, tell_waiting
from .lane_index import BINDING as BINDING
from .lane_index import PLACE as PLACE
from .stray_forwards import IN_HIS_CHAT, STRAYS, strays

EAGER_MS = 5_000  # new activity retries a waiting lane, at most this often


# --- claiming ------------------------------------------------------------------------


def claim(
    tx: Tx, lane: Lane, now: int, boot: int, *, eager: bool = False, answers_first: bool = False
) -> EnvelopeRow | None:
    """Hold the next envelope of a lane and return it; None if there is nothing to do now.

    `answers_first`: the answer of a run goes before what came earlier.
    """
    states = tx.execute(_STATES, (lane.address, lane.binding or 0)).fetchall()
    if not all(may_start(state, now, eager=eager) for state in states):
        return None
    while True:
        number = _next(tx, lane, states, now, answers_first=answers_first)
        if number is None:
            return None
        facts: EnvelopeRow = dict(tx.execute(_TO_POST, (number,)).fetchone())
        if facts["deleted_at"] is not None:  # while it was in hand
            deleted_envelopes.end(tx, number, now)
        elif not facts["strays"]:
            break
        else:
            forwarding.go_elsewhere(tx, number, facts["forwards"], now)
    for state in states:
        mark_tried(tx, state, now)
    envelopes.hold(tx, number, boot, now)
    facts["handovers"] += 1
    facts["posted"] = posts.posted(tx, number) if facts["handovers"] > 1 else []  # the first time: none
    facts["platform_reply_to"] = posts.quoted(tx, facts["reply_to"], lane) if facts["reply_to"] else None
    return facts


_STATES = f"SELECT * FROM lane WHERE {PLACE} IN (?, 0) AND {BINDING} = ?"  # of a lane and of its account


def _next(tx: Tx, lane: Lane, states: list[Row], now: int, *, answers_first: bool) -> int | None:
    """Return the envelope to post next: one that is partly posted, else the first that is due."""
    if breaker_holds.are_in(tx, lane):
        return breaker_holds.next_passing(tx, lane)
    for state in states:
        if state["partly_posted"] is not None:
            row = tx.execute(
                "SELECT id FROM envelope WHERE id = ? AND status = 0 AND waits IS NULL AND held_by IS NULL",
                (state["partly_posted"],),
            ).fetchone()
            if row is not None:
                return int(row["id"])
    answer = due_envelopes.first_answer(tx, lane, now) if answers_first else None
    if answer is not None:
        return answer
    found = due_envelopes.due(tx, lane.address, now, 1, binding=lane.binding)
    return found[0].id if found else None


# Of an envelope `e` whose sender `g` is an agent: whether other agents write in that chat too.
SEVERAL_WRITE = """
    (g.address IS NOT NULL AND (SELECT count(*) FROM binding_agent ba WHERE ba.binding = e.binding) > 1)
"""
# Only the columns of a letter: a full envelope has four times as many.
_TO_POST = f"""
    SELECT e.id, e.handovers, e.message, m.run, m.text, m.type, m.parse_mode, m.subject, m.attachments,
           m.reply_to, m.deleted_at, m.arrived_at,
           s.kind || ':' || s.name AS from_address, r.kind || ':' || r.name AS to_address,
           coalesce(m.from_name, u.name, g.display) AS from_name,
           e.forwards, ({IN_HIS_CHAT} OR {SEVERAL_WRITE}) AS named, {STRAYS} AS strays,
           EXISTS (SELECT 1 FROM button b WHERE b.message = m.id) AS has_buttons,
           l.gone_at AS topic_gone_at
    FROM envelope e
    JOIN message m ON m.id = e.message
    JOIN address s ON s.id = m.sender
    JOIN address r ON r.id = e.recipient
    LEFT JOIN user u ON u.address = m.sender
    LEFT JOIN agent g ON g.address = m.sender
    LEFT JOIN place l ON l.address = e.recipient AND l.binding = e.binding
    WHERE e.id = ?
"""


def to_post(connection: Connection | Tx, number: int, lane: Lane) -> EnvelopeRow:
    """Return what the letter of an envelope is made of, as `claim` does, without holding it."""
    facts: EnvelopeRow = dict(connection.execute(_TO_POST, (number,)).fetchone())
    facts["platform_reply_to"] = (
        posts.quoted(connection, facts["reply_to"], lane) if facts["reply_to"] else None
    )
    return facts


def present(tx: Tx, lane: Lane, envelope: int) -> Lane:
    """Return the lane that an envelope in hand belongs to now: another one if two chats became one."""
    row = tx.execute("SELECT recipient FROM envelope WHERE id = ?", (envelope,)).fetchone()
    return lane if row is None else Lane(row["recipient"], lane.binding)


def may_start(state: Row | None, now: int, *, eager: bool) -> bool:
    """Tell whether a lane may deliver something now."""
    if state is None:
        return True
    if state["state"] == "waiting":
        if state["not_before"] is not None and now < state["not_before"]:
            return False
        return eager and abs(now - (state["tried_at"] or 0)) >= EAGER_MS  # abs: a clock set back
    return bool(state["state"] == "open")


def may_go_on(tx: Tx, lane: Lane, envelope: int, now: int) -> bool:
    """Tell whether the next chunk of a message may be posted.

    Not if its lane was paused meanwhile, or its account: that was told to wait, or is not bound any more.
    Nor if it is a forward, and the chat is not the boss's any more, nor if its message was deleted, nor if
    the breaker was pulled and it holds.
    """
    states = tx.execute(_STATES, (lane.address, lane.binding or 0)).fetchall()
    is_open = all(state["state"] != "paused" and (state["not_before"] or 0) <= now for state in states)
    ends = strays(tx, envelope) or deleted_envelopes.is_deleted(tx, envelope)
    return is_open and not ends and not breaker_holds.holds_post(tx, envelope)


def told_until(connection: Tx | Connection, lane: Lane) -> int:
    """Return the time before which the platform wants nothing to be tried in a lane; 0: it named none."""
    states = connection.execute(_STATES, (lane.address, lane.binding or 0)).fetchall()
    return max((state["not_before"] or 0 for state in states), default=0)


def is_paused(connection: Tx | Connection, lane: Lane) -> bool:
    """Tell whether somebody has paused a lane, or its account has ended."""
    states = connection.execute(_STATES, (lane.address, lane.binding or 0)).fetchall()
    return any(state["state"] == "paused" for state in states)


def is_open(connection: Tx | Connection, lane: Lane, now: int) -> bool:
    """Tell whether nothing speaks against showing something in a place now: no failure, no pause, no wait."""
    states = connection.execute(_STATES, (lane.address, lane.binding or 0)).fetchall()
    return all(state["state"] == "open" and (state["not_before"] or 0) <= now for state in states)


def mark_tried(tx: Tx, state: Row, now: int) -> None:
    """Open a lane that waited or failed, and store that it was tried now. An account is then `trying`."""
    if state["state"] == "open" and not state["failures"]:
        return
    tx.execute(
        """
        UPDATE lane SET state = CASE WHEN address IS NULL AND failures > 0 THEN 'trying' ELSE 'open' END,
               wake_at = NULL, not_before = NULL, tried_at = ?
        WHERE id = ?
        """,
        (now, state["id"]),
    )
    if state["state"] == "waiting":
        tell_open(tx, state["address"], state["binding"], now)


# --- settling ------------------------------------------------------------------------


def done(tx: Tx, lane: Lane, envelope: int, now: int) -> bool:
    """Settle an envelope as done. Return whether this shows that its account works again."""
    envelopes.done(tx, envelope, now)
    return _works(tx, lane, now)


def refused(tx: Tx, lane: Lane, envelope: int, failure: Failure, now: int) -> bool:
    """Give up an envelope that the platform does not accept. Return whether its account works again."""
    fail(tx, [envelope], failure, now, tried=True)
    return _works(tx, lane, now)


def _works(tx: Tx, lane: Lane, now: int) -> bool:
    """Note that a lane and its account work. Return whether the account did not before."""
    # One look first: nearly always there is nothing to change.
    if not tx.execute(_TROUBLED, (lane.address, lane.binding or 0)).fetchone():
        return False
    recovered(tx, lane)
    return account_recovered(tx, lane, now)


_TROUBLED = f"""
    SELECT 1 FROM lane WHERE {PLACE} IN (?, 0) AND {BINDING} = ?
       AND (failures > 0 OR partly_posted IS NOT NULL)
"""


def recovered(tx: Tx, lane: Lane) -> None:
    """Clear the failures of a lane: the platform answered, even if only to refuse one envelope."""
    tx.execute(
        f"""
        UPDATE lane SET failures = 0, first_failed_at = NULL, error_kind = NULL, error_text = NULL,
               error_at = NULL, boss_told_at = NULL,
               -- What is partly posted, and was passed by another one, still goes before the rest.
               partly_posted = (SELECT id FROM envelope WHERE id = partly_posted AND status = 0),
               -- Meanwhile another topic of the chat was told to wait: that holds here too.
               not_before = iif(state = 'waiting', not_before, NULL)
        WHERE {PLACE} = ? AND {BINDING} = ? AND (failures > 0 OR partly_posted IS NOT NULL)
        """,
        (lane.address, lane.binding or 0),
    )


def account_recovered(tx: Tx, lane: Lane, now: int) -> bool:
    """Open the account of a lane that has failures, for all its lanes; return whether there was one.

    Not before a time that the platform named: what got through was sent before that.
    """
    changed = tx.execute(
        f"""
        UPDATE lane SET state = 'open', wake_at = NULL, failures = 0, first_failed_at = NULL,
               not_before = NULL, error_kind = NULL, error_text = NULL, error_at = NULL,
               boss_told_at = NULL
        WHERE {PLACE} = 0 AND {BINDING} = ? AND failures > 0 AND ifnull(not_before, 0) <= ?
        """,
        (lane.binding or 0, now),
    ).rowcount
    if changed:
        tell_open(tx, None, lane.binding, now)
    return bool(changed)


def note_partly_posted(tx: Tx, lane: Lane, envelope: int) -> None:
    """Store that some chunks of an envelope are posted: it goes before everything else in its lane.

    Not if the breaker holds another one that was begun: that one is the next when it is released.
    """
    if breaker_holds.holds_begun(tx, lane, envelope):
        return
    tx.execute(
        f"""
        INSERT INTO lane (address, binding, partly_posted)
        SELECT ?1, ?2, ?3 FROM binding WHERE id = ?2 AND removed_at IS NULL
        ON CONFLICT ({PLACE}, {BINDING}) DO UPDATE SET partly_posted = ?3
        """,
        (lane.address, lane.binding, envelope),
    )


# --- holds ---------------------------------------------------------------------------


def free_all(tx: Tx) -> int:
    """Free everything that this daemon holds, because it stops; return how much."""
    end_trials(tx)
    return envelopes.free_all(tx)


def end_trials(tx: Tx) -> None:
    """Open the accounts that are being tried: what was being delivered is not any more."""
    tx.execute("UPDATE lane SET state = 'open' WHERE state = 'trying'")


def free_after_crash(tx: Tx, now: int) -> int:
    """Free everything that a daemon held when it crashed; return how much.

    What was in hand at several crashes in a row is given up and the boss is told: no work may
    crash the daemon for ever.
    """
    freed, suspects = envelopes.free_after_crash(tx)
    end_trials(tx)
    if suspects:
        boss = tx.cache.live_address(BOSS)
        text = f"the daemon crashed {envelopes.CRASHES} times in a row while it was being delivered"
        fail(tx, suspects, Failure(CRASHED, text), now, not_told=boss.id if boss else None)
        notices.tell_boss_of_crashes(tx, suspects, text, now)
    return freed


# --- reading, pausing, resuming ------------------------------------------------------


def get(connection: Tx | Connection, lane: Lane) -> Row | None:
    """Return the row of a lane; None if it never was paused and never failed."""
    row: Row | None = connection.execute(
        f"SELECT * FROM lane WHERE {PLACE} = ? AND {BINDING} = ?", (lane.address, lane.binding or 0)
    ).fetchone()
    return row


def of_address(connection: Tx | Connection, address: int) -> list[Lane]:
    """Return the lanes of an address: an agent's own, or one for each binding that may post there."""
    rows = connection.execute(
        f"""
        SELECT binding FROM lane WHERE {PLACE} = ?1
        UNION SELECT p.binding FROM place p JOIN binding b ON b.id = p.binding AND b.removed_at IS NULL
        WHERE p.address = ?1
        UNION SELECT NULL FROM agent WHERE address = ?1 AND deleted_at IS NULL
        """,
        (address,),
    ).fetchall()
    return [Lane(address, row["binding"]) for row in rows]


def move_waits(tx: Tx, step: int) -> None:
    """Move the waits of all lanes by `step` milliseconds, because the clock was set by so much."""
    tx.execute(
        """
        UPDATE lane SET wake_at = wake_at + ?1, not_before = not_before + ?1, tried_at = tried_at + ?1,
               first_failed_at = first_failed_at + ?1
        """,
        (step,),
    )


def reopen_binding(tx: Tx, binding: int, now: int) -> None:
    """Open the waiting lanes of a binding, because its adapter runs again; not those told to wait."""
    if (row := get(tx, Lane(0, binding))) is not None and row["error_kind"] == "adapter_down":
        account_recovered(tx, Lane(0, binding), now)
    _open_waiting(tx, "binding", binding, now)


def open_renamed(tx: Tx, address: int, now: int) -> None:
    """Open the waiting lanes of a place whose chat has another id: what failed was the old one.

    Not those told to wait.
    """
    _open_waiting(tx, "address", address, now)


def _open_waiting(tx: Tx, column: str, number: int, now: int) -> None:
    rows = tx.execute(
        f"""
        UPDATE lane SET state = 'open', wake_at = NULL
        WHERE {column} = ? AND state = 'waiting' AND ifnull(not_before, 0) <= ? RETURNING address, binding
        """,
        (number, now),
    ).fetchall()
    for row in rows:
        tell_open(tx, row["address"], row["binding"], now)


def places(tx: Tx | Connection, binding: int | None) -> list[int]:
    """Return the address ids of the places where a binding may post."""
    rows = tx.execute("SELECT address FROM place WHERE binding = ?", (binding,))
    return [row["address"] for row in rows]


def with_work(connection: Connection, binding: int) -> list[Lane]:
    """Return the lanes of a binding in which something is due: one lookup for each place."""
    rows = connection.execute(
        """
        SELECT p.address FROM place p
        WHERE p.binding = ?1 AND EXISTS (
            SELECT 1 FROM envelope e INDEXED BY envelope_due
            WHERE e.recipient = p.address AND e.binding = ?1 AND e.status = 0 AND e.arrived IS NOT NULL
              AND e.waits IS NULL)
        """,
        (binding,),
    ).fetchall()
    return [Lane(row["address"], binding) for row in rows]


def list_all(connection: Connection) -> list[Row]:
    """Return all lanes of active bindings, and all others with a row, with state, failures and number due.

    A lane whose account waits shows the state and the failures of the account (`scope`).
    """
    return connection.execute(
        """
        SELECT a.kind || ':' || a.name AS address, p.id AS address_id, p.binding,
               CASE WHEN l.state = 'paused' THEN 'paused' WHEN c.state IN ('waiting', 'trying') THEN 'waiting'
                    ELSE ifnull(l.state, 'open') END AS state,
               CASE WHEN ifnull(f.failures, 0) = 0 THEN NULL WHEN f.address IS NULL THEN 'account'
                    ELSE 'lane' END AS scope,
               f.wake_at, ifnull(f.failures, 0) AS failures, f.first_failed_at, f.error_kind, f.error_text,
               f.error_at, f.tried_at,
               (SELECT count(*) FROM envelope e INDEXED BY envelope_due
                WHERE e.recipient = p.id AND e.binding IS p.binding AND e.status = 0
                  AND e.arrived IS NOT NULL AND e.waits IS NULL) AS due
        FROM (SELECT place.address AS id, place.binding FROM place
              JOIN binding b ON b.id = place.binding AND b.removed_at IS NULL
              UNION SELECT address, binding FROM lane WHERE address IS NOT NULL) p
        JOIN address a ON a.id = p.id AND a.retired_at IS NULL
        LEFT JOIN lane l ON ifnull(l.address, 0) = p.id AND ifnull(l.binding, 0) = ifnull(p.binding, 0)
        LEFT JOIN lane c ON ifnull(c.address, 0) = 0 AND ifnull(c.binding, 0) = p.binding AND c.failures > 0
        LEFT JOIN lane f ON f.id = ifnull(c.id, l.id)
        ORDER BY a.fold, p.binding
        """
    ).fetchall()


def pause(tx: Tx, lane: Lane, now: int) -> bool:
    """Pause a lane; return whether it was not paused before."""
    changed = tx.execute(
        f"""
        INSERT INTO lane (address, binding, state) VALUES (?1, ?2, 'paused')
        ON CONFLICT ({PLACE}, {BINDING}) DO UPDATE SET state = 'paused', wake_at = NULL
        WHERE state <> 'paused'
        """,
        (lane.address, lane.binding),
    ).rowcount
    if changed:
        tell_waiting(tx, lane, None, now)
    return bool(changed)


def resume(tx: Tx, lane: Lane, now: int) -> Row | None:
    """End the pause of a lane: it is open, or waits until a time that the platform named (`wake_at`).

    None if it was not paused. A run that was paused with it is for the caller (run_pauses.py).
    """
    row: Row | None = tx.execute(
        f"""
        UPDATE lane SET state = iif(not_before > ?3, 'waiting', 'open'),
               wake_at = iif(not_before > ?3, not_before, NULL), tried_at = NULL, paused_run = NULL
        WHERE {PLACE} = ?1 AND {BINDING} = ?2 AND state = 'paused' RETURNING wake_at
        """,
        (lane.address, lane.binding or 0, now),
    ).fetchone()
    if row is not None and row["wake_at"] is None:
        tell_open(tx, lane.address, lane.binding, now)
    elif row is not None:
        tell_waiting(tx, lane, row["wake_at"], now)
    return row


def reopen(tx: Tx, lane: Lane, now: int) -> bool:
    """Open a waiting lane at once, also before a time that the platform named; return whether it waited."""
    changed = tx.execute(
        f"""
        UPDATE lane SET state = 'open', wake_at = NULL, not_before = NULL, tried_at = NULL
        WHERE {PLACE} = ? AND {BINDING} = ? AND state = 'waiting'
        """,
        (lane.address, lane.binding or 0),
    ).rowcount
    if changed:
        tell_open(tx, lane.address or None, lane.binding, now)
    return bool(changed)
