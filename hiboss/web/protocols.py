"""uvicorn's protocols as this door uses them: with limits for those who are slow, idle, or wrong.

Whoever connects has shown nothing yet. So a connection that is over the limit, sends no headers, does not end
its body, or does not read what it is sent ends here, and leaves no line in the log.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from ..core.errors import Busy, NotHttp
from . import answers
from .headers import HEADERS

HEADER_SECONDS = 15.0  # from the beginning of a connection, or of a request, to the end of its headers
REST_SECONDS = 5.0  # for the rest of a body, after its request was answered
SLOW_SECONDS = 30.0  # a client that takes nothing for so long is disconnected
REFUSED_PLACES = 64  # connections above the limit that are told so; more are closed at once
MOST_PINGS = 100  # whose answers are not read


async def _busy(scope: Scope, receive: Receive, send: Send) -> None:
    error = Busy(what="too many HTTP connections are open (web.connections), try again in a moment")
    await answers.Failure(error, is_last=True)(scope, receive, send)


class _Watch:
    """Disconnects a client that takes nothing of what was written to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport) -> None:
        self._loop = loop
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0  # bytes, when it was looked at

    def begin(self) -> None:
        self.end()
        self._left = self._transport.get_write_buffer_size()
        self._timer = self._loop.call_later(SLOW_SECONDS, self._look)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() >= self._left:
            self._transport.abort()
        else:
            self.begin()


class IncompleteBytes:
    """Counts the bytes of incomplete messages of all WebSockets."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.held = 0

    @property
    def is_over(self) -> bool:
        return self.held > self._limit


class HttpProtocol(H11Protocol):
    """Closes connections that would hold one of the places for ever.

    The state of each request, also of one for a WebSocket, says how to abort its connection (`abort`).
    """

    limit: int  # of connections
    _header_timer: asyncio.TimerHandle | None = None
    _watch: _Watch | None = None
    _is_over = False  # more connections are open than may be

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.app_state["abort"] = transport.abort
        if len(self.connections) > self.limit + REFUSED_PLACES:
            transport.abort()
            return
        if len(self.connections) > self.limit:
            self._is_over, self.app = True, _busy
        # So `pause_writing` tells of everything that the client has not taken, also while it is closed.
        # Not 0: the transport of TLS would then pause where there is nothing.
        transport.set_write_buffer_limits(high=1)
        self._watch = _Watch(self.loop, transport)
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self._headers_missing)

    def data_received(self, data: bytes) -> None:
        if self._header_timer is None and self.conn.their_state is h11.IDLE:
            self._header_timer = self.loop.call_later(HEADER_SECONDS, self._headers_missing)
        super().data_received(data)
        if self._header_timer is not None and self.conn.their_state is not h11.IDLE:
            self._cancel_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        if self._watch is not None:
            self._watch.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._watch is not None:
            self._watch.begin()

    def resume_writing(self) -> None:
        if self._watch is not None:
            self._watch.end()
        super().resume_writing()

    def on_response_complete(self) -> None:
        if self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(REST_SECONDS, self._rest_missing, self.cycle)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, in our form. In the middle of an answer there is nothing more to say."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(answers.raw(NotHttp(detail="it cannot be read")))
        self.transport.close()

    def _should_upgrade(self) -> bool:
        return not self._is_over and super()._should_upgrade()

    def _cancel_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _headers_missing(self) -> None:
        self._header_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()

    def _rest_missing(self, cycle: Any) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.transport.close()


class _Handshake(ServerProtocol):
    """Answers what is no handshake in our form, and repeats nothing of it."""

    def accept(self, request: Request) -> Response:
        response = super().accept(request)
        if response.status_code != 101:
            body = answers.written(NotHttp(detail="it is no handshake of a WebSocket"))
            for name in ("Content-Type", "Content-Length"):
                del response.headers[name]
            response.headers.update(
                {"Content-Type": answers.JSON, "Content-Length": str(len(body)), **HEADERS}
            )
            response.body = body
        return response


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Lets the session abort the connection of a client that does not read; bounds what it may send."""

    _held = 0  # bytes of an incomplete message
    _pings = 0  # since the client reads nothing
    _watch: _Watch | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn = _Handshake(max_size=self.config.ws_max_size, logger=self.logger)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch = _Watch(self.loop, transport)

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["state"]["abort"] = self.transport.abort

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            # It could not even be read, like one with a body. Nobody else would ever answer.
            self.transport.write(answers.raw(NotHttp(detail="it is no handshake of a WebSocket")))
            self.transport.close()
            return
        self._hold(sum(map(len, self.frames)) + len(self.conn.reader.buffer))
        if self.app_state["incomplete"].is_over:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._hold(0)
        if self._watch is not None:
            self._watch.end()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._pings = 0
        if self._watch is not None:
            self._watch.begin()

    def resume_writing(self) -> None:
        if self._watch is not None:
            self._watch.end()
        super().resume_writing()

    def handle_ping(self) -> None:
        self._pings += 1
        if not self.writable.is_set() and self._pings > MOST_PINGS:
            self.transport.abort()
        else:
            super().handle_ping()

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not _is_text(self.frames):
            self.frames = []
            if (
                self.conn.state is State.OPEN
            ):  # not if it was closed before, by what came in the same segment too
                self.conn.send_close(1007)
                self.handle_parser_exception()
            return
        super().send_receive_event_to_app()

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True  # else it would log that the handshake was not completed

    def _hold(self, size: int) -> None:
        self.app_state["incomplete"].held += size - self._held
        self._held = size


def _is_text(frames: list[bytes]) -> bool:
    try:
        b"".join(frames).decode()
    except UnicodeDecodeError:
        return False
    return True
