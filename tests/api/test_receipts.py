"""Receipts: how far an envelope got, in steps with their times. A receipt never says more than is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.api.receipts import STEPS
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, agent, agents, boss
from tests.support.scripted_channels import (
    HANG,
    OK,
    SCRIPTED,
    Place,
    daemon_with_channels,
    envelope_error,
    lane_error,
)
from tests.support.shell_agents import Program
from tests.support.waits import wait_until

Receipt = dict[str, Any]


def receipt(who: Party, number: str) -> Receipt:
    found: Receipt = who.call("envelope.get", id=number)["receipt"]
    return found


def steps(found: Receipt) -> list[str]:
    return [one["step"] for one in found["steps"]]


def step(found: Receipt, name: str) -> dict[str, Any]:
    (one,) = [one for one in found["steps"] if one["step"] == name]
    return dict(one)


async def asked(daemon: InProcessDaemon, number: str, who: str = "boss") -> Receipt:
    found: Receipt = (await daemon.ask("envelope.get", who, id=number))["receipt"]
    return found


# --- on the way ----------------------------------------------------------------------


@frozen()
async def test_deferred_mail_is_accepted_and_has_not_arrived_before_its_time(daemon: InProcessDaemon) -> None:
    [number] = await daemon.send("user:boss", deliver_at="+2h")
    before = await asked(daemon, number, "nex")
    assert (before["state"], steps(before)) == ("deferred", ["accepted", "deferred"])
    assert step(before, "deferred")["until"] == "2030-06-01T14:00:00.000Z"
    await daemon.move(hours=2)
    after = await asked(daemon, number, "nex")
    assert (after["state"], steps(after)) == ("arrived", ["accepted", "deferred", "arrived"])
    assert step(after, "arrived")["at"] == "2030-06-01T14:00:00.000Z"


@frozen()
async def test_mail_for_an_agent_arrives_is_handed_over_is_seen_and_is_acknowledged(
    daemon: InProcessDaemon,
) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    found = await asked(daemon, number)
    assert (found["state"], steps(found), found["run"]) == ("arrived", ["accepted", "arrived"], None)
    await daemon.move(minutes=1)
    claimed = await daemon.ask("envelope.claim", "kai", lease="10m")
    found = await asked(daemon, number)
    assert (found["state"], found["seen_at"]) == ("handed_over", None)
    taken = step(found, "handed_over")
    assert (taken["at"], taken["until"]) == ("2030-06-01T12:01:00.000Z", claimed["until"])
    assert taken["text"] == f"to the claim {claimed['claim']}"
    await daemon.move(minutes=1)
    await daemon.ask("envelope.read", "kai", ids=[number])
    found = await asked(daemon, number)
    assert (found["state"], found["seen_at"]) == ("seen", "2030-06-01T12:02:00.000Z")
    await daemon.move(minutes=1)
    await daemon.ask("envelope.ack", "kai", ids=[number])
    found = await asked(daemon, number)
    assert found["state"] == "acknowledged"
    assert steps(found) == ["accepted", "arrived", "handed_over", "seen", "acknowledged", "done"]
    assert step(found, "done")["at"] == found["done_at"] == "2030-06-01T12:03:00.000Z"


@frozen()
async def test_a_claim_that_was_released_says_no_longer_that_somebody_has_it(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    await daemon.ask("envelope.claim", "kai")
    await daemon.ask("envelope.release", "kai", ids=[number])
    found = await asked(daemon, number)
    assert found["state"] == "arrived" and step(found, "handed_over")["until"] is None


@frozen()
async def test_mail_for_a_person_has_arrived_until_it_is_read_and_is_never_just_done(
    daemon: InProcessDaemon,
) -> None:
    [number] = await daemon.send("user:boss")
    found = await asked(daemon, number)
    assert (found["state"], steps(found), found["seen_at"]) == ("arrived", ["accepted", "arrived"], None)
    await daemon.ask("envelope.read", ids=[number])
    assert (await asked(daemon, number))["state"] == "seen"
    await daemon.ask("envelope.ack", ids=[number])
    found = await asked(daemon, number)
    assert (found["state"], "done" in steps(found)) == ("acknowledged", False)


@frozen()
async def test_what_a_poll_has_shown_is_not_said_to_be_seen(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    await daemon.ask("envelope.poll", "kai", session="morning")
    found = await daemon.ask("envelope.get", id=number)
    assert (found["receipt"]["state"], found["receipt"]["seen_at"]) == ("arrived", None)
    assert [(one["address"], one["session"]) for one in found["envelope"]["read_by"]] == [
        ("agent:kai", "morning")
    ]


@frozen()
async def test_snoozed_mail_says_until_when_and_has_arrived_again_after_that(daemon: InProcessDaemon) -> None:
    [number] = await daemon.send("user:boss")
    await daemon.ask("envelope.snooze", ids=[number], until="+1h")
    found = await daemon.ask("envelope.get", id=number)
    assert (found["receipt"]["state"], found["envelope"]["box"]) == ("snoozed", "snoozed")
    until = "2030-06-01T13:00:00.000Z"
    assert step(found["receipt"], "snoozed")["until"] == found["envelope"]["snoozed_until"] == until
    await daemon.move(hours=1)
    found = await asked(daemon, number)
    assert (found["state"], "snoozed" in steps(found)) == ("arrived", False)


@frozen()
async def test_what_was_routed_says_to_whom_and_in_whose_place(daemon: InProcessDaemon) -> None:
    await daemon.register("kai", "max")
    [number] = await daemon.send("agent:kai")
    await daemon.ask("control.send", event="stream.route", envelope=number, to="agent:max")
    found = await asked(daemon, number, "nex")
    assert step(found, "routed") == {
        "step": "routed",
        "at": None,
        "until": None,
        "text": "to agent:max, in the place of agent:kai",
    }
    assert steps(found) == ["accepted", "routed", "arrived"]


# --- the deadline --------------------------------------------------------------------


@frozen()
async def test_what_is_not_acknowledged_in_time_is_overdue_until_it_is(daemon: InProcessDaemon) -> None:
    [number] = await daemon.send("user:boss", ack_by="30m")
    found = await daemon.ask("envelope.get", id=number)
    assert found["envelope"]["ack_by"] == "2030-06-01T12:30:00.000Z"
    assert found["receipt"]["overdue"] is False and "overdue" not in steps(found["receipt"])
    await daemon.move(minutes=31)
    found = await asked(daemon, number)
    assert found["overdue"] and step(found, "overdue")["at"] == "2030-06-01T12:30:00.000Z"
    await daemon.ask("envelope.ack", ids=[number])
    found = await asked(daemon, number)
    assert (found["overdue"], steps(found)[-3:]) == (False, ["overdue", "seen", "acknowledged"])


@frozen()
async def test_what_was_acknowledged_in_time_is_not_overdue_later(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    numbers = await daemon.send("user:boss", "agent:kai", ack_by="30m")
    await daemon.ask("envelope.ack", ids=[numbers[0]])
    await daemon.ask("envelope.archive", "kai", ids=[numbers[1]])  # it is done with it
    await daemon.move(hours=1)
    for number in numbers:
        found = await asked(daemon, number)
        assert not found["overdue"] and "overdue" not in steps(found)


# --- ends ----------------------------------------------------------------------------


@frozen()
async def test_cancelled_mail_says_so_and_names_no_reason_that_was_none(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    await daemon.ask("envelope.cancel", "nex", ids=[number])
    found = await asked(daemon, number, "nex")
    assert (found["state"], steps(found)[-1], step(found, "cancelled")["text"]) == (
        "cancelled",
        "cancelled",
        None,
    )


@frozen()
async def test_mail_for_a_deleted_agent_has_failed_and_says_why(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    [number] = await daemon.send("agent:kai")
    await daemon.ask("agent.delete", name="kai")
    found = await asked(daemon, number)
    assert (found["state"], step(found, "failed")["text"]) == (
        "failed",
        "recipient_deleted: the agent was deleted",
    )
    assert step((await asked(daemon, number, "nex")), "failed")["text"] == "recipient_deleted"


# --- channels ------------------------------------------------------------------------


def test_a_post_in_parts_says_how_many_of_them_are_there(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).settings(chunk=10).bound(daemon)
    place.script(OK, place.gated())
    number = place.send("0123456789" * 3)
    wait_until(lambda: receipt(place.owner, number)["state"] == "partly_posted")
    found = receipt(place.owner, number)
    assert [one["text"] for one in found["steps"] if one["step"] == "posted"] == ["part 1 of 3"]
    assert steps(found) == ["accepted", "arrived", "handed_over", "posted"] and found["done_at"] is None
    place.open_gate()
    place.wait_for_status(number, "done")
    found = receipt(place.owner, number)
    texts = [one["text"] for one in found["steps"] if one["step"] == "posted"]
    assert (found["state"], texts, steps(found)[-1]) == ("done", ["part 1 of 3", "part 3 of 3"], "done")


def test_a_post_that_is_refused_has_failed_and_its_sender_reads_why(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(envelope_error(text="no such chat"))
    number = place.send()
    place.wait_for_status(number, "failed")
    found = receipt(place.owner, number)
    assert found["state"] == "failed" and "no such chat" in step(found, "failed")["text"]
    assert "posted" not in steps(found)


def test_a_post_whose_lane_waits_says_until_when_and_with_which_error(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(lane_error(text="too many requests"))
    number = place.send()
    place.wait_for_failures(1)
    found = receipt(place.owner, number)
    assert found["state"] == "waits" and "posted" not in steps(found)
    assert "too many requests" in step(found, "waits")["text"] and step(found, "waits")["until"]
    place.steer("pause")
    assert step(receipt(place.owner, number), "waits")["text"] == "deliveries there are paused"


@pytest.mark.slow
def test_a_post_that_was_under_way_in_a_crash_is_neither_posted_nor_done_but_may_be_there(
    tmp_path: Path,
) -> None:
    with daemon_with_channels(tmp_path / "d") as daemon:
        place = Place(tmp_path).bound(daemon)
        place.script(HANG, HANG)
        number = place.send()
        wait_until(lambda: receipt(place.owner, number)["state"] == "handed_over")
        assert steps(receipt(place.owner, number)) == ["accepted", "arrived", "handed_over"]
        daemon.kill()
        daemon.start(**SCRIPTED)
        twice = f"2 times, the last to the account b{place.binding}"
        wait_until(lambda: step(receipt(place.owner, number), "handed_over")["text"] == twice)
        found = receipt(place.owner, number)
        assert (found["state"], found["seen_at"], found["done_at"]) == ("handed_over", None, None)
        assert "unconfirmed" in steps(found) and not {"posted", "done"} & set(steps(found))


def test_the_sender_does_not_learn_where_the_boss_has_it_forwarded_to(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    chief, place = boss(daemon), Place(tmp_path).bound(daemon)
    place.comes_in("u1", text="hello", message="m1")
    chief.call("boss.set", reach=place.address)
    try:
        nex = agent(daemon)
        number = nex.tell(chief, text="for the boss")
        wait_until(lambda: "for the boss" in "".join(place.texts()))
        assert "forwarded" not in steps(receipt(nex, number))
        forwarded = step(receipt(chief, number), "forwarded")
        assert forwarded["text"].endswith(f" to {place.address}")
        found = nex.call("envelope.trace", id=number)
        assert [one["id"] for one in found["envelopes"]] == [number]
        assert place.address not in str(found) and place.address in str(
            chief.call("envelope.trace", id=number)
        )
        assert nex.refusal("envelope.trace", id=forwarded["text"].split()[0]) == "not_found"
    finally:
        chief.call("boss.set", reach="")


# --- runs ----------------------------------------------------------------------------


def test_a_run_that_works_has_it_in_hand_and_nothing_more_is_said_until_it_ends(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    program = Program(tmp_path)
    program.waits()
    kai = agent(daemon, provider="command", settings={"command": program.command})
    number = boss(daemon).tell(kai)
    wait_until(lambda: program.pids)
    found = receipt(boss(daemon), number)
    assert (found["state"], steps(found)) == ("handed_over", ["accepted", "arrived", "handed_over"])
    assert step(found, "handed_over")["text"] == f"to {found['run']}"
    assert (found["seen_at"], found["done_at"]) == (None, None)
    program.let_go()
    wait_until(lambda: receipt(boss(daemon), number)["state"] == "done")
    found = receipt(boss(daemon), number)
    assert steps(found) == ["accepted", "arrived", "handed_over", "seen", "done"]


def test_what_a_run_of_another_agent_said_when_it_failed_is_told_in_one_word(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    program = Program(tmp_path)
    program.exits(3, "the secret plan of kai")
    kai = agent(daemon, provider="command", settings={"command": program.command})
    (nex,) = agents(daemon, 1)
    number = nex.tell(kai)
    wait_until(lambda: receipt(boss(daemon), number)["state"] == "waits")
    whole, own = receipt(boss(daemon), number), receipt(kai, number)
    assert "the secret plan" in step(whole, "waits")["text"] and step(whole, "waits")["until"]
    assert step(own, "waits") == step(whole, "waits")
    found = receipt(nex, number)
    assert found["state"] == "waits" and "secret" not in str(found)
    assert step(found, "waits")["text"] == step(whole, "waits")["text"].partition(":")[0]


# --- all of them ---------------------------------------------------------------------


def test_times_of_a_receipt_never_go_back_and_its_steps_are_known_words(chief: Party) -> None:
    numbers = chief.ids(box="all", page_size=100)
    assert len(numbers) > 2
    for number in numbers:
        found = receipt(chief, number)
        times = [one["at"] for one in found["steps"] if one["at"] is not None]
        assert times == sorted(times) and set(steps(found)) <= set(STEPS)
        assert steps(found)[0] == "accepted" and steps(found).count("arrived") <= 1


def test_somebody_elses_envelope_is_not_found(ada: Party, bob: Party, eve: Party) -> None:
    number = ada.tell(bob)
    for method in ("envelope.get", "envelope.trace"):
        assert eve.refusal(method, id=number) == "not_found"
        assert {ada.call(method, id=number)["timezone"], bob.call(method, id=number)["timezone"]} == {"UTC"}
