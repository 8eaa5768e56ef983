"""Answers of the MCP door: results and errors, in the forms of tools and of the protocol."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import orjson
from mcp.shared.exceptions import MCPError

from ..core.errors import HibossError
from .daemon_connection import Refused


def error_json(error: HibossError) -> dict[str, Any]:
    """Return an error as every door shows it: code, message, and data with the stable code."""
    if isinstance(error, Refused):
        return error.error
    return {"code": error.rpc, "message": error.message, "data": error.payload()}


def succeeded(found: dict[str, Any]) -> types.CallToolResult:
    """Return the result of a tool, as text and as JSON."""
    text = types.TextContent(type="text", text=orjson.dumps(found).decode())
    return types.CallToolResult(content=[text], structured_content=found)


def failed(error: HibossError) -> types.CallToolResult:
    """Return an error in a form that a model reads: the stable code and what to do."""
    shown = error_json(error)
    code = (shown.get("data") or {}).get("code", "error")
    text = types.TextContent(type="text", text=f"{code}: {shown['message']}")
    return types.CallToolResult(content=[text], structured_content={"error": shown}, is_error=True)


def protocol_error(error: HibossError) -> MCPError:
    """Return an error as an answer of the protocol, for what is no tool."""
    shown = error_json(error)
    return MCPError(code=shown["code"], message=shown["message"], data=shown.get("data"))
