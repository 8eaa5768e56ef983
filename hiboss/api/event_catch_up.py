"""What a stream of events reads from the store: mail that arrived meanwhile, and how much is unread.

Not operations: a client that calls operations reads lists. The rights are those of `event.subscribe`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..routing.fact_json import arrived as arrival_json
from ..store import fact_parties, past_arrivals, unread_counts
from ..store.connection import Connection
from .addresses import acting_for
from .auth import Caller
from .context import Context

AT_ONCE = 500


class Box(NamedTuple):
    """Whose mail a stream is about."""

    id: int
    address: str


class Unread(NamedTuple):
    number: int
    capped: bool  # there are more


def box_of(context: Context, caller: Caller, agent: str | None) -> Box:
    """Return the chosen box: one's own; for the boss any."""
    number = acting_for(context.store, caller, agent)
    return Box(number, context.store.read(lambda c: fact_parties.address_name(c, number)))


def missed(context: Context, box: Box, after: int, up_to: int) -> list[dict[str, Any]]:
    """Return the first facts about mail that arrived in a box after one arrival number, up to another."""

    def read(connection: Connection) -> list[dict[str, Any]]:
        def name(address: int) -> str:
            return fact_parties.address_name(connection, address)

        found = past_arrivals.between(connection, box.id, after, up_to, AT_ONCE)
        return [arrival_json(fact, name, fact.envelopes) for fact in found]

    return context.store.read(read)


def unread(context: Context, box: Box) -> Unread:
    """Return how much is unread in a box."""
    limit = context.settings.count_exact_to
    found = context.store.read(lambda c: unread_counts.of_box(c, box.id, limit))
    return Unread(found.number, found.capped)
