"""A server on this machine that receives webhooks and answers with the bytes it was given."""

from __future__ import annotations

import asyncio
from typing import NamedTuple


class Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]  # by name in lower case
    body: bytes


def response(status: int = 200, body: bytes = b"", *, kind: str = "text/plain", **headers: str) -> bytes:
    """Return an HTTP response; `retry_after="5"` is the header retry-after."""
    named = {"content-type": kind, "content-length": str(len(body)), "connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} x\r\n{head}\r\n".encode() + body


class Receiver:
    """`async with Receiver() as server`: each request gets `answer`; None keeps the caller waiting."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: bytes | None = response()
        self.endless = b""  # sent again and again after the answer, until the caller closes
        self.open = 0  # connections
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/turns"

    async def __aenter__(self) -> Receiver:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self.open += 1
        try:
            self.requests.append(await _read(reader))
            if self.answer is not None:
                writer.write(self.answer)
                while self.endless:
                    writer.write(self.endless)
                    await writer.drain()
                await writer.drain()
            else:
                await reader.read()  # until the caller closes
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            self._tasks.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    return Request(method, target, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
