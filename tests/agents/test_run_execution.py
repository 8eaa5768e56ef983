"""One run: whatever a provider reports, it ends with an outcome that can be stored; and its time limits."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hiboss.agents import run_execution
from hiboss.agents.live_output import CHARACTERS, PARTS, LiveOutput
from hiboss.agents.questions import AskStore
from hiboss.agents.run_execution import Execution, Limits
from hiboss.agents.run_outcome import Outcome
from hiboss.core.contracts.failures import LaneError, TurnError
from hiboss.core.contracts.provider import (
    ASK,
    Answer,
    LiveRun,
    Progress,
    Provider,
    Question,
    Reminder,
    TurnInput,
    Usage,
)
from hiboss.core.option_models import Options
from hiboss.store.run_asks import Asked
from hiboss.store.run_start import Turn
from tests.agents.provider_rigs import CommandRig, no_reports
from tests.support.moved_clock import MovedClock
from tests.support.waits import happens

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


# --- time limits, on a clock that the test moves --------------------------------------


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
