"""What operations work with: the parts of the house, handed to them by the assembly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TypeVar

from .. import clock
from ..adapters.crew import Crew
from ..config import Configuration, Setting, Settings
from ..delivery import Delivery
from ..events import Bus
from ..paths import Home
from ..presence import Presence
from ..router import Router
from ..runner.runner import Runner
from ..scheduler import Scheduler
from ..store import house
from ..store.store import Store
from ..store.writer import Tx
from ..waiting import Waiters
from .caller import Caller, Gate
from .policy import Policy

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class House:
    home: Home
    configuration: Configuration
    store: Store
    router: Router
    crew: Crew
    delivery: Delivery
    runner: Runner
    scheduler: Scheduler
    bus: Bus
    waiters: Waiters
    presence: Presence
    gate: Gate
    policy: Policy
    started_at: int
    stop: Callable[[], None]  # ask the daemon to end
    reload: Callable[[], list[Setting]]  # read the settings again; what has changed
    connections: Callable[[], int]  # how many clients the socket has

    def write(self, caller: Caller, change: Callable[[Tx], T]) -> asyncio.Future[T]:
        """Change something in a caller's name; done after COMMIT."""

        def checked(tx: Tx) -> T:
            self.gate.check(tx, caller)
            return change(tx)

        return self.store.write(checked)

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @property
    def timezone(self) -> str:
        """The boss's zone by name."""
        row = self.store.read(house.boss)
        return str(row["timezone"]) if row and row["timezone"] else "UTC"

    @property
    def zone(self) -> tzinfo:
        name = self.timezone
        return UTC if name == "UTC" else clock.zone(name)
