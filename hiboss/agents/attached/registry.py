"""The sessions that are open, and what every part of this room needs of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from ...core import clock
from ...core.errors import HibossError, NotAttached
from ...core.paths import Home
from ...core.settings import Settings
from ...store import agents, attached_sessions, breaker_holds, turn_selection
from ...store.connection import Connection
from ...store.store import Store
from .open_session import OpenSession

log = logging.getLogger(__name__)


class Registry:
    """The open sessions by their numbers; how their state is stored; and whom to wake."""

    def __init__(self, store: Store, home: Home, settings: Settings) -> None:
        self.store = store
        self.home = home
        self.settings = settings
        self.open: dict[int, OpenSession] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        # Set by the runner.
        self.wake: Callable[[Iterable[int]], None] = lambda agents: None
        self.refresh: Callable[[], None] = lambda: None  # which agents get turns
        self.token_changed: Callable[[], None] = lambda: None

    def one(self, number: int) -> OpenSession:
        """Return an open session; raise NotAttached if it is not open."""
        if number not in self.open:
            raise NotAttached()
        return self.open[number]

    async def note(self, session: OpenSession, state: str, of_person: bool, event: str | None) -> None:
        """Store what a session does now, then note it."""
        await self.store.timed_write_until_done(
            lambda tx, now: attached_sessions.note_state(tx, session.id, state, of_person, event, now)
        )
        session.last_event = event or session.last_event
        session.note(state, of_person)

    def has_mail(self, session: OpenSession) -> bool:
        """Tell whether something is due that a session could take now."""

        def look(connection: Connection) -> bool:
            if breaker_holds.is_pulled(connection):
                return False
            row = agents.attached(connection, session.agent)
            if row is None or row["paused_at"] is not None:
                return False
            return bool(turn_selection.preview(connection, row, clock.now()))

        try:
            return self.store.read(look)
        except HibossError as error:
            log.error("Mail of %s is looked for later: %s", session.name, error, extra={"action": "attached"})
            return False

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something be done beside."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
