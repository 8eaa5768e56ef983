"""How a run ended: the answer or the error of its provider, checked so that it can be stored."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..core import clock
from ..core.backoff import named_seconds
from ..core.contracts.failures import Failure, LaneError, LeftOpen, SessionEnded, TurnError
from ..core.contracts.provider import Answer, Reminder, Usage, storable_text
from ..core.envelope import measure
from ..core.errors import HibossError
from ..core.quoting import storable

log = logging.getLogger(__name__)
NOTE_CHARACTERS = 4_000
LONGEST_REMINDER_MS = clock.DEFERRAL_YEARS * 365 * 24 * 3_600_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended: with an answer, with a failure, or because somebody ended it."""

    answer: Answer | None = None
    failure: Failure | None = None
    of_lane: bool = False  # every turn of this agent would fail, not only this one
    retry_after: float | None = None
    ended: str | None = None  # cancelled, interrupted
    left_open: bool = False  # an open session goes on with it: nothing is settled
    gives_up: bool = False  # its envelopes fail at once; else they are due again


def of_error(error: BaseException, run: int) -> Outcome:
    """Return how a run ended whose provider raised this."""
    if isinstance(error, TurnError):
        failure = Failure.reported(error.kind, error.text)
        return Outcome(failure=failure, gives_up=not error.repeat)
    if isinstance(error, LaneError):
        failure, retry_after = Failure.reported(error.kind, error.text), named_seconds(error.retry_after)
        return Outcome(failure=failure, of_lane=True, retry_after=retry_after)
    if isinstance(error, SessionEnded):
        return Outcome(ended="interrupted", failure=Failure("session_ended", str(error)))
    if isinstance(error, LeftOpen):
        return Outcome(left_open=True)
    if isinstance(error, HibossError):  # its turn could not be read, or its pid not be stored
        return Outcome(failure=Failure(error.code, error.message), of_lane=True)
    log.error("r%d: the provider failed.", run, exc_info=error, extra={"action": "run"})
    text = f"the provider failed: {type(error).__name__}: {error}"
    return Outcome(failure=Failure.reported("provider_failed", text))


def of_answer(answer: Answer, text_bytes: int, notes_before: Sequence[str] = ()) -> Outcome:
    """Return the answer, or a failure when it cannot be stored.

    Nonsense as usage is left out, characters that cannot be stored are replaced, both with a note.
    """
    if wrong := _mistake(answer):
        return Outcome(failure=Failure("provider_failed", wrong))
    text = storable_text(answer.text)
    later = tuple(one._replace(text=storable_text(one.text)) for one in answer.later)
    # U+FFFD is what a provider has put there itself when it decoded bytes that are no UTF-8.
    replaced = text != answer.text or later != answer.later or "\ufffd" in text
    answer = replace(answer, text=text, later=later)
    try:
        measure("its answer", answer.text, text_bytes)
        for one in answer.later:
            measure("its reminder", one.text, text_bytes)
    except HibossError as error:
        return Outcome(failure=Failure(error.code, error.message))
    reported = Usage(answer.tokens_in, answer.tokens_out, answer.cost, answer.context)
    usage = valid_usage(reported)
    notes = [*notes_before, *([] if answer.note is None else [storable(answer.note, NOTE_CHARACTERS)])]
    if replaced:
        notes.append("some characters of its answer cannot be stored and were replaced")
    if usage != reported:
        notes.append("some of its usage was not a number and was left out")
    numbers = {name: value for name, value in usage._asdict().items() if name != "exact"}
    return Outcome(answer=replace(answer, note="; ".join(notes) or None, **numbers))


def _mistake(answer: object) -> str:
    """Return what is wrong with what a provider returned, for its author; or an empty text."""
    if not isinstance(answer, Answer):
        what = "None" if answer is None else f"a {type(answer).__name__}"
        return f"the provider returned {what}; take_turn must return Answer(text=…), or Answer() for silence"
    if not isinstance(answer.text, str):
        return f"the provider returned an Answer whose text is a {type(answer.text).__name__}, not a str"
    if not isinstance(answer.later, tuple) or not all(_is_reminder(one) for one in answer.later):
        return "the provider returned something else than a tuple of Reminder(text, deliver_at) as later"
    return ""


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
        usage.context if _is_amount(usage.context, int) else None,
        usage.exact,
    )


def _is_amount(value: object, *types: type) -> bool:
    # Above 2**53 a float is not exact, and a sum of budgets would overflow; NaN compares false.
    return isinstance(value, types) and not isinstance(value, bool) and 0 <= value < 2**53  # type: ignore[operator]
