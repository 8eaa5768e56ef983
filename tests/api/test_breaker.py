"""The breaker and the clock, schedules, posts and their changes: what holds, and what comes after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.core.errors import PulledAgain
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.changing_places import ChangingPlace
from tests.support.in_process_daemon import InProcessDaemon, frozen
from tests.support.parties import Party, boss
from tests.support.waits import wait_until

# --- schedules ------------------------------------------------------------------------


def fired(daemon: InProcessDaemon, text: str) -> int:
    (row,) = daemon.rows("SELECT count(*) FROM message WHERE text = ?", text)
    return int(row[0])


@frozen()
async def test_schedules_hold_and_catch_up_as_they_say_when_it_is_released(daemon: InProcessDaemon) -> None:
    for catch_up in ("skip", "once", "all"):
        await daemon.ask("cron.create", "nex", to="user:boss", text=catch_up, every="1h", catch_up=catch_up)
    await daemon.ask("breaker.pull")
    await daemon.move(hours=3, minutes=30)
    assert [fired(daemon, one) for one in ("skip", "once", "all")] == [0, 0, 0]
    assert daemon.scheduler.next_wake is None  # nothing is set for them: it does not spin
    assert (await daemon.ask("breaker.status"))["waits"]["schedules"] == 3
    await daemon.restart(hours=1)
    assert fired(daemon, "all") == 0
    await daemon.ask("breaker.release")
    await daemon.until(lambda: fired(daemon, "all") == 4)
    await daemon.settle()
    assert [fired(daemon, one) for one in ("skip", "once", "all")] == [0, 1, 4]
    await daemon.move(minutes=30)
    assert [fired(daemon, one) for one in ("skip", "once", "all")] == [1, 2, 5]


@frozen()
async def test_deferred_mail_and_leases_go_on_by_the_clock(daemon: InProcessDaemon) -> None:
    await daemon.register("kai")
    (claimed,) = await daemon.send("agent:kai", who="nex", text="claimed")
    await daemon.ask("envelope.claim", "kai", lease="10m")
    await daemon.send("agent:kai", who="nex", text="later", deliver_at="+1h")
    await daemon.ask("breaker.pull")
    await daemon.move(hours=2)
    assert await daemon.inbox("kai") == ["claimed", "later"]
    assert (await daemon.ask("envelope.claim", "kai"))["envelopes"] == []
    assert (await daemon.ask("breaker.status"))["waits"]["mail"] == [{"agent": "agent:kai", "due": 2}]
    await daemon.ask("breaker.release")
    found = (await daemon.ask("envelope.claim", "kai"))["envelopes"]
    assert [one["text"] for one in found] == ["claimed", "later"] and found[0]["id"] == claimed


@frozen()
async def test_the_time_and_the_reason_are_those_of_the_first_pull_also_after_a_restart(
    daemon: InProcessDaemon,
) -> None:
    first = await daemon.ask("breaker.pull", reason="first")
    at = first["breaker"]["pulled_at"]
    await daemon.move(hours=1)
    again = await daemon.ask("breaker.pull", reason="second")
    assert (again["changed"], again["breaker"]) == (False, first["breaker"])
    await daemon.restart(hours=1)
    status = await daemon.ask("daemon.status")
    assert status["breaker"] == {"pulled_at": at, "pulled_by": "user:boss", "reason": "first"}
    assert (await daemon.call("daemon.status"))["breaker"]["reason"] is None  # without a token
    assert await daemon.ask("breaker.release") == {
        "changed": True,
        "waits": {"mail": [], "tasks": 0, "posts": 0, "schedules": 0},
    }
    assert (await daemon.ask("breaker.status"))["breaker"] is None


@frozen()
async def test_a_release_of_a_pull_is_refused_if_it_was_pulled_again_since(daemon: InProcessDaemon) -> None:
    first = (await daemon.ask("breaker.pull"))["pull"]
    last = (await daemon.ask("breaker.pull"))["pull"]
    assert first != last == (await daemon.ask("breaker.status"))["pull"]
    for meant in (first, ""):
        with pytest.raises(PulledAgain, match="hiboss go"):
            await daemon.ask("breaker.release", pull=meant)
    assert (await daemon.ask("breaker.release", pull=last))["changed"]
    assert (await daemon.ask("breaker.status"))["pull"] is None
    for meant in (first, ""):
        assert not (await daemon.ask("breaker.release", pull=meant))["changed"]


@frozen()
async def test_a_policy_can_let_an_agent_pull_it(daemon: InProcessDaemon) -> None:
    await daemon.ask("permission.policy.set", policy={"breaker.pull": "standard"})
    pulled = await daemon.ask("breaker.pull", "nex", reason="help")
    assert pulled["breaker"]["pulled_by"] == "agent:nex" and pulled["changed"]
    await daemon.ask("breaker.release")


# --- posts ----------------------------------------------------------------------------


@pytest.fixture
def chief(daemon: RunningDaemon) -> Iterator[Party]:
    ada = boss(daemon)
    yield ada
    ada.call("breaker.release")


@pytest.fixture
def place(daemon: RunningDaemon, tmp_path: Path) -> ChangingPlace:
    return ChangingPlace(tmp_path).bound(daemon)


def test_posts_of_agents_hold_in_order_and_what_others_post_passes(
    place: ChangingPlace, chief: Party
) -> None:
    chief.call("breaker.pull")
    held = [place.send(text) for text in ("one", "two")]
    chief.call("envelope.send", from_="user:boss", to=place.address, text="boss")
    place.wait_for("boss")
    assert chief.call("breaker.status")["waits"]["posts"] == 2
    assert [place.owner.get(number)["status"] for number in held] == ["pending"] * 2
    chief.call("breaker.release")
    place.wait_for("boss", "one", "two")


def test_the_rest_of_a_message_that_is_being_posted_holds(place: ChangingPlace, chief: Party) -> None:
    place.script(place.gated())
    number = place.send("AAAAABBBBB")
    wait_until(lambda: _is_held(place, number))
    chief.call("breaker.pull")
    place.open_gate()
    wait_until(lambda: not _is_held(place, number))
    assert place.texts() == ["AAAAA"] and place.owner.get(number)["status"] == "pending"
    chief.call("breaker.release")
    place.wait_for("AAAAA", "BBBBB")


def _is_held(place: ChangingPlace, number: str) -> bool:
    with place.daemon.database() as database:
        row = database.execute("SELECT held_by FROM envelope WHERE id = ?", (int(number[1:]),)).fetchone()
    return row["held_by"] is not None


def test_an_edit_of_an_agent_holds_and_a_deletion_by_the_boss_does_not(
    place: ChangingPlace, chief: Party
) -> None:
    edited, deleted = place.posted("AAAAA"), place.posted("CCCCC")
    chief.call("breaker.pull")
    place.edit(edited, "BBBBB")
    chief.call("message.delete", id=deleted)
    wait_until(lambda: place.changes("delete"))
    assert place.changes("edit") == []
    chief.call("breaker.release")
    wait_until(lambda: place.changes("edit"))


def test_what_comes_in_meanwhile_waits_and_is_answered_then(place: ChangingPlace, chief: Party) -> None:
    chief.call("agent.set", name=place.owner.name, provider="demo", mode="run")
    chief.call("breaker.pull")
    place.comes_in("u1", text="hello", message="m1")
    wait_until(lambda: [one["text"] for one in place.owner.list()] == ["hello"])
    assert chief.call("run.list", agent=place.owner.name)["runs"] == []
    chief.call("breaker.release")
    wait_until(lambda: place.texts() != [])
