"""The time limits of a run, on a clock that the test moves: output is a sign of life, a question stops the clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hiboss.agents import run_execution
from hiboss.agents.questions import AskStore
from hiboss.agents.run_execution import Execution, Limits
from hiboss.agents.run_outcome import Outcome
from hiboss.core.contracts.failures import TurnError
from hiboss.core.contracts.provider import ASK, Answer, LiveRun, Provider, Question, TurnInput
from hiboss.core.option_models import Options
from hiboss.store.run_asks import Asked
from hiboss.store.run_start import Turn
from tests.agents.provider_rigs import CommandRig, no_reports
from tests.support.moved_clock import MovedClock
from tests.support.waits import happens

pytestmark = pytest.mark.usefixtures("quick")
IDLE, MOVE = 100.0, 60.0  # seconds: what really passes meanwhile does not matter
# Each comes when its file is there.
SIGNS = ["echo alive", "echo alive >&2", """echo '{"hiboss": "tool"}'""", "printf x"]


@asynccontextmanager
async def execution(
    provider: Provider, task: TurnInput, total: float, asks: AskStore | None = None
) -> AsyncIterator[tuple[Execution, asyncio.Task[Outcome]]]:
    """Let a provider take a turn with limits."""

    async def prepare() -> tuple[TurnInput, Any]:
        return task, lambda: provider

    async def stored(value: object) -> None:
        pass

    where = replace(no_reports(), store_pid=stored)
    run = Execution(
        cast(Turn, SimpleNamespace(run=1)),
        Limits(IDLE, total, 1000),
        prepare=prepare,
        reports=replace(where, asks=asks) if asks else where,
    )
    ends = asyncio.create_task(run.run())
    yield run, ends
    run.end("cancelled", "the test is over")
    await asyncio.wait([ends])


@pytest.mark.parametrize(
    ("total", "last", "error"),
    [
        (1000, IDLE, "it gave no output for 100 seconds and was ended"),
        (280, MOVE, "it took longer than 280 seconds and was ended"),
    ],
)
async def test_any_output_is_a_sign_of_life_until_the_whole_run_takes_too_long(
    tmp_path: Path, total: float, last: float, error: str
) -> None:
    clock, rig = MovedClock(), CommandRig(tmp_path)
    steps = [f"while [ ! -e {n} ]; do sleep 0.01; done; {sign}\n" for n, sign in enumerate(SIGNS)]
    rig.program(f"{''.join(steps)}exec sleep 1000\n")
    async with execution(rig.make(), rig.task(), total) as (run, ends):
        await happens(rig.turns)
        for number in range(len(SIGNS)):
            await clock.move(MOVE)
            assert not ends.done()
            (tmp_path / str(number)).touch()
            await happens(lambda: (run.silent_seconds or 0.0) < MOVE)
        await clock.move(last)
        outcome = await ends
    assert outcome.failure is not None
    assert (outcome.failure.kind, outcome.failure.text) == ("timed_out", error)


async def test_the_limits_stand_still_while_a_run_is_paused_and_hold_again_after_it(tmp_path: Path) -> None:
    clock, rig = MovedClock(), CommandRig(tmp_path)
    rig.hangs()
    async with execution(rig.make(), rig.task(), 1000) as (run, ends):
        await happens(rig.turns)
        assert await run.pause()
        await clock.move(3 * IDLE)
        assert not ends.done()
        assert await run.resume() and not await run.resume()
        await clock.move(IDLE)
        outcome = await ends
    assert outcome.failure is not None and outcome.failure.kind == "timed_out"


class Asking(Provider):
    """It asks, and waits for the answer."""

    name = "asking"
    capabilities = frozenset({ASK})

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        return Answer(text=(await run.ask(Question("May I?"))).option)


async def test_the_limits_stand_still_while_a_run_waits_for_a_person(tmp_path: Path) -> None:
    async def add(question: Question, until: int) -> Asked:
        return Asked(ask=1)

    async def none(ask: int) -> None:
        return None

    clock, asks = MovedClock(), AskStore(add=add, reply=none, withdraw=none)
    async with execution(Asking(Options()), CommandRig(tmp_path).task(), 200, asks) as (run, ends):
        await happens(lambda: run.silent_seconds is None)
        await clock.move(300)
        assert not ends.done()


# --- a provider that ignores its cancellation -------------------------------------------


class Deaf(Provider):
    """Ignores every cancellation until the test lets it go; then it starts a program."""

    def __init__(self) -> None:
        self.asked_to_end = 0
        self.let_go = self.began = False
        self.refusal: Exception | None = None

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        self.began = True
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


@pytest.mark.parametrize("how", ["cancelled", "timed_out"])
async def test_a_run_ends_although_its_provider_ignores_that_and_the_provider_starts_nothing_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(run_execution, "END_SECONDS", 0.1)
    clock, provider = MovedClock(), Deaf()
    async with execution(provider, CommandRig(tmp_path).task(), 1000) as (run, ends):
        await happens(lambda: provider.began)
        if how == "cancelled":
            run.end("cancelled", "enough")
        else:
            await clock.move(IDLE)
        outcome = await ends
        assert not provider.let_go and outcome.answer is None
        assert outcome.failure is not None and outcome.failure.kind == how
        assert provider.asked_to_end == 1  # once: a second time would interrupt the ending of a program
        provider.let_go = True
        await happens(lambda: provider.refusal)
