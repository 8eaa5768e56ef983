"""One run: call its provider, watch its time limits, keep its live output, and return its outcome.

Nothing is written to the store here; the runner does that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from ..core import bounded_calls, clock
from ..core.backoff import named_seconds
from ..core.contracts.failures import Failure, LaneError, TurnError
from ..core.contracts.provider import Answer, Progress, Provider, Reminder, TurnInput, Usage
from ..core.envelope import measure
from ..core.errors import HibossError
from ..core.plugins import no_exit
from ..core.quoting import encodable, storable
from ..store.run_start import Turn
from . import process_control
from .live_output import LiveOutput

log = logging.getLogger(__name__)
END_SECONDS = 20.0  # for a provider that was told to end; it may have to end a program first
NOTE_CHARACTERS = 4_000
LONGEST_REMINDER_MS = clock.DEFERRAL_YEARS * 365 * 24 * 3_600_000


class Limits(NamedTuple):
    """The limits of one run."""

    idle_seconds: float  # without any output
    total_seconds: float
    text_bytes: int  # of the answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended: with an answer, with a failure, or because somebody ended it."""

    answer: Answer | None = None
    failure: Failure | None = None
    of_lane: bool = False  # every turn of this agent would fail, not only this one
    retry_after: float | None = None
    ended: str | None = None  # cancelled, interrupted
    gives_up: bool = False  # its envelopes fail; else they are due again
    ended_by: int | None = None  # the address id of who ended it: no notice is sent there


