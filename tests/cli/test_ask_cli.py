"""`hiboss ask …` by hand: what it prints, how it ends, and answers that are remembered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.cli import Done, Office
from tests.support.waits import wait_until

ANSWERED, REFUSED, USAGE, TIMED_OUT = 0, 1, 2, 4
# The same command with another limit for a wait inside a run.
QUICK = """
import sys
from hiboss.cli import main
from hiboss.cli.commands import ask
ask.IN_A_RUN = "0.01s"
sys.argv = ["hiboss", *sys.argv[1:]]
main.main()
"""


@pytest.fixture
def bob(office: Office) -> str:
    return office.agent()


def asked(office: Office, who: str, *words: str) -> str:
    """Ask, and return the id of the ask."""
    return office.ok("ask", "create", "Deploy?", "--as", who, *words).record["ask-id"]


def shown(office: Office, *words: str) -> dict[str, str]:
    """Return what `ask get` shows, without the question."""
    facts, _, _ = office("ask", "get", *words).stdout.partition("question:\n")
    return dict(line.split(": ", 1) for line in facts.splitlines())


def opened(office: Office, who: str) -> str:
    """Wait until an agent asks something; return the id of the ask."""
    token = office.token(who)
    wait_until(lambda: office.daemon.call("ask.list", token=token)["asks"])
    return str(office.daemon.call("ask.list", token=token)["asks"][0]["id"])


def test_create_prints_the_id_and_get_shows_the_ask_with_what_answers_it(office: Office, bob: str) -> None:
    number = asked(
        office, bob, "--option", "yes", "--option", "not now", "--timeout", "1h", "--default", "not now"
    )
    found = shown(office, number)
    assert {key: found[key] for key in ("id", "state", "asker", "asked", "default", "options")} == {
        "id": number,
        "state": "open",
        "asker": f"agent:{bob}",
        "asked": "user:boss",
        "default": "not now",
        "options": "yes, not now",
    }
    assert found["answer-with"] == f"hiboss ask answer {number} --choice yes"
    assert office("ask", "get", number).stdout.endswith("question:\n> Deploy?\n")


def test_an_answer_is_printed_and_shown_by_get_and_lists(office: Office, bob: str) -> None:
    number = asked(office, bob)
    assert number in office("ask", "list").values("id")
    assert office("ask", "answer", number, "--choice", "YES", "--comment", "go on").record == {
        "id": number, "state": "answered", "answer": "yes", "comment": "go on", "asker": f"agent:{bob}"
    }  # fmt: skip
    assert number not in office("ask", "list").values("id")
    assert office("ask", "list", "--state", "answered", "--as", bob).values("id") == [number]
    found = shown(office, "--id", number)
    assert (found["answer"], found["answered-by"], found["comment"]) == ("yes", "user:boss", "go on")


def test_the_loser_is_told_who_was_first(office: Office, bob: str) -> None:
    number = asked(office, bob)
    office("ask", "answer", number, "--choice", "no")
    done = office("ask", "answer", number, "--choice", "yes")
    assert done.rc == REFUSED and f"{number} was settled before: user:boss answered no" in done.stderr
    assert office("ask", "cancel", number, "--json", "--as", bob).error["code"] == "ask_settled"


def test_wait_prints_the_answer_as_soon_as_it_is_there(office: Office, bob: str) -> None:
    with office.open("ask", "create", "Deploy?", "--wait", "--as", bob) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ask-id: {opened(office, bob)}\n"  # before there is an answer
        office("ask", "answer", opened(office, bob), "--choice", "yes", "--comment", "now")
        assert process.stdout.read() == "answer: yes\ncomment: now\nanswered-by: user:boss\n"
        assert process.wait() == ANSWERED


def test_a_default_that_was_applied_is_an_answer_and_marked(office: Office, bob: str) -> None:
    done = office("ask", "create", "Deploy?", "--timeout", "0.01s", "--default", "no", "--wait", "--as", bob)
    assert done.rc == ANSWERED
    found = done.record
    assert (found["state"], found["answer"], found["default"]) == ("expired", "no", "true")


def test_without_a_default_the_wait_ends_at_the_time_out_with_status_4(office: Office, bob: str) -> None:
    done = office("ask", "create", "Deploy?", "--timeout", "0.01s", "--wait", "--as", bob)
    assert (done.rc, done.record["state"]) == (TIMED_OUT, "expired") and "answer" not in done.record


def test_a_wait_for_an_ask_that_is_cancelled_ends_with_status_1(office: Office, bob: str) -> None:
    number = asked(office, bob)
    office("ask", "cancel", number, "--reason", "no need")
    done = office("ask", "wait", number, "--as", bob)
    assert (done.rc, done.record["state"], done.record["comment"]) == (REFUSED, "cancelled", "no need")


def test_a_wait_that_ends_before_the_answer_says_that_it_is_open(office: Office, bob: str) -> None:
    number = asked(office, bob)
    done = office("ask", "wait", number, "--timeout", "0.01s", "--as", bob)
    assert (done.rc, done.stdout) == (TIMED_OUT, "state: open\n")
    assert (
        office("ask", "wait", number, "--timeout", "0.01s", "--as", bob, "--json").json["timed_out"] is True
    )


def test_inside_a_run_the_wait_ends_early_and_says_that_the_turn_may_end(office: Office, bob: str) -> None:
    done = inside_a_run(office, bob, "ask", "create", "Deploy?", "--wait")
    assert (done.rc, done.record["state"]) == (TIMED_OUT, "open")
    assert done.record["advice"] == "end your turn; the answer will arrive"
    done = inside_a_run(office, bob, "ask", "create", "And then?", "--wait", "--json")
    assert done.json["advice"] == "end your turn; the answer will arrive"


def inside_a_run(office: Office, who: str, *words: str) -> Done:
    env = {"HIBOSS_RUN": "hiboss-r1", "HIBOSS_TOKEN": office.token(who)}
    return office.run([sys.executable, "-c", QUICK, *words], env=env)


def test_a_question_can_come_from_standard_input(office: Office, bob: str) -> None:
    done = office("ask", "create", "-", "--as", bob, stdin="May I?\nPlease.")
    assert office("ask", "get", done.record["ask-id"]).stdout.endswith("> May I?\n> Please.\n")


def test_the_boss_asks_an_agent_and_not_himself(office: Office, bob: str) -> None:
    done = office("ask", "create", "Ready?", "--to", bob)
    assert done.rc == 0
    assert office("ask", "list", "--as", bob).record["asker"] == "user:boss"
    done = office("ask", "create", "Ready?")
    assert done.rc == USAGE
    assert "who asks never answers" in done.stderr and "--to" in done.stderr and "--as" in done.stderr


def test_a_list_of_nothing_says_so(office: Office, bob: str) -> None:
    assert office("ask", "list", "--as", bob).stdout == "no-asks: true\n"


# --- rules ----------------------------------------------------------------------------


PERMITS = """read turn
echo '{"hiboss": "ask", "text": "May I?", "tool": "Bash", "detail": "git push", "subject": "git push"}'
read answer
echo done
"""


def test_a_rule_is_made_listed_and_taken_back_by_commands(office: Office, tmp_path: Path) -> None:
    program = tmp_path / "asks.sh"
    program.write_text(PERMITS)
    name = office.agent(provider="command", settings={"command": f"sh {program}", "input": "open"})
    office("send", name, "work", "--as", "boss")
    ask = opened(office, name)
    refused = office("ask", "answer", ask, "--choice", "allow", "--scope", "session", "--as", "boss")
    assert refused.rc == 1 and "--scope rule" in refused.stderr
    answered = office("ask", "answer", ask, "--choice", "allow", "--scope", "rule", "--as", "boss")
    assert answered.record["scope"] == "rule"
    shown = office("ask", "rules", "--agent", name, "--as", "boss").record
    wanted = {"agent": name, "tool": "Bash", "subject": "git push", "answer": "allow", "ask": ask}
    assert {key: shown[key] for key in wanted} == wanted
    gone = office("ask", "rule-remove", shown["number"], "--as", "boss").record
    assert (gone["subject"], gone["changed"]) == ("git push", "true")
    assert "no-rules" in office("ask", "rules", "--agent", name, "--as", "boss").stdout
