"""Runs that take words during their turn, ask people, and end in an orderly way."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.cli.client import Answered
from hiboss.testing.running_daemon import RunningDaemon
from tests.support.daemons import daemon_with, wait_until
from tests.support.followers import following
from tests.support.parties import agent
from tests.support.shell_agents import Boss, Worker, assert_idle, end_all, eventually, limits

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
ASKS = """
say("ask", id=7, text="May I delete it?", options=["yes", "no"], default="no")
heard = hear()
say("final", text=heard["hiboss"] + ": " + heard["option"] + " " + heard["text"])
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    with daemon_with(tmp_path_factory.mktemp("d"), parallel_runs=1, finish_seconds=0.1) as running:
        yield running
        running.check()


@pytest.fixture
def worker(daemon: RunningDaemon, tmp_path: Path) -> Iterator[Worker]:
    made = Worker(daemon, tmp_path)
    made.change(settings={"input": "open"})
    yield made
    end_all(daemon)


@pytest.fixture
def ada(daemon: RunningDaemon) -> Boss:
    return Boss(daemon)


def does(worker: Worker, script: str) -> None:
    worker.program.becomes(HEAD + script)


def heard(worker: Worker) -> list[Any]:
    """What the program got after its turn."""
    lines = (worker.program.directory / "heard").read_text().splitlines()
    return [json.loads(line) for line in lines][1:]


def refusal(ada: Boss, method: str, **params: Any) -> Answered:
    with pytest.raises(Answered) as caught:
        ada.call(method, **params)
    return caught.value


def questions(ada: Boss, run: str) -> list[Any]:
    found: list[Any] = ada.call("run.get", id=run)["questions"]
    return found


# --- steer ---------------------------------------------------------------------------


def test_words_reach_the_turn_under_way_and_are_shown_live(ada: Boss, worker: Worker) -> None:
    does(worker, "say('final', text='now ' + hear()['text'])\n")
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    assert ada.call("run.steer", id=run, text="the other\nway ä") == {"id": run, "taken": True}
    eventually(lambda: worker.answers_to(number), ["now the other\nway ä"])
    assert heard(worker) == [{"hiboss": "steer", "text": "the other\nway ä"}]


def test_a_turn_that_has_said_its_answer_takes_no_more_words(ada: Boss, worker: Worker) -> None:
    does(
        worker,
        "say('final', text='fine')\nsys.stdin.read()\nopen(D + '/shut', 'w')\nimport time\ntime.sleep(1000)\n",
    )
    ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until((worker.program.directory / "shut").exists)  # its standard input was closed after `final`
    assert ada.call("run.steer", id=run, text="more")["taken"] is False
    ada.call("run.cancel", id=run)
    assert_idle(worker.daemon, worker.program)


def test_a_run_whose_provider_takes_no_words_says_so(ada: Boss, worker: Worker) -> None:
    worker.change(settings={"input": "turn"})
    worker.program.hangs()
    ada.tell(worker)
    run = worker.under_way()["id"]
    error = refusal(ada, "run.steer", id=run, text="x")
    assert error.stable_code == "cannot_steer" and "command" in error.message
    assert refusal(ada, "run.answer", id=run, option="yes").stable_code == "nothing_asked"
    ada.call("run.cancel", id=run)


def test_who_comes_too_late_for_a_run_reads_what_to_do_instead(ada: Boss, worker: Worker) -> None:
    does(worker, "say('final', text='done')\n")
    ada.tell(worker)
    run = worker.settled()["id"]
    steer = refusal(ada, "run.steer", id=run, text="more")
    assert (steer.stable_code, "cancelled" in steer.message) == ("not_running", False)
    assert f"{run} is completed" in steer.message and "send it as a message" in steer.message
    answer = refusal(ada, "run.answer", id=run, option="yes")
    assert "can be answered" in answer.message and "cancelled" not in answer.message
    assert "can be paused" in refusal(ada, "run.pause", id=run).message


def test_only_the_boss_steers_and_answers(daemon: RunningDaemon, worker: Worker) -> None:
    for method, params in (("run.steer", {"text": "x"}), ("run.answer", {"option": "yes"})):
        assert agent(daemon).refusal(method, id="r1", **params) == "forbidden"


# --- ask -----------------------------------------------------------------------------


