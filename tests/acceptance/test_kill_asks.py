"""kill -9 around asks: each step is done or not at all, and a repeated turn finds what it asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.api import asks
from hiboss.core.crashpoint import AFTER_COMMIT, ASK_CREATED, ASK_SETTLED, ASK_WOKEN, BEFORE_WRITE, IN_GROUP
from hiboss.routing import ask_wakes
from tests.support.crash_groups import Submits
from tests.support.mortals import Mortal
from tests.support.parties import agent
from tests.support.python_agents import Boss, Team, texts, wait_until_idle
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

DONE = (AFTER_COMMIT, ASK_CREATED, ASK_SETTLED, ASK_WOKEN)  # behind these it is on disk
WAITER = """
made = call("ask.create", question="Deploy?")
note([made["ask"]["id"], made["duplicate"], made["ask"]["answer"]])
answer = made["ask"]["answer"] or call("ask.wait", id=made["ask"]["id"], timeout="1m")["ask"]["answer"]
call("ask.wait", id=made["ask"]["id"], received=True)
print("I deploy: " + answer)
"""


class Story:
    """A daemon that dies and starts again, and an agent that asks the boss."""

    def __init__(self, daemon: Mortal, directory: Path) -> None:
        self.daemon = daemon
        self.ada, self.asker, self.team = Boss(daemon), agent(daemon), Team(daemon, directory)

    def dies(self, point: str, of: Submits, act: Callable[[], Any], **env: str) -> None:
        """Let the daemon die at a point of this, and start it again."""
        self.daemon.dies_of(self.daemon.dies_at(point, of=of, **env), act)
        self.daemon.start()
        self.daemon.check()

    def created(self, **params: Any) -> str:
        return str(self.asker.call("ask.create", question="Deploy?", **params)["ask"]["id"])

    def passes(self) -> None:
        """Let the hour of the asks pass, while the daemon looks the other way: its next heartbeat finds them."""
        with self.daemon.database() as database:
            database.execute(
                "UPDATE ask SET expires_at = created_at, wake_at = created_at WHERE state = 'open'"
            )
            database.commit()

    def asks(self) -> list[dict[str, Any]]:
        return list(self.asker.call("ask.list", state="all")["asks"])

    def answers(self) -> list[str]:
        return texts(self.asker.list())


@pytest.fixture
def story(daemon: Mortal, tmp_path: Path) -> Story:
    return Story(daemon, tmp_path)


@pytest.mark.parametrize("point", [BEFORE_WRITE, IN_GROUP, AFTER_COMMIT, ASK_CREATED])
def test_an_ask_is_made_with_its_message_and_buttons_or_not_at_all(story: Story, point: str) -> None:
    story.dies(point, asks.create, story.created)
    made = 1 if point in DONE else 0
    assert len(story.asks()) == len(story.ada.heard(story.asker)) == made
    number = story.created()
    story.ada.call("ask.answer", id=number, choice="yes")
    assert len(story.asks()) == made + 1


@pytest.mark.parametrize("point", [BEFORE_WRITE, IN_GROUP, AFTER_COMMIT, ASK_SETTLED])
@pytest.mark.parametrize("way", ["ask.answer", "ask.cancel"])
def test_an_ask_is_settled_with_all_that_follows_or_not_at_all(story: Story, point: str, way: str) -> None:
    number = story.created()
    params = {"choice": "yes"} if way == "ask.answer" else {}
    of = asks.answer if way == "ask.answer" else asks.cancel
    story.dies(point, of, lambda: story.ada.call(way, id=number, **params))
    [ask] = story.asks()
    settled = point in DONE
    assert (ask["state"] != "open") == settled
    assert len(story.answers()) == (1 if settled else 0)
    if not settled:
        story.ada.call(way, id=number, **params)
        assert len(story.answers()) == 1
    assert story.ada.refusal("ask.cancel", id=number) == "ask_settled"


@pytest.mark.parametrize("point", [IN_GROUP, AFTER_COMMIT, ASK_WOKEN])
def test_an_ask_ends_once_wherever_the_daemon_dies(story: Story, point: str) -> None:
    number = story.created(timeout="1h", default="no")
    story.dies(point, ask_wakes.wake, story.passes, HIBOSS_DAEMON_HEARTBEAT_SECONDS="1")
    wait_until(lambda: story.asks()[0]["state"] == "expired")
    assert story.answers() == [f'Nobody answered {number} ("Deploy?") in time. The default counts: no']


def test_a_turn_that_is_repeated_finds_its_open_ask_again(story: Story) -> None:
    worker = story.team.hire(WAITER)
    story.ada.say(worker, text="go")
    wait_until(lambda: worker.program.notes())
    story.daemon.restart()
    wait_until(lambda: len(worker.program.notes()) == 2)
    first, second = worker.program.notes()
    assert (first[0], first[1:], second[1:]) == (second[0], [False, None], [True, None])
    story.ada.call("ask.answer", id=first[0], choice="no")
    wait_until(lambda: texts(story.ada.heard(worker))[-1] == "I deploy: no")
    wait_until_idle(story.daemon)
    assert len(story.ada.heard(worker)) == 2  # one question, one answer
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]


def test_a_turn_that_is_repeated_gets_the_answer_that_its_first_run_did_not_get(story: Story) -> None:
    worker = story.team.hire(WAITER.replace('call("ask.wait"', 'wait_for("never") or call("ask.wait"', 1))
    story.ada.say(worker, text="go")
    wait_until(lambda: worker.program.notes())
    story.ada.call("ask.answer", id=worker.program.notes()[0][0], choice="no")
    story.daemon.restart()
    wait_until(lambda: texts(story.ada.heard(worker))[-1] == "I deploy: no")
    wait_until_idle(story.daemon)
    assert worker.program.notes()[1][1:] == [True, "no"]
    assert len(story.ada.heard(worker)) == 2
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]
    story.daemon.check()
