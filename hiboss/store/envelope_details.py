"""What a page of envelopes shows that is in no column of theirs: quotes, reactions, tags, who has read them.

One query of each kind for a whole page, however many envelopes it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core import clock
from ..core.envelope_json import Beside, ReadingJson, ShownEnvelope, TagJson, Tags
from . import envelope_rows, reactions
from .connection import Connection

READERS = 20  # of one envelope, at most
LISTED_TAGS = 100  # of one message, at most: its sender may give fewer


def of_page(connection: Connection, rows: Sequence[ShownEnvelope], viewer: int | None) -> Beside:
    """Return what a page shows beside these envelopes; the viewer None is the boss."""
    read_by = readers(connection, [row.id for row in rows])
    return of_turn(connection, rows, viewer)._replace(read_by=read_by)


def of_turn(connection: Connection, rows: Sequence[ShownEnvelope], viewer: int | None) -> Beside:
    """Return what a turn shows beside these envelopes: not who has read them."""
    messages = [row.message for row in rows]
    return Beside(
        quotes=envelope_rows.quotes(connection, [row.reply_to for row in rows], viewer),
        reactions=reactions.of_messages(connection, messages),
        tags=tags(connection, messages),
    )


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
    rows = connection.execute(
        f"""
        SELECT r.envelope, r.session, r.at, r.read, a.kind || ':' || a.name AS address FROM (
            SELECT *, row_number() OVER (PARTITION BY envelope ORDER BY at, reader, session) AS number
            FROM reading WHERE envelope IN ({",".join("?" * len(envelopes))})) r
        JOIN address a ON a.id = r.reader WHERE r.number <= {READERS} ORDER BY r.envelope, r.number
        """,
        tuple(envelopes),
    )
    found: dict[int, list[ReadingJson]] = {}
    for row in rows:
        one: ReadingJson = {
            "address": row["address"],
            "session": row["session"] or None,
            "at": clock.iso(row["at"]),
            "read": bool(row["read"]),
        }
        found.setdefault(row["envelope"], []).append(one)
    return found
