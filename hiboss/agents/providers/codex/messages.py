"""Requests and their answers on one connection: JSON-RPC in lines, without the field "jsonrpc"."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

Line = dict[str, Any]
UNKNOWN_METHOD = -32601


class Reply(NamedTuple):
    """The answer to a request: a result, or the text of an error."""

    result: Line
    error: str | None = None


Then = Callable[[Reply], Awaitable[None] | None]


class Messages:
    """Numbers our requests, and gives each answer to whoever waits for it."""

    def __init__(
        self,
        write: Callable[[Line], bool],
        on_notice: Callable[[str, Line], Awaitable[None] | None],
        on_request: Callable[[str, Line, Any], bool],
    ) -> None:
        self._write = write
        self._on_notice = on_notice  # method and parameters
        # Method, parameters and id of a request of theirs. Returns False if there is no answer to such a one.
        self._on_request = on_request
        self._waiting: dict[int, Then] = {}
        self._last = 0

    def first(self, method: str, params: Line, then: Then) -> Line:
        """Return a request that somebody else writes."""
        self._last += 1
        self._waiting[self._last] = then
        return {"id": self._last, "method": method, "params": params}

    def call(self, method: str, params: Line, then: Then = lambda reply: None) -> bool:
        """Send a request. Return False, and wait for no answer, if they take no more."""
        line = self.first(method, params, then)
        if self._write(line):
            return True
        del self._waiting[line["id"]]
        return False

    def notify(self, method: str) -> None:
        self._write({"method": method})

    def answer(self, number: Any, result: Line) -> None:
        """Answer a request of theirs."""
        self._write({"id": number, "result": result})

    async def take(self, line: Line) -> None:
        """Take one line of theirs."""
        method, params = line.get("method"), fields(line.get("params"))
        if isinstance(method, str) and "id" in line:
            if not self._on_request(method, params, line["id"]):
                # One without an answer would let the turn wait for ever.
                error = {"code": UNKNOWN_METHOD, "message": f"hiboss has no answer to {method}"}
                self._write({"id": line["id"], "error": error})
            return
        if isinstance(method, str):
            taken = self._on_notice(method, params)
        else:
            number = line.get("id")
            then = self._waiting.pop(number, None) if isinstance(number, int) else None
            taken = then(_reply(line)) if then is not None else None
        if taken is not None:
            await taken


def text(given: Any) -> str:
    """Return a field that should be a text; empty if it is none."""
    return given if isinstance(given, str) else ""


def fields(given: Any) -> Line:
    """Return a field that should be an object; empty if it is none."""
    return given if isinstance(given, dict) else {}


def objects(given: Any) -> list[Line]:
    """Return the objects of a field that should be a list of them."""
    return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []


def _reply(line: Line) -> Reply:
    if isinstance(error := line.get("error"), dict):
        return Reply({}, text(error.get("message")) or "an error without a text")
    return Reply(fields(line.get("result")))
