"""The chat of an agent and the boss as one list that only grows: what both said, and what was changed of it.

It is their private conversation, whatever door each message came by. An entry has a place: the sequence
number of a message, or, for a change (an edit, a deletion), that of the message which was the last one then,
and a number after it. So the list is in the order in which things happened, and no place is given twice.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from ..core.address import SYSTEM
from ..core.envelope import Kind
from ..core.errors import BadId
from ..core.ids import LARGEST
from . import conversations
from .connection import Connection, Row
from .group_commit import Tx

NUMBER_DIGITS = 4  # so that places compare like numbers, up to 9,999 changes after one message


class Place(NamedTuple):
    """Where an entry is in its chat. Places compare in the order of the list."""

    seq: int
    number: int = 0  # of a change after that message; 0: the message itself

    def __str__(self) -> str:
        return f"{self.seq}.{self.number:0{NUMBER_DIGITS}}" if self.number else str(self.seq)

    @classmethod
    def parse(cls, given: str | int) -> Place:
        """Return the place that an id of an entry means; raises BadId."""
        text = str(given).strip()
        seq, dot, number = text.partition(".")
        parts = (seq, number) if dot else (seq,)
        if not all(one.isascii() and one.isdigit() and len(one) < 19 for one in parts):
            raise BadId(value=text[:40], kind="chat entry", example=f"57 or {cls(57, 1)}")
        return cls(int(seq), int(number) if dot else 0)


BEGINNING = Place(0)


def between(connection: Connection | Tx, agent: int, boss: int) -> Row | None:
    """Return the conversation that is the chat of an agent and the boss; None: they said nothing yet."""
    row: Row | None = connection.execute(
        "SELECT id, archived_at FROM conversation WHERE key = ?", (conversations.key((agent, boss)),)
    ).fetchone()
    return row


def agent(connection: Connection, address: int) -> Row | None:
    """Return the name of an agent and since when there is one, also if it was deleted; None: it is none."""
    row: Row | None = connection.execute(
        "SELECT a.name, g.created_at FROM address a JOIN agent g ON g.address = a.id WHERE a.id = ?",
        (address,),
    ).fetchone()
    return row


def after(connection: Connection, conversation: int, place: Place, limit: int) -> list[Row]:
    """Return the entries after a place, oldest first."""
    said = connection.execute(
        f"{_SAID} AND m.seq > ?2 ORDER BY m.seq LIMIT ?3", (conversation, place.seq, limit)
    )
    changed = connection.execute(
        f"{_CHANGED} AND (x.after_seq, x.number) > (?2, ?4) ORDER BY x.after_seq, x.number LIMIT ?3",
        (conversation, place.seq, limit, place.number),
    )
    return list(islice(sorted([*said, *changed], key=place_of), limit))


def newest(connection: Connection, conversation: int, limit: int) -> list[Row]:
    """Return the last entries, oldest first."""
    said = connection.execute(f"{_SAID} ORDER BY m.seq DESC LIMIT ?2", (conversation, limit))
    changed = connection.execute(
        f"{_CHANGED} ORDER BY x.after_seq DESC, x.number DESC LIMIT ?2", (conversation, limit)
    )
    return sorted([*said, *changed], key=place_of)[-limit:]


def last(connection: Connection, conversation: int) -> Place:
    """Return the place of the last entry."""
    rows = newest(connection, conversation, 1)
    return place_of(rows[0]) if rows else BEGINNING


def at(connection: Connection | Tx, conversation: int, place: Place) -> Row | None:
    """Return the entry at a place; None: there is none."""
    row: Row | None
    if place.number:
        query = f"{_CHANGED} AND x.after_seq = ?2 AND x.number = ?3"
        row = connection.execute(query, (conversation, place.seq, place.number)).fetchone()
    else:
        row = connection.execute(f"{_SAID} AND m.seq = ?2", (conversation, place.seq)).fetchone()
    return row


def of_message(connection: Connection, message: int) -> Row | None:
    """Return a message and its place; None: there is no such message, or it has not arrived."""
    row: Row | None = connection.execute(
        "SELECT conversation, seq, arrived_at FROM message WHERE id = ? AND seq IS NOT NULL", (message,)
    ).fetchone()
    return row


def place_of(row: Row) -> Place:
    return Place(row["place_seq"], row["place_number"])


def note_change(tx: Tx, message: int, now: int) -> None:
    """Note that a message was edited, deleted or restored, if it was said in an agent's chat with the boss.

    Not where the boss writes to a channel: two of them may become one, and the messages get other numbers.
    """
    tx.execute(
        """
        INSERT INTO chat_change (conversation, after_seq, message, changed_at, number)
        SELECT c.id, last.seq, m.id, ?2, 1 + (
            SELECT ifnull(max(x.number), 0) FROM chat_change x
            WHERE x.conversation = c.id AND x.after_seq = last.seq)
        FROM message m JOIN conversation c ON c.id = m.conversation
        JOIN message last ON last.conversation = c.id
            AND last.seq = (SELECT max(n.seq) FROM message n INDEXED BY message_seq
                            WHERE n.conversation = c.id AND n.seq IS NOT NULL)
        WHERE m.id = ?1 AND m.seq IS NOT NULL AND NOT m.repeats AND c.kind = 'private'
          AND EXISTS (SELECT 1 FROM participant p JOIN user u ON u.address = p.address
                      WHERE p.conversation = c.id AND u.boss = 1)
          AND EXISTS (SELECT 1 FROM participant p JOIN agent g ON g.address = p.address
                      WHERE p.conversation = c.id AND p.role <> 'guest')
        """,
        (message, now),
    )


# --- how far a subscriber has come ------------------------------------------------------


def position(connection: Connection | Tx, holder: int, conversation: int, subscriber: str) -> Place:
    """Return the place up to which a subscriber has acknowledged; the beginning: it never did."""
    row = connection.execute(
        "SELECT seq, number FROM chat_position WHERE holder = ? AND conversation = ? AND subscriber = ?",
        (holder, conversation, subscriber),
    ).fetchone()
    return BEGINNING if row is None else Place(row["seq"], row["number"])


def subscribers(tx: Tx, holder: int) -> int:
    """Return how many positions somebody has."""
    row = tx.execute("SELECT count(*) AS number FROM chat_position WHERE holder = ?", (holder,)).fetchone()
    return int(row["number"])


def advance(tx: Tx, holder: int, conversation: int, subscriber: str, place: Place, now: int) -> bool:
    """Move the position of a subscriber to a place; False: it is there already, or further."""
    if position(tx, holder, conversation, subscriber) >= place:
        return False
    tx.execute(
        """
        INSERT INTO chat_position (holder, conversation, subscriber, seq, number, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (holder, conversation, subscriber) DO UPDATE SET seq = ?4, number = ?5, updated_at = ?6
        """,
        (holder, conversation, subscriber, place.seq, place.number, now),
    )
    return True


_COLUMNS = """
    m.id, m.seq, m.type, m.text, m.subject, m.sender, m.from_boss, m.attachments, m.edited_at, m.deleted_at,
    (SELECT r.seq FROM message r WHERE r.id = m.reply_to AND r.conversation = m.conversation) AS reply_seq
"""
# What hiboss itself says there, and controls, are not said by either of them. A message that only repeats the
# new wording of another one, for an agent that had it already, is in the list as that change.
_SPOKEN = f"""
    NOT m.repeats AND m.type <> {int(Kind.EVENT)}
    AND NOT EXISTS (SELECT 1 FROM address s WHERE s.id = m.sender AND s.fold = '{SYSTEM.fold}')
"""
_SAID = f"""
SELECT m.seq AS place_seq, 0 AS place_number, m.arrived_at AS at, {_COLUMNS}
FROM message m INDEXED BY message_seq
WHERE m.conversation = ?1 AND m.seq IS NOT NULL AND m.seq <= {LARGEST} AND {_SPOKEN}
"""
_CHANGED = f"""
SELECT x.after_seq AS place_seq, x.number AS place_number, x.changed_at AS at, {_COLUMNS}
FROM chat_change x JOIN message m ON m.id = x.message WHERE x.conversation = ?1 AND {_SPOKEN}
"""
