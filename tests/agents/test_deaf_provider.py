"""A provider that ignores its cancellation: its run ends all the same, and so does the daemon."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hiboss.agents import run_execution
from hiboss.agents.run_execution import Execution, Limits
from hiboss.agents.run_outcome import Outcome
from hiboss.core.contracts.failures import TurnError
from hiboss.core.contracts.provider import Answer, LiveRun, Provider, TurnInput
from hiboss.store.run_start import Turn
from tests.agents.provider_rigs import no_reports


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(run_execution, "END_SECONDS", 0.1, raising=False)
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


class Deaf(Provider):
    """Ignores every cancellation until the test lets it go; then it starts a program."""

    def __init__(self) -> None:
        self.asked_to_end = 0
        self.let_go = False
        self.refusal: Exception | None = None

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        while not self.let_go:
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                self.asked_to_end += 1
        try:
            await run.started(4_000_000)
        except TurnError as error:
            self.refusal = error
        return Answer(text="too late")


def story(limits: Limits, act: Any) -> tuple[Outcome, Deaf]:
    async def run() -> tuple[Outcome, Deaf]:
        provider = Deaf()

        async def prepare() -> tuple[TurnInput, Callable[[], Provider]]:
            return cast(TurnInput, SimpleNamespace(delivery="mark", session=None)), lambda: provider

        turn = cast(Turn, SimpleNamespace(run=1))
        execution = Execution(turn, limits, prepare=prepare, reports=no_reports())
        task = asyncio.create_task(execution.run())
        await asyncio.sleep(0.02)
        act(execution)
        done, _ = await asyncio.wait([task], timeout=5)
        provider.let_go = True
        outcome = await task
        assert done, "the run waited for its provider"
        await asyncio.sleep(0.02)  # what it does when it was left behind
        return outcome, provider

    return asyncio.run(run())


def test_a_run_can_be_cancelled_although_its_provider_ignores_that() -> None:
    outcome, provider = story(Limits(30, 30, 1000), lambda one: one.end("cancelled", "enough"))
    assert (outcome.ended, outcome.answer) == ("cancelled", None)
    assert provider.asked_to_end == 1  # once: a second time would interrupt the ending of a program


def test_the_limits_of_a_run_hold_although_its_provider_ignores_them() -> None:
    outcome, _ = story(Limits(idle_seconds=0.05, total_seconds=30, text_bytes=1000), lambda one: None)
    assert outcome.failure is not None
    assert outcome.failure.kind == "timed_out"


def test_a_provider_that_was_left_behind_cannot_start_a_program_for_its_run() -> None:
    _, provider = story(Limits(30, 30, 1000), lambda one: one.end("cancelled", "enough"))
    assert isinstance(provider.refusal, TurnError)
