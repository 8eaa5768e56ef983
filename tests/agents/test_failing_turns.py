"""Turns that failed: those that are not repeated, and how long the lane waits. Frozen clock."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from hiboss.core import backoff, clock
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.live_providers import staged
from tests.support.python_agents import (
    idle_after,
    idle_after_ask,
    idle_after_send,
    notices,
    runs_of,
    status_of,
)

MODULES = "tests.support.live_providers"
TOO_MUCH = ("fail", "over_budget", "it used 900 of its 500 tokens for a run", False)
USED = ("usage", {"tokens_in": 800, "tokens_out": 100, "cost": 0.25, "exact": True})


def room(daemon: InProcessDaemon) -> Path:
    """Return the workspace of kai."""
    found = Path(daemon.home.path).parent / "kai"
    found.mkdir(exist_ok=True)
    return found


async def hire(daemon: InProcessDaemon, *steps: Any, **fields: Any) -> None:
    staged(room(daemon), *steps)
    given = {"name": "kai", "profile": True, "provider": "staged", "workspace": str(room(daemon)), **fields}
    await daemon.ask("agent.register", **given)


async def together(daemon: InProcessDaemon, *texts: str) -> list[str]:
    """Send several envelopes that wait for one turn of kai."""
    await daemon.ask("agent.pause", name="kai")
    found = [(await daemon.send("agent:kai", who="nex", text=text))[0] for text in texts]
    await idle_after_ask(daemon, "agent.resume", name="kai")
    return found


@frozen(quiet=False, provider_modules=MODULES)
async def test_all_envelopes_of_the_turn_fail_once_and_their_sender_is_told(daemon: InProcessDaemon) -> None:
    await hire(daemon, USED, TOO_MUCH)
    numbers = await together(daemon, "one", "two", "three")
    [run] = await runs_of(daemon, "kai")
    assert (run["status"], run["error_kind"], run["envelopes"]) == ("failed", "over_budget", numbers)
    assert (run["tokens_in"], run["tokens_out"], run["cost"]) == (800, 100, 0.25)
    for number in numbers:
        found = await daemon.get(number)
        assert (found["status"], found["attempts"], found["waits"]) == ("failed", 1, None)
        assert found["last_error"]["text"] == "it used 900 of its 500 tokens for a run"
    [told] = await notices(daemon, "nex")
    assert all(number in told for number in numbers) and "hiboss envelope retry" in told
    await idle_after(daemon, hours=30)
    assert len(await runs_of(daemon, "kai")) == 1  # nothing tries it again


@frozen(quiet=False, provider_modules=MODULES)
async def test_the_agent_goes_on_with_other_mail_at_once(daemon: InProcessDaemon) -> None:
    await hire(daemon, TOO_MUCH)
    await together(daemon, "one")
    now = await status_of(daemon, "kai")
    assert (now["state"], now["due"]) == ("idle", 0)
    staged(room(daemon), ("final", "well"))
    [number] = await idle_after_send(daemon, "agent:kai", who="nex", text="two")
    assert (await daemon.get(number))["status"] == "done"
    assert [one["status"] for one in await runs_of(daemon, "kai")] == ["failed", "completed"]


@frozen(quiet=False, provider_modules=MODULES)
async def test_a_retry_by_hand_gives_each_of_them_a_turn_again(daemon: InProcessDaemon) -> None:
    await hire(daemon, TOO_MUCH)
    first, second = await together(daemon, "one", "two")
    staged(room(daemon), ("final", "well"))
    await idle_after_ask(daemon, "envelope.retry", ids=[first, second])
    assert [(await daemon.get(one))["status"] for one in (first, second)] == ["done", "done"]
    # What failed before is alone in its turn, so that one of them cannot cost the other once more.
    assert [one["envelopes"] for one in (await runs_of(daemon, "kai"))[1:]] == [[first], [second]]
    assert [(await daemon.get(one))["attempts"] for one in (first, second)] == [1, 1]


@frozen(quiet=False, provider_modules=MODULES)
async def test_one_that_failed_before_is_given_up_with_its_count(daemon: InProcessDaemon) -> None:
    await hire(daemon, ("fail", "rejected", "not now", True))
    [number] = await together(daemon, "one")
    assert (await daemon.get(number))["waits"] == "retry"
    staged(room(daemon), TOO_MUCH)
    await idle_after(daemon, seconds=10)
    found = await daemon.get(number)
    assert (found["status"], found["attempts"], found["last_error"]["kind"]) == ("failed", 2, "over_budget")


@frozen(quiet=False, provider_modules=MODULES)
async def test_a_task_in_the_background_fails_too_and_its_giver_is_told(daemon: InProcessDaemon) -> None:
    await hire(daemon, TOO_MUCH)
    [number] = (await daemon.ask("agent.background", who="kai", task="count it"))["ids"]
    await idle_after(daemon)
    found = await daemon.get(number)
    assert (found["status"], found["attempts"]) == ("failed", 1)
    assert [one["kind"] for one in await runs_of(daemon, "kai")] == ["background"]
    assert any(number in told for told in await notices(daemon, "kai"))


@frozen(quiet=False, provider_modules=MODULES)
async def test_what_the_turn_took_meanwhile_is_given_up_with_it(daemon: InProcessDaemon) -> None:
    await hire(daemon, ("wait", "go"), TOO_MUCH, busy="steer")
    [first] = await daemon.send("agent:kai", who="boss", from_="user:boss", text="begin")
    await daemon.until(lambda: (room(daemon) / "turns").exists())
    [second] = await daemon.send("agent:kai", who="boss", from_="user:boss", text="and this")
    given = "SELECT 1 FROM run_envelope WHERE envelope = ?"
    await daemon.until(lambda: daemon.rows(given, int(second[1:])))
    (room(daemon) / "go").touch()
    await idle_after(daemon)
    assert [(await daemon.get(one))["status"] for one in (first, second)] == ["failed", "failed"]
    [run] = await runs_of(daemon, "kai")
    assert run["envelopes"] == [first, second]


# --- how long the lane waits ----------------------------------------------------------


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
