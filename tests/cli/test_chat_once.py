"""`hiboss chat --once`: a question, its answer, and how it ends."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hiboss.routing.router import Router
from tests.support.cli import SECONDS, Done, Office, open_office
from tests.support.crash_groups import groups_of
from tests.support.talk import gated, said
from tests.support.waits import wait_until

pytestmark = pytest.mark.usefixtures("demo_office")


class Asking:
    """A question that is being asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def done(self) -> Done:
        stdout, stderr = self.process.communicate(timeout=SECONDS)
        return Done(rc=self.process.returncode, stdout=stdout, stderr=stderr)


@contextmanager
def asking(office: Office, *words: str) -> Iterator[Asking]:
    with office.open("chat", *words, "--timeout", "60s") as process:
        yield Asking(process)


def mail_of(office: Office, name: str) -> list[dict[str, Any]]:
    return office.daemon.call("envelope.list", token=office.token(name), status="pending")["envelopes"]


def reply(office: Office, name: str, text: str, **params: Any) -> str:
    return str(office.daemon.call("envelope.send", token=office.token(name), text=text, **params)["ids"][0])


# --- answers -------------------------------------------------------------------------


def test_a_question_of_the_agent_is_told_while_its_answer_is_waited_for(
    office: Office, tmp_path: Path
) -> None:
    program = tmp_path / "asks.sh"
    question = '{"hiboss": "ask", "text": "Now?", "options": ["yes", "no"]}'
    program.write_text(f"read turn\necho '{question}'\nread answer\necho done\n")
    name = office.agent(provider="command", settings={"command": f"sh {program}", "input": "open"})
    with asking(office, name, "--once", "go", "--as", "boss") as asked:
        told = asked.process.stderr.readline()  # type: ignore[union-attr] # it is a pipe
        (ask,) = office("ask", "list", "--as", "boss", "--json").json["asks"]
        how = f"hiboss ask answer {ask['id']} --choice yes"
        assert told == f'note: {name} asks {ask["id"]}: "Now?" (yes, no): {how}\n'
        assert office("agent", "status", name, "--as", "boss").record["state"] == "asks"
        assert office(*how.split()[1:], "--as", "boss").rc == 0
        done = asked.done()
    assert (done.rc, done.stdout, done.stderr) == (0, "done\n", "")


def test_the_answer_and_nothing_else_is_printed(office: Office) -> None:
    done = office("chat", "nex", "--once", "say it back")
    assert (done.rc, done.stdout, done.stderr) == (0, "You said: say it back\n", "")
    assert all(one["read_at"] for one in said(office, "nex"))


def test_stop_all_pulls_the_breaker_and_no_agent_gets_it(office: Office) -> None:
    stopped = office("chat", "nex", "--once", "/stop all")
    try:
        assert (stopped.rc, "Everything is stopped" in stopped.stdout) == (0, True)
        assert office.daemon.call("breaker.status", token=office.token("boss"))["breaker"]
    finally:
        gone_on = office("chat", "nex", "--once", "/go")
    assert gone_on.stdout == "Everybody works again.\n"
    assert not mail_of(office, "nex")


def test_new_begins_a_new_session_and_no_agent_gets_it(office: Office, tmp_path: Path) -> None:
    program = tmp_path / "remembers.sh"
    program.write_text(
        'echo "{\\"hiboss\\": \\"session\\", \\"id\\": \\"s\\"}"\necho "resumed: $HIBOSS_RESUME"\n'
    )
    name = office.agent(provider="command", settings={"command": f"sh {program}"})
    talk = ("chat", name, "--as", "boss", "--once")
    assert [office(*talk, text).stdout for text in ("one", "two")] == ["resumed: \n", "resumed: s\n"]
    begun = office(*talk, "/new")
    assert (begun.rc, begun.stdout) == (0, "The next message here begins a new session.\n")
    assert office(*talk, "three").stdout == "resumed: \n"
    assert "/new" not in [one["text"] for one in said(office, name)]


def test_without_a_terminal_standard_input_is_the_question(office: Office) -> None:
    for words in (["nex"], ["agent:NEX", "--once", "-"]):
        done = office("chat", *words, stdin="two\nlines\n")
        assert (done.rc, done.stdout, done.stderr) == (0, "You said: two\nlines\n", "")


