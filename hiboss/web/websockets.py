"""The WebSocket: JSON-RPC as on the unix socket, after the handshake has shown who connects.

A program sends its token in the header Authorization, or in its calls. A browser sends its cookie with the
handshake and the value of its tab in the first message: {"tab": "…"}.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from ..core.errors import BadToken, HibossError
from .credentials import has_cookie, of_browser, token_of
from .door import Door

FIRST_SECONDS = 10.0  # for the first message of a browser
NOT_LOGGED_IN = 4401  # close code; ours


async def serve(door: Door, scope: Scope, receive: Receive, send: Send) -> None:
    headers = Headers(scope=scope)
    token = token_of(headers)
    if token is not None:
        door.dispatcher.check_token(token)  # refused with the handshake, with 401
    await receive()  # websocket.connect
    await send({"type": "websocket.accept"})
    if token is None and has_cookie(headers):
        try:
            token = await _of_tab(door, headers, receive)
        except (HibossError, TimeoutError):
            await send({"type": "websocket.close", "code": NOT_LOGGED_IN, "reason": "not logged in"})
            return
    abort: Callable[[], None] = scope.get("state", {}).get("abort", lambda: None)
    await door.serve_websocket(receive, send, abort, token)


async def _of_tab(door: Door, headers: Headers, receive: Receive) -> str:
    """Return the token of a browser, by its cookie and its first message."""
    async with asyncio.timeout(FIRST_SECONDS):
        message = await receive()
    try:
        first = orjson.loads(message.get("text") or b"")
    except orjson.JSONDecodeError:
        raise BadToken() from None
    tab = first.get("tab") if isinstance(first, dict) else None
    token = of_browser(headers, tab) if isinstance(tab, str) else None
    if token is None:
        raise BadToken()
    door.dispatcher.check_token(token)
    return token
