"""What an agent of the provider `acp` asks people: permissions, choices, forms."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hiboss.core.contracts.failures import TurnError
from hiboss.core.contracts.provider import Choice, Question
from hiboss.testing.provider_contract import SECONDS, Turn, until
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.acp_rig import AcpRig, chunk, ended, form, permission, take_planned
from tests.support.raising import raised

RUN = {"name": "Bash", "kind": "execute", "title": "rm -r x", "rawInput": {"command": "rm -r x"}}


class Answering(RecordedRun):
    """A run in which each question gets the next of these answers."""

    def __init__(self, *answers: Choice) -> None:
        super().__init__()
        self._answers = list(answers)

    async def ask(self, question: Question) -> Choice:
        assert not question.mistake()
        self.questions.append(question)
        return self._answers.pop(0)


def given(rig: AcpRig, run: RecordedRun) -> RecordedRun:
    """Take a turn in a run; return the run."""
    asyncio.run(asyncio.wait_for(run.give(rig.make(), rig.task()), SECONDS))
    return run


def asked(rig: AcpRig, *answers: Choice) -> RecordedRun:
    """Take a turn whose questions get these answers."""
    return given(rig, Answering(*answers))


def selected(option: str) -> dict[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


CANCELLED = {"outcome": {"outcome": "cancelled"}}

# --- permissions ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kinds", "choice", "reply"),
    [
        (("allow_always", "allow_once", "reject_once", "reject_always"), "allow", selected("allow_once")),
        (("allow_always", "allow_once", "reject_always", "reject_once"), "deny", selected("reject_once")),
        (("allow_once",), "deny", CANCELLED),
        (("allow_always", "reject_always"), "deny", selected("reject_always")),
    ],
)
def test_an_answer_holds_once_wherever_the_agent_offers_that(
    rig: AcpRig, kinds: tuple[str, ...], choice: str, reply: dict[str, Any]
) -> None:
    _, run = take_planned(rig, {"ask": [[permission(RUN, *kinds)]]}, choices=(choice,))
    assert rig.told() == [reply]
    assert "for good" not in run.questions[0].text or "allow_once" not in kinds


def test_a_permission_that_can_only_be_given_for_good_says_so(rig: AcpRig) -> None:
    _, run = take_planned(
        rig, {"ask": [[permission(RUN, "allow_always", "reject_always")]]}, choices=("allow",)
    )
    assert rig.told() == [selected("allow_always")]
    assert "for good: the agent offers nothing but: allow always" in run.questions[0].text


def test_a_choice_of_another_kind_is_asked_with_its_own_options(rig: AcpRig) -> None:
    _, run = take_planned(
        rig, {"ask": [[permission({"title": "Which plan?"}, "plan_a", "plan_b")]]}, choices=("plan b",)
    )
    assert rig.told() == [selected("plan_b")]
    assert run.questions[0].options == ("plan a", "plan b", "deny") and not run.questions[0].subject


def test_nothing_is_remembered_for_a_tool_whose_input_is_not_told(rig: AcpRig) -> None:
    diff = {"type": "diff", "path": "/w/a.txt", "oldText": "old", "newText": "new"}
    text = {"type": "content", "content": {"type": "text", "text": "in /w"}}
    call = {"kind": "edit", "title": "Write a.txt", "content": [diff, text]}
    _, run = take_planned(rig, {"ask": [[permission(call, "allow_once", "reject_once")]]}, choices=("allow",))
    [question] = run.questions
    assert (question.tool, question.subject) == ("edit", "")
    assert question.text == "May it use edit? Write a.txt"
    assert question.detail == "Write a.txt\n/w/a.txt\n-old\n+new\n\nin /w"


@pytest.mark.parametrize("title", ["rm -r x", "`rm -r x`", " rm  -r x "])
def test_a_command_is_shown_once(rig: AcpRig, title: str) -> None:
    _, run = take_planned(
        rig, {"ask": [[permission({**RUN, "title": title}, "allow_once", "reject_once")]]}, choices=("allow",)
    )
    assert (run.questions[0].text, run.questions[0].detail) == ("May it use Bash?", "rm -r x")


def test_the_subject_is_the_whole_input_and_the_place(rig: AcpRig) -> None:
    other = {**RUN, "rawInput": {"command": "rm -r x", "timeout": 5}}
    _, run = take_planned(
        rig,
        {"ask": [[permission(one, "allow_once", "reject_once") for one in (RUN, RUN, other)]]},
        choices=("allow", "allow", "allow"),
    )
    first, second, third = (one.subject for one in run.questions)
    assert first == second != third and str(rig.directory) in first


def test_with_high_autonomy_nobody_is_asked_for_a_permission(rig: AcpRig) -> None:
    rig.settings = {"autonomy": "high"}
    _, run = take_planned(rig, {"ask": [[permission(RUN, "allow_always", "allow_once", "reject_once")]]})
    assert rig.told() == [selected("allow_once")] and not run.questions


async def test_open_questions_are_cancelled_by_an_interrupt(rig: AcpRig) -> None:
    asking = [permission(RUN, "allow_once", "reject_once"), form("why?", why={"enum": ["a", "b"]})]
    rig.plan({"ask": [asking]}, {"wait": "session/cancel"}, {"result": {"stopReason": "cancelled"}})
    turn = Turn(rig)
    await until(lambda: len(turn.run.questions) == 2)
    await turn.provider.interrupt()
    await turn.ends()
    assert rig.told() == [CANCELLED, {"action": "cancel"}]


def test_a_turn_that_the_agent_ends_at_a_denial_goes_on_with_the_reason(rig: AcpRig) -> None:
    """codex-acp has no option to go on after a denial."""
    first = [
        {"ask": [[permission(RUN, "allow_once", "reject_once")], ""]},
        {"result": {"stopReason": "cancelled"}},
    ]
    rig.plan_prompts(first, [chunk("then not"), ended(usage={"inputTokens": 5, "outputTokens": 2})])
    run = asked(rig, Choice("deny", "not on a Sunday", "user:boss"))
    assert run.shown == "then not"
    [again] = rig.received("session/prompt")[1:]
    assert again["prompt"][0]["text"] == "This was not allowed: rm -r x (not on a Sunday)\nGo on without it."
    assert not run.heard[-1].usage or not run.heard[-1].usage.exact


def test_an_agent_that_stops_at_every_denial_is_not_asked_for_ever(rig: AcpRig) -> None:
    rig.plan(
        {"ask": [[permission(RUN, "allow_once", "reject_once")], ""]}, {"result": {"stopReason": "cancelled"}}
    )
    caught = raised(TurnError, asked, rig, *[Choice("deny", by="user:boss")] * 9)
    assert caught.kind == "denied" and rig.turns() == 5


# --- forms ---------------------------------------------------------------------------

COLOUR = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}


def test_each_field_of_a_form_is_a_question(rig: AcpRig) -> None:
    fields = {
        "colour": {**COLOUR, "title": "The wall"},
        "sure": {"type": "boolean", "description": "Are you sure?"},
        "tools": {"type": "array", "items": {"anyOf": [{"const": "b", "title": "Brush"}]}},
        "note": {"type": "string"},
    }
    rig.plan({"ask": [[form("Paint it?", **fields)]]})
    run = asked(rig, *(Choice(one, by="user:boss") for one in ("Green", "no", "Brush")))
    assert rig.told() == [{"action": "accept", "content": {"colour": "g", "sure": False, "tools": ["b"]}}]
    assert [(one.text, one.options) for one in run.questions] == [
        ("Paint it?\nThe wall", ("Red", "Green")),
        ("Paint it?\nAre you sure?", ("yes", "no")),
        ("Paint it?", ("Brush",)),
    ]


def test_a_comment_goes_into_the_free_text_beside_the_question(rig: AcpRig) -> None:
    """So claude-agent-acp offers an answer of one's own."""
    rig.plan({"ask": [[form("Paint it?", question_0=COLOUR, question_0_custom={"type": "string"})]]})
    asked(rig, Choice("Red", "but a dark one", "user:boss"))
    assert rig.told() == [
        {"action": "accept", "content": {"question_0": "r", "question_0_custom": "but a dark one"}}
    ]


