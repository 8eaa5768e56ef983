"""The questions of claude to people: what they show, what a rule is about, and what the model is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hiboss.agents.providers.claude import permissions
from hiboss.core.contracts.provider import Choice, Question


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
