"""The contract of providers (hiboss/testing/provider_contract.py), held against ours; and what programs need."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hiboss.agents.providers.claude.provider import Claude
from hiboss.agents.providers.codex.provider import Codex
from hiboss.agents.providers.registry import BUILT_IN
from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError
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
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.acp_rig import AcpRig
from tests.agents.provider_rigs import CommandRig, DemoRig, OpenCommandRig, WebhookRig

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
