"""Read conversations: the messages between the same parties, in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..core.address import SYSTEM
from ..core.envelope import Kind
from .connection import Connection, Row

WAITED = 100  # messages before a guest came that it may have got, and after it left that it may have written


def key(parties: Iterable[int]) -> str:
    """Return the key of the conversation between exactly these addresses, whoever of them writes."""
    ids = sorted(set(parties))
    return ",".join(map(str, ids if len(ids) > 1 else ids * 2))  # twice: who writes to nobody else


def between(connection: Connection, parties: Iterable[int]) -> Row | None:
    """Return the conversation between exactly these addresses; None if there is none."""
    row: Row | None = connection.execute(
        "SELECT id, first_seq, last_seq FROM conversation WHERE key = ?", (key(parties),)
    ).fetchone()
    return row


class Guest(NamedTuple):
    """Somebody who has a conversation in the place of an agent, and sees what it got or wrote there."""

    address: int
    since: int  # the first sequence number that may be shown


def shared(connection: Connection, own: int, other: int) -> tuple[Row | None, Guest | None]:
    """Return the conversation of two: one that the first has in the place of an agent, else their own."""
    return taken_over(connection, own, other) or (between(connection, (own, other)), None)


def taken_over(connection: Connection, own: int, other: int) -> tuple[Row, Guest] | None:
    """Return the conversation with another one that somebody has in the place of an agent; None: none."""
    row = connection.execute(
        """
        SELECT c.id, c.first_seq, c.last_seq, g.joined_seq FROM conversation_route r
        CROSS JOIN participant p ON p.conversation = r.conversation AND p.address = ?2 AND p.role <> 'guest'
        CROSS JOIN participant g ON g.conversation = r.conversation AND g.address = ?1 AND g.left_seq IS NULL
        JOIN conversation c ON c.id = r.conversation
        WHERE r.destination = ?1 AND r.agent <> ?2 AND p.left_seq IS NULL ORDER BY c.id DESC LIMIT 1
        """,
        (own, other),
    ).fetchone()
    return None if row is None else (row, Guest(own, row["joined_seq"] - WAITED))


def after(
    connection: Connection,
    conversation: int,
    seq: int,
    limit: int,
    guest: Guest | None = None,
    viewer: int | None = None,
) -> list[tuple[int, int]]:
    """Return the messages after a sequence number, oldest first: (sequence number, one of its envelopes).

    `viewer`: who looks; None sees all, also what hiboss asked another party there.
    """
    address, since = guest or (None, 0)
    rows = connection.execute(
        f"{_MESSAGES} ORDER BY m.seq LIMIT ?3",
        (conversation, max(seq, since - 1), limit, address, _LAST, viewer),
    ).fetchall()
    return [(row["seq"], row["envelope"]) for row in rows]


def before(
    connection: Connection,
    conversation: int,
    seq: int | None,
    limit: int,
    guest: Guest | None = None,
    viewer: int | None = None,
) -> list[tuple[int, int]]:
    """Return the last messages before a sequence number, or of all; oldest first, as `after` does."""
    address, since = guest or (None, 0)
    rows = connection.execute(
        f"{_MESSAGES} ORDER BY m.seq DESC LIMIT ?3",
        (conversation, since - 1, limit, address, _LAST if seq is None else seq, viewer),
    ).fetchall()
    return [(row["seq"], row["envelope"]) for row in reversed(rows)]


_LAST = 2**63 - 1
# Of a guest (?4): only what it got or wrote. What hiboss asks an agent, like a summary, only who got it.
_MESSAGES = f"""
SELECT m.seq, (SELECT min(e.id) FROM envelope e WHERE e.message = m.id) AS envelope
FROM message m INDEXED BY message_seq
WHERE m.conversation = ?1 AND m.seq IS NOT NULL AND m.seq > ?2 AND m.seq < ?5
  AND (?4 IS NULL OR m.sender = ?4 OR EXISTS (
      SELECT 1 FROM envelope e WHERE e.message = m.id AND e.recipient = ?4 AND e.arrived IS NOT NULL))
  AND (?6 IS NULL OR m.type = {int(Kind.EVENT)}
       OR NOT EXISTS (SELECT 1 FROM address s WHERE s.id = m.sender AND s.fold = '{SYSTEM.fold}')
       OR EXISTS (SELECT 1 FROM envelope e WHERE e.message = m.id AND e.recipient = ?6))
