"""Who was seen when: noted in memory at every call, written now and then."""

from __future__ import annotations

from ..core import clock
from ..store import addresses
from ..store.group_commit import Tx
from ..store.store import Store


class Presence:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[int, int] = {}  # address -> when; not written yet

    def seen(self, address: int) -> None:
        self._seen[address] = clock.now()

    def last_seen(self, address: int, stored: int | None) -> int | None:
        return self._seen.get(address, stored)

    async def flush(self) -> None:
        """Write what was noted; losing it in a crash loses seconds of who was seen when."""
        noted, self._seen = self._seen, {}
        if not noted:
            return

        def write(tx: Tx) -> None:
            addresses.note_seen(tx, noted)

        try:
            await self._store.write(write)
        except BaseException:
            self._seen = noted | self._seen
            raise
