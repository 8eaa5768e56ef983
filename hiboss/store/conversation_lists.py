"""Lists of conversations, one page at a time: one's own, newest first, and groups by their names.

A page looks through at most LOOKED_THROUGH conversations, so it costs the same for somebody who has ten and
for somebody who has a million. With filters it can be shorter than asked for, and still have a next one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .connection import Connection, Row
from .group_delivery import ALL

LOOKED_THROUGH = 1_000  # conversations for one page, and for one count
OTHERS = 20  # parties that are named of a conversation that is no group

# What somebody (?1) has in each conversation (c): the last stay (p), and what is unread.
COLUMNS = """
SELECT c.id, c.kind, c.address, c.name, c.description, c.open, c.history, c.first_seq, c.last_seq,
       c.created_at, c.archived_at, c.deleted_at, c.delete_reason, c.metadata,
       (SELECT kind || ':' || name FROM address WHERE id = c.created_by) AS created_by,
       (SELECT kind || ':' || name FROM address WHERE id = c.deleted_by) AS deleted_by,
       p.role, p.respond, p.joined_at, p.left_at, p.left_seq, ifnull(p.last_read_seq, 0) AS last_read_seq,
       (SELECT kind FROM address WHERE id = ?1) AS viewer_kind,
       (SELECT count(*) FROM participant WHERE conversation = c.id AND left_seq IS NULL) AS participants,
       (SELECT ifnull(sum(number), 0) FROM unread u WHERE u.address = ?1 AND u.conversation = c.id) AS unread,
       (SELECT arrived_at FROM message m WHERE m.conversation = c.id AND m.seq IS NOT NULL
          AND m.seq = min(c.last_seq, ifnull(p.left_seq, c.last_seq))) AS last_at
"""
_STAY = """
LEFT JOIN participant p ON p.conversation = c.id AND p.address = ?1 AND p.joined_seq = (
    SELECT max(joined_seq) FROM participant WHERE conversation = c.id AND address = ?1)
"""


class Filter(NamedTuple):
    """Which conversations to list."""

    kind: str | None = None  # private, adhoc, group
    archived: bool | None = None
    name: str | None = None  # of a group
    past: bool = False  # also what the owner left, and what was deleted


class Page(NamedTuple):
    rows: list[Row]
    next: str | None  # where the next page begins; None: this is the last


_MATCHES = """
(?2 IS NULL OR c.kind = ?2) AND (?3 IS NULL OR (c.archived_at IS NOT NULL) = ?3)
AND (?4 IS NULL OR (c.kind = 'group' AND lower(c.name) = ?4))
AND (?5 OR (p.left_seq IS NULL AND c.deleted_at IS NULL))
AND NOT (c.kind = 'group' AND c.name = 'all')
"""


def _values(owner: int, which: Filter) -> tuple[Any, ...]:
    return owner, which.kind, which.archived, which.name and which.name.lower(), which.past


# Newest first. The index also has the conversation, since that is part of the primary key.
_OWN = """
SELECT DISTINCT conversation FROM participant INDEXED BY participant_address
WHERE address = ?1 AND conversation < ?6 ORDER BY conversation DESC LIMIT ?7
"""


def own(connection: Connection, owner: int, which: Filter, limit: int, before: int) -> Page:
    """Return the conversations that somebody is in, newest first, below an id."""
    values = (*_values(owner, which), before, LOOKED_THROUGH)
    rows = connection.execute(
        f"""
        {COLUMNS} FROM ({_OWN}) own CROSS JOIN conversation c ON c.id = own.conversation {_STAY}
        WHERE {_MATCHES} ORDER BY own.conversation DESC LIMIT ?8
        """,
        (*values, limit + 1),
    ).fetchall()
    if len(rows) > limit:
        return Page(rows[:limit], f"c{rows[limit - 1]['id']}")
    looked = connection.execute(
        f"SELECT count(*) AS number, min(conversation) AS last FROM ({_OWN})",
        (owner, None, None, None, None, before, LOOKED_THROUGH),
    ).fetchone()
    return Page(rows, f"c{looked['last']}" if looked["number"] == LOOKED_THROUGH else None)


def count(connection: Connection, owner: int, which: Filter) -> tuple[int, bool]:
    """Return how many of somebody's newest conversations match, and whether there are older ones."""
    found = connection.execute(
        f"""
        SELECT count(*) AS looked, ifnull(sum({_MATCHES}), 0) AS number
        FROM ({_OWN}) own CROSS JOIN conversation c ON c.id = own.conversation {_STAY}
        """,
        (*_values(owner, which), 2**62, LOOKED_THROUGH + 1),
    ).fetchone()
    return min(found["number"], LOOKED_THROUGH), found["looked"] > LOOKED_THROUGH


def groups(
    connection: Connection, viewer: int, limit: int, after: str, *, archived: bool | None, every: bool
) -> Page:
    """Return the groups that are open, or all (`every`), by their names, after one of them; not group:all."""
    rows = connection.execute(
        f"""
        {COLUMNS} FROM address a INDEXED BY address_live CROSS JOIN conversation c ON c.address = a.id {_STAY}
        WHERE a.fold > ?2 AND a.fold < 'group;' AND a.retired_at IS NULL AND a.fold <> '{ALL.fold}'
          AND (?3 OR c.open) AND (?4 IS NULL OR (c.archived_at IS NOT NULL) = ?4) AND c.deleted_at IS NULL
        ORDER BY a.fold LIMIT ?5
        """,
        (viewer, f"group:{after.lower()}", every, archived, limit + 1),
    ).fetchall()
    return Page(rows[:limit], rows[limit - 1]["name"] if len(rows) > limit else None)


def count_groups(connection: Connection, *, archived: bool | None, every: bool) -> tuple[int, bool]:
    """Return how many groups are open, or are there at all, and whether there are more than are counted."""
    rows = connection.execute(
        f"""
        SELECT 1 FROM address a INDEXED BY address_live CROSS JOIN conversation c ON c.address = a.id
        WHERE a.fold > 'group:' AND a.fold < 'group;' AND a.retired_at IS NULL AND a.fold <> '{ALL.fold}'
          AND (?1 OR c.open) AND (?2 IS NULL OR (c.archived_at IS NOT NULL) = ?2) LIMIT ?3
        """,
        (every, archived, LOOKED_THROUGH + 1),
    ).fetchall()
    return min(len(rows), LOOKED_THROUGH), len(rows) > LOOKED_THROUGH


def one(connection: Connection, viewer: int, conversation: int) -> Row:
    """Return one conversation in the form of the lists; the caller has checked that it may be seen."""
    row: Row = connection.execute(
        f"{COLUMNS} FROM conversation c {_STAY} WHERE c.id = ?2", (viewer, conversation)
    ).fetchone()
    return row


def others(connection: Connection, conversation: int, viewer: int) -> list[str]:
    """Return the parties of a conversation besides the viewer, at most OTHERS."""
    rows = connection.execute(
        """
        SELECT DISTINCT a.kind || ':' || a.name AS address FROM participant p
        JOIN address a ON a.id = p.address
        WHERE p.conversation = ? AND p.address <> ? AND p.role <> 'guest' ORDER BY p.address LIMIT ?
        """,
        (conversation, viewer, OTHERS),
    )
    return [row["address"] for row in rows]


def agents(connection: Connection) -> int:
    """Return how many are in group:all."""
    row = connection.execute("SELECT count(*) FROM agent WHERE deleted_at IS NULL").fetchone()
    return int(row[0])
