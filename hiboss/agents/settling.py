"""Write the outcome of a run: which settlement of the store follows from how its provider ended."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..core import backoff
from ..core.contracts.failures import Failure
from ..core.contracts.provider import Usage
from ..core.envelope import Accepted
from ..store import lane_failures, run_settlement
from ..store.group_commit import Tx
from ..store.run_start import Turn
from .run_outcome import Outcome
from .turn_starts import TurnStart

log = logging.getLogger(__name__)


class Written(NamedTuple):
    """What follows the COMMIT of an outcome."""

    sent: Sequence[Accepted] = ()
    wake_at: int | None = None  # when its envelopes, or its lane, are to be tried again


class Reported(NamedTuple):
    """What a provider reported during a turn that is stored with its outcome."""

    usage: Usage | None = None
    model: str | None = None


def attempts(
    turn: Turn, outcome: Outcome, following: TurnStart | None
) -> Iterator[tuple[Outcome, TurnStart | None]]:
    """Yield how a run is settled, and what is started with it: the next one if a defect prevents the first.

    First as it ended, then as failed. Then so that it is not repeated at once, which could go on for ever:
    the lane of an agent waits, and a task in the background is given up.
    """
    if following is not None:
        yield outcome, following
    yield outcome, None
    failure = Failure("broke_off", "hiboss failed to settle it; its log shows why")
    yield Outcome(failure=failure), None
    if turn.kind == "background":
        yield Outcome(failure=failure, ended="interrupted", gives_up=True), None
    else:
        yield Outcome(failure=failure, of_lane=True), None


def log_end(turn: Turn, outcome: Outcome) -> None:
    """Log why a run has no answer."""
    if outcome.failure is not None:
        how, why = outcome.ended or "failed", outcome.failure.text
        log.warning("r%d of %s %s: %s", turn.run, turn.name, how, why, extra={"action": "run"})


def note_reports(tx: Tx, turn: Turn, reported: Reported, *, has_answer: bool) -> None:
    """Store the usage and the model of a run, however it ends."""
    if reported.model is not None:
        run_settlement.note_model(tx, turn, reported.model)
    if reported.usage is not None:
        run_settlement.note_usage(tx, turn, reported.usage, has_answer=has_answer)


def write(tx: Tx, turn: Turn, outcome: Outcome, now: int) -> Written:
    """Settle a run as it ended. The writer may call this again."""
    if outcome.answer is not None:
        return Written(run_settlement.complete(tx, turn, outcome.answer, now))
    assert outcome.failure is not None
    if outcome.ended is not None:
        why, gives_up = outcome.failure.text, outcome.gives_up
        run_settlement.cancel(tx, turn, outcome.ended, why, now, gives_up=gives_up)
        return Written()
    if outcome.of_lane and turn.kind == "turn":
        failing = lane_failures.failing_seconds(tx, turn.lane, now)
        delay, told = backoff.next_wait(failing, outcome.retry_after)
        wake_at = now + int(delay * 1000)
        run_settlement.wait(tx, turn, outcome.failure, wake_at, now, told=told)
        return Written(wake_at=wake_at)
    if outcome.gives_up:
        run_settlement.give_up(tx, turn, outcome.failure, now)
        return Written()
    return Written(wake_at=run_settlement.fail(tx, turn, outcome.failure, backoff.delays_ms(), now))
