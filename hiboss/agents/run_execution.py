"""One run: call its provider, watch its time limits, keep its live output, and return its outcome.

Nothing is written to the store here; the runner does that.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..core.contracts.failures import Failure, LaneError, TurnError
from ..core.contracts.provider import Answer, Progress, Provider, TurnInput, Usage
from ..core.envelope import measure
from ..core.errors import HibossError
from ..core.quoting import redact
from ..store.run_start import Turn
from . import process_control
from .live_output import LiveOutput

log = logging.getLogger(__name__)


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
        self.usage: Usage | None = None  # as reported so far
        self._limits = limits
        self._prepare = prepare
        self._store_pid = store_pid
        self._provider_task: asyncio.Task[Answer] | None = None
        self._ended: Outcome | None = None
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
            await asyncio.wait([self._provider_task])
        finally:
            limits_task.cancel()
            if not self._provider_task.done():  # this task was cancelled: the provider must end too
                self._provider_task.cancel()
                await asyncio.wait([self._provider_task])
        return self._outcome(self._provider_task)

    def end(self, status: str, why: str, *, gives_up: bool = False, by: int | None = None) -> bool:
        """End the run for a reason. Only the first reason counts; return whether this was the first."""
        first = self._ended is None
        failure = Failure(status, why)
        self._stop(Outcome(ended=status, failure=failure, gives_up=gives_up, ended_by=by))
        return first

    def pause(self) -> bool:
        """Stop its processes and the clock of its limits. Return whether it was running before."""
        pauses = not self.paused and self.pid is not None
        if pauses and self.pid is not None:
            self.paused, self._paused_at = True, self._clock()
            self._resumed.clear()
            process_control.stop_all(self.pid)
        return pauses

    def resume(self) -> bool:
        """Let its processes continue. Return whether it was paused."""
        resumes = self.paused and self.pid is not None
        if resumes and self.pid is not None:
            lasted = self._clock() - self._paused_at  # does not count for the limits
            self._began_at += lasted
            self._alive_at += lasted
            self.paused = False
            process_control.signal_all(process_control.members(self.pid), signal.SIGCONT)
            self._resumed.set()
        return resumes

    # --- while it runs ---------------------------------------------------------------

    async def _take_turn(self) -> Answer:
        turn, provider = await self._prepare()
        return await provider.take_turn(turn, self._on_progress, self._started)

    def _on_progress(self, part: Progress) -> None:
        self._alive_at = self._clock()
        if part.usage is not None:
            self.usage = valid_usage(part.usage)
        if part.kind in ("delta", "tool") and part.text:
            self.live_output.add(part._replace(text=_encodable(part.text)))

    async def _started(self, pid: int) -> None:
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
            return Outcome(failure=Failure(error.kind, redact(error.text)))
        if isinstance(error, LaneError):
            failure = Failure(error.kind, redact(error.text))
            return Outcome(failure=failure, of_lane=True, retry_after=error.retry_after)
        if isinstance(error, HibossError):  # its turn could not be read, or its pid not be stored
            return Outcome(failure=Failure(error.code, error.message), of_lane=True)
        log.error("r%d: the provider failed.", self.turn.run, exc_info=error, extra={"action": "run"})
        what = redact(f"{type(error).__name__}: {error}")
        return Outcome(failure=Failure("provider_failed", f"the provider failed: {what}"))

    def _checked(self, answer: Answer) -> Outcome:
        """Return the answer, or a failure when it cannot be stored. Nonsense as usage is left out."""
        if not isinstance(answer, Answer) or not isinstance(answer.text, str):
            return Outcome(
                failure=Failure("provider_failed", "the provider returned something else than an answer")
            )
        try:
            measure("its answer", answer.text, self._limits.text_bytes)
            for one in answer.later:
                measure("its reminder", one.text, self._limits.text_bytes)
        except HibossError as error:
            return Outcome(failure=Failure(error.code, error.message))
        reported = Usage(answer.tokens_in, answer.tokens_out, answer.cost)
        usage = valid_usage(reported)
        if usage != reported:
            note = "; ".join(
                filter(None, (answer.note, "some of its usage was not a number and was left out"))
            )
            answer = replace(answer, note=note, **usage._asdict())
        return Outcome(answer=answer)


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


def _encodable(text: str) -> str:
    """Return the text without halves of surrogate pairs, which no answer can be written with."""
    return text.encode("utf-8", "replace").decode()
