"""kill -9 around asks: each step is done or not at all, and a repeated turn finds what it asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.core.crashpoint import AFTER_COMMIT, ASK_CREATED, ASK_SETTLED, ASK_WOKEN, BEFORE_WRITE, IN_GROUP
from hiboss.core.errors import HibossError
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import set_up, wait_until
from tests.support.parties import Party
from tests.support.python_agents import Boss, Team, texts, wait_until_idle

_numbers = itertools.count(1)
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

    def __init__(self, daemon: RunningDaemon, directory: Path) -> None:
        self.daemon, self.directory = daemon, directory
        self.ada = Boss(daemon)
        name = f"asker{next(_numbers)}"
        self.asker = Party(daemon, f"agent:{name}", daemon.register(name))
        self.team = Team(daemon, directory)

    def dies(self, point: str, act: Callable[[], Any] | None = None) -> None:
        """Let the daemon die at a point as soon as this is done, or by itself."""
        armed = self.directory / f"armed{next(_numbers)}"
        self.daemon.stop()
        self.daemon.start(HIBOSS_CRASH_AT=f"{point}@{armed}")
        armed.touch()
        if act is not None:
            with pytest.raises(HibossError):
                act()
        self.daemon.wait_for_death()
        self.daemon.start()
        self.daemon.check()

    def created(self, **params: Any) -> str:
        return str(self.asker.call("ask.create", question="Deploy?", **params)["ask"]["id"])

    def asks(self) -> list[dict[str, Any]]:
        return list(self.asker.call("ask.list", state="all")["asks"])

    def answers(self) -> list[str]:
        return texts(self.asker.list())


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    mortal = RunningDaemon(set_up(tmp_path_factory.mktemp("d")))
    mortal.start()
    yield mortal
    mortal.stop()


@pytest.fixture
def story(daemon: RunningDaemon, tmp_path: Path) -> Story:
    return Story(daemon, tmp_path)


@pytest.mark.parametrize("point", [BEFORE_WRITE, IN_GROUP, AFTER_COMMIT, ASK_CREATED])
def test_an_ask_is_made_with_its_message_and_buttons_or_not_at_all(story: Story, point: str) -> None:
    story.dies(point, story.created)
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
    story.dies(point, lambda: story.ada.call(way, id=number, **params))
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
    number = story.created(timeout="1s", default="no")
    story.dies(point)
    wait_until(lambda: story.asks()[0]["state"] == "expired")
    assert story.answers() == [f'Nobody answered {number} ("Deploy?") in time. The default counts: no']


def test_a_turn_that_is_repeated_finds_its_open_ask_again(story: Story) -> None:
    agent = story.team.hire(WAITER)
    story.ada.say(agent, text="go")
    wait_until(lambda: agent.program.notes())
    story.daemon.kill()
    story.daemon.start()
    wait_until(lambda: len(agent.program.notes()) == 2)
    first, second = agent.program.notes()
    assert (first[0], first[1:], second[1:]) == (second[0], [False, None], [True, None])
    story.ada.call("ask.answer", id=first[0], choice="no")
    wait_until(lambda: texts(story.ada.heard(agent))[-1] == "I deploy: no")
    wait_until_idle(story.daemon)
    assert len(story.ada.heard(agent)) == 2  # one question, one answer
    assert [run["status"] for run in agent.runs()] == ["interrupted", "completed"]


def test_a_turn_that_is_repeated_gets_the_answer_that_its_first_run_did_not_get(story: Story) -> None:
    agent = story.team.hire(WAITER.replace('call("ask.wait"', 'wait_for("never") or call("ask.wait"', 1))
    story.ada.say(agent, text="go")
    wait_until(lambda: agent.program.notes())
    story.ada.call("ask.answer", id=agent.program.notes()[0][0], choice="no")
    story.daemon.kill()
    story.daemon.start()
    wait_until(lambda: texts(story.ada.heard(agent))[-1] == "I deploy: no")
    wait_until_idle(story.daemon)
    assert agent.program.notes()[1][1:] == [True, "no"]
    assert len(story.ada.heard(agent)) == 2
    assert [run["status"] for run in agent.runs()] == ["interrupted", "completed"]
    story.daemon.check()
