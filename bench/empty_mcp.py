"""An MCP server whose one tool does nothing: what the SDK itself costs. By stdio, or on a port of its own."""

from __future__ import annotations

import asyncio
import socket
import sys

import uvicorn
from mcp.server import MCPServer

server = MCPServer("empty")


@server.tool()
def nothing() -> dict[str, str]:
    """Do nothing."""
    return {}


async def serve() -> None:
    """On a port that is taken before it is told."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    app = server.streamable_http_app(streamable_http_path="/mcp")
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(serve())
    else:
        server.run("stdio")
