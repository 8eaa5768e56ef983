"""The WebSocket: JSON-RPC as on the unix socket, after the handshake has shown who connects.

A program sends its token in the header Authorization, or in its calls. A browser sends its cookie with the
handshake and the value of its tab in the first message: {"tab": "…"}. Until a valid token came, the client is
a stranger: strangers have few places, and little time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import orjson
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from ..core.errors import BadToken, Busy, HibossError
from .credentials import has_cookie, of_browser, token_of
from .door import Door

FIRST_SECONDS = 10.0  # until a token came that is valid
STRANGERS = 64  # at most, and not more than an eighth of all places
NOT_LOGGED_IN = 4401  # close code; ours


async def serve(door: Door, scope: Scope, receive: Receive, send: Send) -> None:
    headers = Headers(scope=scope)
    token = token_of(headers)
    if token is not None:
        door.dispatcher.check_token(token)  # refused with the handshake, with 401
    stranger = object()
    if token is None:
        if len(door.strangers) >= max(1, min(STRANGERS, door.settings.web_connections // 8)):
            raise Busy(what="too many WebSockets without a token are open, try again in a moment")
        door.strangers.add(stranger)
    abort: Callable[[], None] = scope.get("state", {}).get("abort", lambda: None)
    try:
        await receive()  # websocket.connect
        await send({"type": "websocket.accept"})
        async with asyncio.timeout(None if token else FIRST_SECONDS) as deadline:

            def shown() -> None:
                deadline.reschedule(None)
                door.strangers.discard(stranger)

            if token is None and has_cookie(headers):
                token = await _of_tab(door, headers, receive)
                shown()
            await door.serve_websocket(receive, send, abort, token, shown)
    except (HibossError, TimeoutError):
        await send({"type": "websocket.close", "code": NOT_LOGGED_IN, "reason": "not logged in"})
    finally:
        door.strangers.discard(stranger)


async def _of_tab(door: Door, headers: Headers, receive: Receive) -> str:
    """Return the token of a browser, by its cookie and its first message."""
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
