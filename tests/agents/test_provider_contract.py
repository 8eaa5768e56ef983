"""The contract of providers (hiboss/core/contracts/provider.py), tested with every provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents import process_control
from hiboss.agents.providers.registry import BUILT_IN
from hiboss.core.contracts.failures import LaneError, Refused, TurnError
from hiboss.core.contracts.provider import Answer, Progress, TurnInput
from tests.agents.provider_rigs import FALLIBLE, RIGS, CommandRig, FallibleRig, Rig

SECONDS = 30.0


def _named(rig: type[Any]) -> str:
    return rig.__name__.removesuffix("Rig").lower()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_control, "STEP_SECONDS", 0.2)  # no program here needs time to end


@pytest.fixture(params=RIGS, ids=_named)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    made: Rig = request.param(tmp_path)
    return made


@pytest.fixture(params=FALLIBLE, ids=_named)
def fallible(request: pytest.FixtureRequest, tmp_path: Path) -> FallibleRig:
    made: FallibleRig = request.param(tmp_path)
    return made


class Turn:
    """One turn of a new provider, with its progress and the processes it started."""

    def __init__(self, rig: Rig, **facts: Any) -> None:
        self.heard: list[Progress] = []
        self.pids: list[int] = []
        self.task: TurnInput = rig.task(**facts)
        self.running = asyncio.create_task(rig.make().take_turn(self.task, self.heard.append, self._started))

    async def _started(self, pid: int) -> None:
        self.pids.append(pid)

    async def ends(self) -> Answer:
        async with asyncio.timeout(SECONDS):
            return await self.running

    @property
    def shown(self) -> str:
        return "".join(one.text for one in self.heard if one.kind == "delta")


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


def test_every_provider_of_ours_is_held_against_the_contract(tmp_path: Path) -> None:
    assert set(BUILT_IN.values()) == {type(rig(tmp_path).make()) for rig in RIGS}


# --- configure ---------------------------------------------------------------------------


def test_what_is_kept_of_the_options_is_json_and_names_nothing_else(rig: Rig) -> None:
    provider = rig.make()
    settings = provider.configure({**rig.good(), "other": "of nobody", "home": "/somewhere"})
    assert json.loads(json.dumps(settings)) == settings
    assert set(settings) == set(provider.options)
    assert provider.configure(settings) == settings


@pytest.mark.parametrize("kind", FALLIBLE, ids=_named)
def test_what_cannot_work_is_refused_with_a_reason(kind: type[FallibleRig], tmp_path: Path) -> None:
    rig = kind(tmp_path)
    provider = rig.make()
    for given in rig.bad():
        with pytest.raises(Refused) as caught:
            provider.configure(given)
        assert caught.value.why
        assert not [secret for secret in rig.secrets if secret in caught.value.why]


def test_what_is_missing_now_may_come_later(fallible: FallibleRig) -> None:
    """Neither `configure` nor the constructor checks whether the program or server exists."""
    fallible.is_away()
    assert fallible.make()


# --- a turn that succeeds ----------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["You said: well", "You said: two\nlines, ä€😀", "You said: " + "word " * 2000 + "x"]
)
def test_a_turn_has_an_answer_that_is_heard_while_it_is_made(rig: Rig, text: str) -> None:
    async def story() -> None:
        async with rig:
            rig.answers(text)
            turn = Turn(rig)
            thought = await turn.ends()
            assert thought.text[:1000] == text[:1000]
            assert turn.shown.strip() == thought.text.strip()
            assert {one.kind for one in turn.heard} <= {"delta", "tool", "alive"}
            assert not rig.left_behind()

    asyncio.run(story())


def test_nothing_said_is_an_empty_answer(rig: Rig) -> None:
    async def story() -> None:
        async with rig:
            rig.says_nothing()
            assert await Turn(rig).ends() == Answer()

    asyncio.run(story())


def test_the_turn_comes_there_once_and_as_it_was_shown(fallible: FallibleRig) -> None:
    async def story() -> None:
        async with fallible as rig:
            turn = Turn(rig)
            await turn.ends()
            assert fallible.given().removesuffix("\n") == turn.task.text
            assert fallible.turns() == 1

    asyncio.run(story())


def test_one_is_made_for_each_turn_and_knows_nothing_of_another(rig: Rig) -> None:
    async def story() -> None:
        async with rig:
            rig.answers("You said: first")
            first = await Turn(rig).ends()
            rig.answers("You said: second")
            both = await asyncio.gather(Turn(rig).ends(), Turn(rig).ends())
            assert [first.text, *(one.text for one in both)] == ["You said: first", *["You said: second"] * 2]

    asyncio.run(story())


def test_what_it_used_up_is_told(fallible: FallibleRig) -> None:
    async def story() -> None:
        async with fallible as rig:
            fallible.answers_for("done", tokens_in=1200, tokens_out=0, cost=0.5)
            told = Answer(text="done", tokens_in=1200, tokens_out=0, cost=0.5)
            assert await Turn(rig).ends() == told

    asyncio.run(story())


NONSENSE = [-1, "many", True, 1e300, 2**70, [1]]


@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_what_it_cannot_have_used_up_is_left_out_with_a_note(fallible: FallibleRig, value: Any) -> None:
    async def story() -> None:
        async with fallible as rig:
            fallible.answers_for("done", tokens_in=value, cost=value, tokens_out=7)
            thought = await Turn(rig).ends()
            assert (thought.text, thought.tokens_in, thought.cost) == ("done", None, None)
            assert thought.note

    asyncio.run(story())


# --- bad answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [b"caf\xe9 \xff", b"cut \xe2\x82", b"nul \x00 in it"])
def test_what_is_no_text_is_replaced_and_the_rest_stays(fallible: FallibleRig, answer: bytes) -> None:
    async def story() -> None:
        async with fallible as rig:
            fallible.answers_bytes(answer)
            turn = Turn(rig)
            thought = await turn.ends()
            text = thought.text
            assert thought.note
            assert text.startswith(answer[:3].decode())
            assert "\ufffd" in text
            assert "\x00" not in text
            assert "\x00" not in turn.shown
            assert text.encode().decode() == text

    asyncio.run(story())


def test_no_escape_in_json_brings_in_what_cannot_be_stored(fallible: FallibleRig) -> None:
    async def story() -> None:
        async with fallible as rig:
            fallible.answers_for("a\x00b\ud800c")
            turn = Turn(rig)
            text = (await turn.ends()).text
            assert "\x00" not in text
            assert text.encode().decode() == text
            assert text.startswith("a")
            assert turn.shown.encode().decode() == turn.shown

    asyncio.run(story())


def test_an_answer_without_an_end_is_cut_off_and_a_turn_error(fallible: FallibleRig) -> None:
    async def story() -> None:
        async with fallible as rig:
            fallible.floods()
            with pytest.raises(TurnError) as caught:
                await Turn(rig).ends()
            assert caught.value.kind == "too_long"
            assert "100000" in caught.value.text
            await until(lambda: not rig.left_behind())
            assert fallible.turns() == 1

    asyncio.run(story())


def test_the_longest_answer_is_one_and_a_byte_more_is_too_long(fallible: FallibleRig) -> None:
    async def story() -> None:
        async with fallible as rig:
            fallible.answers_bytes(b"x" * 4000)
            assert len((await Turn(rig, output_bytes=4000).ends()).text) == 4000
            fallible.answers_bytes(b"x" * 4001)
            with pytest.raises(TurnError) as caught:
                await Turn(rig, output_bytes=4000).ends()
            assert caught.value.kind == "too_long"

    asyncio.run(story())


# --- failures --------------------------------------------------------------------------


def test_a_turn_that_goes_wrong_by_itself_is_a_turn_error_and_is_not_repeated(fallible: FallibleRig) -> None:
    async def story() -> None:
        async with fallible as rig:
            fallible.refuses_this_one()
            with pytest.raises(TurnError) as caught:
                await Turn(rig).ends()
            assert caught.value.kind
            assert caught.value.text
            assert not [secret for secret in rig.secrets if secret in caught.value.text]
            assert fallible.turns() == 1
            await until(lambda: not rig.left_behind())
            fallible.answers("better")
            assert (await Turn(rig).ends()).text == "better"

    asyncio.run(story())


def test_what_would_stop_every_turn_is_a_lane_error_and_is_not_repeated(fallible: FallibleRig) -> None:
    async def story() -> None:
        async with fallible as rig:
            fallible.is_away()
            with pytest.raises(LaneError) as caught:
                await Turn(rig).ends()
            assert caught.value.kind
            assert caught.value.text
            assert not [secret for secret in rig.secrets if secret in caught.value.text]
            assert fallible.turns() == 0

    asyncio.run(story())


# --- cancelled -----------------------------------------------------------------------


def test_a_cancelled_turn_leaves_nothing_behind(rig: Rig) -> None:
    async def story() -> None:
        async with rig:
            rig.hangs()
            turn = Turn(rig)
            await until(rig.under_way)
            assert not turn.running.done()
            turn.running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn.ends()
            await until(lambda: not rig.left_behind())

    asyncio.run(story())


def test_cancelled_at_any_moment_it_lets_go(rig: Rig) -> None:
    async def story() -> None:
        async with rig:
            rig.hangs()
            for steps in (0, 1, 2, 3, 5, 10, 20):
                turn = Turn(rig)
                for _ in range(steps):
                    await asyncio.sleep(0)
                turn.running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await turn.ends()
            await until(lambda: not rig.left_behind())

    asyncio.run(story())


# --- programs ------------------------------------------------------------------------


def test_the_processes_of_a_program_are_told_before_it_has_its_turn(tmp_path: Path) -> None:
    async def story() -> None:
        async with CommandRig(tmp_path) as rig:
            rig.program("echo $$\n")
            turn = Turn(rig)
            assert [int((await turn.ends()).text)] == turn.pids

            told = asyncio.Event()

            async def started(pid: int) -> None:
                assert rig.turns() == 1  # of the turn above
                told.set()

            await rig.make().take_turn(rig.task(), turn.heard.append, started)
            assert told.is_set()
            assert rig.turns() == 2

    asyncio.run(story())


def test_a_program_that_could_not_be_noted_does_not_go_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with CommandRig(tmp_path) as rig:
            rig.hangs()

            async def full(pid: int) -> None:
                raise OSError("disk full")

            with pytest.raises(OSError, match="disk full"):
                await rig.make().take_turn(rig.task(), lambda heard: None, full)
            await until(lambda: not rig.left_behind())
            assert rig.turns() == 0

    asyncio.run(story())


@pytest.mark.parametrize(
    "script",
    [
        "sleep 1000 & echo done\n",
        "sleep 1000 >/dev/null 2>&1 & echo done\n",
        "(trap '' INT TERM; sleep 1000) & echo done\n",
    ],
    ids=["with our pipe", "without it", "stubborn"],
)
def test_what_a_program_left_behind_ends_with_it(tmp_path: Path, script: str) -> None:
    async def story() -> None:
        async with CommandRig(tmp_path) as rig:
            rig.program(script)
            assert (await Turn(rig).ends()).text == "done"
            assert not rig.left_behind()

    asyncio.run(story())


def test_one_who_left_on_purpose_holds_up_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        async with CommandRig(tmp_path) as rig:
            rig.program("setsid sleep 30 &\nsleep 0.1\necho done\n")
            assert (await Turn(rig).ends()).text == "done"
            process_control.signal_all(rig.left_behind(), 9)

    asyncio.run(story())


def test_a_workspace_that_is_gone_is_a_lane_error_that_names_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with CommandRig(tmp_path) as rig:
            with pytest.raises(LaneError) as caught:
                await Turn(rig, workspace=str(tmp_path / "gone")).ends()
            assert str(tmp_path / "gone") in caught.value.text

    asyncio.run(story())
