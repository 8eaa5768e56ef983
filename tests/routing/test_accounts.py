"""Accounts that fail: all lanes of the binding wait, the boss is told once, one lane tries, one success opens all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hiboss.store.lane_failures import GIVE_UP_FAILURES
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.cli import Shell
from tests.support.parties import agent, boss
from tests.support.scripted_channels import (
    DAY_MS,
    HANG,
    OK,
    SCRIPTED,
    Place,
    Step,
    account_error,
    age,
    daemon_with_channels,
    envelope_error,
    lane_error,
    notices,
    row,
    written,
)
from tests.support.waits import wait_until

ROOMS = ("north", "south", "west")


class House(Place):
    """An account with three places; each is a lane."""

    def __init__(self, root: Path, **facts: Any) -> None:
        super().__init__(root)
        self.settings(places=[f"{self.name}-{room}" for room in ROOMS], **facts)

    def address_of(self, room: str) -> str:
        return f"channel:{self.kind}:{self.name}-{room}"

    def send_to(self, room: str, text: str | None = None, **params: Any) -> str:
        return str(self.owner.send(self.address_of(room), text=text or room, **params)["ids"][0])

    def refused(self, *steps: Step, text: str | None = None) -> str:
        """Send to the north what meets these steps; return its id when the account waits."""
        self.script(*steps)
        number = self.send_to("north", text)
        self.wait_for_account(1)
        return number

    def send_to_all(self) -> list[str]:
        return [self.send_to(room) for room in ROOMS]

    def shown_lanes(self) -> dict[str, dict[str, Any]]:
        lanes = boss(self.daemon).call("lane.list")["lanes"]
        return {one["address"].rsplit("-", 1)[1]: one for one in lanes if f"{self.name}-" in one["address"]}

    def retry(self, room: str = "north") -> int:
        return int(boss(self.daemon).call("lane.retry", address=self.address_of(room))["changed"])

    def starts_to_fail(self) -> int:
        return int(json.loads((self.root / "settings.json").read_text())["fail_starts"])

    def told(self) -> list[str]:
        """Return the notices to the boss about this account, or about one of its lanes."""
        return [one["text"] for one in notices(boss(self.daemon)) if self.name in one["text"]]


PLACE = House


# --- what waits ----------------------------------------------------------------------


def test_an_account_error_holds_every_lane_of_the_binding_and_the_boss_is_told_once(place: House) -> None:
    first = place.refused(account_error(text="401: the token is wrong"))
    others = [place.send_to(room) for room in ("south", "west")]
    written(place.daemon)
    assert [row(place.daemon, number)["handovers"] for number in (first, *others)] == [1, 0, 0]
    assert place.texts() == []
    (notice,) = place.told()
    assert notice.startswith(f"The account scripted:{place.name} has failed since ")
    assert "401: the token is wrong" in notice and notice.endswith("See: hiboss agent bindings")


def test_many_lanes_that_meet_the_same_account_error_are_one_notice_and_one_wait(
    daemon: RunningDaemon, place: House
) -> None:
    for room in ROOMS:
        boss(daemon).call("lane.pause", address=place.address_of(room))
    place.send_to_all()
    place.script(*[account_error()] * 3)
    for room in ROOMS:
        boss(daemon).call("lane.resume", address=place.address_of(room))
    wait_until(lambda: place.account().get("state") == "waiting")
    assert len(place.told()) == 1
    with daemon.database() as database:
        lanes = database.execute(
            "SELECT sum(failures) FROM lane WHERE binding = ? AND address IS NOT NULL", (place.binding,)
        ).fetchone()[0]
    assert lanes == 0  # the failures are those of the account


def test_a_lane_error_holds_its_own_lane_only(place: House) -> None:
    place.script(lane_error())
    place.send_to("north")
    wait_until(lambda: place.shown_lanes()["north"]["state"] == "waiting")
    place.send_to("south")
    place.wait_for("south")
    assert place.account() == {}


def test_other_accounts_go_on(daemon: RunningDaemon, place: House, tmp_path: Path) -> None:
    place.refused(account_error())
    other = House(tmp_path).bound(daemon)
    other.send_to("north")
    other.wait_for("north")


# --- how it goes on ------------------------------------------------------------------


def test_one_success_opens_all_lanes_and_keeps_their_order(place: House) -> None:
    place.refused(account_error(), text="n1")
    for text in ("n2", "n3"):
        place.send_to("north", text)
    place.send_to("south", "s1")
    place.send_to("south", "s2")
    assert place.retry() == 1
    wait_until(lambda: len(place.texts()) == 5)
    assert [text for text in place.texts() if text[0] == "n"] == ["n1", "n2", "n3"]
    assert [text for text in place.texts() if text[0] == "s"] == ["s1", "s2"]
    wait_until(lambda: place.account()["failures"] == 0)
    assert place.account()["state"] == "open"


def test_a_waiting_account_is_tried_by_one_lane_and_not_by_all(place: House) -> None:
    place.refused(account_error(retry_after=None))
    place.send_to("south")
    place.script(place.gated())
    place.lane_ages(5_001)
    place.send_to("west", "new")  # new activity tries it
    wait_until(lambda: place.account()["state"] == "trying")
    for room in ROOMS:
        place.send_to(room, "newer")
    with place.daemon.database() as database:
        held = "SELECT count(*) FROM envelope WHERE binding = ? AND held_by IS NOT NULL"
        assert database.execute(held, (place.binding,)).fetchone()[0] == 1
    assert place.texts() == []
    place.open_gate()
    wait_until(lambda: len(place.texts()) == 6)  # and its success opens all


def test_new_activity_tries_a_waiting_account_at_most_every_five_seconds(place: House) -> None:
    first = place.refused(account_error(retry_after=None), account_error(retry_after=None))
    place.send_to("south")
    place.send_to("north")
    written(place.daemon)
    assert place.account()["failures"] == row(place.daemon, first)["handovers"] == 1
    place.lane_ages(5_001)
    place.send_to("west")
    place.wait_for_account(2)


def test_nothing_is_posted_by_any_lane_before_the_time_that_a_platform_named_for_the_account(
    daemon: RunningDaemon, place: House
) -> None:
    place.refused(account_error(retry_after=600))
    account = place.account()
    assert account["not_before"] == account["wake_at"] == account["error_at"] + 600_000
    place.lane_ages(60_000)  # more than the five seconds after which new mail tries again
    for room in ROOMS:
        place.send_to(room)
    written(daemon)
    assert place.texts() == [] and place.account()["failures"] == 1


def test_a_later_error_without_a_time_does_not_shorten_the_time_that_was_named(
    daemon: RunningDaemon, place: House
) -> None:
    place.script(place.gated(), account_error(retry_after=600), OK)
    place.send_to("north")  # being posted when the platform refuses the account
    wait_until(lambda: place.steps_left() == 2)
    place.send_to("south")
    named = place.wait_for_account(1)["not_before"]
    place.open_gate()
    place.wait_for("north")
    written(daemon)
    assert (place.account()["not_before"], place.account()["state"]) == (named, "waiting")


@pytest.mark.parametrize("step", [envelope_error(), lane_error()], ids=["envelope", "lane"])
def test_any_answer_about_an_envelope_or_a_place_shows_that_the_account_works(
    place: House, step: dict[str, Any]
) -> None:
    place.refused(account_error(), step)
    place.send_to("south")
    place.retry()
    wait_until(lambda: place.account()["failures"] == 0)
    wait_until(lambda: len(place.texts()) == 1)  # the other lane went on


def test_no_answer_while_an_account_is_tried_counts_for_the_account(tmp_path: Path) -> None:
    with daemon_with_channels(tmp_path / "d", HIBOSS_DELIVERY_POST_SECONDS="0.5") as daemon:
        place = House(tmp_path).bound(daemon)
        place.refused(account_error(), HANG)
        place.retry()
        assert place.wait_for_account(2)["error_kind"] == "timed_out"
        assert place.shown_lanes()["south"]["state"] == "waiting"
        place.retry()
        place.wait_for("north")


def test_after_a_success_the_next_outage_is_told_again(place: House) -> None:
    place.refused(account_error(text="first"), OK, account_error(text="second"))
    place.retry()
    place.wait_for("north")
    wait_until(lambda: place.account()["failures"] == 0)
    place.send_to("south")
    place.wait_for_account(1)
    first, second = place.told()
    assert "first" in first and "second" in second


# --- restart, unbind, give up --------------------------------------------------------


def test_a_wait_of_an_account_outlives_a_restart(daemon: RunningDaemon, place: House) -> None:
    place.refused(account_error(retry_after=600))
    before = place.account()
    place.send_to("west")
    daemon.stop()
    daemon.start(**SCRIPTED)
    place.wait_for_state("running")
    place.send_to("south", "new")
    written(daemon)
    assert place.texts() == [] and place.account() == before
    place.retry()
    wait_until(lambda: len(place.texts()) == 3)
    assert len(place.told()) == 1


@pytest.mark.slow
def test_a_daemon_that_dies_while_an_account_is_tried_tries_it_again(
    daemon: RunningDaemon, place: House
) -> None:
    place.refused(account_error(retry_after=None), HANG)
    place.send_to("south")
    place.send_to("west")
    place.retry()
    wait_until(lambda: place.account()["state"] == "trying" and place.steps_left() == 0)
    daemon.kill()
    daemon.start(**SCRIPTED)
    wait_until(lambda: len(place.texts()) == 3)
    wait_until(lambda: place.account()["failures"] == 0)


def test_unbinding_and_binding_again_clears_the_account(place: House) -> None:
    number = place.refused(account_error())
    assert place.unbind()["failed_envelopes"] == 1 and place.account() == {}
    place.wait_for_status(number, "failed")
    place.bound(place.daemon, place.owner)
    place.send_to("south", "again")
    place.wait_for("again")


def test_what_an_account_could_not_post_for_a_day_is_given_up_in_all_its_lanes(
    daemon: RunningDaemon, place: House
) -> None:
    place.script(account_error())
    old = [place.send_to("north")]
    place.wait_for_account(1)
    old.append(place.send_to("south"))
    young = place.send_to("south", "young")
    place.lane_ages(DAY_MS)
    with daemon.database() as database:
        database.execute("UPDATE lane SET failures = ? WHERE binding = ?", (GIVE_UP_FAILURES, place.binding))
        database.commit()
    for number in old:
        age(daemon, number, DAY_MS)
    place.script(account_error(text="still nothing"))
    place.retry()
    for number in old:
        assert place.wait_for_status(number, "failed")["last_error"]["text"] == "still nothing"
    assert boss(daemon).get(young)["status"] == "pending"
    told = [one["text"] for one in notices(place.owner)]
    # A notice belongs to one conversation.
    assert [[number in text for number in old] for text in told] == [[True, False], [False, True]]
    place.retry()
    place.wait_for("young")


# --- what people see and do ----------------------------------------------------------


def test_lanes_bindings_and_status_show_an_account_that_waits(daemon: RunningDaemon, place: House) -> None:
    place.refused(account_error(text="409: somebody else uses this bot"))
    account = place.account()
    for room in ROOMS:
        lane = place.shown_lanes()[room]
        assert (lane["state"], lane["scope"], lane["failures"]) == ("waiting", "account", 1)
        assert lane["last_error"] == "409: somebody else uses this bot" and lane["next_try_at"] is not None
    shown = place.shown()
    assert (shown["state"], shown["last_error"]) == ("running", "409: somebody else uses this bot")
    assert shown["failing_since"] is not None and shown["next_try_at"] is not None
    assert account["first_failed_at"] is not None
    (block,) = [
        one
        for one in Shell(daemon.home.path)("agent", "bindings", "--as", "boss").blocks
        if one["binding"] == f"b{place.binding}"
    ]
    assert block["last-error"] == "409: somebody else uses this bot"
    assert block["next-try-at"].endswith("+00:00") or "Z" not in block["next-try-at"]
    place.retry()
    place.wait_for("north")
    wait_until(lambda: place.shown()["last_error"] is None)
    assert place.shown_lanes()["south"]["scope"] is None


@pytest.mark.slow
def test_a_retry_of_any_lane_retries_its_account_and_starts_an_adapter_that_pauses(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    place = House(tmp_path, fail_starts=3)  # then it pauses for 30 seconds
    place.bind(agent(daemon))
    place.send_to("north")
    wait_until(lambda: "has failed" in "".join(place.told()))
    wait_until(lambda: place.shown()["state"] == "failed" and not place.starts_to_fail())
    assert place.retry("south") == 1
    place.wait_for("north")
