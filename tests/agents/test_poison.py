"""Turns that fail: repeated one envelope at a time with backoff; only an envelope that fails alone is given up. Frozen clock."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.python_agents import (
    Program,
    Run,
    hire,
    idle_after,
    idle_after_ask,
    idle_after_restart,
    idle_after_send,
    idle_after_until,
    notices,
    runs_of,
    status_of,
)

pytestmark = pytest.mark.slow

# Fails for a text that says so, and for every text while a file of that name is beside it.
PICKY = """
if os.path.exists(os.path.join(HERE, "broken")): sys.exit("nothing works")
if "poison" in TURN: sys.exit("I cannot stomach this")
print("read: " + ", ".join(TEXTS))
"""
# After these times each backoff is over, and not before: 5 s, 30 s, 2 min, 10 min, 1 h, with jitter.
OVER = (6, 34, 135, 665, 3965)
NOT_OVER = (4, 26, 105, 535, 3235)


def beside(daemon: InProcessDaemon, name: str) -> Path:
    return Path(daemon.home.path).parent / name


async def together(daemon: InProcessDaemon, *texts: str, who: str = "nex") -> list[str]:
    """Send several envelopes that wait for one turn of kai."""
    await daemon.ask("agent.pause", name="kai")
    found = [(await daemon.send("agent:kai", who=who, text=text))[0] for text in texts]
    await idle_after_ask(daemon, "agent.resume", name="kai")
    return found


async def pass_by(daemon: InProcessDaemon, *times: float) -> None:
    """Let these seconds pass, one after the other."""
    for seconds in times:
        await idle_after(daemon, seconds=seconds)


async def status(daemon: InProcessDaemon, *numbers: str) -> list[str]:
    return [(await daemon.get(number))["status"] for number in numbers]


def about(runs: list[Run]) -> list[tuple[Any, ...]]:
    return [(*one["envelopes"], one["status"]) for one in runs]


# --- a poison envelope -------------------------------------------------------------------------


@frozen(quiet=False)
async def test_a_failed_turn_is_repeated_one_by_one(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    a, poison, c = await together(daemon, "a", "poison", "c")
    assert about(await runs_of(daemon, "kai")) == [(a, poison, c, "failed")]
    assert await status(daemon, a, poison, c) == ["pending"] * 3

    await idle_after(daemon, seconds=NOT_OVER[0])
    assert len(await runs_of(daemon, "kai")) == 1
    await idle_after(daemon, seconds=OVER[0] - NOT_OVER[0])
    assert about(await runs_of(daemon, "kai"))[1:] == [(a, "completed"), (poison, "failed"), (c, "completed")]
    assert await status(daemon, a, poison, c) == ["done", "pending", "done"]
    found = await daemon.get(poison)
    assert (found["attempts"], found["waits"], found["redelivered"]) == (2, "retry", True)
    assert found["last_error"]["text"] == "it ended with exit status 1: I cannot stomach this"
    assert await daemon.inbox("nex") == ["read: a", "read: c"]


@frozen(quiet=False)
async def test_the_poison_envelope_alone_fails_and_its_sender_is_told(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    a, poison, c = await together(daemon, "a", "poison", "c")
    for number in range(5):
        assert await status(daemon, poison) == ["pending"], number
        await idle_after(daemon, seconds=NOT_OVER[number])
        assert (await daemon.get(poison))["attempts"] == number + 1
        await idle_after(daemon, seconds=OVER[number] - NOT_OVER[number])
    assert await status(daemon, a, poison, c) == ["done", "failed", "done"]
    runs = [one for one in await runs_of(daemon, "kai") if one["envelopes"] == [poison]]
    assert [one["error_kind"] for one in runs] == ["exit_status"] * 5
    [told] = await notices(daemon, "nex")
    assert told.startswith(f'Not delivered: {poison} to agent:kai. Reason: "it ended with exit status 1')
    assert f"hiboss envelope retry {poison}" in told
    assert await notices(daemon) == []  # the boss is not told about an envelope that fails alone

    await idle_after(daemon, hours=48)
    assert len(await runs_of(daemon, "kai")) == 1 + 2 + 5 and len(await notices(daemon, "nex")) == 1
    assert (await status_of(daemon, "kai"))["state"] == "idle"


@frozen(quiet=False)
async def test_one_that_was_never_in_company_fails_after_five_attempts(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    [poison] = await idle_after_send(daemon, "agent:kai", text="poison")
    for number in range(4):
        found = await daemon.get(poison)
        assert (found["status"], found["attempts"]) == ("pending", number + 1)
        await idle_after(daemon, seconds=NOT_OVER[number])
        assert (await daemon.get(poison))["attempts"] == number + 1
        await idle_after(daemon, seconds=OVER[number] - NOT_OVER[number])
    found = await daemon.get(poison)
    assert (found["status"], found["attempts"]) == ("failed", 5)
    assert about(await runs_of(daemon, "kai")) == [(poison, "failed")] * 5


@frozen(quiet=False)
async def test_what_comes_meanwhile_does_not_wait_for_the_poison(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    [poison] = await idle_after_send(daemon, "agent:kai", text="poison")
    for number in range(4):
        [good] = await idle_after_send(daemon, "agent:kai", text=f"good {number}")
        assert await status(daemon, good) == ["done"]
        await idle_after(daemon, seconds=OVER[number])
    assert await status(daemon, poison) == ["failed"]
    assert await daemon.inbox("nex", status="pending") == [
        *[f"read: good {i}" for i in range(4)],
        *await notices(daemon, "nex"),
    ]


@frozen(quiet=False)
async def test_two_poisons_fail_each_for_itself_when_others_went_well(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    found = await together(daemon, "poison 1", "fine", "poison 2")
    await pass_by(daemon, *OVER)
    assert await status(daemon, *found) == ["failed", "done", "failed"]
    assert len(await notices(daemon, "nex")) == 2


@frozen(quiet=False)
async def test_they_come_again_in_the_order_of_their_rank(daemon: InProcessDaemon) -> None:
    kai = await hire(daemon, "kai", PICKY)
    beside(daemon, "broken").touch()
    await daemon.ask("agent.pause", name="kai")
    low, normal, high = [
        (await daemon.send("agent:kai", text=one, priority=one))[0] for one in ("low", "normal", "high")
    ]
    await idle_after_ask(daemon, "agent.resume", name="kai")
    beside(daemon, "broken").unlink()
    await idle_after(daemon, seconds=OVER[0])
    assert about(await runs_of(daemon, "kai")) == [
        (low, normal, high, "failed"),  # a run lists envelopes by their ids
        (high, "completed"),
        (normal, "completed"),
        (low, "completed"),
    ]
    assert [turn.count("redelivered: true") for turn in kai.turns()] == [0, 1, 1, 1]


@frozen(quiet=False)
async def test_a_daemon_that_was_closed_meanwhile_goes_on_where_it_was(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    [poison] = await idle_after_send(daemon, "agent:kai", text="poison")
    for number in range(4):
        assert await status(daemon, poison) == ["pending"]
        await idle_after_restart(daemon, seconds=OVER[number])
    assert await status(daemon, poison) == ["failed"] and len(await runs_of(daemon, "kai")) == 5


# --- retried by a person -------------------------------------------------------------------------


async def failed_poison(daemon: InProcessDaemon) -> str:
    [poison] = await idle_after_send(daemon, "agent:kai", text="poison")
    await pass_by(daemon, *OVER[:4])
    assert await status(daemon, poison) == ["failed"]
    await idle_after(daemon, minutes=1)
    return poison


@frozen(quiet=False)
async def test_its_sender_can_have_it_tried_again(daemon: InProcessDaemon) -> None:
    kai = await hire(daemon, "kai", PICKY)
    poison = await failed_poison(daemon)
    kai.write('print("an antidote: " + TEXTS[0])')
    await idle_after_ask(daemon, "envelope.retry", "nex", ids=[poison])
    assert await status(daemon, poison) == ["done"]
    assert (await daemon.inbox("nex"))[-1] == "an antidote: poison"
    assert (await runs_of(daemon, "kai"))[-1]["envelopes"] == [poison]


@frozen(quiet=False)
async def test_tried_again_it_gets_five_attempts_again_and_its_sender_is_told_again(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon, "kai", PICKY)
    poison = await failed_poison(daemon)
    await idle_after_ask(daemon, "envelope.retry", "nex", ids=[poison])
    for _ in range(4):
        assert await status(daemon, poison) == ["pending"]
        await idle_after(daemon, seconds=OVER[4])
    assert await status(daemon, poison) == ["failed"]
    assert len(await runs_of(daemon, "kai")) == 10 and len(await notices(daemon, "nex")) == 2


# --- a provider that fails for all ---------------------------------------------------------------


async def broken_for_all(daemon: InProcessDaemon) -> list[str]:
    """Let three senders write to kai, whose program fails for everything, for some hours."""
    await daemon.register("zoe")
    beside(daemon, "broken").touch()
    found = await together(daemon, "one", "two")
    found += await daemon.send("agent:kai", who="zoe", text="three")
    await idle_after(daemon)
    await pass_by(daemon, *OVER)
    for _ in range(2):
        await idle_after(daemon, hours=1, minutes=10)
    assert await status(daemon, *found) == ["pending"] * 3
    return found


@frozen(quiet=False)
async def test_a_provider_broken_for_all_is_a_waiting_lane_with_nothing_failed(
    daemon: InProcessDaemon,
) -> None:
    await hire(daemon, "kai", PICKY)
    found = await broken_for_all(daemon)
    kai = await status_of(daemon, "kai")
    assert (kai["state"], kai["why"]) == ("waiting", "it ended with exit status 1: nothing works")
    assert kai["until"] is not None
    [told] = await notices(daemon)
    assert told.startswith("Delivery to agent:kai has failed since ") and "nothing works" in told
    assert await notices(daemon, "nex") == await notices(daemon, "zoe") == []
    [lane] = (await daemon.ask("lane.list"))["lanes"]
    assert (lane["address"], lane["state"], lane["last_error"]) == ("agent:kai", "waiting", kai["why"])
    assert lane["last_error_at"] is not None
    await daemon.ask("agent.permission.set", name="nex", level="privileged")
    [lane] = (await daemon.ask("lane.list", "nex"))["lanes"]
    assert (lane["failures"] > 0, lane["last_error"], lane["last_error_at"]) == (True, None, None)

    for _ in range(4):  # two more days
        await idle_after(daemon, hours=12)
    assert await status(daemon, *found) == ["pending"] * 3 and len(await notices(daemon)) == 1

    beside(daemon, "broken").unlink()
    await idle_after(daemon, hours=2)
    assert await status(daemon, *found) == ["done"] * 3
    assert (await status_of(daemon, "kai"))["state"] == "idle" and len(await notices(daemon)) == 1
    assert sorted(await daemon.inbox("nex")) == ["read: one", "read: two"]
    assert await daemon.inbox("zoe") == ["read: three"]


@frozen(quiet=False)
async def test_mended_but_for_one_poison_that_one_fails_alone(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    beside(daemon, "broken").touch()
    one, poison, two = await together(daemon, "one", "poison", "two")
    await pass_by(daemon, *OVER)
    await idle_after(daemon, hours=3)
    assert await status(daemon, one, poison, two) == ["pending"] * 3
    assert (await status_of(daemon, "kai"))["state"] == "waiting"
    beside(daemon, "broken").unlink()
    for _ in range(6):
        await idle_after(daemon, hours=1, minutes=10)
    assert await status(daemon, one, poison, two) == ["done", "failed", "done"]
    [told] = await notices(daemon, "nex")
    assert poison in told and one not in told and two not in told
    assert len(await notices(daemon)) == 1 and (await status_of(daemon, "kai"))["state"] == "idle"


@frozen(quiet=False)
async def test_in_a_lane_that_waits_what_has_failed_least_often_goes_first(daemon: InProcessDaemon) -> None:
    """Else a poison envelope that ranks first would be tried for ever, and all others would wait."""
    await hire(daemon, "kai", PICKY)
    beside(daemon, "broken").touch()
    await daemon.ask("agent.pause", name="kai")
    [poison] = await daemon.send("agent:kai", text="poison", priority="critical")
    [other] = await daemon.send("agent:kai", text="other")
    await daemon.ask("agent.resume", name="kai")
    await pass_by(daemon, 0, *OVER)
    assert (await status_of(daemon, "kai"))["state"] == "waiting"
    await daemon.ask("envelope.cancel", "nex", ids=[other])
    [late] = await daemon.send("agent:kai", text="late")  # the lane was tried just now
    await idle_after(daemon)
    before = len(await runs_of(daemon, "kai"))
    beside(daemon, "broken").unlink()
    await idle_after(daemon, hours=1, minutes=10)
    assert about(await runs_of(daemon, "kai"))[before:][0] == (late, "completed")
    await idle_after(daemon, hours=1, minutes=10)
    assert await status(daemon, poison, late) == ["failed", "done"]


@frozen(quiet=False)
async def test_the_boss_tries_a_waiting_lane_at_once(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    found = await broken_for_all(daemon)
    beside(daemon, "broken").unlink()
    resumed = await daemon.ask("agent.resume", name="kai")
    [new] = await idle_after_send(daemon, "agent:kai", text="new")
    assert resumed["changed"] and await status(daemon, new) == ["done"]
    await idle_after(daemon, hours=2)
    assert await status(daemon, *found) == ["done"] * 3


@frozen(quiet=False)
async def test_broken_again_the_boss_is_told_again(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    await broken_for_all(daemon)
    beside(daemon, "broken").unlink()
    await idle_after(daemon, hours=2)
    beside(daemon, "broken").touch()
    found = await together(daemon, "four", "five")
    await pass_by(daemon, *OVER)
    assert await status(daemon, *found) == ["pending"] * 2 and len(await notices(daemon)) == 2


# --- what stops every turn -----------------------------------------------------------------------


async def without_program(daemon: InProcessDaemon) -> tuple[Program, Path]:
    """Register kai with a program that does not exist; return the path where it will be."""
    place = beside(daemon, "python")
    program = await hire(daemon, "kai", PICKY, command=f"{place} -I -S {beside(daemon, 'kai.py')}")
    return program, place


def put(place: Path) -> None:
    place.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    os.chmod(place, 0o700)


@frozen(quiet=False)
async def test_what_stops_every_turn_counts_as_no_attempt(daemon: InProcessDaemon) -> None:
    kai, place = await without_program(daemon)
    a, b = await together(daemon, "a", "b")
    waiting = await status_of(daemon, "kai")
    assert waiting["state"] == "waiting" and waiting["why"].startswith(f"the program {place} was not found")
    await pass_by(daemon, *OVER, 4000, 4000, 4000)
    runs = await runs_of(daemon, "kai")
    assert about(runs) == [(a, b, "failed")] * 9 and {one["error_kind"] for one in runs} == {"no_program"}
    for number in (a, b):
        found = await daemon.get(number)
        assert (found["status"], found["attempts"], found["waits"]) == ("pending", 0, None)
    [told] = await notices(daemon)
    assert "agent:kai" in told and str(place) in told

    put(place)
    await idle_after(daemon, seconds=4000)
    assert await status(daemon, a, b) == ["done", "done"]
    assert [turn.count("envelope-id") for turn in kai.turns()] == [2]  # in one turn, as without the failure
    assert await daemon.inbox("nex") == ["read: a, b"] and len(await notices(daemon)) == 1


@frozen(quiet=False)
async def test_the_waits_of_a_lane_grow_to_an_hour(daemon: InProcessDaemon) -> None:
    await without_program(daemon)
    await idle_after_send(daemon, "agent:kai", text="a")
    for number, (not_over, over) in enumerate([*zip(NOT_OVER, OVER, strict=True), (NOT_OVER[4], OVER[4])]):
        await idle_after(daemon, seconds=not_over)
        assert len(await runs_of(daemon, "kai")) == number + 1
        await idle_after(daemon, seconds=over - not_over)
        assert len(await runs_of(daemon, "kai")) == number + 2


@frozen(quiet=False)
async def test_new_mail_tries_a_waiting_lane_at_once_but_not_all_the_time(daemon: InProcessDaemon) -> None:
    _, place = await without_program(daemon)
    [a] = await idle_after_send(daemon, "agent:kai", text="a")
    await idle_after(daemon, seconds=OVER[0])
    await idle_after(daemon, seconds=2)
    before = len(await runs_of(daemon, "kai"))
    [b] = await idle_after_send(daemon, "agent:kai", text="b")
    assert len(await runs_of(daemon, "kai")) == before  # it was tried 2 seconds ago
    await idle_after(daemon, seconds=6)
    put(place)
    [c] = await daemon.send("agent:kai", text="c")
    await idle_after_until(daemon, lambda: daemon.rows("SELECT 1 FROM run WHERE status = 'completed'"))
    assert await status(daemon, a, b, c) == ["done"] * 3
    assert about(await runs_of(daemon, "kai"))[-1] == (a, b, c, "completed")


@frozen(quiet=False)
async def test_a_workspace_that_is_gone_stops_every_turn_until_it_is_back(daemon: InProcessDaemon) -> None:
    room = beside(daemon, "room")
    room.mkdir()
    await hire(daemon, "kai", PICKY, workspace=str(room))
    room.rmdir()
    [a] = await idle_after_send(daemon, "agent:kai", text="a")
    assert str(room) in (await status_of(daemon, "kai"))["why"]
    assert (await daemon.get(a))["attempts"] == 0
    room.mkdir()
    await idle_after(daemon, seconds=OVER[0])
    assert await status(daemon, a) == ["done"]


@frozen(quiet=False)
async def test_poison_and_a_missing_program_together_fail_only_the_poison(daemon: InProcessDaemon) -> None:
    _, place = await without_program(daemon)
    put(place)
    a, poison = await together(daemon, "a", "poison")
    place.unlink()
    await pass_by(daemon, *OVER, 4000, 4000)
    assert await status(daemon, a, poison) == ["pending"] * 2
    assert [(await daemon.get(one))["attempts"] for one in (a, poison)] == [1, 1]
    put(place)
    await pass_by(daemon, 4000, *OVER)
    assert await status(daemon, a, poison) == ["done", "failed"]


# --- tasks in the background ---------------------------------------------------------------------


@frozen(quiet=False)
async def test_a_task_in_the_background_fails_after_five_attempts(daemon: InProcessDaemon) -> None:
    await hire(daemon, "kai", PICKY)
    sent = await daemon.ask("agent.background", "kai", task="poison")
    [good] = await idle_after_send(daemon, "agent:kai", text="fine")
    for number in range(4):
        assert (await daemon.get(sent["ids"][0]))["attempts"] == number + 1
        assert await status(daemon, sent["ids"][0]) == ["pending"]
        await idle_after(daemon, seconds=OVER[number])
    assert await status(daemon, sent["ids"][0], good) == ["failed", "done"]
    runs = [one for one in await runs_of(daemon, "kai") if one["kind"] == "background"]
    assert [one["status"] for one in runs] == ["failed"] * 5
    [told] = await notices(daemon, "kai")
    assert f"Not delivered: {sent['ids'][0]} to agent:background" in told


@frozen(quiet=False)
async def test_a_task_that_fails_does_not_make_the_agents_lane_wait(daemon: InProcessDaemon) -> None:
    await without_program(daemon)
    await idle_after_ask(daemon, "agent.background", "kai", task="anything")
    assert (await status_of(daemon, "kai"))["state"] == "idle"
    assert [one["error_kind"] for one in await runs_of(daemon, "kai")] == ["no_program"]