def test_a_form_that_nobody_answers_is_declined(rig: AcpRig) -> None:
    rig.plan({"ask": [[form("Paint it?", colour=COLOUR)]]})
    asked(rig, Choice("Green", "Nobody answered in time."))
    assert rig.told() == [{"action": "decline"}]


@pytest.mark.parametrize(
    ("kind", "comment", "value"),
    [("string", "a word", "a word"), ("integer", "12", 12), ("number", "1.5", 1.5)],
)
def test_a_free_text_that_is_required_is_the_comment_of_the_answer(
    rig: AcpRig, kind: str, comment: str, value: Any
) -> None:
    request = form("Which one?", it={"type": kind})
    request["params"]["requestedSchema"]["required"] = ["it"]
    rig.plan({"ask": [[request]]})
    run = asked(rig, Choice("answer", comment, "user:boss"))
    assert run.questions[0].options == ("answer", "skip")
    assert rig.told() == [{"action": "accept", "content": {"it": value}}]
    asked(rig, Choice("skip", by="user:boss"))
    assert rig.told() == [{"action": "decline"}]


@pytest.mark.parametrize(
    "params", [{"mode": "url", "url": "https://x"}, {"mode": "form"}, {"requestedSchema": 5}]
)
def test_a_form_that_cannot_be_asked_is_declined(rig: AcpRig, params: dict[str, Any]) -> None:
    rig.plan({"ask": [[{"method": "elicitation/create", "params": params}]]})
    asked(rig)
    assert rig.told() == [{"action": "decline"}]


# --- other requests ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create", "_of_a_vendor", "session/new"])
def test_a_request_that_is_not_offered_is_refused_and_the_turn_goes_on(rig: AcpRig, method: str) -> None:
    assert (
        take_planned(
            rig, {"ask": [[{"method": method, "params": {"path": "/etc/passwd"}}], ""]}, chunk("without it")
        )[0].text
        == "without it"
    )
    [error] = rig.told()
    assert error["code"] == -32601
