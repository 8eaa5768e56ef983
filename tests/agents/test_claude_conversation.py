"""A turn of claude from its first line to its end, and its questions to people, with a program that prints recorded lines."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents.providers.claude import conversation, permissions
from hiboss.agents.providers.claude.provider import Claude
from hiboss.agents.providers.claude.settings import ClaudeSettings
from hiboss.core.contracts.failures import LaneError, TurnError
from hiboss.core.contracts.provider import Answer, Choice, Question, TurnInput
from hiboss.testing.recorded_run import RecordedRun, sample_turn
from tests.support.raising import raised

HEAD = f"""#!{sys.executable} -IS
import json, os, sys, time

def say(kind, **facts):
    print(json.dumps({{"type": kind, "session_id": "s", **facts}}), flush=True)

def result(text, **facts):
    known = {{"subtype": "success", "is_error": False, "result": text, "usage": {{}}}}
    say("result", **{{**known, **facts}})

def hear():
    line = sys.stdin.readline()
    return json.loads(line) if line else None

def takes_turn():
    turn = hear()
    say("system", subtype="init", model="claude-opus-5-5")
    say("user", message=turn["message"], uuid=turn["uuid"], isReplay=True)
    return turn
"""


def taken(tmp_path: Path, body: str, run: RecordedRun | None = None, **settings: Any) -> Answer:
    provider, turn = prepared(tmp_path, body, **settings)
    return asyncio.run(asyncio.wait_for((run or RecordedRun()).give(provider, turn), 60))


def prepared(tmp_path: Path, body: str, **settings: Any) -> tuple[Claude, TurnInput]:
    program = tmp_path / "claude"
    program.write_text(f"{HEAD}\n{body}\n")
    program.chmod(0o755)
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    turn = sample_turn("hello", workspace=str(tmp_path), environment=environment)
    return Claude(ClaudeSettings(program=str(program), **settings)), turn


def test_the_texts_of_all_results_are_the_answer(tmp_path: Path) -> None:
    body = 'takes_turn(); result("first"); hear(); result("second"); result(""); result("first")'
    assert taken(tmp_path, body).text == "first\n\nsecond"


def test_a_text_that_was_cut_and_one_of_an_error_are_no_part_of_the_answer(tmp_path: Path) -> None:
    cut = 'result("the be", terminal_reason="aborted_streaming")'
    error = 'result("API Error: 500", is_error=True)'
    assert taken(tmp_path, f'takes_turn(); {cut}; {error}; result("whole")').text == "whole"
    assert taken(tmp_path, f"takes_turn(); {cut}").text == "the be"


STEERED = """
turn = takes_turn()
word = hear()
result("first", user_message_uuids=[turn["uuid"]])
say("user", message=word["message"], uuid=word["uuid"], isReplay=True)
"""


def steered(tmp_path: Path, body: str) -> Answer:
    """Take a turn that is given words after its first line."""
    provider, turn = prepared(tmp_path, body)
    run = RecordedRun()

    async def story() -> Answer:
        async with asyncio.timeout(60):
            task = asyncio.create_task(run.give(provider, turn))
            while not any(one.kind == "model" for one in run.heard):
                await asyncio.sleep(0.01)
            assert await provider.steer("and this")
            return await task

    return asyncio.run(story())


@pytest.mark.parametrize("end", ["sys.exit(0)", "sys.exit(143)", "os.kill(os.getpid(), 9)"])
@pytest.mark.parametrize("known", ["", "user_message_uuids=[turn['uuid']]"])
def test_a_program_that_ends_before_it_answered_words_fails_the_turn(
    tmp_path: Path, end: str, known: str
) -> None:
    body = STEERED.replace('user_message_uuids=[turn["uuid"]]', known)
    error = raised(TurnError, steered, tmp_path, f"{body}\n{end}")
    assert error.kind == "no_result" and "answered all" in error.text


def test_a_program_that_ends_before_it_reads_words_fails_the_turn(tmp_path: Path) -> None:
    error = raised(
        TurnError, steered, tmp_path, 'takes_turn(); hear(); result("first"); os.kill(os.getpid(), 9)'
    )
    assert error.kind == "no_result"


def test_a_program_that_is_killed_after_it_answered_all_has_an_answer(tmp_path: Path) -> None:
    last = 'result("second", user_message_uuids=[word["uuid"]]); os.kill(os.getpid(), 9)'
    assert steered(tmp_path, STEERED + last).text == "first\n\nsecond"


def test_input_stays_open_while_the_model_is_silent_about_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(conversation, "LINGER_SECONDS", 0.05)
    body = """
