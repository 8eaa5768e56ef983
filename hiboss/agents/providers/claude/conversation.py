"""One process of the program, from its turn to its last result: what it is told meanwhile, and what it asks.

Standard input stays open until the last result. When words of a person are given during a tool, they join the
turn; during text they have a result of their own. Each message has an id, and the program repeats it
(`--replay-user-messages`) when the model gets it, and names it in its result: so it is known whether results
are still to come. A program that ends before that has lost these words, however it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable

from ....core.contracts.provider import LiveRun
from ...child_process import ProcessResult
from ...json_lines import JsonLines
from . import permissions
from .output import Line, Output

LINGER_SECONDS = 30.0  # for a program that has given its last result, and does not end
QUIET_SECONDS = 5.0  # after the last task in the background: it may report, and have a result of its own


class Conversation:
    """A turn that is under way."""

    def __init__(
        self,
        process: JsonLines,
        run: LiveRun,
        workspace: str,
        *,
        allow_all: bool,
        on_model: Callable[[], Awaitable[None]],
    ) -> None:
        self.output = Output(run.progress)
        self.lingered = False  # it had to be ended after its last result
        self.interrupted = False
        self._process = process
        self._run = run
        self._workspace = workspace
        self._allow_all = allow_all
        self._on_model = on_model  # called once, when the model has begun to answer
        self._given: set[str] = set()  # the ids of the words that it was given
        self._has_turn = False
        self._closed = False
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._limit: asyncio.Timeout | None = None
        self._closing: asyncio.TimerHandle | None = None

    async def hold(self, text: str) -> ProcessResult | None:
        """Give it the turn, and read it to its end; None if it had to be ended after its last result."""
        try:
            async with asyncio.timeout(None) as limit:
                self._limit = limit
                self._has_turn = True
                return await self._process.converse([_message(text)], self._take)
        except TimeoutError:
            if not limit.expired():
                raise
            self.lingered = True
            return None
        finally:
            self._closed = True
            self._cancel_closing()
            for task in self._asking.values():
                task.cancel()

    def steer(self, text: str) -> bool:
        """Give it words of a person. Return False if it is too late for that."""
        if self._closed or self.interrupted or not self._has_turn:
            return False
        message = _message(text)
        if not self.output.tools:  # during a tool they join the turn after it; else they cut the text short
            message["priority"] = "now"
        if not self._process.write(message):
            return False
        self._given.add(message["uuid"])
        self._cancel_closing()
        return True

    @property
    def unanswered(self) -> bool:
        """Whether a result is still to come: words have none yet, or the model was called after the last."""
        return bool(self._given - self.output.answered) or self.output.unfinished

    def interrupt(self) -> None:
        """Let it end with a result soon, and forget what it has not read yet."""
        if self._closed or self.interrupted:
            return
        self.interrupted = True
        self._control({"subtype": "interrupt", "cancel_queued": True})

    def _control(self, request: Line) -> None:
        self._process.write({"type": "control_request", "request_id": str(uuid.uuid4()), "request": request})

    # --- what it prints --------------------------------------------------------------

    async def _take(self, line: Line) -> None:
        self._cancel_closing()
        kind = line.get("type")
        if kind == "control_request":
            self._take_request(line)
        elif kind == "control_cancel_request":
            if (task := self._asking.pop(str(line.get("request_id")), None)) is not None:
                task.cancel()
        else:
            had_begun = self.output.heard_model
            self.output.take(line)
            if self.output.heard_model and not had_begun:
                await self._on_model()
            self._close_if_done(is_result=kind == "result")
        if self._closed:
            self._limit_rest()

    def _close_if_done(self, *, is_result: bool) -> None:
        """Close standard input after the last result. More results may come all the same; they are read."""
        if not self.output.results or self._closed:
            return
        if self.interrupted and is_result:
            self._close()
        elif not self.unanswered and not self.output.background:
            if is_result:
                self._close()
            elif not self._asking and not self.output.streaming:
                self._closing = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._close)

    def _close(self) -> None:
        self._closed = True
        self._process.close()
        self._limit_rest()

    def _limit_rest(self) -> None:
        """Wait for the end of the program not for long, unless the model works again."""
        if self._limit is not None and not self._limit.expired():
            now = asyncio.get_running_loop().time()
            self._limit.reschedule(None if self.output.unfinished else now + LINGER_SECONDS)

    def _cancel_closing(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

    # --- what it asks ----------------------------------------------------------------

    def _take_request(self, line: Line) -> None:
        """Answer a request of the program. One that needs people is answered when they do."""
        number, request = str(line.get("request_id")), line.get("request")
        if not isinstance(request, dict) or request.get("subtype") != "can_use_tool":
            self._respond(
                {"subtype": "error", "request_id": number, "error": "hiboss does not know this request"}
            )
            return
        task = asyncio.create_task(self._answer(number, request))
        self._asking[number] = task
        task.add_done_callback(lambda _: self._asking.pop(number, None))

    async def _answer(self, number: str, request: Line) -> None:
        given = request.get("input")
        given = given if isinstance(given, dict) else {}
        tool, reason = str(request.get("tool_name") or ""), str(request.get("decision_reason") or "")
        # Whatever happens, it gets an answer: else it would wait for one without end.
        answer: Line = {"subtype": "error", "request_id": number, "error": "the question could not be asked"}
        try:
            if self._allow_all and tool != permissions.ASK_TOOL:
                response = permissions.allowed(given)
            else:
                response = await permissions.answer(self._run, tool, given, reason, self._workspace)
            answer = {"subtype": "success", "request_id": number, "response": response}
        finally:
            self._respond(answer)

    def _respond(self, response: Line) -> None:
        with contextlib.suppress(OSError):
            self._process.write({"type": "control_response", "response": response})


def _message(text: str) -> Line:
    """Return words for the program.

    A slash at their beginning would be a command of its own, or, after a blank, wait for the end of the turn.
    """
    content = f"> {text}" if text.lstrip().startswith("/") else text
    return {"type": "user", "uuid": str(uuid.uuid4()), "message": {"role": "user", "content": content}}
