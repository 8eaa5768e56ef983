"""MCP in /openapi.json: the one path that speaks the protocol, and its tools as plain REST."""

from __future__ import annotations

from ..core import errors
from .mcp_proxy import SERVERS
from .openapi_components import ERROR, JSON, STATUSES, Components, Json
from .openapi_operations import in_query

TEXT = {"type": "string", "minLength": 1, "maxLength": 200}
AGENT = {**TEXT, "description": "whose chat it is about; only for the boss, agents have their own"}
STREAM = "text/event-stream"
OF_WORKER = (errors.McpUnavailable, errors.Stopping, errors.InternalError)


def paths(parts: Components) -> dict[str, Json]:
    posted = {
        "description": "A message of the protocol was taken; there is nothing to answer.",
        "content": {},
    }
    ended = {"description": "The session has ended.", "content": {}}
    taken = _protocol(parts, "mcp-post", "Send messages of the Model Context Protocol.", **{"202": posted})
    taken["requestBody"] = {"required": True, "content": {JSON: {"schema": {}}}}
    stream = "Follow what an MCP server tells, as server-sent events, until one of both ends it."
    return {
        "/mcp": {
            "get": _protocol(parts, "mcp-get", stream),
            "post": taken,
            "delete": _protocol(parts, "mcp-delete", "End a session of MCP.", **{"204": ended}),
        },
        "/api/mcp/call": {"post": _call(parts)},
        "/api/tools/{tool}": {"post": _call_tool(parts)},
    }


def _protocol(parts: Components, identity: str, summary: str, **answers: Json) -> Json:
    """Describe a request of the protocol, whose answers the protocol itself describes."""
    # Errors of this door and of the protocol have the same statuses, but another form.
    refused: Json = {"content": {JSON: {"schema": {}}, "text/plain": {"schema": {}}}}
    refusals = {
        str(one): {"description": said, **refused} for one, said in STATUSES.items() if 400 <= one < 500
    }
    failures = parts.failures((*OF_WORKER, errors.Busy))
    found = {"description": "As MCP says.", "content": {JSON: {"schema": {}}, STREAM: {"schema": {}}}}
    return {
        "operationId": identity,
        "tags": ["mcp"],
        "summary": summary,
        "parameters": [in_query("agent", AGENT)],
        "responses": {"200": found, **answers, **refusals, **failures},
    }


def _call(parts: Components) -> Json:
    body = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "server": {"enum": list(SERVERS), "description": "names of the one server"},
            "tool": {**TEXT, "description": "the name of the tool, as MCP lists it"},
            "arguments": {"type": "object", "description": "what the tool takes"},
            "agent": {"anyOf": [AGENT, {"type": "null"}], "description": AGENT["description"]},
        },
        "required": ["server", "tool"],
    }
    described = _tool(parts, "mcp-call", "Call a tool of MCP, without the protocol.", body)
    described["requestBody"]["required"] = True
    return described


def _call_tool(parts: Components) -> Json:
    body = {"type": "object", "description": "the arguments"}
    tool = {"name": "tool", "in": "path", "required": True, "schema": TEXT}
    name = {**tool, "description": "the name of the tool; `ui_` may stand before it"}
    described = _tool(parts, "mcp-tool", "Call the tool of MCP that the path names.", body)
    described["parameters"] = [name, in_query("agent", AGENT)]
    return described


def _tool(parts: Components, identity: str, summary: str, body: Json) -> Json:
    """Describe a call of a tool. It can fail with any error of what it does."""
    failed = {JSON: {"schema": {"$ref": f"#/components/schemas/{ERROR}"}}}
    failures = {str(status): {"description": said, "content": failed} for status, said in STATUSES.items()}
    result = {"description": "The result.", "content": {JSON: {"schema": {"type": "object"}}}}
    return {
        "operationId": identity,
        "tags": ["mcp"],
        "summary": summary,
        "x-level": "restricted",
        "x-effect": "change",
        "requestBody": {"required": False, "content": {JSON: {"schema": body}}},
        "responses": {"200": result, **failures, **parts.failures((errors.NoToken, errors.BadToken))},
    }