import select
assert not select.select([sys.stdin], [], [], 0.5)[0], "its input was closed"
result("second", user_message_uuids=[word["uuid"]])
assert hear() is None
"""
    assert steered(tmp_path, STEERED + body).text == "first\n\nsecond"


def test_a_program_that_ends_in_a_model_call_after_its_result_fails_the_turn(tmp_path: Path) -> None:
    call = 'say("stream_event", event={"type": "message_start", "message": {"id": "m"}})'
    assert raised(TurnError, taken, tmp_path, f'takes_turn(); result("first"); {call}').kind == "no_result"


def test_input_stays_open_while_tasks_work_in_the_background(tmp_path: Path) -> None:
    body = """
takes_turn()
say("system", subtype="background_tasks_changed", tasks=[{"task_id": "b"}])
result("begun")
say("control_request", request_id="q", request={"subtype": "can_use_tool", "tool_name": "Bash", "input": {}})
answered = hear()["response"]["response"]["behavior"]
say("system", subtype="background_tasks_changed", tasks=[])
result("it is done, and " + answered)
assert hear() is None
"""
    assert taken(tmp_path, body, RecordedRun(["allow"])).text == "begun\n\nit is done, and allow"


def test_input_is_closed_when_nothing_comes_after_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "QUIET_SECONDS", 0.1)
    body = """
takes_turn()
say("system", subtype="background_tasks_changed", tasks=[{"task_id": "b"}])
result("begun")
say("system", subtype="background_tasks_changed", tasks=[])
assert hear() is None
"""
    assert taken(tmp_path, body).text == "begun"


def test_a_program_that_does_not_end_after_its_answer_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "LINGER_SECONDS", 0.2)
    answer = taken(tmp_path, 'takes_turn(); result("here"); time.sleep(1000)')
    assert answer.text == "here" and "did not end" in (answer.note or "")


def test_a_request_that_is_not_known_gets_an_error(tmp_path: Path) -> None:
    body = """
takes_turn()
say("control_request", request_id="q7", request={"subtype": "mcp_message"})
said = hear()["response"]
result(said["subtype"] + " " + said["request_id"])
"""
    assert taken(tmp_path, body).text == "error q7"


def test_a_request_that_is_withdrawn_needs_no_answer(tmp_path: Path) -> None:
    body = """