"""


# --- what somebody may read, of any conversation ---------------------------------------


class Stretch(NamedTuple):
    """A part of a conversation that somebody may read: from one sequence number to another."""

    first: int
    last: int
    got_only: bool = False  # of it, only what this one sent or got


def stretches(connection: Connection, conversation: Row, viewer: int | None) -> list[Stretch]:
    """Return what somebody may read of a conversation, oldest first: one part for each stay. None: all of it.

    `conversation`: its id, kind, name, first_seq and last_seq. Of group:all everybody sees what it got.
    """
    first, last = conversation["first_seq"], conversation["last_seq"]
    of_all = conversation["kind"] == "group" and conversation["name"] == "all"
    if viewer is None or of_all:
        return [Stretch(first, last, viewer is not None)] if last >= first else []
    rows = connection.execute(
        """
        SELECT role = 'guest' AS guest, joined_seq, ifnull(left_seq, ?3) AS last FROM participant
        WHERE conversation = ?1 AND address = ?2 ORDER BY joined_seq
        """,
        (conversation["id"], viewer, last),
    )
    found: list[Stretch] = []
    for row in rows:
        around = WAITED if row["guest"] else 0
        one = Stretch(
            max(first, row["joined_seq"] - around), min(last, row["last"] + around), bool(row["guest"])
        )
        if one.last >= one.first:
            found.append(one)
            first = one.last + 1  # nothing is shown twice
    return found


class Piece(NamedTuple):
    """Which messages of a conversation to list."""

    conversation: int
    stretches: list[Stretch]
    viewer: int | None
    after: int | None = None  # from the first one behind this sequence number on; None: the last ones
    before: int = 2**63 - 1


def piece(connection: Connection, wanted: Piece, limit: int) -> list[tuple[int, int]]:
    """Return messages, oldest first: (sequence number, envelope), the viewer's own one if it has one."""
    forward = wanted.after is not None
    found: list[tuple[int, int]] = []
    for part in wanted.stretches if forward else reversed(wanted.stretches):
        rows = connection.execute(
            f"{_PIECE} ORDER BY m.seq {'' if forward else 'DESC'} LIMIT ?5",
            (
                wanted.conversation,
                max(part.first - 1, wanted.after or 0),
                min(part.last + 1, wanted.before),
                wanted.viewer,
                limit - len(found),
                part.got_only,
            ),
        ).fetchall()
        found += [(row["seq"], row["envelope"]) for row in rows]
        if len(found) == limit:
            break
    return found if forward else found[::-1]


_OWN = "SELECT e.id FROM envelope e WHERE e.message = m.id AND e.recipient = ?4 AND e.arrived IS NOT NULL"
# What hiboss asks an agent, like a summary, sees only who got it.
_PIECE = f"""
SELECT m.seq, ifnull(({_OWN}), (SELECT min(e.id) FROM envelope e WHERE e.message = m.id)) AS envelope
FROM message m INDEXED BY message_seq
WHERE m.conversation = ?1 AND m.seq IS NOT NULL AND m.seq > ?2 AND m.seq < ?3
  AND (NOT ?6 OR m.sender = ?4 OR EXISTS ({_OWN}))
  AND (?4 IS NULL OR m.type = {int(Kind.EVENT)} OR EXISTS ({_OWN})
       OR NOT EXISTS (SELECT 1 FROM address s WHERE s.id = m.sender AND s.fold = '{SYSTEM.fold}'))
"""
