"""How long a lane waits: by the time since its first failure, and never less than the platform asked for."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hiboss.core import backoff
from hiboss.core.clock import now
from tests.support.in_process_daemon import InProcessDaemon, frozen

SCRIPTED = {"adapter_modules": "hiboss.testing.scripted_adapter", "quiet": False}
REFUSAL = {"do": "lane_error", "text": "slow down", "retry_after": 60}


class Channel:
    """A scripted channel of nex with another chat beside it, in a daemon whose clock the test moves."""

    def __init__(self, daemon: InProcessDaemon) -> None:
        self.daemon = daemon
        self.path = Path(daemon.home.path).parent / "channel"
        self.address = "channel:scripted:channel"

    async def bind(self) -> None:
        self.path.mkdir()
        (self.path / "settings.json").write_text(json.dumps({"places": ["beside"]}))
        await self.daemon.ask(
            "agent.bind", name="nex", adapter_type="scripted", settings={"path": str(self.path)}
        )
        await self.daemon.until((self.path / "posts.jsonl").exists)

    def script(self, *steps: dict[str, Any]) -> None:
        (self.path / "script.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))

    def steps_left(self) -> int:
        return len((self.path / "script.jsonl").read_text().splitlines())

    def posts(self, place: str = "channel") -> int:
        lines = (self.path / "posts.jsonl").read_text().splitlines()
        return [json.loads(line)["place"] for line in lines].count(place)

    async def send(self) -> None:
        await self.daemon.send(self.address, text="x")

    async def is_tried(self) -> bool:
        """Send something, as new mail tries a lane that only guessed its wait; return whether it failed or was posted.

        What is sent to the other chat after it is posted after it was looked at.
        """
        before, beside = (self.posts(), self.lane()["failures"]), self.posts("beside")
        await self.send()
        await self.daemon.send("channel:scripted:beside", text="x")
        await self.daemon.until(lambda: self.posts("beside") == beside + 1)
        return (self.posts(), self.lane()["failures"]) != before

    def lane(self) -> dict[str, Any]:
        query = "SELECT l.* FROM lane l JOIN address a ON a.id = l.address WHERE a.fold = ?"
        return dict(self.daemon.rows(query, self.address)[0])

    async def steer(self, verb: str) -> None:
        await self.daemon.ask(f"lane.{verb}", address=self.address)

    async def failed(self, times: int, state: str = "waiting") -> None:
        """Wait until the lane has failed so often."""
        query = "SELECT 1 FROM lane WHERE address IS NOT NULL AND failures = ? AND state = ?"
        await self.daemon.until(lambda: self.daemon.rows(query, times, state))


async def seconds_to_next_try(channel: Channel) -> float:
    lanes = (await channel.daemon.ask("lane.list"))["lanes"]
    [at] = [lane["next_try_at"] for lane in lanes if lane["address"] == channel.address]
    return datetime.fromisoformat(at).timestamp() - now() / 1000


@frozen(**SCRIPTED)
async def test_a_minutes_outage_under_traffic_does_not_make_a_lane_wait_an_hour(
    daemon: InProcessDaemon,
) -> None:
    channel = Channel(daemon)
    await channel.bind()
    channel.script(*[{"do": "lane_error", "text": "network"}] * 10)
    for times in range(1, 11):  # new mail tries the lane each time
        await channel.send()
        await channel.failed(times)
        daemon.tick(seconds=6)
    assert await seconds_to_next_try(channel) + 6 <= backoff.SECONDS[2] * 1.1


@frozen(**SCRIPTED)
async def test_a_lane_that_is_paused_and_resumed_keeps_to_the_time_a_platform_named(
    daemon: InProcessDaemon,
) -> None:
    channel = Channel(daemon)
    await channel.bind()
    gate = channel.path / "gate"
    for posted, paused_first in ((2, False), (4, True)):
        channel.script({**REFUSAL, "until": str(gate)} if paused_first else REFUSAL)
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
        assert channel.lane()["state"] == "waiting" and 59 < await seconds_to_next_try(channel) <= 60
        await daemon.move(seconds=59)
        assert not await channel.is_tried()
        await daemon.move(seconds=2)
        await daemon.until(lambda: channel.posts() == posted and channel.lane()["failures"] == 0)  # noqa: B023


@pytest.mark.parametrize(
    ("failing", "expected"),
    [(0, 5), (4, 5), (5, 30), (30, 30), (36, 120), (60, 120), (160, 600), (800, 3600), (10**6, 3600)],
)
def test_the_delay_grows_with_the_time_since_the_first_failure(failing: float, expected: float) -> None:
    waits = {backoff.delay_seconds(failing) for _ in range(50)}
    assert 0.9 * expected <= min(waits) < max(waits) <= 1.1 * expected  # who fails together comes again apart


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


@pytest.mark.parametrize(
    "asked",
    [None, "soon", True, b"5", float("nan"), float("inf"), "inf", 10**400],
    ids=lambda one: repr(one)[:20],
)
def test_without_a_time_that_makes_sense_the_wait_is_guessed(asked: Any) -> None:
    seconds, told = backoff.next_wait(0, asked)
    assert 4.5 <= seconds <= 5.5 and not told
