"""The questions that a run asks people while it works. Provisional: in memory only, until asks are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ..core import clock
from ..core.contracts.provider import Choice, Progress, Question
from ..core.quoting import storable

MOST_OPEN = 100
QUESTION_CHARACTERS = 10_000
TOLD_AT_ONCE = 10  # open questions of one run that the boss has notices of at the same time
UNANSWERED = "nobody answered in time"
TOO_MANY = f"more than {MOST_OPEN} questions are open"
ENDED = "the run is ending"


class OpenQuestion(NamedTuple):
    """A question that waits for its answer."""

    number: int  # within its run
    question: Question  # as it is shown: without secrets
    asked_at: int
    answer: asyncio.Future[Choice]


class Questions:
    """The open questions of one run."""

    def __init__(
        self,
        seconds: float,
        report: Callable[[Progress], None],
        asked: Callable[[], None],
        answered: Callable[[], None],
    ) -> None:
        self._seconds = seconds  # how long each waits
        self._report = report  # shows a question and its answer to those who follow the run
        self._asked, self._answered = asked, answered  # called for each question, and for each answer
        self._open: dict[int, OpenQuestion] = {}
        self._last = 0
        self._told = 0  # the number of the last one that `to_tell` returned
        self._closed = False

    def open(self) -> list[OpenQuestion]:
        return list(self._open.values())

    def to_tell(self) -> list[OpenQuestion]:
        """Return those that the boss is to be told of now, each once: the next ones when earlier ones end."""
        known = sum(number <= self._told for number in self._open)
        found = [one for one in self._open.values() if one.number > self._told][: TOLD_AT_ONCE - known]
        if self._closed or not found:
            return []
        self._told = found[-1].number
        return found

    async def ask(self, question: Question) -> Choice:
        """Wait for the answer of a person; the default counts when nobody answers in time.

        It counts at once when too many are open: a program that asks must get an answer.
        """
        if mistake := question.mistake():
            raise ValueError(mistake)
        given, question = question, _shown(question)
        default = Choice(question.default, UNANSWERED)
        if self._closed or len(self._open) >= MOST_OPEN:
            return _as_given(default._replace(text=ENDED if self._closed else TOO_MANY), question, given)
        self._last += 1
        entry = OpenQuestion(self._last, question, clock.now(), asyncio.get_running_loop().create_future())
        self._open[entry.number] = entry
        self._report(Progress("ask", f"{question.text} [{', '.join(question.options)}]"))
        self._asked()
        try:
            async with asyncio.timeout(self._seconds):
                choice = await entry.answer
        except TimeoutError:
            choice = default
        finally:
            del self._open[entry.number]
            self._answered()
        self._report(Progress("answer", f"{choice.option} {choice.text}".strip()))
        return _as_given(choice, question, given)

    def close(self) -> None:
        """Answer everything with its default: the run is ending."""
        self._closed = True
        for entry in self._open.values():
            if not entry.answer.done():
                entry.answer.set_result(Choice(entry.question.default, ENDED))


def _shown(question: Question) -> Question:
    """Return a question as people see it: without secrets, its options still different, its default named."""
    options: list[str] = []
    for number, one in enumerate(question.options, 1):
        text = storable(one, len(one))
        while text in options:
            text = f"{text} ({number})"
        options.append(text)
    default = question.options.index(question.default) if question.default else -1
    text = storable(question.text, QUESTION_CHARACTERS)
    return Question(text, tuple(options), options[default])


def _as_given(choice: Choice, shown: Question, given: Question) -> Choice:
    """Return an answer with the option as the program named it."""
    return choice._replace(option=given.options[shown.options.index(choice.option)])
