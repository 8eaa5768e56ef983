"""JSON-RPC over a WebSocket that the HTTP door has accepted: each message is one request or one batch.

The HTTP door (hiboss/web) checks who may connect; from there on it is a session like that of the socket.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

from ..api.operation import Done, Door
from ..core.errors import Busy, HibossError
from . import codec
from .session import Session

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HIGH_WATER = 64 * 1024  # bytes that wait before no more answers are made; as asyncio has it
LOW_WATER = 16 * 1024
SLOW_SECONDS = 30.0  # a client that takes nothing for so long is disconnected
GOING_AWAY, TRY_AGAIN_LATER = 1001, 1013  # close codes of the WebSocket protocol


class WebSocketTransport:
    """Writes lines as messages, one after another, as fast as the client takes them."""

    def __init__(self, session: Session, send: Send, abort: Callable[[], None]) -> None:
        self._session = session
        self._send = send
        self._abort = abort
        self._messages: deque[bytes] = deque()
        self._size = 0  # bytes of all of them
        self._begun: list[bytes] = []  # of a line whose end has not been written
        self._begun_size = 0
        self._paused = False
        self._closing = False
        self.close_code = GOING_AWAY
        self._work = asyncio.Event()
        self.may_read = asyncio.Event()
        self.may_read.set()

    # --- as an asyncio transport -----------------------------------------------------

    def write(self, data: bytes | memoryview) -> None:
        *whole, rest = bytes(data).split(b"\n")
        for line in whole:
            message = b"".join((*self._begun, line))
            self._begun.clear()
            self._begun_size = 0
            self._messages.append(message)
            self._size += len(message)
        if rest:
            self._begun.append(rest)
            self._begun_size += len(rest)
        self._work.set()
        # What has no end yet is not counted: nothing of it is sent before the rest of it is written.
        if self._size > HIGH_WATER and not self._paused:
            self._paused = True
            self._session.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self._size + self._begun_size

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self.may_read.clear()

    def resume_reading(self) -> None:
        self.may_read.set()

    def close(self) -> None:
        """Close when everything is sent."""
        self._closing = True
        self._work.set()

    def abort(self) -> None:
        self._closing = True
        self._messages.clear()
        self._begun.clear()
        self._size = self._begun_size = 0
        self._work.set()
        self._abort()

    # --- sending ---------------------------------------------------------------------

    async def run(self) -> None:
        """Send what is written, until it is closed. A client that takes nothing is disconnected."""
        while not self._closing or self._messages:
            if not self._messages:
                self._work.clear()
                await self._work.wait()
                continue
            message = self._messages.popleft()
            try:
                async with asyncio.timeout(SLOW_SECONDS):
                    await self._send({"type": "websocket.send", "text": message.decode()})
            except TimeoutError:
                self.abort()
                return
            self._size -= min(len(message), self._size)
            if self._paused and self._size <= LOW_WATER:
                self._paused = False
                self._session.resume_writing()
            elif not self._messages:
                self._session.resume_writing()  # those who follow may go on
        await self._send({"type": "websocket.close", "code": self.close_code})


class WebSocketSession(Session):
    """A client that is connected by a WebSocket."""

    door: Door = "web"
    shown: Callable[[], None] | None = None  # called once, when a request has a valid token

    def _call(self, request: codec.Request, token: str | None, done: Done) -> Coroutine[Any, Any, Any] | None:
        self._look_for_token(request, token)
        return super()._call(request, token, done)

    async def _run(self, call: codec.Request | codec.Malformed, token: str | None) -> bytes:
        self._look_for_token(call, token)
        return await super()._run(call, token)

    def _look_for_token(self, call: codec.Request | codec.Malformed, token: str | None) -> None:
        if self.shown is None or isinstance(call, codec.Malformed):
            return
        given = call.params.get("token", token) if isinstance(call.params, dict) else token
        try:
            self._dispatcher.check_token(given)
        except HibossError:
            return  # the call itself answers with the error
        if given is not None:
            self.shown()
            self.shown = None

    async def serve(self, receive: Receive, send: Send, abort: Callable[[], None]) -> None:
        """Serve the client until one side closes."""
        transport = self._transport = WebSocketTransport(self, send, abort)
        writing = asyncio.create_task(transport.run())
        reading = asyncio.create_task(self._read(receive, transport))
        if len(self._sessions) >= self._settings.connections:
            most = self._settings.connections
            transport.close_code = TRY_AGAIN_LATER
            self.refuse(Busy(what=f"{most} connections are open, try again in a moment"))
        else:
            self._sessions.add(self)
        try:
            await asyncio.wait((writing, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            transport.close()  # what is still answered goes nowhere
            self.connection_lost(None)
            for task in (writing, reading):
                task.cancel()
            await asyncio.gather(writing, reading, return_exceptions=True)

    async def _read(self, receive: Receive, transport: WebSocketTransport) -> None:
        while True:
            await transport.may_read.wait()
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            self.take_lines([message.get("bytes") or b"" if text is None else text.encode()])
