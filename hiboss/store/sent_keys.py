"""Idempotency keys: the first answer for a key is given again, and nothing is sent twice.

What takes a Tx runs inside the writer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..core.address import BOSS, Address
from ..core.envelope import Accepted, Draft
from ..core.errors import KeyReused
from .group_commit import Tx


def insert(tx: Tx, draft: Draft, message: int, skipped: Sequence[str]) -> None:
    """Store the key of a message. `skipped`: parties of its thread who did not get it."""
    tx.execute(
        "INSERT INTO sent_key (caller, key, message, digest, skipped) VALUES (?, ?, ?, ?, ?)",
        (draft.caller, draft.key, message, draft.digest, json.dumps(skipped) if skipped else None),
    )


def repeated(tx: Tx, draft: Draft) -> Accepted | None:
    """Return the first answer for the key of this draft; None if the key is new.

    Raise KeyReused if the key was used for other content.
    """
    key = draft.key
    row = tx.execute(
        """
        SELECT k.digest, k.skipped, m.id, m.conversation, m.thread, m.deliver_at,
               ifnull(p.conversation <> m.conversation, 0) AS elsewhere
        FROM sent_key k JOIN message m ON m.id = k.message LEFT JOIN message p ON p.id = m.reply_to
        WHERE k.caller = ? AND k.key = ?
        """,
        (draft.caller, key),
    ).fetchone()
    if row is None:
        return None
    found = named_envelopes(tx, draft, row["id"])
    if row["digest"] != draft.digest:
        raise KeyReused(key=key, id=f"e{found[0]}")
    return Accepted(
        message=row["id"],
        conversation=row["conversation"],
        thread=row["thread"] or row["id"],
        envelopes=found,
        deliver_at=row["deliver_at"],
        duplicate=True,
        elsewhere=bool(row["elsewhere"]),
        skipped=tuple(json.loads(row["skipped"] or "[]")),
    )


def named_envelopes(tx: Tx, draft: Draft, message: int) -> tuple[int, ...]:
    """Return the envelopes of those to whom a draft was sent, in their order.

    Of a forward and what it forwards, that is the one whose recipient the sender named.
    """
    rows = tx.execute(
        """
        SELECT e.id, e.forwards, e.addressed, a.kind, a.name
        FROM envelope e JOIN address a ON a.id = ifnull(e.routed_from, e.recipient)
        WHERE e.message = ? AND e.routed_from IS NOT e.recipient ORDER BY e.id
        """,
        (message,),
    ).fetchall()
    if groups := [row["id"] for row in rows if row["kind"] == "group"]:
        return (groups[0],)
    order = {address.fold: place for place, address in enumerate(draft.to)}
    folds = {row["id"]: Address(row["kind"], row["name"]).fold for row in rows}
    posted = {row["id"] for row in rows if row["addressed"]}
    boxes = {row["forwards"] for row in rows if row["id"] in posted and BOSS.fold not in order}
    own = [row["id"] for row in rows if row["forwards"] is None and row["id"] not in boxes]
    return tuple(sorted([*own, *posted], key=lambda number: (order.get(folds[number], 0), number)))