class Execution:
    """The execution of one run. `run` returns its outcome; it raises only for a defect of the daemon."""

    def __init__(
        self,
        turn: Turn,
        limits: Limits,
        *,
        prepare: Callable[[], Awaitable[tuple[TurnInput, Provider]]],
        store_pid: Callable[[int], Awaitable[None]],
        on_output: Callable[[], None],
    ) -> None:
        self.turn = turn
        self.live_output = LiveOutput(on_output)
        self.pid: int | None = None
        self.paused = False
        self.control = asyncio.Lock()  # one pause or resume at a time
        self.usage: Usage | None = None  # as reported so far
        self._limits = limits
        self._prepare = prepare
        self._store_pid = store_pid
        self._provider_task: asyncio.Task[Answer] | None = None
        self._ended: Outcome | None = None
        self._stopped = asyncio.Event()  # it was told to end
        self._over = False  # its outcome is decided and is being written
        self._processes = process_control.RunProcesses()
        loop = asyncio.get_running_loop()
        self._clock = loop.time
        self._began_at = self._alive_at = self._paused_at = loop.time()
        self._resumed = asyncio.Event()
        self._resumed.set()

    async def run(self) -> Outcome:
        self._provider_task = asyncio.create_task(self._take_turn())
        limits_task = asyncio.create_task(self._watch_limits())
        if self._ended is not None:
            self._provider_task.cancel()
        try:
            await self._until_ended(self._provider_task)
        finally:
            limits_task.cancel()
            self._over = True
            if self._ended is None and not self._provider_task.done():  # this task was cancelled
                await bounded_calls.end(
                    [self._provider_task], f"The provider of r{self.turn.run}", END_SECONDS
                )
        try:
            return self._outcome(self._provider_task)
        except Exception as error:  # a provider may return and raise anything; its run must end
            log.exception("r%d has no outcome.", self.turn.run, extra={"action": "run"})
            what = f"what the provider returned cannot be used: {type(error).__name__}"
            return Outcome(failure=Failure("provider_failed", what))

    @property
    def ending(self) -> str | None:
        """Why it is about to end: cancelled, interrupted, or over; None while it goes on."""
        if self._ended is not None and self._ended.ended is not None:
            return self._ended.ended
        return "over" if self._over or self._ended is not None else None

    def end(self, status: str, why: str, *, gives_up: bool = False, by: int | None = None) -> bool:
        """End the run for a reason. Return False, and do nothing, if it is about to end already."""
        if self.ending is not None:
            return False
        failure = Failure(status, why)
        self._stop(Outcome(ended=status, failure=failure, gives_up=gives_up, ended_by=by))
        return True

    async def pause(self) -> bool:
        """Stop its processes and the clock of its limits. Return whether it was running before."""
        if self.paused or self.pid is None or self.ending is not None:
            return False
        self.paused, self._paused_at = True, self._clock()
        self._resumed.clear()
        await asyncio.to_thread(process_control.stop, self._processes)
        if self.ending is not None:  # what ends it has begun meanwhile, and must not meet a stopped process
            await asyncio.to_thread(process_control.resume, self._processes)
        return True

    async def resume(self) -> bool:
        """Let its processes continue. Return whether it was paused."""
        if not self.paused or self.ending is not None:
            return False
        lasted = self._clock() - self._paused_at  # does not count for the limits
        self._began_at += lasted
        self._alive_at += lasted
        self.paused = False
        await asyncio.to_thread(process_control.resume, self._processes)
        self._resumed.set()
        return True

    # --- while it runs ---------------------------------------------------------------

    async def _until_ended(self, provider_task: asyncio.Task[Answer]) -> None:
        """Wait for the provider. When it was told to end and does not, it is left behind."""
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait([provider_task, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
        # It is not cancelled again: that would interrupt it while it ends its program.
        await bounded_calls.wait_or_leave([provider_task], f"The provider of r{self.turn.run}", END_SECONDS)

    async def _take_turn(self) -> Answer:
        with no_exit():
            turn, provider = await self._prepare()
            return await provider.take_turn(turn, self._on_progress, partial(self._started, turn.delivery))

    def _on_progress(self, part: Progress) -> None:
        self._alive_at = self._clock()
        if part.usage is not None:
            self.usage = valid_usage(part.usage)
        if part.kind in ("delta", "tool") and part.text:
            self.live_output.add(part._replace(text=encodable(part.text)))

    async def _started(self, mark: str, pid: int) -> None:
        if self._over:  # the provider was left behind: it must end its program
            raise TurnError("ended", "the run has ended")
        if not isinstance(pid, int) or pid <= 1:
            raise ValueError(f"{pid!r} is not the pid of a program")
        process_control.mark_process(pid, mark)
        self._processes = process_control.RunProcesses(frozenset({pid}), frozenset({mark}))
        self.pid = pid
        await self._store_pid(pid)

    async def _watch_limits(self) -> None:
        """End the run when it takes too long or gives no output for too long; not while it is paused."""
        while True:
            await self._resumed.wait()
            idle = self._alive_at + self._limits.idle_seconds - self._clock()
            total = self._began_at + self._limits.total_seconds - self._clock()
            if total <= 0:
                text = f"it took longer than {self._limits.total_seconds:g} seconds and was ended"
                return self._stop(Outcome(failure=Failure("timed_out", text)))
            if idle <= 0:
                text = f"it gave no output for {self._limits.idle_seconds:g} seconds and was ended"
                return self._stop(Outcome(failure=Failure("timed_out", text)))
            await asyncio.sleep(min(idle, total) + 0.01)

    def _stop(self, outcome: Outcome) -> None:
        if self._ended is None:
            self._ended = outcome
            self._stopped.set()
            if self._provider_task is not None:
                self._provider_task.cancel()

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
            return self._checked(provider_task.result())
        if isinstance(error, TurnError):
            return Outcome(failure=Failure.reported(error.kind, error.text))
        if isinstance(error, LaneError):
            failure, retry_after = Failure.reported(error.kind, error.text), named_seconds(error.retry_after)
            return Outcome(failure=failure, of_lane=True, retry_after=retry_after)
        if isinstance(error, HibossError):  # its turn could not be read, or its pid not be stored
            return Outcome(failure=Failure(error.code, error.message), of_lane=True)
        log.error("r%d: the provider failed.", self.turn.run, exc_info=error, extra={"action": "run"})
        return Outcome(
            failure=Failure.reported(
                "provider_failed", f"the provider failed: {type(error).__name__}: {error}"
            )
        )

    def _checked(self, answer: Answer) -> Outcome:
        """Return the answer, or a failure when it cannot be stored. Nonsense as usage is left out."""
        if not isinstance(answer, Answer) or not isinstance(answer.text, str):
            return Outcome(
                failure=Failure("provider_failed", "the provider returned something else than an answer")
            )
        if not isinstance(answer.later, tuple) or not all(_is_reminder(one) for one in answer.later):
            return Outcome(
                failure=Failure("provider_failed", "the provider returned something else than reminders")
            )
        try:
            measure("its answer", answer.text, self._limits.text_bytes)
            for one in answer.later:
                measure("its reminder", one.text, self._limits.text_bytes)
        except HibossError as error:
            return Outcome(failure=Failure(error.code, error.message))
        reported = Usage(answer.tokens_in, answer.tokens_out, answer.cost)
        usage = valid_usage(reported)
        notes = [] if answer.note is None else [storable(answer.note, NOTE_CHARACTERS)]
        if usage != reported:
            notes.append("some of its usage was not a number and was left out")
        return Outcome(answer=replace(answer, note="; ".join(notes) or None, **usage._asdict()))


def _is_reminder(given: object) -> bool:
    return (
        isinstance(given, Reminder)
        and isinstance(given.text, str)
        and _is_amount(given.deliver_at, int)
        and given.deliver_at <= clock.now() + LONGEST_REMINDER_MS
    )


def valid_usage(usage: Usage) -> Usage:
    """Return what can be stored of a provider's numbers; None stands for what cannot."""
    return Usage(
        usage.tokens_in if _is_amount(usage.tokens_in, int) else None,
        usage.tokens_out if _is_amount(usage.tokens_out, int) else None,
        float(usage.cost) if usage.cost is not None and _is_amount(usage.cost, int, float) else None,
    )


def _is_amount(value: object, *types: type) -> bool:
    # Above 2**53 a float is not exact, and a sum of budgets would overflow; NaN compares false.
    return isinstance(value, types) and not isinstance(value, bool) and 0 <= value < 2**53  # type: ignore[operator]