takes_turn()
say("control_request", request_id="q", request={"subtype": "can_use_tool", "tool_name": "Bash", "input": {}})
say("control_cancel_request", request_id="q")
result("never mind")
"""
    assert taken(tmp_path, body, RecordedRun()).text == "never mind"


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("sys.exit(\"error: unknown option '--replay-user-messages'\")", "outdated", "claude update"),
        ("sys.exit(\"error: unknown option '--mine'\")", "bad_arguments", "--mine"),
        ('sys.exit("something is wrong here")', "no_start", "something is wrong here"),
    ],
)
def test_a_program_that_does_not_begin_stops_the_lane(
    tmp_path: Path, body: str, kind: str, words: str
) -> None:
    error = raised(LaneError, taken, tmp_path, body, arguments="--mine 3")
    assert error.kind == kind and words in error.text


@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), 9)", "sys.exit(7)"])
def test_a_program_that_ends_without_a_result_fails_the_turn(tmp_path: Path, end: str) -> None:
    assert raised(TurnError, taken, tmp_path, f"takes_turn(); {end}").kind == "no_result"


def test_an_older_version_that_repeats_no_message_is_answered_too(tmp_path: Path) -> None:
    assert taken(tmp_path, 'hear(); result("fine"); assert hear() is None').text == "fine"


def test_lines_that_are_no_json_are_ignored(tmp_path: Path) -> None:
    assert taken(tmp_path, 'takes_turn(); print("Warning: hm"); print("[1]"); result("fine")').text == "fine"


def test_the_turn_never_begins_with_a_slash(tmp_path: Path) -> None:
    provider, turn = prepared(tmp_path, 'result(json.dumps(takes_turn()["message"]["content"]))')
    given = replace(turn, text="/clear all")
    assert json.loads(asyncio.run(RecordedRun().give(provider, given)).text) == "> /clear all"


def test_the_key_of_the_agent_and_the_instructions_stand_in_no_argument(tmp_path: Path) -> None:
    body = """