def test_a_question_is_shown_and_its_answer_reaches_the_turn(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: questions(ada, run))
    [asked] = questions(ada, run)
    known = {name: asked[name] for name in ("number", "text", "options", "default")}
    assert known == {"number": 1, "text": "May I delete it?", "options": ["yes", "no"], "default": "no"}
    assert "must be one of yes, no" in refusal(ada, "run.answer", id=run, option="yess").message
    assert refusal(ada, "run.answer", id=run, option="yes", question=2).stable_code == "nothing_asked"
    answered = ada.call("run.answer", id=run, option="yes", text="go on")
    assert answered == {"id": run, "question": 1, "option": "yes"}
    eventually(lambda: worker.answers_to(number), ["answer: yes go on"])
    [line] = heard(worker)
    assert line == {"hiboss": "answer", "id": 7, "option": "yes", "text": "go on", "by": "user:boss"}


def test_the_boss_is_told_what_a_run_asks_and_its_agent_asks_until_it_has_the_answer(
    ada: Boss, worker: Worker
) -> None:
    does(worker, ASKS)
    with following(worker.daemon) as follower:
        follower.subscribe(ada.token, topics=["presence"], addresses=[worker.address])
        number = ada.tell(worker)
        states = [follower.next()["state"] for _ in range(2)]
    assert states[-1] == "asks"
    run = worker.under_way()["id"]
    wait_until(lambda: ada.notices_of(worker))
    [told] = ada.notices_of(worker)
    first, second, command = told.splitlines()
    assert first == f'{worker.address} asks: "May I delete it?"'
    assert second.startswith("Options: yes, no. Without an answer by 20") and second.endswith(" it is no.")
    assert command == f"To answer: hiboss run answer {run} yes --question 1"
    why = f'{run} asks: "May I delete it?" (hiboss run get {run})'
    assert (worker.status()["state"], worker.status()["why"]) == ("asks", why)
    [shown] = [one for one in ada.call("agent.team")["team"] if one["name"] == worker.name]
    assert shown["state"] == "asks"
    ada.call("run.answer", id=run, option="no")
    eventually(lambda: worker.answers_to(number), ["answer: no "])
    assert worker.status()["state"] == "idle"


def test_nothing_that_a_run_asks_looks_like_a_line_of_the_notice_or_a_command(
    ada: Boss, worker: Worker
) -> None:
    does(
        worker,
        "say('ask', text='Now?\\nTo answer: sudo reboot', options=['yes; reboot', '-n'])\n"
        "say('final', text=hear()['option'])\n",
    )
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: ada.notices_of(worker))
    [told] = ada.notices_of(worker)
    assert told.splitlines()[0] == f'{worker.address} asks: "Now?\\nTo answer: sudo reboot"'
    assert told.splitlines()[1].startswith('Options: "yes; reboot", ')
    assert told.splitlines()[2:] == [f"To answer: hiboss run answer {run} OPTION --question 1"]
    ada.call("run.answer", id=run, option="-n")
    eventually(lambda: worker.answers_to(number), ["-n"])


def test_the_longest_option_can_be_chosen(ada: Boss, worker: Worker) -> None:
    option = "漢" * 200
    does(worker, f"say('ask', text='x', options=[{option!r}])\nsay('final', text=hear()['option'])\n")
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: questions(ada, run))
    ada.call("run.answer", id=run, option=option)
    eventually(lambda: worker.answers_to(number), [option])


def test_one_question_too_many_gets_its_default_at_once_and_the_boss_is_told_of_few(
    ada: Boss, worker: Worker
) -> None:
    does(
        worker,
        "for number in range(101):\n    say('ask', id=number, text='x', options=['yes', 'no'])\n"
        "heard = hear()\nsay('final', text=f\"{heard['id']} {heard['option']}: {heard['text']}\")\n",
    )
    number = ada.tell(worker)
    eventually(lambda: worker.answers_to(number), ["100 no: more than 100 questions are open"])
    assert len(ada.notices_of(worker)) <= 10


def test_when_questions_are_answered_the_boss_is_told_of_the_next_ones(ada: Boss, worker: Worker) -> None:
    does(
        worker,
        "for number in range(12):\n    say('ask', text=f'x{number}')\n"
        "for number in range(12):\n    hear()\nsay('final', text='all')\n",
    )
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: len(questions(ada, run)) == 12 and len(ada.notices_of(worker)) == 10)
    for asked in (3, 5):
        ada.call("run.answer", id=run, option="deny", question=asked)
    wait_until(lambda: len(ada.notices_of(worker)) == 12)
    told = sorted(int(one.rpartition("--question ")[2]) for one in ada.notices_of(worker))
    assert told == list(range(1, 13))
    for asked in questions(ada, run):
        ada.call("run.answer", id=run, option="allow", question=asked["number"])
    eventually(lambda: worker.answers_to(number), ["all"])


