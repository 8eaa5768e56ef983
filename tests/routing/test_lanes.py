"""Lanes: one envelope at a time, in order; pause, resume and retry; a limited number of lanes at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Shell
from tests.support.parties import Party, agent, boss
from tests.support.scripted_channels import (
    HANG,
    HOUR_MS,
    OK,
    SCRIPTED,
    Place,
    account_error,
    age,
    daemon_with_channels,
    lane_error,
    row,
    written,
)
from tests.support.waits import wait_until

QUARTER_MS = 15 * 60 * 1000


def shown(daemon: RunningDaemon, place: Place) -> dict[str, object]:
    (found,) = [one for one in boss(daemon).call("lane.list")["lanes"] if one["address"] == place.address]
    return dict(found)


# --- order ---------------------------------------------------------------------------


def test_what_is_sent_is_posted_in_the_order_of_its_arrival(place: Place) -> None:
    numbers = [place.send(f"{i}") for i in range(20)]
    place.wait_for(*[f"{i}" for i in range(20)])
    assert [one["id"] for one in place.posts()] == numbers
    assert {place.wait_for_status(number, "done")["attempts"] for number in numbers} == {0}


def test_urgent_mail_goes_first_and_of_equal_urgency_what_came_first(place: Place) -> None:
    place.steer("pause")
    for priority in ("low", "normal", "high", "critical", "low", "normal", "high", "critical"):
        place.send(priority, priority=priority)
    place.goes_on("resume", "critical", "critical", "high", "high", "normal", "normal", "low", "low")


def test_after_fifteen_minutes_anything_counts_as_critical(daemon: RunningDaemon, place: Place) -> None:
    place.steer("pause")
    old, fresh = place.send("old and low", priority="low"), place.send("fresh and low", priority="low")
    place.send("critical", priority="critical")
    age(daemon, old, QUARTER_MS + 1000)
    age(daemon, fresh, QUARTER_MS - HOUR_MS // 60)
    place.goes_on("resume", "old and low", "critical", "fresh and low")


def test_a_lane_error_delays_everybody_and_keeps_the_order(place: Place) -> None:
    place.script(OK, lane_error(), lane_error())
    numbers = [place.send(f"{i}") for i in range(4)]
    place.wait_for_failures(1)
    assert {boss(place.daemon).get(number)["status"] for number in numbers[1:]} == {"pending"}
    assert place.steer("retry") == 1
    place.wait_for_failures(2)
    assert place.texts() == ["0"]
    place.goes_on("retry", "0", "1", "2", "3")
    found = [place.wait_for_status(number, "done") for number in numbers]
    assert [one["attempts"] for one in found] == [0, 2, 0, 0]


def test_an_urgent_one_that_comes_during_an_outage_goes_before_the_one_that_failed(place: Place) -> None:
    place.send_failing("first", lane_error())
    place.send("urgent", priority="critical")
    place.goes_on("retry", "urgent", "first")


# --- pause, resume, retry ------------------------------------------------------------


def test_a_paused_lane_keeps_its_mail_until_it_is_resumed(daemon: RunningDaemon, place: Place) -> None:
    assert place.steer("pause") == 1
    assert place.steer("pause") == 0
    number = place.send("held")
    written(daemon)
    assert (shown(daemon, place)["state"], shown(daemon, place)["due"]) == ("paused", 1)
    assert row(daemon, number)["handovers"] == 0
    assert place.steer("retry") == 0  # only a resume ends a pause
    assert place.texts() == []
    assert place.steer("resume") == 1
    assert place.steer("resume") == 0
    place.wait_for("held")
    assert shown(daemon, place)["state"] == "open"


def test_a_pause_holds_what_comes_after_the_post_in_hand(daemon: RunningDaemon, place: Place) -> None:
    place.script(place.gated())
    first, second = place.send("being delivered"), place.send("behind")
    wait_until(lambda: row(daemon, first)["held_by"] is not None)
    place.steer("pause")
    place.open_gate()
    place.wait_for_status(first, "done")
    written(daemon)
    assert row(daemon, second)["handovers"] == 0
    assert place.texts() == ["being delivered"]
    place.goes_on("resume", "being delivered", "behind")


def test_a_paused_lane_that_fails_with_its_post_in_hand_stays_paused(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(place.gated(**lane_error(retry_after=None)))
    number = place.send("x")
    wait_until(lambda: row(daemon, number)["held_by"] is not None)
    place.steer("pause")
    place.open_gate()
    wait_until(lambda: row(daemon, number)["attempts"] == 1)
    assert (place.lane()["state"], place.lane()["wake_at"]) == ("paused", None)
    place.goes_on("resume", "x")


def test_steering_a_lane_that_is_not_there_is_refused(daemon: RunningDaemon) -> None:
    for verb in ("retry", "pause", "resume"):
        assert boss(daemon).refusal(f"lane.{verb}", address="channel:scripted:nowhere") == "unknown_address"
        assert boss(daemon).refusal(f"lane.{verb}", address="user:boss") == "not_found"
        assert boss(daemon).refusal(f"lane.{verb}", address="nowhere") == "unknown_address"
        assert boss(daemon).refusal(f"lane.{verb}", address="no:where") == "bad_address"


def test_agents_may_not_steer_lanes_and_only_privileged_ones_see_them(
    daemon: RunningDaemon, place: Place
) -> None:
    eve = agent(daemon)
    for verb in ("retry", "pause", "resume"):
        assert eve.refusal(f"lane.{verb}", address=place.address) == "forbidden"
    assert eve.refusal("lane.list") == "forbidden"
    boss(daemon).call("agent.permission.set", name=eve.name, level="privileged")
    assert eve.call("lane.list")["lanes"] and eve.refusal("lane.pause", address=place.address) == "forbidden"


def test_why_a_lane_and_an_account_wait_is_told_to_the_boss_and_its_agents_alone(
    daemon: RunningDaemon, place: Place
) -> None:
    def errors(**caller: str) -> list[str | None]:
        status = daemon.call("daemon.status", **caller)
        lanes = [one for one in status["lanes"] if one["address"] == place.address]
        accounts = [one for one in status["adapters"] if one["account"] == place.name]
        return [one["last_error"] for one in (*lanes, *accounts)]

    place.script(account_error(text="the key 1234 is wrong"))
    place.send("x")
    wait_until(lambda: shown(daemon, place)["scope"] == "account")
    assert errors(token=boss(daemon).token) == ["the key 1234 is wrong"] * 2
    assert errors() == errors(token=agent(daemon).token) == [None] * 2

    def listed(party: Party) -> list[str | None]:
        found = party.call("agent.bindings")["bindings"]
        return [one["last_error"] for one in found if one["account"] == place.name]

    assert (listed(boss(daemon)), listed(agent(daemon))) == (["the key 1234 is wrong"], [None])
    assert listed(place.owner) == ["the key 1234 is wrong"]  # it is its own account
    place.goes_on("retry", "x")


def test_the_command_line_lists_pauses_retries_and_resumes(daemon: RunningDaemon, place: Place) -> None:
    shell = Shell(daemon.home.path)
    place.send_failing("x", lane_error(text="the wire is cut"))
    listed = shell("lane", "list", "--as", "boss")
    assert place.address in listed.stdout
    assert "the wire is cut" in listed.stdout
    for verb, changed in (("pause", "1"), ("resume", "1"), ("retry", "1")):
        done = shell("lane", verb, "--as", "boss", "--address", place.address)
        assert (done.rc, done.record) == (0, {"changed": changed})
    place.wait_for("x")
    found = shell("lane", "list", "--as", "boss", "--json").json["lanes"]
    (mine,) = [one for one in found if one["address"] == place.address]
    assert (mine["state"], mine["due"], mine["failures"], mine["last_error"]) == ("open", 0, 0, None)


def test_a_pause_and_a_wait_outlive_a_restart(daemon: RunningDaemon, tmp_path: Path) -> None:
    paused, waiting = Place(tmp_path).bound(daemon), Place(tmp_path).bound(daemon)
    paused.steer("pause")
    paused.send("kept")
    waiting.script(lane_error(retry_after=None))
    waiting.send("first")
    waiting.send("second")
    waiting.wait_for_failures(1)
    daemon.stop()
    assert (paused.lane()["state"], waiting.lane()["state"]) == ("paused", "waiting")
    daemon.start(**SCRIPTED)
    # When an adapter starts, its waiting lanes are tried; a paused one stays paused.
    waiting.wait_for("first", "second")
    paused.wait_for_state("running")
    written(daemon)
    assert paused.lane()["state"] == "paused" and paused.texts() == []
    paused.goes_on("resume", "kept")


# --- many lanes ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon that serves two lanes of a binding at once."""
    with daemon_with_channels(tmp_path_factory.mktemp("n"), HIBOSS_DELIVERY_PARALLEL_LANES="2") as running:
        yield running


