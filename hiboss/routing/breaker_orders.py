"""The breaker in a chat: /stop all and /go, and what was ended and what waits, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..agents.breaker import Breaker
from ..core import clock
from ..core.errors import BreakerNotStored
from ..core.escaping import visible
from ..store import breaker, breaker_holds
from ..store.breaker_holds import Waits
from ..store.commands import Order
from ..store.connection import Connection
from ..store.store import Store

SHOWN = 20  # runs and agents in an answer, at most
COUNT_EXACT_TO = 1_000


def is_stop_all(order: Order) -> bool:
    """Tell whether a /stop is about everything."""
    return order.arguments.lower().split()[:1] == ["all"]


class BreakerOrders:
    """Carries out what the boss orders about the breaker, and says what came of it."""

    def __init__(self, store: Store, pulls: Breaker) -> None:
        self._store = store
        self._breaker = pulls

    async def stop_all(self, order: Order) -> str:
        """/stop all: pull the breaker. Carried out again after a crash, it says the same."""
        reason = order.arguments.strip()[len("all") :].strip() or f"/stop all in {visible(order.where)}"
        try:
            await self._breaker.pull(self._store.write, order.boss, reason)
        except BreakerNotStored:  # all runs have ended; say so when it is stored
            await self._breaker.pull(self._store.write_until_done, order.boss, reason)
        return self._store.read(_stopped)

    async def go(self, order: Order) -> str:
        """/go: release the breaker."""
        waited = self._store.read(lambda c: breaker_holds.waiting(c, clock.now(), COUNT_EXACT_TO))
        released = await self._breaker.release(self._store.write_until_done, order.boss)
        if not released:
            return "Nothing was stopped: the breaker is not pulled."
        return "\n".join(["Everybody works again.", *_waits(waited, "It waited")])


def _stopped(connection: Connection) -> str:
    row = breaker.get(connection)
    if row is None:  # somebody has released it meanwhile
        return "The breaker was pulled, and released again."
    ended = [f"r{one['id']} of {one['name']}" for one in breaker.stopped_runs(connection, row["pulled_at"])]
    lines = ["Everything is stopped. Nobody gets a turn until /go."]
    lines.append(f"Ended: {_listed(ended)}." if ended else "Nothing was running.")
    return "\n".join([*lines, *_waits(breaker_holds.waiting(connection, clock.now(), COUNT_EXACT_TO))])


def _waits(found: Waits, begin: str = "It waits") -> list[str]:
    """Return what waits as a line; none if nothing does."""
    parts = [f"{number} for {address.removeprefix('agent:')}" for address, number in found.mail]
    texts = [f"mail: {_listed(parts)}"] if parts else []
    texts += [f"tasks: {found.tasks}"] if found.tasks else []
    texts += [f"posts: {found.posts}"] if found.posts else []
    texts += [f"schedules: {found.schedules}"] if found.schedules else []
    return [f"{begin}: {'; '.join(texts)}."] if texts else []


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - SHOWN
    return ", ".join(parts[:SHOWN]) + (f" and {more} more" if more > 0 else "")
