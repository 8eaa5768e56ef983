"""What an agent of the provider `acp` asks people: permissions, choices, forms; what counts when nobody answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hiboss.agents.providers.acp.connection import BAD_REQUEST
from hiboss.core.contracts.failures import TurnError
from hiboss.core.contracts.provider import Choice, Question
from hiboss.testing.provider_contract import SECONDS, Turn, until
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.acp_rig import AcpRig, chunk, ended, form, permission, take, take_planned, tool, tool_update
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
    assert (question.tool, question.subject, question.text) == ("edit", "", "May it use edit? Write a.txt")
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
    assert asked(rig, Choice("answer", comment, "user:boss")).questions[0].options == ("answer", "skip")
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


# --- permissions in detail ------------------------------------------------------------


ADDED = {
    "type": "diff",
    "path": "/w/evil.sh",
    "oldText": None,
    "newText": "rm -rf ~\n",
    "_meta": {"kind": "add"},
}
DELETED = {
    "type": "diff",
    "path": "/w/keep",
    "oldText": "precious\n",
    "newText": "",
    "_meta": {"kind": "delete"},
}


class Nobody(RecordedRun):
    """A run in which nobody answers: each question gets its default."""

    async def ask(self, question: Question) -> Choice:
        assert not question.mistake()
        self.questions.append(question)
        return Choice(question.default or question.options[-1], "nobody answered in time")


def unanswered(rig: AcpRig) -> RecordedRun:
    """Take a turn in which nobody answers."""
    return given(rig, Nobody())


def offering(*options: Any) -> dict[str, Any]:
    request = permission(RUN)
    request["params"]["options"] = list(options)
    return request


# --- what is shown -------------------------------------------------------------------


def test_a_permission_shows_what_was_told_of_its_tool_before(rig: AcpRig) -> None:
    """codex-acp tells the changes with the tool, and only the files with the request."""
    places = [{"path": "/w/evil.sh"}, {"path": "/w/keep"}, {"path": "/w/third"}]
    asked = permission(
        {"title": "Edit files", "kind": "edit", "locations": places}, "allow_once", "reject_once"
    )
    [question] = take_planned(
        rig,
        tool("Editing files", kind="edit", content=[ADDED]),
        tool_update(content=[ADDED, DELETED]),
        {"ask": [[asked]]},
        choices=("allow",),
    )[1].questions
    assert question.text == "May it use edit? Edit files"
    assert question.detail == (
        "Edit files\n/w/evil.sh (add)\n+rm -rf ~\n\n/w/keep (delete)\n-precious\n\n/w/third"
    )
    assert json.loads(question.subject) == {"changes": [ADDED, DELETED], "cwd": str(rig.directory)}


def test_what_a_tool_would_do_is_only_remembered_if_all_of_it_is_told(rig: AcpRig) -> None:
    def asking(**more: Any) -> dict[str, Any]:
        return permission({"title": "Edit", "kind": "edit", **more}, "allow_once", "reject_once")

    text = {"type": "content", "content": {"type": "text", "text": "and more"}}
    written = {"file_path": "/w/evil.sh", "content": "rm -rf ~\n"}
    asks = [
        asking(locations=[{"path": "/w/keep"}]),
        asking(content=[ADDED, text]),
        asking(content=[{"type": "diff", "path": "/w/keep"}]),
        asking(rawInput=written, content=[ADDED]),
        asking(rawInput=written, content=[DELETED]),
    ]
    subjects = [
        one.subject for one in take_planned(rig, {"ask": [asks]}, choices=("allow",) * 5)[1].questions
    ]
    assert subjects[:3] == [""] * 3
    assert json.loads(subjects[3]) == {"input": written, "cwd": str(rig.directory)}
    assert json.loads(subjects[4])["changes"] == [DELETED]


def test_what_was_told_of_another_tool_is_not_shown(rig: AcpRig) -> None:
    done = tool_update("t2", status="completed")
    assert [
        one.detail
        for one in take_planned(
            rig,
            tool("Editing", number="t2", content=[ADDED]),
            done,
            {"ask": [[permission({"toolCallId": one}, "allow_once", "reject_once") for one in ("t2", "t3")]]},
            choices=("deny", "deny"),
        )[1].questions
    ] == ["", ""]


# --- what counts when nobody answers ---------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words", "reply"),
    [
        ([("no", "reject", "No"), ("run", "allow_session", "Yes, run it")], ("No", "Yes, run it", "deny"), None),
        ([("no", "reject_once", "No"), ("run", "allow_session", "Yes")], ("Yes", "No"), "no"),
        ([("no", "reject_always", "No"), ("run", None, "No")], ("No (1)", "No"), "no"),
        ([("x", "y", "deny"), ("run", "z", "Deny")], ("deny (1)", "Deny (2)", "deny"), None),
        ([("\u200b", "y", "\u200b"), ("run", "z", "yes")], ("option 1", "yes", "deny"), None),
        ([("n", "reject_once", "\u200b"), ("run", "z", "yes")], ("yes", "n"), "n"),
    ],
)  # fmt: skip
def test_an_option_whose_kind_is_not_known_never_counts_without_an_answer(
    rig: AcpRig, options: list[tuple[str, Any, str]], words: tuple[str, ...], reply: str | None
) -> None:
    offered = [{"optionId": number, "kind": kind, "name": name} for number, kind, name in options]
    rig.plan({"ask": [[offering(*offered)]]})
    [question] = unanswered(rig).questions
    assert question.options == words and question.default == words[-1]
    assert rig.told() == [
        CANCELLED if reply is None else {"outcome": {"outcome": "selected", "optionId": reply}}
    ]


def test_high_autonomy_allows_nothing_by_an_option_whose_kind_is_not_known(rig: AcpRig) -> None:
    rig.settings = {"autonomy": "high"}
    rig.plan({"ask": [[offering({"optionId": "x", "kind": "wipe", "name": "allow"})]]})
    assert len(unanswered(rig).questions) == 1 and rig.told() == [CANCELLED]


def test_a_rejection_among_many_options_stays_the_default(rig: AcpRig) -> None:
    many = [{"optionId": f"o{number}", "name": f"o{number}"} for number in range(30)]
    rig.plan({"ask": [[offering(*many, {"optionId": "no", "kind": "reject_once", "name": "No"})]]})
    [question] = unanswered(rig).questions
    assert len(question.options) == 20 and question.default == "No"


# --- how it ends -------------------------------------------------------------------------


def asks_as(number: Any) -> dict[str, Any]:
    return {"send": {"id": number, **permission(RUN, "allow_once", "reject_once")}}


def takes_back(number: Any) -> dict[str, Any]:
    return {"send": {"method": "$/cancel_request", "params": {"requestId": number}}}


def test_an_answer_does_not_wait_for_what_is_still_asked(rig: AcpRig) -> None:
    answer, _ = take_planned(rig, asks_as(50), chunk("done without it"))
    assert answer.text == "done without it"
    assert not [line for line in (rig.directory / "received").read_text().splitlines() if '"id": 50' in line]


async def test_what_the_agent_takes_back_is_cancelled_and_nothing_else(rig: AcpRig) -> None:
    rig.plan(asks_as(1), asks_as("1"), takes_back(True), takes_back([1]), takes_back(1), {"answered": 1},
             {"answered": "1"}, chunk("well"))  # fmt: skip
    turn = Turn(rig)
    await until(lambda: (rig.directory / "answers").exists())
    assert rig.told() == [CANCELLED]
    assert not turn.running.done()
    await turn.provider.interrupt()
    await turn.ends()
    assert rig.told() == [CANCELLED]


def test_what_is_asked_after_the_answer_is_asked_of_nobody(rig: AcpRig) -> None:
    """Also if it comes at once, and if it comes while the agent ends."""
    answer, run = take_planned(
        rig,
        chunk("done"),
        {"send": {"id": 3, "result": {"stopReason": "end_turn"}}},
        asks_as(51),
        {"hang": True},
    )
    assert answer.text == "done" and not run.questions


# --- odd requests ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [None, 5, "none", [], [1, {"name": "x"}], [{"optionId": {"a": 1}, "kind": "allow_once"}]]
)
def test_a_permission_without_options_is_a_mistake_that_the_agent_is_told(rig: AcpRig, options: Any) -> None:
    request = {"method": "session/request_permission", "params": {"options": options, "toolCall": 5}}
    answer, run = take_planned(rig, {"ask": [[request], ""]}, chunk("without it"))
    assert (answer.text, run.questions, rig.told()[0]["code"]) == ("without it", [], BAD_REQUEST)


@pytest.mark.parametrize(
    "field",
    [{"enum": 5}, {"enum": {"x": 1}}, {"oneOf": 5}, {"anyOf": "ab"}, {"type": "array", "items": {"enum": 5}}],
)
def test_a_form_that_makes_no_sense_is_a_mistake_that_the_agent_is_told(rig: AcpRig, field: Any) -> None:
    answer, run = take_planned(
        rig, {"ask": [[form("Pick", ok={"type": "boolean"}, it=field)], ""]}, chunk("without it")
    )
    assert (answer.text, run.questions, rig.told()[0]["code"]) == ("without it", [], BAD_REQUEST)


def test_the_required_fields_of_a_form_are_a_list(rig: AcpRig) -> None:
    request = form("Pick", it={"type": "string"})
    request["params"]["requestedSchema"]["required"] = 5
    rig.plan({"ask": [[request], ""]}, chunk("without it"))
    assert take(rig)[0].text == "without it" and rig.told()[0]["code"] == BAD_REQUEST


def test_a_value_of_a_form_that_shows_nothing_is_written_out(rig: AcpRig) -> None:
    rig.plan({"ask": [[form("\u200b", it={"enum": ["\u200b", "b", ""]})]]})
    [question] = unanswered(rig).questions
    assert question.options == ('"\\u200b"', "b") and question.text == "It asks a question without a text."
