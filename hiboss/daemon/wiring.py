"""The works: scheduler, delivery, adapters and the bus, and who wakes whom.

Nobody on the route knows the next station by import; here they are tied together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ..agents.runner import Runner
from ..channels.registry import Registry
from ..channels.supervisor import Slot, Supervisor
from ..core import clock
from ..core.address import BOSS
from ..core.envelope import Accepted, Lane
from ..core.errors import HibossError
from ..core.events import Bus, EnvelopesArrived
from ..core.paths import Home
from ..core.settings import Settings
from ..routing.delivery import Delivery
from ..routing.presence import Presence
from ..routing.router import Router
from ..routing.scheduler import Scheduler
from ..routing.waiters import Waiters
from ..store import bindings, notices
from ..store.store import Store
from ..store.wakeups import Woken

log = logging.getLogger(__name__)


class Wiring:
    """Built without moving; `start` sets it going, and each part has its own `close`."""

    def __init__(self, store: Store, home: Home, settings: Settings, router: Router) -> None:
        self._store = store
        self.bus = Bus()
        self.waiters = Waiters()
        store.tell_arrivals(self._arrived)
        self.presence = Presence(store)
        registry = Registry(settings.adapter_modules)
        self.supervisor = Supervisor(
            registry, self.bus, router.receive, self._adapter_runs, self._adapter_fails
        )
        self.delivery = Delivery(store, home, settings, self.supervisor, self.bus)
        self.runner = Runner(store, home, settings, self.bus)
        self.scheduler = Scheduler(store, settings, self._woken, self.presence.flush)
        self.delivery.nudge = self.scheduler.nudge
        self.runner.activity = lambda agent: self.waiters.wake([-agent])
        self.runner.nudge = self.scheduler.nudge
        router.accepted = self.runner.accepted = self._accepted

    async def start(self) -> None:
        """What was in hand comes back, adapters start, what is overdue arrives."""
        await self.runner.start()  # before holds are freed: what is left of a run must not go on
        await self.delivery.start()
        for row in self._store.read(bindings.listed):
            self.supervisor.add(row)
        self.scheduler.start()
        self.runner.begin()

    async def close(self) -> None:
        await self.runner.close()  # first, if the doors have not done it: its answers want to be delivered
        await self.scheduler.close()
        await self.delivery.close()  # before the crew: what is in hand needs it
        await self.supervisor.close()
        try:
            await self.presence.flush()
        except HibossError as error:
            log.error("Who was seen last was not written: %s", error, extra={"action": "stop"})

    # --- who wakes whom --------------------------------------------------------------

    def _arrived(self, recipients: list[int]) -> None:
        """After each COMMIT: something came for these, or may be due for them again."""
        self.waiters.wake(recipients)
        self.runner.wake(recipients, eager=True)

    def _accepted(self, what: Accepted) -> None:
        if what.deliver_at is not None:
            self.scheduler.nudge(what.deliver_at)
            return
        if what.lanes:
            self.delivery.wake([Lane(*lane) for lane in what.lanes], eager=True)
        self._tell_watchers(what.envelopes, what.recipients)

    def _woken(self, what: Woken) -> None:
        self.delivery.wake([lane for lane in what.lanes if lane.binding is not None], eager=True)
        self.runner.wake([lane.address for lane in what.lanes if lane.binding is None])
        self._tell_watchers(what.envelopes, what.recipients)

    def _tell_watchers(self, envelopes: Sequence[int], recipients: Sequence[int]) -> None:
        if envelopes and self.bus.watched:
            fact = EnvelopesArrived(at=clock.now(), envelopes=tuple(envelopes), recipients=tuple(recipients))
            self.bus.publish(fact)

    async def _adapter_runs(self, slot: Slot) -> None:
        for pause in (0.1, 1.0, 5.0, 30.0):
            try:
                await self.delivery.resume(slot.binding)
                return
            except HibossError as error:
                log.error("The lanes of %s wait: %s", slot.name, error, extra={"action": "adapter"})
                await asyncio.sleep(pause)

    async def _adapter_fails(self, slot: Slot) -> None:
        text = f"{slot.name} does not run: {slot.error}\nIt is started again. See: hiboss daemon status"
        try:
            await self._store.write(lambda tx: notices.notify(tx, BOSS, text, clock.now()))
        except HibossError as error:
            log.error("The boss was not told of %s: %s", slot.name, error, extra={"action": "adapter"})
