"""What the model server knows: its script, what has come, and what it holds back. Threads share it."""

from __future__ import annotations

import threading

from .holds import Holds
from .request import Refusal, Request
from .script import Script, Step


class ServerState:
    """The state of one model server."""

    def __init__(self, key: str) -> None:
        self.key = key  # the only one that is right; empty: any is
        self.requests: list[Request] = []  # all that were not malformed, in order
        self.refused: list[Refusal] = []  # what it refused by itself, and why
        self.defects: list[Exception] = []  # of the server itself
        self.paths: list[str] = []  # every path that was asked for, with its method
        self.plan = Script()
        self.holds = Holds()
        self._changed = threading.Condition()

    @property
    def turns(self) -> list[Request]:
        """The requests of turns: those with tools."""
        return [one for one in self.requests if one.is_main]

    def accept(self, request: Request) -> Step:
        """Keep a request, and return what to do with it."""
        step = self.plan.step_for(request)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return step

    def wait_turns(self, count: int, seconds: float = 60) -> None:
        """Wait until so many requests of turns have come. Blocks. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.turns) >= count, seconds):
                raise TimeoutError(f"{len(self.turns)} requests have come, not {count}")

    def wait_held(self, count: int = 1, seconds: float = 60) -> None:
        """Wait until so many answers wait for `go_on`. Blocks. Raises TimeoutError."""
        self.holds.wait(count, seconds)

    def go_on(self) -> None:
        """Let all answers go on that wait now."""
        self.holds.go_on()
