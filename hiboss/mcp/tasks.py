"""The tasks extension (io.modelcontextprotocol/tasks) for `ask`: the ask is the task, so it is durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..core.errors import HibossError
from . import asking
from .answers import error_json, succeeded
from .caller import Caller

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MS = 2_000
Context = ServerRequestContext[Any, Any]


class TaskParams(types.RequestParams):
    task_id: str


def is_wanted(context: Context, params: types.CallToolRequestParams) -> bool:
    """Tell whether a call is answered with a task: `ask`, of a client that has the extension."""
    if params.name != "ask" or context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    capabilities = context.session.client_capabilities
    return EXTENSION in ((capabilities.extensions if capabilities else None) or {})


async def create(caller: Caller, arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask, and return the task."""
    given = dict(arguments)
    given.pop("wait", None)
    one = await asking.create(caller, given)
    return {**_task(one), "status": "working", "resultType": "task"}


def serve(server: Server[Any], caller_of: Callable[[Context], Caller]) -> None:
    """Add the methods of the extension to a server."""

    async def get(context: Context, params: TaskParams) -> dict[str, Any]:
        return _details(await _ask(caller_of(context), "ask.get", params))

    async def cancel(context: Context, params: TaskParams) -> dict[str, Any]:
        await _ask(caller_of(context), "ask.cancel", params)
        return {}

    async def update(context: Context, params: TaskParams) -> dict[str, Any]:
        await _ask(caller_of(context), "ask.get", params)  # it asks the client for nothing
        return {}

    server.add_request_handler("tasks/get", TaskParams, get)
    server.add_request_handler("tasks/cancel", TaskParams, cancel)
    server.add_request_handler("tasks/update", TaskParams, update)


async def _ask(caller: Caller, operation: str, params: TaskParams) -> dict[str, Any]:
    try:
        found: dict[str, Any] = (await caller.call(operation, id=params.task_id))["ask"]
        return found
    except HibossError as error:
        shown = error_json(error)
        raise MCPError(code=types.INVALID_PARAMS, message=shown["message"], data=shown.get("data")) from None


def _task(one: dict[str, Any]) -> dict[str, Any]:
    return {
        "taskId": one["id"],
        "createdAt": one["created_at"],
        "lastUpdatedAt": one["answered_at"] or one["created_at"],
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }


def _details(one: dict[str, Any]) -> dict[str, Any]:
    task = _task(one)
    if one["state"] == "open":
        return {**task, "status": "working"}
    if one["state"] == "cancelled":
        return {**task, "status": "cancelled"}
    result = succeeded(asking.shown(one)).model_dump(by_alias=True, mode="json", exclude_none=True)
    return {**task, "status": "completed", "result": result}
