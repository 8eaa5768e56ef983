"""Failures of lanes and accounts: how long they wait, who is told, and what is given up after a day.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from enum import Enum
from itertools import product
from typing import NamedTuple

from ..core import backoff
from ..core.contracts.failures import UNSURE, Failure
from ..core.envelope import Lane, Priority
from . import chat_pacing, due_envelopes, envelopes, forwarding, lanes, notices
from .connection import Connection, Row
from .group_commit import Tx
from .lane_facts import tell_waiting
from .stray_forwards import strays

GIVE_UP_MS = 24 * 3600 * 1000
GIVE_UP_FAILURES = 10
TELL_MS = 5 * 60 * 1000  # a wait that a platform names is no outage before it has lasted so long
SLICE = 500  # envelopes that are given up in one transaction: others must not wait for more


class Scope(Enum):
    """What failed when an envelope was not posted."""

    LANE = "lane"  # the platform answered that nothing can be posted to this place
    ACCOUNT = "account"  # nothing can be posted with this account
    UNKNOWN = "unknown"  # no answer: of the account if that was being tried, else of the lane


class Later(NamedTuple):
    """What `retry_later` decided."""

    until: int | None  # the next attempt; None: there is none, the envelope was given up
    opened: bool = False  # the account was found to work again
    gives_up: Lane | None = None  # more envelopes are to be given up, with `give_up`


def retry_later(
    tx: Tx,
    lane: Lane,
    envelope: int,
    failure: Failure,
    now: int,
    *,
    scope: Scope = Scope.LANE,
    retry_after: object = None,
) -> Later:
    """Release a held envelope after a failure: its lane or its account waits and keeps the order."""
    if scope is Scope.UNKNOWN or failure.kind in UNSURE:
        envelopes.note_unconfirmed(tx, envelope)
    removed = _removed(tx, lane)
    if removed is not None:
        lanes.fail(tx, [envelope], removed, now, tried=True)
        return Later(None)
    if not envelopes.failed_once(tx, envelope, failure, now):  # somebody else settled it
        lanes.end_trials(tx)
        return Later(None)
    _leave(tx, envelope, now)
    if scope is Scope.UNKNOWN and _is_tried(tx, lane.account):
        scope = Scope.ACCOUNT
    failing = lane.account if scope is Scope.ACCOUNT else lane
    delay, named = backoff.next_wait(failing_seconds(tx, failing, now), retry_after)
    # The supervisor tells of an adapter that does not run, when it does not come back at once.
    tell, until = failure.kind != "adapter_down", now + int(delay * 1000)
    row = record_failure(tx, failing, failure, until, now, told=named, tell=tell)
    if named and failing.address:
        chat_pacing.hold(tx, lane, failure, until, now)
    opened = scope is Scope.LANE and lanes.account_recovered(tx, lane, now)
    more = _gives_up(tx, failing, row, failure, now)
    return Later(row["wake_at"] or until, opened, failing if more else None)


def put_back(tx: Tx, lane: Lane, envelope: int, now: int) -> bool:
    """Free an envelope of which some chunks are posted; the others follow when its lane may go on.

    Return whether this shows that its account works again.
    """
    removed = _removed(tx, lane)
    if removed is not None:
        lanes.fail(tx, [envelope], removed, now)
        return False
    envelopes.free(tx, envelope)
    _leave(tx, envelope, now)
    return lanes.account_recovered(tx, lane, now)


def _leave(tx: Tx, envelope: int, now: int) -> None:
    """Forward what could not be posted to a chat that meanwhile is not the boss's any more to where he is."""
    row = tx.execute("SELECT forwards FROM envelope WHERE id = ? AND status = 0", (envelope,)).fetchone()
    if row is not None and row["forwards"] is not None and strays(tx, envelope):
        forwarding.go_elsewhere(tx, envelope, row["forwards"], now)


def account_failed(tx: Tx, binding: int, failure: Failure, now: int) -> int | None:
    """Let an account wait whose adapter does not run; return until when. None if it is not bound any more."""
    account = Lane(0, binding)
    if _removed(tx, account) is not None:
        return None
    until = now + int(backoff.delay_seconds(failing_seconds(tx, account, now)) * 1000)
    return int(record_failure(tx, account, failure, until, now)["wake_at"])


def _removed(tx: Tx, lane: Lane) -> Failure | None:
    """Return why nothing can be posted by the binding of a lane any more; None if it is not removed."""
    row = tx.execute(
        "SELECT adapter, account FROM binding WHERE id = ? AND removed_at IS NOT NULL", (lane.binding,)
    ).fetchone()
    return None if row is None else unbound(row)


def unbound(binding: Row) -> Failure:
    """Return the failure of the envelopes that waited for a binding when it ended."""
    return Failure("unbound", f"{binding['adapter']}:{binding['account']} is no longer bound")


def _is_tried(tx: Tx, account: Lane) -> bool:
    row = lanes.get(tx, account)
    return row is not None and row["state"] == "trying"


