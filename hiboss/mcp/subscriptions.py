"""Who is told of changed resources: by `resources/subscribe` (old era) and `subscriptions/listen` (new)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ServerEvent,
)
from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

from ..core.errors import Busy, HibossError
from .caller import Caller
from .resources import is_known
from .watching import Entries, Status, Watch

log = logging.getLogger(__name__)
SUBSCRIBED = 100  # resources that one client follows at most
UPDATED = "notifications/resources/updated"


class Subscriber:
    """What one client of the old era follows. Its watch runs while it follows something."""

    def __init__(self, caller: Caller, session: ServerSession) -> None:
        self._caller = caller
        # The connection that the SDK keeps for this client. It has no public name there; our pin is below 3.
        self._connection = session._connection
        self._connection.exit_stack.callback(self.close)
        self._uris: set[str] = set()
        self._watch = Watch(caller, self._tell)
        self._watching: asyncio.Task[None] | None = None

    async def add(self, uri: str, status: Status) -> None:
        """Follow a resource from now on; what happened before is announced once. Raises Busy."""
        if uri not in self._uris and len(self._uris) >= SUBSCRIBED:
            raise Busy(what=f"you follow {SUBSCRIBED} resources; unsubscribe from one first")
        self._uris.add(uri)
        if self._watching is None or self._watching.done():
            self._watch = Watch(self._caller, self._tell)
            for one in self._uris:
                self._watch.follow(one, status)
            self._watching = asyncio.create_task(self._run(self._watch))
        else:
            self._watch.follow(uri, status)
        await self._watch.is_set_up.wait()

    def remove(self, uri: str) -> None:
        self._uris.discard(uri)
        self._watch.leave(uri)
        if not self._uris:
            self.close()

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _run(self, watch: Watch) -> None:
        await _quietly(watch)
        self._caller.hang_up()  # so that the client sees that nothing more comes

    async def _tell(self, uri: str, entries: Entries) -> None:
        if uri in self._uris:
            params: dict[str, Any] = {"uri": uri}
            await self._connection.notify(UPDATED, {**params, "messages": entries} if entries else params)


def subscriber_of(caller: Caller, session: ServerSession) -> Subscriber:
    """Return the subscriber that a client of the old era is, the same for all its requests."""
    state = session._connection.state
    found: Subscriber = state.setdefault("subscriber", None) or Subscriber(caller, session)
    state["subscriber"] = found
    return found


class _OneListener(InMemorySubscriptionBus):
    """The bus of one stream, which tells when its listener is there."""

    def __init__(self) -> None:
        super().__init__()
        self.listened = asyncio.Event()

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        self.listened.set()
        return super().subscribe(listener)


async def listen(
    caller: Caller,
    context: ServerRequestContext[Any, Any],
    params: SubscriptionsListenRequestParams,
    status: Status,
) -> SubscriptionsListenResult:
    """Serve one stream of the new era, until the client leaves or its token ends."""
    bus = _OneListener()
    handler = ListenHandler(bus)

    async def tell(uri: str, entries: Entries) -> None:
        await bus.publish(ResourceUpdated(uri=uri))

    watch = Watch(caller, tell)
    for uri in params.notifications.resource_subscriptions or []:
        if is_known(uri):
            watch.follow(uri, status)

    async def run() -> None:
        await _quietly(watch, bus.listened)
        await bus.listened.wait()
        handler.close()  # the client knows that nothing more comes
        caller.end_soon()

    watching = asyncio.create_task(run())
    try:
        await watch.is_set_up.wait()  # what happens after the acknowledgement is told
        return await handler(context, params)
    finally:
        watching.cancel()


async def _quietly(watch: Watch, begin: asyncio.Event | None = None) -> None:
    try:
        await watch.run(begin)
    except HibossError as error:
        log.info("A subscription ended: %s", error, extra={"action": "mcp"})
