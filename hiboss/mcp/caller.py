"""Who an MCP client is: its token, and whose chat it is about."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import BadToken
from .daemon_connection import Daemon, Refused

REMEMBERED_POSTS = 1_000
END_SECONDS = 1.0


@dataclass(eq=False, kw_only=True, slots=True)
class Caller:
    """A client that is connected, or the sender of one HTTP request."""

    daemon: Daemon
    token: str
    agent: str | None = None  # whose chat: for the boss, who has none of his own
    dotted: bool = False  # list the tools with dots in their names too
    # Entries of the chat that this client posted itself: it is not told of them.
    posted: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED_POSTS))
    # Ends the connection over which notices go to this client.
    hang_up: Callable[[], object] = lambda: None

    async def call(self, method: str, **params: Any) -> Any:
        """Call an operation; a parameter that is None is left out."""
        return await self._known(self.daemon.call(self.token, method, _given(params)))

    async def wait(self, method: str, **params: Any) -> Any:
        """Call an operation that may wait; cancelled with the request of the client."""
        return await self._known(self.daemon.wait(self.token, method, _given(params)))

    async def chat(self, verb: str, **params: Any) -> Any:
        """Call an operation about the chat of this client."""
        return await self.call(f"chat.{verb}", **{"agent": self.agent, **params})

    async def _known(self, called: Awaitable[Any]) -> Any:
        try:
            return await called
        except Refused as error:
            if error.stable_code == BadToken.code:
                self.end_soon()
            raise

    def end_soon(self) -> None:
        """Hang up when the client has got its answer: its token has ended. `hiboss mcp` may have another."""
        asyncio.get_running_loop().call_later(END_SECONDS, self.hang_up)


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
