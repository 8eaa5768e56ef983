"""JSON-RPC 2.0 with the agent: calls that wait for their answer, and the agent's own requests.

It knows nothing of the protocol above it, and of the program only how to write a line to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from ...child_process import ProcessResult
from ...json_lines import Line

NO_METHOD = -32601
INTERNAL = -32603


class AgentError(Exception):
    """The agent answered a call with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class AgentEnded(Exception):
    """The program ended, or takes no more, before it answered."""


class Requests(Protocol):
    """Where the agent's own messages go."""

    def notified(self, method: str, given: Line) -> None:
        """Take a notification."""

    def answering(self, method: str, given: Line) -> Awaitable[Line] | None:
        """Return what makes the answer to a request; None for a method that is not known."""


class Connection:
    """Both directions. Give each line of the program to `take`."""

    def __init__(
        self,
        write: Callable[[Line], bool],
        requests: Requests,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._write = write
        self._requests = requests
        self._spawn = spawn
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Line]] = {}
        self.result: ProcessResult | None = None  # how the program ended

    async def call(self, method: str, given: Line) -> Line:
        """Call a method and return its result. Raises AgentError and AgentEnded."""
        self._number += 1
        answer: asyncio.Future[Line] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = answer
        line = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": given}
        if self.result is not None:
            del self._waiting[self._number]
            raise AgentEnded
        self._write(line)  # a program that takes no more has ended, or ends: `ended` tells how
        return await answer

    def notify(self, method: str, given: Line) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": given})

    def take(self, line: Line) -> None:
        """Take a line of the program. What is no message of JSON-RPC is ignored."""
        method, number = line.get("method"), line.get("id")
        given = line.get("params")
        if isinstance(method, str):
            content = given if isinstance(given, dict) else {}
            if number is None:
                self._requests.notified(method, content)
            else:
                self._spawn(self._answer(method, number, content))
        elif isinstance(number, int) and (waiting := self._waiting.pop(number, None)) and not waiting.done():
            if "error" in line:
                waiting.set_exception(_error(line["error"]))
            else:
                result = line.get("result")
                waiting.set_result(result if isinstance(result, dict) else {})

    def ended(self, result: ProcessResult) -> None:
        """Note that the program has ended: nothing more is answered."""
        self.result = result
        for one in self._waiting.values():
            if not one.done():
                one.set_exception(AgentEnded())
        self._waiting.clear()

    async def _answer(self, method: str, number: Any, given: Line) -> None:
        answering = self._requests.answering(method, given)
        if answering is None:
            error = {"code": NO_METHOD, "message": f"Method not found: {method[:100]}"}
            self._write({"jsonrpc": "2.0", "id": number, "error": error})
        else:
            self._write({"jsonrpc": "2.0", "id": number, "result": await answering})


def _error(given: Any) -> AgentError:
    content = given if isinstance(given, dict) else {}
    code = content.get("code")
    number = code if isinstance(code, int) else INTERNAL
    return AgentError(number, str(content.get("message") or ""), content.get("data"))
