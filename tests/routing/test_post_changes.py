"""What is posted follows its message: edits change posts, deletions take them back, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.changing_places import CHANGES, ChangingPlace
from tests.support.forked_daemons import pauses
from tests.support.parties import agent, boss
from tests.support.scripted_channels import (
    CRASH,
    DAY_MS,
    OK,
    account_error,
    daemon_with_channels,
    envelope_error,
    lane_error,
    notices,
)
from tests.support.waits import wait_until

PLACE = ChangingPlace


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """One that gives a change a second, not ten."""
    quick = pauses({"routing.post_changes.CALL_SECONDS": 1.0})
    with daemon_with_channels(tmp_path_factory.mktemp("hasty"), **quick) as running:
        yield running


# --- edits -----------------------------------------------------------------------------------


def test_an_edit_changes_only_the_chunks_that_differ(place: ChangingPlace) -> None:
    place.edit(place.posted("AAAAABBBBBCCCCC"), "AAAAAXXXXXCCCCC")
    place.wait_until_in_line("AAAAA", "XXXXX", "CCCCC")
    assert place.calls() == [("edit", "1")]


def test_a_shorter_text_takes_posts_back_and_a_longer_one_adds_some(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBBCCCCC")
    place.edit(number, "AAAAA")
    place.wait_until_in_line("AAAAA")
    place.edit(number, "ZZZZZYYYYY")
    place.wait_until_in_line("ZZZZZ", "YYYYY")
    place.edit(number, "ZZZZZYYYYYXXXXX")
    place.wait_until_in_line("ZZZZZ", "YYYYY", "XXXXX")
    keys = [one["key"] for one in place.posts()]
    assert len(set(keys)) == len(keys) == 5  # no number of a chunk, also not of a deleted one, is used again
    assert [one["key"] for one in place.changes("edit")] == [keys[0]]


def test_a_reply_to_what_was_edited_or_added_finds_the_message(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.edit(number, "BBBBBCCCCC")
    place.wait_until_in_line("BBBBB", "CCCCC")
    place.comes_in("1", text="I see", reply_to=f"{number}.1", message="r1")
    [came] = place.owner.list(unread=True)
    assert came["reply_to"] == place.owner.get(number)["message"] and came["quote"] == "BBBBBCCCCC"


def test_an_answer_to_a_message_quotes_the_first_post_that_is_left(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBB")
    place.owner.send(place.address, text="more", reply_to=number)
    wait_until(lambda: len(place.posts()) == 3)
    assert place.posts()[-1]["reply_to"] == f"{number}.0"


def test_several_edits_in_a_row_end_with_the_last_one(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBB")
    place.script_for("edit", place.gated())
    place.edit(number, "CCCCC")
    wait_until(lambda: place.left()[0]["planned"] == 1)
    for text in ("DDDDDEEEEEFFFFF", "GGGGG", "AAAAABBBBB"):
        place.edit(number, text)
    place.open_gate()
    place.wait_until_in_line("AAAAA", "BBBBB")


def test_an_edit_back_to_the_text_that_may_be_shown_is_made_all_the_same(place: ChangingPlace) -> None:
    """The edit that was broken off may have reached the platform."""
    number = place.posted("AAAAA")
    place.script_for("edit", *[CRASH] * 50)
    place.edit(number, "BBBBB")
    wait_until(lambda: place.left()[0]["failures"] > 0)
    place.edit(number, "AAAAA")
    place.script_for("edit")
    place.steer("retry")
    place.wait_until_in_line("AAAAA")
    assert place.calls() == [("edit", "0")]


def test_what_has_not_been_posted_yet_simply_has_the_new_text(place: ChangingPlace) -> None:
    place.steer("pause")
    number = place.send("AAAAABBBBB")
    later = place.owner.send(place.address, text="later", deliver_at="+2h")["ids"][0]
    place.edit(number, "CCCCC")
    place.edit(later, "sooner")
    assert place.left() == []
    place.steer("resume")
    place.wait_for_status(number, "done")
    assert place.seen() == ["CCCCC"] and place.changes() == []
    assert boss(place.daemon).get(later)["text"] == "sooner"


def test_what_was_planned_and_not_begun_is_planned_anew(place: ChangingPlace) -> None:
    place.script(lane_error())
    place.steer("pause")
    number = place.send("AAAAABBBBB")
    place.steer("resume")
    wait_until(lambda: boss(place.daemon).get(number)["attempts"] == 1)
    place.edit(number, "CCCCCDDDDDEEEEE")
    place.steer("retry")
    place.wait_for_status(number, "done")
    place.wait_until_in_line("CCCCC", "DDDDD", "EEEEE")
    assert place.changes() == []


def test_what_is_being_posted_is_finished_and_changed_then(place: ChangingPlace) -> None:
    place.script(OK, place.gated())
    number = place.send("AAAAABBBBBCCCCC")
    wait_until(lambda: len(place.posts()) == 1 and not place.steps_left())
    place.edit(number, "XXXXXBBBBB")
    assert [one["planned"] for one in place.left()] == [0]
    place.open_gate()
    place.wait_until_in_line("XXXXX", "BBBBB")
    assert place.texts() == ["AAAAA", "BBBBB", "CCCCC"]


def test_what_is_partly_posted_when_its_lane_waits_is_finished_and_changed_then(place: ChangingPlace) -> None:
    number = place.send_failing("AAAAABBBBB", OK, lane_error(retry_after=0.2))
    place.edit(number, "CCCCCDDDDD")
    place.wait_for_status(number, "done")
    place.wait_until_in_line("CCCCC", "DDDDD")


def test_a_failed_envelope_gets_the_new_text_when_it_is_retried(place: ChangingPlace) -> None:
    place.script(OK, envelope_error())
    number = place.send("AAAAABBBBB")
    place.wait_for_status(number, "failed")
    place.edit(number, "CCCCC")
    assert len(place.left()) == 1 and place.seen() == ["AAAAA"]
    place.owner.call("envelope.retry", ids=[number])
    place.wait_until_in_line("CCCCC")


def test_all_posts_of_a_message_to_several_chats_follow(
    daemon: RunningDaemon, tmp_path: Path, place: ChangingPlace
) -> None:
    other = ChangingPlace(tmp_path).bound(daemon, place.owner)
    sent = place.owner.send(place.address, other.address, text="AAAAA")
    for one, number in zip((place, other), sent["ids"], strict=True):
        one.wait_for_status(number, "done")
    place.edit(sent["message"], "BBBBB")
    wait_until(lambda: place.seen() == other.seen() == ["BBBBB"])
    assert place.delete(sent["message"])["posts"] == 2
    wait_until(lambda: place.seen() == other.seen() == [])


# --- deletions -------------------------------------------------------------------------------


def test_a_deletion_takes_back_all_posts_with_their_parts(daemon: RunningDaemon, tmp_path: Path) -> None:
    place = ChangingPlace(tmp_path, parts=3).bound(daemon)
    assert place.delete(place.posted("AAAAABBBBB"))["posts"] == 1
    wait_until(lambda: place.left() == [])
    assert sorted(place.calls()) == [
        ("delete", f"{chunk}{part}") for chunk in (0, 1) for part in ("", "+1", "+2")
    ]


def test_a_reply_to_a_post_that_is_gone_still_finds_its_message(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.delete(number)
    place.wait_until_in_line()
    place.comes_in("1", text="but why?", reply_to=f"{number}.0", message="r1")
    [came] = place.owner.list(unread=True)
    assert came["reply_to"] == place.owner.get(number)["message"] and came["quote"] is None


def test_a_deletion_after_an_edit_that_was_not_made_takes_everything_back(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBB")
    place.script_for("edit", place.gated())
    place.edit(number, "CCCCCDDDDDEEEEE")
    wait_until(lambda: place.left()[0]["planned"] == 1)
    place.delete(number)
    place.open_gate()
    place.wait_until_in_line()


def test_what_is_deleted_while_it_is_posted_is_not_posted_further_and_taken_back(
    place: ChangingPlace,
) -> None:
    place.script(OK, place.gated())
    number = place.send("AAAAABBBBBCCCCCDDDDD")
    wait_until(lambda: len(place.posts()) == 1 and not place.steps_left())
    assert place.delete(number) | {"message": ""} == {
        "message": "",
        "changed": True,
        "cancelled": 0,
        "in_hand": 0,
        "posts": 1,
    }
    place.open_gate()
    place.wait_for_status(number, "cancelled")
    place.wait_until_in_line()
    assert place.texts() == ["AAAAA", "BBBBB"]
    after = place.posted("next")
    assert place.seen() == ["next"] and after


def test_what_is_deleted_while_its_lane_waits_is_never_posted(place: ChangingPlace) -> None:
    place.script(place.gated(**lane_error(retry_after=0.1)))
    number = place.send("AAAAA")
    wait_until(lambda: not place.steps_left())
    place.delete(number)
    place.open_gate()
    place.wait_for_status(number, "cancelled")
    place.wait_until_in_line()
    assert place.texts() == [] and not notices(place.owner)


def test_what_is_partly_posted_is_taken_back_at_once_and_its_lane_goes_on(place: ChangingPlace) -> None:
    place.script(OK, lane_error(retry_after=None))
    number, other = place.send("AAAAABBBBB"), place.send("next")
    place.wait_for_failures(1)
    assert place.delete(number)["cancelled"] == 1
    place.wait_until_in_line()
    place.steer("retry")
    place.wait_for_status(other, "done")
    assert place.seen() == ["next"] and place.lane()["partly_posted"] is None


def test_what_failed_is_taken_back_and_cannot_be_retried(place: ChangingPlace) -> None:
    place.script(OK, envelope_error())
    number = place.send("AAAAABBBBB")
    place.wait_for_status(number, "failed")
    place.delete(number)
    place.wait_until_in_line()
    assert place.owner.refusal("envelope.retry", ids=[number]) == "too_late"


# --- what goes wrong -------------------------------------------------------------------------


def test_a_post_that_cannot_be_changed_stays_and_the_sender_is_told_once(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBBCCCCC")
    place.script_for("edit", envelope_error(text="this post is not there any more"))
    place.edit(number, "XXXXXYYYYY")  # and what is too much stays too: it may take the place of that one
    place.wait_until_in_line("AAAAA", "YYYYY", "CCCCC")
    [told] = notices(place.owner)
    assert told["text"] == (
        f"{number} was not changed in {place.address}: 1 post there did not get the new text. "
        'Reason: "this post is not there any more"'
    )
    assert told["reply_to"] == place.owner.get(number)["message"]


def test_what_cannot_be_taken_back_is_named_to_who_deleted_it(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBBCCCCC")
    place.script_for("delete", OK, *[envelope_error(text="it is too old")] * 2)
    boss(place.daemon).call("message.delete", id=number)
    place.wait_until_in_line("BBBBB", "CCCCC")
    assert notices(boss(place.daemon))[-1]["text"] == (
        f"{number} was not taken back from {place.address}: 2 posts of it are still there. "
        'Reason: "it is too old"'
    )
    assert not notices(place.owner)


@pytest.mark.parametrize("lacks", ["edit", "delete"])
def test_a_platform_that_cannot_change_posts_leaves_them_and_the_sender_is_told_once(
    daemon: RunningDaemon, tmp_path: Path, lacks: str
) -> None:
    place = ChangingPlace(tmp_path, *[one for one in CHANGES if one != lacks]).bound(daemon)
    place.edit(place.posted("AAAAABBBBB"), "CCCCC")
    place.wait_until_in_line(*(["AAAAA", "BBBBB"] if lacks == "edit" else ["CCCCC", "BBBBB"]))
    assert [f"scripted cannot {lacks} what is posted" in one["text"] for one in notices(place.owner)] == [
        True
    ]


@pytest.mark.parametrize("failure", [lane_error, account_error], ids=["lane", "account"])
def test_a_wait_that_the_platform_names_is_kept_and_holds_the_chat(
    place: ChangingPlace, failure: Any
) -> None:
    number = place.posted("AAAAA")
    place.script_for("edit", failure(retry_after=3600, text="not so fast"))
    place.edit(number, "BBBBB")
    wait_until(lambda: place.lane().get("not_before") is not None)
    waiting = place.send("next")
    place.edit(number, "CCCCC")
    assert boss(place.daemon).get(waiting)["status"] == "pending" and place.seen() == ["AAAAA"]
    place.steer("retry")  # the boss knows better
    place.wait_for_status(waiting, "done")
    place.wait_until_in_line("CCCCC", "next")


@pytest.mark.parametrize(
    "step", [lane_error(retry_after=None), CRASH, {"do": "hang", "seconds": 60}], ids=str
)
def test_what_fails_without_a_time_is_tried_again_when_the_adapter_is_back(
    hasty: RunningDaemon, tmp_path: Path, step: dict[str, Any]
) -> None:
    place = ChangingPlace(tmp_path).bound(hasty)
    number = place.posted("AAAAA")
    place.script_for("edit", *[step] * 50)
    place.edit(number, "BBBBB")
    wait_until(lambda: place.left()[0]["failures"] > 0)
    place.script_for("edit")
    assert place.lane().get("not_before") is None  # its posts need not wait for that
    place.steer("retry")
    place.wait_until_in_line("BBBBB")


def test_after_a_day_of_failures_it_is_given_up_and_told(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBB")
    place.script_for("edit", *[lane_error(retry_after=None, text="still down")] * 50)
    place.edit(number, "CCCCCDDDDD")
    wait_until(lambda: place.left()[0]["failures"] > 0)
    with place.daemon.database() as database:
        sql = "UPDATE post_change SET failures = 9, first_failed_at = first_failed_at - ?"
        database.execute(sql, (DAY_MS,))
        database.commit()
    place.steer("retry")
    wait_until(lambda: place.left() == [])
    assert place.seen() == ["AAAAA", "BBBBB"]
    [told] = notices(place.owner)
    assert "2 posts there did not get the new text" in told["text"] and "still down" in told["text"]


def test_a_paused_lane_waits_and_goes_on_when_it_is_resumed(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.steer("pause")
    place.edit(number, "BBBBB")
    other = place.send("next")
    assert place.seen() == ["AAAAA"] and len(place.left()) == 1
    place.steer("resume")
    place.wait_for_status(other, "done")
    place.wait_until_in_line("BBBBB", "next")


def test_an_account_that_is_unbound_leaves_its_posts_and_the_sender_is_told(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.unbind()
    place.edit(number, "BBBBB")
    wait_until(lambda: place.left() == [])
    assert place.seen() == ["AAAAA"]
    assert "this account is not bound any more" in notices(place.owner)[-1]["text"]


def test_an_account_that_is_bound_again_changes_what_it_posted_before(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.unbind()
    place.bound(place.daemon, place.owner)
    place.edit(number, "BBBBB")
    place.wait_until_in_line("BBBBB")


def test_posts_of_a_deleted_agent_can_be_taken_back_by_the_boss(
    daemon: RunningDaemon, place: ChangingPlace
) -> None:
    stays = agent(daemon)
    gone = place.owner
    place.bind(stays)
    place.owner = gone
    number = place.posted("AAAAA")  # with the name of its agent in front, since two write there
    boss(daemon).call("agent.delete", name=gone.name)
    boss(daemon).call("message.delete", id=number)
    place.wait_until_in_line()


def test_in_a_chat_with_a_new_id_private_posts_are_changed_and_those_of_a_group_stay(
    daemon: RunningDaemon, tmp_path: Path
) -> None:
    for kind, end in (("private", ["BBBBB"]), ("group", ["AAAAA"])):
        place = ChangingPlace(tmp_path).bound(daemon)
        number = place.posted("AAAAA")
        with daemon.database() as database:
            database.execute("UPDATE contact SET kind = ? WHERE platform_id = ?", (kind, place.name))
            database.commit()
        renamed = f"{place.name}-new"
        place.comes_in("1", kind="membership", act=True, membership="renamed", renamed_to=renamed)
        place.edit(number, "BBBBB")
        wait_until(lambda: place.left() == [])  # noqa: B023 - called here
        assert place.seen() == end
        told = notices(place.owner)
        assert [one["place"] for one in place.changes()] == ([renamed] if kind == "private" else [])
        assert ("the chat has another id now" in told[-1]["text"]) if kind == "group" else not told


def test_in_a_blocked_chat_nothing_is_edited_but_it_is_taken_back(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    boss(place.daemon).call("contact.block", contact=place.address)
    place.edit(number, "BBBBB")
    wait_until(lambda: place.left() == [])
    assert place.seen() == ["AAAAA"] and "blocked" in notices(place.owner)[-1]["text"]
    place.delete(number)
    place.wait_until_in_line()


# --- mail of the boss ------------------------------------------------------------------------


def test_a_forward_follows_and_only_the_boss_is_told_of_it(
    daemon: RunningDaemon, place: ChangingPlace
) -> None:
    chief, writer = boss(daemon), agent(daemon)
    chief.call("boss.set", reach=place.address)
    try:
        sent = writer.send(chief, text="AAAAA")
        name = f"{writer.name}:\n"
        wait_until(lambda: "".join(place.seen()) == f"{name}AAAAA")
        writer.call("message.edit", id=sent["message"], text="BBBBB")
        wait_until(lambda: "".join(place.seen()) == f"{name}BBBBB")
        wait_until(lambda: place.left() == [])
        place.script_for("delete", *[envelope_error(text="too old")] * 9)
        writer.call("message.delete", id=sent["message"])
        wait_until(lambda: place.left() == [])
        assert not notices(writer) and "too old" in notices(chief)[-1]["text"]
    finally:
        chief.call("boss.set", reach="")


def test_in_a_chat_that_is_not_the_boss_s_any_more_no_new_text_of_his_mail_is_shown(
    daemon: RunningDaemon, place: ChangingPlace
) -> None:
    chief, writer = boss(daemon), agent(daemon)
    chief.call("boss.set", reach=place.address)
    sent = writer.send(chief, text="AAAAA")
    wait_until(lambda: "".join(place.seen()).endswith("AAAAA"))
    chief.call("boss.set", reach="")
    writer.call("message.edit", id=sent["message"], text="secret")
    wait_until(lambda: place.left() == [])
    assert "secre" not in "".join(place.seen())
    assert "no chat of the boss any more" in notices(chief)[-1]["text"] and not notices(writer)


# --- a message that was deleted and restored ----------------------------------------------


def restored(place: ChangingPlace, number: str) -> int:
    answer = place.owner.call("message.restore", id=number)
    assert answer["changed"]
    return int(answer["posts"])


def test_a_post_that_was_not_taken_back_yet_stays_as_it_is(place: ChangingPlace) -> None:
    number = place.posted("AAAAABBBBB")
    place.steer("pause")
    place.delete(number)
    assert restored(place, number) == 1
    place.steer("resume")
    place.wait_until_in_line("AAAAA", "BBBBB")
    assert place.calls() == []


def test_a_post_gets_the_latest_wording_of_what_was_restored(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.steer("pause")
    place.edit(number, "BBBBB")
    place.delete(number)
    assert restored(place, number) == 1
    place.steer("resume")
    place.wait_until_in_line("BBBBB")


def test_what_was_taken_back_is_not_posted_again(place: ChangingPlace) -> None:
    number = place.posted("AAAAA")
    place.delete(number)
    wait_until(lambda: place.left() == [])
    assert restored(place, number) == 0
    place.wait_for_status(place.send("next"), "done")
    place.wait_until_in_line("next")
