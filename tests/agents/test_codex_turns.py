"""What codex reports about a turn: recorded lines become live output, tokens and an answer. Without the program."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.agents.providers.codex import items
from hiboss.agents.providers.codex.turn_events import TurnEvents
from hiboss.core.contracts.provider import Progress, Usage
from tests.agents.codex_recorded import FIRST, THREAD, WITH_TOOL, Line, error_line, recorded, turn_of


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
    assert heard.texts("delta") == ["hello ", "dear ", "boss"]
    assert heard.texts("thinking") == ["hm"]
    assert heard.events.answer == "hello dear boss"
    assert heard.events.ended is not None and heard.events.ended["status"] == "completed"
    assert heard.events.tokens.usage(exact=True) == Usage(3120, 7, None, 3120, exact=True)


def test_the_tokens_of_a_resumed_thread_are_those_of_this_turn() -> None:
    lines = recorded(WITH_TOOL)
    before = usage_line(6240, turn="an-earlier-turn", written=14)
    heard = Heard(before, *lines, turn=turn_of(lines), is_new=False)
    assert heard.events.tokens.usage() == Usage(12480 - 6240, 28 - 14, None, 3120)
    assert heard.texts("tool") == ["sleep 2; echo done"]
    assert heard.texts("tool_result") == ["done"]
    assert heard.events.answer == "steered"


def test_a_total_that_is_repeated_counts_nothing() -> None:
    heard = Heard(usage_line(6240, turn="t0"), usage_line(6240), usage_line(6240), turn="t1", is_new=False)
    assert heard.events.tokens.usage() == Usage(0, 0, None, 3120)


def test_without_an_announcement_the_first_call_of_a_copy_is_taken_off() -> None:
    answered = Heard(begun("agentMessage"), usage_line(9360, written=21), turn="t1", is_new=False)
    assert answered.events.tokens.usage() == Usage(3120, 7, None, 3120)
    repeated = Heard(usage_line(9360), usage_line(12480, written=14), turn="t1", is_new=False)
    assert repeated.events.tokens.usage() == Usage(3120, 7, None, 3120)


def test_sums_that_begin_anew_after_a_full_context_are_not_negative() -> None:
    heard = Heard(usage_line(9360, turn="t0", written=70), usage_line(3120), turn="t1", is_new=False)
    assert heard.events.tokens.usage() == Usage(3120, 7, None, 3120)


def test_after_a_summary_the_context_is_what_codex_estimates() -> None:
    summarized = usage_line(6240, turn="t1")
    summarized["params"]["tokenUsage"]["last"] = {"totalTokens": 12150, "inputTokens": 0, "outputTokens": 0}
    heard = Heard(usage_line(3120), summarized, turn="t1")
    assert heard.events.tokens.usage() == Usage(6240, 7, None, 12150)


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
    assert Heard(message("I look first."), work).events.answer == "I look first."


WORDS = begun("userMessage")


@pytest.mark.parametrize("phase", [None, "final_answer"])
def test_an_answer_that_was_whole_when_somebody_spoke_stays(phase: str | None) -> None:
    first, second = message("The whole first.", "m1", phase), message("The second.", "m2", phase)
    work = begun("commandExecution", command="ls")
    remark = message("I look once more.", "m3", "commentary" if phase else None)
    heard = Heard(first, WORDS, remark, work, second)
    assert heard.events.answer == "The whole first.\n\nThe second."


def test_a_text_that_words_cut_is_no_answer_and_a_repeated_one_counts_once() -> None:
    part = {"threadId": THREAD, "itemId": "m1", "delta": "A long st"}
    cut = [begun("agentMessage"), {"method": "item/agentMessage/delta", "params": part}]
    assert Heard(*cut, WORDS, message("as you say", "m2")).events.answer == "as you say"
    again = Heard(message("done", "m1"), WORDS, message("done", "m2"))
    assert again.events.answer == "done"


def test_the_answer_is_read_from_the_end_of_the_turn_if_no_message_was_heard() -> None:
    items = [{"type": "userMessage"}, {"type": "agentMessage", "text": "one"}, {"type": "userMessage"}]
    turn = {"id": "t1", "status": "completed", "items": [*items, {"type": "agentMessage", "text": "two"}]}
    ended = {"method": "turn/completed", "params": {"threadId": THREAD, "turn": turn}}
    assert Heard(ended, turn="t1").events.answer == "one\n\ntwo"


def test_a_remark_after_the_answer_is_not_the_answer() -> None:
    heard = Heard(message("42", "m1", "final_answer"), message("(done)", "m2", "commentary"))
    assert heard.events.answer == "42"
    assert Heard(message("so far", "m1", "commentary")).events.answer == "so far"


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
    again = error_line("Reconnecting... 2/5", retried=True)
    heard = Heard(waiting, again, waiting)
    assert (heard.events.waits, heard.events.retries) == (2, 3)
    delta = {"threadId": THREAD, "itemId": "m1", "delta": "back"}
    heard.events.take("item/agentMessage/delta", delta)
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
