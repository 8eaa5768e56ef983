"""Wakeups: process the rows whose time (`wake_at`) has come. Deferred mail arrives here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..core.envelope import Lane, Priority, Waits
from ..core.events import EnvelopeDue, EnvelopeForwarded, EnvelopesArrived
from . import (
    agent_pauses,
    breaker_holds,
    conversation_routes,
    envelope_marks,
    envelopes,
    forwarding,
    group_arrivals,
    late_acks,
    moved_mail,
    offers,
    quiet_digest,
    schedule_firing,
    threads,
)
from .connection import Connection, Row
from .conversation_routes import Addressed
from .envelopes import NEXT_START
from .group_commit import Tx
from .lane_facts import tell_open
from .schedule_firing import MaySend

CHUNK = 500


@dataclass(slots=True)
class Woken:
    """What one call of `wake` changed."""

    envelopes: list[int] = field(default_factory=list)  # due now
    recipients: list[int] = field(default_factory=list)  # of those, in the same order
    lanes: set[Lane] = field(default_factory=set)
    more: bool = False


class NextTimes(NamedTuple):
    """When something must be processed next; None if nothing waits for a time."""

    row: int | None  # an envelope, a lane, a pause, or a deadline for acknowledging
    ask: int | None
    slot: int | None  # a schedule; None also while the breaker is pulled: they hold

    @property
    def nearest(self) -> int | None:
        return min((at for at in self if at is not None), default=None)


def next_times(connection: Connection | Tx) -> NextTimes:
    """Return when the next row, and when the next schedule must be processed."""
    row = connection.execute(
        """
        SELECT (SELECT wake_at FROM envelope INDEXED BY envelope_wake
                WHERE wake_at IS NOT NULL AND wake_at < ? ORDER BY wake_at LIMIT 1),
               (SELECT wake_at FROM lane INDEXED BY lane_wake
                WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
               (SELECT paused_until FROM agent INDEXED BY agent_paused
                WHERE paused_until IS NOT NULL ORDER BY paused_until LIMIT 1),
               (SELECT at FROM ack_deadline WHERE told_at IS NULL ORDER BY at LIMIT 1),
               (SELECT wake_at FROM ask INDEXED BY ask_wake
                WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
               (SELECT next_at FROM schedule INDEXED BY schedule_next
                WHERE next_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM breaker)
                ORDER BY next_at LIMIT 1)
        """,
        (NEXT_START,),
    ).fetchone()
    *rows, ask, slot = row
    return NextTimes(min((at for at in rows if at is not None), default=None), ask, slot)


def next_wake(connection: Connection | Tx) -> int | None:
    """Return the next time at which something must be processed; None if there is none."""
    return next_times(connection).nearest


def wake(tx: Tx, now: int, limit: int = CHUNK) -> Woken:
    """Process what is overdue except schedules: at most `limit` envelopes, in the order of their times."""
    woken = Woken()
    rows = tx.execute(
        """
        SELECT id, message, recipient, binding, waits FROM envelope INDEXED BY envelope_wake
        WHERE wake_at IS NOT NULL AND wake_at <= ? ORDER BY wake_at, id LIMIT ?
        """,
        (now, limit),
    ).fetchall()
    arrived: set[int] = set()
    for row in rows:
        if row["waits"] != Waits.DEFERRED:
            _free(tx, row, now, woken)
        elif row["message"] not in arrived:  # all envelopes of a message arrive together
            arrived.add(row["message"])
            _arrive(tx, row["message"], now, woken)
    _open_lanes(tx, now, woken)
    agent_pauses.resume_due(tx, now)
    late_acks.tell(tx, now)
    woken.more = len(rows) == limit
    return woken


def _arrive(tx: Tx, message: int, now: int, woken: Woken) -> None:
    """Let a message arrive, with all its deferred envelopes; or only these, if it has arrived before.

    So it is with an envelope that failed before that, and is retried. The message keeps its number.
    """
    row = tx.execute(_ARRIVING, (message,)).fetchone()
    if row["seq"] is not None:
        return _arrive_envelopes(tx, row, row["seq"], [], Priority.NORMAL, now, woken)
    of_group = group_arrivals.waiting(tx, message)
    if of_group is None:
        copies = conversation_routes.redirect_deferred(tx, row, now)
    elif (found := group_arrivals.members(tx, row, of_group, now)) is not None:
        copies = found
    else:
        return None
    priority = Priority.NORMAL if of_group is None else Priority(of_group["priority"])
    seq = tx.cache.next_seq(row["conversation"])
    tx.execute("UPDATE message SET seq = ?, arrived_at = ? WHERE id = ?", (seq, now, message))
    _arrive_envelopes(tx, row, seq, copies, priority, now, woken)
    if row["thread"] is not None:
        threads.note(tx, row["thread"], row["conversation"], message)
    else:
        threads.note_first(tx, message, row["conversation"])
    return None


def _arrive_envelopes(
    tx: Tx, row: Row, seq: int, copies: list[Addressed], priority: Priority, now: int, woken: Woken
) -> None:
    """Let the deferred envelopes of a message arrive, and insert the copies of it."""
    message = row["id"]
    rows = tx.execute(
        """
        SELECT e.id, e.recipient, e.binding, e.forwards, e.context, a.kind
        FROM envelope e JOIN address a ON a.id = e.recipient
        WHERE e.message = ? AND e.status = 0 AND e.waits = 0 ORDER BY e.forwards IS NOT NULL, e.id
        """,
        (message,),
    ).fetchall()
    mail = [one for one in rows if one["forwards"] is None]
    for envelope in mail:
        context = bool(envelope["context"])
        ack_by = None if context else _ack_by(row, envelope["kind"], now)
        envelopes.arrive(tx, envelope["id"], envelope["kind"], now, context=context, ack_by=ack_by)
        _note(tx, envelope, woken)
    read = [(_copy(tx, row, one, priority, now, woken), one.recipient.id) for one in copies]
    numbers = [*(one["id"] for one in mail), *(number for number, _ in read)]
    recipients = [*(one["recipient"] for one in mail), *(who for _, who in read)]
    of = (row["conversation"], seq, row["sender"])
    if numbers:  # else only a forward was late
        tx.facts.append(EnvelopesArrived(now, message, *of, numbers, recipients, tx.cache.last_arrived))
    for forward in rows[len(mail) :]:
        envelopes.arrive(tx, forward["id"], forward["kind"], now)
        _note(tx, forward, woken)
        of_forward = (forward["id"], forward["forwards"], tx.cache.last_arrived)
        tx.facts.append(EnvelopeForwarded(now, *of_forward))
    # Now that all have arrived: a forward that was deferred too is there.
    for number, recipient in [*((one["id"], one["recipient"]) for one in rows), *read]:
        if recipient == tx.cache.reach().boss:
            forwarding.arrived(tx, number, now)


_ARRIVING = """
    SELECT m.id, m.conversation, m.seq, m.sender, m.thread, m.ack_within, m.text, m.type, m.auto, m.reply_to,
           a.kind AS sender_kind, a.name AS sender_name, a.retired_at AS sender_gone
    FROM message m JOIN address a ON a.id = m.sender WHERE m.id = ?
"""


def _ack_by(message: Row, kind: str, now: int) -> int | None:
    """Return until when an envelope that arrives is to be acknowledged; None: there is no such time."""
    asks = message["ack_within"] is not None and kind in ("agent", "user")
    return int(now + message["ack_within"]) if asks else None


def _copy(tx: Tx, message: Row, to: Addressed, priority: Priority, now: int, woken: Woken) -> int:
    """Insert the envelope of a message that arrives: for one who reads along, or a member of its group."""
    ack_by = None if to.is_context else _ack_by(message, to.recipient.address.kind, now)
    number = envelopes.insert(
        tx,
        message["id"],
        to.recipient,
        to.binding,
        priority,
        None,
        now,
        context=to.is_context,
        routed_from=to.routed_from,
        offered=to.offered,
        ack_by=ack_by,
    )
    if not to.is_copy:
        tx.arrived_for.append(to.recipient.id)
        woken.envelopes.append(number)
        woken.recipients.append(to.recipient.id)
        if to.binding is not None:
            woken.lanes.add(Lane(to.recipient.id, to.binding))
    return number


def _free(tx: Tx, row: Row, now: int, woken: Woken) -> None:
    """Make an envelope due: a retry, or the end of a lease or a snooze (after a snooze it arrives again)."""
    if row["waits"] == Waits.SNOOZE:
        envelope_marks.wake(tx, row["id"])
    else:
        envelopes.end_wait(tx, row["id"])
    tx.facts.append(EnvelopeDue(now, row["id"]))
    _note(tx, row, woken)
    if row["waits"] == Waits.LEASE:
        offers.give_back(tx, row["id"], now)
    elif row["waits"] != Waits.SNOOZE:
        return
    if (to := moved_mail.follow_waited(tx, row["id"], now)) is not None:
        woken.recipients.append(to)


def _note(tx: Tx, envelope: Row, woken: Woken) -> None:
    tx.arrived_for.append(envelope["recipient"])
    woken.envelopes.append(envelope["id"])
    woken.recipients.append(envelope["recipient"])
    if envelope["binding"] is not None:
        woken.lanes.add(Lane(envelope["recipient"], envelope["binding"]))


def fire(tx: Tx, now: int, may_send: MaySend) -> Woken:
    """Fire the schedules that are due. `may_send` raises if the owner of one may not send now.

    While the breaker is pulled they hold, and catch up when it is released.
    """
    woken = Woken()
    if breaker_holds.is_pulled(tx):
        return woken
    for accepted in schedule_firing.fire_due(tx, now, may_send):
        woken.envelopes += accepted.envelopes
        woken.recipients += accepted.recipients
        woken.lanes.update(Lane(*lane) for lane in accepted.lanes)
    return woken


def send_digest(tx: Tx, now: int) -> Woken:
    """Tell the boss what came in his quiet hours."""
    quiet_digest.send(tx, now)
    return Woken()


def _open_lanes(tx: Tx, now: int, woken: Woken) -> None:
    """Open the lanes whose wait is over; their failures stay counted until a delivery succeeds."""
    rows = tx.execute(
        """
        UPDATE lane SET state = 'open', wake_at = NULL, not_before = NULL,
               error_kind = iif(failures, error_kind, NULL), error_text = iif(failures, error_text, NULL),
               error_at = iif(failures, error_at, NULL)  -- without failures it waited for another topic
        WHERE wake_at IS NOT NULL AND wake_at <= ? RETURNING address, binding
        """,
        (now,),
    ).fetchall()
    for row in rows:
        tell_open(tx, row["address"], row["binding"], now)
        if row["binding"] is None:
            tx.arrived_for.append(row["address"])  # the lane of an agent: wakes the runner
        else:
            woken.lanes.add(Lane(row["address"] or 0, row["binding"]))
