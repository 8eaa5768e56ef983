"""Connections to the dispatcher of a daemon inside the test: the real session, over a pair of sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hiboss.api.dispatch import Dispatcher
from hiboss.core.settings import DEFAULTS
from hiboss.rpc.connection import Connection
from hiboss.rpc.session import Session
from hiboss.rpc.waiting_bytes import WaitingBytes

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(dispatcher: Dispatcher, *, small: bool = False) -> AsyncIterator[Streams]:
    """Connect. `small`: the daemon can write little before it is read."""
    ours, theirs = socket.socketpair()
    if small:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
    sessions: set[Session] = set()

    def session() -> Connection:
        return Connection(dispatcher, DEFAULTS, sessions, WaitingBytes(DEFAULTS))

    transport, _ = await asyncio.get_running_loop().connect_accepted_socket(session, theirs)
    reader, writer = await asyncio.open_connection(sock=ours, limit=2**26)
    try:
        yield reader, writer
    finally:
        writer.close()
        transport.abort()
        await asyncio.sleep(0)
