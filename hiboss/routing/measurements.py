"""Measurements: what a daemon counts while it works, because it is stored nowhere. Each start begins at 0.

Facts are counted after each COMMIT. Nearly all of them are arrivals, and every send comes through here, so
for those it does nothing but add a number. What the store knows is read when somebody asks (api/metrics.py).
Used on the event loop's thread only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Literal

from ..core import clock
from ..core.contracts.failures import AccountError, EnvelopeError
from ..core.events import (
    ControlSent,
    EnvelopeCancelled,
    EnvelopeForwarded,
    EnvelopesArrived,
    EnvelopeSettled,
    EnvelopeWaits,
    Fact,
    RunEnded,
)
from ..core.metrics import DELIVERY_SECONDS, RUN_SECONDS, WEBHOOK_SECONDS, Histogram

UNKNOWN = "unknown"  # a run that began before this start; the account of a binding that is gone
OTHER = "other"  # an outcome of a webhook that has no word
Direction = Literal["in", "out"]
WEBHOOK_OUTCOMES = ("accepted", "refused", "failed")
WEBHOOK = "webhook"  # the adapter


class Measurements:
    """Counts facts, and what doors and adapters report. A histogram for each value of its labels."""

    def __init__(self) -> None:
        self.arrived = 0  # envelopes
        self.retried = 0  # attempts to deliver that failed
        self.settled: Counter[str] = Counter(done=0, failed=0, cancelled=0)
        self.controls: Counter[tuple[str, str]] = Counter()  # event, outcome
        self.runs: Counter[tuple[str, str]] = Counter()  # provider, outcome
        self.requests: Counter[str] = Counter(socket=0)  # by door
        self.errors: Counter[tuple[str, str]] = Counter()  # door, code of the error
        self.run_seconds: defaultdict[str, Histogram] = _histograms(RUN_SECONDS)  # by provider
        self.delivery_seconds: defaultdict[str, Histogram] = _histograms(DELIVERY_SECONDS)  # by adapter
        self.webhook_seconds: defaultdict[tuple[str, str], Histogram] = _histograms(WEBHOOK_SECONDS)
        self._begun: dict[int, tuple[str, int]] = {}  # by run: its provider, and when it began
        self._rare: dict[type[Fact], Callable[[Any], None]] = {
            EnvelopeForwarded: self._forwarded,
            EnvelopeWaits: self._waits,
            EnvelopeSettled: self._settled,
            EnvelopeCancelled: self._cancelled,
            ControlSent: self._controlled,
            RunEnded: self._run_ended,
        }

    def count(self, facts: Sequence[Fact]) -> None:
        """Count the facts of a transaction."""
        for fact in facts:
            kind = type(fact)
            if kind is EnvelopesArrived:
                self.arrived += len(fact.numbers)  # type: ignore[union-attr] # it is one
            elif (note := self._rare.get(kind)) is not None:
                note(fact)

    # --- facts -----------------------------------------------------------------------

    def _forwarded(self, fact: EnvelopeForwarded) -> None:
        self.arrived += 1

    def _waits(self, fact: EnvelopeWaits) -> None:
        self.retried += 1

    def _settled(self, fact: EnvelopeSettled) -> None:
        self.settled[fact.status] += 1

    def _cancelled(self, fact: EnvelopeCancelled) -> None:
        self.settled["cancelled"] += 1

    def _controlled(self, fact: ControlSent) -> None:
        self.controls[fact.event, fact.outcome] += 1

    def _run_ended(self, fact: RunEnded) -> None:
        provider, begun = self._begun.pop(fact.run, (UNKNOWN, None))
        self.runs[provider, fact.status] += 1
        if begun is not None:
            self.run_seconds[provider].observe((clock.elapsed() - begun) / 1000)

    # --- reports ---------------------------------------------------------------------

    def run_begun(self, run: int, provider: str) -> None:
        """A run is under way. That it ended is a fact."""
        self._begun[run] = provider, clock.elapsed()

    def delivered(self, adapter: str, milliseconds: int) -> None:
        """An envelope was posted, so long after it arrived."""
        self.delivery_seconds[adapter].observe(milliseconds / 1000)

    def observe_webhook(self, direction: Direction, seconds: float, outcome: str) -> None:
        """A webhook came in or went out. `outcome`: one of WEBHOOK_OUTCOMES; any other word is `other`."""
        known = outcome if outcome in WEBHOOK_OUTCOMES else OTHER
        self.webhook_seconds[direction, known].observe(seconds)

    def measured_post(self, adapter: Any, post: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """Return a post of an adapter, measured if it goes to a webhook."""
        return self._measured_webhook(post) if adapter.type == WEBHOOK else post

    async def _measured_webhook(self, post: Coroutine[Any, Any, Any]) -> Any:
        begun, outcome = clock.elapsed(), "failed"
        try:
            posted = await post
            outcome = "accepted"
            return posted
        except (AccountError, EnvelopeError):  # the server has answered, and does not want it
            outcome = "refused"
            raise
        finally:
            self.observe_webhook("out", (clock.elapsed() - begun) / 1000, outcome)

    def refused(self, door: str, code: str) -> None:
        """A door answered a request with an error of this code."""
        self.errors[door, code] += 1


def _histograms(ends: Sequence[float]) -> defaultdict[Any, Histogram]:
    return defaultdict(partial(Histogram, ends))
