"""The writer's cache: kept in memory so that a send reads almost nothing from the database.

It holds addresses, conversations, routes, and the last sequence and arrival numbers. Only the writer's
thread uses it. Numbers given out inside a group are written once, before its COMMIT; after a
rollback the cache returns to what is in the database.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.address import Address
from ..core.envelope import Lane
from ..core.errors import NotFound
from . import conversations
from .connection import Connection

MEMORY = 20_000  # entries of all kinds; above that the cache is cleared
_ROUTES = """
SELECT r.conversation, a.id, a.name, d.id, d.kind, d.name, r.kind = 'handoff' FROM conversation_route r
JOIN address a ON a.id = r.agent JOIN address d ON d.id = r.destination ORDER BY r.conversation, r.agent
"""


class LiveAddress(NamedTuple):
    """An address that is in use now."""

    id: int
    address: Address


class Reach(NamedTuple):
    """Where mail for the boss is also posted."""

    boss: int | None  # the boss's address; None before setup
    place: Lane | None  # None: nowhere
    forward: str  # all, important, off


class Route(NamedTuple):
    """Who gets what is for an agent in a conversation."""

    agent: LiveAddress  # in whose place
    destination: LiveAddress
    handed_over: bool  # the agent reads along


class Routes(NamedTuple):
    """All routes that hold. There are few: each was ordered by somebody."""

    of: dict[int, list[Route]]  # by conversation
    destinations: frozenset[int]  # address ids


class WriterCache:
    """See the module's docstring."""

    def __init__(self, connection: Connection) -> None:
        self._execute = connection.execute
        self.destinations: dict[
            Any, Any
        ] = {}  # of plain drafts (destinations.py); emptied with what it is of
        self._addresses: dict[Address, LiveAddress] = {}  # by the address as written, upper or lower case
        self._conversations: dict[tuple[int, ...], int] = {}  # by the parties in any order
        self._last_seq: dict[int, int] = {}
        self._arrived: int | None = None
        self._touched: dict[int, int] = {}  # conversation -> last seq, given out in this group
        self._arrived_flushed: int | None = None
        self._undo: list[tuple[int, int]] = []
        self._arrived_mark: int | None = None
        self._reach: Reach | None = None  # None: not read yet
        self._watched: frozenset[int] | None = None  # agents; None: not read yet
        self._routes: Routes | None = None  # None: not read yet
        self._closed: dict[int, str] | None = None  # None: not read yet

    # --- addresses -----------------------------------------------------------------

    def live_address(self, address: Address) -> LiveAddress | None:
        """Return the address if it is in use, else None."""
        entry = self._addresses.get(address)
        if entry is None:
            row = self._execute(
                "SELECT id, kind, name FROM address WHERE fold = ? AND retired_at IS NULL", (address.fold,)
            ).fetchone()
            if row is None:
                return None  # not cached: mistyped addresses must not fill the memory
            entry = self._addresses[address] = LiveAddress(row["id"], Address(row["kind"], row["name"]))
        return entry

    def add_address(self, address: Address) -> LiveAddress:
        """Insert a new address."""
        row = self._execute(
            "INSERT INTO address (kind, name, fold) VALUES (?, ?, ?) RETURNING id",
            (address.kind, address.name, address.fold),
        ).fetchone()
        return LiveAddress(row["id"], address)

    def rename_address(self, entry: LiveAddress, address: Address) -> None:
        """Give an address another name; nobody else may have it."""
        self._execute(
            "UPDATE address SET name = ?, fold = ? WHERE id = ?", (address.name, address.fold, entry.id)
        )
        self._forget_addresses()

    def retire_address(self, entry: LiveAddress, now: int) -> None:
        """Mark an address as no longer in use; its name is free again."""
        self._execute("UPDATE address SET retired_at = ? WHERE id = ?", (now, entry.id))
        self._forget_addresses()

    def _forget_addresses(self) -> None:
        self._addresses.clear()
        self.destinations.clear()

    # --- the boss ------------------------------------------------------------------

    def reach(self) -> Reach:
        """Return where mail for the boss is also posted."""
        if self._reach is None:
            row = self._execute(
                "SELECT address, reach, reach_by, forward FROM user WHERE boss = 1"
            ).fetchone()
            if row is None:
                return Reach(None, None, "off")
            place = None if row["reach"] is None else Lane(row["reach"], row["reach_by"])
            self._reach = Reach(row["address"], place, row["forward"])
        return self._reach

    def forget_reach(self) -> None:
        """Read it again the next time, because it was changed."""
        self._reach = None

    # --- routes --------------------------------------------------------------------

    def routes(self) -> Routes:
        """Return who gets the mail of which agents, in which conversations."""
        if self._routes is None:
            found: dict[int, list[Route]] = {}
            for row in self._execute(_ROUTES).fetchall():
                number, agent, agent_name, destination, kind, name, handed_over = row
                places = LiveAddress(agent, Address("agent", agent_name)), Address(kind, name)
                route = Route(places[0], LiveAddress(destination, places[1]), bool(handed_over))
                found.setdefault(number, []).append(route)
            destinations = frozenset(one.destination.id for routes in found.values() for one in routes)
            self._routes = Routes(found, destinations)
        return self._routes

    def forget_routes(self) -> None:
        """Read them again the next time, because one was changed."""
        self._routes = None
        self.destinations.clear()

    # --- conversations that take no messages ---------------------------------------

    def closed(self) -> dict[int, str]:
        """Return the conversations that were archived or deleted: 'archived' or 'deleted', by their ids."""
        if self._closed is None:
            rows = self._execute(
                """
                SELECT id, deleted_at FROM conversation INDEXED BY conversation_closed
                WHERE archived_at IS NOT NULL OR deleted_at IS NOT NULL
                """
            ).fetchall()
            self._closed = {row["id"]: "deleted" if row["deleted_at"] else "archived" for row in rows}
        return self._closed

    def forget_closed(self) -> None:
        """Read them again the next time, because one was changed."""
        self._closed = None
        self.destinations.clear()

    # --- watches (state_watches.py) ------------------------------------------------

    def watched(self) -> frozenset[int]:
        """Return the agents that somebody wants to be told of."""
        if self._watched is None:
            rows = self._execute("SELECT DISTINCT agent FROM state_watch").fetchall()
            self._watched = frozenset(row["agent"] for row in rows)
        return self._watched

    def forget_watched(self) -> None:
        """Read them again the next time, because they were changed."""
        self._watched = None

    # --- conversations -------------------------------------------------------------

    def conversation(self, parties: tuple[int, ...], now: int) -> int:
        """Return the conversation between exactly these addresses; create it if there is none."""
        found = self._conversations.get(parties)
        if found is None:
            key = conversations.key(parties)
            found = self._conversations[parties] = self._find(key) or self._begin(key, parties, now)
        return found

    def forget_conversations(self) -> None:
        """Look for them again the next time, because the key of one was changed."""
        self._conversations.clear()
        self.destinations.clear()

    def _find(self, key: str) -> int | None:
        row = self._execute("SELECT id FROM conversation WHERE key = ?", (key,)).fetchone()
        return row["id"] if row else None

    def _begin(self, key: str, parties: tuple[int, ...], now: int) -> int:
        ids = sorted(set(parties))
        kind = "private" if len(ids) <= 2 else "adhoc"
        row = self._execute(
            "INSERT INTO conversation (kind, key, created_at) VALUES (?, ?, ?) RETURNING id",
            (kind, key, now),
        ).fetchone()
        for address in ids:
            self._execute(
                "INSERT INTO participant (conversation, address, joined_at) VALUES (?, ?, ?)",
                (row["id"], address, now),
            )
        return int(row["id"])

    # --- numbers -------------------------------------------------------------------

    def next_seq(self, conversation: int) -> int:
        """Give out the next sequence number of a conversation."""
        last = self._last_seq.get(conversation)
        if last is None:
            row = self._execute("SELECT last_seq FROM conversation WHERE id = ?", (conversation,)).fetchone()
            if row is None:
                raise NotFound(what="conversation", value=f"c{conversation}")
            last = row["last_seq"]
        self._undo.append((conversation, last))
        self._last_seq[conversation] = self._touched[conversation] = last + 1
        return last + 1

    def next_arrived(self) -> int:
        """Give out the next arrival number."""
        if self._arrived is None:
            row = self._execute("SELECT value FROM counter WHERE name = 'arrived'").fetchone()
            self._arrived = self._arrived_flushed = int(row["value"])
        self._arrived += 1
        return self._arrived

    @property
    def last_arrived(self) -> int:
        """The arrival number that was given out last."""
        return self._arrived or 0

    # --- agreeing with the database ------------------------------------------------

    def mark(self, *, flush: bool = False) -> None:
        """Remember the numbers at the beginning of an operation.

        `flush`: before a savepoint, write those of the operations before it. What this one flushes itself
        may be rolled back with it.
        """
        if flush:
            self.flush()
        self._undo.clear()
        self._arrived_mark = self._arrived

    def back_to_mark(self, *, wrote: bool) -> None:
        """Undo a failed operation: take back its numbers and, if it wrote, clear what may be gone."""
        for conversation, last in reversed(self._undo):
            self._last_seq[conversation] = self._touched[conversation] = last
        self._arrived = self._arrived_mark
        if wrote:
            self._forget_addresses()
            self.forget_conversations()
            self._reach = self._routes = self._watched = self._closed = None

    def flush(self) -> None:
        """Write the numbers given out in this group; called last before COMMIT."""
        for conversation, last in self._touched.items():
            self._execute("UPDATE conversation SET last_seq = ? WHERE id = ?", (last, conversation))
        self._touched.clear()
        if self._arrived is not None and self._arrived != self._arrived_flushed:
            self._execute("UPDATE counter SET value = ? WHERE name = 'arrived'", (self._arrived,))
            self._arrived_flushed = self._arrived
        known = len(self._conversations) + len(self._addresses) + len(self._last_seq) + len(self.destinations)
        if known > MEMORY:  # what is needed again is read again
            self._last_seq.clear()
            self.forget_conversations()
            self._forget_addresses()

    def forget(self) -> None:
        """Clear everything: the whole group was rolled back, and only the database counts."""
        self._forget_addresses()
        self.forget_conversations()
        self._last_seq.clear()
        self._touched.clear()
        self._undo.clear()
        self._reach = self._routes = self._watched = self._closed = None
        self._arrived = self._arrived_flushed = self._arrived_mark = None