def test_json_has_what_was_sent_and_the_whole_answer(office: Office) -> None:
    done = office.ok("chat", "nex", "--once", "as JSON", "--json")
    assert set(done.json) == {"sent", "answer", "timed_out"} and done.json["timed_out"] is False
    assert done.json["answer"]["text"] == "You said: as JSON"
    assert done.json["answer"]["reply_to"] == done.json["sent"]["message"]


def test_files_go_along_and_come_back_as_notes(office: Office, tmp_path: Path) -> None:
    name = office.agent()
    (tmp_path / "draft.txt").write_text("x")
    (tmp_path / "better.txt").write_text("y")
    with asking(office, name, "--once", "look", "--attachment", str(tmp_path / "draft.txt")) as question:
        (got,) = wait_until(lambda: mail_of(office, name))
        assert [file["name"] for file in got["attachments"]] == ["draft.txt"]
        number = reply(office, name, "better", reply_to=got["id"], attachments=[str(tmp_path / "better.txt")])
        done = question.done()
    path = office.envelope(number)["attachments"][0]["path"]
    assert (done.rc, done.stdout) == (0, "better\n")  # the answer alone; its files are told beside it
    note = f"note: {name} gets no turns; it answers when it fetches its mail\n"
    assert done.stderr == f'{note}attachments:\n- [file] "better.txt" ({path})\n'


def test_the_answer_to_an_earlier_question_is_not_taken_for_this_one(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path, busy="followup") as (name, gate):
        params = {"from_": "user:boss", "to": f"agent:{name}", "text": "earlier"}
        office.daemon.call("envelope.send", token=office.token("boss"), **params)
        with asking(office, name, "--once", "later") as question:
            wait_until(lambda: len(said(office, name)) == 2)
            gate.touch()
            done = question.done()
        assert (done.rc, done.stdout) == (0, "answer to later\n")
        assert [one["text"] for one in said(office, name)][2] == "answer to earlier"


def test_two_questions_dealt_with_in_one_turn_both_have_their_answer(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path) as (name, gate):
        with asking(office, name, "--once", "first") as first:
            wait_until(lambda: len(mail_of(office, name)) == 1)
            with asking(office, name, "--once", "second") as second:
                wait_until(lambda: len(mail_of(office, name)) == 2)
                with asking(office, name, "--once", "third") as third:
                    wait_until(lambda: len(mail_of(office, name)) == 3)
                    gate.touch()
                    done = [one.done() for one in (first, second, third)]
        assert [one.rc for one in done] == [0, 0, 0] and done[0].stdout == "answer to first\n"
        assert done[1].stdout == done[2].stdout  # the one answer to both


def test_an_agent_can_ask_another_one(office: Office) -> None:
    name = office.agent()
    done = office("chat", "nex", "--once", "who am I?", env={"HIBOSS_TOKEN": office.token(name)})
    assert (done.rc, done.stdout, done.stderr) == (0, "You said: who am I?\n", "")
    assert office.daemon.call("envelope.list", token=office.token(name))["envelopes"][0]["read_at"]


# --- no answer -----------------------------------------------------------------------


def test_when_the_time_is_up_it_ends_with_4_and_says_where_the_answer_will_be(office: Office) -> None:
    name = office.agent()
    done = office("chat", name, "--once", "hello?", "--timeout", "0.1s")
    assert (done.rc, done.stdout) == (4, "")
    assert done.stderr.splitlines() == [
        f"note: {name} gets no turns; it answers when it fetches its mail",
        "note: no answer within 0.1 s; a later one comes into your inbox (hiboss inbox)",
    ]
    done = office("chat", name, "--once", "hello?", "--timeout", "0.1s", "--json")
    assert (done.rc, done.stderr, done.json["answer"], done.json["timed_out"]) == (4, "", None, True)


def test_a_paused_agent_is_waited_for_with_a_note(office: Office, tmp_path: Path) -> None:
    with gated(office, tmp_path) as (name, gate):
        office.daemon.call("agent.pause", token=office.token("boss"), name=name, reason="lunch")
        gate.touch()
        with asking(office, name, "--once", "hello?") as question:
            assert question.process.stderr is not None
            note = question.process.stderr.readline()
            office.daemon.call("agent.resume", token=office.token("boss"), name=name)
            done = question.done()
    assert note == f"note: {name} is paused: lunch (hiboss agent resume {name})\n"
    assert (done.rc, done.stdout, done.stderr) == (0, "answer to hello?\n", "")


