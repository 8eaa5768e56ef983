"""What claude prints: recorded lines become live output, usage and results. Without the program."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.agents.providers.claude.output import Output, short_call
from hiboss.core.contracts.provider import Progress, Usage

# Lines of claude 2.1.325, shortened (cli-samples.md).
CALL = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 3000,
    "output_tokens": 1,
}


def init(**facts: Any) -> dict[str, Any]:
    return {
        "type": "system",
        "subtype": "init",
        "session_id": "e06ffcff",
        "model": "claude-opus-5-5",
        "capabilities": ["interrupt_cancel_queued_v1"],
        **facts,
    }


def event(kind: str, parent: str | None = None, **facts: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": kind, **facts}, "parent_tool_use_id": parent}


def begins(message: str = "msg_1", parent: str | None = None, **usage: int) -> dict[str, Any]:
    content = {"id": message, "model": "claude-opus-5-5", "content": [], "usage": {**CALL, **usage}}
    return event("message_start", parent, message=content)


def says(text: str, parent: str | None = None) -> dict[str, Any]:
    return event("content_block_delta", parent, delta={"type": "text_delta", "text": text})


def thinks(text: str) -> dict[str, Any]:
    return event("content_block_delta", delta={"type": "thinking_delta", "thinking": text})


def assistant(*content: dict[str, Any], message: str = "msg_1", **facts: Any) -> dict[str, Any]:
    return {
        "type": "assistant",
        "message": {"id": message, "model": "claude-opus-5-5", "content": list(content), "usage": CALL},
        "parent_tool_use_id": None,
        **facts,
    }


def result(text: str | None = "done", **facts: Any) -> dict[str, Any]:
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": text,
        "session_id": "e06ffcff",
        "total_cost_usd": 0.00124,
        "usage": {**CALL, "output_tokens": 7},
        "terminal_reason": "completed",
        **facts,
    }


def since_last(*costs: float, **tokens: int) -> dict[str, Any]:
    known = {
        "inputTokens": 100,
        "outputTokens": 7,
        "cacheReadInputTokens": 3000,
        "cacheCreationInputTokens": 20,
    }
    return {f"model-{n}": {**known, **tokens, "costUSD": cost} for n, cost in enumerate(costs)}


class Reader:
    """Reads lines, and keeps what was reported."""

    def __init__(self, *lines: Any) -> None:
        self.heard: list[Progress] = []
        self.output = Output(self.heard.append)
        for line in lines:
            self.output.take(line)

    def of(self, kind: str) -> list[str]:
        return [one.text for one in self.heard if one.kind == kind]

    @property
    def usage(self) -> Usage:
        return self.output.meter.now()


def test_words_and_thinking_are_shown_as_they_come() -> None:
    read = Reader(init(), begins(), thinks("hm hm"), says("hello "), says("boss"), result("hello boss"))
    assert read.of("delta") == ["hello ", "boss"]
    assert read.of("thinking") == ["hm hm"]
    assert read.of("model") == ["claude-opus-5-5"]
    assert read.output.session == "e06ffcff"
    assert [one.text for one in read.output.results] == ["hello boss"]


def test_a_text_after_a_tool_begins_a_paragraph() -> None:
    block = event("content_block_start", content_block={"type": "text", "text": ""})
    read = Reader(begins(), block, says("I look."), begins("msg_2"), block, says("It "), says("is there."))
    assert "".join(read.of("delta")) == "I look.\n\nIt is there."


def test_a_text_that_was_streamed_is_not_shown_again() -> None:
    whole = assistant({"type": "text", "text": "hello boss"})
    assert Reader(begins(), says("hello "), says("boss"), whole).of("delta") == ["hello ", "boss"]


def test_a_text_that_came_without_a_stream_is_shown_whole() -> None:
    whole = assistant({"type": "text", "text": "hello boss"}, message="msg_2")
    assert Reader(begins(), says("hel"), whole).of("delta") == ["hel", "\n\nhello boss"]


def test_tools_are_under_way_until_their_result_comes() -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "echo hi"}}
    said = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "hi"}
    read = Reader(assistant(use))
    assert read.output.tools == {"toolu_1"} and read.of("tool") == ["Bash echo hi"]
    read.output.take({"type": "user", "message": {"role": "user", "content": [said]}})
    assert not read.output.tools and read.of("tool_result") == ["hi"]


def test_a_long_tool_result_is_shortened() -> None:
    said = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "x" * 5000}]}
    (shown,) = Reader({"type": "user", "message": {"content": [said]}}).of("tool_result")
    assert len(shown) == 400 and shown.endswith("…")


@pytest.mark.parametrize(
    ("tool", "given", "shown"),
    [
        ("Bash", {"command": "git status\ngit diff", "description": "look"}, "Bash git status git diff"),
        ("Write", {"file_path": "/w/a.txt", "content": "x"}, "Write /w/a.txt"),
        ("mcp__x__go", {"n": 1}, 'mcp__x__go {"n": 1}'),
        ("EnterPlanMode", {}, "EnterPlanMode"),
    ],
)
def test_a_tool_call_is_shown_in_a_line(tool: str, given: dict[str, Any], shown: str) -> None:
    assert short_call(tool, given) == shown


def test_what_a_subagent_says_is_no_part_of_the_answer() -> None:
    read = Reader(begins(), says("mine"), begins("msg_9", "toolu_7", input_tokens=9), says("its", "toolu_7"))
    assert read.of("delta") == ["mine"]
    assert read.usage.tokens_in == 3120 + 3029
    assert read.usage.context == 3120  # of the main conversation


def test_usage_is_counted_while_it_runs_and_exact_at_the_end() -> None:
    read = Reader(begins())
    assert read.usage == Usage(3120, 1, None, 3120, exact=False)
    read.output.take({**event("message_delta", usage={"output_tokens": 7}), "api_message_id": "msg_1"})
    assert read.usage == Usage(3120, 7, None, 3120, exact=False)
    read.output.take(result(model_usage_since_last_result=since_last(0.00124)))
    assert read.usage == Usage(3120, 7, 0.00124, 3120, exact=True)
    assert read.heard[-1] == Progress("usage", usage=read.usage)


def test_the_cost_is_that_of_this_turn_and_not_of_the_session() -> None:
    read = Reader(
        result(total_cost_usd=1.5, model_usage_since_last_result=since_last(0.001)),
        result(total_cost_usd=1.53, model_usage_since_last_result=since_last(0.01, 0.02)),
    )
    assert read.usage.cost == pytest.approx(0.031)
    assert read.usage.tokens_in == 3120 + 2 * 3120  # of all models, also those that are not streamed


def test_an_older_version_says_only_the_total_cost_of_the_process() -> None:
    assert Reader(result(total_cost_usd=0.001), result(total_cost_usd=0.003)).usage.cost == 0.003


def test_a_result_that_was_cut_short_leaves_an_estimate() -> None:
    nothing = {"input_tokens": 0, "output_tokens": 0}
    read = Reader(begins(), says("lo"), result("lo", terminal_reason="aborted_streaming", usage=nothing))
    assert read.usage == Usage(3120, 1, 0.00124, 3120, exact=False)


def test_a_budget_that_is_reached_is_counted_by_models() -> None:
    nothing = {"input_tokens": 0, "output_tokens": 0}
    line = result(None, usage=nothing, model_usage_since_last_result=since_last(0.00342, inputTokens=300))
    assert Reader(line).usage == Usage(3320, 7, 0.00342, None, exact=True)


def test_an_api_error_is_kept_for_its_result_and_not_shown() -> None:
    said = assistant({"type": "text", "text": "API Error: Request rejected (429)"}, error="rate_limit")
    read = Reader(said, result("API Error: …", is_error=True, api_error_status=429), result("fine"))
    assert not read.of("delta")
    assert [(one.api_error, one.status, one.is_error) for one in read.output.results] == [
        ("rate_limit", 429, True),
        ("", None, False),
    ]


def test_messages_that_were_answered_are_known() -> None:
    replay = {"type": "user", "message": {"content": "hi"}, "uuid": "u-1", "isReplay": True}
    assert not Reader(replay).output.answered
    assert Reader(replay, result(user_message_uuids=["u-2", 7])).output.answered == {"u-2"}
    assert Reader(replay, result()).output.answered == {"u-1"}  # an older version does not say it


def test_a_stream_that_broke_leaves_an_estimate() -> None:
    wrote = {**event("message_delta", usage={"output_tokens": 7}), "api_message_id": "msg_2"}
    cut = Reader(begins(), says("lo"), event("message_stop"), begins("msg_2"), wrote, result())
    assert not cut.usage.exact
    retry = {"type": "system", "subtype": "api_retry", "error": "unknown", "error_status": None}
    assert not Reader(retry, begins("msg_2"), wrote, result()).usage.exact
    refused = {**retry, "error": "rate_limit", "error_status": 429}  # nothing was read
    assert Reader(refused, begins("msg_2"), wrote, result()).usage.exact


def test_the_time_of_a_usage_limit_is_kept() -> None:
    info = {"status": "rejected", "resetsAt": 1794946215, "rateLimitType": "five_hour"}
    allowed = {"status": "allowed_warning", "resetsAt": 1}
    lines = [{"type": "rate_limit_event", "rate_limit_info": one} for one in (info, allowed)]
    assert Reader(*lines).output.limit_resets_at == 1794946215


def test_tasks_in_the_background_are_counted() -> None:
    changed = {"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "b"}]}
    read = Reader(changed)
    assert read.output.background == 1
    read.output.take({**changed, "tasks": []})
    assert read.output.background == 0


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"type": 7},
        {"type": "nobody_knows"},
        {"type": "assistant", "message": "text"},
        {"type": "assistant", "message": {"content": [None, 7, {"type": "tool_use", "input": []}]}},
        {"type": "user", "message": {"content": [None, {"type": "tool_result", "content": [None, 7]}]}},
        {"type": "stream_event", "event": None},
        {"type": "stream_event", "event": {"type": "message_start", "message": {"usage": "much"}}},
        {"type": "result", "usage": None, "model_usage_since_last_result": {"m": 7}, "errors": "no"},
        {"type": "result", "usage": {"input_tokens": -3, "output_tokens": True}, "total_cost_usd": "1"},
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": "soon"}},
        {"type": "system", "subtype": "init", "session_id": 7, "capabilities": 3, "model": None},
    ],
)
def test_a_line_that_makes_no_sense_is_no_failure(line: dict[str, Any]) -> None:
    read = Reader(line, result("fine"))
    assert read.output.results[-1].text == "fine"
    assert not read.output.results[-1].is_error
