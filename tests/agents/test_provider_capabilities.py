"""Sessions, output and questions of programs, beyond what the contract of every provider says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hiboss.core.contracts.failures import SessionLost, TurnError
from hiboss.testing.provider_contract import Turn, until
from tests.agents.provider_rigs import CommandRig, OpenCommandRig


@pytest.mark.parametrize("kind", [CommandRig, OpenCommandRig], ids=lambda kind: kind.__name__)
def test_a_session_that_cannot_be_resumed_is_told_as_lost(kind: type[CommandRig], tmp_path: Path) -> None:
    async def story() -> None:
        async with kind(tmp_path) as rig:
            rig.loses_session()
            with pytest.raises(SessionLost, match="no such session"):
                await Turn(rig, session="s-1").ends()

    asyncio.run(story())


def test_what_it_writes_besides_its_answer_may_be_far_longer(tmp_path: Path) -> None:
    async def story() -> None:
        async with CommandRig(tmp_path) as rig:
            lines = [{"hiboss": "thinking", "text": "x" * 1000}] * 50 + [{"hiboss": "final", "text": "done"}]
            rig.answers_bytes("".join(f"{json.dumps(line)}\n" for line in lines).encode())
            assert (await Turn(rig, answer_bytes=4000).ends()).text == "done"
            with pytest.raises(TurnError) as caught:
                await Turn(rig, answer_bytes=4000, output_bytes=20_000).ends()
            assert caught.value.kind == "too_long" and "20000" in caught.value.text

    asyncio.run(story())


def test_a_program_without_an_open_input_is_told_that_it_cannot_ask(tmp_path: Path) -> None:
    async def story() -> None:
        async with CommandRig(tmp_path) as rig:
            rig.answers_bytes(b'{"hiboss": "ask", "text": "may I?"}\n')
            with pytest.raises(TurnError, match="--input open"):
                await Turn(rig).ends()
            await until(lambda: not rig.left_behind())

    asyncio.run(story())
