"""Clients that come by HTTP: the daemon's gateway passes their requests on to a unix socket.

The gateway has checked Host, Origin and the token. Each request has its token with it, so a session of the
old era is of no use to anybody else.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from ..core import clock
from ..core import errors as known
from ..core.errors import HibossError, InvalidRequest, McpUnavailable, NoSuchPath, NoToken
from ..core.paths import private_socket
from . import tools
from .answers import error_json
from .caller import Caller
from .daemon_connection import Daemon, Refused

log = logging.getLogger(__name__)
BACKLOG = 1024
CLOSE_SECONDS = 1.0
STATUS = {
    one.code: one.http
    for one in vars(known).values()
    if isinstance(one, type) and issubclass(one, HibossError)
}


def token_of(request: Request) -> str:
    """Return the token of a request; raises NoToken."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NoToken()
    return token.strip()


class HttpClients:
    """An ASGI app: /mcp for the protocol, /call for one call of a tool."""

    def __init__(self, daemon: Daemon, *, most: int, body_bytes: int, idle_seconds: float) -> None:
        self._daemon = daemon
        self._old_era: StreamableHTTPSessionManager | None = None
        self._new_era: StreamableHTTPSessionManager | None = None
        self._most, self._body_bytes, self._idle_seconds = most, body_bytes, idle_seconds
        self._state = ServerState()
        self._listener: asyncio.Server | None = None
        self._stopping = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._streams: dict[str, asyncio.Event] = {}  # by session; set: it ends
        self.requests = 0  # under way
        self.last_request = clock.elapsed()

    def caller_of(self, context: ServerRequestContext[Any, Any]) -> Caller:
        """Return who makes a request of the protocol."""
        request: Request | None = context.request
        assert request is not None
        caller = self._caller(token_of(request), request.query_params.get("agent"))
        if (session := request.headers.get(MCP_SESSION_ID_HEADER)) is not None:
            # What the SDK keeps of a session of the old era; in the new era each request has its own.
            caller.posted = context.session._connection.state.setdefault("posted", caller.posted)
            caller.hang_up = partial(self._end_stream, session)
        return caller

    def _end_stream(self, session: str) -> None:
        if (ends := self._streams.get(session)) is not None:
            ends.set()

    def _caller(self, token: str, agent: str | None) -> Caller:
        return Caller(daemon=self._daemon, token=token, agent=agent or None)

    async def listen(self, server: Server[Any], path: str) -> None:
        """Serve on a unix socket, which others may not open."""
        # Clients refuse an event of more than 1 MiB, and an answer can be larger. In the new era that is JSON
        # anyhow, and an answer that takes long is a stream, whose end ends the call.
        self._old_era = self._sessions(server, json_response=True)
        self._new_era = self._sessions(server, json_response=False)
        began = asyncio.Event()
        self._serving = asyncio.create_task(self._serve(self._old_era, self._new_era, began))
        await began.wait()
        config = uvicorn.Config(self, lifespan="off", log_config=None, access_log=False, ws="none")
        config.load()

        def connect() -> H11Protocol:
            return H11Protocol(config=config, server_state=self._state, app_state={})

        # Not by uvicorn.Server, which takes over signals, and wakes ten times a second to see whether to end.
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_unix_server(connect, sock=private_socket(path), backlog=BACKLOG)

    def _sessions(self, server: Server[Any], *, json_response: bool) -> StreamableHTTPSessionManager:
        return StreamableHTTPSessionManager(
            server,
            json_response=json_response,
            # The gateway has checked Host and Origin.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=self._body_bytes,
            max_sessions=self._most,
            # Many clients never say that they leave, and their sessions would keep others out.
            session_idle_timeout=self._idle_seconds,
        )

    async def _serve(
        self, old: StreamableHTTPSessionManager, new: StreamableHTTPSessionManager, began: asyncio.Event
    ) -> None:
        """Keep the sessions. What the SDK starts for them must be ended by the task that began it."""
        async with old.run(), new.run():
            began.set()
            await self._stopping.wait()

    async def close(self) -> None:
        """Take no new clients; answer what is under way, for a moment; then disconnect everybody."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=CLOSE_SECONDS)
        self._stopping.set()
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=CLOSE_SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests += 1
        try:
            await self._answer(scope, receive, send)
        except HibossError as error:
            body = orjson.dumps({"error": error_json(error)}, default=str)
            await Response(body, _status(error), media_type="application/json")(scope, receive, send)
        finally:
            self.requests -= 1
            self.last_request = clock.elapsed()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._stopping.is_set():
            raise McpUnavailable(why="the worker ends; try again")
        assert self._old_era is not None and self._new_era is not None
        request = Request(scope, receive)
        token = token_of(request)
        if scope["path"] == "/mcp":
            # The SDK lets only the credential that began a session use it.
            digest = hashlib.sha256(token.encode()).hexdigest()
            access = AccessToken(token=digest, client_id=digest, scopes=[])
            version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER, LATEST_HANDSHAKE_VERSION)
            is_old = version in HANDSHAKE_PROTOCOL_VERSIONS
            manager = self._old_era if is_old else self._new_era
            asked = {**scope, "user": AuthenticatedUser(access)}
            session = request.headers.get(MCP_SESSION_ID_HEADER)
            if is_old and scope["method"] == "GET" and session is not None:
                await self._stream(session, asked, receive, send)
            else:
                await manager.handle_request(asked, receive, send)
        elif scope["path"] == "/call" and scope["method"] == "POST":
            found = await self._call(token, await request.body())
            await Response(orjson.dumps(found), media_type="application/json")(scope, receive, send)
        else:
            raise NoSuchPath(path=scope["path"][:200])

    async def _stream(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream of notices of a session, until the client leaves or its subscriptions end."""
        assert self._old_era is not None
        ends = asyncio.Event()
        begun = whole = False

        async def receive_or_end() -> Message:
            tasks = (asyncio.ensure_future(receive()), asyncio.create_task(ends.wait()))
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                return tasks[0].result() if tasks[0].done() else {"type": "http.disconnect"}
            finally:
                for task in tasks:
                    task.cancel()

        async def note(message: Message) -> None:
            nonlocal begun, whole
            await send(message)
            if message["type"] == "http.response.start":
                begun = True
                if message["status"] == HTTPStatus.OK:  # else it has another stream already
                    self._streams[session] = ends
            else:
                whole = not message.get("more_body", False)

        try:
            await self._old_era.handle_request(scope, receive_or_end, note)
            if begun and not whole:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if self._streams.get(session) is ends:
                del self._streams[session]

    async def _call(self, token: str, body: bytes) -> dict[str, Any]:
        """Call one tool, without the protocol."""
        try:
            given = orjson.loads(body)
            tool, arguments, agent = given["tool"], given.get("arguments"), given.get("agent")
        except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
            raise InvalidRequest(detail="the body must be an object with tool and arguments") from None
        if not isinstance(tool, str) or not isinstance(arguments, (dict, type(None))):
            raise InvalidRequest(detail="tool must be a name, and arguments an object")
        return await tools.run(self._caller(token, agent), tool, arguments)


def _status(error: HibossError) -> int:
    return STATUS.get(error.stable_code, 500) if isinstance(error, Refused) else error.http