def record_failure(
    tx: Tx,
    lane: Lane,
    failure: Failure,
    until: int,
    now: int,
    *,
    told: bool = False,
    tell: bool = True,
    forward: bool = True,
) -> Row:
    """Store a failure of a lane or an account: it waits until a time. Return its row.

    `told`: the platform named that time, so nothing is tried before it. `tell`: the boss is told, once for
    all failures in a row, and once for all topics of a chat; of times that are named, if they last.
    `forward`: that may be posted to a chat of his too.
    """
    row: Row = tx.execute(
        f"""
        INSERT INTO lane (address, binding, state, wake_at, failures, first_failed_at, error_kind,
                          error_text, error_at, tried_at, not_before)
        VALUES (nullif(?1, 0), ?2, 'waiting', ?3, 1, ?4, ?5, ?6, ?4, ?4, ?7)
        ON CONFLICT ({lanes.PLACE}, {lanes.BINDING}) DO UPDATE SET
            state = CASE state WHEN 'paused' THEN 'paused' ELSE 'waiting' END,
            -- Another lane of the account may have been told a later time.
            wake_at = CASE state WHEN 'paused' THEN NULL ELSE max(?3, ifnull(not_before, 0)) END,
            not_before = CASE WHEN not_before > ifnull(?7, ?4) THEN not_before ELSE ?7 END,
            failures = failures + 1, first_failed_at = ifnull(first_failed_at, ?4),
            error_kind = ?5, error_text = ?6, error_at = ?4, tried_at = ?4
        RETURNING id, wake_at, failures, first_failed_at, boss_told_at
        """,
        (lane.address, lane.binding, until, now, failure.kind, failure.text, until if told else None),
    ).fetchone()
    tell_waiting(tx, lane, row["wake_at"], now)
    lasts = not told or until - row["first_failed_at"] >= TELL_MS
    if tell and lasts and row["boss_told_at"] is None:
        if not _is_told(tx, lane, failure):
            notices.tell_boss_of_lane(tx, lane, failure.text, now, forward=forward)
        tx.execute("UPDATE lane SET boss_told_at = ? WHERE id = ?", (now, row["id"]))
    return row


def _is_told(tx: Tx, lane: Lane, failure: Failure) -> bool:
    """Tell whether the boss knows of the same failure in another topic of the chat."""
    row = tx.execute(
        """
        SELECT 1 FROM place p JOIN place o ON o.contact = p.contact AND o.address <> p.address
        JOIN lane l ON ifnull(l.address, 0) = o.address AND ifnull(l.binding, 0) = o.binding
        WHERE p.address = ? AND p.binding = ? AND l.boss_told_at IS NOT NULL AND l.error_kind = ?
        """,
        (lane.address, lane.binding, failure.kind),
    ).fetchone()
    return row is not None


def failing_seconds(tx: Tx | Connection, lane: Lane, now: int) -> float:
    """Return for how long a lane has failed; 0 if it has not."""
    state = lanes.get(tx, lane)
    if state is None or state["first_failed_at"] is None:
        return 0.0
    return max(0.0, (now - int(state["first_failed_at"])) / 1000)


def _gives_up(tx: Tx, lane: Lane, row: Row, failure: Failure, now: int) -> bool:
    """Give up what a lane or an account could not deliver for a day; return whether there is more."""
    # After a day of retries, not after one failure and a day without a running daemon.
    if row["first_failed_at"] > now - GIVE_UP_MS or row["failures"] < GIVE_UP_FAILURES:
        return False
    return give_up(tx, lane, failure, now)


def give_up(tx: Tx, lane: Lane, failure: Failure, now: int) -> bool:
    """Fail at most SLICE envelopes that have waited for a day; return whether there may be more."""
    addresses = [lane.address] if lane.address else lanes.places(tx, lane.binding)
    found: list[int] = []
    for address, priority in product(addresses, Priority):
        found += _waited_for_a_day(tx, Lane(address, lane.binding), priority, now, SLICE - len(found))
        if len(found) == SLICE:
            break
    lanes.fail(tx, found, failure, now)
    return len(found) == SLICE


def _waited_for_a_day(tx: Tx, lane: Lane, priority: Priority, now: int, limit: int) -> list[int]:
    rows = tx.execute(
        """
        SELECT e.id, m.arrived_at, ifnull(e.first_failed_at, m.arrived_at) AS since
        FROM envelope e INDEXED BY envelope_due JOIN message m ON m.id = e.message
        WHERE e.recipient = ? AND e.binding IS ? AND e.priority = ? AND e.status = 0
          AND e.arrived IS NOT NULL AND e.waits IS NULL AND e.held_by IS NULL
        ORDER BY e.arrived
        """,
        (lane.address, lane.binding, int(priority)),
    )
    found: list[int] = []
    for row in rows:
        # In the order of arrival: behind the first that is too young, all are.
        if row["arrived_at"] > now - GIVE_UP_MS or len(found) == limit:
            break
        if row["since"] <= now - GIVE_UP_MS:
            found.append(row["id"])
    rows.close()
    return found


def retry_held_later(tx: Tx, lane: Lane, failure: Failure, now: int) -> Later:
    """Release everything this lane holds after a failure (see `retry_later`)."""
    later = Later(None)
    for number in due_envelopes.in_hand(tx, lane):
        later = retry_later(tx, lane, number, failure, now, scope=Scope.UNKNOWN)
    return later
