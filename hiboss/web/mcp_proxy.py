"""MCP over HTTP: /mcp, and tools as plain REST. The MCP worker answers; this passes on bytes.

A token is checked here, before anything is started or a large body is taken. The worker gets it as a bearer
token, whatever form it came in, and neither cookies nor where the request came from: guard.py has seen to
that. One connection to the worker for one request, so that whoever ends first ends both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

import h11
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..core.errors import (
    InvalidParams,
    InvalidRequest,
    McpUnavailable,
    MethodNotAllowed,
    NotFound,
    NoToken,
    TokenInUrl,
)
from . import answers, requests
from .credentials import TAB_HEADER, token_of
from .door import Door
from .mcp_upstream import BrokenOff, Headers, NotTaken, Upstream

T = TypeVar("T")
TRIES = 5  # to reach a worker: it may end, when it is idle, at the moment somebody comes
END_SECONDS = 1.0  # for the last words to a client
SERVERS = ("ui", "chat", "hiboss")  # names by which clients know the one server
HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection"}
    | {b"proxy-authenticate", b"proxy-authorization"}
)
# Of a request: what is said anew, and what shows who somebody is or where they came from.
NOT_PASSED_ON = HOP_BY_HOP | {b"host", b"content-length", b"expect", b"accept-encoding"}
PRIVATE = (
    b"authorization",
    b"cookie",
    TAB_HEADER.encode(),
    b"origin",
    b"referer",
    b"forwarded",
    b"x-forwarded-",
)
# Of an answer: what this door says itself.
NOT_PASSED_BACK = HOP_BY_HOP | {b"date", b"server", b"set-cookie", b"www-authenticate"}
ANSWERED_HERE = (b"access-control-", b"cross-origin-", b"content-security-policy")


async def serve(door: Door, request: Request) -> Response:
    """Pass a request of the MCP on: GET, POST and DELETE /mcp."""
    if request.method == "HEAD":
        raise MethodNotAllowed(path="/mcp", method="HEAD", allowed="DELETE, GET, POST")
    token = _proved(door, request)
    _words(request)
    body = await requests.body(request, door.settings.frame_bytes)
    query = request.scope["query_string"]
    target = b"/mcp?" + query if query else b"/mcp"
    headers = _passed_on(request)
    return await _unless_gone(request, _ask(door, request, (target, headers, body), token))


async def call(door: Door, request: Request) -> Response:
    """Call one tool: POST /api/mcp/call."""
    token = _proved(door, request)
    if _words(request):
        raise InvalidParams(detail="the query may have nothing; the body says all")
    given = await door.params(request)
    if unknown := sorted(given.keys() - {"server", "tool", "arguments", "agent"}):
        raise InvalidParams(
            detail=f"{unknown[0][:80]} is not a parameter; there are: server, tool, arguments, agent"
        )
    server = _text(given.get("server"), "server")
    if server not in SERVERS:
        raise NotFound(what="MCP server", value=server, where="/openapi.json")
    tool = _text(given.get("tool"), "tool")
    return await _call(door, request, token, tool, given.get("arguments", {}), given.get("agent"))


async def call_tool(door: Door, request: Request) -> Response:
    """Call one tool that the path names, with its arguments as the body: POST /api/tools/{tool}."""
    token = _proved(door, request)
    words = _words(request)
    agents = [value for name, value in words if name == "agent"]
    if len(words) > 1 or len(agents) != len(words):
        raise InvalidParams(detail="the query may have agent, once")
    arguments = await door.params(request)
    tool = _text(request.path_params["tool"].removeprefix("ui_"), "tool")
    return await _call(door, request, token, tool, arguments, agents[0] if agents else None)


async def _call(
    door: Door, request: Request, token: str, tool: str, arguments: object, agent: object
) -> Response:
    if request.headers.get(requests.KEY_HEADER) is not None:
        raise InvalidParams(detail="give the key among the arguments, and no Idempotency-Key")
    if not isinstance(arguments, dict):
        raise InvalidParams(detail="arguments must be an object")
    named = None if agent is None else _text(agent, "agent")
    body = orjson.dumps({"tool": tool, "arguments": arguments, "agent": named})
    json = answers.JSON.encode()
    asked = (b"/call", [(b"content-type", json), (b"accept", json)], body)
    return await _unless_gone(request, _ask(door, request, asked, token))


def _proved(door: Door, request: Request) -> str:
    """Return the token of a request; raises unless it is good."""
    token = token_of(request.headers)
    if token is None:
        raise NoToken()
    door.dispatcher.check_token(token)
    return token


def _words(request: Request) -> list[tuple[str, str]]:
    words = request.query_params.multi_items()
    if any(name in ("token", "unnamed") for name, _ in words):
        raise TokenInUrl()
    return words


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value or len(value) > 200:
        raise InvalidParams(detail=f"{name} must be a text of 1 to 200 characters")
    return value


def _passed_on(request: Request) -> Headers:
    dropped = NOT_PASSED_ON | _named_in_connection(request.headers.raw)
    return [one for one in request.headers.raw if one[0] not in dropped and not one[0].startswith(PRIVATE)]


def _passed_back(head: h11.Response) -> list[tuple[bytes, bytes]]:
    raw = list(head.headers)
    dropped = NOT_PASSED_BACK | _named_in_connection(raw)
    return [one for one in raw if one[0] not in dropped and not one[0].startswith(ANSWERED_HERE)]


def _named_in_connection(headers: Headers) -> frozenset[bytes]:
    """Return the headers that a Connection header says are for the next hop alone."""
    given = b",".join(value for name, value in headers if name == b"connection")
    return frozenset(one.strip().lower() for one in given.split(b","))


# --- asking the worker -------------------------------------------------------------------


async def _ask(door: Door, request: Request, asked: tuple[bytes, Headers, bytes], token: str) -> Response:
    """Start a worker if none runs, ask it, and return its answer when it begins."""
    target, headers, body = asked
    headers = [*headers, (b"authorization", f"Bearer {token}".encode("latin-1"))]
    found = door.calls.mcp_worker()
    for _ in range(TRIES):
        worker = found or await door.calls.start_mcp()
        found = None
        with suppress(NotTaken), ExitStack() as opened:
            upstream = await Upstream.connect(worker.http_socket)
            opened.callback(upstream.close)
            head = await upstream.ask(request.method, target, headers, body)
            opened.pop_all()  # who sends the answer closes it
            return Proxied(door, request, upstream, head)
    raise McpUnavailable(why="the worker takes no connections; try again in a moment")


class Proxied(Response):
    """The answer of the worker, piece by piece. It waits for a client that does not take what it is sent."""

    def __init__(self, door: Door, request: Request, upstream: Upstream, head: h11.Response) -> None:
        self.background = None
        self.status_code = head.status_code
        self.raw_headers = _passed_back(head)
        self._upstream = upstream
        self._stopping = door.stopping
        # A stream of GET tells what may come, for hours. All others answer what was asked: at a stop they
        # end with the worker, which has had its answers by then.
        names = {name for name, _ in self.raw_headers}
        self._ends_at_stop = request.method == "GET" and b"content-length" not in names
        self._abort: Callable[[], None] = request.scope.get("state", {}).get("abort", lambda: None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_disconnected(receive))
        sending = asyncio.create_task(self._send(send))
        tasks: list[asyncio.Task[Any]] = [gone, sending]
        if self._ends_at_stop:
            tasks.append(asyncio.create_task(self._stopping.wait()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            return  # the server has cut the connection; else it would log that as a failure
        finally:
            self._upstream.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if not gone.cancelled():
            return
        if sending.cancelled():  # the daemon stops
            await self._end(receive, send)
        elif isinstance(sending.exception(), BrokenOff):
            await self._break_off(receive)
        else:
            sending.result()

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        async for piece in self._upstream.pieces():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _end(self, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(END_SECONDS):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            await self._break_off(receive)

    async def _break_off(self, receive: Receive) -> None:
        """Cut the connection, so that nobody takes half of an answer for all of it."""
        self._abort()
        await _disconnected(receive)  # else the server would complain that the response has no end


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _unless_gone(request: Request, working: Coroutine[Any, Any, T]) -> T:
    """Await what may take long; cancel it when the client is gone."""
    work = asyncio.create_task(working)
    gone = asyncio.create_task(_disconnected(request.receive))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        raise InvalidRequest(detail="the client hung up")  # nobody hears it
    finally:
        for task in (work, gone):
            task.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)
