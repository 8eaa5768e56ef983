"""Calls of the daemon over its unix socket, each with the token of the client who asks.

A connection is of one token. Calls that may wait have one of their own: a client that gives up ends them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson

from ..core import clock
from ..core.errors import HibossError, HungUp

CALL_SECONDS = 60.0  # the longest wait that a tool asks for is 50 s
LONGEST_ANSWER = 64 << 20  # bytes; the daemon's own limit is far below
IDLE_MS = 60_000  # a connection that nobody uses is closed after that

Fact = dict[str, Any]


class Refused(HibossError):
    """{text}"""

    # An error that the daemon answered with. Code and facts are the daemon's.

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(text=str(error.get("message", "the daemon answered with an error")))
        self.error = error
        self.stable_code = str((error.get("data") or {}).get("code", "error"))


class Connection:
    """One connection, logged in with a token. `closed` is set when it ended."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._followers: dict[int, Callable[[Fact], None]] = {}
        self._number = 0
        self.closed = asyncio.Event()
        self.last_used = clock.elapsed()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, path: str, token: str) -> Connection:
        """Connect and log in; raises Refused for a token that is not valid, HungUp if there is no daemon."""
        try:
            reader, writer = await asyncio.open_unix_connection(path, limit=LONGEST_ANSWER)
        except OSError as error:
            raise HungUp(socket=path, why=error.strerror or str(error), start="hiboss daemon start") from None
        made = cls(reader, writer)
        try:
            await made.call("auth.login", {"token": token, "door": "mcp"})
        except BaseException:
            made.close()
            raise
        return made

    @property
    def is_idle(self) -> bool:
        unused = not self._answers and not self._followers
        return unused and clock.elapsed() - self.last_used > IDLE_MS

    async def call(self, method: str, params: dict[str, Any], seconds: float = CALL_SECONDS) -> Any:
        """Call an operation; raises Refused, or HungUp when the connection ended before the answer."""
        if self.closed.is_set():
            raise _hung_up()
        self._number += 1
        number, self.last_used = self._number, clock.elapsed()
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            self._writer.write(_written(request) + b"\n")
            async with asyncio.timeout(seconds):
                await self._writer.drain()
                return await answer
        except (OSError, TimeoutError):
            raise _hung_up() from None
        finally:
            self._answers.pop(number, None)

    async def follow(self, params: dict[str, Any], told: Callable[[Fact], None]) -> None:
        """Subscribe to facts (event.subscribe). `told` is called with each, and with {} when they end."""
        found = await self.call("event.subscribe", params)
        self._followers[found["subscription"]] = told

    def unfollow(self) -> None:
        """Tell nobody of facts any more, nor that they end."""
        self._followers.clear()

    def close(self) -> None:
        self._reading.cancel()
        self._end()

    def _end(self) -> None:
        if self.closed.is_set():
            return
        self.closed.set()
        self._writer.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(_hung_up())
        followers, self._followers = self._followers, {}
        for told in followers.values():
            told({})

    async def _read(self) -> None:
        try:
            while line := await self._reader.readline():
                self._take(orjson.loads(line))
        except (OSError, ValueError, asyncio.LimitOverrunError):
            pass  # it ends, and whoever waits is told
        finally:
            self._end()

    def _take(self, line: dict[str, Any]) -> None:
        if line.get("method") == "event":
            fact = line["params"]
            if fact.get("topic") == "closed":
                self._end()  # the token has ended
            elif (told := self._followers.get(fact.get("subscription", 0))) is not None:
                told(fact)
            return
        answer = self._answers.get(line.get("id") or 0)
        if answer is None or answer.done():
            return
        if "error" in line:
            answer.set_exception(Refused(line["error"]))
        else:
            answer.set_result(line["result"])


def _written(request: dict[str, Any]) -> bytes:
    """Return a request as JSON. Half a surrogate pair, which orjson refuses, is for the daemon to explain."""
    try:
        return orjson.dumps(request)
    except TypeError:
        return json.dumps(request).encode()


def _hung_up() -> HungUp:
    why = "it hung up before it answered, so it is not known whether the call took effect"
    return HungUp(socket="the daemon", why=why, start="hiboss daemon start")


class Daemon:
    """The daemon of this home, with one connection for each token in use."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._connections: dict[str, Connection] = {}
        self._opening: dict[str, asyncio.Lock] = {}

    async def call(self, token: str, method: str, params: dict[str, Any]) -> Any:
        """Call an operation for the holder of a token."""
        return await (await self._connection(token)).call(method, params)

    async def wait(self, token: str, method: str, params: dict[str, Any]) -> Any:
        """Call an operation that waits. If the caller is cancelled, the daemon stops waiting too."""
        async with self.own_connection(token) as connection:
            return await connection.call(method, params)

    @asynccontextmanager
    async def own_connection(self, token: str) -> AsyncIterator[Connection]:
        """Open a connection for one purpose, and close it after that."""
        connection = await Connection.open(self._path, token)
        try:
            yield connection
        finally:
            connection.close()

    async def _connection(self, token: str) -> Connection:
        lock = self._opening.setdefault(token, asyncio.Lock())
        async with lock:
            found = self._connections.get(token)
            if found is None or found.closed.is_set():
                found = self._connections[token] = await Connection.open(self._path, token)
            return found

    def close_idle(self) -> None:
        """Close what nobody used for some time."""
        for token, one in list(self._connections.items()):
            if one.closed.is_set() or one.is_idle:
                one.close()
                del self._connections[token]
        for token in [
            one for one, lock in self._opening.items() if one not in self._connections and not lock.locked()
        ]:
            del self._opening[token]

    def close(self) -> None:
        for one in self._connections.values():
            one.close()
