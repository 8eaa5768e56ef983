"""What codex reports and asks: recorded lines become live output, tokens, an answer, questions. Without the program."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hiboss.agents.providers.codex import approvals, items
from hiboss.agents.providers.codex.turn_events import TurnEvents
from hiboss.core.contracts.provider import Choice, Progress, Usage
from tests.agents.codex_recorded import (
    APPROVALS,
    FIRST,
    THREAD,
    WITH_TOOL,
    Line,
    error_line,
    recorded,
    turn_of,
)


class Heard:
    """The events of a turn, and what they reported."""

    def __init__(self, *lines: Line, turn: str = "", is_new: bool = True) -> None:
        self.parts: list[Progress] = []
        self.events = TurnEvents(self.parts.append, THREAD, is_new=is_new)
        self.events.turn = turn
        for line in lines:
            self.events.take(line["method"], line["params"])

    def texts(self, kind: str) -> list[str]:
        return [one.text for one in self.parts if one.kind == kind]


def usage_line(
    total: int, last: int = 3120, turn: str = "t1", thread: str = THREAD, written: int = 7
) -> Line:
    """Return an announcement: tokens read and written in all, and by the last call, which wrote 7."""

    def tokens(read: int, wrote: int) -> dict[str, int]:
        return {"totalTokens": read + wrote, "inputTokens": read, "outputTokens": wrote}

    usage = {"total": tokens(total, written), "last": tokens(last, 7), "modelContextWindow": 258400}
    params = {"threadId": thread, "turnId": turn, "tokenUsage": usage}
    return {"method": "thread/tokenUsage/updated", "params": params}


def message(text: str, name: str = "m1", phase: str | None = None) -> Line:
    item = {"type": "agentMessage", "id": name, "text": text, "phase": phase}
    return {"method": "item/completed", "params": {"item": item, "threadId": THREAD}}


def begun(kind: str, **facts: Any) -> Line:
    item = {"type": kind, "id": "i1", **facts}
    return {"method": "item/started", "params": {"item": item, "threadId": THREAD}}


def test_a_recorded_turn_is_heard_word_by_word_with_its_thoughts_and_tokens() -> None:
    heard = Heard(*recorded(FIRST))
    assert heard.texts("delta") == ["hello ", "dear ", "boss"] and heard.texts("thinking") == ["hm"]
    assert heard.events.answer == "hello dear boss"
    assert heard.events.ended is not None and heard.events.ended["status"] == "completed"
    assert heard.events.tokens.usage(exact=True) == Usage(3120, 7, None, 3120, exact=True)


def test_the_tokens_of_a_resumed_thread_are_those_of_this_turn() -> None:
    lines = recorded(WITH_TOOL)
    before = usage_line(6240, turn="an-earlier-turn", written=14)
    heard = Heard(before, *lines, turn=turn_of(lines), is_new=False)
    assert heard.events.tokens.usage() == Usage(12480 - 6240, 28 - 14, None, 3120)
    assert heard.texts("tool") == ["sleep 2; echo done"] and heard.texts("tool_result") == ["done"]
    assert heard.events.answer == "steered"


@pytest.mark.parametrize(
    ("lines", "tokens"),
    [
        ([usage_line(6240, turn="t0"), usage_line(6240), usage_line(6240)], (0, 0)),
        ([begun("agentMessage"), usage_line(9360, written=21)], (3120, 7)),
        ([usage_line(9360), usage_line(12480, written=14)], (3120, 7)),
        ([usage_line(9360, turn="t0", written=70), usage_line(3120)], (3120, 7)),
    ],
    ids=[
        "a total is repeated",
        "a copy without an announcement",
        "a copy announced twice",
        "sums begin anew",
    ],
)
def test_only_the_tokens_of_this_turn_count(lines: list[Line], tokens: tuple[int, int]) -> None:
    assert Heard(*lines, turn="t1", is_new=False).events.tokens.usage() == Usage(*tokens, None, 3120)


def test_after_a_summary_the_context_is_what_codex_estimates() -> None:
    summarized = usage_line(6240, turn="t1")
    summarized["params"]["tokenUsage"]["last"] = {"totalTokens": 12150, "inputTokens": 0, "outputTokens": 0}
    assert Heard(usage_line(3120), summarized, turn="t1").events.tokens.usage() == Usage(6240, 7, None, 12150)


def test_sub_agents_count_for_the_tokens_and_say_nothing_in_the_turn() -> None:
    other = {"threadId": "another", "turn": {"id": "x", "status": "completed"}}
    delta = {"threadId": "another", "itemId": "m9", "delta": "to the other agent"}
    heard = Heard(
        usage_line(3120),
        usage_line(5000, last=5000, turn="x", thread="another"),
        {"method": "item/agentMessage/delta", "params": delta},
        {"method": "turn/completed", "params": other},
        turn="t1",
    )
    assert heard.events.tokens.usage() == Usage(8120, 14, None, 3120)
    assert not heard.texts("delta") and heard.events.ended is None


def test_messages_are_shown_as_paragraphs_and_one_before_a_tool_is_no_answer() -> None:
    work = begun("commandExecution", command="ls")
    heard = Heard(message("I look first.", "m1"), work, message("It is done.", "m2"))
    assert "".join(heard.texts("delta")) == "I look first.\n\nIt is done."
    assert heard.events.answer == "It is done."


WORDS = begun("userMessage")


@pytest.mark.parametrize("phase", [None, "final_answer"])
def test_an_answer_that_was_whole_when_somebody_spoke_stays(phase: str | None) -> None:
    first, second = message("The whole first.", "m1", phase), message("The second.", "m2", phase)
    work = begun("commandExecution", command="ls")
    remark = message("I look once more.", "m3", "commentary" if phase else None)
    assert Heard(first, WORDS, remark, work, second).events.answer == "The whole first.\n\nThe second."


PART = {"threadId": THREAD, "itemId": "m1", "delta": "A long st"}


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (
            [begun("agentMessage"), {"method": "item/agentMessage/delta", "params": PART}, WORDS,
             message("as you say", "m2")],
            "as you say",
        ),
        ([message("done", "m1"), WORDS, message("done", "m2")], "done"),
        ([message("42", "m1", "final_answer"), message("(done)", "m2", "commentary")], "42"),
        ([message("so far", "m1", "commentary")], "so far"),
        ([message("I look first."), begun("commandExecution", command="ls")], "I look first."),
    ],
    ids=["cut by words", "said twice", "a remark after it", "a remark alone", "before a tool"],
)  # fmt: skip
def test_what_the_answer_is(lines: list[Line], answer: str) -> None:
    assert Heard(*lines).events.answer == answer


def test_the_answer_is_read_from_the_end_of_the_turn_if_no_message_was_heard() -> None:
    items = [{"type": "userMessage"}, {"type": "agentMessage", "text": "one"}, {"type": "userMessage"}]
    turn = {"id": "t1", "status": "completed", "items": [*items, {"type": "agentMessage", "text": "two"}]}
    ended = {"method": "turn/completed", "params": {"threadId": THREAD, "turn": turn}}
    assert Heard(ended, turn="t1").events.answer == "one\n\ntwo"


def test_a_call_that_was_cut_is_known() -> None:
    assert not Heard(*recorded(FIRST)).events.broke_off
    assert Heard(begun("agentMessage"), message("whole", "m2")).events.broke_off
    lost = {"responseStreamDisconnected": {"httpStatusCode": None}}
    assert Heard(error_line("Reconnecting... 1/2", lost, retried=True)).events.broke_off
    waits = error_line("Reconnecting... waiting for network", lost, retried=True)
    assert not Heard(waits).events.broke_off  # nothing was read


def test_waits_for_the_network_are_counted_until_the_model_answers() -> None:
    waiting = error_line(
        "Reconnecting... waiting for network", {"responseStreamDisconnected": {}}, retried=True
    )
    heard = Heard(waiting, error_line("Reconnecting... 2/5", retried=True), waiting)
    assert (heard.events.waits, heard.events.retries) == (2, 3)
    heard.events.take("item/agentMessage/delta", {"threadId": THREAD, "itemId": "m1", "delta": "back"})
    assert (heard.events.waits, heard.events.retries) == (0, 0)


@pytest.mark.parametrize(
    ("item", "call", "result"),
    [
        (
            {
                "type": "commandExecution",
                "command": "/bin/bash -lc 'ls -l'",
                "exitCode": 2,
                "aggregatedOutput": "no\n",
            },
            "ls -l",
            "exit status 2: no",
        ),
        ({"type": "commandExecution", "command": "rm x", "status": "declined"}, "rm x", "denied"),
        (
            {
                "type": "fileChange",
                "changes": [{"path": "/w/a", "kind": {"type": "add"}}],
                "status": "completed",
            },
            "edit /w/a",
            "done",
        ),
        (
            {
                "type": "mcpToolCall",
                "server": "birds",
                "tool": "feed",
                "arguments": {"bird": "heron"},
                "result": {"content": [{"type": "text", "text": "fed"}]},
            },
            'birds.feed {"bird": "heron"}',
            "fed",
        ),
        ({"type": "mcpToolCall", "server": "b", "tool": "c", "error": {"message": "gone"}}, "b.c", "gone"),
        ({"type": "webSearch", "query": "herons"}, "search the web: herons", ""),
        ({"type": "someNewThing"}, "some new thing", ""),
        ({"type": "userMessage"}, "", ""),
        ({"type": "reasoning"}, "", ""),
    ],
)
def test_items_are_lines_for_people(item: Line, call: str, result: str) -> None:
    assert (items.call(item), items.result(item)) == (call, result)


def test_long_items_are_shortened_to_a_line() -> None:
    shown = items.call({"type": "commandExecution", "command": "echo\n" + "x" * 1000})
    assert len(shown) == items.CALL_CHARACTERS and "\n" not in shown and shown.endswith("…")


@pytest.mark.parametrize(
    "broken", [{}, {"item": None}, {"item": []}, {"turn": 7}, {"tokenUsage": "x"}, {"error": 1}]
)
def test_lines_of_another_form_break_nothing(broken: Line) -> None:
    heard = Heard()
    for method in (
        "item/started",
        "item/completed",
        "thread/tokenUsage/updated",
        "error",
        "turn/started",
        "news",
    ):
        heard.events.take(method, {**broken, "threadId": THREAD})
    assert heard.events.ended is None


# --- questions to people --------------------------------------------------------------


COMMAND = "item/commandExecution/requestApproval"
EDIT = "item/fileChange/requestApproval"
INPUT = "item/tool/requestUserInput"
DENIED = Choice("deny", "not on a Sunday", "user:boss")


def asked(method: str, params: Line, item: Line | None = None) -> approvals.Asked:
    found = approvals.read(method, params, {"i1": item or {}})
    assert found is not None and not [one.mistake() for one in found.questions if one.mistake()]
    return found


def recorded_request() -> Line:
    return {**next(one["params"] for one in recorded(APPROVALS) if one["method"] == COMMAND)}


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
