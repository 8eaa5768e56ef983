"""Webhooks that send facts: what each follows, how far it is, and the envelopes that carry the facts.

Facts are in memory only. What was chosen becomes an envelope from agent:system to the webhook's address, and
in the same transaction the webhook's position moves, which is an arrival number. So after a crash each
arrival has exactly one envelope: what the position does not include is found here again (`missed`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from ..core.address import SYSTEM, Address
from ..core.envelope import Draft, Kind, Status
from ..core.events import Arrival
from . import messages
from .connection import Connection, Row
from .counters import last_arrived
from .group_commit import Tx

_SELECT = """
    SELECT s.*, b.account, b.settings, a.name FROM webhook_subscription s
    JOIN binding b ON b.id = s.binding AND b.removed_at IS NULL JOIN address a ON a.id = s.address
"""


class Missed(NamedTuple):
    """A message that arrived, with the envelopes of it that did."""

    message: int
    conversation: int
    seq: int
    sender: int  # address id
    at: int
    envelopes: list[Arrival]

    @property
    def last(self) -> int:
        return self.envelopes[-1].arrived

    @property
    def parties(self) -> set[int]:
        return {self.sender, *(one.recipient for one in self.envelopes)}


class Own(NamedTuple):
    """What the webhooks themselves cause facts about: none of those is sent."""

    system: int | None  # the address id of agent:system, which sends the facts, and notices
    addresses: frozenset[int]
    bindings: frozenset[int]


def add(tx: Tx, binding: int, address: int, topics: Iterable[str], parties: Iterable[int]) -> None:
    """Let a webhook follow facts from now on."""
    _ = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)  # so its facts are known from the start
    arrived = max(tx.cache.last_arrived, last_arrived(tx))
    tx.execute(
        """
        INSERT INTO webhook_subscription (binding, address, topics, parties, arrived) VALUES (?, ?, ?, ?, ?)
        """,
        (binding, address, json.dumps(list(topics)), json.dumps(sorted(parties)), arrived),
    )


def change(tx: Tx, binding: int, topics: Iterable[str] | None, parties: Iterable[int] | None) -> None:
    """Let a webhook follow other facts; None: as it is."""
    tx.execute(
        """
        UPDATE webhook_subscription SET topics = ifnull(?, topics), parties = ifnull(?, parties)
        WHERE binding = ?
        """,
        (
            None if topics is None else json.dumps(list(topics)),
            None if parties is None else json.dumps(sorted(parties)),
            binding,
        ),
    )


def list_all(connection: Connection | Tx) -> list[Row]:
    """Return the webhooks that send facts, oldest first."""
    return connection.execute(f"{_SELECT} ORDER BY s.binding").fetchall()


def get(connection: Connection | Tx, binding: int) -> Row | None:
    """Return what a webhook follows; None if it sends no facts, or has ended."""
    row: Row | None = connection.execute(f"{_SELECT} WHERE s.binding = ?", (binding,)).fetchone()
    return row


def own(connection: Connection) -> Own:
    """Return whose facts are never sent. Also of webhooks that ended: their envelopes still fail."""
    row = connection.execute(
        "SELECT id FROM address WHERE fold = ? AND retired_at IS NULL", (SYSTEM.fold,)
    ).fetchone()
    live = frozenset(one["address"] for one in list_all(connection))
    every = connection.execute("SELECT binding FROM webhook_subscription").fetchall()
    return Own(None if row is None else row["id"], live, frozenset(one["binding"] for one in every))


# --- envelopes -----------------------------------------------------------------------


def insert(tx: Tx, binding: int, texts: Sequence[str], arrived: int, now: int) -> bool:
    """Store one envelope for each fact, and how far the webhook is with them; False: it has ended.

    `arrived`: the last arrival number among them, or one that it has already.
    """
    row = get(tx, binding)
    if row is None:
        return False
    for text in texts:
        _insert(tx, row, text, now)
    note_arrived(tx, binding, arrived)
    return True


def insert_gap(tx: Tx, binding: int, text: str, parties: Iterable[int], now: int) -> bool:
    """Store an envelope that says that facts may be missing, unless one waits; False: the webhook has ended.

    Whoever gets that one reads everything later than this. `parties`: whom it follows from now on.
    """
    row = get(tx, binding)
    if row is None:
        return False
    change(tx, binding, None, parties)
    waits = tx.execute(
        "SELECT 1 FROM envelope WHERE id = ? AND status = ? AND handovers = 0",
        (row["gap"], int(Status.PENDING)),
    ).fetchone()
    if waits is None:
        envelope = _insert(tx, row, text, now)
        tx.execute("UPDATE webhook_subscription SET gap = ? WHERE binding = ?", (envelope, binding))
    return True


def note_arrived(tx: Tx, binding: int, arrived: int) -> None:
    """Store that what arrived up to this number is in envelopes for a webhook, or need not be."""
    tx.execute(
        "UPDATE webhook_subscription SET arrived = ?2 WHERE binding = ?1 AND arrived < ?2", (binding, arrived)
    )


def _insert(tx: Tx, row: Row, text: str, now: int) -> int:
    system = tx.cache.live_address(SYSTEM) or tx.cache.add_address(SYSTEM)
    draft = Draft(
        sender=SYSTEM,
        caller=system.id,
        sees_all=True,
        to=(Address("channel", row["name"]),),
        text=text,
        kind=Kind.JSON,
        auto=True,
        binding=row["binding"],
    )
    return messages.insert(tx, draft, now).envelopes[0]


# --- catching up ---------------------------------------------------------------------


def missed(connection: Connection, after: int, upto: int) -> list[Missed]:
    """Return what arrived after an arrival number, up to another one, in that order.

    By the box of each address: no index has arrival numbers alone, since every send would pay for it.
    Not notices, and not what is posted to the boss besides: facts about them are never sent, or others.
    """
    rows = connection.execute(
        """
        SELECT e.id, e.arrived, e.recipient, m.id AS message, m.conversation, m.seq, m.sender, m.arrived_at
        FROM address a CROSS JOIN envelope e INDEXED BY envelope_box
            ON e.recipient = a.id AND e.box IN (0, 1, 2, 3) AND e.status IN (0, 1, 2, 3)
            AND e.arrived > ?1 AND e.arrived <= ?2
        JOIN message m ON m.id = e.message JOIN address s ON s.id = m.sender
        WHERE e.forwards IS NULL AND s.fold <> ?3 ORDER BY e.arrived
        """,
        (after, upto, SYSTEM.fold),
    ).fetchall()
    return [_missed(list(some)) for _, some in groupby(rows, key=lambda row: row["message"])]


def _missed(rows: list[Row]) -> Missed:
    first = rows[0]
    arrivals = [Arrival(row["id"], row["recipient"], row["arrived"]) for row in rows]
    return Missed(
        first["message"],
        first["conversation"],
        first["seq"],
        first["sender"],
        first["arrived_at"],
        arrivals,
    )


def failing(connection: Connection, binding: int) -> Row | None:
    """Return the lane of a webhook that cannot post at the moment; None: it can."""
    row: Row | None = connection.execute(
        """
        SELECT l.first_failed_at, l.wake_at, l.error_text FROM place p
        JOIN lane l ON ifnull(l.address, 0) = p.address AND ifnull(l.binding, 0) = p.binding
        WHERE p.binding = ? AND l.failures > 0 LIMIT 1
        """,
        (binding,),
    ).fetchone()
    return row
