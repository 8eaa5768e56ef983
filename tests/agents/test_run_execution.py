"""One run: whatever a provider reports, the run ends with an outcome that can be stored."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest

from hiboss.agents.run_execution import Execution, Limits, Outcome
from hiboss.core.contracts.provider import Answer, OnProgress, OnStart, Progress, Provider, TurnInput, Usage
from hiboss.store.run_start import Turn

NONSENSE = [2**70, -1, "many", 1.5, True, float("nan"), float("inf"), [3]]


class Reporting:
    """A provider that reports what the test gives it."""

    def __init__(self, progress: list[Progress], answer: Any) -> None:
        self._progress = progress
        self._answer = answer

    async def take_turn(self, turn: TurnInput, on_progress: OnProgress, on_start: OnStart) -> Any:
        for part in self._progress:
            on_progress(part)
        return self._answer


def run(progress: list[Progress], answer: Any) -> tuple[Outcome, Execution]:
    async def story() -> tuple[Outcome, Execution]:
        async def prepare() -> tuple[TurnInput, Provider]:
            return cast(TurnInput, None), cast(Provider, Reporting(progress, answer))

        async def store_pid(pid: int) -> None:
            raise AssertionError("it has no process")

        limits = Limits(idle_seconds=30, total_seconds=30, text_bytes=1000)
        execution = Execution(
            cast(Turn, None), limits, prepare=prepare, store_pid=store_pid, on_output=lambda: None
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
    assert part.text == "grep ? for it"
    part.text.encode()