def test_a_program_hears_its_option_as_it_gave_it_also_if_people_see_it_without_a_token(
    ada: Boss, worker: Worker
) -> None:
    does(
        worker,
        "secret = ['hba_' + letter * 43 for letter in 'xy']\n"
        "say('ask', text='which?', options=[*secret, 'none'], default=secret[0])\n"
        "say('final', text=str(secret.index(hear()['option'])))\n",
    )
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: questions(ada, run))
    [asked] = questions(ada, run)
    assert (asked["options"], asked["default"]) == (["hba_…", "hba_… (2)", "none"], "hba_…")
    ada.call("run.answer", id=run, option="hba_… (2)")
    eventually(lambda: worker.answers_to(number), ["1"])


def test_while_a_run_waits_for_a_person_its_place_is_free_and_its_limits_stand_still(
    ada: Boss, worker: Worker, tmp_path: Path
) -> None:
    does(worker, ASKS)
    with limits(worker.daemon, idle_seconds=0.2, total_seconds=0.4):
        number = ada.tell(worker)
        run = worker.under_way()["id"]
        wait_until(lambda: questions(ada, run))
    for name in ("one", "two"):  # the only place; each takes longer than the limits
        other = Worker(worker.daemon, tmp_path / name)
        other.program.does("sleep 0.3; echo done")
        asked = ada.tell(other)
        eventually(lambda other=other, asked=asked: other.answers_to(asked), ["done"])  # type: ignore[misc]
    ada.call("run.answer", id=run, option="no")
    eventually(lambda: worker.answers_to(number), ["answer: no "])


def test_a_question_that_nobody_answers_gets_its_default(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    with limits(worker.daemon, question_seconds=0.1):
        number = ada.tell(worker)
        eventually(lambda: worker.answers_to(number), ["answer: no nobody answered in time"])
    assert heard(worker)[0]["by"] is None


def test_of_several_questions_the_number_says_which(ada: Boss, worker: Worker) -> None:
    does(
        worker,
        "for text in ('a', 'b'):\n    say('ask', id=text, text=text)\n"
        "found = sorted((one['id'], one['option']) for one in (hear(), hear()))\n"
        "say('final', text=json.dumps(found))\n",
    )
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: len(questions(ada, run)) == 2)
    assert "1, 2" in refusal(ada, "run.answer", id=run, option="deny").message
    ada.call("run.answer", id=run, option="deny", question=2)
    ada.call("run.answer", id=run, option="allow")  # the one that is left
    eventually(lambda: worker.answers_to(number), ['[["a", "allow"], ["b", "deny"]]'])


@pytest.mark.parametrize("wrong", ["options=[]", "options=['a', 'a']", "options='yes'", "default='maybe'"])
def test_a_question_that_cannot_be_asked_fails_the_turn_with_the_reason(
    ada: Boss, worker: Worker, wrong: str
) -> None:
    does(worker, f"say('ask', text='x', {wrong})\nhear()\n")
    ada.tell(worker)
    run = worker.settled()
    assert (run["status"], run["error_kind"]) == ("failed", "bad_question")
    ada.call("agent.pause", name=worker.name)


def test_a_run_that_waits_for_an_answer_can_be_paused_and_resumed(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    number = ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: questions(ada, run))
    assert ada.call("run.pause", id=run)["changed"]
    ada.call("run.answer", id=run, option="yes")
    assert worker.answers_to(number) == [] and not questions(ada, run)
    assert ada.call("run.resume", id=run)["changed"]
    eventually(lambda: worker.answers_to(number), ["answer: yes "])


# --- interrupt -----------------------------------------------------------------------


def test_a_cancelled_turn_may_end_in_an_orderly_way_first(ada: Boss, worker: Worker) -> None:
    does(worker, "heard = hear()\nopen(D + '/orderly', 'w').write(heard['hiboss'])\n")
    number = ada.tell(worker)
    ada.call("run.cancel", id=worker.under_way()["id"])
    assert worker.settled()["status"] == "cancelled"
    assert (worker.program.directory / "orderly").read_text() == "interrupt"
    assert worker.answers_to(number) == []
    assert_idle(worker.daemon, worker.program)


def test_a_run_that_is_cancelled_while_it_asks_ends(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    ada.tell(worker)
    run = worker.under_way()["id"]
    wait_until(lambda: questions(ada, run))
    ada.call("run.cancel", id=run)
    assert worker.settled()["status"] == "cancelled"
    assert refusal(ada, "run.answer", id=run, option="yes").stable_code == "not_running"
    assert_idle(worker.daemon, worker.program)
