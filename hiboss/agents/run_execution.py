"""One run: call its provider, watch its time limits, keep its live output, and return its outcome.

Nothing is written to the store here; the runner does that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..core import bounded_calls
from ..core.contracts.failures import Failure, SessionLost, TurnError
from ..core.contracts.provider import (
    ASK,
    INTERRUPT,
    SESSION,
    SHOWN,
    STEER,
    Answer,
    Choice,
    Progress,
    Provider,
    Question,
    TurnInput,
    Usage,
)
from ..core.plugins import no_exit
from ..core.quoting import Pieces, encodable, storable
from ..store.run_start import Turn
from . import process_control, run_outcome
from .live_output import LiveOutput
from .own_time import OwnTime
from .provider_reports import check_pid, check_progress, check_session, shown_part
from .questions import AskStore, Questions
from .run_outcome import NOTE_CHARACTERS, Outcome
from .settling import Reported

log = logging.getLogger(__name__)
END_SECONDS = 20.0  # for a provider that was told to end; it may have to end a program first
ASK_SECONDS = (
    50.0  # that a run waits for one ask by its own calls: harnesses kill commands that take a minute
)
INTERRUPT_SECONDS = 2.0  # for a provider that can end a turn in an orderly way, before it is cancelled
STEER_SECONDS = 10.0
MODEL_CHARACTERS = 200


class Limits(NamedTuple):
    """The limits of one run."""

    idle_seconds: float  # without any output
    total_seconds: float
    text_bytes: int  # of the answer
    question_seconds: float = 3_600.0  # that a question waits for its answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Reports:
    """Where an execution reports what is stored, and what others wait for."""

    store_pid: Callable[[int], Awaitable[None]]
    store_session: Callable[[str], Awaitable[None]]
    # A session, and what people said meanwhile; returns what the turn is given instead.
    session_lost: Callable[[str, Sequence[str]], Awaitable[TurnInput]]
    on_output: Callable[[Progress, int], None]  # something to show, and its position
    on_standstill: Callable[[bool], None]  # True: it works no more for now; False: it works again
    asks: AskStore  # where its questions are stored
    on_question: Callable[[], None]  # it asks one more, or one has its answer


class Execution:
    """The execution of one run. `run` returns its outcome; it raises only for a defect of the daemon."""

    def __init__(
        self,
        turn: Turn,
        limits: Limits,
        *,
        prepare: Callable[[], Awaitable[tuple[TurnInput, Callable[[], Provider]]]],
        reports: Reports,
        own_time: OwnTime | None = None,
    ) -> None:
        self.turn = turn
        self.own_time = own_time or OwnTime()
        self.live_output = LiveOutput(reports.on_output)
        self._thoughts = Pieces()
        self.questions = Questions(
            limits.question_seconds,
            limits.text_bytes,
            reports.asks,
            self.show,
            note=self._remark,
            asked=self._stand_still,
            answered=self._go_on,
            changed=reports.on_question,
            goes_on=lambda: self.ending is None,
        )
        self.pid: int | None = None
        self.paused = False
        self.control = asyncio.Lock()  # its processes are stopped, or go on, one after the other
        self.usage: Usage | None = None  # as reported so far
        self.model: str | None = None  # as reported
        self._said: list[str] = []  # by people, to the running turn
        self._notes: dict[str, None] = {}  # of reports that could not be used as they were, each once
        self._limits = limits
        self._prepare = prepare
        self._reports = reports
        self._provider: Provider | None = None  # that takes the turn now
        self._interrupting: asyncio.Task[None] | None = None
        self._provider_task: asyncio.Task[Answer] | None = None
        self._ended: Outcome | None = None
        self._over = False  # its outcome is decided and is being written
        self.left_behind = False  # its provider does not end, and may go on in its session
        self._released = asyncio.Event()  # an outcome that waits for the end of a pause may be written
        self._processes = process_control.RunProcesses()
        loop = asyncio.get_running_loop()
        self._stopped: asyncio.Future[None] = loop.create_future()  # done: it was told to end
        self._clock = loop.time
        self._began_at = self._alive_at = self._paused_at = loop.time()
        self._standing_still = 0  # for how many reasons: a pause, questions that wait for their answer
        self._limits_watched: asyncio.TimerHandle | None = None
        self._waiting: set[int] = set()  # the asks for which a call of the run waits, and its limits with it
        self._waited: dict[int, float] = {}  # the seconds for which they did, by ask
        self._waited_in_all = 0.0

    async def run(self) -> Outcome:
        self._provider_task = asyncio.create_task(self._take_turn())
        self._watch_limits()
        if self._ended is not None:
            self._provider_task.cancel()
        try:
            await self._until_ended(self._provider_task)
        finally:
            self._forget_limits()
            if self._interrupting is not None:
                self._interrupting.cancel()
            self._over = True
            if self._ended is None and not self._provider_task.done():  # this task was cancelled
                what = f"The provider of r{self.turn.run}"
                self.left_behind = bool(await bounded_calls.end([self._provider_task], what, END_SECONDS))
        try:
            return self._outcome(self._provider_task)
        except Exception as error:  # a provider may return and raise anything; its run must end
            log.exception("r%d has no outcome.", self.turn.run, extra={"action": "run"})
            what = f"what the provider returned cannot be used: {type(error).__name__}"
            return Outcome(failure=Failure("provider_failed", what))

    @property
    def reported(self) -> Reported:
        return Reported(self.usage, self.model)

    @property
    def ending(self) -> str | None:
        """Why it is about to end: cancelled, interrupted, or over; None while it goes on."""
        if self._ended is not None and self._ended.ended is not None:
            return self._ended.ended
        return "over" if self._over or self._ended is not None else None

    def end(self, status: str, why: str) -> bool:
        """End the run for a reason. Return False, and do nothing, if it is about to end already.

        What is stored about its end comes before this status (run_cancels.py).
        """
        self._released.set()
        if self.ending is not None:
            return False
        # A stopped program cannot do anything that it is asked for.
        orderly = self.can(INTERRUPT) and not self.paused
        self._stop(Outcome(ended=status, failure=Failure(status, why)), orderly=orderly)
        return True

    def release(self) -> None:
        """Let an outcome be written that waits for the end of a pause."""
        self._released.set()

    async def until_released(self) -> None:
        """Wait until it is not paused any more, or is told to end."""
        await self._released.wait()
        self._released.clear()

    @property
    def silent_seconds(self) -> float | None:
        """For how long the provider gave no sign of life; None while that does not count (paused, asking)."""
        return None if self._standing_still else self._clock() - self._alive_at

    async def pause(self) -> bool:
        """Stop its processes and the clock of its limits. Return whether it was running before.

        A program that starts later is stopped as soon as it is reported.
        """
        if self.paused or self.ending is not None:
            return False
        self.paused = True
        self._stand_still()
        await asyncio.to_thread(process_control.stop, self._processes)
        if self.ending is not None:  # what ends it has begun meanwhile, and must not meet a stopped process
            await asyncio.to_thread(process_control.resume, self._processes)
        return True

    async def resume(self) -> bool:
        """Let its processes continue. Return whether it was paused."""
        if not self.paused or self.ending is not None:
            return False
        self.paused = False
        await asyncio.to_thread(process_control.resume, self._processes)
        self._go_on()
        return True

    async def steer(self, text: str, shown: str | None = None) -> bool:
        """Give the running turn words of a person. Return False if it is too late for that.

        `shown`: what those who follow the run see of it.
        """
        if not self.can(STEER) or self.ending is not None:
            return False
        assert self._provider is not None
        try:
            with no_exit():
                async with asyncio.timeout(STEER_SECONDS):
                    taken = await self._provider.steer(text) is True
        except Exception:  # a provider may raise anything; its run goes on
            log.exception("r%d could not be steered.", self.turn.run, extra={"action": "run"})
            return False
        if taken:
            self._said.append(text)
            self.show(Progress("steer", text if shown is None else shown))
        return taken

    def can(self, capability: str) -> bool:
        """Tell whether the provider that takes the turn now declares a capability."""
        return self._provider is not None and capability in self._provider.capabilities

    def give_way(self) -> None:
        """Take no place among the runs, and have no limits: an open session works on it, not the daemon."""
        self._stand_still()

    def _stand_still(self) -> None:
        """Stop the clock of the limits, and let another run have the place."""
        self._standing_still += 1
        if self._standing_still == 1:
            self._paused_at = self._clock()
            self._forget_limits()
            self._reports.on_standstill(True)

    def _go_on(self) -> None:
        self._standing_still -= 1
        if self._standing_still == 0 and not self._over:
            lasted = self._clock() - self._paused_at  # does not count for the limits
            self._began_at += lasted
            self._alive_at += lasted
            self._watch_limits()
            self._reports.on_standstill(False)

    @contextmanager
    def standing_still(self, ask: int) -> Iterator[None]:
        """Stop the clock of the limits and free the place while a call of the run waits for an answer.

        Only for so long, of one ask and of all: a program can wait in the background and work on.
        """
        left = min(
            ASK_SECONDS - self._waited.get(ask, 0.0), self._limits.question_seconds - self._waited_in_all
        )
        if left <= 0 or ask in self._waiting:
            yield
            return
        began = self._clock()
        self._waiting.add(ask)
        self._stand_still()
        bound = asyncio.get_running_loop().call_later(left, self._end_wait, ask, began)
        try:
            yield
        finally:
            bound.cancel()
            self._end_wait(ask, began)

    def _end_wait(self, ask: int, began: float) -> None:
        if ask in self._waiting:
            lasted = self._clock() - began
            self._waiting.discard(ask)
            self._waited[ask] = self._waited.get(ask, 0.0) + lasted
            self._waited_in_all += lasted
            self._go_on()

    def _remark(self, note: str) -> None:
        """Keep a remark with the run."""
        self._notes[note] = None

    # --- while it runs ---------------------------------------------------------------

    async def _until_ended(self, provider_task: asyncio.Task[Answer]) -> None:
        """Wait for the provider. When it was told to end and does not, it is left behind."""
        either: list[asyncio.Future[Any]] = [provider_task, self._stopped]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        # It is not cancelled again: that would interrupt it while it ends its program.
        what = f"The provider of r{self.turn.run}"
        self.left_behind = bool(await bounded_calls.wait_or_leave([provider_task], what, END_SECONDS))

    async def _take_turn(self) -> Answer:
        with no_exit():
            turn, make = await self._prepare()
            try:
                return await self._give(turn, make())
            except SessionLost as lost:
                if turn.session is None:
                    raise
                why = storable(lost.text, NOTE_CHARACTERS)
                log.warning("r%d begins a new session: %s", self.turn.run, why, extra={"action": "run"})
            # A second loss in the same turn fails it, as every TurnError does.
            instead = await self._reports.session_lost(turn.session, tuple(self._said))
            answer = await self._give(instead, make())
            note = f"a new session was begun, the one before could not be resumed: {why}"
            return replace(answer, note=f"{note}; {answer.note}" if answer.note else note)

    async def _give(self, turn: TurnInput, provider: Provider) -> Answer:
        """Give the turn to a provider. What it cannot resume it does not get."""
        self._provider = provider
        if turn.session is not None and not self.can(SESSION):
            turn = replace(turn, session=None, session_is_new=False)
        try:
            return await provider.take_turn(turn, _Run(self, turn.delivery))
        finally:
            self._end_thought()

    def report(self, part: Progress) -> None:
        """Take progress of the provider."""
        self._alive_at = self._clock()
        part, note = check_progress(part)
        if part.usage is not None:
            self.usage = part.usage
            if part.usage.exact:
                self.own_time.result_seen()
        if part.kind == "model" and part.text:
            self.model = part.text[:MODEL_CHARACTERS]
        if note:
            self._notes[note] = None
        if part.kind == "thinking":
            part = part._replace(text=self._thoughts.take(part.text))
        elif part.kind in SHOWN and part.text:
            self._end_thought()
        if part.kind in SHOWN and part.text:
            self.show(shown_part(part))

    def _end_thought(self) -> None:
        """Show what was held back of its thoughts: no more of them comes now."""
        if rest := self._thoughts.rest():
            self.show(Progress("thinking", rest))

    def show(self, part: Progress) -> None:
        """Show something to those who follow the run."""
        self.live_output.add(part._replace(text=encodable(part.text)))

    async def session(self, session: str) -> None:
        """Store the session that the provider uses."""
        note = check_session(session)
        if self._over:
            raise TurnError("ended", "the run has ended")
        if note:
            self._notes[note] = None
            return
        await self._reports.store_session(session)

    async def started(self, mark: str, pid: int) -> None:
        """Store the process that takes the turn."""
        if self._over:  # the provider was left behind: it must end its program
            raise TurnError("ended", "the run has ended")
        check_pid(pid)
        self.own_time.program_started(pid)
        process_control.mark_process(pid, mark)
        self._processes = process_control.RunProcesses(frozenset({pid}), frozenset({mark}))
        self.pid = pid
        await self._reports.store_pid(pid)
        if self.paused and self.ending is None:
            await asyncio.to_thread(process_control.stop, self._processes)
            if not self.paused or self.ending is not None:  # meanwhile
                await asyncio.to_thread(process_control.resume, self._processes)

    def _watch_limits(self) -> None:
        """End the run when it takes too long or gives no output for too long; not while it is paused."""
        if self._provider_task is None or self._standing_still or self._over:
            return
        idle = self._alive_at + self._limits.idle_seconds - self._clock()
        total = self._began_at + self._limits.total_seconds - self._clock()
        if total <= 0:
            text = f"it took longer than {self._limits.total_seconds:g} seconds and was ended"
            return self._stop(Outcome(failure=Failure("timed_out", text)))
        if idle <= 0:
            text = f"it gave no output for {self._limits.idle_seconds:g} seconds and was ended"
            return self._stop(Outcome(failure=Failure("timed_out", text)))
        wait = min(idle, total) + 0.01
        self._limits_watched = asyncio.get_running_loop().call_later(wait, self._watch_limits)

    def _forget_limits(self) -> None:
        if self._limits_watched is not None:
            self._limits_watched.cancel()

    def _stop(self, outcome: Outcome, *, orderly: bool = False) -> None:
        if self._ended is not None:
            return
        self._ended = outcome
        self._stopped.set_result(None)
        if self._provider_task is None:
            return
        if orderly:
            self._interrupting = asyncio.create_task(self._interrupt(self._provider_task))
        else:
            self._provider_task.cancel()

    async def _interrupt(self, provider_task: asyncio.Task[Answer]) -> None:
        """Let the provider end its turn itself; cancel it if that takes too long."""
        assert self._provider is not None
        self.questions.close()
        try:
            with no_exit():
                async with asyncio.timeout(INTERRUPT_SECONDS):
                    await self._provider.interrupt()
                    await asyncio.wait([provider_task])
        except TimeoutError:
            log.info("r%d took too long to end itself.", self.turn.run, extra={"action": "run"})
        except Exception:  # a provider may raise anything; it is cancelled then
            log.exception("r%d could not be interrupted.", self.turn.run, extra={"action": "run"})
        finally:
            provider_task.cancel()

    # --- the outcome -----------------------------------------------------------------

    def _outcome(self, provider_task: asyncio.Task[Answer]) -> Outcome:
        if self._ended is not None:
            return self._ended
        if provider_task.cancelled():
            return Outcome(
                failure=Failure("provider_failed", "the provider stopped without an answer or an error")
            )
        error = provider_task.exception()
        if error is None:
            return run_outcome.of_answer(provider_task.result(), self._limits.text_bytes, list(self._notes))
        return run_outcome.of_error(error, self.turn.run)


class _Run:
    """The run as its provider sees it (LiveRun): nothing but what the contract names."""

    def __init__(self, execution: Execution, mark: str) -> None:
        self._execution = execution
        self._mark = mark

    def progress(self, part: Progress) -> None:
        self._execution.report(part)

    async def started(self, pid: int) -> None:
        await self._execution.started(self._mark, pid)

    async def session(self, session: str) -> None:
        self._need(SESSION)
        await self._execution.session(session)

    async def ask(self, question: Question) -> Choice:
        self._need(ASK)
        return await self._execution.questions.ask(question)

    def _need(self, capability: str) -> None:
        if not self._execution.can(capability):
            raise TypeError(f"the provider does not declare the capability {capability}")
