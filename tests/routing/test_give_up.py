"""Giving up: a day after the first failure, with one notice to the sender and never one about a notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from hiboss.store.lane_failures import GIVE_UP_FAILURES
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import agent, boss
from tests.support.scripted_channels import (
    DAY_MS,
    HOUR_MS,
    OK,
    Place,
    age,
    envelope_error,
    lane_error,
    notices,
    row,
)
from tests.support.waits import wait_until


def failing(place: Place, *texts: str, times: int = 1) -> list[str]:
    """Send these in a lane that fails so often; return the envelopes when it has failed once."""
    place.script(*[lane_error()] * times)
    numbers = [place.send(text) for text in texts]
    place.wait_for_failures(1)
    return numbers


def a_day_of_failure(place: Place, *old: str) -> None:
    """Let the lane have failed and these have waited for a day; then it is tried and fails again."""
    place.lane_ages(DAY_MS)
    with place.daemon.database() as database:  # as many failures as in a day
        database.execute(
            "UPDATE lane SET failures = max(failures, ?) WHERE failures > 0", (GIVE_UP_FAILURES,)
        )
        database.commit()
    for number in old:
        age(place.daemon, number, DAY_MS)
    failures = place.lane()["failures"]
    place.script(lane_error(text="still nothing"))
    place.steer("retry")
    place.wait_for_failures(failures + 1)


def test_after_a_day_the_sender_is_told_once_in_reply(daemon: RunningDaemon, place: Place) -> None:
    [number] = failing(place, "never got there")
    a_day_of_failure(place, number)
    failed = place.wait_for_status(number, "failed")
    assert failed["last_error"]["text"] == "still nothing"
    (notice,) = notices(place.owner)
    assert notice["auto"] is True
    assert (notice["reply_to"], notice["thread"]) == (failed["message"], failed["thread"])
    assert number in notice["text"]
    assert place.address in notice["text"]
    assert "still nothing" in notice["text"]


def test_attempts_count_what_was_tried_and_failed_and_nothing_else(
    daemon: RunningDaemon, place: Place
) -> None:
    head, behind = failing(place, "head", "behind", times=2)
    place.steer("retry")
    place.wait_for_failures(2)
    a_day_of_failure(place, head, behind)
    assert place.wait_for_status(head, "failed")["attempts"] == 3
    assert place.wait_for_status(behind, "failed")["attempts"] == 0


@pytest.mark.parametrize(
    "ms", [2 * DAY_MS, DAY_MS - HOUR_MS], ids=["asleep after one failure", "before a day"]
)
def test_without_a_day_of_trying_nothing_is_given_up(daemon: RunningDaemon, place: Place, ms: int) -> None:
    [number] = failing(place, "x", times=2)
    place.lane_ages(ms)
    age(daemon, number, ms)
    place.steer("retry")
    place.wait_for_failures(2)
    assert boss(daemon).get(number)["status"] == "pending"
    place.goes_on("retry", "x")


def test_what_came_later_gets_its_own_day(daemon: RunningDaemon, place: Place) -> None:
    [old] = failing(place, "old")
    young = place.send("young")
    a_day_of_failure(place, old)
    place.wait_for_status(old, "failed")
    assert boss(daemon).get(young)["status"] == "pending"
    place.goes_on("retry", "young")
    assert place.wait_for_status(young, "done")["attempts"] == 0


def test_a_lane_that_was_paused_for_days_does_not_give_up_at_its_first_failure(
    daemon: RunningDaemon, place: Place
) -> None:
    place.steer("pause")
    number = place.send("patient")
    age(daemon, number, 3 * DAY_MS)
    place.script(lane_error())
    place.steer("resume")
    place.wait_for_failures(1)
    assert boss(daemon).get(number)["status"] == "pending"
    place.goes_on("retry", "patient")


def test_many_of_one_sender_make_one_notice_and_every_sender_gets_his_own(
    daemon: RunningDaemon, place: Place
) -> None:
    first, second = place.owner, agent(daemon)
    place.bind(second)
    place.owner = first
    mine = failing(place, *(f"{i}" for i in range(30)))
    (other,) = second.send(place.address, text="mine")["ids"]
    a_day_of_failure(place, *mine, other)
    for number in (*mine, other):
        place.wait_for_status(number, "failed")
    (notice,) = notices(place.owner)
    assert all(number in notice["text"] for number in mine[:20])
    assert "and 10 more" in notice["text"]
    (notice,) = notices(second)
    assert other in notice["text"]


def test_the_boss_is_told_of_what_he_sent_himself(daemon: RunningDaemon, place: Place) -> None:
    place.script(envelope_error(text="no such chat"))
    (number,) = boss(daemon).send(place.address, text="from above", from_="user:boss")["ids"]
    place.wait_for_status(number, "failed")
    found = [one for one in notices(boss(daemon)) if number in one["text"]]
    assert len(found) == 1 and "no such chat" in found[0]["text"]


def test_an_envelope_error_tells_its_sender_once_too(daemon: RunningDaemon, place: Place) -> None:
    place.script(OK, envelope_error(text="blocked by them"))
    place.send("fine")
    number = place.send("refused")
    failed = place.wait_for_status(number, "failed")
    (notice,) = notices(place.owner)
    assert notice["reply_to"] == failed["message"] and f"hiboss envelope retry {number}" in notice["text"]


@pytest.mark.parametrize("sender", ["agent:system", "channel"])
def test_no_notice_goes_to_the_system_itself_nor_to_a_channel(
    daemon: RunningDaemon, place: Place, sender: str
) -> None:
    """No operation lets these post to a channel, so the sender is changed in the database."""
    place.script(lane_error(), envelope_error())
    number = place.send("x")
    place.wait_for_failures(1)  # this creates agent:system
    owner = sender_becomes(daemon, number, place.address if sender == "channel" else sender)
    before = messages(daemon)
    place.steer("retry")
    place.wait_for_status(number, "failed")
    assert messages(daemon) == before
    sender_becomes(daemon, number, owner)


def sender_becomes(daemon: RunningDaemon, number: str, address: str) -> str:
    """Change the sender; return who it was before."""
    with daemon.database() as database:
        find = """
            SELECT a.kind || ':' || a.name FROM envelope e JOIN message m ON m.id = e.message
            JOIN address a ON a.id = m.sender WHERE e.id = ?
        """
        before = database.execute(find, (int(number[1:]),)).fetchone()[0]
        database.execute(
            """
            UPDATE message SET sender = (SELECT id FROM address WHERE fold = ?)
            WHERE id = (SELECT message FROM envelope WHERE id = ?)
            """,
            (address.lower(), int(number[1:])),
        )
        database.commit()
    return str(before)


def messages(daemon: RunningDaemon) -> int:
    with daemon.database() as database:
        return int(database.execute("SELECT count(*) FROM message").fetchone()[0])


def test_who_was_deleted_gets_no_notice(daemon: RunningDaemon, place: Place) -> None:
    """Another agent keeps the channel bound, so the mail of the deleted one is still delivered."""
    leaver = place.owner
    place.bind(agent(daemon))
    place.owner = leaver
    number = place.send_failing("last words", lane_error(), envelope_error())
    boss(daemon).call("agent.delete", name=place.owner.name)
    place.steer("retry")
    place.wait_for_status(number, "failed")
    with daemon.database() as database:
        to_him = """
            SELECT count(*) FROM envelope e JOIN address a ON a.id = e.recipient WHERE a.name = ?
        """
        assert database.execute(to_him, (place.owner.name,)).fetchone()[0] == 0


def test_what_was_given_up_can_be_taken_up_again_and_goes_out(daemon: RunningDaemon, place: Place) -> None:
    place.script(envelope_error())
    number = place.send("second chance")
    place.wait_for_status(number, "failed")
    assert place.owner.call("envelope.retry", ids=[number]) == {"changed": 1}
    place.wait_for("second chance")
    assert place.wait_for_status(number, "done")["attempts"] == 1


def test_what_is_taken_up_again_in_a_long_outage_has_a_new_day(daemon: RunningDaemon, place: Place) -> None:
    numbers = failing(place, "a", "b")
    a_day_of_failure(place, *numbers)
    for number in numbers:
        place.wait_for_status(number, "failed")
    place.script(lane_error())
    failures = place.lane()["failures"]
    place.owner.call("envelope.retry", ids=numbers)
    place.steer("retry")
    place.wait_for_failures(failures + 1)
    assert [row(daemon, number)["status"] for number in numbers] == [0, 0]
    place.goes_on("retry", "a", "b")


def test_one_outage_with_a_giving_up_in_it_tells_the_boss_once(daemon: RunningDaemon, place: Place) -> None:
    [number] = failing(place, "x")
    a_day_of_failure(place, number)
    failures = place.lane()["failures"]
    place.script(lane_error())
    place.send("y")
    place.steer("retry")
    place.wait_for_failures(failures + 1)
    outages = [one for one in notices(boss(daemon)) if f"to {place.address} has failed since" in one["text"]]
    assert len(outages) == 1
    place.goes_on("retry", "y")
    wait_until(lambda: place.lane()["failures"] == 0)


# --- what is retried ----------------------------------------------------------------------


@pytest.mark.parametrize("box", ["trash", "archive"])
def test_retry_puts_it_back_into_the_inbox_so_that_unbinding_finds_it(
    daemon: RunningDaemon, tmp_path: Path, box: str
) -> None:
    place = Place(tmp_path).bound(daemon)
    place.script(envelope_error(), lane_error())
    number = place.send("to be retried")
    place.wait_for_status(number, "failed")
    boss(daemon).call(f"envelope.{box}", ids=[number], address=place.address)
    boss(daemon).call("envelope.retry", ids=[number])
    found = boss(daemon).get(number)
    assert (found["box"], found["status"]) == ("inbox", "pending")
    daemon.check()
    place.unbind()
    assert boss(daemon).get(number)["status"] == "failed"
    daemon.check()
