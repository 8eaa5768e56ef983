"""When each caller was last seen: kept in memory at every call, written to the store at intervals."""

from __future__ import annotations

from ..core import clock
from ..store import addresses
from ..store.group_commit import Tx
from ..store.store import Store


class Presence:
    """Notes when callers were seen, and writes it with `flush`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[int, int] = {}  # by address id: when, milliseconds UTC; not written yet

    def seen(self, address: int) -> None:
        self._seen[address] = clock.now()

    def last_seen(self, address: int, stored: int | None) -> int | None:
        """Return when an address was last seen; `stored` is what the store has."""
        return self._seen.get(address, stored)

    async def flush(self) -> None:
        """Write what is in memory. A crash loses what was seen since the last flush."""
        unwritten, self._seen = self._seen, {}
        if not unwritten:
            return

        def write(tx: Tx) -> None:
            addresses.note_seen(tx, unwritten)

        try:
            await self._store.write(write)
        except BaseException:
            self._seen = unwritten | self._seen
            raise
