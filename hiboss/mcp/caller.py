"""Who an MCP client is: its token, and whose chat it is about."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .daemon_connection import Daemon

REMEMBERED_POSTS = 1_000


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
        return await self.daemon.call(self.token, method, _given(params))

    async def wait(self, method: str, **params: Any) -> Any:
        """Call an operation that may wait; cancelled with the request of the client."""
        return await self.daemon.wait(self.token, method, _given(params))

    async def chat(self, verb: str, **params: Any) -> Any:
        """Call an operation about the chat of this client."""
        return await self.call(f"chat.{verb}", **{"agent": self.agent, **params})


def _given(params: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
