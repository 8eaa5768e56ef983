"""The end of a binding: stop its adapter, delete its secrets, and fail what still waits to be posted by it.

A binding that was removed in the store has its account paused there until this is done
(hiboss/store/bindings.py). So nothing more is posted, and whoever finds it later can finish it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..channels.supervisor import Supervisor
from ..core import clock
from ..store import bindings
from ..store.store import Store
from .live_endings import LiveEndings


class BindingEndings:
    """Ends the bindings that were removed."""

    def __init__(self, store: Store, supervisor: Supervisor, live: LiveEndings) -> None:
        self._store = store
        self._supervisor = supervisor
        self._live = live
        self.tasks: set[asyncio.Task[int]] = set()
        self.ended: Callable[[int], None] = lambda binding: None  # set in hiboss/daemon/wiring.py

    async def finish(self) -> None:
        """Fail what waits for bindings that an earlier daemon did not finish."""
        for binding in self._store.read(bindings.ending):
            await self._fail_waiting(binding)

    async def end(self, binding: int) -> int:
        """End a removed binding; return how many envelopes failed.

        It is done completely, also when the caller is cancelled.
        """
        task = asyncio.create_task(self._end(binding))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return await asyncio.shield(task)

    async def follow(self) -> None:
        """Run the adapters of exactly the bindings of the store, and end all others.

        Also at each heartbeat: the caller of a change may be gone in the middle of it.
        """
        rows, ending = self._store.read(lambda c: (bindings.list_all(c), bindings.ending(c)))
        for row in rows:
            self._supervisor.add(row)
        ended = self._supervisor.slots.keys() - {row["id"] for row in rows} | {*ending}
        await asyncio.gather(*[self.end(binding) for binding in ended])

    async def _end(self, binding: int) -> int:
        await self._live.end_binding(binding)  # what has not become an answer is deleted while that can be
        await self._supervisor.remove(binding)
        self._live.look(binding)
        return await self._fail_waiting(binding)

    async def _fail_waiting(self, binding: int) -> int:
        """Fail what waits for a removed binding, in slices: other writes go between them."""
        self._store.home.forget_secrets(self._store.read(lambda c: bindings.secrets_of_ended(c, binding)))
        now, failed = clock.now(), 0
        while some := await self._store.write_until_done(lambda tx: bindings.fail_waiting(tx, binding, now)):
            failed += some
        self.ended(binding)
        return failed
