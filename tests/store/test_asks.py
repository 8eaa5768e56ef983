"""Asks and time: reminders, the end, restarts, a clock that is set; and what holds while things are down."""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hiboss.core import clock
from hiboss.core.errors import AskSettled, HibossError, StoreLocked
from hiboss.store import ask_answers, ask_times, asks
from hiboss.store.ask_closing import Settlement
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import hire, idle_after

SCRIPTED = {"adapter_modules": "hiboss.testing.scripted_adapter"}
NIGHT = datetime(2030, 6, 1, 23, 0, tzinfo=UTC)


async def asked(daemon: InProcessDaemon, who: str = "nex", **params: Any) -> str:
    """Ask, and return the id of the ask."""
    return str((await daemon.ask("ask.create", who, **{"question": "Deploy?", **params}))["ask"]["id"])


async def ask(daemon: InProcessDaemon, number: str) -> dict[str, Any]:
    found: dict[str, Any] = (await daemon.ask("ask.get", id=number))["ask"]
    return found


async def reminders(daemon: InProcessDaemon, who: str = "boss") -> list[str]:
    return [text for text in await daemon.inbox(who) if "has waited for your answer" in text]


# --- reminders -------------------------------------------------------------------------


@frozen()
async def test_who_is_asked_is_reminded_after_5_15_and_45_minutes_and_2_hours_and_no_more(
    daemon: InProcessDaemon,
) -> None:
    number = await asked(daemon)
    counts = []
    for minutes in (4.9, 0.1, 9.9, 0.1, 29.9, 0.1, 74.9, 0.1, 6000):
        await daemon.move(minutes=minutes)
        counts.append(len(await reminders(daemon)))
    assert counts == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    first, *_ = await reminders(daemon)
    assert first.startswith(
        f"agent:nex has waited for your answer to {number} since 2030-06-01T12:00:00+00:00:"
    )
    assert first.endswith(
        f"Deploy?\n\n1. yes\n2. no\nTo answer {number}: hiboss ask answer {number} --choice yes"
    )
    assert (await ask(daemon, number))["reminders"] == 4


@frozen()
async def test_a_settled_ask_is_not_reminded_of(daemon: InProcessDaemon) -> None:
    numbers = [await asked(daemon, question=word) for word in ("one", "two")]
    await daemon.ask("ask.answer", id=numbers[0], choice="yes")
    await daemon.ask("ask.cancel", "nex", id=numbers[1])
    await daemon.move(hours=3)
    assert await reminders(daemon) == [] and daemon.scheduler.next_wake is None


@frozen()
async def test_reminders_that_were_missed_while_no_daemon_ran_are_one(daemon: InProcessDaemon) -> None:
    await asked(daemon)
    await daemon.restart(minutes=50)
    assert len(await reminders(daemon)) == 1
    await daemon.move(minutes=69)
    assert len(await reminders(daemon)) == 1
    await daemon.move(minutes=1)
    assert len(await reminders(daemon)) == 2


@frozen(at=NIGHT, quiet_hours="22:00-07:00")
async def test_an_ask_ends_in_the_quiet_hours_when_its_time_is_over(daemon: InProcessDaemon) -> None:
    number = await asked(daemon, timeout="1h", default="no")
    await daemon.move(hours=1)
    assert (await ask(daemon, number))["state"] == "expired"


@frozen()
async def test_an_agent_is_not_reminded_of_what_it_has_not_read_yet(daemon: InProcessDaemon) -> None:
    await daemon.register("tom")
    await asked(daemon, to="agent:tom")
    await daemon.move(minutes=5)
    assert await reminders(daemon, "tom") == []
    (question,) = (await daemon.ask("envelope.list", "tom"))["envelopes"]
    await daemon.ask("envelope.ack", "tom", ids=[question["id"]])
    await daemon.move(minutes=10)
    assert len(await reminders(daemon, "tom")) == 1


# --- the end ---------------------------------------------------------------------------