def rooms(place: Place, number: int) -> list[str]:
    """Let a place that is not bound yet have several lanes; return their addresses."""
    names = [f"{place.name}-{one}" for one in range(number)]
    place.settings(places=names)
    return [f"channel:{place.kind}:{name}" for name in names]


def test_never_more_lanes_of_a_binding_work_at_once_than_allowed_and_all_get_their_turn(
    narrow: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    addresses = rooms(place, 6)
    place.bound(narrow)
    place.script(*[place.gated()] * 6)
    numbers = [place.owner.send(address, text="slow")["ids"][0] for address in addresses]
    wait_until(lambda: place.steps_left() == 4)
    written(narrow)
    assert sum(row(narrow, number)["held_by"] is not None for number in numbers) == 2
    assert place.steps_left() == 4 and place.posts() == []
    place.open_gate()
    for number in numbers:
        place.wait_for_status(number, "done")


def test_one_hanging_platform_starves_no_other(narrow: RunningDaemon, tmp_path: Path) -> None:
    stuck = Place(tmp_path)
    addresses = rooms(stuck, 4)
    stuck.bound(narrow)
    healthy = Place(tmp_path).bound(narrow)
    stuck.script(*[HANG] * 4)
    numbers = [stuck.owner.send(address, text="stuck")["ids"][0] for address in addresses]
    wait_until(lambda: sum(row(narrow, number)["held_by"] is not None for number in numbers) == 2)
    healthy.send("free")
    healthy.wait_for("free")
    assert [row(narrow, number)["status"] for number in numbers] == [0] * 4
    stuck.unbind()


def test_long_lanes_give_their_places_to_others(narrow: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path)
    *long, short = rooms(place, 3)
    place.bound(narrow)
    for address in (*long, short):
        boss(narrow).call("lane.pause", address=address)
    for address in long:
        place.flood(500, address)
    mark = str(place.owner.send(short, text="mine")["ids"][0])
    place.script(*[place.gated()] * 2)
    for address in (*long, short):
        boss(narrow).call("lane.resume", address=address)
    place.open_gate()  # now all three wait in the queue
    place.wait_for_status(mark, "done")
    for address in long:
        assert finished_before(narrow, address, mark) < 500  # it did not have to wait for all of them
    wait_until(lambda: len(place.posts()) == 1001)
    for address in long:
        name = address.rsplit(":", 1)[1]
        assert [one["chunk"] for one in place.posts() if one["place"] == name] == [f"{i}" for i in range(500)]


def finished_before(daemon: RunningDaemon, address: str, mark: str) -> int:
    with daemon.database() as database:
        before = """
            SELECT count(*) FROM envelope e JOIN address a ON a.id = e.recipient
            WHERE e.status = 1 AND a.fold = ? AND e.done_at < (SELECT done_at FROM envelope WHERE id = ?)
        """
        return int(database.execute(before, (address.lower(), int(mark[1:]))).fetchone()[0])
