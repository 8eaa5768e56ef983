"""One run: whatever a provider reports, the run ends with an outcome that can be stored."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hiboss.agents.live_output import CHARACTERS, PARTS, LiveOutput
from hiboss.agents.run_execution import Execution, Limits
from hiboss.agents.run_outcome import Outcome
from hiboss.core.contracts.failures import LaneError, TurnError
from hiboss.core.contracts.provider import (
    Answer,
    LiveRun,
    Progress,
    Provider,
    Reminder,
    TurnInput,
    Usage,
)
from hiboss.store.run_start import Turn
from tests.agents.provider_rigs import no_reports

NONSENSE = [2**70, -1, "many", 1.5, True, float("nan"), float("inf"), [3]]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Without logs: pytest cannot show some of these texts, and the others are long."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


class Reporting(Provider):
    """A provider that reports what the test gives it."""

    def __init__(self, progress: list[Progress], answer: Any) -> None:
        self._progress = progress
        self._answer = answer

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Any:
        for part in self._progress:
            run.progress(part)
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


def run(progress: list[Progress], answer: Any, *, is_made: bool = True) -> tuple[Outcome, Execution]:
    async def story() -> tuple[Outcome, Execution]:
        async def prepare() -> tuple[TurnInput, Callable[[], Provider]]:
            if not is_made:
                raise answer
            turn = cast(TurnInput, SimpleNamespace(delivery="mark", session=None))
            return turn, lambda: Reporting(progress, answer)

        limits = Limits(idle_seconds=30, total_seconds=30, text_bytes=1000)
        execution = Execution(
            cast(Turn, SimpleNamespace(run=1)),
            limits,
            prepare=prepare,
            reports=no_reports(),
        )
        return await execution.run(), execution

    return asyncio.run(story())


@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_usage_that_is_no_amount_is_left_out_and_the_answer_counts(value: Any) -> None:
    outcome, execution = run(
        [Progress("usage", usage=Usage(value, 7, value))], Answer(text="hello", tokens_in=value, tokens_out=7)
    )
    assert outcome.failure is None and outcome.answer is not None
    assert (outcome.answer.text, outcome.answer.tokens_in, outcome.answer.tokens_out) == ("hello", None, 7)
    assert "left out" in (outcome.answer.note or "")
    assert execution.usage is not None and (execution.usage.tokens_in, execution.usage.tokens_out) == (
        None,
        7,
    )
    json.dumps(execution.usage, allow_nan=False)


def test_usage_that_makes_sense_is_kept_as_it_is() -> None:
    outcome, execution = run(
        [Progress("usage", usage=Usage(1, 2, 0.5))], Answer(text="x", tokens_in=1, cost=2)
    )
    assert execution.usage == Usage(1, 2, 0.5)
    assert outcome.answer == Answer(text="x", tokens_in=1, cost=2)


@pytest.mark.parametrize(
    "answer", [None, "hello", Answer(text=cast(str, None)), Answer(text=cast(str, b"x"))]
)
def test_what_is_no_answer_is_a_failure_of_the_provider(answer: Any) -> None:
    outcome, _ = run([], answer)
    assert outcome.answer is None and outcome.failure is not None
    assert outcome.failure.kind == "provider_failed"


@pytest.mark.parametrize("kind", ["delta", "tool"])
def test_half_a_character_in_live_output_is_replaced(kind: str) -> None:
    _, execution = run([Progress(kind, "grep \ud83d for it")], Answer(text="x"))
    [part] = execution.live_output.after(0)[0]
    assert part.text == "grep \ufffd for it"
    part.text.encode()


# --- brothers: everything else a provider gives ----------------------------------------


@pytest.mark.parametrize(
    "later",
    [
        None,
        [Reminder("x", 5)],
        (5,),
        (("x", 5),),
        (Reminder(cast(str, 5), 5),),
        (Reminder("x", cast(int, "soon")),),
        (Reminder("x", cast(int, float("nan"))),),
        (Reminder("x", -1),),
        (Reminder("x", 2**70),),
        (Reminder("x", 2**52),),  # after the year 9999, which no date can show
    ],
    ids=repr,
)
def test_reminders_that_are_none_are_a_failure_of_the_provider(later: Any) -> None:
    outcome, _ = run([], Answer(text="hello", later=later))
    assert outcome.answer is None and outcome.failure is not None
    assert outcome.failure.kind == "provider_failed"


@pytest.mark.parametrize(
    "note", [5, b"x", "half \ud83d", "nul \x00", "long" * 25_000_000], ids=lambda one: repr(one)[:20]
)
def test_a_note_of_any_kind_can_be_stored(note: Any) -> None:
    outcome, _ = run([], Answer(text="hello", note=note))
    assert outcome.answer is not None and isinstance(outcome.answer.note, str)
    assert storable(outcome.answer.note)


TEXTS = [5, None, b"x", "half \ud83d", "nul \x00", "long" * 25_000_000]


@pytest.mark.parametrize("kind", [TurnError, LaneError, RuntimeError])
@pytest.mark.parametrize("text", TEXTS, ids=lambda one: repr(one)[:20])
def test_an_error_with_a_text_of_any_kind_can_be_stored(kind: type[Exception], text: Any) -> None:
    outcome, _ = run([], kind(text) if kind is RuntimeError else kind(text, text))
    assert outcome.failure is not None and outcome.of_lane is (kind is LaneError)
    assert storable(outcome.failure.kind) and storable(outcome.failure.text)


@pytest.mark.parametrize(
    "value",
    ["many", "soon", True, [3], float("nan"), float("inf"), 10**400],
    ids=lambda one: repr(one)[:20],
)
def test_a_time_to_wait_that_is_no_amount_is_left_out(value: Any) -> None:
    outcome, _ = run([], LaneError("busy", "later", value))
    assert outcome.of_lane and outcome.retry_after is None


@pytest.mark.parametrize(
    "error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()], ids=repr
)
@pytest.mark.parametrize("is_made", [True, False])
def test_a_provider_that_ends_its_program_ends_its_turn_only(error: BaseException, is_made: bool) -> None:
    outcome, _ = run([], error, is_made=is_made)
    assert outcome.failure is not None and outcome.failure.kind == "provider_failed"


def storable(text: str) -> bool:
    text.encode()
    return "\x00" not in text and len(text) <= 5_000


def test_of_live_output_only_so_much_is_kept() -> None:
    told: list[int] = []
    kept = LiveOutput(lambda part, position: told.append(position))
    kept.add(Progress("delta", "a" * 3 * CHARACTERS))
    kept.add(Progress("delta", "b"))
    parts, position = kept.after(0)
    assert ([part.text for part in parts], position) == (["b"], 2)
    for number in range(PARTS + 1):
        kept.add(Progress("delta", f"{number}"))
    parts, position = kept.after(0)
    assert (len(parts) <= PARTS, parts[-1].text, position) == (True, f"{PARTS}", PARTS + 3)
    assert kept.after(position) == ([], position)
