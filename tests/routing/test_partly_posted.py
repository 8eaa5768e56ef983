"""Messages in several chunks: what is partly posted goes before everything else in its lane, and each chunk has a key."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hiboss.testing.running_daemon import RunningDaemon, running_daemon
from tests.support.parties import boss
from tests.support.scripted_channels import (
    HANG,
    OK,
    SCRIPTED,
    Place,
    account_error,
    age,
    daemon_with_channels,
    envelope_error,
    lane_error,
    row,
)
from tests.support.waits import wait_until


def PLACE(root: Path) -> Place:  # noqa: N802 - as a class is named there
    return Place(root).settings(chunk=5)


@pytest.mark.parametrize("ending", ["nothing", "stop", "kill"])
def test_what_is_partly_posted_goes_before_everything_else_of_its_lane(
    daemon: RunningDaemon, place: Place, ending: str
) -> None:
    place.send_failing("AAAAABBBBBCCCCC", OK, lane_error(retry_after=None))
    age(daemon, place.send("OLD"), 3_600_000)  # it counts as critical
    place.send("URG", priority="critical")
    if ending == "nothing":
        place.steer("retry")
    else:
        daemon.stop() if ending == "stop" else daemon.kill()
        daemon.start(**SCRIPTED)
    place.wait_for("AAAAA", "BBBBB", "CCCCC", "OLD", "URG")


@pytest.mark.slow
def test_a_daemon_that_dies_between_two_chunks_goes_on_with_the_second(
    daemon: RunningDaemon, place: Place
) -> None:
    place.script(OK, HANG)
    place.send("AAAAABBBBB")
    wait_until(lambda: place.lane().get("partly_posted") is not None and not place.steps_left())
    place.send("URG", priority="critical")
    daemon.kill()
    daemon.start(**SCRIPTED)
    place.wait_for("AAAAA", "BBBBB", "URG")


def test_also_after_a_failure_of_the_account(place: Place) -> None:
    place.send_failing("AAAAABBBBB", OK, account_error(), account=True)
    place.send("URG", priority="critical")
    place.goes_on("retry", "AAAAA", "BBBBB", "URG")


def test_between_two_chunks_an_account_that_was_told_to_wait_is_heeded(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = Place(tmp_path)
    place.settings(chunk=5, places=[f"{place.name}-b"]).bound(daemon)
    place.script(place.gated(), account_error())
    number = place.send("AAAAABBBBBCCCCC")
    wait_until(lambda: place.steps_left() == 1)
    place.owner.send(f"{place.address}-b", text="other")
    place.wait_for_account(1)
    place.open_gate()
    wait_until(lambda: row(daemon, number)["held_by"] is None)
    assert place.texts() == ["AAAAA"]
    assert row(daemon, number)["attempts"] == 0
    place.steer("retry")
    wait_until(lambda: len(place.texts()) == 4)
    assert [text for text in place.texts() if text != "other"] == ["AAAAA", "BBBBB", "CCCCC"]


@pytest.mark.parametrize("account_is_tried", [False, True])
def test_between_two_chunks_a_lane_that_was_paused_stops(
    daemon: RunningDaemon, place: Place, account_is_tried: bool
) -> None:
    place.script(*[account_error(retry_after=None)] * account_is_tried, place.gated())
    number = place.send("AAAAABBBBB")
    if account_is_tried:
        place.wait_for_account(1)
        place.steer("retry")
    wait_until(lambda: place.steps_left() == 0)
    place.steer("pause")
    place.open_gate()
    wait_until(lambda: row(daemon, number)["held_by"] is None)
    assert place.texts() == ["AAAAA"]
    assert place.account().get("state") == ("open" if account_is_tried else None)
    place.send("URG", priority="critical")
    place.goes_on("resume", "AAAAA", "BBBBB", "URG")


def test_between_two_chunks_the_end_of_a_binding_is_heeded(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path, kind="leisurely").settings(chunk=5).bound(daemon)
    place.script(place.gated())
    number = place.send("AAAAABBBBB")
    wait_until(lambda: place.steps_left() == 0)
    place.unbind()
    place.open_gate()
    failed = place.wait_for_status(number, "failed")
    assert (failed["last_error"]["kind"], place.texts()) == ("unbound", ["AAAAA"])


@pytest.mark.slow
def test_between_two_chunks_a_stop_of_the_daemon_is_heeded(tmp_path: Path) -> None:
    with daemon_with_channels(tmp_path / "d", HIBOSS_DELIVERY_DRAIN_SECONDS="30") as daemon:
        place = PLACE(tmp_path).bound(daemon)
        place.script({**OK, "after": 0.5})
        number = place.send("AAAAABBBBB")
        wait_until(lambda: place.steps_left() == 0)
        daemon.stop()
        assert place.texts() == ["AAAAA"]
        assert row(daemon, number)["held_by"] is None
        daemon.start(**SCRIPTED)
        place.wait_for("AAAAA", "BBBBB")


def test_a_message_in_far_too_many_chunks_is_not_posted(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = Place(tmp_path).settings(chunk=1).bound(daemon)
    failed = place.wait_for_status(place.send("x" * 10_001), "failed")
    assert failed["last_error"]["kind"] == "too_many_chunks"
    assert place.texts() == []


@pytest.mark.parametrize("ending", ["cancelled", "failed"])
def test_what_is_partly_posted_and_given_up_holds_up_nothing(place: Place, ending: str) -> None:
    number = place.send_failing("AAAAABBBBB", OK, lane_error(), *[envelope_error()] * (ending == "failed"))
    place.send("next")
    if ending == "cancelled":
        place.owner.call("envelope.cancel", ids=[number])
    place.goes_on("retry", "AAAAA", "next")
    assert boss(place.daemon).get(number)["status"] == ending
    wait_until(lambda: place.lane()["partly_posted"] is None)


def test_a_message_in_one_chunk_writes_nothing_about_its_lane(place: Place) -> None:
    place.wait_for_status(place.send("short"), "done")
    assert place.lane() == {}


@pytest.mark.slow
def test_a_repeated_post_has_the_same_key_which_no_other_home_has(tmp_path: Path) -> None:
    keys: dict[str, list[str]] = {}
    for home in ("one", "two"):
        with running_daemon(tmp_path / home, **SCRIPTED) as daemon:
            place = Place(tmp_path / home, name="chat")
            place.settings(chunk=5)
            place.bound(daemon)
            daemon.stop()
            daemon.start(**SCRIPTED, HIBOSS_CRASH_AT="delivery.posted:2")
            place.wait_for_state("running")
            place.send("AAAAABBBBB")
            daemon.wait_for_death()
            daemon.start(**SCRIPTED)
            place.wait_for("AAAAA", "BBBBB", "BBBBB")  # the second one was posted and not noted
            keys[home] = [one["key"] for one in place.posts()]
    first, second, repeated = keys["one"]
    assert second == repeated != first
    assert not {*keys["one"]} & {*keys["two"]}


@pytest.mark.slow
def test_a_long_message_whose_chunks_each_come_in_time_is_no_failure(tmp_path: Path) -> None:
    with daemon_with_channels(tmp_path / "d", HIBOSS_DELIVERY_POST_SECONDS="7") as daemon:
        place = PLACE(tmp_path).bound(daemon)
        place.script(*[{"do": "hang", "seconds": 4}] * 2)
        number = place.send("AAAAABBBBB")  # 8 seconds in all
        assert place.wait_for_status(number, "done")["attempts"] == 0
        place.wait_for("AAAAA", "BBBBB")


def test_a_posted_chunk_is_not_posted_again_because_the_store_was_locked(tmp_path: Path) -> None:
    with daemon_with_channels(tmp_path / "d", HIBOSS_STORE_LOCK_WAIT_SECONDS="0.1") as daemon:
        place = PLACE(tmp_path).bound(daemon)
        place.script(OK, place.gated())
        number = place.send("AAAAABBBBBCCCCC")
        # The script has no line left: the first chunk is recorded, and the second is being posted.
        wait_until(lambda: not place.steps_left())
        with closing(sqlite3.connect(daemon.home.database, isolation_level=None, timeout=30)) as other:
            other.execute("BEGIN IMMEDIATE")
            place.open_gate()
            log = Path(daemon.home.log_file)
            wait_until(
                lambda: "A change waits for the store" in log.read_text()
            )  # recording it has failed once
            other.execute("ROLLBACK")
        assert place.wait_for_status(number, "done")["attempts"] == 0
        place.wait_for("AAAAA", "BBBBB", "CCCCC")
