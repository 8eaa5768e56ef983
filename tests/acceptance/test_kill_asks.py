"""kill -9 around asks and permissions: each step is done or not at all, and a repeated turn finds what it asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents.questions import stored_asks
from hiboss.api import asks
from hiboss.core.crashpoint import (
    AFTER_COMMIT,
    ASK_CREATED,
    ASK_SETTLED,
    ASK_WOKEN,
    BEFORE_WRITE,
    IN_GROUP,
    RUN_ASKED,
    RUN_SETTLED,
)
from hiboss.routing import ask_wakes
from tests.agents.test_steering import HEAD
from tests.support.crash_groups import Submits
from tests.support.mortals import Mortal
from tests.support.parties import agent
from tests.support.python_agents import Team, texts, wait_until_idle
from tests.support.shell_agents import Boss, Worker, assert_idle, rows
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
    story.ada.call("ask.answer", id=story.created(), choice="yes")
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
    assert (worker.program.notes()[1][1:], len(story.ada.heard(worker))) == ([True, "no"], 2)
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]
    story.daemon.check()


# --- permissions, which the program of a turn asks for --------------------------------------------


PERMIT = """
say("ask", text="May I push?", tool="Bash", detail="git push", subject="git push")
heard = hear()
say("final", text=heard["option"] + " " + str(heard["by"]))
"""


@pytest.fixture
def ada(daemon: Mortal) -> Boss:
    return Boss(daemon)


@pytest.fixture
def worker(outlived: Mortal, tmp_path: Path) -> Worker:
    made = Worker(outlived, tmp_path)
    made.change(settings={"input": "open"})
    made.program.becomes(HEAD + PERMIT)
    return made


def asks_of(worker: Worker) -> list[dict[str, Any]]:
    query = "SELECT k.* FROM ask k JOIN address a ON a.id = k.asker WHERE a.name = ? ORDER BY k.id"
    return [dict(row) for row in rows(worker.daemon, query, worker.name)]


def asked(ada: Boss, worker: Worker, turns: int = 1) -> str:
    run = worker.under_way(turns)["id"]
    wait_until(lambda: ada.call("run.get", id=run)["questions"])
    return str(ada.call("run.get", id=run)["questions"][0]["id"])


def test_the_repeated_turn_asks_by_the_same_ask_and_gets_its_answer(ada: Boss, worker: Worker) -> None:
    ada.tell(worker)
    first = asked(ada, worker)
    worker.daemon.restart()
    assert asked(ada, worker, turns=2) == first
    ada.call("ask.answer", id=first, choice="allow")
    assert worker.settled(2)["text"] == "allow user:boss"
    assert [one["state"] for one in asks_of(worker)] == ["answered"]
    assert [run["status"] for run in worker.runs()] == ["interrupted", "completed"]
    assert_idle(worker.daemon, worker.program)


def test_an_answer_that_came_before_the_turn_was_repeated_is_given_at_once(ada: Boss, worker: Worker) -> None:
    ada.tell(worker)
    first = asked(ada, worker)
    ada.call("agent.pause", name=worker.name)  # so that its turn is not repeated at once
    worker.daemon.restart()
    ada.call("ask.answer", id=first, choice="allow")
    ada.call("agent.resume", name=worker.name)
    assert (worker.settled(2)["text"], len(asks_of(worker))) == ("allow user:boss", 1)


@pytest.mark.parametrize("place", [RUN_ASKED, AFTER_COMMIT])
def test_killed_when_the_question_is_stored_it_is_asked_once(ada: Boss, worker: Worker, place: str) -> None:
    armed = worker.daemon.dies_at(place, of=stored_asks)
    worker.program.becomes(HEAD + f"open({str(armed)!r}, 'w')\n" + PERMIT)
    ada.tell(worker)
    worker.daemon.wait_for_death()
    worker.daemon.start()
    ada.call("ask.answer", id=asked(ada, worker, turns=2), choice="deny")
    assert worker.settled(2)["text"] == "deny user:boss"
    assert [one["state"] for one in asks_of(worker)] == ["answered"]


def test_killed_after_the_answer_was_stored_the_repeated_turn_has_it(ada: Boss, worker: Worker) -> None:
    armed = worker.daemon.dies_at(AFTER_COMMIT, of=asks.answer)
    ada.tell(worker)
    first = asked(ada, worker)
    worker.daemon.dies_of(armed, lambda: ada.call("ask.answer", id=first, choice="allow", scope="rule"))
    worker.daemon.start()
    assert worker.settled(2)["text"].startswith("allow")  # by its rule, which was stored with it
    assert [one["state"] for one in asks_of(worker)] == ["answered"]
    assert len(ada.call("ask.rules", agent=worker.name)["rules"]) == 1


def test_a_run_that_is_cancelled_and_killed_leaves_no_ask_open(ada: Boss, worker: Worker) -> None:
    ada.tell(worker)
    asked(ada, worker)
    worker.program.becomes(HEAD + "hear()\n")
    run = worker.under_way()["id"]
    worker.daemon.kill()
    worker.daemon.start(HIBOSS_CRASH_AT=RUN_SETTLED)
    again = worker.under_way(2)["id"]  # it waits, and does not ask
    assert again != run and [one["state"] for one in asks_of(worker)] == ["open"]
    ada.call("run.cancel", id=again)
    worker.daemon.wait_for_death()
    worker.daemon.start()
    assert [one["state"] for one in asks_of(worker)] == ["cancelled"]
    assert worker.settled(2)["status"] == "cancelled"
