"""Pacing belongs to the chat: a wait that a platform names in one topic holds all topics of that chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.testing.running_daemon import RunningDaemon
from tests.support.parties import boss
from tests.support.scripted_channels import Place, lane_error, notices, written
from tests.support.waits import wait_until


class Forum(Place):
    """A chat with topics, and another chat of the same account."""

    def say(self, topic: str, text: str) -> str:
        return str(self.owner.send(f"{self.address}/{topic}", text=text)["ids"][0])

    def say_elsewhere(self, text: str) -> None:
        """Post in the other chat, and wait: what was sent before was looked at before."""
        self.owner.send(f"channel:scripted:{self.name}-other", text=text)
        wait_until(lambda: text in self.texts())

    def lanes(self) -> dict[str, dict[str, Any]]:
        """Return the rows of the lanes of its topics."""
        with self.daemon.database() as database:
            rows = database.execute(
                """
                SELECT a.name, l.* FROM lane l JOIN address a ON a.id = l.address
                WHERE l.binding = ? AND instr(a.name, '/')
                """,
                (self.binding,),
            )
            return {row["name"].partition("/")[2]: dict(row) for row in rows}

    def steer_topic(self, verb: str, topic: str) -> None:
        boss(self.daemon).call(f"lane.{verb}", address=f"{self.address}/{topic}")


@pytest.fixture
def forum(daemon: RunningDaemon, tmp_path: Path) -> Forum:
    place = Forum(tmp_path)
    place.settings(places=[f"{place.name}-other"]).bound(daemon)
    for topic in ("1", "2"):
        place.say(topic, f"hello {topic}")
        wait_until(lambda topic=topic: f"hello {topic}" in place.texts())
    return place


def told_to_wait(forum: Forum, **facts: Any) -> None:
    """Let topic 1 be told to wait, for an hour unless given."""
    forum.script(lane_error(kind="rate_limited", **facts))
    forum.say("1", "too much")
    wait_until(lambda: forum.lanes().get("1", {}).get("failures"))


def test_a_wait_named_in_one_topic_holds_all_topics_of_the_chat_and_no_other_chat(forum: Forum) -> None:
    told_to_wait(forum)
    held = [forum.say("2", "held"), forum.send("held too")]
    forum.say_elsewhere("not held")
    assert forum.texts() == ["hello 1", "hello 2", "not held"]
    first, second = forum.lanes()["1"], forum.lanes()["2"]
    assert first["not_before"] == second["not_before"] == forum.lane()["not_before"]
    assert (second["state"], second["failures"], second["error_kind"]) == ("waiting", 0, "rate_limited")
    assert [forum.owner.get(one)["attempts"] for one in held] == [0, 0]


def test_a_topic_that_is_new_while_its_chat_waits_waits_too(forum: Forum) -> None:
    told_to_wait(forum)
    forum.say("3", "a new topic")
    forum.say_elsewhere("done")
    assert "a new topic" not in forum.texts()
    assert forum.lanes()["3"]["not_before"] == forum.lanes()["1"]["not_before"]


def test_when_the_time_has_come_all_topics_go_on(forum: Forum) -> None:
    told_to_wait(forum, retry_after=0.3)
    forum.say("2", "and this")
    wait_until(lambda: {"too much", "and this"} <= {*forum.texts()})
    written(forum.daemon)
    assert {(one["state"], one["not_before"], one["error_kind"]) for one in forum.lanes().values()} == {
        ("open", None, None)
    }


def told(forum: Forum) -> list[str]:
    """Return what the boss was told about the chat."""
    return [one["text"] for one in notices(boss(forum.daemon)) if f"{forum.address}/" in one["text"]]


def test_a_short_wait_that_the_platform_names_is_no_failure_to_tell(forum: Forum) -> None:
    told_to_wait(forum, retry_after=0.05)
    wait_until(lambda: "too much" in forum.texts())
    assert told(forum) == []


def test_of_short_waits_that_do_not_end_the_boss_is_told_after_five_minutes(forum: Forum) -> None:
    told_to_wait(forum, retry_after=60)
    assert told(forum) == []
    forum.lane_ages(5 * 60_000)
    forum.script(lane_error(kind="rate_limited", retry_after=60), lane_error(kind="rate_limited"))
    for failures in (2, 3):
        forum.steer_topic("retry", "1")
        wait_until(lambda failures=failures: forum.lanes()["1"]["failures"] == failures)
        assert len(told(forum)) == 1


def test_of_a_failure_in_several_topics_of_a_chat_the_boss_is_told_once(forum: Forum) -> None:
    told_to_wait(forum)
    forum.script(lane_error(kind="rate_limited"), lane_error(kind="closed"))
    forum.say("2", "by hand")
    forum.steer_topic("retry", "2")
    wait_until(lambda: forum.lanes()["2"]["failures"])
    assert len(told(forum)) == 1
    forum.say("3", "another failure")
    forum.steer_topic("retry", "3")
    wait_until(lambda: forum.lanes()["3"]["failures"])
    assert len(told(forum)) == 2


def test_only_a_retry_by_hand_tries_a_topic_earlier_and_the_others_still_wait(forum: Forum) -> None:
    told_to_wait(forum)
    forum.say("2", "by hand")
    forum.send("still waits")
    forum.steer_topic("retry", "2")
    wait_until(lambda: "by hand" in forum.texts())
    forum.say_elsewhere("done")
    assert "still waits" not in forum.texts() and "too much" not in forum.texts()


def test_a_pause_of_a_topic_outlasts_the_wait_and_its_end_does_not_shorten_it(forum: Forum) -> None:
    forum.steer_topic("pause", "2")
    told_to_wait(forum)
    assert forum.lanes()["2"]["state"] == "paused"
    forum.steer_topic("resume", "2")
    forum.say("2", "later")
    forum.say_elsewhere("done")
    assert "later" not in forum.texts() and forum.lanes()["2"]["wake_at"] == forum.lanes()["1"]["not_before"]


def test_a_post_that_gets_through_meanwhile_does_not_end_the_wait(forum: Forum) -> None:
    forum.script(lane_error(retry_after=None, text="network"))
    forum.say("2", "slow")
    wait_until(lambda: forum.lanes().get("2", {}).get("failures"))
    forum.script(forum.gated(), lane_error(kind="rate_limited"))
    forum.steer_topic("retry", "2")
    wait_until(lambda: forum.steps_left() == 1)  # it is on its way
    forum.say("1", "too much")
    wait_until(lambda: forum.lanes().get("1", {}).get("failures"))
    forum.open_gate()
    wait_until(lambda: "slow" in forum.texts())
    forum.say("2", "next")
    forum.say_elsewhere("done")
    assert "next" not in forum.texts()
    second = forum.lanes()["2"]
    assert second["failures"] == 0 and second["not_before"] == forum.lanes()["1"]["not_before"]
