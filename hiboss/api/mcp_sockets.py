"""The MCP worker as operations and the HTTP door see it: where it listens, and how it is started.

The process itself is held by hiboss/daemon/mcp_worker.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True, slots=True)
class McpSockets:
    """Where a worker that runs listens."""

    socket: str  # for `hiboss mcp`
    http_socket: str  # for what comes through the HTTP door
    pid: int


class McpWorker(Protocol):
    @property
    def running(self) -> McpSockets | None:
        """The worker that was ready when it was looked at last. It may have ended since, or be about to."""

    async def start(self) -> McpSockets:
        """Start a worker if none runs that takes clients, and return when it does.

        However many ask at the same time, they get one. Raises McpUnavailable, or Stopping.
        """
