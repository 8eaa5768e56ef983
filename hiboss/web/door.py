"""What every route of the HTTP door shares: the dispatcher, the settings, and how an operation is called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.types import Receive, Send

from ..api.dispatch import Dispatcher
from ..api.web_calls import WebCalls
from ..core.errors import HibossError, NoToken
from ..core.settings import Settings
from . import requests
from .credentials import token_of
from .tickets import Tickets

ServeWebSocket = Callable[
    [Receive, Send, Callable[[], None], str | None, Callable[[], None]], Awaitable[None]
]


@dataclass(frozen=True, slots=True)
class Door:
    dispatcher: Dispatcher
    settings: Settings
    calls: WebCalls  # what is no operation
    serve_websocket: ServeWebSocket  # JSON-RPC over an accepted WebSocket (hiboss/rpc)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)  # streams end when it is set
    strangers: set[object] = field(default_factory=set)  # WebSockets that have shown no token yet
    tickets: Tickets = field(default_factory=Tickets)  # of downloads

    def refused(self, error: HibossError) -> None:
        """Count a request that no operation has refused."""
        self.dispatcher.refused("web", error)

    async def params(self, request: Request) -> dict[str, Any]:
        """Return the parameters in the body of a request."""
        return await requests.json_object(request, self.settings.frame_bytes, lambda: self._prove(request))

    def _prove(self, request: Request) -> None:
        token = token_of(request.headers)
        if token is None:
            raise NoToken()
        self.dispatcher.check_token(token)

    async def call(self, request: Request, operation: str, params: dict[str, Any]) -> Any:
        """Call an operation for whoever makes the request. If it waits, it ends with the client."""
        token = token_of(request.headers)
        calling = self.dispatcher.call(operation, params, token, door="web")
        if not self.dispatcher.may_wait(operation):
            return await calling
        return await _while_connected(request, calling)


async def _while_connected(request: Request, calling: Awaitable[Any]) -> Any:
    """Await what may take long; cancel it when the client is gone."""
    call = asyncio.ensure_future(calling)
    gone = asyncio.ensure_future(request.receive())  # after the body there comes only the disconnect
    try:
        await asyncio.wait((call, gone), return_when=asyncio.FIRST_COMPLETED)
        if not call.done():
            call.cancel()
        return await call
    finally:
        call.cancel()
        gone.cancel()
        await asyncio.gather(call, gone, return_exceptions=True)
