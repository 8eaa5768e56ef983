"""The operation that starts the MCP worker. What the worker serves is in hiboss/mcp."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from ..core import errors
from .auth import Caller
from .context import Context
from .operation import Level, Nothing, operation


class McpStarted(TypedDict):
    socket: Annotated[str, Field(description="the unix socket that `hiboss mcp` connects to")]
    http_socket: Annotated[str, Field(description="the unix socket for what comes through the HTTP door")]
    pid: Annotated[int, Field(description="the worker's process id")]


@operation(
    "mcp.start",
    level=Level.OPEN,
    effect="idempotent",
    waits=True,
    result=McpStarted,
    errors=(errors.McpUnavailable, errors.Stopping),
)
async def start(context: Context, caller: Caller, params: Nothing) -> McpStarted:
    """Start the MCP worker if none runs, and answer when it takes clients. To it they show their tokens."""
    found = await context.mcp.start()
    return {"socket": found.socket, "http_socket": found.http_socket, "pid": found.pid}
