"""One HTTP request to the MCP worker over its unix socket, and the answer as it comes.

By h11, which uvicorn brings along: an HTTP client library would cost the daemon megabytes of memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import h11

from ..core.errors import McpUnavailable

READ_BYTES = 64 * 1024  # at a time; twice as much waits in memory if the client does not take it
HEADER_BYTES = 64 * 1024
Headers = Sequence[tuple[bytes, bytes]]


class NotTaken(Exception):
    """The worker took no connection, or hung up before it had read the request: it can be made again."""


class BrokenOff(Exception):
    """The worker ended in the middle of its answer."""


class Upstream:
    """A connection to the worker, for one request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEADER_BYTES)

    @classmethod
    async def connect(cls, path: str) -> Upstream:
        """Connect; raises NotTaken."""
        try:
            return cls(*await asyncio.open_unix_connection(path, limit=READ_BYTES))
        except OSError as error:
            raise NotTaken from error

    async def ask(self, method: str, target: bytes, headers: Headers, body: bytes) -> h11.Response:
        """Make the request and return the head of the answer. Raises NotTaken or McpUnavailable."""
        length = (b"content-length", b"%d" % len(body))
        more = [(b"host", b"localhost"), (b"connection", b"close"), length]
        request = h11.Request(method=method, target=target, headers=[*more, *headers])
        parts = (
            self._http.send(request),
            self._http.send(h11.Data(body)),
            self._http.send(h11.EndOfMessage()),
        )
        self._writer.write(b"".join(part or b"" for part in parts))
        try:
            while not isinstance(event := await self._next(), h11.Response):
                pass  # 1xx
        # A unix socket that is closed with unread bytes in it resets the connection; and the worker acts
        # when it has read all of a request. So nothing was done.
        except (ConnectionResetError, BrokenPipeError) as error:
            raise NotTaken from error
        except (OSError, h11.RemoteProtocolError) as error:
            why = "the worker ended before it answered; perhaps it was done all the same"
            raise McpUnavailable(why=why) from error
        return event

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body of the answer as it comes. Raises BrokenOff."""
        try:
            while not isinstance(event := await self._next(), h11.EndOfMessage):
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
        except (OSError, h11.RemoteProtocolError) as error:
            raise BrokenOff from error

    def close(self) -> None:
        """Hang up at once, whatever is under way."""
        self._writer.transport.abort()

    async def _next(self) -> h11.Event:
        while True:
            event = self._http.next_event()
            if isinstance(event, h11.Event):
                return event
            self._http.receive_data(await self._reader.read(READ_BYTES))
