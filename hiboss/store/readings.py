"""Who has seen an envelope, when, and in which session of theirs. What takes a Tx runs inside the writer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core import events
from .group_commit import Tx


def note_read(tx: Tx, number: int, reader: int | None, session: str, now: int, *, tell: bool = True) -> bool:
    """Note that an envelope was read; return whether it was unread before.

    `reader`: None is its recipient. `tell`: False, if another fact says it.
    """
    tx.execute(
        """
        INSERT INTO reading (envelope, reader, session, at)
        SELECT id, ifnull(?2, recipient), ?3, ?4 FROM envelope WHERE id = ?1
        ON CONFLICT DO UPDATE SET at = excluded.at, read = 1 WHERE read = 0
        """,
        (number, reader, session, now),
    )
    changed = tx.execute(
        f"UPDATE envelope SET read_at = {FIRST_READ} WHERE id = ? AND read_at IS NULL", (number,)
    )
    if changed.rowcount and tell:
        tx.facts.append(events.EnvelopeRead(now, number))
    return bool(changed.rowcount)


# When an envelope was first read. What a poll has shown was not read: nobody knows what became of the answer.
FIRST_READ = "(SELECT min(at) FROM reading WHERE envelope = envelope.id AND read = 1)"


def note_read_together(tx: Tx, numbers: Sequence[int], reader: int, session: str, now: int) -> None:
    """Note that unread envelopes were read, all in one statement."""
    chosen = "SELECT value FROM json_each(?1)"
    listed = f"[{','.join(map(str, numbers))}]"
    tx.execute(
        f"""
        INSERT INTO reading (envelope, reader, session, at)
        SELECT value, ?2, ?3, ?4 FROM ({chosen}) WHERE true
        ON CONFLICT DO UPDATE SET at = excluded.at, read = 1 WHERE read = 0
        """,
        (listed, reader, session, now),
    )
    tx.execute(
        f"UPDATE envelope SET read_at = {FIRST_READ} WHERE id IN ({chosen}) AND read_at IS NULL", (listed,)
    )
    tx.facts += [events.EnvelopeRead(now, number) for number in numbers]


def note_shown(tx: Tx, numbers: Iterable[int], reader: int, session: str, now: int) -> None:
    """Note which session was shown envelopes by a poll. They stay unread."""
    for number in numbers:
        tx.execute(
            "INSERT OR IGNORE INTO reading (envelope, reader, session, at, read) VALUES (?, ?, ?, ?, 0)",
            (number, reader, session, now),
        )
