"""What claude prints: recorded lines become live output, usage, results and errors. Without the program."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.agents.child_process import ProcessResult
from hiboss.agents.providers.claude.failures import Circumstances, is_in_use, of_result, without_result
from hiboss.agents.providers.claude.output import Output, Result, short_call
from hiboss.agents.providers.claude.settings import ClaudeSettings
from hiboss.core import clock
from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError
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
    assert read.of("delta") == ["hello ", "boss"] and read.of("thinking") == ["hm hm"]
    assert read.of("model") == ["claude-opus-5-5"] and read.output.session == "e06ffcff"
    assert [one.text for one in read.output.results] == ["hello boss"]


BLOCK = event("content_block_start", content_block={"type": "text", "text": ""})
WHOLE = {"type": "text", "text": "hello boss"}


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (
            [begins(), BLOCK, says("I look."), begins("msg_2"), BLOCK, says("It "), says("is there.")],
            ["I look.", "\n\nIt ", "is there."],
        ),
        ([begins(), says("hello "), says("boss"), assistant(WHOLE)], ["hello ", "boss"]),
        ([begins(), says("hel"), assistant(WHOLE, message="msg_2")], ["hel", "\n\nhello boss"]),
    ],
    ids=["after a tool a paragraph begins", "streamed and not again", "whole without a stream"],
)
def test_a_text_is_shown_once(lines: list[dict[str, Any]], shown: list[str]) -> None:
    assert Reader(*lines).of("delta") == shown


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
    assert read.of("delta") == ["mine"] and read.usage.tokens_in == 3120 + 3029
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
    assert read.output.results[-1].text == "fine" and not read.output.results[-1].is_error


# --- errors, with the lines of claude 2.1.326 -----------------------------------------


def about(resumed: bool = False, resets_at: float | None = None, **settings: Any) -> Circumstances:
    environment = settings.pop("environment", {})
    return Circumstances(
        agent="nex",
        settings=ClaudeSettings(**settings),
        environment=environment,
        resumed=resumed,
        limit_resets_at=resets_at,
    )


def api(text: str, error: str, status: int | None, **facts: Any) -> Result:
    line = {"subtype": "success", "is_error": True, "result": text, "api_error_status": status, **facts}
    return Result(line=line, api_error=error)


def other(subtype: str, *errors: str, **facts: Any) -> Result:
    return Result(line={"subtype": subtype, "is_error": True, "errors": list(errors), **facts})


REFUSED = "Invalid API key · Fix external API key"
LANE = [
    (api("Not logged in · Please run /login", "authentication_failed", None), "not_logged_in", "auth login"),
    (api(REFUSED, "authentication_failed", 401), "refused", "claude auth login"),
    (api("Failed to authenticate. API Error: 403", "authentication_failed", 403), "refused", "auth login"),
    (api("Credit balance is too low", "billing_error", 400), "usage_limit", "claude auth login"),
    (api("API Error: Request rejected (429)", "rate_limit", 429), "rate_limited", "429"),
    (api("You've hit your 5-hour limit · resets 8pm", "rate_limit", 429), "usage_limit", "8pm"),
    (api("Repeated 529 Overloaded errors", "server_error", 529), "overloaded", "529"),
    (api("Repeated 529 Overloaded errors", "server_error", None), "overloaded", "529"),
    (api("API Error: 500 boom", "server_error", 500), "overloaded", "500"),
    (
        api("Connection refused", "server_error", None, api_error="connection_failed"),
        "unreachable",
        "Connection refused",
    ),
    (api("API Error: Connection error.", "server_error", None), "unreachable", "Connection error"),
    (api("There's an issue with the selected model", "model_not_found", 404), "no_model", "agent set nex"),
]
TURN = [
    (api("API Error: 400 bad thing", "unknown", 400), "rejected"),
    (api("Request too large (max 32MB)", "invalid_request", 413), "rejected"),
    (api("safeguards flagged this message", "invalid_request", None), "rejected"),
    (
        api("Prompt is too long · …", "invalid_request", 400, terminal_reason="prompt_too_long"),
        "too_long",
    ),
    (other("error_max_turns", "Reached maximum number of turns (3)"), "max_turns"),
    (other("error_max_budget_usd", "Reached maximum budget ($0.5)"), "over_budget"),
    (other("error_during_execution", "[ede_diagnostic]", terminal_reason="aborted_tools"), "interrupted"),
    (other("error_nobody_knows", "what"), "failed"),
]


@pytest.mark.parametrize(
    ("result", "kind", "words"), LANE, ids=[f"{one[1]}-{n}" for n, one in enumerate(LANE)]
)
def test_what_stops_every_turn_is_a_lane_error(result: Result, kind: str, words: str) -> None:
    error = of_result(result, about())
    assert isinstance(error, LaneError) and error.kind == kind and words in error.text


@pytest.mark.parametrize(("result", "kind"), TURN, ids=[f"{one[1]}-{n}" for n, one in enumerate(TURN)])
def test_what_stops_this_turn_is_a_turn_error(result: Result, kind: str) -> None:
    error = of_result(result, about(max_turns=3, max_cost=0.5))
    assert isinstance(error, TurnError) and error.kind == kind and error.repeat == (kind != "over_budget")


@pytest.mark.parametrize(("most", "words"), [(1, "in 1 model call ("), (3, "in 3 model calls (")])
def test_a_limit_is_named_with_its_figure(most: int, words: str) -> None:
    assert words in str(of_result(other("error_max_turns", "x"), about(max_turns=most)))
    error = str(of_result(other("error_max_budget_usd", "x"), about(max_cost=0.5)))
    assert "$0.5 for one run; hiboss agent set nex --max-cost 1" in error


@pytest.mark.parametrize(
    ("said", "ahead", "least", "most"),
    [
        ("You've hit your limit", 7200.0, 7100, 7200),
        ("Claude AI usage limit reached|{}", None, 500, 600),
        ("You've hit your limit", -100.0, 1, 24 * 3600),
        ("You've hit your limit", 30 * 24 * 3600.0, 1, 24 * 3600),
    ],
    ids=["until its time", "in the text of an older version", "of the past", "no more than a day"],
)
def test_a_usage_limit_waits_until_its_time(said: str, ahead: float | None, least: int, most: int) -> None:
    now = clock.now() / 1000
    resets_at = None if ahead is None else now + ahead
    error = of_result(api(said.format(int(now) + 600), "rate_limit", 429), about(resets_at=resets_at))
    assert isinstance(error, LaneError) and error.kind == "usage_limit"
    assert error.retry_after is not None and least <= error.retry_after <= most


@pytest.mark.parametrize(
    ("settings", "helps"),
    [
        ({}, "claude auth login"),
        ({"api_key": "sk-ant-canary"}, "hiboss agent set nex --api-key @FILE"),
        ({"environment": {"ANTHROPIC_API_KEY": "sk-ant-canary"}}, "hiboss agent set nex --api-key @FILE"),
        ({"environment": {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-canary"}}, "claude setup-token"),
    ],
)
def test_a_refused_account_names_the_command_that_helps(settings: dict[str, Any], helps: str) -> None:
    error = of_result(api(REFUSED, "authentication_failed", 401), about(**settings))
    assert isinstance(error, LaneError) and error.text.endswith(helps) and "canary" not in error.text


@pytest.mark.parametrize(
    "result",
    [
        other("error_during_execution", "No conversation found with session ID: 8925"),
        other("error_during_execution", "Error: --resume requires a valid session ID or session title"),
        other("error_during_execution", "Failed to resume session: EISDIR: illegal operation, read"),
        api("Prompt is too long", "invalid_request", 400, terminal_reason="prompt_too_long"),
    ],
    ids=["unknown", "no UUID", "a directory", "full"],
)
def test_a_session_that_is_unknown_or_full_is_lost(result: Result) -> None:
    assert isinstance(of_result(result, about(resumed=True)), SessionLost)


def ended(stderr: str, status: int = 1) -> ProcessResult:
    return ProcessResult(status=status, stderr_tail=stderr, too_much_output=False)


@pytest.mark.parametrize(
    ("stderr", "kind", "words"),
    [
        ("error: unknown option '--append-system-prompt-file'", "outdated", "claude update"),
        ("error: unknown option '--nonsense'", "bad_arguments", "agent set nex --arguments"),
        ("--dangerously-skip-permissions cannot be used with root/sudo privileges", "bad_arguments", "root"),
        ("It looks like your version of Claude Code (1.0.2) needs an update", "outdated", "claude update"),
        ("env: 'node': No such file or directory", "no_start", "node"),
        ("", "no_start", "said nothing"),
    ],
)
def test_a_program_that_does_not_begin_is_a_lane_error(stderr: str, kind: str, words: str) -> None:
    error = without_result(ended(stderr), about(arguments="--nonsense"), had_begun=False)
    assert isinstance(error, LaneError) and error.kind == kind and words in error.text


def test_a_program_that_is_killed_fails_the_turn() -> None:
    error = without_result(ended("", -9), about(), had_begun=True)
    assert isinstance(error, TurnError) and error.kind == "no_result" and "signal 9" in error.text


def test_a_session_that_exists_already_is_recognised() -> None:
    assert is_in_use(ended("Error: Session ID 24174916-b590 is already in use."))
    assert not is_in_use(ended("Error: Invalid session ID. Must be a valid UUID."))


def test_a_long_error_is_shortened() -> None:
    error = of_result(api("bad " * 1000, "unknown", 400), about())
    assert isinstance(error, TurnError) and len(error.text) < 600
