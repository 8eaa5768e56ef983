"""The questions of the program that wait for people now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ....core.contracts.provider import LiveRun
from . import approvals
from .approvals import Asked
from .messages import Line


class Asking:
    """Asks people, and gives the program their answers."""

    def __init__(
        self, run: LiveRun, answer: Callable[[Any, Line], None], say: Callable[[str], object]
    ) -> None:
        self._run = run
        self._answer = answer  # a request of the program, by its id
        self._say = say  # words to the running turn
        self._open: dict[Any, asyncio.Task[None]] = {}

    def ask(self, asked: Asked, number: Any, *, of_turn: bool) -> None:
        """Ask without waiting. `of_turn`: it is of the turn itself, not of a sub-agent."""
        task = asyncio.create_task(self._ask(asked, number, of_turn))
        self._open[number] = task
        task.add_done_callback(lambda _: self._open.pop(number, None))

    def resolved(self, number: Any) -> None:
        """Forget a question that needs no answer any more."""
        if isinstance(number, (int, str)) and (task := self._open.get(number)) is not None:
            task.cancel()

    def close(self) -> None:
        for task in self._open.values():
            task.cancel()

    async def _ask(self, asked: Asked, number: Any, of_turn: bool) -> None:
        choices = await asyncio.gather(*[self._run.ask(one) for one in asked.questions])
        if of_turn and (said := approvals.denial(asked, choices)):
            self._say(said)  # before the decision: the model's next call has both
        self._answer(number, asked.result(choices))
