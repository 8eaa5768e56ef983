"""Permissions of the provider `acp` in detail: what is shown, what counts when nobody answers, and how they end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hiboss.agents.providers.acp.connection import BAD_REQUEST
from hiboss.core.contracts.provider import Choice, Question
from hiboss.testing.provider_contract import Turn, until
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.acp_rig import AcpRig, chunk, form, permission, take, take_planned, tool, tool_update
from tests.agents.test_acp_questions import CANCELLED, RUN, given

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