@pytest.mark.parametrize("json", [False, True])
def test_a_question_that_fails_ends_with_1_and_the_reason(office: Office, tmp_path: Path, json: bool) -> None:
    boss, form = office.token("boss"), ["--json"] if json else []
    with gated(office, tmp_path) as (name, _), asking(office, name, "--once", "hello?", *form) as question:
        run = wait_until(lambda: office.daemon.call("run.list", token=boss, agent=name)["runs"])[0]
        wait_until(lambda: office.daemon.call("run.tail", token=boss, id=run["id"])["parts"])
        office.daemon.call("run.cancel", token=boss, id=run["id"], reason="too dear")
        done = question.done()
    sent, _ = said(office, name)  # and the control
    message = (
        f"{name} did not answer: the boss cancelled it: too dear "
        f"(to retry: hiboss envelope retry {sent['id']})"
    )
    assert (done.rc, done.stdout) == (1, "")
    assert done.error["message"] == message if json else done.stderr == f"error: {message}\n"


def test_an_agent_that_fails_is_told_of_while_it_is_tried_again(office: Office) -> None:
    name = office.agent(provider="command", settings={"command": "false"})
    with asking(office, name, "--once", "hello?") as question:
        assert question.process.stderr is not None
        note = question.process.stderr.readline()
        question.process.send_signal(signal.SIGINT)
        done = question.done()
    assert note == f"note: {name} failed: it ended with exit status 1; hiboss tries again\n"
    assert (done.rc, done.stdout) == (130, "")


def test_a_daemon_that_is_restarted_is_waited_for(tmp_path: Path) -> None:
    with open_office(tmp_path) as office:
        name = office.agent()
        with asking(office, name, "--once", "hello?") as question:
            (got,) = wait_until(lambda: mail_of(office, name))
            office.daemon.kill()
            assert question.process.stderr is not None
            question.process.stderr.readline()  # that it has no provider
            note = question.process.stderr.readline()
            office.daemon.start()
            reply(office, name, "here I am", reply_to=got["id"])
            done = question.done()
    assert (
        note
        == "note: the daemon is away; hiboss tries again every second (to start it: hiboss daemon start)\n"
    )
    assert (done.rc, done.stdout, done.stderr) == (0, "here I am\n", "")


def test_a_daemon_that_died_before_it_answered_the_send_is_asked_again_and_the_message_is_stored_once(
    tmp_path: Path,
) -> None:
    with open_office(tmp_path) as office:
        name = office.agent()
        office.daemon.stop()
        office.daemon.start(HIBOSS_CRASH_AT="store.after_commit", **groups_of(Router.plan))
        with asking(office, name, "--once", "hello?") as question:
            office.daemon.wait_for_death()
            office.daemon.start()
            (got,) = wait_until(lambda: mail_of(office, name))
            reply(office, name, "here I am", reply_to=got["id"])
            done = question.done()
        assert (done.rc, done.stdout) == (0, "here I am\n")
        assert [one["text"] for one in said(office, name)] == ["hello?", "here I am"]


# --- with whom -----------------------------------------------------------------------


def test_without_a_name_it_is_the_only_agent_or_the_first_that_is_given_turns(tmp_path: Path) -> None:
    with open_office(tmp_path) as office:
        boss = office.token("boss")
        done = office("chat", "--once", "hello?", "--timeout", "0.1s")
        assert done.rc == 4 and "talking with" not in done.stderr  # nex, who has no provider
        office.daemon.register("abe")
        done = office("chat", "--once", "hello?")
        assert done.rc == 2 and "name one of abe, nex; none of them has a provider" in done.stderr
        office.daemon.call("agent.set", token=boss, name="nex", provider="demo")
        done = office("chat", "--once", "the one")
        assert (done.rc, done.stdout) == (0, "You said: the one\n")
        assert done.stderr == "note: talking with nex; for another agent: hiboss chat NAME\n"
        for name in ("abe", "nex"):
            office.daemon.call("agent.delete", token=boss, name=name)
        done = office("chat", "--once", "hello?")
        assert done.rc == 2 and "hiboss agent register nex --provider demo" in done.stderr
