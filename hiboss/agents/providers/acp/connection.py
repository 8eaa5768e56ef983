"""JSON-RPC 2.0 with the agent: calls that wait for their answer, and the agent's own requests.

It knows nothing of the protocol above it, and of the program only how to write a line to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from ...child_process import ProcessResult
from ...json_lines import Line

NO_METHOD = -32601
BAD_REQUEST = -32602
INTERNAL = -32603
CANCEL = "$/cancel_request"


class AgentError(Exception):
    """The agent answered a call with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class AgentEnded(Exception):
    """The program ended, or takes no more, before it answered."""


class BadRequest(Exception):
    """What the agent asks for makes no sense: it gets an error, and the turn goes on."""


class Answering(NamedTuple):
    """What makes the answer to a request of the agent."""

    answer: Coroutine[Any, Any, Line]
    cancelled: Line  # the answer, if it is cancelled before


class Requests(Protocol):
    """Where the agent's own messages go."""

    def notified(self, method: str, given: Line) -> None:
        """Take a notification."""

    def answering(self, method: str, given: Line) -> Answering | None:
        """Return what makes the answer to a request; None for a method that is not known.

        Raises BadRequest.
        """


class Connection:
    """Both directions. Give each line of the program to `take`."""

    def __init__(
        self,
        write: Callable[[Line], bool],
        requests: Requests,
        spawn: Callable[[Coroutine[Any, Any, Line]], asyncio.Task[Line]],
    ) -> None:
        self._write = write
        self._requests = requests
        self._spawn = spawn
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Line]] = {}
        self._answering: dict[asyncio.Task[Line], Any] = {}  # the ids of the agent's own requests
        self._given_up: set[asyncio.Task[Line]] = set()  # those whose answer is that they are cancelled
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
            if number is None and method == CANCEL:
                self._cancel(content.get("requestId"))
            elif number is None:
                self._requests.notified(method, content)
            else:
                self._answer(method, number, content)
        elif type(number) is int and (waiting := self._waiting.pop(number, None)) and not waiting.done():
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

    def cancel_answers(self, *, tell: bool) -> None:
        """Give up all open requests of the agent. `tell`: it is told that they are cancelled."""
        for task in list(self._answering):
            self._give_up(task, tell=tell)

    def _cancel(self, number: Any) -> None:
        """Give up a request that the agent takes back."""
        for task, one in self._answering.items():
            if type(one) is type(number) and one == number:
                self._give_up(task, tell=True)

    def _give_up(self, task: asyncio.Task[Line], *, tell: bool) -> None:
        if tell:
            self._given_up.add(task)
        task.cancel()

    def _answer(self, method: str, number: Any, given: Line) -> None:
        try:
            answering = self._requests.answering(method, given)
        except BadRequest as error:
            self._refuse(number, BAD_REQUEST, f"Invalid params: {error}")
            return
        if answering is None:
            self._refuse(number, NO_METHOD, f"Method not found: {method[:100]}")
            return
        task = self._spawn(answering.answer)
        self._answering[task] = number
        task.add_done_callback(lambda done: self._answered(done, answering.cancelled))

    def _answered(self, task: asyncio.Task[Line], cancelled: Line) -> None:
        number, given_up = self._answering.pop(task), task in self._given_up
        self._given_up.discard(task)
        if not task.cancelled() and task.exception() is None:
            self._write({"jsonrpc": "2.0", "id": number, "result": task.result()})
        elif task.cancelled() and given_up:
            self._write({"jsonrpc": "2.0", "id": number, "result": cancelled})

    def _refuse(self, number: Any, code: int, message: str) -> None:
        self._write({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}})


def _error(given: Any) -> AgentError:
    content = given if isinstance(given, dict) else {}
    code = content.get("code")
    number = code if isinstance(code, int) else INTERNAL
    return AgentError(number, str(content.get("message") or ""), content.get("data"))
