"""How long a lane waits: by the time since its first failure, and never less than the platform asked for."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hiboss.core import backoff
from hiboss.core.clock import now
from hiboss.testing.frozen_clock import FrozenDaemon, frozen_daemon

MODULES = {"HIBOSS_ADAPTERS_MODULES": "hiboss.testing.scripted_adapter"}


class Channel:
    """A scripted channel of nex in a daemon whose clock the test moves."""

    def __init__(self, daemon: FrozenDaemon, directory: Path) -> None:
        self.daemon = daemon
        self.path = directory / "channel"
        self.path.mkdir()
        self.sent = 0
        self.address = ""

    def script(self, *steps: dict[str, Any]) -> None:
        (self.path / "script.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))

    def steps_left(self) -> int:
        return len((self.path / "script.jsonl").read_text().splitlines())

    def posts(self) -> int:
        file = self.path / "posts.jsonl"
        return len(file.read_text().splitlines()) if file.exists() else 0

    async def bind(self) -> None:
        boss = self.daemon.token("boss")
        bound = await self.daemon.call(
            "agent.bind", token=boss, name="nex", adapter_type="scripted", settings={"path": str(self.path)}
        )
        self.address = bound["address"]
        await self.daemon.until((self.path / "posts.jsonl").exists)

    async def send(self) -> None:
        await self.daemon.call("envelope.send", token=self.daemon.token("nex"), to=self.address, text="x")

    async def lane(self) -> dict[str, Any]:
        [lane] = (await self.daemon.call("lane.list", token=self.daemon.token("boss")))["lanes"]
        found: dict[str, Any] = lane
        return found

    async def steer(self, verb: str) -> None:
        await self.daemon.call(f"lane.{verb}", token=self.daemon.token("boss"), address=self.address)

    async def failed(self, times: int, state: str = "waiting") -> dict[str, Any]:
        """Wait until the lane has failed so often, and return it."""
        async with asyncio.timeout(60):
            while (lane := await self.lane())["failures"] < times or lane["state"] != state:
                await asyncio.sleep(0.005)
        return lane


def seconds_to_next_try(lane: dict[str, Any]) -> float:
    return datetime.fromisoformat(lane["next_try_at"]).timestamp() - now() / 1000


def test_a_minutes_outage_under_traffic_does_not_make_a_lane_wait_an_hour(tmp_path: Path) -> None:
    async def story() -> float:
        async with frozen_daemon(tmp_path, **MODULES) as daemon:
            channel = Channel(daemon, tmp_path)
            channel.script(*[{"do": "lane_error", "text": "network"}] * 10)
            await channel.bind()
            for times in range(1, 11):  # new mail tries the lane each time
                await channel.send()
                lane = await channel.failed(times)
                daemon.tick(seconds=6)
            return seconds_to_next_try(lane) + 6

    assert asyncio.run(story()) <= backoff.SECONDS[2] * 1.1


@pytest.mark.parametrize("restart", [False, True])
def test_nothing_is_tried_before_the_time_a_platform_named(tmp_path: Path, restart: bool) -> None:
    async def story() -> None:
        async with frozen_daemon(tmp_path, **MODULES) as daemon:
            channel = Channel(daemon, tmp_path)
            channel.script({"do": "lane_error", "text": "slow down", "retry_after": 60})
            await channel.bind()
            await channel.send()
            await channel.failed(1)
            for _ in range(5):
                await daemon.move(seconds=10)
                await channel.send()  # new mail, which tries a lane that only guessed its wait
            if restart:
                await daemon.restart()
                await daemon.until(lambda: daemon.daemon.wiring.supervisor.slots)
            await asyncio.sleep(0.3)
            assert channel.posts() == 0 and (await channel.lane())["failures"] == 1
            await daemon.move(seconds=11)
            await daemon.until(lambda: channel.posts() == 6)

    asyncio.run(story())


@pytest.mark.parametrize("paused_first", [False, True])
def test_a_lane_that_is_paused_and_resumed_keeps_to_the_time_a_platform_named(
    tmp_path: Path, paused_first: bool
) -> None:
    async def story() -> None:
        async with frozen_daemon(tmp_path, **MODULES) as daemon:
            channel = Channel(daemon, tmp_path)
            refusal = {"do": "lane_error", "text": "slow down", "retry_after": 60}
            gate = tmp_path / "gate"
            channel.script({**refusal, "until": str(gate)} if paused_first else refusal)
            await channel.bind()
            await channel.send()
            if paused_first:  # the platform answers when the lane is paused already
                await daemon.until(lambda: channel.steps_left() == 0)
                await channel.steer("pause")
                gate.touch()
                await channel.failed(1, state="paused")
            else:
                await channel.failed(1)
                await channel.steer("pause")
            await channel.steer("resume")
            lane = await channel.lane()
            assert lane["state"] == "waiting" and 59 < seconds_to_next_try(lane) <= 60
            await daemon.move(seconds=59)
            await channel.send()  # new mail, which tries a lane that only guessed its wait
            await asyncio.sleep(0.3)
            assert channel.posts() == 0 and (await channel.lane())["failures"] == 1
            await daemon.move(seconds=2)
            await daemon.until(lambda: channel.posts() == 2)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("failing", "expected"),
    [(0, 5), (4, 5), (5, 30), (30, 30), (36, 120), (60, 120), (160, 600), (800, 3600), (10**6, 3600)],
)
def test_the_delay_grows_with_the_time_since_the_first_failure(failing: float, expected: float) -> None:
    for _ in range(50):
        assert 0.9 * expected <= backoff.delay_seconds(failing) <= 1.1 * expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(60, (60, True)), (0, (0.05, True)), (-5, (0.05, True)), (10**9, (86_400, True))],
)
def test_a_time_that_was_named_wins_within_bounds(asked: float, expected: tuple[float, bool]) -> None:
    assert backoff.next_wait(0, asked) == expected


@pytest.mark.parametrize("failing", [0, 0.1, 0.5, 1, 1000])
def test_what_is_to_be_tried_at_once_again_and_again_waits_as_long_as_it_fails_up_to_a_second(
    failing: float,
) -> None:
    assert backoff.next_wait(failing, 0) == (min(max(failing, 0.05), 1), True)
    assert backoff.next_wait(failing, 60) == (60, True)


@pytest.mark.parametrize("asked", ["60", " 60.0", timedelta(minutes=1), Decimal(60)])
def test_a_time_may_be_named_in_other_forms_than_a_number(asked: Any) -> None:
    assert backoff.next_wait(0, asked) == (60, True)


@pytest.mark.parametrize(
    "asked",
    [None, "soon", True, b"5", float("nan"), float("inf"), "inf", 10**400],
    ids=lambda one: repr(one)[:20],
)
def test_without_a_time_that_makes_sense_the_wait_is_guessed(asked: Any) -> None:
    seconds, told = backoff.next_wait(0, asked)
    assert 4.5 <= seconds <= 5.5 and not told
