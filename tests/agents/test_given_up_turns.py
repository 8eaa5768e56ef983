"""Turns that failed and are not repeated, like one over its budget: their envelopes fail at once. Frozen clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
