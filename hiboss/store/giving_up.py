"""Give up envelopes: they fail, or are cancelled with their run. They stay stored; their senders are told.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.contracts.failures import Failure
from ..core.envelope import Priority
from . import envelopes, notices, offers
from .connection import Row
from .group_commit import Tx

CRASHED = "crashed"  # the daemon, with it in hand: nobody else is to try it


def fail(
    tx: Tx,
    numbers: Iterable[int],
    failure: Failure,
    now: int,
    *,
    tried: bool = False,
    not_told: int | None = None,
    forward: bool = True,
) -> None:
    """Let envelopes fail; each sender except `not_told` gets one notice.

    Of a forward the boss is told instead: the sender's mail is in his box. `tried`: count one more attempt.
    `forward`: a notice to the boss may be posted to a chat of his too.
    """
    # One that was settled meanwhile is left out: its sender was told then.
    failed = [number for number in numbers if envelopes.fail(tx, number, failure, now, tried=tried)]
    if failure.kind != CRASHED:
        for number in failed:
            offers.give_back(tx, number, now)
    _tell_senders(tx, failed, failure, now, not_told, forward)


def cancel(
    tx: Tx,
    numbers: Iterable[int],
    failure: Failure,
    now: int,
    *,
    not_told: int | None = None,
    forward: bool = True,
) -> None:
    """Cancel envelopes that somebody ended the work on; their senders are told as `fail` does."""
    ended = [number for number in numbers if envelopes.end(tx, number, now, failure)]
    _tell_senders(tx, ended, failure, now, not_told, forward)


def _tell_senders(
    tx: Tx, numbers: list[int], failure: Failure, now: int, not_told: int | None, forward: bool
) -> None:
    senders: dict[tuple[int, int], list[Row]] = {}  # each conversation apart: a notice belongs to one
    forwards: list[Row] = []
    for number in numbers:
        row = tx.execute(
            """
            SELECT e.id, e.message, e.forwards, box.priority AS forwarded_priority, m.sender, m.conversation,
                   m.deleted_at,
                   a.kind || ':' || a.name AS address
            FROM envelope e JOIN message m ON m.id = e.message JOIN address a ON a.id = e.recipient
            LEFT JOIN envelope box ON box.id = e.forwards WHERE e.id = ?
            """,
            (number,),
        ).fetchone()
        if row["deleted_at"] is not None:
            continue  # its sender wants it no more
        if row["forwards"] is None:
            if row["sender"] != not_told:
                senders.setdefault((row["sender"], row["conversation"]), []).append(row)
        elif row["forwarded_priority"] != Priority.NOTICE:  # a notice causes no other notice
            forwards.append(row)
    if forwards:
        notices.tell_boss_of_forwards(tx, forwards, failure.text, now)
    for (sender, _), rows in senders.items():
        again = failure.kind != "unbound"
        notices.tell_sender(tx, sender, rows, failure.text, now, again=again, forward=forward)
