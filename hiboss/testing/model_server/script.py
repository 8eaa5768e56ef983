"""What the model does: the steps of a script, and the queues from which requests take them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .request import Request


@dataclass(frozen=True, slots=True)
class Say:
    """Answer with a text, word by word."""

    text: str
    thinking: str = ""  # what it thinks before it answers
    words: bool = True  # whether each word comes alone; else the text comes as a whole
    tokens_in: int = 100  # tokens that were read, without those of the cache
    cached: int = 3000  # tokens that were read from the cache
    tokens_out: int = 7
    stop: str = "end_turn"  # why it stops; also max_tokens, refusal
    hold: bool = False  # after the first word it waits for go_on()
    hold_end: bool = False  # it waits after its whole text, before the end of the answer


@dataclass(frozen=True, slots=True)
class UseTool:
    """Call a tool. The result comes with the next request."""

    name: str
    # The arguments; a text for a tool that takes free text (the custom tools of the Responses API).
    input: Mapping[str, Any] | str
    say: str = ""  # what it says before
    hold: bool = False  # before the call, and after the first word of `say`, it waits for go_on()
    thinking: str = ""
    also: tuple[UseTool, ...] = ()  # other calls in the same answer
    tokens_in: int = 100
    cached: int = 3000
    tokens_out: int = 7


@dataclass(frozen=True, slots=True)
class Fail:
    """Refuse the request with an HTTP status, and every repetition of it too."""

    status: int
    type: str = ""  # the type of error; empty: the one that the API has for the status
    message: str = ""
    retry_after: int | None = None  # seconds, for the header Retry-After
    headers: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)  # more fields of the error, like resets_in_seconds
    times: int | None = None  # how often; None: as long as the client repeats the same request


@dataclass(frozen=True, slots=True)
class StreamFail:
    """Begin an answer, and end it with an error event, like overloaded_error or usage_limit_reached."""

    type: str
    message: str = ""
    after: str = ""  # what it says before
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Begin an answer, and close the connection."""

    after: str = "some words"
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Answer nothing until go_on(), then what `then` says."""

    then: Say | UseTool | Fail | None = None  # None: the answer of an empty queue


Step = Say | UseTool | Fail | StreamFail | Cut | Hold


def default_answer(request: Request) -> Say:
    """Return what the model says where the script has nothing."""
    lines = request.last_user.strip().splitlines()
    return Say(f"You said: {lines[-1] if lines else ''}")


class Queue:
    """The steps for some requests, in order."""

    def __init__(self, steps: tuple[Step, ...], matches: Callable[[Request], bool] | None = None) -> None:
        self.matches = matches
        self._steps = deque(steps)

    @property
    def left(self) -> list[Step]:
        """The steps that no request has taken yet."""
        return list(self._steps)

    def add(self, *steps: Step) -> None:
        """Add steps at the end."""
        self._steps.extend(steps)

    def take(self) -> Step | None:
        """Return the next step, or None."""
        return self._steps.popleft() if self._steps else None


class Script:
    """All queues, and which request got which fault. Used by the threads of the server."""

    def __init__(self) -> None:
        self.common = Queue(())
        self._special: list[Queue] = []
        self._faults: dict[tuple[object, ...], tuple[Fail | StreamFail | Cut, int]] = {}
        self._lock = threading.Lock()

    def when(self, matches: Callable[[Request], bool], *steps: Step) -> Queue:
        """Add a queue of its own for the requests that match."""
        queue = Queue(steps, matches)
        with self._lock:
            self._special.append(queue)
        return queue

    def step_for(self, request: Request) -> Step:
        """Return what to do with a request: the same fault if it is a repetition, else the next step."""
        if not request.is_main:
            # It costs nothing: a harness asks beside its turns, and nobody knows in which one it is counted.
            return Say("A title", tokens_in=0, cached=0, tokens_out=0)
        with self._lock:
            known = self._faults.get(request.identity)
            if known is not None and known[0].times == known[1]:
                del self._faults[request.identity]
                known = None
            step = known[0] if known is not None else self._next(request)
            if isinstance(step, Fail | StreamFail | Cut):
                self._faults[request.identity] = (step, 1 + (known[1] if known is not None else 0))
            return step

    def _next(self, request: Request) -> Step:
        for queue in self._special:
            if queue.matches is not None and queue.matches(request) and queue.left:
                return queue.take() or default_answer(request)
        return self.common.take() or default_answer(request)
