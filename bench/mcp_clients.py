"""The MCP clients of `bench.mcp`, a process of their own: calls of a tool in turns, milliseconds as JSON.

Standard input has a JSON object: for each way, a tool, and a command with environment or a URL with headers.
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


async def measure(ways: dict[str, Any], calls: int) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {name: [] for name in ways}
    async with AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(Client(transport(way))) for name, way in ways.items()
        }
        for number in range(WARM_CALLS + calls):
            for name, way in ways.items():
                begin = perf_counter()
                found = await clients[name].call_tool(way["tool"], way.get("arguments") or {})
                if number >= WARM_CALLS:
                    took[name].append((perf_counter() - begin) * 1000)
                if found.is_error:
                    raise RuntimeError(f"{name}: {found.content}")
    return took


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    print(json.dumps(asyncio.run(measure(given["ways"], given["calls"]))))
