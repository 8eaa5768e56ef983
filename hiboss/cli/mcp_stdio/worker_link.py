"""The connection to the MCP worker: ask the daemon for the worker, connect to it, say who speaks."""

from __future__ import annotations

import _socket  # as in client.py: `socket` takes 4 ms to import
import json
from collections.abc import Callable
from typing import Any

from ...core.errors import Busy, DaemonUnreachable, HibossError, HungUp
from ...core.paths import Home
from .. import client

START_SECONDS = 40.0  # the daemon gives a worker 30
GREETING_SECONDS = 10.0
MOST_GREETING = 64 * 1024  # bytes
_AWAY = ("mcp_unavailable",)  # the worker fails to start; a later one may not


class WorkerLink:
    """An open connection, and what came behind the greeting."""

    def __init__(self, connection: _socket.socket, received: bytes) -> None:
        self.connection, self.received = connection, received


class WorkerBusy(client.Answered):
    """{text}"""

    # The worker has as many clients as it may have. Room is made by one that leaves, which can take days.


def may_start_soon(error: HibossError) -> bool:
    """Whether a client that starts waits for a moment: nobody answers yet."""
    return client.is_away(error) and not isinstance(error, WorkerBusy)


def may_come_back(error: HibossError) -> bool:
    """Whether the same can succeed later: nobody answers now, or no worker starts now."""
    if isinstance(error, client.Answered) and error.stable_code in _AWAY:
        return True
    return client.is_away(error)


def connect(home: Home, greeting: dict[str, Any], waiting: Callable[[], None]) -> WorkerLink:
    """Open a connection; `waiting` is called while the daemon starts the worker.

    `greeting`: who speaks, as the first line says it (token, agent, dotted).

    Raises DaemonUnreachable where the daemon or the worker is gone, and Answered where one refuses.
    """
    started = client.call(
        home, "mcp.start", {"token": greeting["token"]}, timeout=START_SECONDS, waiting=waiting
    )
    path = str(started["socket"])
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    greeted = False
    try:
        link = _greet(connection, path, greeting)
        greeted = True
    except (OSError, ValueError) as error:
        why = f"the MCP worker does not answer: {getattr(error, 'strerror', None) or error}"
        raise DaemonUnreachable(socket=path, why=why, start=client.start_command(home)) from None
    finally:
        if not greeted:
            connection.close()
    return link


def _greet(connection: _socket.socket, path: str, greeting: dict[str, Any]) -> WorkerLink:
    connection.settimeout(GREETING_SECONDS)
    connection.connect(path)
    try:
        connection.sendall(json.dumps(greeting).encode() + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused unread (busy, foreign_peer); the answer says why
    line, received = _first_line(connection)
    answer: dict[str, Any] = json.loads(line)
    if answer.get("ok") is not True:
        refusal = client.Answered(answer.get("error") or {})
        if refusal.stable_code == HungUp.code:
            raise ValueError("the daemon ended meanwhile")
        raise WorkerBusy(answer["error"]) if refusal.stable_code == Busy.code else refusal
    connection.setblocking(False)
    return WorkerLink(connection, received)


def _first_line(connection: _socket.socket) -> tuple[bytes, bytes]:
    received = b""
    while b"\n" not in received and len(received) <= MOST_GREETING:
        part = connection.recv(1 << 16)
        if not part:
            raise ValueError("it hung up")
        received += part
    line, _, rest = received.partition(b"\n")
    return line, rest
