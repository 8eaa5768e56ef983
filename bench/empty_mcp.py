"""An MCP server with one tool that does nothing: what the SDK itself costs. By stdio, or on a port."""

from __future__ import annotations

import asyncio
import sys

import uvicorn
from mcp.server import MCPServer

server = MCPServer("empty")


@server.tool()
def nothing() -> dict[str, str]:
    """Do nothing."""
    return {}


async def serve(port: int) -> None:
    app = server.streamable_http_app(streamable_http_path="/mcp")
    await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error")).serve()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(serve(int(sys.argv[1])))
    else:
        server.run("stdio")
