"""Messages of a group that are offered to several members: the first who takes one answers it.

Whoever has it in hand (held, or leased) has taken it from the others, who then only read it along. When it
is not in hand any more and not done, all who are still members have it again. envelopes.py calls this where
an envelope comes into a hand or leaves it, so no way of ending a turn is forgotten. What takes a Tx runs
inside the writer.
"""

from __future__ import annotations

from ..core import events
from ..core.envelope import Waits
from . import ack_deadlines
from .group_commit import Tx


def take(tx: Tx, number: int, now: int) -> None:
    """Take an envelope from the other members, if it is offered: they read it along."""
    rows = tx.execute(
        """
        UPDATE envelope SET context = 1, status = 1, done_at = ?1,
               waits = iif(waits = ?3, waits, NULL), wait_until = iif(waits = ?3, wait_until, NULL)
        WHERE message = (SELECT own.message FROM envelope own WHERE own.id = ?2 AND own.offered = 1)
          AND id <> ?2 AND offered = 1
          AND status = 0 AND held_by IS NULL AND waits IS NOT ?4
        RETURNING id
        """,
        (now, number, int(Waits.SNOOZE), int(Waits.LEASE)),
    ).fetchall()
    tx.facts += [events.EnvelopeSettled(now, row["id"], "done") for row in rows]


def give_back(tx: Tx, number: int, now: int) -> None:
    """Offer an envelope again, if it was, to the members who are there and have not put their copy away."""
    rows = tx.execute(
        """
        SELECT e.id, e.recipient FROM envelope own JOIN message m ON m.id = own.message
        JOIN envelope e ON e.message = m.id AND e.id <> own.id AND e.offered = 1 AND e.context = 1
            AND e.acked_at IS NULL AND e.box IN (0, 3)
        JOIN address a ON a.id = e.recipient AND a.retired_at IS NULL
        WHERE own.id = ? AND own.offered = 1 AND m.deleted_at IS NULL
          AND EXISTS (SELECT 1 FROM participant p WHERE p.conversation = m.conversation
                      AND p.address = e.recipient AND p.left_seq IS NULL)
        """,
        (number,),
    ).fetchall()
    for row in rows:
        tx.execute(
            "UPDATE envelope SET context = 0, status = 0, done_at = NULL, due_again = ? WHERE id = ?",
            (tx.cache.next_arrived(), row["id"]),
        )
        ack_deadlines.put_again(tx, row["id"])
        tx.facts.append(events.EnvelopeDue(now, row["id"]))
        tx.arrived_for.append(row["recipient"])


def withdraw(tx: Tx, recipient: int, now: int, conversation: int | None = None) -> None:
    """Take all offers from a member who leaves a group, or is deleted (None: in all); the others have them.

    What it has in hand it may finish, but that is not an offer any more: others deal with it too.
    """
    rows = tx.execute(
        """
        SELECT e.id, e.held_by IS NOT NULL OR e.waits IS ?3 AS in_hand FROM envelope e INDEXED BY envelope_box
        JOIN message m ON m.id = e.message
        WHERE e.recipient = ?1 AND e.box IN (0, 3) AND e.status = 0 AND e.offered = 1
          AND (?2 IS NULL OR m.conversation = ?2)
        """,
        (recipient, conversation, int(Waits.LEASE)),
    ).fetchall()
    for row in rows:
        give_back(tx, row["id"], now)
        tx.execute("UPDATE envelope SET offered = 0 WHERE id = ?", (row["id"],))
        if not row["in_hand"]:
            query = "waits = NULL, wait_until = NULL, context = 1, status = 1, done_at = ?"
            tx.execute(f"UPDATE envelope SET {query} WHERE id = ?", (now, row["id"]))
            tx.facts.append(events.EnvelopeSettled(now, row["id"], "done"))
