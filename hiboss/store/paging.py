"""Lists, one page at a time: of envelopes and of messages.

Every walk follows one index and stops at the end of the page, so a page costs the same in a
box of ten and in a box of a million. A cursor is a position in the order of the list: an
arrival number; the id of an envelope among those that have not arrived yet (visible to
sender and boss only); a number of a conversation; or the position in the order of acceptance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from ..core.shown_envelope import ShownEnvelope
from . import envelope_rows, envelope_walks
from .connection import Connection
from .group_commit import Tx
from .list_query import Page, Position, Query

__all__ = ["Page", "Position", "Query", "Total", "Walk", "count", "fitting", "page", "shown"]

MEASURED_AT_ONCE = 10  # envelopes; large texts after the end of a page need not be read
LARGEST_IN_JSON = 6  # bytes that one byte of a text can have in an answer, as \u0001
Walk = Callable[[Connection, Query, int], list[tuple[int, Position]]]


class Total(NamedTuple):
    """How many there are; counted up to a limit."""

    number: int
    capped: bool  # there are more

    def pages(self, size: int) -> int | None:
        """Return how many pages of this size there are; None: nobody counted."""
        return None if self.capped else -(-self.number // size)


def page(connection: Connection, query: Query, walk: Walk = envelope_walks.walk) -> Page:
    """Return the ids of one page and where it ended; `next` is None on the last page."""
    found = walk(connection, query, query.limit + 1)  # one more tells whether there is a next page
    return Page(found, more=False).first(query.limit)


def count(connection: Connection, query: Query, exact_to: int) -> Total:
    """Return how many envelopes there are in total, exact up to a limit."""
    found = page(connection, replace(query, limit=exact_to, after=None))
    return Total(len(found.found), found.more)


def fitting(
    connection: Connection | Tx,
    ids: Sequence[int],
    most: int,
    of: Literal["envelope", "message"] = "envelope",
) -> list[int]:
    """Return the first of these envelopes whose contents have at most so many bytes in JSON; at least one.

    `of`: whose ids they are.
    """
    groups = [ids[start : start + MEASURED_AT_ONCE] for start in range(0, len(ids), MEASURED_AT_ONCE)]
    if _surely_fit(connection, groups, most, of):
        return list(ids)
    left, found = most, 0
    for some in groups:
        size = _content_bytes(connection, some, "json_quote(m.text)", of)
        if size > left:  # it ends among these
            for number in some:
                left -= _content_bytes(connection, [number], "json_quote(m.text)", of)
                if left < 0:
                    return list(ids[: max(found, 1)])
                found += 1
        left -= size
        found += len(some)
    return list(ids)


def shown(connection: Connection, ids: Sequence[int], most: int) -> list[ShownEnvelope]:
    """Return the first of these envelopes as they are shown: those that `fitting` would return."""
    rows: list[ShownEnvelope] = []
    left = most
    for start in range(0, len(ids), MEASURED_AT_ONCE):
        some = envelope_rows.shown(connection, ids[start : start + MEASURED_AT_ONCE])
        rows += some
        left -= LARGEST_IN_JSON * sum(_length(row) for row in some)
        if left < 0:  # some may be too many: they must be measured
            return envelope_rows.shown(connection, fitting(connection, ids, most))
    return rows


def _length(row: ShownEnvelope) -> int:
    return len(row.text) + sum(len(one) for one in (row.metadata, row.channel, row.attachments) if one)


def _surely_fit(connection: Connection | Tx, groups: Sequence[Sequence[int]], most: int, of: str) -> bool:
    """Tell whether these envelopes fit, whatever their texts are: the usual case, without encoding them."""
    left = most
    for some in groups:
        left -= LARGEST_IN_JSON * _content_bytes(connection, some, "m.text", of)
        if left < 0:
            return False
    return True


_SOURCES = {
    "envelope": "envelope e JOIN message m ON m.id = e.message WHERE e.id",
    "message": "message m WHERE m.id",
}


def _content_bytes(connection: Connection | Tx, ids: Sequence[int], text: str, of: str) -> int:
    # A cast to BLOB: of a text, length() counts the characters.
    row = connection.execute(
        f"""
        SELECT sum(length(CAST({text} AS BLOB)) + ifnull(length(CAST(m.metadata AS BLOB)), 0)
                   + ifnull(length(CAST(m.channel AS BLOB)), 0)
                   + ifnull(length(CAST(m.attachments AS BLOB)), 0))
        FROM {_SOURCES[of]} IN ({",".join("?" * len(ids))})
        """,
        list(ids),
    ).fetchone()
    return int(row[0] or 0)
