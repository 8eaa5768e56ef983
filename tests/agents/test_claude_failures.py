"""What errors of claude mean: each row of the table, with the lines of claude 2.1.326. Without the program."""

from __future__ import annotations

from typing import Any

import pytest

from hiboss.agents.child_process import ProcessResult
from hiboss.agents.providers.claude.failures import Circumstances, is_in_use, of_result, without_result
from hiboss.agents.providers.claude.output import Result
from hiboss.agents.providers.claude.settings import ClaudeSettings
from hiboss.core import clock
from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError


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
    assert isinstance(error, TurnError) and error.kind == kind
    assert error.repeat == (kind != "over_budget")


@pytest.mark.parametrize(("most", "words"), [(1, "in 1 model call ("), (3, "in 3 model calls (")])
def test_a_limit_is_named_with_its_figure(most: int, words: str) -> None:
    assert words in str(of_result(other("error_max_turns", "x"), about(max_turns=most)))
    error = str(of_result(other("error_max_budget_usd", "x"), about(max_cost=0.5)))
    assert "$0.5 for one run; hiboss agent set nex --max-cost 1" in error


def test_a_usage_limit_waits_until_its_time() -> None:
    resets_at = clock.now() / 1000 + 7200
    error = of_result(api("You've hit your limit", "rate_limit", 429), about(resets_at=resets_at))
    assert isinstance(error, LaneError) and error.kind == "usage_limit"
    assert error.retry_after is not None and 7100 < error.retry_after <= 7200


def test_the_time_of_a_usage_limit_is_read_from_the_text_of_an_older_version() -> None:
    said = f"Claude AI usage limit reached|{int(clock.now() / 1000) + 600}"
    error = of_result(api(said, "rate_limit", 429), about())
    assert isinstance(error, LaneError) and error.retry_after is not None and 500 < error.retry_after <= 600


@pytest.mark.parametrize("ahead", [-100.0, 30 * 24 * 3600.0])
def test_a_usage_limit_never_waits_for_more_than_a_day(ahead: float) -> None:
    resets_at = clock.now() / 1000 + ahead
    error = of_result(api("You've hit your limit", "rate_limit", 429), about(resets_at=resets_at))
    assert isinstance(error, LaneError) and error.retry_after is not None
    assert 1 <= error.retry_after <= 24 * 3600


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
    assert isinstance(error, LaneError) and error.text.endswith(helps)
    assert "canary" not in error.text


def test_a_session_that_is_unknown_or_full_is_lost() -> None:
    unknown = other("error_during_execution", "No conversation found with session ID: 8925")
    assert isinstance(of_result(unknown, about(resumed=True)), SessionLost)
    no_uuid = other("error_during_execution", "Error: --resume requires a valid session ID or session title")
    assert isinstance(of_result(no_uuid, about(resumed=True)), SessionLost)
    directory = other("error_during_execution", "Failed to resume session: EISDIR: illegal operation, read")
    assert isinstance(of_result(directory, about(resumed=True)), SessionLost)
    full = api("Prompt is too long", "invalid_request", 400, terminal_reason="prompt_too_long")
    assert isinstance(of_result(full, about(resumed=True)), SessionLost)


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
