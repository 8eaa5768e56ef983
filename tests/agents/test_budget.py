"""Daily budgets: an agent that has used its tokens or dollars is paused until the boss's next midnight."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import (
    hire,
    idle_after,
    idle_after_ask,
    idle_after_restart,
    idle_after_send,
    notices,
    runs_of,
    status_of,
)

# Its program reports the usage that the message names: {"use": …}.
SPENDER = """
used = {"tokens_in": 30, "tokens_out": 10, "cost": 0.5} if "nothing" not in TEXTS[-1] else {}
print(json.dumps({"hiboss": "usage", **used}))
print("done: " + TEXTS[-1])
"""


async def ask(daemon: InProcessDaemon, text: str = "work", **later: float) -> str:
    """Send kai something; return the status of its envelope at the end."""
    [number] = await daemon.send("agent:kai", who="boss", text=text, from_="user:boss")
    await idle_after(daemon, **later)
    return str((await daemon.get(number))["status"])


async def limit_asks(daemon: InProcessDaemon) -> list[dict[str, Any]]:
    """Return what agents asked because they had reached a limit, oldest first."""
    page = await daemon.ask("ask.list", state="all", page_size=100)
    return [one for one in reversed(page["asks"]) if one["kind"] == "limit"]


async def limit(daemon: InProcessDaemon, **limits: Any) -> None:
    await daemon.ask("agent.set", name="kai", **limits)


async def used_up(daemon: InProcessDaemon) -> None:
    """Let kai use up its tokens of a day: a second message waits."""
    await hire(daemon, "kai", SPENDER, daily_tokens=40)
    assert [await ask(daemon), await ask(daemon)] == ["done", "pending"]


async def facts(daemon: InProcessDaemon, *names: str) -> tuple[Any, ...]:
    """Return what the status of kai says."""
    status = await status_of(daemon, "kai")
    return tuple(status[name] for name in names)


@frozen()
async def test_tokens_of_a_day_used_up_pause_the_agent_until_midnight(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", SPENDER, daily_tokens=80)
    assert [await ask(daemon, "one"), await ask(daemon, "two")] == ["done", "done"]
    assert await facts(daemon, "tokens_today", "daily_tokens", "state") == (80, 80, "idle")
    assert await limit_asks(daemon) == []

    assert await ask(daemon, "three") == "pending"  # no run begins above the budget
    assert await facts(daemon, "state", "why") == ("paused", "it has used 80 of its 80 tokens a day")
    assert await facts(daemon, "until") == ("2030-06-02T00:00:00.000Z",)
    [asked] = await limit_asks(daemon)
    assert asked["question"].startswith("agent:kai is paused: it has used 80 of its 80 tokens a day")
    assert (asked["state"], asked["options"]) == ("open", ["go on", "wait until tomorrow"])
    assert (asked["asker"], asked["asked"]) == ("agent:kai", "user:boss")
    assert await notices(daemon) == []

    assert await ask(daemon, "four") == "pending"
    await idle_after(daemon, hours=11, minutes=59)
    assert len(await runs_of(daemon, "kai")) == 2
    assert [one["state"] for one in await limit_asks(daemon)] == ["open"]
    await idle_after(daemon, minutes=1)
    assert (await runs_of(daemon, "kai"))[2]["text"] == "done: four"  # both, in one turn
    assert await facts(daemon, "state", "tokens_today", "why", "until") == ("idle", 40, None, None)
    [asked] = await limit_asks(daemon)
    assert (asked["state"], asked["comment"]) == ("cancelled", "it is not paused any more")


@frozen()
async def test_dollars_of_a_day_used_up_pause_the_agent_until_midnight(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", SPENDER, daily_cost=0.75)
    assert [await ask(daemon), await ask(daemon), await ask(daemon)] == ["done", "done", "pending"]
    assert await facts(daemon, "cost_today", "why") == (1.0, "it has used $1.00 of its $0.75 a day")
    await idle_after(daemon, hours=12)
    assert await facts(daemon, "state", "cost_today", "due") == ("idle", 0.5, 0)
    [asked] = await limit_asks(daemon)
    assert "$1.00 of its $0.75" in asked["question"]


@frozen()
async def test_what_uses_nothing_up_is_never_stopped(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", SPENDER, daily_tokens=1, daily_cost=0.01)
    for _ in range(3):
        assert await ask(daemon, "nothing") == "done"
    assert [await ask(daemon, "work"), await ask(daemon, "nothing")] == ["done", "pending"]


@frozen()
async def test_what_others_use_up_does_not_count(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", SPENDER, daily_tokens=40)
    await hire(daemon, "zoe", SPENDER)
    await idle_after_send(daemon, "agent:zoe")
    assert (await status_of(daemon, "zoe"))["tokens_today"] == 40
    assert [await ask(daemon), await ask(daemon)] == ["done", "pending"]


@frozen(quiet=False)
async def test_a_turn_that_failed_has_used_up_nothing_that_is_known(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", "sys.exit(1)", daily_tokens=10)
    assert await ask(daemon) == "pending"
    assert await facts(daemon, "tokens_today", "state") == (0, "retrying")


@frozen(quiet=False)
async def test_what_a_turn_said_it_used_up_counts_also_when_it_fails(daemon: InProcessDaemon) -> None:
    say = 'print(json.dumps({"hiboss": "usage", "tokens_in": 7, "cost": 0.5})); sys.exit(1)'
    await hire(daemon, "kai", f"import json; {say}", daily_tokens=10)
    assert await ask(daemon) == "pending"
    assert await facts(daemon, "tokens_today", "cost_today", "state") == (7, 0.5, "retrying")


# --- resume ------------------------------------------------------------------------------------


@frozen()
async def test_let_go_on_by_the_boss_it_counts_anew_today(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", SPENDER, daily_tokens=80)
    assert [await ask(daemon) for _ in range(3)] == ["done", "done", "pending"]
    await idle_after(daemon, minutes=1)
    assert (await daemon.ask("agent.resume", name="kai"))["changed"]
    await idle_after(daemon)
    assert await facts(daemon, "state", "tokens_today", "due") == ("idle", 120, 0)
    assert await facts(daemon, "counted_since") != (None,)  # of which 40 since then
    assert [await ask(daemon), await ask(daemon)] == ["done", "pending"]  # another 80, and no more
    assert [one["state"] for one in await limit_asks(daemon)] == ["cancelled", "open"]
    await idle_after(daemon, hours=12)
    tomorrow = await status_of(daemon, "kai")
    assert (tomorrow["tokens_today"], tomorrow["counted_since"]) == (40, None)


@frozen()
async def test_the_number_zero_takes_a_limit_away(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", SPENDER, daily_tokens=40, daily_cost=0.5)
    await limit(daemon, daily_tokens=0)
    found = await status_of(daemon, "kai")
    assert (found["daily_tokens"], found["daily_cost"]) == (None, 0.5)
    await limit(daemon, daily_cost=0)
    assert (await status_of(daemon, "kai"))["daily_cost"] is None
    assert [await ask(daemon) for _ in range(3)] == ["done"] * 3


@frozen()
async def test_a_limit_lowered_below_what_was_used_stops_the_next_turn(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", SPENDER)
    assert await ask(daemon) == "done"
    await limit(daemon, daily_tokens=40)
    assert await ask(daemon) == "pending"


@frozen()
async def test_a_limit_that_is_raised_or_taken_away_lets_it_go_on(daemon: InProcessDaemon) -> None:
    await used_up(daemon)
    await limit(daemon, daily_tokens=80)
    await idle_after(daemon)
    assert (await status_of(daemon, "kai"))["due"] == 0
    assert await ask(daemon) == "pending"
    await limit(daemon, daily_tokens=0)
    await idle_after(daemon)
    assert (await status_of(daemon, "kai"))["due"] == 0
    assert (await status_of(daemon, "kai"))["state"] == "idle"


@frozen()
async def test_another_word_about_a_paused_agent_does_not_let_it_go_on(daemon: InProcessDaemon) -> None:
    await used_up(daemon)
    await limit(daemon, description="a spender", daily_cost=100)
    await idle_after(daemon)
    assert await facts(daemon, "state", "due") == ("paused", 1)
    assert [one["state"] for one in await limit_asks(daemon)] == ["open"]


@frozen()
async def test_midnight_comes_also_for_a_daemon_that_was_closed(daemon: InProcessDaemon) -> None:
    await used_up(daemon)
    await idle_after_restart(daemon, hours=3)
    assert (await status_of(daemon, "kai"))["state"] == "paused"
    assert [one["state"] for one in await limit_asks(daemon)] == ["open"]
    await idle_after_restart(daemon, hours=10)
    assert (await status_of(daemon, "kai"))["due"] == 0


# --- what the boss answers ---------------------------------------------------------------------


@frozen()
async def test_the_answer_go_on_resumes_it_with_the_same_amount_again(daemon: InProcessDaemon) -> None:
    await used_up(daemon)
    [asked] = await limit_asks(daemon)
    await idle_after(daemon, minutes=1)
    await idle_after_ask(daemon, "ask.answer", id=asked["id"], choice="go on")
    assert await facts(daemon, "state", "due", "tokens_today") == ("idle", 0, 80)
    assert await ask(daemon) == "pending"  # and no more
    assert [one["state"] for one in await limit_asks(daemon)] == ["answered", "open"]


@frozen()
async def test_the_answer_to_wait_changes_nothing_and_is_not_asked_again_today(
    daemon: InProcessDaemon,
) -> None:
    await used_up(daemon)
    [asked] = await limit_asks(daemon)
    await daemon.ask("ask.answer", id=asked["id"], choice="wait until tomorrow")
    assert await ask(daemon) == "pending"
    assert (await status_of(daemon, "kai"))["state"] == "paused"
    assert [one["state"] for one in await limit_asks(daemon)] == ["answered"]
    await idle_after(daemon, hours=12)
    assert (await status_of(daemon, "kai"))["due"] == 0


@frozen()
async def test_what_is_asked_ends_when_it_is_decided_in_another_way(daemon: InProcessDaemon) -> None:
    await used_up(daemon)
    await limit(daemon, daily_tokens=80)
    await idle_after(daemon)
    assert [one["state"] for one in await limit_asks(daemon)] == ["cancelled"]
    assert await ask(daemon) == "pending"
    await daemon.ask("agent.pause", name="kai", reason="a day off")
    [_, second] = await limit_asks(daemon)
    assert (second["state"], second["comment"]) == ("cancelled", "it was paused: a day off")
    await daemon.ask("agent.resume", name="kai")  # it is over its budget, and asks again
    await idle_after(daemon)
    assert [one["state"] for one in await limit_asks(daemon)] == ["cancelled", "cancelled", "open"]


@frozen()
async def test_the_ask_of_a_deleted_agent_ends(daemon: InProcessDaemon) -> None:
    await used_up(daemon)
    await daemon.ask("agent.delete", name="kai")
    assert [one["state"] for one in await limit_asks(daemon)] == ["cancelled"]


@frozen()
async def test_a_task_in_the_background_of_an_agent_that_fetches_goes_on_too(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", SPENDER, daily_tokens=40)
    await limit(daemon, mode="pull")
    await idle_after_ask(daemon, "agent.background", "kai", task="one")
    second = await idle_after_ask(daemon, "agent.background", "kai", task="two")
    assert (await daemon.get(second["ids"][0]))["status"] == "pending"
    [asked] = await limit_asks(daemon)
    await idle_after(daemon, minutes=1)
    await idle_after_ask(daemon, "ask.answer", id=asked["id"], choice="go on")
    assert (await daemon.get(second["ids"][0]))["status"] == "done"


# --- tasks in the background count too ---------------------------------------------------------


@frozen()
async def test_tasks_in_the_background_use_the_same_budget_and_go_on_at_midnight(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon, "kai", SPENDER, daily_tokens=40)
    first = await idle_after_ask(daemon, "agent.background", "kai", task="one")
    # The result is a message for kai, and needs a turn.
    assert await facts(daemon, "tokens_today", "state", "due") == (40, "paused", 1)
    second = await idle_after_ask(daemon, "agent.background", "kai", task="two")
    assert [(await daemon.get(one["ids"][0]))["status"] for one in (first, second)] == ["done", "pending"]
    await limit(daemon, daily_tokens=1000)
    await idle_after(daemon, hours=12)
    assert (await daemon.get(second["ids"][0]))["status"] == "done"


# --- days of another length --------------------------------------------------------------------


async def used_up_at(daemon: InProcessDaemon, zone: str) -> str:
    """Let kai use up its budget in this time zone; return until when it is paused."""
    await daemon.ask("boss.set", timezone=zone)
    await used_up(daemon)
    return str((await status_of(daemon, "kai"))["until"])


@frozen(at=datetime(2030, 6, 1, 20, tzinfo=UTC))
async def test_midnight_is_that_of_the_boss(daemon: InProcessDaemon) -> None:
    """04:00 of June 2 in Shanghai."""
    assert await used_up_at(daemon, "Asia/Shanghai") == "2030-06-02T16:00:00.000Z"
    await idle_after(daemon, hours=19, minutes=59)
    assert (await status_of(daemon, "kai"))["due"] == 1
    await idle_after(daemon, minutes=1)
    assert (await status_of(daemon, "kai"))["due"] == 0


@frozen(at=datetime(2030, 3, 31, 0, 30, tzinfo=UTC))
async def test_a_day_of_23_hours(daemon: InProcessDaemon) -> None:
    """01:30 in Berlin, before the clocks go forward."""
    assert await used_up_at(daemon, "Europe/Berlin") == "2030-03-31T22:00:00.000Z"
    await idle_after(daemon, hours=21, minutes=30)
    assert (await status_of(daemon, "kai"))["due"] == 0


@frozen(at=datetime(2030, 10, 26, 22, 30, tzinfo=UTC))
async def test_a_day_of_25_hours(daemon: InProcessDaemon) -> None:
    """00:30 in Berlin, before the clocks go back; what is used in the hour that comes twice counts."""
    await daemon.ask("boss.set", timezone="Europe/Berlin")
    await hire(daemon, "kai", SPENDER, daily_tokens=120)
    assert [await ask(daemon), await ask(daemon, hours=2), await ask(daemon, hours=1)] == ["done"] * 3
    assert await ask(daemon) == "pending"
    assert (await status_of(daemon, "kai"))["until"] == "2030-10-27T23:00:00.000Z"
    await idle_after(daemon, hours=21, minutes=29)
    assert (await status_of(daemon, "kai"))["due"] == 1
    await idle_after(daemon, minutes=1)
    assert (await status_of(daemon, "kai"))["due"] == 0


@frozen(at=datetime(2030, 4, 25, 20, tzinfo=UTC))
async def test_a_midnight_that_does_not_come(daemon: InProcessDaemon) -> None:
    """In Cairo the clocks go from 24:00 to 01:00."""
    assert await used_up_at(daemon, "Africa/Cairo") == "2030-04-25T22:00:00.000Z"
    await idle_after(daemon, hours=2)
    assert await facts(daemon, "due", "tokens_today") == (0, 40)


@frozen(at=datetime(2030, 11, 3, 4, 30, tzinfo=UTC))
async def test_a_midnight_that_comes_twice(daemon: InProcessDaemon) -> None:
    """00:30 in Havana; at 01:00 it is 00:00 again, and still the same day."""
    await daemon.ask("boss.set", timezone="America/Havana")
    await hire(daemon, "kai", SPENDER, daily_tokens=40)
    assert await ask(daemon) == "done"
    await idle_after(daemon, hours=1)
    assert (await status_of(daemon, "kai"))["tokens_today"] == 40
    assert await ask(daemon) == "pending"
    assert (await status_of(daemon, "kai"))["until"] == "2030-11-04T05:00:00.000Z"
