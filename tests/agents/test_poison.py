"""Turns that do not go well: one by one, with patience; only what fails alone fails. The clock stands still."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tests.support.clockwork import Office, frozen
from tests.support.thinkers import Program, Run, calm, hire, notices, runs_of, standing

# Fails for what says so, and for everything while a file of that name lies beside it.
PICKY = """
if os.path.exists(os.path.join(HERE, "broken")): sys.exit("nothing works")
if "poison" in TURN: sys.exit("I cannot stomach this")
print("read: " + ", ".join(TEXTS))
"""
# So much later each of the waits is over, and before it none is: 5 s, 30 s, 2 min, 10 min, 1 h, give or take.
OVER = (6, 34, 135, 665, 3965)
NOT_OVER = (4, 26, 105, 535, 3235)


def beside(office: Office, name: str) -> Path:
    return Path(office.home.path).parent / name


async def together(office: Office, *texts: str, who: str = "nex") -> list[str]:
    """Several envelopes that wait for one turn of kai."""
    await office.ask("agent.pause", name="kai")
    found = [(await office.send("agent:kai", who=who, text=text))[0] for text in texts]
    await office.ask("agent.resume", name="kai")
    await calm(office)
    return found


async def status(office: Office, *numbers: str) -> list[str]:
    return [(await office.get(number))["status"] for number in numbers]


def about(runs: list[Run]) -> list[tuple[Any, ...]]:
    return [(*one["envelopes"], one["status"]) for one in runs]


# --- a poison envelope -------------------------------------------------------------------------


@frozen(quiet=False)
async def test_a_failed_turn_is_repeated_one_by_one(office: Office) -> None:
    await hire(office, "kai", PICKY)
    a, poison, c = await together(office, "a", "poison", "c")
    assert about(await runs_of(office, "kai")) == [(a, poison, c, "failed")]
    assert await status(office, a, poison, c) == ["pending"] * 3

    await calm(office, seconds=NOT_OVER[0])
    assert len(await runs_of(office, "kai")) == 1
    await calm(office, seconds=OVER[0] - NOT_OVER[0])
    assert about(await runs_of(office, "kai"))[1:] == [(a, "completed"), (poison, "failed"), (c, "completed")]
    assert await status(office, a, poison, c) == ["done", "pending", "done"]
    found = await office.get(poison)
    assert (found["attempts"], found["waits"], found["redelivered"]) == (2, "retry", True)
    assert found["last_error"]["text"] == "it ended with exit status 1: I cannot stomach this"
    assert await office.inbox("nex") == ["read: a", "read: c"]


@frozen(quiet=False)
async def test_the_poison_envelope_alone_fails_and_its_sender_is_told(office: Office) -> None:
    await hire(office, "kai", PICKY)
    a, poison, c = await together(office, "a", "poison", "c")
    for number in range(5):
        assert await status(office, poison) == ["pending"], number
        await calm(office, seconds=NOT_OVER[number])
        assert (await office.get(poison))["attempts"] == number + 1
        await calm(office, seconds=OVER[number] - NOT_OVER[number])
    assert await status(office, a, poison, c) == ["done", "failed", "done"]
    runs = [one for one in await runs_of(office, "kai") if one["envelopes"] == [poison]]
    assert [one["error_kind"] for one in runs] == ["exit_status"] * 5
    [told] = await notices(office, "nex")
    assert told.startswith(f"Not delivered: {poison} to agent:kai. it ended with exit status 1")
    assert f"hiboss envelope retry --id {poison}" in told
    assert await notices(office) == []  # one that fails alone is no matter of the boss

    await calm(office, hours=48)
    assert len(await runs_of(office, "kai")) == 1 + 2 + 5 and len(await notices(office, "nex")) == 1
    assert (await standing(office, "kai"))["state"] == "idle"


@frozen(quiet=False)
async def test_one_that_was_never_in_company_fails_after_five_attempts(office: Office) -> None:
    await hire(office, "kai", PICKY)
    [poison] = await office.send("agent:kai", text="poison")
    await calm(office)
    for number in range(4):
        found = await office.get(poison)
        assert (found["status"], found["attempts"]) == ("pending", number + 1)
        await calm(office, seconds=NOT_OVER[number])
        assert (await office.get(poison))["attempts"] == number + 1
        await calm(office, seconds=OVER[number] - NOT_OVER[number])
    found = await office.get(poison)
    assert (found["status"], found["attempts"]) == ("failed", 5)
    assert about(await runs_of(office, "kai")) == [(poison, "failed")] * 5


@frozen(quiet=False)
async def test_what_comes_meanwhile_does_not_wait_for_the_poison(office: Office) -> None:
    await hire(office, "kai", PICKY)
    [poison] = await office.send("agent:kai", text="poison")
    await calm(office)
    for number in range(4):
        [good] = await office.send("agent:kai", text=f"good {number}")
        await calm(office)
        assert await status(office, good) == ["done"]
        await calm(office, seconds=OVER[number])
    assert await status(office, poison) == ["failed"]
    assert await office.inbox("nex", status="pending") == [
        *[f"read: good {i}" for i in range(4)],
        *await notices(office, "nex"),
    ]


@frozen(quiet=False)
async def test_two_poisons_fail_each_for_itself_when_others_went_well(office: Office) -> None:
    await hire(office, "kai", PICKY)
    found = await together(office, "poison 1", "fine", "poison 2")
    for seconds in OVER:
        await calm(office, seconds=seconds)
    assert await status(office, *found) == ["failed", "done", "failed"]
    assert len(await notices(office, "nex")) == 2


@frozen(quiet=False)
async def test_they_come_again_in_the_order_of_their_rank(office: Office) -> None:
    kai = await hire(office, "kai", PICKY)
    beside(office, "broken").touch()
    await office.ask("agent.pause", name="kai")
    low, normal, high = [
        (await office.send("agent:kai", text=one, priority=one))[0] for one in ("low", "normal", "high")
    ]
    await office.ask("agent.resume", name="kai")
    await calm(office)
    beside(office, "broken").unlink()
    await calm(office, seconds=OVER[0])
    assert about(await runs_of(office, "kai")) == [
        (low, normal, high, "failed"),  # a run names them by their numbers
        (high, "completed"),
        (normal, "completed"),
        (low, "completed"),
    ]
    assert [turn.count("redelivered: true") for turn in kai.turns()] == [0, 1, 1, 1]


@frozen(quiet=False)
async def test_a_daemon_that_was_closed_meanwhile_goes_on_where_it_was(office: Office) -> None:
    await hire(office, "kai", PICKY)
    [poison] = await office.send("agent:kai", text="poison")
    await calm(office)
    for number in range(4):
        assert await status(office, poison) == ["pending"]
        await office.restart(seconds=OVER[number])
        await calm(office)
    assert await status(office, poison) == ["failed"] and len(await runs_of(office, "kai")) == 5


# --- taken up again ------------------------------------------------------------------------------


async def failed_poison(office: Office) -> str:
    [poison] = await office.send("agent:kai", text="poison")
    await calm(office)
    for seconds in OVER[:4]:
        await calm(office, seconds=seconds)
    assert await status(office, poison) == ["failed"]
    await calm(office, minutes=1)
    return poison


@frozen(quiet=False)
async def test_its_sender_can_have_it_tried_again(office: Office) -> None:
    kai = await hire(office, "kai", PICKY)
    poison = await failed_poison(office)
    kai.write('print("an antidote: " + TEXTS[0])')
    await office.ask("envelope.retry", "nex", ids=[poison])
    await calm(office)
    assert await status(office, poison) == ["done"]
    assert (await office.inbox("nex"))[-1] == "an antidote: poison"
    assert (await runs_of(office, "kai"))[-1]["envelopes"] == [poison]


@frozen(quiet=False)
async def test_tried_again_it_gets_five_attempts_again_and_its_sender_is_told_again(office: Office) -> None:
    await hire(office, "kai", PICKY)
    poison = await failed_poison(office)
    await office.ask("envelope.retry", "nex", ids=[poison])
    await calm(office)
    for _ in range(4):
        assert await status(office, poison) == ["pending"]
        await calm(office, seconds=OVER[4])
    assert await status(office, poison) == ["failed"]
    assert len(await runs_of(office, "kai")) == 10 and len(await notices(office, "nex")) == 2


# --- a provider that fails for all ---------------------------------------------------------------


async def broken_for_all(office: Office) -> list[str]:
    """Mail of three for kai, who can think nothing, for some hours."""
    await office.register("zoe")
    beside(office, "broken").touch()
    found = await together(office, "one", "two")
    found += await office.send("agent:kai", who="zoe", text="three")
    await calm(office)
    for seconds in OVER:
        await calm(office, seconds=seconds)
    for _ in range(2):
        await calm(office, hours=1, minutes=10)
    assert await status(office, *found) == ["pending"] * 3
    return found


@frozen(quiet=False)
async def test_a_provider_broken_for_all_is_a_waiting_lane_with_nothing_failed(office: Office) -> None:
    await hire(office, "kai", PICKY)
    found = await broken_for_all(office)
    kai = await standing(office, "kai")
    assert (kai["state"], kai["why"]) == ("waiting", "it ended with exit status 1: nothing works")
    assert kai["until"] is not None
    [told] = await notices(office)
    assert told.startswith("Nothing gets through to agent:kai since ") and "nothing works" in told
    assert await notices(office, "nex") == await notices(office, "zoe") == []
    [lane] = (await office.ask("lane.list"))["lanes"]
    assert (lane["address"], lane["state"], lane["last_error"]) == ("agent:kai", "waiting", kai["why"])

    for _ in range(4):  # two days more
        await calm(office, hours=12)
    assert await status(office, *found) == ["pending"] * 3 and len(await notices(office)) == 1

    beside(office, "broken").unlink()
    await calm(office, hours=2)
    assert await status(office, *found) == ["done"] * 3
    assert (await standing(office, "kai"))["state"] == "idle" and len(await notices(office)) == 1
    assert sorted(await office.inbox("nex")) == ["read: one", "read: two"]
    assert await office.inbox("zoe") == ["read: three"]


@frozen(quiet=False)
async def test_mended_but_for_one_poison_that_one_fails_alone(office: Office) -> None:
    await hire(office, "kai", PICKY)
    beside(office, "broken").touch()
    one, poison, two = await together(office, "one", "poison", "two")
    for seconds in OVER:
        await calm(office, seconds=seconds)
    await calm(office, hours=3)
    assert await status(office, one, poison, two) == ["pending"] * 3
    assert (await standing(office, "kai"))["state"] == "waiting"
    beside(office, "broken").unlink()
    for _ in range(6):
        await calm(office, hours=1, minutes=10)
    assert await status(office, one, poison, two) == ["done", "failed", "done"]
    [told] = await notices(office, "nex")
    assert poison in told and one not in told and two not in told
    assert len(await notices(office)) == 1 and (await standing(office, "kai"))["state"] == "idle"


@frozen(quiet=False)
async def test_in_a_lane_that_waits_what_has_failed_least_often_goes_first(office: Office) -> None:
    """Else a poison that ranks first would be tried for ever, and everything behind it wait."""
    await hire(office, "kai", PICKY)
    beside(office, "broken").touch()
    await office.ask("agent.pause", name="kai")
    [poison] = await office.send("agent:kai", text="poison", priority="critical")
    [other] = await office.send("agent:kai", text="other")
    await office.ask("agent.resume", name="kai")
    for seconds in (0, *OVER):
        await calm(office, seconds=seconds)
    assert (await standing(office, "kai"))["state"] == "waiting"
    await office.ask("envelope.cancel", "nex", ids=[other])
    [late] = await office.send("agent:kai", text="late")  # the lane was tried just now
    await calm(office)
    before = len(await runs_of(office, "kai"))
    beside(office, "broken").unlink()
    await calm(office, hours=1, minutes=10)
    assert about(await runs_of(office, "kai"))[before:][0] == (late, "completed")
    await calm(office, hours=1, minutes=10)
    assert await status(office, poison, late) == ["failed", "done"]


@frozen(quiet=False)
async def test_the_boss_tries_a_waiting_lane_at_once(office: Office) -> None:
    await hire(office, "kai", PICKY)
    found = await broken_for_all(office)
    beside(office, "broken").unlink()
    resumed = await office.ask("agent.resume", name="kai")
    [new] = await office.send("agent:kai", text="new")
    await calm(office)
    assert resumed["changed"] and await status(office, new) == ["done"]
    await calm(office, hours=2)
    assert await status(office, *found) == ["done"] * 3


@frozen(quiet=False)
async def test_broken_again_the_boss_is_told_again(office: Office) -> None:
    await hire(office, "kai", PICKY)
    await broken_for_all(office)
    beside(office, "broken").unlink()
    await calm(office, hours=2)
    beside(office, "broken").touch()
    found = await together(office, "four", "five")
    for seconds in OVER:
        await calm(office, seconds=seconds)
    assert await status(office, *found) == ["pending"] * 2 and len(await notices(office)) == 2


# --- what stops every turn -----------------------------------------------------------------------


async def without_program(office: Office) -> tuple[Program, Path]:
    """kai, whose program is not there; and where it will be."""
    place = beside(office, "python")
    program = await hire(office, "kai", PICKY, command=f"{place} -I -S {beside(office, 'kai.py')}")
    return program, place


def put(place: Path) -> None:
    place.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    os.chmod(place, 0o700)


@frozen(quiet=False)
async def test_what_stops_every_turn_counts_as_no_attempt(office: Office) -> None:
    kai, place = await without_program(office)
    a, b = await together(office, "a", "b")
    waiting = await standing(office, "kai")
    assert waiting["state"] == "waiting" and waiting["why"].startswith(f"the program {place} is not there")
    for seconds in (*OVER, 4000, 4000, 4000):
        await calm(office, seconds=seconds)
    runs = await runs_of(office, "kai")
    assert about(runs) == [(a, b, "failed")] * 9 and {one["error_kind"] for one in runs} == {"no_program"}
    for number in (a, b):
        found = await office.get(number)
        assert (found["status"], found["attempts"], found["waits"]) == ("pending", 0, None)
    [told] = await notices(office)
    assert "agent:kai" in told and str(place) in told

    put(place)
    await calm(office, seconds=4000)
    assert await status(office, a, b) == ["done", "done"]
    assert [turn.count("envelope-id") for turn in kai.turns()] == [2]  # together, as they would have been
    assert await office.inbox("nex") == ["read: a, b"] and len(await notices(office)) == 1


@frozen(quiet=False)
async def test_the_waits_of_a_lane_grow_to_an_hour(office: Office) -> None:
    await without_program(office)
    await office.send("agent:kai", text="a")
    await calm(office)
    for number, (not_over, over) in enumerate([*zip(NOT_OVER, OVER, strict=True), (NOT_OVER[4], OVER[4])]):
        await calm(office, seconds=not_over)
        assert len(await runs_of(office, "kai")) == number + 1
        await calm(office, seconds=over - not_over)
        assert len(await runs_of(office, "kai")) == number + 2


@frozen(quiet=False)
async def test_new_mail_tries_a_waiting_lane_at_once_but_not_all_the_time(office: Office) -> None:
    _, place = await without_program(office)
    [a] = await office.send("agent:kai", text="a")
    await calm(office)
    await calm(office, seconds=OVER[0])
    await calm(office, seconds=2)
    before = len(await runs_of(office, "kai"))
    [b] = await office.send("agent:kai", text="b")
    await calm(office)
    assert len(await runs_of(office, "kai")) == before  # it was tried 2 seconds ago
    await calm(office, seconds=6)
    put(place)
    [c] = await office.send("agent:kai", text="c")
    await office.until(lambda: office.rows("SELECT 1 FROM run WHERE status = 'completed'"))
    await calm(office)
    assert await status(office, a, b, c) == ["done"] * 3
    assert about(await runs_of(office, "kai"))[-1] == (a, b, c, "completed")


@frozen(quiet=False)
async def test_a_workspace_that_is_gone_stops_every_turn_until_it_is_back(office: Office) -> None:
    room = beside(office, "room")
    room.mkdir()
    await hire(office, "kai", PICKY, workspace=str(room))
    room.rmdir()
    [a] = await office.send("agent:kai", text="a")
    await calm(office)
    assert str(room) in (await standing(office, "kai"))["why"]
    assert (await office.get(a))["attempts"] == 0
    room.mkdir()
    await calm(office, seconds=OVER[0])
    assert await status(office, a) == ["done"]


@frozen(quiet=False)
async def test_poison_and_a_missing_program_together_fail_only_the_poison(office: Office) -> None:
    _, place = await without_program(office)
    put(place)
    a, poison = await together(office, "a", "poison")
    place.unlink()
    for seconds in (*OVER, 4000, 4000):
        await calm(office, seconds=seconds)
    assert await status(office, a, poison) == ["pending"] * 2
    assert [(await office.get(one))["attempts"] for one in (a, poison)] == [1, 1]
    put(place)
    for seconds in (4000, *OVER):
        await calm(office, seconds=seconds)
    assert await status(office, a, poison) == ["done", "failed"]


# --- tasks in the background ---------------------------------------------------------------------


@frozen(quiet=False)
async def test_a_task_in_the_background_fails_after_five_attempts(office: Office) -> None:
    await hire(office, "kai", PICKY)
    sent = await office.ask("agent.background", "kai", task="poison")
    [good] = await office.send("agent:kai", text="fine")
    await calm(office)
    for number in range(4):
        assert (await office.get(sent["ids"][0]))["attempts"] == number + 1
        assert await status(office, sent["ids"][0]) == ["pending"]
        await calm(office, seconds=OVER[number])
    assert await status(office, sent["ids"][0], good) == ["failed", "done"]
    runs = [one for one in await runs_of(office, "kai") if one["kind"] == "background"]
    assert [one["status"] for one in runs] == ["failed"] * 5
    [told] = await notices(office, "kai")
    assert f"Not delivered: {sent['ids'][0]} to agent:background" in told


@frozen(quiet=False)
async def test_a_task_that_fails_does_not_make_the_agents_lane_wait(office: Office) -> None:
    await without_program(office)
    await office.ask("agent.background", "kai", task="anything")
    await calm(office)
    assert (await standing(office, "kai"))["state"] == "idle"
    assert [one["error_kind"] for one in await runs_of(office, "kai")] == ["no_program"]
