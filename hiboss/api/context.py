"""The parts of the daemon that operations use. The daemon's wiring builds the context."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TypeVar

from ..agents.breaker import Breaker
from ..agents.controls import Controls
from ..agents.runner import Runner
from ..channels.supervisor import Supervisor
from ..core import clock
from ..core.paths import Home
from ..core.setting_values import Setting
from ..core.settings import Configuration, Settings
from ..routing.change_queue import ChangeQueue
from ..routing.chat_setup import ChatSetup
from ..routing.delivery import Delivery
from ..routing.fact_webhooks import FactWebhooks
from ..routing.facts import Facts
from ..routing.measurements import Measurements
from ..routing.presence import Presence
from ..routing.router import Router
from ..routing.scheduler import Scheduler
from ..routing.typing_signs import TypingSigns
from ..routing.user_presence import UserPresence
from ..routing.waiters import Waiters
from ..store.boss import boss_timezone
from ..store.group_commit import Tx
from ..store.store import Store
from .auth import Authenticator, Caller
from .gateway_state import GatewayState
from .login_codes import LoginCodes
from .mcp_sockets import McpWorker
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
    changes: ChangeQueue
    chat_setup: ChatSetup
    runner: Runner
    breaker: Breaker
    controls: Controls
    scheduler: Scheduler
    facts: Facts
    measurements: Measurements
    fact_webhooks: FactWebhooks
    waiters: Waiters
    presence: Presence
    user_presence: UserPresence
    typing: TypingSigns
    mcp: McpWorker
    auth: Authenticator
    policy: Policy
    started_at: int
    stop: Callable[[], None]  # ask the daemon to end
    reload: Callable[[], list[Setting]]  # read the settings again; returns those that changed
    connections: Callable[[], int]  # how many clients are connected to the socket
    gateway: GatewayState = field(default_factory=GatewayState)  # the HTTP door sets it
    login_codes: LoginCodes = field(default_factory=LoginCodes)
    # Held by a change of an agent or an account that reads and writes files of the home too: secrets, tokens.
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def write(self, caller: Caller, change: Callable[[Tx], T]) -> asyncio.Future[T]:
        """Write a change for a caller, whose right is checked in the same transaction; done after COMMIT."""

        def checked(tx: Tx) -> T:
            self.auth.check(tx, caller)
            return change(tx)

        return self.store.write(checked)

    @property
    def settings(self) -> Settings:
        return self.configuration.settings

    @property
    def timezone(self) -> str:
        """The name of the boss's time zone."""
        return self.store.read(boss_timezone)

    @property
    def zone(self) -> tzinfo:
        """The boss's time zone."""
        name = self.timezone
        return UTC if name == "UTC" else clock.zone(name)