@frozen()
async def test_the_default_counts_when_the_time_is_over_and_both_are_told(daemon: InProcessDaemon) -> None:
    number = await asked(daemon, timeout="1h", default="no")
    await daemon.move(minutes=59)
    assert (await ask(daemon, number))["state"] == "open"
    await daemon.move(minutes=1)
    found = await ask(daemon, number)
    assert (found["state"], found["answer"], found["defaulted"]) == ("expired", "no", True)
    assert found["answered_by"] is None
    [told] = (await daemon.ask("envelope.list", "nex"))["envelopes"]
    assert told["text"] == f'Nobody answered {number} ("Deploy?") in time. The default counts: no'
    assert (told["from"], told["status"], told["message"]) == ("agent:system", "pending", found["reply"])
    assert (await daemon.inbox("boss"))[-1] == (
        f'No answer is needed any more to {number} ("Deploy?"): its time was over, so the answer is no.'
    )


@frozen()
async def test_without_a_default_an_ask_ends_without_an_answer(daemon: InProcessDaemon) -> None:
    number = await asked(daemon, timeout="1m")
    await daemon.move(minutes=1)
    found = await ask(daemon, number)
    assert (found["state"], found["answer"], found["defaulted"]) == ("expired", None, False)
    assert await daemon.inbox("nex") == [
        f'Nobody answered {number} ("Deploy?") in time. There is no default.'
    ]
    assert await refused(daemon.ask("ask.answer", id=number, choice="yes")) == (
        "ask_settled",
        f"{number} was settled before: its time was over (2030-06-01T12:01:00.000Z); "
        f"hiboss ask get {number} shows it",
    )


async def refused(call: Any) -> tuple[str, str]:
    try:
        await call
    except HibossError as error:
        return error.code, error.message
    raise AssertionError("it was not refused")


@frozen()
async def test_a_time_that_ended_while_no_daemon_ran_counts_at_the_next_start(
    daemon: InProcessDaemon,
) -> None:
    number = await asked(daemon, timeout="10m", default="yes")
    await daemon.restart(hours=5)
    found = await ask(daemon, number)
    assert (found["state"], found["answer"], found["reminders"]) == ("expired", "yes", 0)
    assert await reminders(daemon) == []


@frozen()
async def test_open_asks_survive_a_restart_and_are_answered_after_it(daemon: InProcessDaemon) -> None:
    number = await asked(daemon, timeout="10m")
    await daemon.restart()
    await daemon.ask("ask.answer", id=number, choice="yes")
    assert await daemon.inbox("nex") == [f'Answer to {number} ("Deploy?"): yes']
    await daemon.move(minutes=20)
    assert (await ask(daemon, number))["state"] == "answered"


@frozen()
async def test_an_hour_stays_an_hour_when_somebody_sets_the_clock(daemon: InProcessDaemon) -> None:
    forwards, back = [await asked(daemon, question=word, timeout="1h") for word in ("one", "two")]
    for hours in (24, -48):
        daemon.set_clock(hours=hours)
        await daemon.move(minutes=1)
        assert [(await ask(daemon, one))["state"] for one in (forwards, back)] == ["open", "open"]
        assert await reminders(daemon) == []
    await daemon.move(minutes=3)
    assert len(await reminders(daemon)) == 2
    await daemon.move(minutes=55)
    assert [(await ask(daemon, one))["state"] for one in (forwards, back)] == ["expired", "expired"]


@frozen(quiet=False)
async def test_an_ask_that_cannot_be_looked_at_does_not_keep_the_others(daemon: InProcessDaemon) -> None:
    bad, good = [await asked(daemon, question=word, timeout="1m") for word in ("one", "two")]
    daemon.change("UPDATE ask SET asked = 999 WHERE id = 1")
    await daemon.move(minutes=1)
    assert (await ask(daemon, good))["state"] == "expired"
    assert bad == "q1"
    daemon.change("UPDATE ask SET asked = (SELECT asked FROM ask WHERE id = 2)")
    await daemon.move(minutes=1)
    assert (await ask(daemon, bad))["state"] == "expired"


# --- a store that cannot be written ----------------------------------------------------


@frozen(quiet=False, lock_wait_seconds=0.05)
async def test_a_locked_store_refuses_asks_and_answers_and_loses_none(daemon: InProcessDaemon) -> None:
    number = await asked(daemon, timeout="1m", default="no")
    with daemon.locked():
        for call in (
            asked(daemon, question="another"),
            daemon.ask("ask.answer", id=number, choice="yes"),
            daemon.ask("ask.cancel", "nex", id=number),
        ):
            assert (await refused(call))[0] == StoreLocked.code
        daemon.tick(minutes=1)
        daemon.scheduler.wakeup()
        assert (await ask(daemon, number))["state"] == "open"
    await daemon.settle()
    assert (await ask(daemon, number))["answer"] == "no"
    assert len((await daemon.ask("ask.list", state="all"))["asks"]) == 1


