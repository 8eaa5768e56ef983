"""What a run asks people: stored as asks, answered at any door, remembered by rules; and its time limits stand still."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.test_steering import does, heard, refusal
from tests.support.daemons import daemon_fixture
from tests.support.followers import following
from tests.support.shell_agents import Boss, Worker, assert_idle, eventually, limits, rows
from tests.support.waits import wait_until

ASKS = """
say("ask", id=7, text="May I delete it?", options=["yes", "no"], default="no")
heard = hear()
say("final", text=heard["hiboss"] + ": " + heard["option"] + " " + heard["text"])
"""
# Asks for a tool once for each line of the message that it got, one after the other.
PERMITS = """
say("session", id="s-1")
found = []
for line in turn["envelopes"][-1]["text"].splitlines():
    say("ask", text="May I run this?", tool="Bash", detail=line, subject=line)
    heard = hear()
    found.append(f"{heard['option']} {heard['text']}".strip())
say("final", text="; ".join(found))
"""


daemon = daemon_fixture(parallel_runs=1, finish_seconds=0.1)


@pytest.fixture
def worker(worker: Worker) -> Worker:
    worker.change(settings={"input": "open"})
    return worker


def questions(ada: Boss, run: str, number: int = 1) -> list[Any]:
    """Wait until a run asks so many questions; return them."""
    wait_until(lambda: len(ada.call("run.get", id=run)["questions"]) == number)
    return ada.call("run.get", id=run)["questions"]


def asked(ada: Boss, worker: Worker, turns: int = 1) -> tuple[str, str]:
    """Wait until the run under way asks one question; return the run and the ask."""
    run = str(worker.under_way(turns)["id"])
    return run, questions(ada, run)[0]["id"]


def the_ask(ada: Boss, number: str) -> dict[str, Any]:
    return ada.call("ask.get", id=number)["ask"]


# --- ask and answer ------------------------------------------------------------------


def test_a_question_is_stored_and_its_answer_reaches_the_turn(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    number = ada.tell(worker)
    run, ask = asked(ada, worker)
    [shown] = questions(ada, run)
    wanted = {"text": "May I delete it?", "options": ["yes", "no"], "default": "no", "tool": None}
    assert {name: shown[name] for name in wanted} == wanted and shown["scopes"] == ["once"]
    stored = the_ask(ada, ask)
    assert (stored["kind"], stored["state"], stored["run"]) == ("question", "open", run)
    assert (stored["asker"], stored["asked"]) == (worker.address, "user:boss")
    assert refusal(ada, "ask.answer", id=ask, choice="yess").stable_code == "bad_choice"
    ada.call("ask.answer", id=ask, choice="yes", comment="go on")
    eventually(lambda: worker.answers_to(number), [the_text(ada, ask), "answer: yes go on"])
    [line] = heard(worker)
    assert line == {"hiboss": "answer", "id": 7, "option": "yes", "text": "go on", "by": "user:boss"}
    assert refusal(ada, "ask.answer", id=ask, choice="no").stable_code == "ask_settled"


def the_text(ada: Boss, ask: str) -> str:
    """The message by which the boss was asked."""
    [row] = rows(ada.daemon, "SELECT text FROM message WHERE id = ?", int(the_ask(ada, ask)["message"][1:]))
    return str(row["text"])


def test_the_answer_into_a_turn_is_no_mail_for_the_agent(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    ada.tell(worker)
    _, ask = asked(ada, worker)
    ada.call("ask.answer", id=ask, choice="yes")
    worker.settled()
    assert_idle(worker.daemon, worker.program)
    assert len(worker.runs()) == 1 and the_ask(ada, ask)["reply"] is None
    to_it = 'SELECT "from" FROM envelopes WHERE "to" = ?'
    assert [row["from"] for row in rows(worker.daemon, to_it, worker.address)] == ["user:boss"]


def test_the_boss_is_asked_by_mail_and_the_agent_asks_until_it_has_the_answer(
    ada: Boss, worker: Worker
) -> None:
    does(worker, ASKS)
    with following(worker.daemon) as follower:
        follower.subscribe(ada.token, topics=["presence"], addresses=[worker.address])
        number = ada.tell(worker)
        wait_until(lambda: follower.next()["state"] == "asks")
    run, ask = asked(ada, worker)
    lines = the_text(ada, ask).splitlines()
    assert lines[0] == "May I delete it?" and lines[2:4] == ["1. yes", "2. no"]
    assert lines[4].startswith("Without an answer by 20") and lines[4].endswith(" the answer is no.")
    assert lines[5] == f"To answer {ask}: hiboss ask answer {ask} --choice yes"
    why = f'{run} asks: "May I delete it?" (hiboss run get {run})'
    assert (worker.status()["state"], worker.status()["why"]) == ("asks", why)
    [shown] = [one for one in ada.call("agent.team")["team"] if one["name"] == worker.name]
    assert shown["state"] == "asks"
    ada.call("ask.answer", id=ask, choice="no")
    eventually(lambda: worker.answers_to(number)[1:], ["answer: no "])
    assert worker.status()["state"] == "idle"


@pytest.mark.parametrize(
    ("options", "choice"),
    [(["漢" * 200], "漢" * 200), (["go", "GO"], "GO")],
    ids=["the longest", "upper case"],
)
def test_each_option_can_be_chosen(ada: Boss, worker: Worker, options: list[str], choice: str) -> None:
    does(worker, f"say('ask', text='x', options={options!r})\nsay('final', text=hear()['option'])\n")
    number = ada.tell(worker)
    ada.call("ask.answer", id=asked(ada, worker)[1], choice=choice)
    eventually(lambda: worker.answers_to(number)[1:], [choice])


def test_one_question_too_many_gets_its_default_at_once_and_the_boss_is_asked_few(
    ada: Boss, worker: Worker
) -> None:
    does(
        worker,
        "for number in range(101):\n    say('ask', id=number, text='x', options=['yes', 'no'])\n"
        "heard = hear()\nsay('final', text=f\"{heard['id']} {heard['option']}: {heard['text']}\")\n",
    )
    ada.tell(worker)
    assert worker.settled()["text"] == "100 no: more than 100 questions are open"
    asker = "SELECT count(*) FROM ask k JOIN address a ON a.id = k.asker WHERE a.name = ?"
    assert rows(worker.daemon, asker, worker.name)[0][0] <= 10


def test_when_questions_are_answered_the_boss_is_asked_the_next_ones(ada: Boss, worker: Worker) -> None:
    does(
        worker,
        "for number in range(12):\n    say('ask', text=f'x{number}')\n"
        "for number in range(12):\n    hear()\nsay('final', text='all')\n",
    )
    run = worker.works_on(ada.tell(worker))
    first = questions(ada, run, 10)
    assert [one["text"] for one in first] == [f"x{number}" for number in range(10)]
    for one in first[2:4]:
        ada.call("ask.answer", id=one["id"], choice="deny")
    wait_until(lambda: "x11" in [one["text"] for one in questions(ada, run, 10)])
    for one in questions(ada, run, 10):
        ada.call("ask.answer", id=one["id"], choice="allow")
    assert worker.settled()["text"] == "all"


def test_while_a_run_waits_for_a_person_its_place_is_free(ada: Boss, worker: Worker, tmp_path: Path) -> None:
    """Its limits stand still too: test_run_execution.py."""
    does(worker, ASKS)
    ada.tell(worker)
    _, ask = asked(ada, worker)
    other = Worker(worker.daemon, tmp_path)
    ada.tell(other)
    assert other.settled()["text"] == "done"
    ada.call("ask.answer", id=ask, choice="no")
    assert worker.settled()["text"] == "answer: no "


def test_a_question_that_nobody_answers_gets_its_default(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    with limits(worker.daemon, question_seconds=0.1):
        ada.tell(worker)
        assert worker.settled()["text"] == "answer: no nobody answered in time"
    assert heard(worker)[0]["by"] is None
    [row] = rows(
        worker.daemon, "SELECT state, answer FROM ask WHERE run = ?", int(worker.runs()[0]["id"][1:])
    )
    assert tuple(row) == ("expired", "no")


def test_a_question_that_the_boss_cancels_gets_its_default(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    ada.tell(worker)
    ada.call("ask.cancel", id=asked(ada, worker)[1], reason="not now")
    assert worker.settled()["text"] == "answer: no not now"


@pytest.mark.parametrize(
    "wrong",
    [
        *("options=[]", "options=['a', 'a']", "options='yes'", "default='maybe'"),
        *("tool=5", "tool='a\\nb'", "tool='x' * 201", "subject='ls'", "tool='Bash', detail=[1]"),
    ],
)
def test_a_question_that_cannot_be_asked_fails_the_turn_with_the_reason(
    ada: Boss, worker: Worker, wrong: str
) -> None:
    does(worker, f"say('ask', text='x', {wrong})\nhear()\n")
    run = worker.ran(ada.tell(worker))
    assert (run["status"], run["error_kind"]) == ("failed", "bad_question")
    ada.call("agent.pause", name=worker.name)


def test_a_run_that_waits_for_an_answer_can_be_paused_and_resumed(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    ada.tell(worker)
    run, ask = asked(ada, worker)
    ada.call("run.pause", id=run)
    ada.call("ask.answer", id=ask, choice="yes")
    assert worker.runs()[0]["status"] == "running" and not questions(ada, run, 0)
    ada.call("run.resume", id=run)
    assert worker.settled()["text"] == "answer: yes "


# --- the end of the run --------------------------------------------------------------


def test_a_run_that_is_cancelled_while_it_asks_ends_and_so_does_its_ask(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    ada.tell(worker)
    run, ask = asked(ada, worker)
    ada.call("run.cancel", id=run)
    assert worker.settled()["status"] == "cancelled"
    late = refusal(ada, "ask.answer", id=ask, choice="yes")
    assert late.stable_code == "ask_settled" and the_ask(ada, ask)["state"] == "cancelled"
    assert ada.call("run.get", id=run)["questions"] == []


def test_a_run_that_ends_before_its_answer_leaves_no_ask_open(ada: Boss, worker: Worker) -> None:
    does(
        worker, "say('ask', text='x')\nwhile not os.path.exists(D + '/go'): pass\nsay('final', text='done')\n"
    )
    ada.tell(worker)
    _, ask = asked(ada, worker)
    worker.program.let_go()
    assert worker.settled()["text"] == "done"
    assert the_ask(ada, ask)["state"] == "cancelled"


def test_the_breaker_ends_what_is_asked_and_the_turn_asks_anew_after_it(ada: Boss, worker: Worker) -> None:
    does(worker, ASKS)
    ada.tell(worker)
    _, first = asked(ada, worker)
    ada.call("breaker.pull")
    wait_until(lambda: the_ask(ada, first)["state"] == "cancelled")
    ada.call("breaker.release")
    _, second = asked(ada, worker, turns=2)
    assert second != first
    ada.call("ask.answer", id=second, choice="yes")
    assert worker.settled(2)["text"] == "answer: yes "


# --- permissions and rules -----------------------------------------------------------


def test_a_permission_shows_in_full_what_the_tool_would_do(ada: Boss, worker: Worker) -> None:
    does(
        worker,
        "say('ask', text='May I?', tool='Write', detail='x' * 500_000 + 'END', subject='a')\n"
        "say('final', text=hear()['option'])\n",
    )
    ada.tell(worker)
    run, ask = asked(ada, worker)
    stored = the_ask(ada, ask)
    assert (stored["kind"], stored["tool"], stored["subject"]) == ("permission", "Write", "a")
    assert stored["question"] == f"May I?\n\n{'x' * 500_000}END"
    assert questions(ada, run)[0]["text"] == stored["question"]
    shown = the_text(ada, ask)  # as a chat shows it
    assert len(shown) < 4_000 and f"hiboss ask get {ask}" in shown
    ada.call("ask.answer", id=ask, choice="allow")
    assert worker.settled()["text"] == "allow"


def test_an_answer_once_is_asked_again(ada: Boss, worker: Worker) -> None:
    does(worker, PERMITS)
    ada.tell(worker, text="git status\ngit status")
    run, first = asked(ada, worker)
    ada.call("ask.answer", id=first, choice="allow", scope="once")
    wait_until(lambda: questions(ada, run)[0]["id"] != first)
    ada.call("ask.answer", id=questions(ada, run)[0]["id"], choice="deny")
    assert worker.settled()["text"] == "allow; deny"


@pytest.mark.parametrize("scope", ["session", "rule"])
def test_an_answer_that_is_remembered_is_given_at_once_and_shown(
    ada: Boss, worker: Worker, scope: str
) -> None:
    does(worker, PERMITS)
    ada.tell(worker, text="git status\ngit status\ngit push")
    run, first = asked(ada, worker)
    assert questions(ada, run)[0]["scopes"] == ["once", "session", "rule"]
    ada.call("ask.answer", id=first, choice="allow", scope=scope)
    wait_until(lambda: questions(ada, run)[0]["text"].endswith("git push"))
    [rule] = ada.call("ask.rules", agent=worker.name)["rules"]
    assert (rule["tool"], rule["subject"], rule["answer"]) == ("Bash", "git status", "allow")
    assert rule["session"] == ("s-1" if scope == "session" else None) and rule["ask"] == first
    parts = ada.call("run.tail", id=run)["parts"]
    assert {"kind": "answer", "text": f"allow by rule {rule['number']}"} in parts
    ada.call("ask.answer", id=questions(ada, run)[0]["id"], choice="deny")
    ended = worker.settled()
    assert ended["text"] == f"allow; allow by rule {rule['number']}; deny"
    assert f"rule {rule['number']} answered allow to Bash" in ended["note"]
    ada.tell(worker, text="git status")  # the same conversation, and so the same session
    assert worker.settled(2)["text"] == f"allow by rule {rule['number']}"
    ada.call("ask.rule.remove", number=rule["number"])
    ada.tell(worker, text="git status")
    _, again = asked(ada, worker, turns=3)
    ada.call("ask.answer", id=again, choice="deny")
    assert worker.settled(3)["text"] == "deny"


def test_a_subject_with_a_secret_is_never_remembered(ada: Boss, worker: Worker) -> None:
    """What people see of two such subjects is the same, and the subjects are not."""
    does(worker, PERMITS)
    ada.tell(worker, text="curl -H hba_" + "x" * 43)
    run, ask = asked(ada, worker)
    [shown] = questions(ada, run)
    assert shown["text"] == "May I run this?\n\ncurl -H hba_…" and shown["scopes"] == ["once"]
    assert refusal(ada, "ask.answer", id=ask, choice="allow", scope="rule").stable_code == "cannot_remember"
    ada.call("ask.answer", id=ask, choice="allow")
    assert worker.settled()["text"] == "allow"
    assert (
        rows(worker.daemon, "SELECT 1 FROM ask WHERE question LIKE '%hba_x%' OR subject LIKE '%hba_x%'") == []
    )


def test_a_program_hears_its_option_as_it_gave_it_also_if_people_see_it_without_a_token(
    ada: Boss, worker: Worker
) -> None:
    does(
        worker,
        "secret = ['hba_' + letter * 43 for letter in 'xy']\n"
        "say('ask', text='which?', options=[*secret, 'none'], default=secret[0])\n"
        "say('final', text=str(secret.index(hear()['option'])))\n",
    )
    ada.tell(worker)
    run, ask = asked(ada, worker)
    [shown] = questions(ada, run)
    assert (shown["options"], shown["default"]) == (["hba_…", "hba_… (2)", "none"], "hba_…")
    ada.call("ask.answer", id=ask, choice="hba_… (2)")
    assert worker.settled()["text"] == "1"


def test_without_a_session_an_answer_cannot_hold_for_one(ada: Boss, worker: Worker) -> None:
    does(worker, PERMITS.replace('say("session", id="s-1")\n', ""))
    ada.tell(worker, text="git status")
    run, ask = asked(ada, worker)
    assert questions(ada, run)[0]["scopes"] == ["once", "rule"]
    error = refusal(ada, "ask.answer", id=ask, choice="allow", scope="session")
    assert error.stable_code == "cannot_remember" and "--scope rule" in error.message
    ada.call("ask.answer", id=ask, choice="allow")
    assert worker.settled()["text"] == "allow"
