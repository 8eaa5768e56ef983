"""The MCP clients of `bench.mcp`, a process of their own: calls of a tool in turns, milliseconds as JSON.

The first line of standard input is a JSON object: for each way, a tool, and a command with environment or a
URL with headers. Each later line is how often to call each way; a line of JSON answers it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from time import perf_counter
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

WARM_CALLS = 20


def transport(way: dict[str, Any]) -> Any:
    if "url" in way:
        http = httpx2.AsyncClient(headers=way["headers"])
        return streamable_http_client(way["url"], http_client=http)
    command, *arguments = way["command"]
    return stdio_client(StdioServerParameters(command=command, args=arguments, env=way["environment"]))


async def serve() -> None:
    """Connect all ways; then call as often as each line says."""
    ways = json.loads(sys.stdin.readline())
    async with AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(Client(transport(way))) for name, way in ways.items()
        }

        async def call(number: int) -> None:
            took: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(number):
                for name, way in ways.items():
                    begin = perf_counter()
                    found = await clients[name].call_tool(way["tool"], way.get("arguments") or {})
                    took[name].append((perf_counter() - begin) * 1000)
                    if found.is_error:
                        raise RuntimeError(f"{name}: {found.content}")
            print(json.dumps(took), flush=True)

        await call(WARM_CALLS)
        while line := await asyncio.to_thread(sys.stdin.readline):
            await call(int(line))


if __name__ == "__main__":
    asyncio.run(serve())
