"""kill -9 while a permission waits for its answer: the ask stays, and the repeated turn goes on with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hiboss.agents.questions import stored_asks
from hiboss.api import asks
from hiboss.core.crashpoint import AFTER_COMMIT, RUN_ASKED, RUN_SETTLED
from tests.agents.test_steering import HEAD
from tests.support.mortals import Mortal
from tests.support.shell_agents import Boss, Worker, assert_idle, rows
from tests.support.waits import wait_until

pytestmark = pytest.mark.slow

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
    assert worker.settled(2)["text"] == "allow user:boss"
    assert len(asks_of(worker)) == 1


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
