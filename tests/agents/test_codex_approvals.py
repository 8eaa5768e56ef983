"""Its questions to people: requests of codex become questions, and choices become its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hiboss.agents.providers.codex import approvals
from hiboss.core.contracts.provider import Choice
from tests.agents.codex_recorded import APPROVALS, Line, recorded

COMMAND = "item/commandExecution/requestApproval"
EDIT = "item/fileChange/requestApproval"
INPUT = "item/tool/requestUserInput"
DENIED = Choice("deny", "not on a Sunday", "user:boss")


def asked(method: str, params: Line, item: Line | None = None) -> approvals.Asked:
    found = approvals.read(method, params, {"i1": item or {}})
    assert found is not None
    assert not [one.mistake() for one in found.questions if one.mistake()]
    return found


def recorded_request() -> Line:
    params = next(one["params"] for one in recorded(APPROVALS) if one["method"] == COMMAND)
    return {**params}


def test_a_recorded_request_asks_for_the_command_with_its_reason() -> None:
    found = asked(COMMAND, recorded_request())
    (question,) = found.questions
    assert question.text.endswith("to make y9") and question.detail == "touch y9 && ls y9"
    assert (question.options, question.default, question.tool) == (("allow", "deny"), "deny", "exec_command")
    assert found.result([Choice("allow")]) == {"decision": "accept"}
    assert found.result([DENIED]) == {"decision": "decline"}


@pytest.mark.parametrize(
    "change",
    [
        {"command": "/bin/bash -lc 'touch y9 && ls y8'"},
        {"cwd": "/elsewhere"},
        {"additionalPermissions": {"network": {"enabled": True}}},
        {"networkApprovalContext": {"host": "example.org", "protocol": "https"}},
    ],
)
def test_an_answer_is_remembered_for_nothing_else(change: Line) -> None:
    one, other = recorded_request(), {**recorded_request(), **change}
    again = {
        **recorded_request(),
        "itemId": "another",
        "turnId": "t9",
        "reason": "other words",
        "startedAtMs": 1,
    }
    subjects = [asked(COMMAND, params).questions[0].subject for params in (one, other, again)]
    assert subjects[0] and subjects[0] != subjects[1] and subjects[0] == subjects[2]


def test_words_for_a_running_command_are_allowed_only_once() -> None:
    found = asked(COMMAND, {**recorded_request(), "kind": "writeStdin"})
    assert found.questions[0].subject == "" and found.questions[0].tool


def test_an_edit_is_asked_for_with_all_its_diffs() -> None:
    changes = [
        {"path": "/w/a.txt", "kind": {"type": "update", "move_path": None}, "diff": "@@\n-old\n+new\n"},
        {"path": "/w/b.txt", "kind": {"type": "update", "move_path": "/w/c.txt"}, "diff": ""},
        {"path": "/w/d.txt", "kind": {"type": "delete"}, "diff": "gone\n"},
    ]
    found = asked(EDIT, {"itemId": "i1", "reason": None, "grantRoot": None}, {"changes": changes})
    (question,) = found.questions
    expected = "update /w/a.txt\n@@\n-old\n+new\n\nmove to /w/c.txt: /w/b.txt\n\n\ndelete /w/d.txt\ngone"
    assert question.detail == expected and question.tool == "apply_patch"
    assert json.loads(question.subject)["changes"] == changes
    assert found.result([Choice("allow")]) == {"decision": "accept"}


def test_an_edit_of_which_nothing_is_known_is_remembered_for_nothing() -> None:
    assert asked(EDIT, {"itemId": "unknown"}).questions[0].subject == ""


def test_the_reason_of_a_denial_is_said_to_the_model() -> None:
    found = asked(COMMAND, recorded_request())
    assert approvals.denial(found, [DENIED]) == "The command `touch y9 && ls y9` was denied: not on a Sunday"
    assert approvals.denial(found, [Choice("deny")]) == ""
    assert approvals.denial(found, [Choice("allow", "go ahead")]) == ""


def test_rights_are_given_as_they_were_asked_for_or_not_at_all() -> None:
    wanted = {"network": {"enabled": True}}
    found = asked(
        "item/permissions/requestApproval", {"permissions": wanted, "cwd": "/w", "reason": "to fetch"}
    )
    assert found.result([Choice("allow")]) == {"permissions": wanted, "scope": "turn"}
    assert found.result([DENIED]) == {"permissions": {}, "scope": "turn"}


def option(label: str, meaning: str = "") -> Line:
    return {"label": label, "description": meaning}


def input_of(*questions: Line) -> Line:
    return {"itemId": "i1", "isBlocking": False, "questions": list(questions)}


def test_a_question_of_the_model_has_its_own_options() -> None:
    given = {
        "id": "colour",
        "header": "Colour",
        "question": "Which?",
        "options": [option("Red", "warm"), option("Blue")],
    }
    found = asked(INPUT, input_of(given))
    (question,) = found.questions
    assert (question.options, question.default, question.tool) == (("Red", "Blue"), "Red", "")
    assert question.text == "Which?\n- Red: warm"
    choice = Choice("Blue", "but dark", "user:boss")
    assert found.result([choice]) == {"answers": {"colour": {"answers": ["Blue", "user_note: but dark"]}}}


def test_a_question_without_options_takes_the_words_of_the_answer() -> None:
    found = asked(
        INPUT, input_of({"id": "name", "header": "Name", "question": "What name?", "options": None})
    )
    (question,) = found.questions
    assert question.default == "no answer"
    assert found.result([Choice("see my text", "heron")]) == {
        "answers": {"name": {"answers": ["user_note: heron"]}}
    }
    assert found.result([Choice("no answer")]) == {"answers": {"name": {"answers": []}}}


ALIKE = ["x" * 300 + "1", "x" * 300 + "2", "Yes", "yes", "see my text", "no answer", "a\u202eb", " padded "]


@pytest.mark.parametrize("label", ALIKE)
def test_labels_that_look_alike_are_told_apart_and_the_model_gets_its_own(label: str) -> None:
    given = {"id": "q", "header": "", "question": "Which?", "options": [option(one) for one in ALIKE]}
    found = asked(INPUT, input_of(given))
    options = found.questions[0].options
    assert len({one.casefold() for one in options}) == len(ALIKE)
    choice = Choice(options[ALIKE.index(label)], by="user:boss")
    assert found.result([choice]) == {"answers": {"q": {"answers": [label]}}}


def test_a_secret_is_not_asked_for() -> None:
    secret = {"id": "key", "header": "Key", "question": "Which key?", "isSecret": True, "options": None}
    assert approvals.read(INPUT, input_of(secret), {}) is None
    both = asked(
        INPUT, input_of(secret, {"id": "ok", "header": "", "question": "Go on?", "options": [option("yes")]})
    )
    assert len(both.questions) == 1
    assert both.result([Choice("yes")]) == {"answers": {"key": {"answers": []}, "ok": {"answers": ["yes"]}}}


def test_an_mcp_server_is_allowed_to_go_on_but_gets_no_form() -> None:
    method = "mcpServer/elicitation/request"
    plain: Line = {
        "serverName": "birds",
        "mode": "form",
        "message": "Feed it?",
        "requestedSchema": {"properties": {}},
    }
    found = asked(method, plain)
    assert found.result([Choice("allow")]) == {"action": "accept", "content": {}}
    assert found.result([DENIED]) == {"action": "decline"}
    form = {**plain, "requestedSchema": {"properties": {"name": {"type": "string"}}}}
    assert approvals.read(method, form, {}) is None


@pytest.mark.parametrize(
    "method", ["item/tool/call", "attestation/generate", "account/chatgptAuthTokens/refresh", "something/new"]
)
def test_what_is_no_question_for_people_is_not_asked(method: str) -> None:
    assert approvals.read(method, {}, {}) is None


@pytest.mark.parametrize(
    "broken", [{}, {"questions": 7}, {"questions": [None]}, {"command": 7, "changes": 7}]
)
@pytest.mark.parametrize("method", [COMMAND, EDIT, INPUT, "item/permissions/requestApproval"])
def test_requests_of_another_form_break_nothing(method: str, broken: dict[str, Any]) -> None:
    found = approvals.read(method, broken, {})
    assert found is None or not [one for one in found.questions if one.mistake()]
