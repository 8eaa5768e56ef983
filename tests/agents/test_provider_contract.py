"""The contract of providers, tested with those of ours; what the loader refuses; how reports are checked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents.providers.claude.provider import Claude
from hiboss.agents.providers.codex.provider import Codex
from hiboss.agents.providers.registry import BUILT_IN, check
from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError
from hiboss.core.contracts.provider import Answer, LiveRun, Progress, Provider, TurnInput, Usage
from hiboss.testing.provider_contract import (
    AskContract,
    CostContract,
    InterruptContract,
    OutsideContract,
    ProviderContract,
    SessionContract,
    SteerContract,
    Turn,
    until,
)
from hiboss.testing.provider_rig import ProviderRig
from hiboss.testing.recorded_run import RecordedRun, sample_turn
from tests.agents.acp_rig import AcpRig
from tests.agents.provider_rigs import CommandRig, DemoRig, OpenCommandRig, WebhookRig
from tests.support.raising import raised

pytestmark = pytest.mark.usefixtures("quick")


class TestDemo(ProviderContract):
    rig_class = DemoRig


class TestCommand(ProviderContract, OutsideContract, SessionContract, CostContract):
    rig_class = CommandRig


class TestOpenCommand(
    ProviderContract,
    OutsideContract,
    SessionContract,
    SteerContract,
    InterruptContract,
    AskContract,
    CostContract,
):
    rig_class = OpenCommandRig


class TestWebhook(ProviderContract, OutsideContract, SessionContract, CostContract):
    rig_class = WebhookRig


class TestAcp(
    ProviderContract, OutsideContract, SessionContract, InterruptContract, AskContract, CostContract
):
    rig_class = AcpRig

    @pytest.mark.parametrize(("choice", "chosen"), [("allow", "allow_once"), ("deny", "reject_once")])
    async def test_a_permission_says_exactly_and_in_full_what_the_tool_would_do(
        self, rig: ProviderRig, choice: str, chosen: str
    ) -> None:
        async with rig:
            detail = "git push origin main\n" + "ä€😀 " * 5_000
            rig.asks_for_tool("Bash", detail, "git push")
            turn = Turn(rig, choices=(choice,))
            assert (await turn.ends()).text == chosen
            [asked] = turn.run.questions
            assert (asked.tool, asked.detail) == ("Bash", detail)
            assert json.loads(asked.subject) == {"input": {"command": detail}, "cwd": str(rig.directory)}
            assert asked.options == ("allow", "deny") and asked.default == "deny"


def test_every_provider_of_ours_is_held_against_the_contract(tmp_path: Path) -> None:
    contracts = (TestDemo, TestCommand, TestOpenCommand, TestWebhook, TestAcp)
    held = {type(one.rig_class(tmp_path).make()) for one in contracts}
    harnesses = {Claude, Codex}  # with their real programs: tests/real/harness_contract.py
    assert set(BUILT_IN.values()) == held | harnesses


# --- programs ------------------------------------------------------------------------


async def test_the_processes_of_a_program_are_told_before_it_has_its_turn(tmp_path: Path) -> None:
    async with CommandRig(tmp_path) as rig:
        rig.program("echo $$\n")
        turn = Turn(rig)
        assert [int((await turn.ends()).text)] == turn.pids

        told = asyncio.Event()

        class Telling(RecordedRun):
            async def started(self, pid: int) -> None:
                assert rig.turns() == 1  # of the turn above
                told.set()

        await rig.make().take_turn(rig.task(), Telling())
        assert told.is_set()
        assert rig.turns() == 2


async def test_a_program_that_could_not_be_noted_does_not_go_on(tmp_path: Path) -> None:
    async with CommandRig(tmp_path) as rig:
        rig.hangs()

        class Full(RecordedRun):
            async def started(self, pid: int) -> None:
                raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            await rig.make().take_turn(rig.task(), Full())
        await until(lambda: not rig.left_behind())
        assert rig.turns() == 0


async def test_a_workspace_that_is_gone_is_a_lane_error_that_names_it(tmp_path: Path) -> None:
    async with CommandRig(tmp_path) as rig:
        with pytest.raises(LaneError) as caught:
            await Turn(rig, workspace=str(tmp_path / "gone")).ends()
        assert str(tmp_path / "gone") in caught.value.text


@pytest.mark.parametrize("kind", [CommandRig, OpenCommandRig], ids=lambda kind: kind.__name__)
async def test_a_session_that_cannot_be_resumed_is_told_as_lost(
    kind: type[CommandRig], tmp_path: Path
) -> None:
    async with kind(tmp_path) as rig:
        rig.loses_session()
        with pytest.raises(SessionLost, match="no such session"):
            await Turn(rig, session="s-1").ends()


async def test_what_it_writes_besides_its_answer_may_be_far_longer(tmp_path: Path) -> None:
    async with CommandRig(tmp_path) as rig:
        lines = [{"hiboss": "thinking", "text": "x" * 1000}] * 50 + [{"hiboss": "final", "text": "done"}]
        rig.answers_bytes("".join(f"{json.dumps(line)}\n" for line in lines).encode())
        assert (await Turn(rig, answer_bytes=4000).ends()).text == "done"
        with pytest.raises(TurnError) as caught:
            await Turn(rig, answer_bytes=4000, output_bytes=20_000).ends()
        assert caught.value.kind == "too_long" and "20000" in caught.value.text


async def test_a_program_without_an_open_input_is_told_that_it_cannot_ask(tmp_path: Path) -> None:
    async with CommandRig(tmp_path) as rig:
        rig.answers_bytes(b'{"hiboss": "ask", "text": "may I?"}\n')
        with pytest.raises(TurnError, match="--input open"):
            await Turn(rig).ends()
        await until(lambda: not rig.left_behind())


# --- classes and reports with mistakes ------------------------------------------------


class Reporting(Provider):
    """Reports one thing, and returns another."""

    capabilities = frozenset({"session"})

    def __init__(self, report: Any = None, answer: Any = None, session: Any = None) -> None:
        super().__init__(None)
        self.report, self.answer, self.named = report, answer, session

    async def take_turn(self, turn: TurnInput, run: LiveRun) -> Answer:
        if self.report is not None:
            run.progress(self.report)
        if self.named is not None:
            await run.session(self.named)
        return self.answer  # type: ignore[no-any-return]


def given(provider: Provider) -> Answer:
    return asyncio.run(RecordedRun().give(provider, sample_turn("hello")))


@pytest.mark.parametrize(
    ("answer", "says"), [("text", "a str"), (None, "None"), (Answer(text=7), "a int")], ids=repr
)
def test_what_is_no_answer_is_named_with_what_would_be_one(answer: Any, says: str) -> None:
    caught = raised(TurnError, given, Reporting(answer=answer))
    assert says in caught.text and "Answer" in caught.text


@pytest.mark.parametrize(
    ("report", "kind", "says"),
    [
        ("delta", TypeError, "Progress('delta', text), not a str"),
        (Progress("typo", "x"), ValueError, "there is no progress 'typo'; there are delta"),
        (Progress("delta", 7), TypeError, "not a int"),  # type: ignore[arg-type]
        (Progress("usage", usage=(1, 2, 3)), TypeError, "Usage(tokens_in"),  # type: ignore[arg-type]
    ],
    ids=["text", "kind", "number", "tuple"],
)
def test_a_report_of_a_wrong_type_raises_and_says_what_is_right(
    report: Any, kind: type[Exception], says: str
) -> None:
    assert says in str(raised(kind, given, Reporting(report, Answer())))


def test_what_cannot_be_stored_is_replaced_or_left_out_with_a_note_each() -> None:
    bad = Progress("usage", usage=Usage(tokens_in=-1))
    answer = given(Reporting(bad, Answer(text="a\x00b\ud800", note="mine"), session="two\nlines"))
    assert answer.text == "a\ufffdb\ufffd"
    notes = (answer.note or "").split("; ")
    assert len(notes) == 4 and notes[2] == "mine"
    assert "usage" in notes[0] and "session" in notes[1] and "characters" in notes[3]


def test_what_is_not_declared_cannot_be_done_in_a_test_either() -> None:
    provider = Reporting(answer=Answer(), session="s-1")
    provider.capabilities = frozenset()
    raised(TypeError, given, provider, says="declare the capability session")


def test_usage_that_was_only_reported_counts_where_the_answer_has_none_as_in_the_daemon() -> None:
    reported = Progress("usage", usage=Usage(tokens_in=20, tokens_out=5, cost=0.5))
    answer = given(Reporting(reported, Answer(text="done", tokens_out=7)))
    assert (answer.tokens_in, answer.tokens_out, answer.cost) == (20, 7, 0.5)


# --- what the loader refuses, so that it does not fail at the first message ---------------


class Good(Provider):
    name = "good"

    async def take_turn(self, turn: Any, run: Any) -> Answer:
        return Answer()


def plain_turn(self: Any, turn: Any, run: Any) -> Answer:
    return Answer()


async def old_turn(self: Any, turn: Any, progress: Any, started: Any) -> Answer:
    return Answer()


async def wide_turn(self: Any, *given: Any) -> Answer:
    return Answer()


async def no_words(self: Any) -> bool:
    return True


MISTAKES = [
    ({"take_turn": plain_turn}, "take_turn must be async: async def take_turn(self, turn, run)"),
    ({"take_turn": old_turn}, "missing a required argument: 'started'"),
    ({"steer": no_words}, "steer cannot be called: too many positional arguments"),
    ({"capabilities": ["session"]}, "capabilities must be a frozenset"),
    ({"capabilities": "session"}, "frozenset of texts, like frozenset({'session'})"),
    ({"capabilities": frozenset({"talk"})}, "there is no capability talk"),
    ({"capabilities": frozenset({"steer"})}, "it needs a method steer of its own"),
    ({"session_settings": ["model"]}, "session_settings must be a frozenset"),
    ({"session_settings": frozenset({"model"})}, "session_settings names model"),
    ({"__init__": lambda self: None}, "__init__ cannot be called"),
]


@pytest.mark.parametrize(("attributes", "expected"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_a_mistake_in_a_class_is_named_with_what_would_be_right(
    attributes: dict[str, Any], expected: str
) -> None:
    found = check(type("Bad", (Good,), attributes))
    assert len(found) == 1 and expected in found[0]


@pytest.mark.parametrize(
    "kind",
    [*BUILT_IN.values(), Good, type("Wide", (Good,), {"take_turn": wide_turn})],
    ids=lambda k: k.__name__,
)
def test_a_class_without_a_mistake_is_taken(kind: type[Provider]) -> None:
    assert check(kind) == []
