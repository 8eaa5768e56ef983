"""The CLI's end of the unix socket. Plain blocking calls: importing asyncio would cost 40 ms."""

from __future__ import annotations

import _socket  # `socket` wraps it in enums that take 4 ms to make
import json
import time

from ..core.errors import DaemonUnreachable, HibossError, HungUp, TimedOut, exit_status
from ..core.paths import Home

TYPE_CHECKING = False  # importing typing would cost every command 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Fact = dict[str, Any]  # the parameters of a notification: topic, number, boot, and what the topic has

TIMEOUT = 30.0
SLICE = 0.1  # seconds between two calls of `waiting`
AWAY = ("stopping", "busy")  # errors of a daemon after which the same request can be sent again


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


def is_away(error: HibossError) -> bool:
    """Whether the daemon is only away for now, so that the same request can be sent again."""
    if isinstance(error, Answered):
        return error.stable_code in AWAY
    return isinstance(error, (DaemonUnreachable, TimedOut))


def call(
    home: Home,
    method: str,
    params: dict[str, Any],
    *,
    timeout: float = TIMEOUT,
    waiting: Callable[[], None] | None = None,
) -> Any:
    """Call one operation; raises Answered, DaemonUnreachable or TimedOut. `waiting` is called while it waits."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        sliced = _SlicedConnection(connection, timeout, waiting)
        sliced.ask(home, method, params)
        line = sliced.read_line()
    except OSError as error:
        raise _unreachable(home, error, timeout) from None
    finally:
        connection.close()
    if not line.endswith(b"\n"):
        raise _hung_up(home)
    return unwrap(json.loads(line))


def _unreachable(home: Home, error: OSError, timeout: float) -> HibossError:
    if isinstance(error, TimeoutError):
        return TimedOut(seconds=timeout)
    why = error.strerror or str(error)
    return DaemonUnreachable(socket=home.socket, why=why, start=start_command(home))


def _hung_up(home: Home) -> HungUp:
    return HungUp(socket=home.socket, why="it hung up before it answered", start=start_command(home))


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

    def ask(self, home: Home, method: str, params: dict[str, Any]) -> None:
        """Connect and send a request."""
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n"
        self.connection.settimeout(self.timeout)
        self.connection.connect(home.socket)
        left = memoryview(request.encode())
        try:
            while left:
                left = left[self._slices(self.connection.send, left) :]
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused unread (busy, foreign_peer); the answer says why

    def receive(self) -> bytes:
        """Wait for bytes and return them; none: the daemon hung up."""
        received: bytes = self._slices(self.connection.recv, 1 << 16)
        return received

    def read_line(self) -> bytes:
        parts = []
        while part := self.receive():
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


class FactStream:
    """The facts of one subscription (event.subscribe), on a connection of their own.

    Opened again after a lost connection, it continues after the last fact that it returned. If
    the daemon no longer has what came since then, the first fact has the topic `gap`.
    """

    def __init__(self, home: Home, wanted: dict[str, Any]) -> None:
        self._home = home
        self._wanted = wanted  # the parameters of event.subscribe
        self._connection: _socket.socket | None = None
        self._place: dict[str, Any] = {}  # the boot and the number of the last fact
        self._unread = b""  # the beginning of a line
        self._facts: list[Fact] = []  # read, and not returned yet
        self.arrived = ""  # a cursor: whatever arrives after it comes as a fact

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def open(self) -> None:
        """Subscribe. Read the store only after this: then nothing is missed in between."""
        self.close()
        self._connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            sliced = _SlicedConnection(self._connection, TIMEOUT, None)
            sliced.ask(self._home, "event.subscribe", self._wanted | self._place)
            while (answer := self._take_lines(sliced.receive())) is None:
                pass
            result = unwrap(answer)
        except OSError as error:
            self.close()
            raise _unreachable(self._home, error, TIMEOUT) from None
        except HibossError:
            self.close()
            raise
        place = {"boot": result["boot"], "after": result["number"]}
        if result["gap"] and self._place:
            self._facts.insert(0, {"topic": "gap", "boot": result["boot"], "number": result["number"]})
        self._place = place if result["gap"] else self._place or place
        self.arrived = f"{result['epoch']}-a{result['arrived']}~unread"

    def wait(self, seconds: float, waiting: Callable[[], None] | None = None) -> list[Fact]:
        """Return the next facts as soon as there are some; none when the time is over."""
        assert self._connection is not None
        sliced = _SlicedConnection(self._connection, seconds, waiting)
        try:
            while not self._facts:
                self._take_lines(sliced.receive())
        except TimeoutError:
            return []
        except OSError as error:
            self.close()
            raise _unreachable(self._home, error, seconds) from None
        except HibossError:
            self.close()
            raise
        facts, self._facts = self._facts, []
        self._place = {"boot": facts[-1]["boot"], "after": facts[-1]["number"]}
        return facts

    def close(self) -> None:
        """Disconnect, and forget what was not returned yet."""
        if self._connection is not None:
            self._connection.close()
        self._connection, self._unread, self._facts = None, b"", []

    def _take_lines(self, received: bytes) -> dict[str, Any] | None:
        """Keep the facts among the lines that are whole now, and return the answer if it is among them."""
        if not received:
            raise _hung_up(self._home)
        *lines, self._unread = (self._unread + received).split(b"\n")
        answer = None
        for line in map(json.loads, lines):
            if line.get("method") != "event":
                answer = line
            elif line["params"]["topic"] == "closed":
                raise Answered(line["params"]["error"])
            else:
                self._facts.append(line["params"])
        return answer
