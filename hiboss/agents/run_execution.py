"""One run in hand: its provider thinks, its limits are watched, and what it says is heard live."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..core.contracts.failures import Failure, LaneError, TurnError
from ..core.contracts.provider import Answer, Progress, Provider, TurnInput, Usage
from ..core.envelope import measure
from ..core.errors import HibossError
from ..core.quoting import redact
from ..store.run_start import Turn
from . import process_search
from .live_output import LiveOutput

log = logging.getLogger(__name__)


class Limits(NamedTuple):
    idle_seconds: float  # without a sign of life
    total_seconds: float
    text_bytes: int  # of an answer


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended: with a thought, with trouble, or because somebody ended it."""

    answer: Answer | None = None
    failure: Failure | None = None
    of_lane: bool = False  # no turn would have gone well
    retry_after: float | None = None
    ended: str | None = None  # cancelled, interrupted
    gives_up: bool = False


class Execution:
    """Belongs to one run; `go` returns its outcome and never raises but when the daemon is defect."""

    def __init__(
        self,
        turn: Turn,
        limits: Limits,
        *,
        prepare: Callable[[], Awaitable[tuple[TurnInput, Provider]]],
        note: Callable[[int], Awaitable[None]],
        ring: Callable[[], None],
    ) -> None:
        self.turn = turn
        self.live_output = LiveOutput(ring)
        self.pid: int | None = None
        self.paused = False
        self.usage: Usage | None = None  # as far as it is known
        self._limits = limits
        self._prepare = prepare
        self._note = note
        self._thinking: asyncio.Task[Answer] | None = None
        self._ended: Outcome | None = None
        loop = asyncio.get_running_loop()
        self._clock = loop.time
        self._begun = self._alive_at = self._paused_at = loop.time()
        self._resumed = asyncio.Event()
        self._resumed.set()

    async def go(self) -> Outcome:
        self._thinking = asyncio.create_task(self._take_turn())
        watching = asyncio.create_task(self._watch())
        if self._ended is not None:
            self._thinking.cancel()
        try:
            await asyncio.wait([self._thinking])
        finally:
            watching.cancel()
            if not self._thinking.done():  # we are ourselves cancelled: nothing may go on without us
                self._thinking.cancel()
                await asyncio.wait([self._thinking])
        return self._outcome(self._thinking)

    def end(self, status: str, why: str, *, gives_up: bool = False) -> bool:
        """Somebody ends it; the first reason counts. Whether this was the first."""
        first = self._ended is None
        self._stop(Outcome(ended=status, failure=Failure(status, why), gives_up=gives_up))
        return first

    def pause(self) -> bool:
        """Stop its process where it is, and with it the clock of its limits. Whether it went on before."""
        pauses = not self.paused and self.pid is not None
        if pauses and self.pid is not None:
            self.paused, self._paused_at = True, self._clock()
            self._resumed.clear()
            process_search.halt(self.pid)
        return pauses

    def resume(self) -> bool:
        resumes = self.paused and self.pid is not None
        if resumes and self.pid is not None:
            lasted = self._clock() - self._paused_at
            self._begun += lasted
            self._alive_at += lasted
            self.paused = False
            process_search.signal_all(process_search.members(self.pid), signal.SIGCONT)
            self._resumed.set()
        return resumes

    # --- while it thinks -------------------------------------------------------------

    async def _take_turn(self) -> Answer:
        task, provider = await self._prepare()
        return await provider.take_turn(task, self._on_progress, self._started)

    def _on_progress(self, part: Progress) -> None:
        self._alive_at = self._clock()
        if part.usage is not None:
            self.usage = part.usage
        if part.kind in ("delta", "tool") and part.text:
            self.live_output.add(part)

    async def _started(self, pid: int) -> None:
        self.pid = pid
        await self._note(pid)

    async def _watch(self) -> None:
        """End it when it has lasted too long, or given no sign of life; not while it is paused."""
        while True:
            await self._resumed.wait()
            idle = self._alive_at + self._limits.idle_seconds - self._clock()
            total = self._begun + self._limits.total_seconds - self._clock()
            if total <= 0:
                text = f"it took longer than {self._limits.total_seconds:g} seconds and was ended"
                return self._stop(Outcome(failure=Failure("timed_out", text)))
            if idle <= 0:
                text = f"it gave no sign of life for {self._limits.idle_seconds:g} seconds and was ended"
                return self._stop(Outcome(failure=Failure("timed_out", text)))
            await asyncio.sleep(min(idle, total) + 0.01)

    def _stop(self, outcome: Outcome) -> None:
        if self._ended is None:
            self._ended = outcome
            if self._thinking is not None:
                self._thinking.cancel()

    # --- what came of it -------------------------------------------------------------

    def _outcome(self, with_provider: asyncio.Task[Answer]) -> Outcome:
        if self._ended is not None:
            return self._ended
        if with_provider.cancelled():
            return Outcome(failure=Failure("provider_failed", "the provider gave up without a word"))
        error = with_provider.exception()
        if error is None:
            return self._thought(with_provider.result())
        if isinstance(error, TurnError):
            return Outcome(failure=Failure(error.kind, redact(error.text)))
        if isinstance(error, LaneError):
            failure = Failure(error.kind, redact(error.text))
            return Outcome(failure=failure, of_lane=True, retry_after=error.retry_after)
        if isinstance(error, HibossError):  # its turn could not be read, or its pid not be noted
            return Outcome(failure=Failure(error.code, error.message), of_lane=True)
        log.error("r%d: the provider failed.", self.turn.run, exc_info=error, extra={"action": "run"})
        what = redact(f"{type(error).__name__}: {error}")
        return Outcome(failure=Failure("provider_failed", f"the provider failed: {what}"))

    def _thought(self, answer: Answer) -> Outcome:
        try:
            measure("its answer", answer.text, self._limits.text_bytes)
            for one in answer.later:
                measure("a reminder of it", one.text, self._limits.text_bytes)
        except HibossError as error:
            return Outcome(failure=Failure(error.code, error.message))
        return Outcome(answer=answer)
