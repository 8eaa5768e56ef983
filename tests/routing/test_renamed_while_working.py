"""Agents that work while the chat they answer in becomes one with another: their run goes on there."""

from __future__ import annotations

import itertools
from pathlib import Path

from tests.channels.stored_updates import received
from tests.support.followers import following
from tests.support.live_places import LIVE, LivePlace, Writer
from tests.support.parties import boss
from tests.support.python_agents import Team
from tests.support.waits import wait_until

ENVIRONMENT = {"HIBOSS_DELIVERY_LIVE_SECONDS": "0.02"}

_numbers = itertools.count(1)
TALKS = '[(print("more", flush=True), time.sleep(0.001)) for _ in iter(int, 1)]'  # and never ends


class Scene:
    """An agent works on what came in under the new id of a chat, before the renaming was known."""

    def __init__(
        self, team: Team, directory: Path, *capabilities: str, first: str = 'print("well…")'
    ) -> None:
        name = f"writer-{next(_numbers)}"
        self.daemon = team.daemon
        self.old, self.new = f"{name}-old", f"{name}-new"
        self.place = LivePlace(directory, *capabilities, places=[self.old, self.new])
        self.writer = Writer(team, name, first=first)
        self.place.bound(team.daemon, self.writer.agent)
        self.place.comes_in("u1", text="too early", place=self.new, group="ops", message="1")
        wait_until(lambda: self.writer.agent.runs() and self.writer.status() == "running")
        self.before = self.conversation()

    def conversation(self) -> str:
        [asked] = [one for one in received(self.place) if one["type"] != "event"]
        return str(asked["conversation"])

    def merge(self) -> None:
        self.rename(self.old, self.new)

    def rename(self, old: str, new: str) -> None:
        facts = {"kind": "membership", "membership": "renamed", "group": "ops", "act": True}
        self.place.comes_in("rename", place=old, renamed_to=new, **facts)


def test_a_run_is_told_where_it_answers_now_however_it_ends(team: Team, tmp_path: Path) -> None:
    """It speaks all the time: nothing that it says after the gap is said in the conversation that is gone."""
    scene = Scene(team, tmp_path, "threads", first=TALKS)
    run = scene.writer.agent.runs()[-1]["id"]
    chief = boss(scene.daemon)
    with following(scene.daemon) as follower:
        follower.subscribe(scene.writer.agent.token, topics=["run.progress", "run.paused", "run.ended"])
        follower.next("run.progress")
        scene.merge()
        follower.next("gap")
        told = [follower.next("run.progress") for _ in range(50)]
        for operation in ("run.pause", "run.resume"):
            chief.call(operation, id=run)
            told.append(follower.next("run.paused"))
        chief.call("run.cancel", id=run)
        told.append(follower.next("run.ended"))
    assert {one["conversation"] for one in told} == {scene.conversation()}
    assert scene.conversation() != scene.before


def test_a_live_post_of_a_chat_that_becomes_one_with_another_goes_and_the_answer_is_posted(
    team: Team, tmp_path: Path
) -> None:
    scene = Scene(team, tmp_path, *LIVE)
    scene.place.wait_until_seen("well…")
    scene.merge()
    scene.writer.goes_on()
    scene.place.wait_until_seen("well…\nand done")
    wait_until(scene.place.is_settled)
    assert [one["place"] for one in scene.place.posts()] == [scene.new, scene.new]
    assert [one["place"] for one in scene.place.changes("delete")] == [scene.new]


def test_a_live_post_of_a_chat_that_gets_another_id_goes_and_the_answer_is_posted_under_the_new_one(
    team: Team, tmp_path: Path
) -> None:
    scene = Scene(team, tmp_path, *LIVE)
    scene.place.wait_until_seen("well…")
    newer = f"{scene.new}-again"
    scene.rename(scene.new, newer)
    scene.writer.goes_on()
    scene.place.wait_until_seen("well…\nand done")
    wait_until(scene.place.is_settled)
    # An id of the old chat may be that of another post in the new one.
    assert [one["place"] for one in scene.place.posts()] == [scene.new, newer]
    assert {one["place"] for one in scene.place.changes()} == {scene.new}
