"""Daily budgets: who has used up its tokens or dollars pauses until the boss's next midnight."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.support.clockwork import Office, frozen
from tests.support.thinkers import calm, hire, notices, runs_of, standing

# It says itself what it uses up: {"use": …} in what it is told.
SPENDER = """
used = {"tokens_in": 30, "tokens_out": 10, "cost": 0.5} if "nothing" not in TEXTS[-1] else {}
print(json.dumps({"hiboss": "usage", **used}))
print("done: " + TEXTS[-1])
"""


async def ask(office: Office, text: str = "work", **later: float) -> str:
    """Have kai do something; how its envelope stands at the end."""
    [number] = await office.send("agent:kai", who="boss", text=text, from_="user:boss")
    await calm(office, **later)
    return str((await office.get(number))["status"])


async def limit(office: Office, **limits: Any) -> None:
    await office.ask("agent.set", name="kai", **limits)


@frozen()
async def test_tokens_of_a_day_used_up_pause_the_agent_until_midnight(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=80)
    assert [await ask(office, "one"), await ask(office, "two")] == ["done", "done"]
    now = await standing(office, "kai")
    assert (now["tokens_today"], now["daily_tokens"], now["state"]) == (80, 80, "idle")
    assert await notices(office) == []

    assert await ask(office, "three") == "pending"  # nothing begins that would go beyond
    now = await standing(office, "kai")
    assert (now["state"], now["why"]) == ("paused", "it has used 80 of its 80 tokens a day")
    assert now["until"] == "2030-06-02T00:00:00.000Z"
    [told] = await notices(office)
    assert told.startswith("agent:kai is paused: it has used 80 of its 80 tokens a day")
    assert "tomorrow" in told and "hiboss agent resume --as boss --name kai" in told

    assert await ask(office, "four") == "pending"
    await calm(office, hours=11, minutes=59)
    assert len(await runs_of(office, "kai")) == 2 and len(await notices(office)) == 1
    await calm(office, minutes=1)
    assert (await runs_of(office, "kai"))[2]["text"] == "done: four"  # both, in one turn
    now = await standing(office, "kai")
    assert (now["state"], now["tokens_today"], now["why"], now["until"]) == ("idle", 40, None, None)
    assert len(await notices(office)) == 1


@frozen()
async def test_dollars_of_a_day_used_up_pause_the_agent_until_midnight(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_cost=0.75)
    assert [await ask(office), await ask(office), await ask(office)] == ["done", "done", "pending"]
    now = await standing(office, "kai")
    assert (now["cost_today"], now["why"]) == (1.0, "it has used $1.00 of its $0.75 a day")
    await calm(office, hours=12)
    now = await standing(office, "kai")
    assert (now["state"], now["cost_today"], now["due"]) == ("idle", 0.5, 0)
    [told] = await notices(office)
    assert "$1.00 of its $0.75" in told


@frozen()
async def test_what_uses_nothing_up_is_never_stopped(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=1, daily_cost=0.01)
    for _ in range(3):
        assert await ask(office, "nothing") == "done"
    assert [await ask(office, "work"), await ask(office, "nothing")] == ["done", "pending"]


@frozen()
async def test_what_others_use_up_does_not_count(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=40)
    await hire(office, "zoe", SPENDER)
    await office.send("agent:zoe")
    await calm(office)
    assert (await standing(office, "zoe"))["tokens_today"] == 40
    assert [await ask(office), await ask(office)] == ["done", "pending"]


@frozen(quiet=False)
async def test_a_turn_that_failed_has_used_up_nothing_that_is_known(office: Office) -> None:
    await hire(office, "kai", "sys.exit(1)", daily_tokens=10)
    assert await ask(office) == "pending"
    now = await standing(office, "kai")
    assert (now["tokens_today"], now["state"]) == (0, "retrying")


@frozen(quiet=False)
async def test_what_a_turn_said_it_used_up_counts_also_when_it_fails(office: Office) -> None:
    say = 'print(json.dumps({"hiboss": "usage", "tokens_in": 7, "cost": 0.5})); sys.exit(1)'
    await hire(office, "kai", f"import json; {say}", daily_tokens=10)
    assert await ask(office) == "pending"
    now = await standing(office, "kai")
    assert (now["tokens_today"], now["cost_today"], now["state"]) == (7, 0.5, "retrying")


# --- letting it go on --------------------------------------------------------------------------


@frozen()
async def test_let_go_on_by_the_boss_it_counts_anew_today(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=80)
    assert [await ask(office) for _ in range(3)] == ["done", "done", "pending"]
    await calm(office, minutes=1)
    assert (await office.ask("agent.resume", name="kai"))["changed"]
    await calm(office)
    now = await standing(office, "kai")
    assert (now["state"], now["tokens_today"], now["due"]) == ("idle", 120, 0)
    assert now["counted_since"] is not None  # of which 40 since then
    assert [await ask(office), await ask(office)] == ["done", "pending"]  # another 80, and no more
    assert len(await notices(office)) == 2
    await calm(office, hours=12)
    tomorrow = await standing(office, "kai")
    assert (tomorrow["tokens_today"], tomorrow["counted_since"]) == (40, None)


@frozen()
async def test_the_number_zero_takes_a_limit_away(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=40, daily_cost=0.5)
    await limit(office, daily_tokens=0)
    found = await standing(office, "kai")
    assert (found["daily_tokens"], found["daily_cost"]) == (None, 0.5)
    await limit(office, daily_cost=0)
    assert (await standing(office, "kai"))["daily_cost"] is None
    assert [await ask(office) for _ in range(3)] == ["done"] * 3


@frozen()
async def test_a_limit_lowered_below_what_was_used_stops_the_next_turn(office: Office) -> None:
    await hire(office, "kai", SPENDER)
    assert await ask(office) == "done"
    await limit(office, daily_tokens=40)
    assert await ask(office) == "pending"


@frozen()
async def test_a_limit_that_is_raised_or_taken_away_lets_it_go_on(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=40)
    assert [await ask(office), await ask(office)] == ["done", "pending"]
    await limit(office, daily_tokens=80)
    await calm(office)
    assert (await standing(office, "kai"))["due"] == 0
    assert await ask(office) == "pending"
    await limit(office, daily_tokens=0)
    await calm(office)
    assert (await standing(office, "kai"))["due"] == 0
    assert (await standing(office, "kai"))["state"] == "idle"


@frozen()
async def test_another_word_about_a_paused_agent_does_not_let_it_go_on(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=40)
    assert [await ask(office), await ask(office)] == ["done", "pending"]
    await limit(office, description="a spender", daily_cost=100)
    await calm(office)
    now = await standing(office, "kai")
    assert (now["state"], now["due"]) == ("paused", 1) and len(await notices(office)) == 1


@frozen()
async def test_who_was_paused_by_the_boss_does_not_go_on_at_midnight(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=40)
    assert await ask(office) == "done"
    await office.ask("agent.pause", name="kai", reason="a day off")
    assert await ask(office) == "pending"
    await calm(office, hours=24)
    now = await standing(office, "kai")
    assert (now["state"], now["why"], now["due"]) == ("paused", "a day off", 1) and await notices(
        office
    ) == []


@frozen()
async def test_midnight_comes_also_for_a_daemon_that_was_closed(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=40)
    assert [await ask(office), await ask(office)] == ["done", "pending"]
    await office.restart(hours=3)
    await calm(office)
    assert (await standing(office, "kai"))["state"] == "paused" and len(await notices(office)) == 1
    await office.restart(hours=10)
    await calm(office)
    assert (await standing(office, "kai"))["due"] == 0


# --- tasks in the background count too ---------------------------------------------------------


@frozen()
async def test_tasks_in_the_background_use_the_same_budget_and_go_on_at_midnight(office: Office) -> None:
    await hire(office, "kai", SPENDER, daily_tokens=40)
    first = await office.ask("agent.background", "kai", task="one")
    await calm(office)
    # What came back is a message for kai, and needs a turn of its own.
    now = await standing(office, "kai")
    assert (now["tokens_today"], now["state"], now["due"]) == (40, "paused", 1)
    second = await office.ask("agent.background", "kai", task="two")
    await calm(office)
    statuses = [(await office.get(one["ids"][0]))["status"] for one in (first, second)]
    assert statuses == ["done", "pending"]
    await limit(office, daily_tokens=1000)
    await calm(office, hours=12)
    assert (await office.get(second["ids"][0]))["status"] == "done"


# --- days of another length --------------------------------------------------------------------


async def used_up_at(office: Office, zone: str) -> str:
    """Until when kai is paused that has used up its budget there just now."""
    await office.ask("boss.set", timezone=zone)
    await hire(office, "kai", SPENDER, daily_tokens=40)
    assert [await ask(office), await ask(office)] == ["done", "pending"]
    return str((await standing(office, "kai"))["until"])


@frozen(at=datetime(2030, 6, 1, 20, tzinfo=UTC))
async def test_midnight_is_that_of_the_boss(office: Office) -> None:
    """04:00 of June 2 in Shanghai."""
    assert await used_up_at(office, "Asia/Shanghai") == "2030-06-02T16:00:00.000Z"
    await calm(office, hours=19, minutes=59)
    assert (await standing(office, "kai"))["due"] == 1
    await calm(office, minutes=1)
    assert (await standing(office, "kai"))["due"] == 0


@frozen(at=datetime(2030, 3, 31, 0, 30, tzinfo=UTC))
async def test_a_day_of_23_hours(office: Office) -> None:
    """01:30 in Berlin, before the clocks go forward."""
    assert await used_up_at(office, "Europe/Berlin") == "2030-03-31T22:00:00.000Z"
    await calm(office, hours=21, minutes=30)
    assert (await standing(office, "kai"))["due"] == 0


@frozen(at=datetime(2030, 10, 26, 22, 30, tzinfo=UTC))
async def test_a_day_of_25_hours(office: Office) -> None:
    """00:30 in Berlin, before the clocks go back; what is used in the hour that comes twice counts."""
    await office.ask("boss.set", timezone="Europe/Berlin")
    await hire(office, "kai", SPENDER, daily_tokens=120)
    assert [await ask(office), await ask(office, hours=2), await ask(office, hours=1)] == ["done"] * 3
    assert await ask(office) == "pending"
    assert (await standing(office, "kai"))["until"] == "2030-10-27T23:00:00.000Z"
    await calm(office, hours=21, minutes=29)
    assert (await standing(office, "kai"))["due"] == 1
    await calm(office, minutes=1)
    assert (await standing(office, "kai"))["due"] == 0


@frozen(at=datetime(2030, 4, 25, 20, tzinfo=UTC))
async def test_a_midnight_that_does_not_come(office: Office) -> None:
    """In Cairo the clocks go from 24:00 to 01:00."""
    assert await used_up_at(office, "Africa/Cairo") == "2030-04-25T22:00:00.000Z"
    await calm(office, hours=2)
    now = await standing(office, "kai")
    assert (now["due"], now["tokens_today"]) == (0, 40)


@frozen(at=datetime(2030, 11, 3, 4, 30, tzinfo=UTC))
async def test_a_midnight_that_comes_twice(office: Office) -> None:
    """00:30 in Havana; at 01:00 it is 00:00 again, and still the same day."""
    await office.ask("boss.set", timezone="America/Havana")
    await hire(office, "kai", SPENDER, daily_tokens=40)
    assert await ask(office) == "done"
    await calm(office, hours=1)
    assert (await standing(office, "kai"))["tokens_today"] == 40
    assert await ask(office) == "pending"
    assert (await standing(office, "kai"))["until"] == "2030-11-04T05:00:00.000Z"
