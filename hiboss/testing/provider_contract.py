"""The contract of providers, as tests to inherit from: with pytest, and nothing of hiboss but the package.

    from hiboss.testing.provider_contract import OutsideContract, ProviderContract, SessionContract

    class TestThinker(ProviderContract, OutsideContract, SessionContract):
        rig_class = ThinkerRig

`ThinkerRig` inherits from `hiboss.testing.provider_rig.ProviderRig`, whose docstrings say what it must do.
Inherit from ProviderContract always, from OutsideContract if it calls a program or a server, and from the
contract of each capability that it declares.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ..agents import process_control
from ..agents.providers.registry import check
from ..core.contracts.failures import LaneError, Refused, TurnError
from ..core.contracts.provider import CAPABILITIES, KINDS, Answer, Progress, Provider, TurnInput
from ..core.option_models import describe, validate
from .provider_rig import ProviderRig
from .recorded_run import RecordedRun

SECONDS = 30.0  # a limit for every wait
NONSENSE = [-1, "many", True, 1e300, 2**70, [1]]


class Turn:
    """One turn of a new provider, with its progress and the processes it started."""

    def __init__(self, rig: ProviderRig, choices: tuple[str, ...] = (), **facts: Any) -> None:
        self.run = RecordedRun(choices)
        self.task: TurnInput = rig.task(**facts)
        self.provider = rig.make()
        self.running = asyncio.create_task(self.run.give(self.provider, self.task))

    @property
    def heard(self) -> list[Progress]:
        return self.run.heard

    @property
    def pids(self) -> list[int]:
        return self.run.pids

    async def ends(self) -> Answer:
        async with asyncio.timeout(SECONDS):
            return await self.running

    @property
    def shown(self) -> str:
        return self.run.shown


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - what it waits for sets no event
            await asyncio.sleep(0.005)


class _Contract:
    """Makes the rig of each test."""

    rig_class: ClassVar[type[ProviderRig]]

    @pytest.fixture
    def rig(self, tmp_path: Path) -> ProviderRig:
        return self.rig_class(tmp_path)

    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process_control, "STEP_SECONDS", 0.2)  # no program here needs time to end


class ProviderContract(_Contract):
    """What every provider does."""

    def test_what_is_kept_of_the_options_is_json_and_names_nothing_else(self, rig: ProviderRig) -> None:
        model = type(rig.make()).Settings
        settings = validate(model, rig.good(), "it").settings
        assert json.loads(json.dumps(settings)) == settings
        assert set(settings) == set(rig.good()) <= {one.name for one in describe(model)}
        assert validate(model, settings, "it").settings == settings
        with pytest.raises(Refused, match="--of-nobody"):
            validate(model, {**rig.good(), "of_nobody": "x"}, "it")

    @pytest.mark.parametrize(
        "text", ["You said: well", "You said: two\nlines, ä€😀", "You said: " + "word " * 2000 + "x"]
    )
    def test_a_turn_has_an_answer_that_is_heard_while_it_is_made(self, rig: ProviderRig, text: str) -> None:
        async def story() -> None:
            async with rig:
                rig.answers(text)
                turn = Turn(rig)
                thought = await turn.ends()
                assert thought.text[:1000] == text[:1000]
                assert turn.shown.strip() == thought.text.strip()
                assert {one.kind for one in turn.heard} <= set(KINDS)
                assert not rig.left_behind()

        asyncio.run(story())

    def test_nothing_said_is_an_empty_answer(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.says_nothing()
                assert await Turn(rig).ends() == Answer()

        asyncio.run(story())

    def test_one_is_made_for_each_turn_and_knows_nothing_of_another(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.answers("You said: first")
                first = await Turn(rig).ends()
                rig.answers("You said: second")
                both = await asyncio.gather(Turn(rig).ends(), Turn(rig).ends())
                assert [first.text, *(one.text for one in both)] == [
                    "You said: first",
                    *["You said: second"] * 2,
                ]

        asyncio.run(story())

    def test_a_cancelled_turn_leaves_nothing_behind(self, rig: ProviderRig) -> None:
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

    def test_cancelled_at_any_moment_it_lets_go(self, rig: ProviderRig) -> None:
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

    def test_what_it_declares_it_has_and_an_instance_has_nothing_more(self, rig: ProviderRig) -> None:
        provider = rig.make()
        kind = type(provider)
        assert provider.capabilities <= kind.capabilities <= set(CAPABILITIES)
        assert ("steer" in kind.capabilities) == (kind.steer is not Provider.steer)
        assert ("interrupt" in kind.capabilities) == (kind.interrupt is not Provider.interrupt)
        assert check(kind) == []

    def test_every_capability_that_it_declares_is_tested(self, rig: ProviderRig) -> None:
        inherited = {word for word, contract in CONTRACT_OF.items() if isinstance(self, contract)}
        assert rig.make().capabilities <= inherited, "inherit from the contracts of these capabilities too"


class OutsideContract(_Contract):
    """What a provider does that calls something outside: a program, a server."""

    def test_what_cannot_work_is_refused_with_a_reason(self, rig: ProviderRig) -> None:
        model = type(rig.make()).Settings
        for given in rig.bad():
            with pytest.raises(Refused) as caught:
                validate(model, given, "it")
            assert caught.value.why
            assert not [secret for secret in rig.secrets if secret in caught.value.why]

    def test_what_is_missing_now_may_come_later(self, rig: ProviderRig) -> None:
        """Neither the settings nor the constructor checks whether the program or server exists."""
        rig.is_away()
        assert rig.make()

    def test_the_turn_comes_there_once_and_as_it_was_shown(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                turn = Turn(rig)
                await turn.ends()
                assert rig.given().removesuffix("\n") == turn.task.text
                assert rig.turns() == 1

        asyncio.run(story())

    def test_what_it_used_up_is_told(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_for("done", tokens_in=1200, tokens_out=0)
                assert await Turn(rig).ends() == Answer(text="done", tokens_in=1200, tokens_out=0)

        asyncio.run(story())

    @pytest.mark.parametrize("value", NONSENSE, ids=repr)
    def test_what_it_cannot_have_used_up_is_left_out_with_a_note(self, rig: ProviderRig, value: Any) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_for("done", tokens_in=value, tokens_out=7)
                thought = await Turn(rig).ends()
                assert (thought.text, thought.tokens_in) == ("done", None)
                assert thought.note

        asyncio.run(story())

    @pytest.mark.parametrize("answer", [b"caf\xe9 \xff", b"cut \xe2\x82", b"nul \x00 in it"])
    def test_what_is_no_text_is_replaced_and_the_rest_stays(self, rig: ProviderRig, answer: bytes) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_bytes(answer)
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

    def test_no_escape_in_json_brings_in_what_cannot_be_stored(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_for("a\x00b\ud800c")
                turn = Turn(rig)
                text = (await turn.ends()).text
                assert "\x00" not in text
                assert text.encode().decode() == text
                assert text.startswith("a")
                assert turn.shown.encode().decode() == turn.shown

        asyncio.run(story())

    def test_an_answer_without_an_end_is_cut_off_and_a_turn_error(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.floods()
                turn = Turn(rig)
                with pytest.raises(TurnError) as caught:
                    await turn.ends()
                assert caught.value.kind == "too_long"
                limits = (turn.task.answer_bytes, turn.task.output_bytes)
                assert any(str(limit) in caught.value.text for limit in limits), "it names the limit"
                await until(lambda: not rig.left_behind())
                assert rig.turns() == 1

        asyncio.run(story())

    def test_the_longest_answer_is_one_and_a_byte_more_is_too_long(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_bytes(b"x" * 4000)
                assert len((await Turn(rig, answer_bytes=4000).ends()).text) == 4000
                rig.answers_bytes(b"x" * 4001)
                with pytest.raises(TurnError) as caught:
                    await Turn(rig, answer_bytes=4000).ends()
                assert caught.value.kind == "too_long"
                assert "4000" in caught.value.text, "it names the limit"

        asyncio.run(story())

    def test_a_turn_that_goes_wrong_by_itself_is_a_turn_error_and_is_not_repeated(
        self, rig: ProviderRig
    ) -> None:
        async def story() -> None:
            async with rig:
                rig.refuses_this_one()
                with pytest.raises(TurnError) as caught:
                    await Turn(rig).ends()
                assert caught.value.kind
                assert caught.value.text
                assert not [secret for secret in rig.secrets if secret in caught.value.text]
                assert rig.turns() == 1
                await until(lambda: not rig.left_behind())
                rig.answers("better")
                assert (await Turn(rig).ends()).text == "better"

        asyncio.run(story())

    def test_what_would_stop_every_turn_is_a_lane_error_and_is_not_repeated(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.is_away()
                with pytest.raises(LaneError) as caught:
                    await Turn(rig).ends()
                assert caught.value.kind
                assert caught.value.text
                assert not [secret for secret in rig.secrets if secret in caught.value.text]
                assert rig.turns() == 0

        asyncio.run(story())


class SessionContract(_Contract):
    """What a provider does that declares `session`."""

    def test_a_session_is_reported_and_the_next_turn_is_given_it(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_in("s-1")
                first = Turn(rig)
                await first.ends()
                assert (first.run.sessions, rig.given_session()) == (["s-1"], None)
                rig.answers_in("s-2")  # it may go on in another one
                second = Turn(rig, session="s-1")
                await second.ends()
                assert (second.run.sessions, rig.given_session()) == (["s-2"], "s-1")

        asyncio.run(story())

    def test_a_session_that_could_not_be_stored_ends_the_turn(self, rig: ProviderRig) -> None:
        class Full(RecordedRun):
            async def session(self, session: str) -> None:
                raise OSError("disk full")

        async def story() -> None:
            async with rig:
                rig.answers_in("s-1")
                with pytest.raises(OSError, match="disk full"):
                    await Full().give(rig.make(), rig.task())
                await until(lambda: not rig.left_behind())

        asyncio.run(story())

    @pytest.mark.parametrize(
        "session", ["", "a\nb", "x" * 501, "\ud800"], ids=["none", "lines", "long", "half"]
    )
    def test_a_session_that_cannot_be_stored_is_left_out_with_a_note(
        self, rig: ProviderRig, session: str
    ) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_in(session)
                turn = Turn(rig)
                answer = await turn.ends()
                assert not turn.run.sessions and "session" in (answer.note or "")

        asyncio.run(story())


class SteerContract(_Contract):
    """What a provider does that declares `steer`."""

    def test_words_of_a_person_reach_a_running_turn_and_no_other(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.waits_for_words()
                assert not await rig.make().steer("too early")
                turn = Turn(rig)
                await until(lambda: any(one.kind == "tool" for one in turn.heard))
                assert await turn.provider.steer("the other way,\nä€😀")
                assert (await turn.ends()).text == "the other way,\nä€😀"
                assert not await turn.provider.steer("too late")

        asyncio.run(story())


class InterruptContract(_Contract):
    """What a provider does that declares `interrupt`."""

    def test_an_interrupted_turn_ends_by_itself(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.waits_for_interrupt()
                turn = Turn(rig)
                await until(lambda: any(one.kind == "tool" for one in turn.heard))
                await turn.provider.interrupt()
                await turn.ends()
                assert not rig.left_behind()

        asyncio.run(story())


class AskContract(_Contract):
    """What a provider does that declares `ask`."""

    def test_questions_are_asked_at_the_same_time_and_each_gets_its_answer(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.asks("delete it?", "really?")
                turn = Turn(rig, choices=("yes", "no"))
                answer = await turn.ends()
                assert answer.text == "delete it?=yes really?=no"
                assert [(one.text, one.options) for one in turn.run.questions] == [
                    ("delete it?", ("yes", "no")),
                    ("really?", ("yes", "no")),
                ]

        asyncio.run(story())

    def test_a_permission_says_exactly_and_in_full_what_the_tool_would_do(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                detail = "git push origin main\n" + "ä€😀 " * 5_000
                rig.asks_for_tool("Bash", detail, "git push origin main")
                turn = Turn(rig, choices=("deny",))
                assert (await turn.ends()).text == "deny"
                [asked] = turn.run.questions
                assert (asked.tool, asked.detail) == ("Bash", detail)
                assert asked.subject == "git push origin main"
                assert asked.options == ("allow", "deny") and asked.default in ("", "deny")

        asyncio.run(story())

    def test_a_turn_that_waits_for_an_answer_can_be_cancelled(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.asks("delete it?")
                turn = Turn(rig)
                await until(lambda: turn.run.questions)
                turn.running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await turn.ends()
                await until(lambda: not rig.left_behind())

        asyncio.run(story())


class CostContract(_Contract):
    """What a provider does that declares `cost`."""

    def test_what_a_turn_cost_is_told_in_dollars(self, rig: ProviderRig) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_for("done", tokens_in=1200, cost=0.5)
                assert (await Turn(rig).ends()).cost == 0.5

        asyncio.run(story())

    @pytest.mark.parametrize("value", NONSENSE, ids=repr)
    def test_what_is_no_cost_is_left_out_with_a_note(self, rig: ProviderRig, value: Any) -> None:
        async def story() -> None:
            async with rig:
                rig.answers_for("done", cost=value)
                thought = await Turn(rig).ends()
                assert (thought.text, thought.cost) == ("done", None)
                assert thought.note

        asyncio.run(story())


CONTRACT_OF: dict[str, type[_Contract]] = {
    "session": SessionContract,
    "steer": SteerContract,
    "interrupt": InterruptContract,
    "ask": AskContract,
    "cost": CostContract,
}
