"""What a page of envelopes shows that is in no column of theirs: quotes, reactions, tags, who has read them.

One query of each kind for a whole page, however many envelopes it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core import clock
from ..core.envelope_json import Beside, ReadingJson, TagJson, Tags
from ..core.shown_envelope import ShownEnvelope
from . import envelope_rows, reactions
from .connection import Connection

READERS = 20  # of one envelope, at most
LISTED_TAGS = 100  # of one message, at most: its sender may give fewer


def of_page(connection: Connection, rows: Sequence[ShownEnvelope], viewer: int | None) -> Beside:
    """Return what a page shows beside these envelopes; the viewer None is the boss."""
    found = of_turn(connection, rows, viewer)
    numbers = [row.id for row in rows]
    if not _any(connection, "reading", "envelope", numbers):
        return found
    return found._replace(read_by=readers(connection, numbers))


def of_turn(connection: Connection, rows: Sequence[ShownEnvelope], viewer: int | None) -> Beside:
    """Return what a turn shows beside these envelopes: not who has read them."""
    messages = [row.message for row in rows]
    replied_to = [row.reply_to for row in rows if row.reply_to is not None]
    reacted = _any(connection, "reaction", "message", messages)
    tagged = _any(connection, "tag INDEXED BY tag_message", "message", messages)
    return Beside(
        quotes=envelope_rows.quotes(connection, replied_to, viewer) if replied_to else {},
        reactions=reactions.of_messages(connection, messages) if reacted else {},
        tags=tags(connection, messages) if tagged else {},
    )


def _any(connection: Connection, table: str, column: str, numbers: Sequence[int]) -> bool:
    """Tell whether a table may have something about these: one step of an index instead of one for each."""
    if not numbers:
        return False
    query = f"SELECT 1 FROM {table} WHERE {column} BETWEEN ? AND ? LIMIT 1"
    return connection.execute(query, (min(numbers), max(numbers))).fetchone() is not None


def tags(connection: Connection, messages: Iterable[int]) -> dict[int, Tags]:
    """Return what these messages are about and refer to, by id; those with no tags are left out."""
    numbers = set(messages)
    if not numbers:
        return {}
    rows = connection.execute(
        f"""
        SELECT message, kind, name, value FROM tag INDEXED BY tag_message
        WHERE message IN ({",".join("?" * len(numbers))}) ORDER BY message, kind, name, value
        """,
        tuple(numbers),
    )
    found: dict[int, Tags] = {}
    for message, kind, name, value in rows:
        one = found.setdefault(message, Tags([], []))
        # A mention is also a ref. Who is called by a name and a role at once is mentioned once.
        tag: TagJson = (
            {"type": "mention", "value": name} if kind == "mention" else {"type": name, "value": value}
        )
        kept = one.scopes if kind == "scope" else one.refs
        if tag not in kept[-1:] and len(kept) < LISTED_TAGS:
            kept.append(tag)
    return found


def readers(connection: Connection, envelopes: Sequence[int]) -> dict[int, list[ReadingJson]]:
    """Return who has seen these envelopes, by id, the first READERS of each."""
    if not envelopes:
        return {}
    cursor = connection.cursor()
    cursor.row_factory = None
    cursor.execute(
        f"""
        SELECT r.envelope, r.session, r.at, r.read, a.kind || ':' || a.name FROM reading r
        CROSS JOIN address a ON a.id = r.reader WHERE r.envelope IN ({",".join("?" * len(envelopes))})
        ORDER BY r.envelope, r.at, r.reader, r.session
        """,
        tuple(envelopes),
    )
    found: dict[int, list[ReadingJson]] = {}
    for envelope, session, at, read, address in cursor:
        known = found.setdefault(envelope, [])
        if len(known) < READERS:
            known.append(
                {"address": address, "session": session or None, "at": clock.iso(at), "read": read != 0}
            )
    return found
