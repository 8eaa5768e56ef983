"""A daemon with HTTP inside the test, an MCP worker that the test plays, and a client that reads piece by piece.

@proxied()
async def test_it(place: Place) -> None: ...
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hiboss.api.mcp_sockets import McpSockets
from hiboss.core.errors import McpUnavailable
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.web_clients import Given, bearer
from tests.support.web_daemons import Answer

SECONDS = 30  # for whatever a test waits for
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass
class Asked:
    """A request that has come to the worker."""

    method: str
    target: str
    headers: list[tuple[str, str]]  # their names in small letters
    body: bytes
    writer: asyncio.StreamWriter
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # the daemon hung up

    def all(self, name: str) -> list[str]:
        return [value for one, value in self.headers if one == name]

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    def chunk(self, data: bytes) -> None:
        self.write(b"%x\r\n%s\r\n" % (len(data), data))


async def plain(asked: Asked) -> None:
    """Answer with what was asked."""
    body = json.dumps({"method": asked.method, "target": asked.target, "body": asked.body.decode()}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    asked.write(head.encode() + body)


class PlayedWorker:
    """In the place of hiboss/daemon/mcp_worker.py: no process, but sockets that the test answers on."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.starts = 0
        self.asked: list[Asked] = []
        self.answer: Callable[[Asked], Awaitable[None]] = plain
        self.refuses = ""  # why it cannot be started
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.sockets: McpSockets | None = None  # as the daemon believes
        self._starting = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> McpSockets | None:
        return self.sockets

    async def start(self) -> McpSockets:
        self.starts += 1
        await self.may_start.wait()
        if self.refuses:
            raise McpUnavailable(why=self.refuses)
        async with self._starting:
            return await self._listen()

    async def _listen(self) -> McpSockets:
        if self._server is None:
            path = os.path.join(self._directory, f"w{self.starts}.sock")
            self._server = await asyncio.start_unix_server(self._serve, path)
            self.sockets = McpSockets(socket=path, http_socket=path, pid=4711)
        assert self.sockets is not None
        return self.sockets

    def end(self) -> None:
        """Take no connections any more, as if it had been idle."""
        if self._server is not None:
            self._server.close()
        self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = [(name.lower(), value.strip()) for name, _, value in (one.partition(":") for one in lines)]
        method, target, _ = first.split(" ")
        size = int(next((value for name, value in headers if name == "content-length"), "0"))
        asked = Asked(
            method, target, [one for one in headers if one[0]], await reader.readexactly(size), writer
        )
        self.asked.append(asked)
        self._tasks.add(asyncio.create_task(self._watch(reader, asked)))
        await self.answer(asked)
        if self.answer is plain:
            writer.close()

    async def _watch(self, reader: asyncio.StreamReader, asked: Asked) -> None:
        try:
            await reader.read()
        except OSError:
            pass
        asked.gone.set()


class Client:
    """One connection to the gateway."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: str) -> None:
        self.reader, self.writer, self._place = reader, writer, place

    def ask(self, method: str, path: str, headers: Given = (), body: Any = None) -> None:
        given = [("Host", self._place), *headers]
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            given.append(("Content-Type", "application/json"))
        names = {name.lower() for name, _ in given}
        if body is not None and not names & {"content-length", "transfer-encoding"}:
            given.append(("Content-Length", str(len(body))))
        if "host" in {name.lower() for name, _ in headers}:
            given.pop(0)
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given), "", ""]
        self.writer.write("\r\n".join(lines).encode("latin-1") + (body or b""))

    async def head(self) -> Answer:
        """Read the head of the answer."""
        async with asyncio.timeout(SECONDS):
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = [(name.lower(), value.strip()) for name, _, value in (one.partition(":") for one in lines)]
        return Answer(int(first.split()[1]), [one for one in headers if one[0]], b"")

    async def answer(self) -> Answer:
        found = await self.head()
        if found.status == 204:
            return found
        if found.all("transfer-encoding"):
            body = b""
            while part := await self.chunk():
                body += part
            return found._replace(body=body)
        async with asyncio.timeout(SECONDS):
            return found._replace(body=await self.reader.readexactly(int(found.header("content-length"))))

    async def chunk(self) -> bytes:
        """Read one piece of the answer; empty: it has ended. Raises where it was cut."""
        async with asyncio.timeout(SECONDS):
            size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def is_cut(self) -> bool:
        """Wait until the daemon closes; tell whether the last piece was missing."""
        async with asyncio.timeout(SECONDS):
            try:
                return not (await self.reader.read()).endswith(b"0\r\n\r\n")
            except ConnectionError:
                return True

    def close(self) -> None:
        self.writer.transport.abort()


class Place:
    """The daemon, the worker that the test plays, and clients."""

    def __init__(self, daemon: InProcessDaemon, worker: PlayedWorker) -> None:
        self.daemon, self.worker = daemon, worker
        self.url = ""
        self.clients: list[Client] = []

    @property
    def token(self) -> str:
        return self.daemon.token("nex")

    async def client(self) -> Client:
        place = self.url.removeprefix("http://")
        host, _, port = place.partition(":")
        self.clients.append(Client(*await asyncio.open_connection(host, int(port), limit=2**20), place))
        return self.clients[-1]

    async def begin(self, method: str, path: str, headers: Given | None = None, body: Any = None) -> Client:
        """Make a request on a connection of its own, as nex if nothing else is said."""
        client = await self.client()
        client.ask(method, path, bearer(self.token) if headers is None else headers, body)
        return client

    async def request(self, method: str, path: str, headers: Given | None = None, body: Any = None) -> Answer:
        client = await self.begin(method, path, headers, body)
        try:
            return await client.answer()
        finally:
            client.close()

    async def until(self, condition: Callable[[], Any]) -> None:
        await self.daemon.until(condition)

    async def asked(self, number: int = 1) -> Asked:
        """Wait for a request at the worker."""
        await self.until(lambda: len(self.worker.asked) >= number)
        return self.worker.asked[number - 1]


def proxied(**settings: Any) -> Callable[[Callable[[Place], Awaitable[None]]], Callable[[Path], None]]:
    """Make a test of `async def test(place)`."""

    def make(story: Callable[[Place], Awaitable[None]]) -> Callable[[Path], None]:
        async def told(daemon: InProcessDaemon) -> None:
            with tempfile.TemporaryDirectory(prefix="hb") as directory:
                worker = PlayedWorker(directory)
                object.__setattr__(daemon.daemon.dispatcher._context, "mcp", worker)
                place = Place(daemon, worker)
                await daemon.daemon.open_doors()
                state = daemon.daemon.dispatcher._context.gateway
                await daemon.until(lambda: state.url)
                place.url = str(state.url)
                try:
                    await story(place)
                finally:
                    for client in place.clients:
                        client.close()
                    for one in worker.asked:
                        one.writer.close()
                    worker.end()

        told.__name__, told.__doc__ = story.__name__, story.__doc__
        told.__qualname__, told.__module__ = story.__qualname__, story.__module__
        return frozen(at=None, web_enabled="on", web_port=0, **settings)(told)

    return make
