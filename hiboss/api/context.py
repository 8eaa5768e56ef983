"""What operations work with: the parts of the house, handed to them by the assembly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TypeVar

from ..agents.runner import Runner
from ..channels.supervisor import Supervisor
from ..core import clock
from ..core.events import Bus
from ..core.paths import Home
from ..core.settings import Configuration, Setting, Settings
from ..routing.delivery import Delivery
from ..routing.presence import Presence
from ..routing.router import Router
from ..routing.scheduler import Scheduler
from ..routing.waiters import Waiters
from ..store.boss import boss_timezone
from ..store.group_commit import Tx
from ..store.store import Store
from .auth import Authenticator, Caller
from .policy import Policy

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    home: Home
    configuration: Configuration
    store: Store
    router: Router
    supervisor: Supervisor
    delivery: Delivery
    runner: Runner
    scheduler: Scheduler
    bus: Bus
    waiters: Waiters
    presence: Presence
    auth: Authenticator
    policy: Policy
    started_at: int
    stop: Callable[[], None]  # ask the daemon to end
    reload: Callable[[], list[Setting]]  # read the settings again; what has changed
    connections: Callable[[], int]  # how many clients the socket has

    def write(self, caller: Caller, change: Callable[[Tx], T]) -> asyncio.Future[T]:
        """Change something in a caller's name; done after COMMIT."""

        def checked(tx: Tx) -> T:
            self.auth.check(tx, caller)
            return change(tx)

        return self.store.write(checked)

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @property
    def timezone(self) -> str:
        """The boss's zone by name."""
        return self.store.read(boss_timezone)

    @property
    def zone(self) -> tzinfo:
        name = self.timezone
        return UTC if name == "UTC" else clock.zone(name)
