"""What the HTTP door needs besides operations: logins, streams of events, files, and whether all is well.

Operations have parameters and results of JSON, for every door. These have not: they are about bytes, about
cookies, or for callers without a token. The rules are in the modules that are called here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from . import downloads, event_catch_up, health, uploads, web_logins
from .auth import SENDING, Caller
from .context import Context
from .mcp_sockets import McpSockets


class WebCalls:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def log_in(self, code: str) -> web_logins.Login:
        """Log a browser in by the code of a one-time link."""
        return await web_logins.log_in(self._context, code)

    def health(self) -> health.Health:
        """Return whether the daemon works; for everybody."""
        return health.health(self._context)

    # --- MCP --------------------------------------------------------------------------

    def mcp_worker(self) -> McpSockets | None:
        """Return where the MCP worker listens; None: none runs."""
        return self._context.mcp.running

    async def start_mcp(self) -> McpSockets:
        """Start an MCP worker if none takes clients. The door has checked the caller's token."""
        return await self._context.mcp.start()

    # --- streams of events -----------------------------------------------------------

    def box_of(self, token: str | None, agent: str | None) -> event_catch_up.Box:
        """Return the box that a stream of events is about; raises if the caller may not follow it."""
        return event_catch_up.box_of(self._context, self._caller(token, "event.subscribe"), agent)

    def missed(self, box: event_catch_up.Box, after: int, up_to: int) -> list[dict[str, Any]]:
        """Return facts about mail that arrived in a box while its stream was not connected."""
        return event_catch_up.missed(self._context, box, after, up_to)

    def unread(self, box: event_catch_up.Box) -> event_catch_up.Unread:
        """Return how much is unread in the box of a stream."""
        return event_catch_up.unread(self._context, box)

    # --- files -----------------------------------------------------------------------

    async def store_upload(
        self, token: str | None, name: str, mime: str, chunks: AsyncIterator[bytes]
    ) -> uploads.UploadJson:
        """Store a file for messages to come; it is on disk when this returns."""
        return await uploads.store_upload(self._context, self._caller(token, SENDING), name, mime, chunks)

    async def open_attachment(self, token: str | None, message: str, file: str) -> downloads.OpenedFile:
        """Open a file of a message that the holder of a token may see: by its place, from 1, or its hash."""
        caller = self._caller(token, downloads.SEEING)
        return await downloads.open_attachment(self._context, caller, message, file)

    def _caller(self, token: str | None, right: str) -> Caller:
        return self._context.auth.authorize(token, right, "web")
