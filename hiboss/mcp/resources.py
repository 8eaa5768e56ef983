"""What an MCP client can read: the chat, its head, each message of it, and the state of the agent."""

from __future__ import annotations

from typing import Any

import orjson
from mcp_types import (
    BlobResourceContents,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from ..core.errors import NotFound
from . import inbox_page
from .caller import Caller

INBOX = "ui://chat/inbox"
HEAD = "ui://chat/head"
MESSAGE = "ui://chat/message/"
STATUS = "ui://agent/status"
JSON = "application/json"
APP = "text/html;profile=mcp-app"
NEWEST = 50  # entries in the inbox

LISTED = [
    Resource(uri=INBOX, name="inbox", description=f"The newest {NEWEST} entries of the chat", mime_type=JSON),
    Resource(uri=HEAD, name="head", description="Where the chat ends, and how far you came", mime_type=JSON),
    Resource(uri=STATUS, name="status", description="Whether the agent reads what you write", mime_type=JSON),
]
TEMPLATES = [
    ResourceTemplate(
        uri_template=MESSAGE + "{id}", name="message", description="One entry of the chat", mime_type=JSON
    )
]


async def read(caller: Caller, uri: str, *, as_app: bool) -> ReadResourceResult:
    """Read a resource; raises a HibossError. `as_app`: the client shows HTML apps, so it gets a page too."""
    if uri == INBOX:
        page = await caller.chat("read", newest=True, limit=NEWEST)
        shown = {"last_id": page["last_id"], "messages": page["messages"]}
        found: list[TextResourceContents | BlobResourceContents] = [_json(uri, shown)]
        if as_app:
            status = await caller.chat("status")
            page_text = inbox_page.page(status["agent"], page["messages"])
            found.insert(0, TextResourceContents(uri=uri, mime_type=APP, text=page_text))
        return ReadResourceResult(contents=found)
    if uri == HEAD:
        status = await caller.chat("status")
        return _one(uri, {"last_id": status["last_id"], "acknowledged": status["acknowledged"]})
    if uri == STATUS:
        status = await caller.chat("status")
        return _one(uri, {name: status[name] for name in ("agent", "type", "state", "ui", "why")})
    if uri.startswith(MESSAGE):
        entry = await caller.chat("read", id=uri.removeprefix(MESSAGE))
        return _one(uri, entry["messages"][0])
    raise NotFound(what="resource", value=uri[:200], where="resources/list")


def is_known(uri: str) -> bool:
    """Tell whether there is such a resource, or could be one."""
    return uri in (INBOX, HEAD, STATUS) or (uri.startswith(MESSAGE) and len(uri) > len(MESSAGE))


def _one(uri: str, value: Any) -> ReadResourceResult:
    return ReadResourceResult(contents=[_json(uri, value)])


def _json(uri: str, value: Any) -> TextResourceContents:
    return TextResourceContents(uri=uri, mime_type=JSON, text=orjson.dumps(value).decode())
