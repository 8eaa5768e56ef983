"""Leases of agents in pull mode: claim due envelopes until a time, or release them before.

To acknowledge one, see `acknowledgements`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.envelope import Status, Waits
from ..core.errors import NotFound, TooLate
from ..core.events import EnvelopeClaimed, EnvelopeDue
from . import (
    attached_turns,
    breaker_holds,
    counters,
    deleted_envelopes,
    due_envelopes,
    envelopes,
    moved_mail,
    offers,
    paging,
)
from .acknowledgements import CLAIMED_AGAIN
from .connection import Row
from .group_commit import Tx


def claim(
    tx: Tx, recipient: int, limit: int, until: int, now: int, most_bytes: int | None = None
) -> tuple[list[int], int | None]:
    """Lease the next due envelopes until a time; nobody else gets them until then.

    Return their ids and the number of this claim; None if there was nothing to claim. `most_bytes`: no
    more than fit into one answer, but at least one. An agent gets nothing while the breaker is pulled.
    """
    if breaker_holds.holds_mail(tx, recipient):
        return [], None
    found: list[int] = []
    while due := due_envelopes.due(tx, recipient, now, limit):
        found = deleted_envelopes.without_deleted(tx, [one.id for one in due], now)
        routes, came = tx.cache.routes().of, moved_mail.routed(tx, found)
        routed = [one for one in due if one.id in found and (one.conversation in routes or one.id in came)]
        # A route was made, or ended, while they were claimed.
        moved = [one for one in routed if moved_mail.follow(tx, one.conversation, recipient, [one.id], now)]
        if len(found) == len(due) and not moved:
            break
        found = []
    if most_bytes is not None:
        found = paging.fitting(tx, found, most_bytes)
    if not found:
        return [], None
    claim = counters.next_claim(tx)
    for number in found:
        envelopes.lease(tx, number, claim, until, now)
        tx.facts.append(EnvelopeClaimed(now, number, until))
    return found, claim


class Releasing(NamedTuple):
    """Who releases what."""

    ids: Sequence[int]
    recipient: int
    now: int
    claim: int | None = None  # the claim that the caller has them by
    any_claim: bool = False  # the boss may release whatever claim has them


def release(tx: Tx, what: Releasing) -> int:
    """Release leased envelopes, all of them or none; return how many."""
    changed = 0
    for number in dict.fromkeys(what.ids):
        row = tx.execute(
            """
            SELECT status, waits, claim, handovers FROM envelope
            WHERE id = ? AND recipient = ? AND arrived IS NOT NULL
            """,
            (number, what.recipient),
        ).fetchone()
        if row is None:
            raise NotFound(what="envelope", value=f"e{number}")
        if row["waits"] != Waits.LEASE:
            state = "not claimed" if row["status"] == Status.PENDING else Status(row["status"]).word
            raise TooLate(id=f"e{number}", action="released", state=state)
        if attached_turns.has(tx, number):
            raise TooLate(
                id=f"e{number}", action="released", state="with an open session: hiboss agent detach"
            )
        _check_claim(number, row, what)
        envelopes.end_wait(tx, number)
        offers.give_back(tx, number, what.now)
        tx.facts.append(EnvelopeDue(what.now, number))
        changed += 1
        tx.arrived_for.append(what.recipient)
    return changed


def _check_claim(number: int, row: Row, what: Releasing) -> None:
    """Raise TooLate unless the caller surely has the envelope: two sessions of one agent share its name."""
    if what.claim is not None and row["claim"] != what.claim:
        raise TooLate(id=f"e{number}", action="released with this claim", state=CLAIMED_AGAIN)
    if what.claim is None and not what.any_claim and row["handovers"] > 1:
        state = "claimed more than once, perhaps by another session"
        raise TooLate(id=f"e{number}", action="released without the id of your claim", state=state)
