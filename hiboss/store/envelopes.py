"""Every change of an envelope on its way: insert, arrive, hold, lease, free, settle, fail, cancel, retry.

What its recipient does with it is in envelope_marks.py, and who has read it in readings.py. No other module
writes to the table. `waits` and `wait_until` say what an envelope waits for; `wake_at`, when the daemon must
look at the row again, is computed from them by the table itself (store/schema), so it is always right. What
takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core import clock, events
from ..core.contracts.failures import Failure
from ..core.envelope import Lane, Priority, Status, Waits
from ..core.errors import TooLate
from . import ack_deadlines, offers, readings, retry_rules
from .envelope_rows import EnvelopeRow, sent
from .group_commit import Tx
from .writer_cache import LiveAddress

NEXT_START = 2**62  # the `wake_at` of held envelopes: the next start of a daemon looks at them
LONGEST_MS = 25 * 3_600_000  # no lease and no wait for a retry is longer
CRASHES = 3  # of the daemon in a row, with the same envelope in hand; then it is given up

_IS_HELD = f"wake_at = {NEXT_START}"
_INSERT = """
INSERT INTO envelope (message, recipient, binding, status, priority, arrived, waits, wait_until, done_at,
                      forwards, addressed, context, routed_from, offered, ack_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# Of mail for an agent: all other columns have their defaults, which need not be bound.
_INSERT_PLAIN = "INSERT INTO envelope (message, recipient, status, priority, arrived) VALUES (?, ?, 0, ?, ?)"


# --- coming in -----------------------------------------------------------------------


def insert(
    tx: Tx,
    message: int,
    recipient: LiveAddress,
    binding: int | None,
    priority: Priority,
    deliver_at: int | None,
    now: int,
    *,
    forwards: int | None = None,
    addressed: bool = False,
    context: bool = False,
    routed_from: int | None = None,
    offered: bool = False,
    ack_by: int | None = None,
) -> int:
    """Insert the envelope of a message for one recipient; without a delivery time it has arrived.

    `forwards`: the envelope in the boss's box that this one posts to a chat of his. `addressed`: its
    sender named that chat. `context`: nobody need do anything with it, nor read it. `routed_from`: for
    whom it was; the recipient itself: it is a copy. `offered`: one of several takes it (offers.py).
    """
    nothing_else = binding is deliver_at is forwards is routed_from is ack_by is None
    if nothing_else and recipient.address.kind == "agent" and not (addressed or context or offered):
        values = message, recipient.id, int(priority), tx.cache.next_arrived()
        return int(tx.execute(_INSERT_PLAIN, values).lastrowid or 0)
    deferred = deliver_at is not None
    done = not deferred and (context or _done_on_arrival(recipient.address.kind))
    cursor = tx.execute(
        _INSERT,
        (
            message,
            recipient.id,
            binding,
            int(Status.DONE if done else Status.PENDING),
            int(priority),
            None if deferred else tx.cache.next_arrived(),
            int(Waits.DEFERRED) if deferred else None,
            deliver_at,
            now if done else None,
            forwards,
            addressed,
            context,
            routed_from,
            offered,
            ack_by,
        ),
    )
    number = int(cursor.lastrowid or 0)
    if ack_by is not None and not deferred:
        ack_deadlines.put(tx, number, ack_by)
    if forwards is not None and not deferred:
        tx.facts.append(events.EnvelopeForwarded(now, number, forwards, tx.cache.last_arrived))
    return number


def insert_failed(tx: Tx, message: int, recipient: int, binding: int | None, now: int) -> int:
    """Insert the failed envelope of a message: its recipient was deleted, or no account may post there."""
    cursor = tx.execute(
        """
        INSERT INTO envelope (message, recipient, status, arrived, done_at, error_at, first_failed_at,
                              binding, error_kind, error_text)
        SELECT ?1, id, 2, ?3, ?4, ?4, ?4, ?5, iif(retired_at, 'recipient_deleted', 'unbound'),
               iif(retired_at, 'the recipient was deleted', 'no account may post there')
        FROM address WHERE id = ?2
        """,
        (message, recipient, tx.cache.next_arrived(), now, binding),
    )
    return int(cursor.lastrowid or 0)


def arrive(
    tx: Tx, number: int, recipient_kind: str, now: int, *, context: bool = False, ack_by: int | None = None
) -> None:
    """Let a deferred envelope arrive. `context`: it is only read along. `ack_by`: the deadline for it."""
    done = context or _done_on_arrival(recipient_kind)
    status, done_at = (Status.DONE, now) if done else (Status.PENDING, None)
    tx.execute(
        """
        UPDATE envelope SET arrived = ?, waits = NULL, wait_until = NULL, status = ?, done_at = ?,
               ack_by = ?
        WHERE id = ?
        """,
        (tx.cache.next_arrived(), int(status), done_at, ack_by, number),
    )
    if ack_by is not None:
        ack_deadlines.put(tx, number, ack_by)


def reroute(tx: Tx, number: int, to: LiveAddress, was: int | None, now: int) -> None:
    """Give an envelope that nobody holds to another recipient, who has not tried it yet.

    It arrives there now, unless it is deferred. `was`: for whom it was; None: for this recipient; the
    recipient itself: it is a copy to read along, and has arrived.
    """
    offers.take(tx, number, now)  # somebody has decided who deals with it
    copy = was == to.id
    done = copy or _done_on_arrival(to.address.kind)
    ack_by = ack_deadlines.of(tx, number)
    tx.execute(
        """
        UPDATE envelope SET recipient = ?1, routed_from = ?2, handovers = 0, attempts = 0, crashes = 0,
               error_kind = NULL, error_text = NULL, error_at = NULL, first_failed_at = NULL, acked_at = NULL,
               preempted_by = NULL, due_again = NULL, snoozed_until = NULL, read_at = NULL, offered = 0,
               context = ?7 OR (x.later AND context AND NOT ?3), box = 0, handed_at = NULL,
               waits = iif(x.later, waits, NULL), wait_until = iif(x.later, wait_until, NULL),
               status = ?3 AND NOT x.later, done_at = iif(?3 AND NOT x.later, ?4, NULL),
               arrived = iif(x.later, NULL, ?5)
        FROM (SELECT arrived IS NULL AND NOT ?7 AS later FROM envelope WHERE id = ?6) x
        WHERE id = ?6 AND status < 2
        """,
        (to.id, was, done, now, tx.cache.next_arrived(), number, copy),
    )
    if copy:
        ack_deadlines.end(tx, number)
    elif ack_by is not None:  # it is done on arrival at a person, who has the time that is left
        ack_deadlines.put(tx, number, ack_by)


def swap_forwards(tx: Tx, message: int, one: int, other: int) -> None:
    """Let what forwards one of two envelopes of a message forward the other: the boss has that one now."""
    swap = "forwards = ?2 + ?3 - forwards WHERE message = ?1 AND forwards IN (?2, ?3)"
    tx.execute(f"UPDATE envelope SET {swap}", (message, one, other))


def _done_on_arrival(kind: str) -> bool:
    return kind in ("user", "group")  # a person gets it as a whole, a group does nothing with it


# --- in hand, and waiting ------------------------------------------------------------


def hold(tx: Tx, number: int, boot: int, now: int) -> None:
    """Mark an envelope as in the hands of this daemon. The handover counts before it happens: it may have."""
    held = "UPDATE envelope SET held_by = ?, handovers = handovers + 1, handed_at = ? WHERE id = ?"
    if tx.execute(f"{held} RETURNING offered", (boot, now, number)).fetchone()["offered"]:
        offers.take(tx, number, now)


def free(tx: Tx, number: int, *, given: bool = True) -> None:
    """Make a held envelope due again. `given` False: it was surely not handed over."""
    freed = "UPDATE envelope SET held_by = NULL, crashes = 0, handovers = handovers - ? WHERE id = ?"
    query = f"{freed} AND held_by IS NOT NULL RETURNING offered"
    row = tx.execute(query, (int(not given), number)).fetchone()
    if row is not None and row["offered"]:
        offers.give_back(tx, number, clock.now())


def free_all(tx: Tx) -> int:
    """Make everything due again that this daemon holds, because it stops; return how much.

    The stop is counted: crashes before and after it are not in a row.
    """
    tx.execute("UPDATE counter SET value = value + 1 WHERE name = 'stop'")
    rows = tx.execute(
        f"""
        UPDATE envelope INDEXED BY envelope_wake SET held_by = NULL, crashes = 0,
               unconfirmed = binding IS NOT NULL
        WHERE {_IS_HELD} RETURNING id, offered
        """
    ).fetchall()
    for row in rows:
        if row["offered"]:
            offers.give_back(tx, row["id"], clock.now())
    return len(rows)


def free_after_crash(tx: Tx) -> tuple[int, list[int]]:
    """Make everything due again that a daemon held when it crashed.

    Return how much, and those that were in hand at CRASHES crashes in a row: they may be the cause. What was
    offered to several stays with who had it: not every member is to crash with it.
    """
    stops = tx.execute("SELECT value FROM counter WHERE name = 'stop'").fetchone()["value"]
    rows = tx.execute(
        f"""
        UPDATE envelope INDEXED BY envelope_wake SET held_by = NULL, after_stop = ?1,
               unconfirmed = binding IS NOT NULL, crashes = 1 + iif(after_stop IS ?1, crashes, 0)
        WHERE {_IS_HELD} RETURNING id, crashes
        """,
        (stops,),
    ).fetchall()
    return len(rows), [row["id"] for row in rows if row["crashes"] >= CRASHES]


def lease(tx: Tx, number: int, claim: int, until: int, now: int) -> None:
    """Give an envelope to a claim until a time."""
    tx.execute(
        """
        UPDATE envelope SET waits = ?, wait_until = ?, claim = ?, handovers = handovers + 1, handed_at = ?
        WHERE id = ?
        """,
        (int(Waits.LEASE), until, claim, now, number),
    )
    offers.take(tx, number, now)


def give(tx: Tx, number: int, claim: int, until: int) -> None:
    """Give an envelope that this daemon holds to an open session, which has it then, as by a claim."""
    given = "held_by = NULL, crashes = 0, waits = ?, wait_until = ?, claim = ?"
    query = f"UPDATE envelope SET {given} WHERE id = ? AND status = 0 AND held_by IS NOT NULL"
    tx.execute(query, (int(Waits.LEASE), until, claim, number))


def take_back(tx: Tx, number: int) -> None:
    """Take an envelope back that an open session has: it is in hand, until it is settled."""
    boot = "(SELECT value FROM counter WHERE name = 'boot')"
    taken = f"held_by = {boot}, waits = NULL, wait_until = NULL, claim = NULL"
    query = f"UPDATE envelope SET {taken} WHERE id = ? AND status = 0 AND waits = ?"
    tx.execute(query, (number, int(Waits.LEASE)))


def end_wait(tx: Tx, number: int) -> None:
    """Make an envelope due that waited: a retry, or the end of a lease.

    It keeps its place in the order of arrival; whoever polls is told again.
    """
    tx.execute(
        "UPDATE envelope SET waits = NULL, wait_until = NULL, claim = NULL, due_again = ? WHERE id = ?",
        (tx.cache.next_arrived(), number),
    )


def move_waits(tx: Tx, step: int, now: int) -> None:
    """Move the ends of all leases and retries by `step` ms, because the clock was set by so much."""
    # None of them is longer than LONGEST_MS: deferred mail beyond that is not even looked at.
    tx.execute(
        """
        UPDATE envelope INDEXED BY envelope_wake SET wait_until = wait_until + ?
        WHERE wake_at IS NOT NULL AND wake_at <= ? AND waits IN (?, ?)
        """,
        (step, now + LONGEST_MS, int(Waits.RETRY), int(Waits.LEASE)),
    )
    with_deadline = "SELECT envelope FROM ack_deadline WHERE told_at IS NULL"
    tx.execute(f"UPDATE envelope SET ack_by = ack_by + ? WHERE id IN ({with_deadline})", (step,))


# --- after a hand-over ---------------------------------------------------------------


def done(tx: Tx, number: int, now: int, *, read_in: str | None = None) -> None:
    """Settle a pending envelope as done. `read_in`: its recipient has seen it, in this session, like r9."""
    settled = "UPDATE envelope SET status = 1, done_at = ?, held_by = NULL WHERE id = ? AND status = 0"
    if tx.execute(settled, (now, number)).rowcount:
        if read_in is not None:
            readings.note_read(tx, number, None, read_in, now)
        tx.facts.append(events.EnvelopeSettled(now, number, "done"))


def failed_once(tx: Tx, number: int, failure: Failure, now: int, *, retry_at: int | None = None) -> bool:
    """Free a held envelope after a failure: due again, or at `retry_at`. False if it was not held."""
    changed = tx.execute(
        """
        UPDATE envelope SET held_by = NULL, crashes = 0, attempts = attempts + 1,
               waits = ?1, wait_until = ?2, error_kind = ?3, error_text = ?4, error_at = ?5,
               first_failed_at = ifnull(first_failed_at, ?5)
        WHERE id = ?6 AND status = 0 AND held_by IS NOT NULL
        """,
        (None if retry_at is None else int(Waits.RETRY), retry_at, *failure, now, number),
    ).rowcount
    if changed:
        tx.facts.append(events.EnvelopeWaits(now, number, retry_at))
        offers.give_back(tx, number, now)
    return bool(changed)


def set_aside(tx: Tx, ids: Iterable[int], by: int) -> None:
    """Mark envelopes in hand: their run ends for another message. Freed, they are due again and untried."""
    for number in ids:
        tx.execute("UPDATE envelope SET preempted_by = ? WHERE id = ? AND status = 0", (by, number))


def put_first(tx: Tx, number: int) -> None:
    """Make a pending envelope due for which a run was set aside. So it is set aside for nothing itself."""
    due = "preempted_by = NULL, waits = NULL, wait_until = NULL"
    tx.execute(f"UPDATE envelope SET {due} WHERE id = ? AND status = 0", (number,))


def set_priority(tx: Tx, number: int, priority: Priority) -> None:
    """Give one pending delivery another place in the order of its lane."""
    tx.execute("UPDATE envelope SET priority = ? WHERE id = ? AND status = 0", (int(priority), number))


def note_unconfirmed(tx: Tx, number: int) -> None:
    """Store that a post of an envelope got no answer: it may have been made all the same."""
    tx.execute("UPDATE envelope SET unconfirmed = 1 WHERE id = ?", (number,))


def retry_at(tx: Tx, number: int, until: int) -> None:
    """Let an envelope that waits for its retry wait until another time."""
    retried = (until, number, int(Waits.RETRY))
    tx.execute("UPDATE envelope SET wait_until = ? WHERE id = ? AND waits = ?", retried)


def fail(tx: Tx, number: int, failure: Failure, now: int, *, tried: bool = False) -> bool:
    """Give up a pending envelope; it stays stored. False if it was settled. `tried`: count an attempt."""
    changed = tx.execute(
        """
        UPDATE envelope SET status = 2, done_at = ?1, held_by = NULL, waits = NULL, wait_until = NULL,
               claim = NULL, attempts = attempts + ?5, error_kind = ?2, error_text = ?3,
               error_at = ?1, first_failed_at = ifnull(first_failed_at, ?1)
        WHERE id = ?4 AND status = 0
        """,
        (now, failure.kind, failure.text, number, int(tried)),
    ).rowcount
    if changed:
        tx.facts.append(events.EnvelopeSettled(now, number, "failed"))
    return bool(changed)


def fail_for_deleted(tx: Tx, recipient: int, failure: Failure, now: int, *, sender: int | None = None) -> int:
    """Give up what is pending for a recipient, of one sender or of all, because one of them was deleted.

    Return how many.
    """
    rows = tx.execute(
        """
        UPDATE envelope INDEXED BY envelope_box
        SET status = 2, done_at = ?1, held_by = NULL, waits = NULL, wait_until = NULL, claim = NULL,
            error_kind = ?2, error_text = ?3, error_at = ?1
        WHERE recipient = ?4 AND box IN (0, 3) AND status = 0
          AND (?5 IS NULL OR ?5 = (SELECT m.sender FROM message m WHERE m.id = envelope.message))
        RETURNING id
        """,
        (now, failure.kind, failure.text, recipient, sender),
    ).fetchall()
    tx.facts += [events.EnvelopeSettled(now, row["id"], "failed") for row in rows]
    return len(rows)


def readdress(tx: Tx, old: int, new: int, which: str, *values: object) -> None:
    """Give envelopes of one recipient to another. `which`: a condition on them; its values are ?3, ?4 …"""
    moved = f"UPDATE OR IGNORE envelope SET recipient = ?2 WHERE recipient = ?1 AND {which}"
    tx.execute(moved, (old, new, *values))


# --- changes by the sender -----------------------------------------------------------


def cancel(tx: Tx, ids: Iterable[int], sender: int | None, now: int) -> int:
    """Cancel pending envelopes that nobody holds; return how many. The sender None may cancel any."""
    changed = 0
    for number in ids:
        row = sent(tx, number, sender)
        if row["status"] == Status.CANCELLED:
            continue
        if row["status"] != Status.PENDING:
            raise TooLate(id=f"e{number}", action="cancelled", state=Status(row["status"]).word)
        if sender is not None and row["forwards"] is not None and row["arrived"] is not None:
            raise TooLate(id=f"e{number}", action="cancelled", state="in the box of the boss")
        if row["held_by"] is not None or row["waits"] == Waits.LEASE:
            raise TooLate(id=f"e{number}", action="cancelled", state="being delivered")
        end(tx, number, now)
        if row["waits"] == Waits.DEFERRED:
            _cancel_counterpart(tx, row, now)
        changed += 1
    return changed


def end(tx: Tx, number: int, now: int, why: Failure | None = None) -> bool:
    """Cancel a pending envelope that nobody holds, or only a run that ends; False if it was settled."""
    changed = tx.execute(
        """
        UPDATE envelope SET status = 3, done_at = ?1, held_by = NULL, waits = NULL, wait_until = NULL,
               claim = NULL, error_kind = ifnull(?2, error_kind), error_text = ifnull(?3, error_text),
               error_at = iif(?2 IS NULL, error_at, ?1)
        WHERE id = ?4 AND status = 0
        """,
        (now, *(why or (None, None)), number),
    ).rowcount
    if changed:
        tx.facts.append(events.EnvelopeCancelled(now, number))
    return bool(changed)


def _cancel_counterpart(tx: Tx, row: EnvelopeRow, now: int) -> None:
    """Cancel a deferred forward with what it forwards, or the other way round: they are one mail."""
    rows = tx.execute(
        """
        SELECT id FROM envelope INDEXED BY envelope_message WHERE message = ?1 AND status = 0 AND waits = 0
          AND (forwards = ?2 OR id = (SELECT o.forwards FROM envelope o WHERE o.id = ?2))
        """,
        (row["message"], row["id"]),
    ).fetchall()
    for one in rows:
        end(tx, one["id"], now)


def retry(tx: Tx, ids: Iterable[int], sender: int | None, now: int) -> tuple[int, set[Lane]]:
    """Make failed or cancelled envelopes pending again; return how many, and the lanes to wake.

    The sender None may retry any.
    """
    changed, lanes = 0, set()
    for number in dict.fromkeys(ids):
        row = sent(tx, number, sender)
        binding = retry_rules.account(tx, row)
        deferred = row["arrived"] is None
        # The 24 hours until it is given up begin again.
        _pending_again(tx, number, binding, now, now, row["deliver_at"] if deferred else None)
        changed += 1
        if not deferred:
            tx.arrived_for.append(row["recipient"])
        if binding is not None and not deferred:
            lanes.add(Lane(row["recipient"], binding))
    return changed, lanes


def forward_again(tx: Tx, number: int, place: Lane, now: int) -> None:
    """Make a cancelled forward pending: its chat is the boss's again, maybe by another account."""
    _pending_again(tx, number, place.binding, None, now)


def _pending_again(
    tx: Tx, number: int, binding: int | None, failed_at: int | None, now: int, deferred: int | None = None
) -> None:
    """Make a settled envelope pending: due, or `deferred` until a time."""
    # Back in the inbox: what is pending is there.
    tx.execute(
        """
        UPDATE envelope SET status = 0, done_at = NULL, first_failed_at = ?, crashes = 0, box = 0,
               binding = ?, waits = ?, wait_until = ?, due_again = ? WHERE id = ?
        """,
        (
            failed_at,
            binding,
            None if deferred is None else int(Waits.DEFERRED),
            deferred,
            None if deferred is not None else tx.cache.next_arrived(),
            number,
        ),
    )
    ack_deadlines.put_again(tx, number)
    tx.facts.append(events.EnvelopeRetried(now, number))