takes_turn()
file = sys.argv[sys.argv.index("--append-system-prompt-file") + 1]
result(json.dumps([sys.argv, open(file).read(), os.environ["ANTHROPIC_API_KEY"]]))
"""
    provider, turn = prepared(tmp_path, body, api_key="sk-ant-canary")
    given = replace(turn, instructions="You are nex, ä€😀.")
    arguments, instructions, key = json.loads(asyncio.run(RecordedRun().give(provider, given)).text)
    assert (instructions, key) == ("You are nex, ä€😀.", "sk-ant-canary")
    assert "canary" not in repr(arguments) and "You are nex" not in repr(arguments)
    assert not os.path.exists(arguments[arguments.index("--append-system-prompt-file") + 1])


# --- questions to people --------------------------------------------------------------


class People:
    """Answers questions with these choices."""

    def __init__(self, *choices: Choice) -> None:
        self.choices = list(choices)
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Choice:
        assert not question.mistake()
        self.asked.append(question)
        return self.choices.pop(0)


def answer(
    tool: str, given: dict[str, Any], *choices: Choice, reason: str = ""
) -> tuple[Any, list[Question]]:
    people = People(*choices)
    return asyncio.run(permissions.answer(people, tool, given, reason, "/w s")), people.asked  # type: ignore[arg-type]


PUSH = {"command": "git push origin main", "description": "Push it"}
YES, NO = Choice("allow", by="user:boss"), Choice("deny", "not today", "user:boss")


def test_a_command_is_asked_for_with_all_that_makes_a_difference() -> None:
    response, (asked,) = answer("Bash", PUSH, YES)
    assert response == {"behavior": "allow", "updatedInput": PUSH}
    assert asked.text == "May I use Bash?" and asked.detail == "git push origin main\n\n(Push it)"
    assert asked.subject == "cd '/w s' && git push origin main"
    assert (asked.options, asked.default, asked.tool) == (("allow", "deny"), "deny", "Bash")


def test_what_the_model_says_about_a_command_does_not_change_its_subject() -> None:
    assert permissions.subject("Bash", PUSH, "/w") == permissions.subject(
        "Bash", {**PUSH, "description": ""}, "/w"
    )
    assert permissions.subject("Bash", PUSH, "/w") != permissions.subject("Bash", PUSH, "/v")
    sandbox = {**PUSH, "dangerouslyDisableSandbox": True}
    assert permissions.subject("Bash", PUSH, "/w") != permissions.subject("Bash", sandbox, "/w")


def test_another_tool_is_shown_and_remembered_with_its_whole_input() -> None:
    given = {"file_path": "/etc/x", "content": "a\nb", "mode": {"n": 1}}
    _, (asked,) = answer("Write", given, YES, reason="Path is outside")
    assert asked.text == "May I use Write? Path is outside"
    assert asked.detail == 'file_path: /etc/x\ncontent: \na\nb\nmode: {"n": 1}'
    assert asked.subject == '{"cwd":"/w s","input":{"content":"a\\nb","file_path":"/etc/x","mode":{"n":1}}}'


def test_a_denial_reaches_the_model_with_its_reason() -> None:
    assert answer("Bash", PUSH, NO)[0] == {
        "behavior": "deny",
        "message": "The boss does not allow this: not today",
    }
    unanswered, _ = answer("Bash", PUSH, Choice("deny", "nobody answered in time"))
    assert unanswered["message"].startswith("Not allowed: nobody answered in time. Go on without it")


def test_a_tool_with_a_strange_name_is_asked_for_once() -> None:
    _, (asked,) = answer("Bash\n\u200b" + "x" * 300, PUSH, NO)
    assert len(asked.tool) == 200 and not asked.subject
    _, (asked,) = answer("", PUSH, NO)
    assert asked.tool == "a tool" and not asked.subject


def colours(**facts: Any) -> dict[str, Any]:
    options = [{"label": "red", "description": "warm"}, {"label": "green", "description": ""}]
    return {"question": "Which?", "header": "C", "options": options, "multiSelect": False, **facts}


def test_a_question_of_the_model_has_its_own_options() -> None:
    given = {"questions": [colours()]}
    response, (asked,) = answer("AskUserQuestion", given, Choice("green", by="user:boss"))
    assert asked == Question("Which?\nred: warm", ("red", "green", "something else"), "something else")
    assert response["updatedInput"] == {**given, "answers": {"Which?": "green"}, "annotations": {}}


def test_a_comment_goes_with_the_answer() -> None:
    response, _ = answer("AskUserQuestion", {"questions": [colours()]}, Choice("red", "dark", "user:boss"))
    assert response["updatedInput"]["annotations"] == {"Which?": {"notes": "dark"}}


def test_questions_that_nobody_answers_do_not_hide_answers() -> None:
    given = {"questions": [colours(), colours(question="And?")]}
    choices = (Choice("red", by="user:boss"), Choice("something else", "nobody answered in time"))
    response, _ = answer("AskUserQuestion", given, *choices)
    assert response["updatedInput"]["answers"]["Which?"] == "red"
    assert "nobody answered" in response["updatedInput"]["answers"]["And?"]


LONG = "x" * 300
ALIKE = [LONG + "1", LONG + "2", "Yes", "yes", "Something else", "a\\u202eb", "a\u202eb", " padded "]


@pytest.mark.parametrize("label", ALIKE)
def test_labels_that_look_alike_are_told_apart_and_the_model_gets_its_own(label: str) -> None:
    given = {"questions": [colours(options=[{"label": one, "description": one[-3:]} for one in ALIKE])]}
    options = permissions.own_question(given["questions"][0])[0].options
    assert len({one.casefold() for one in options}) == len(ALIKE) + 1
    chosen = options[ALIKE.index(label)]
    response, (asked,) = answer("AskUserQuestion", given, Choice(chosen, by="user:boss"))
    assert response["updatedInput"]["answers"] == {"Which?": label}
    assert f"{chosen}: {label[-3:]}" in asked.text


@pytest.mark.parametrize(
    "options",
    [
        None,
        "red",
        [],
        [None, 7, {}],
        [{"label": "x" * 300}, {"label": "\u200b"}, {"label": "a\nb"}, {"label": "A\nB"}],
        [{"label": f"number {one}"} for one in range(50)],
        [{"label": "Something else"}],
    ],
)
def test_options_of_every_form_can_be_asked(options: Any) -> None:
    question, labels = permissions.own_question(colours(options=options, question="  "))
    assert not question.mistake() and question.text.startswith("Which one?")
    assert set(labels) < set(question.options)
    assert len({one.casefold() for one in question.options}) == len(question.options)


def test_a_question_without_questions_is_asked_as_a_tool() -> None:
    _, (asked,) = answer("AskUserQuestion", {"questions": "none"}, NO)
    assert asked.tool == "AskUserQuestion"
