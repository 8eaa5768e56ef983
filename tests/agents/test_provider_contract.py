"""The contract of providers (hiboss/testing/provider_contract.py), held against ours; and what programs need."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hiboss.agents import process_control
from hiboss.agents.providers.claude.provider import Claude
from hiboss.agents.providers.codex.provider import Codex
from hiboss.agents.providers.registry import BUILT_IN
from hiboss.core.contracts.failures import LaneError
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
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.acp_rig import AcpRig
from tests.agents.provider_rigs import CommandRig, DemoRig, OpenCommandRig, WebhookRig


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


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_control, "STEP_SECONDS", 0.2)  # no program here needs time to end


def test_every_provider_of_ours_is_held_against_the_contract(tmp_path: Path) -> None:
    ours = [one.rig_class for one in (TestDemo, TestCommand, TestOpenCommand, TestWebhook)]
    held = {type(rig(tmp_path).make()) for rig in (*ours, AcpRig)}  # test_acp_contract.py
    harnesses = {Claude, Codex}  # with their real programs: tests/real/harness_contract.py
    assert set(BUILT_IN.values()) == held | harnesses


# --- programs ------------------------------------------------------------------------


def test_the_processes_of_a_program_are_told_before_it_has_its_turn(tmp_path: Path) -> None:
    async def story() -> None:
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

    asyncio.run(story())


def test_a_program_that_could_not_be_noted_does_not_go_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with CommandRig(tmp_path) as rig:
            rig.hangs()

            class Full(RecordedRun):
                async def started(self, pid: int) -> None:
                    raise OSError("disk full")

            with pytest.raises(OSError, match="disk full"):
                await rig.make().take_turn(rig.task(), Full())
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
