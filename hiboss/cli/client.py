"""The CLI's end of the unix socket. Plain blocking calls: importing asyncio would cost 40 ms."""

from __future__ import annotations

import _socket  # `socket` wraps it in enums that take 4 ms to make
import json
import time
from collections.abc import Callable
from typing import Any

from ..core.errors import DaemonUnreachable, HibossError, HungUp, TimedOut, exit_status
from ..core.paths import Home

TIMEOUT = 30.0
SLICE = 0.1  # seconds between two calls of `waiting`


class Answered(HibossError):
    """{text}"""

    # An error the daemon answered with; code and facts are the daemon's.

    def __init__(self, error: dict[str, Any]) -> None:
        data = error.get("data") or {}
        super().__init__(text=error.get("message", "the daemon answered with an error"))
        self.facts = data
        self.stable_code = str(data.get("code", "error"))
        self.rpc_code = error.get("code")

    @property
    def exit_status(self) -> int:
        return exit_status(self.stable_code)


def call(
    home: Home,
    method: str,
    params: dict[str, Any],
    *,
    timeout: float = TIMEOUT,
    waiting: Callable[[], None] | None = None,
) -> Any:
    """Call one operation; raises Answered, DaemonUnreachable or TimedOut. `waiting` is called while it waits."""
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(home.socket)
        sliced = _SlicedConnection(connection, timeout, waiting)
        try:
            sliced.send(request.encode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused unread (busy, foreign_peer); the answer says why
        line = sliced.read_line()
    except TimeoutError:
        raise TimedOut(seconds=timeout) from None
    except OSError as error:
        why = error.strerror or str(error)
        raise DaemonUnreachable(socket=home.socket, why=why, start=start_command(home)) from None
    finally:
        connection.close()
    if not line.endswith(b"\n"):
        raise HungUp(socket=home.socket, why="it hung up before it answered", start=start_command(home))
    return unwrap(json.loads(line))


def start_command(home: Home) -> str:
    """The command that starts a daemon in this home; `hiboss up` also sets it up."""
    return "hiboss daemon start" if home.has_profile("boss") else "hiboss up"


def unwrap(response: dict[str, Any]) -> Any:
    """Return the result of a response, or raise its error."""
    if "error" in response:
        raise Answered(response["error"])
    return response["result"]


class _SlicedConnection:
    """Sends and receives in slices of time, so that a progress bar can move in between."""

    def __init__(
        self, connection: _socket.socket, timeout: float, waiting: Callable[[], None] | None
    ) -> None:
        self.connection = connection
        self.timeout = timeout
        self.waiting = waiting

    def send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._slices(self.connection.send, left) :]

    def read_line(self) -> bytes:
        parts = []
        while part := self._slices(self.connection.recv, 1 << 16):
            parts.append(part)
            if part.endswith(b"\n"):
                break
        return b"".join(parts)

    def _slices(self, act: Callable[[Any], Any], given: Any) -> Any:
        end = time.monotonic() + self.timeout
        while (left := end - time.monotonic()) > 0:
            self.connection.settimeout(min(left, SLICE) if self.waiting else left)
            try:
                return act(given)
            except TimeoutError:
                if self.waiting:
                    self.waiting()
        raise TimeoutError