# --- the breaker -----------------------------------------------------------------------


@frozen(quiet=False)
async def test_asks_stay_while_the_breaker_is_pulled_and_the_answer_waits_for_its_release(
    daemon: InProcessDaemon,
) -> None:
    program = await hire(daemon, "worker", 'print("NO_REPLY")')
    number = await asked(daemon, "worker")
    await daemon.ask("breaker.pull", reason="stop")
    await daemon.ask("ask.answer", id=number, choice="yes")
    await daemon.move(minutes=1)
    assert program.turns() == []
    assert (await ask(daemon, number))["state"] == "answered"
    await daemon.ask("breaker.release")
    await idle_after(daemon)
    assert [f"Answer to {number}" in turn for turn in program.turns()] == [True]


# --- one winner ------------------------------------------------------------------------


@frozen()
async def test_of_answers_cancels_and_ends_in_one_group_exactly_one_wins(daemon: InProcessDaemon) -> None:
    ways = list(itertools.permutations(("answer", "cancel", "end")))
    numbers = [int((await asked(daemon, question=str(one), timeout="1h", default="no"))[1:]) for one in ways]
    store, now = daemon.daemon.wiring._store, clock.now()
    boss, nex = [
        daemon.rows("SELECT id FROM address WHERE fold = ?", one)[0]["id"]
        for one in ("user:boss", "agent:nex")
    ]
    how = {
        "answer": lambda tx, number: ask_answers.answer(tx, number, "yes", boss, now),
        "cancel": lambda tx, number: ask_answers.cancel(tx, number, nex, now),
        "end": lambda tx, number: asks.settle(tx, number, Settlement("expired", "no", None), now),
    }
    words = {"answer": "answered", "cancel": "cancelled", "end": "expired"}
    for number, way in zip(numbers, ways, strict=True):
        writes = [store.write(lambda tx, one=one, number=number: how[one](tx, number)) for one in way]
        first, *late = await asyncio.gather(*writes, return_exceptions=True)
        assert first["state"] == words[way[0]]
        assert all(isinstance(one, AskSettled) and one.state == words[way[0]] for one in late)
    told = daemon.rows("SELECT count(*) FROM message WHERE json_extract(metadata, '$.ask') IS NOT NULL")[0][0]
    asks_made, replies = len(ways), sum(way[0] != "cancel" for way in ways)
    assert told == asks_made + replies  # who cancelled it knows; nobody was told twice


@frozen()
async def test_an_ask_that_was_settled_meanwhile_is_left_alone_by_the_scheduler(
    daemon: InProcessDaemon,
) -> None:
    number = int((await asked(daemon, timeout="1m"))[1:])
    await daemon.ask("ask.answer", id=number, choice="yes")
    store, later = daemon.daemon.wiring._store, clock.now() + 60_000
    await store.write(lambda tx: ask_times.wake(tx, number, later))
    assert (await ask(daemon, f"q{number}"))["state"] == "answered"


# --- buttons ---------------------------------------------------------------------------


@frozen(**SCRIPTED)
async def test_the_question_and_its_reminders_are_posted_with_a_button_for_each_option(
    daemon: InProcessDaemon,
) -> None:
    phone = Path(daemon.home.path).parent / "phone"
    await daemon.ask("boss.set", reach=await daemon.bind(phone))
    number = await asked(daemon, options=["yes", "x" * 100])
    await daemon.move(minutes=5)
    found = daemon.rows("SELECT label, argument, pressed_at FROM button ORDER BY id")
    assert [row["argument"] for row in found] == ["1:0", "1:1", "1:0", "1:1"]
    assert [row["label"] for row in found][:2] == ["yes", "x" * 39 + "…"]
    await daemon.ask("ask.answer", id=number, choice="1")
    found = daemon.rows("SELECT pressed_at FROM button")
    assert all(row["pressed_at"] is not None for row in found)
    await daemon.until(lambda: len((phone / "posts.jsonl").read_text().splitlines()) == 2)
    posts = [json.loads(line)["chunk"] for line in (phone / "posts.jsonl").read_text().splitlines()]
    assert all(f"2. {'x' * 100}" in post for post in posts)
