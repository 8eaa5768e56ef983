"""The questions that a run asks people while it works. Each is stored as an ask (hiboss/store/run_asks.py).

Whoever settles the ask, at whatever door, the turn gets the answer after that is committed. Here is what
only lives as long as the run: which questions wait, and for whom.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..core import clock
from ..core.contracts.provider import Choice, Progress, Question
from ..core.crashpoint import RUN_ASKED, crashpoint
from ..core.errors import HibossError
from ..core.quoting import storable
from ..store import run_asks
from ..store.run_asks import Asked, Reply
from ..store.store import Store

log = logging.getLogger(__name__)
MOST_OPEN = 100
QUESTION_CHARACTERS = 10_000
SUBJECT_CHARACTERS = 4_000  # of a longer one no rule is made
SHOWN_CHARACTERS = 10_000  # of a question in the live output; `hiboss ask get` shows all of it
STORED_AT_ONCE = (
    10  # asks of one run that are open at the same time; the others wait until one has its answer
)
RETRY_SECONDS = 1.0  # after the store could not be used
UNANSWERED = "nobody answered in time"
CANCELLED = "the question was cancelled"
TOO_MANY = f"more than {MOST_OPEN} questions are open"
ENDED = "the run is ending"


class OpenQuestion(NamedTuple):
    """A question that waits for its answer."""

    ask: int  # its number
    question: Question  # as it is shown: without secrets


@dataclass(frozen=True, kw_only=True, slots=True)
class AskStore:
    """What a run needs of the store."""

    add: Callable[[Question, int], Awaitable[Asked]]  # until when it waits: milliseconds UTC
    reply: Callable[[int], Awaitable[Reply | None]]  # of an ask; None: it is open
    withdraw: Callable[[int], Awaitable[None]]  # an ask that needs no answer any more


def stored_asks(store: Store, run: int) -> AskStore:
    """Return where a run asks."""

    async def add(question: Question, until: int) -> Asked:
        asked = await store.timed_write_until_done(
            lambda tx, now: run_asks.ask(tx, run, question, until, now)
        )
        crashpoint(RUN_ASKED)
        return asked

    async def reply(ask: int) -> Reply | None:
        return store.read(lambda c: run_asks.reply(c, ask))

    async def withdraw(ask: int) -> None:
        await store.timed_write_until_done(lambda tx, now: run_asks.withdraw(tx, ask, now))

    return AskStore(add=add, reply=reply, withdraw=withdraw)


@dataclass(slots=True)
class _Waiting:
    question: Question
    settled: asyncio.Event = field(default_factory=asyncio.Event)


class Questions:
    """The open questions of one run."""

    def __init__(
        self,
        seconds: float,
        detail_bytes: int,
        store: AskStore,
        report: Callable[[Progress], None],
        note: Callable[[str], None],
        asked: Callable[[], None],
        answered: Callable[[], None],
        changed: Callable[[], None],
        goes_on: Callable[[], bool],
    ) -> None:
        self._seconds = seconds  # how long each waits
        self._detail_bytes = detail_bytes  # of what a tool would do
        self._store = store
        self._report = report  # shows a question and its answer to those who follow the run
        self._note = note  # keeps a remark with the run
        self._asked, self._answered = asked, answered  # called when one begins to wait, and when it ends
        self._changed = changed  # called when `open` returns something else
        self._goes_on = goes_on  # False: the run is ending, and its asks with it, or with its repetition
        self._withdrawing: set[asyncio.Task[None]] = set()
        self._number = 0  # of those that wait
        self._open: dict[int, _Waiting] = {}  # by their asks
        self._places = asyncio.Semaphore(STORED_AT_ONCE)
        self._ended = asyncio.get_running_loop().create_future()

    def open(self) -> list[OpenQuestion]:
        return [OpenQuestion(ask, one.question) for ask, one in self._open.items()]

    def settled(self, asks: Iterable[int]) -> None:
        """Some asks were settled, perhaps ours. That is committed."""
        for ask in asks:
            if (waiting := self._open.get(ask)) is not None:
                waiting.settled.set()

    async def ask(self, question: Question) -> Choice:
        """Wait for the answer of a person; the default counts when nobody answers in time.

        It counts at once when too many wait: a program that asks must get an answer. When the provider
        cancels this while its turn goes on, the ask is cancelled.
        """
        if mistake := question.mistake():
            raise ValueError(mistake)
        given, question = question, _shown(question, self._detail_bytes)
        if self._ended.done() or self._number >= MOST_OPEN:
            text = ENDED if self._ended.done() else TOO_MANY
            return _as_given(Choice(question.default, text), question, given)
        self._number += 1
        self._asked()
        task = asyncio.create_task(self._answer(question))
        try:
            await asyncio.wait([task, self._ended], return_when=asyncio.FIRST_COMPLETED)
            choice = task.result() if task.done() else Choice(question.default, ENDED)
        finally:
            task.cancel()
            self._number -= 1
            self._answered()
        self._report(Progress("answer", f"{choice.option} {choice.text}".strip()))
        return _as_given(choice, question, given)

    def close(self) -> None:
        """Answer everything with its default: the run is ending, and with it its asks."""
        if not self._ended.done():
            self._ended.set_result(None)

    async def _answer(self, question: Question) -> Choice:
        until = clock.now() + int(self._seconds * 1000)
        try:
            async with asyncio.timeout(self._seconds):
                await self._places.acquire()
        except TimeoutError:
            return Choice(question.default, UNANSWERED)
        adding = asyncio.ensure_future(self._store.add(question, until))
        try:
            asked = await asyncio.shield(adding)
            if asked.reply is not None:
                return self._choice(question, asked.reply, asked.rule)
            if asked.ask is None:
                return Choice(question.default, ENDED)
            shown = f"q{asked.ask} {question.text} [{', '.join(question.options)}]"
            self._report(Progress("ask", shown[:SHOWN_CHARACTERS]))
            return self._choice(question, await self._reply(asked.ask, question), None)
        except asyncio.CancelledError:
            if self._goes_on():
                task = asyncio.create_task(self._withdraw(adding))
                self._withdrawing.add(task)
                task.add_done_callback(self._withdrawing.discard)
            else:
                adding.cancel()
            raise
        finally:
            self._places.release()

    async def _withdraw(self, adding: asyncio.Future[Asked]) -> None:
        """Cancel an ask that the provider has given up; it may be about to be stored."""
        try:
            asked = await adding
            if asked.ask is not None and asked.reply is None:
                await self._store.withdraw(asked.ask)
        except HibossError as error:  # it ends with its run
            log.error("An ask could not be cancelled: %s", error, extra={"action": "run"})

    async def _reply(self, ask: int, question: Question) -> Reply:
        waiting = self._open[ask] = _Waiting(question)
        self._changed()
        try:
            while True:
                # Read after it is known here: it may have been settled before that.
                try:
                    reply = await self._store.reply(ask)
                except HibossError as error:
                    log.error(
                        "The answer to q%d is looked for again: %s", ask, error, extra={"action": "run"}
                    )
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                if reply is not None:
                    return reply
                await waiting.settled.wait()
                waiting.settled.clear()
        finally:
            del self._open[ask]
            self._changed()

    def _choice(self, question: Question, reply: Reply, rule: int | None) -> Choice:
        if rule is not None:
            self._note(f"rule {rule} answered {reply.answer} to {question.tool}")
            return Choice(str(reply.answer), f"by rule {rule}", reply.by)
        if reply.state == "answered":
            return Choice(str(reply.answer), reply.text, reply.by)
        why = UNANSWERED if reply.state == "expired" else reply.text or CANCELLED
        return Choice(question.default, why)


def _shown(question: Question, detail_bytes: int) -> Question:
    """Return a question as people see it: without secrets, its options still different, its default named.

    It keeps its subject only if that and the tool are the same then: what looks the same to people must be
    the same.
    """
    options: list[str] = []
    for number, one in enumerate(question.options, 1):
        text = storable(one, len(one))
        while text in options:
            text = f"{text} ({number})"
        options.append(text)
    default = question.options.index(question.default) if question.default else -1
    tool = storable(question.tool, len(question.tool))
    subject = storable(question.subject, SUBJECT_CHARACTERS)
    return Question(
        storable(question.text, QUESTION_CHARACTERS),
        tuple(options),
        options[default],
        tool,
        _within(storable(question.detail, detail_bytes), detail_bytes),
        subject if (tool, subject) == (question.tool, question.subject) else "",
    )


def _within(text: str, most: int) -> str:
    """Return a text with at most so many bytes, and say at its end if something is missing."""
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    end = "\n… the rest is too long to be stored"
    return encoded[: most - len(end.encode())].decode(errors="ignore") + end


def _as_given(choice: Choice, shown: Question, given: Question) -> Choice:
    """Return an answer with the option as the program named it."""
    return choice._replace(option=given.options[shown.options.index(choice.option)])
