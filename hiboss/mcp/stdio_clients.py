"""Clients that come by `hiboss mcp`, which passes the lines of its standard input and output on to a socket.

The first line says who the client is. After that, each line is a message of the protocol.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket as sockets
import struct
from typing import Any

import anyio
import orjson
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, jsonrpc_message_adapter

from ..core.errors import BadText, Busy, ForeignPeer, HibossError, InvalidRequest, NoToken, ParseError
from ..core.paths import private_socket
from .answers import error_json
from .caller import Caller
from .daemon_connection import Daemon

log = logging.getLogger(__name__)
FIRST_LINE_SECONDS = 10.0
SILENT = 100  # connections beside the clients that have not said yet who they are
Incoming = SessionMessage | Exception


class StdioClients:
    """Serves every connection to the socket, each with its own caller."""

    def __init__(self, server: Server[Any], daemon: Daemon, *, most: int, line_bytes: int) -> None:
        self._server = server
        self._daemon = daemon
        self._most = most
        self._line_bytes = line_bytes
        self._listener: asyncio.AbstractServer | None = None
        self.connected: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._served = 0  # of those, the ones that have said who they are

    async def listen(self, path: str) -> None:
        listener = private_socket(path)
        self._listener = await asyncio.start_unix_server(self._connect, sock=listener, limit=self._line_bytes)

    def close(self) -> None:
        """Take no new clients, and hang up on the others.

        First the lines end: the SDK would answer what is under way with an error of its own. So `hiboss mcp`
        says that it is not known whether it took effect.
        """
        if self._listener is not None:
            self._listener.close()
        for task, writer in list(self.connected.items()):
            writer.transport.abort()
            task.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.connected[task] = writer
        try:
            caller = await self._meet(reader, writer)
            if caller is not None:
                try:
                    await self._serve(caller, reader, writer)
                finally:
                    self._served -= 1
        except (OSError, ValueError, TimeoutError, asyncio.CancelledError):
            pass  # it is gone, or sends lines that are too long; or the worker ends
        except Exception as error:
            if not _is_gone(error):
                log.exception("A client of MCP failed.", extra={"action": "mcp"})
        finally:
            del self.connected[task]
            writer.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Caller | None:
        """Read who the client is and tell it whether it is welcome; None: it is not."""
        try:
            caller = await self._caller(reader, writer)
        except HibossError as error:
            writer.write(orjson.dumps({"error": error_json(error)}, default=str) + b"\n")
            await writer.drain()
            return None
        self._served += 1
        writer.write(b'{"ok":true}\n')
        return caller

    async def _caller(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Caller:
        uid = _peer_uid(writer.get_extra_info("socket"))
        if uid != os.geteuid():
            raise ForeignPeer(owner=os.geteuid(), uid=uid)
        # The daemon looks in too, without a word, to see whether this takes clients.
        if len(self.connected) > self._most + SILENT:
            raise self._busy()
        # The line is read also from a client that is refused: else its writing fails before it can read why.
        async with asyncio.timeout(FIRST_LINE_SECONDS):
            first = await reader.readline()
        if self._served >= self._most:
            raise self._busy()
        try:
            given = orjson.loads(first)
            token, agent, dotted = given["token"], given.get("agent"), bool(given.get("dotted"))
        except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
            raise InvalidRequest(detail="the first line must say who the client is") from None
        if not isinstance(token, str) or not token:
            raise NoToken()
        caller = Caller(daemon=self._daemon, token=token, agent=agent, dotted=dotted)
        await caller.call("auth.login", token=token)  # a wrong one is refused now
        if self._served >= self._most:  # others came meanwhile
            raise self._busy()
        return caller

    def _busy(self) -> Busy:
        return Busy(what=f"{self._most} MCP clients are connected (mcp.clients)")

    async def _serve(
        self, caller: Caller, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve the protocol until the client leaves."""
        into, incoming = anyio.create_memory_object_stream[Incoming](0)
        outgoing, out_of = anyio.create_memory_object_stream[SessionMessage](0)
        writing = asyncio.create_task(_write(out_of, writer))
        reading = asyncio.create_task(_read(reader, into, writer))
        caller.hang_up = reading.cancel
        try:
            await serve_dual_era_loop(self._server, incoming, outgoing, lifespan_state=caller)
            await writing
        finally:
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)


async def _read(
    reader: asyncio.StreamReader, into: MemoryObjectSendStream[Incoming], writer: asyncio.StreamWriter
) -> None:
    async with into:
        while line := await reader.readline():
            if not line.strip():
                continue
            read, answer = _message(line)
            if answer is None:
                await into.send(read)
            else:
                writer.write(answer)
                await writer.drain()


def _message(line: bytes) -> tuple[Incoming, bytes | None]:
    """Return what a line is for the SDK; and the answer to it, if the SDK would leave it without one."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as error:
        return error, _refusal(line)
    # A request whose id is none that the protocol has, like 2.5, looks like a notification to the SDK.
    is_odd = isinstance(message, JSONRPCNotification) and b'"id"' in line
    return SessionMessage(message), _refusal(line) if is_odd else None


def _refusal(line: bytes) -> bytes | None:
    """Return the answer to what the SDK cannot read, and would drop; None: nobody waits for one."""
    number, error = None, _unreadable(line)
    if not isinstance(error, HibossError):
        if "method" not in error or error.get("id") is None:
            return None  # a notification, or an answer
        number, found = error["id"], error
        error = InvalidRequest(detail="it is no request of the protocol")
        if any("\ud800" <= one <= "\udfff" for one in json.dumps(found, ensure_ascii=False)):
            error = BadText(field="a text of the request", why="it has half a surrogate pair")
    said = {"jsonrpc": "2.0", "id": number, "error": error_json(error)}
    return json.dumps(said).encode() + b"\n"


def _unreadable(line: bytes) -> HibossError | dict[str, Any]:
    """Return what is wrong with a line, or the object that it is."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ParseError(detail="the line is not JSON, or nested too deep")
    if isinstance(found, dict):
        return found
    return InvalidRequest(detail="a line is one message; MCP has no batches")


def _is_gone(error: BaseException) -> bool:
    """Tell whether nothing is wrong but that the client went away."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_gone, error.exceptions))
    return isinstance(error, (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError))


async def _write(out_of: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter) -> None:
    async with out_of:
        async for one in out_of:
            text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
            writer.write(text.encode() + b"\n")
            await writer.drain()


def _peer_uid(connection: Any) -> int:
    """Return the user at the other end. Where the platform does not tell, the directory keeps others out."""
    if not hasattr(sockets, "SO_PEERCRED"):
        return os.geteuid()
    found = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1])
