"""Runs that take words during their turn, and end in an orderly way."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from hiboss.cli.client import Answered
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_fixture
from tests.support.parties import agent
from tests.support.raising import raised
from tests.support.shell_agents import Boss, Worker, begin, eventually
from tests.support.waits import wait_until

HEAD = f"""#!{sys.executable} -ISu
import json, os, sys

D = os.path.dirname(os.path.abspath(__file__))


def say(kind, **more):
    print(json.dumps({{"hiboss": kind, **more}}), flush=True)


def hear():
    line = json.loads(sys.stdin.readline() or "null")
    open(D + "/heard", "a").write(json.dumps(line) + "\\n")
    return line


turn = hear()
open(D + "/given", "w").write(turn["text"])
open(D + "/turns", "a").write(f"{{os.getpid()}}\\n")
"""


daemon = daemon_fixture(parallel_runs=1, finish_seconds=0.1)


@pytest.fixture
def worker(worker: Worker) -> Worker:
    worker.change(settings={"input": "open"})
    return worker


def does(worker: Worker, script: str) -> None:
    worker.program.becomes(HEAD + script)


def heard(worker: Worker) -> list[Any]:
    """What the program got after its turn."""
    lines = (worker.program.directory / "heard").read_text().splitlines()
    return [json.loads(line) for line in lines][1:]


def refusal(ada: Boss, method: str, **params: Any) -> Answered:
    return raised(Answered, ada.call, method, **params)


# --- steer ---------------------------------------------------------------------------


def test_words_reach_the_turn_under_way_and_are_shown_live(ada: Boss, worker: Worker) -> None:
    does(worker, "say('final', text='now ' + hear()['text'])\n")
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    assert ada.call("run.steer", id=run, text="the other\nway ä") == {"id": run, "taken": True}
    eventually(lambda: worker.answers_to(number), ["now the other\nway ä"])
    assert heard(worker) == [{"hiboss": "steer", "text": "the other\nway ä"}]


LOSES = """
if turn["session"] and not os.path.exists(D + "/lost"):
    hear()
    open(D + "/lost", "w")
    print('{"hiboss": "error", "kind": "session_lost", "text": "it is gone"}', flush=True)
    sys.exit(0)
say("session", id="s-" + turn["run"])
while turn["session"] is None and os.path.exists(D + "/lost") and not os.path.exists(D + "/go"):
    import time
    time.sleep(0.02)
say("final", text="fine")
"""


def test_words_that_a_lost_session_had_are_kept_with_the_turn_that_is_given_again(
    ada: Boss, worker: Worker
) -> None:
    does(worker, LOSES)
    first = ada.tell(worker)
    eventually(lambda: worker.answers_to(first), ["fine"])
    number = ada.tell(worker, text="again")
    run = worker.under_way(2)["id"]
    assert ada.call("run.steer", id=run, text="the other way")["taken"]
    worker.program.begins(3)
    got = (worker.program.directory / "given").read_text()
    assert "the other way" in got and ada.call("run.get", id=run, turn=True)["turn"] == got
    worker.program.let_go()
    eventually(lambda: worker.answers_to(number), ["fine"])
    assert ada.call("run.get", id=run, turn=True)["turn"] == got


def test_a_turn_that_has_said_its_answer_takes_no_more_words(ada: Boss, worker: Worker) -> None:
    does(
        worker,
        "say('final', text='fine')\nsys.stdin.read()\nopen(D + '/shut', 'w')\nimport time\ntime.sleep(1000)\n",
    )
    run = worker.works_on(ada.tell(worker))
    wait_until((worker.program.directory / "shut").exists)  # its standard input was closed after `final`
    assert ada.call("run.steer", id=run, text="more")["taken"] is False
    ada.call("run.cancel", id=run)


def test_a_run_whose_provider_takes_no_words_says_so(ada: Boss, worker: Worker) -> None:
    worker.change(settings={"input": "turn"})
    _, run = begin(ada, worker)
    error = refusal(ada, "run.steer", id=run, text="x")
    assert error.stable_code == "cannot_steer" and "command" in error.message
    ada.call("run.cancel", id=run)


def test_who_comes_too_late_for_a_run_reads_what_to_do_instead(ada: Boss, worker: Worker) -> None:
    does(worker, "say('final', text='done')\n")
    ada.tell(worker)
    run = worker.settled()["id"]
    steer = refusal(ada, "run.steer", id=run, text="more")
    assert (steer.stable_code, "cancelled" in steer.message) == ("not_running", False)
    assert f"{run} is completed" in steer.message and "send it as a message" in steer.message
    assert "can be paused" in refusal(ada, "run.pause", id=run).message


def test_only_the_boss_steers(daemon: RunningDaemon, worker: Worker) -> None:
    assert agent(daemon).refusal("run.steer", id="r1", text="x") == "forbidden"


# --- interrupt -----------------------------------------------------------------------


def test_a_cancelled_turn_may_end_in_an_orderly_way_first(ada: Boss, worker: Worker) -> None:
    does(worker, "heard = hear()\nopen(D + '/orderly', 'w').write(heard['hiboss'])\n")
    number = ada.tell(worker)
    ada.call("run.cancel", id=worker.under_way()["id"])
    assert worker.settled()["status"] == "cancelled"
    assert (worker.program.directory / "orderly").read_text() == "interrupt"
    assert worker.answers_to(number) == []
