"""How long an agent's lane waits after its provider failed: told by the provider, or guessed."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hiboss.core import backoff, clock
from tests.support.in_process_daemon import InProcessDaemon, frozen

PROVIDER = {"provider_modules": "tests.support.extra_providers"}


class Limits:
    """Agent nex with a provider that fails as scripted."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self._daemon = daemon
        self.directory = Path(daemon.home.path).parent / "workspace"

    async def script(self, *retry_after: float | None) -> None:
        self.directory.mkdir()
        (self.directory / "script").write_text("".join(f"{json.dumps(one)}\n" for one in retry_after))
        await self._daemon.ask("agent.set", name="nex", provider="limited", workspace=str(self.directory))

    def turns(self) -> list[int]:
        """Return how many envelopes each turn had."""
        file = self.directory / "turns"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    async def lane(self) -> dict[str, Any]:
        (found,) = (await self._daemon.ask("lane.list"))["lanes"]
        return dict(found)

    async def failed(self, times: int) -> dict[str, Any]:
        """Wait until so many turns have failed and are settled; return the lane."""
        count = "SELECT count(*) FROM run WHERE status = 'failed'"
        await self._daemon.until(lambda: self._daemon.rows(count)[0][0] == times)
        return await self.lane()


async def tell(daemon: InProcessDaemon) -> None:
    await daemon.send("agent:nex", who="boss", from_="user:boss")


@pytest.mark.parametrize("restart", [False, True])
def test_no_turn_is_tried_before_the_time_a_provider_named(tmp_path: Path, restart: bool) -> None:
    @frozen(quiet=False, **PROVIDER)
    async def story(daemon: InProcessDaemon) -> None:
        limits = Limits(daemon)
        await limits.script(60)
        await tell(daemon)
        await limits.failed(1)
        for _ in range(5):
            await daemon.move(seconds=10)
            await tell(daemon)  # new mail, which tries a lane that only guessed its wait
        if restart:
            await daemon.restart()
        await daemon.ask("daemon.ping")
        assert (limits.turns(), (await limits.lane())["failures"]) == ([1], 1)
        await daemon.move(seconds=11)
        await daemon.until(lambda: len(limits.turns()) == 2)
        assert limits.turns() == [1, 6]

    story(tmp_path)


@frozen(quiet=False, **PROVIDER)
async def test_new_mail_tries_a_provider_that_named_no_time_at_once_but_not_all_the_time(
    daemon: InProcessDaemon,
) -> None:
    limits = Limits(daemon)
    await limits.script(None, None)
    await tell(daemon)
    await limits.failed(1)
    await tell(daemon)  # within 5 seconds
    assert limits.turns() == [1]
    daemon.tick(seconds=4)
    await tell(daemon)
    assert limits.turns() == [1]
    daemon.tick(seconds=2)
    await tell(daemon)
    await limits.failed(2)


@frozen(quiet=False, **PROVIDER)
async def test_a_minutes_outage_under_traffic_does_not_make_an_agent_wait_an_hour(
    daemon: InProcessDaemon,
) -> None:
    limits = Limits(daemon)
    await limits.script(*[None] * 10)
    for times in range(1, 11):
        await tell(daemon)
        lane = await limits.failed(times)
        await asyncio.sleep(0)
        daemon.tick(seconds=6)
    wait = datetime.fromisoformat(lane["next_try_at"]).timestamp() - clock.now() / 1000
    assert wait <= backoff.SECONDS[2] * 1.1
