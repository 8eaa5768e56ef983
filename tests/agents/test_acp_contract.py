"""The contract of providers, held against `acp` with a scripted agent."""

from __future__ import annotations

import asyncio
import json

import pytest

from hiboss.testing.provider_contract import (
    AskContract,
    CostContract,
    InterruptContract,
    OutsideContract,
    ProviderContract,
    SessionContract,
    Turn,
)
from hiboss.testing.provider_rig import ProviderRig
from tests.agents.acp_rig import AcpRig


class TestAcp(
    ProviderContract, OutsideContract, SessionContract, InterruptContract, AskContract, CostContract
):
    rig_class = AcpRig

    @pytest.mark.parametrize(("choice", "chosen"), [("allow", "allow_once"), ("deny", "reject_once")])
    def test_a_permission_says_exactly_and_in_full_what_the_tool_would_do(
        self, rig: ProviderRig, choice: str, chosen: str
    ) -> None:
        async def story() -> None:
            async with rig:
                detail = "git push origin main\n" + "ä€😀 " * 5_000
                rig.asks_for_tool("Bash", detail, "git push")
                turn = Turn(rig, choices=(choice,))
                assert (await turn.ends()).text == chosen
                [asked] = turn.run.questions
                assert (asked.tool, asked.detail) == ("Bash", detail)
                assert json.loads(asked.subject) == {"input": {"command": detail}, "cwd": str(rig.directory)}
                assert asked.options == ("allow", "deny") and asked.default == "deny"

        asyncio.run(story())
