"""What errors of codex mean. The errors are recorded ones (cli-samples.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hiboss.agents.child_process import ProcessResult
from hiboss.agents.providers.codex import failures
from hiboss.agents.providers.codex.settings import CodexSettings
from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError

NOW = 1_794_824_196_000
LIMIT = (
    "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "
    "https://chatgpt.com/settings/usage to purchase more credits or try again at {}."
)


def failure(message: str, info: Any = "other", *, resumed: bool = True) -> LaneError | TurnError:
    return failures.of_turn({"message": message, "codexErrorInfo": info}, "kai", resumed=resumed, now=NOW)


def status(name: str, code: int | None) -> dict[str, Any]:
    return {name: {"httpStatusCode": code}}


@pytest.mark.parametrize(
    ("message", "info", "kind"),
    [
        (
            "exceeded retry limit, last status: 429",
            status("responseTooManyFailedAttempts", 429),
            "rate_limited",
        ),
        (
            "exceeded retry limit, last status: 500",
            status("responseTooManyFailedAttempts", 500),
            "overloaded",
        ),
        ("rate limit exceeded: scripted", "rateLimitExceeded", "rate_limited"),
        ("Quota exceeded. Check your plan and billing details.", "usageLimitExceeded", "usage_limit"),
        ("To use Codex with your ChatGPT plan, upgrade to Plus", "other", "usage_limit"),
        ("We’re currently experiencing high demand", "internalServerError", "overloaded"),
        ("Selected model is at capacity.", "serverOverloaded", "overloaded"),
        ("unexpected status 503 Service Unavailable", status("httpConnectionFailed", 503), "overloaded"),
        ("unexpected status 529", status("httpConnectionFailed", 529), "overloaded"),
        ("unexpected status 401 Unauthorized", status("httpConnectionFailed", 401), "refused"),
        ("unexpected status 403 Forbidden", status("httpConnectionFailed", 403), "refused"),
        ("no", "unauthorized", "refused"),
        (
            "unexpected status 404: The model `x` does not exist",
            status("httpConnectionFailed", 404),
            "no_model",
        ),
        ("no such model", "modelNotFound", "no_model"),
        (
            "unexpected status 404 Not Found, url: http://x",
            status("httpConnectionFailed", 404),
            "unreachable",
        ),
        ("Connection failed: error sending request", status("httpConnectionFailed", None), "unreachable"),
        ("stream disconnected before completion: Transport error", "other", "unreachable"),
        ("cut", status("responseStreamDisconnected", None), "unreachable"),
        ("Missing environment variable: `FAKE_KEY`.", "other", "not_logged_in"),
    ],
)
def test_what_stops_every_turn_is_of_the_lane(message: str, info: Any, kind: str) -> None:
    error = failure(message, info)
    assert isinstance(error, LaneError) and error.kind == kind
    assert message.rstrip(".") in error.text


@pytest.mark.parametrize(
    ("message", "info", "kind"),
    [
        ('{"error": {"message": "scripted 400", "type": "invalid_request_error"}}', "other", "rejected"),
        ("bad", "badRequest", "rejected"),
        ("too large", status("httpConnectionFailed", 413), "rejected"),
        ("Incomplete response returned, reason: max_output_tokens", "other", "rejected"),
        ("a policy", "cyberPolicy", "rejected"),
        ("denied too often", "tooManyDenials", "denied"),
        ("something new", "somethingNew", "rejected"),
        ("no code at all", None, "rejected"),
    ],
)
def test_what_is_about_this_turn_is_of_the_turn(message: str, info: Any, kind: str) -> None:
    error = failure(message, info)
    assert type(error) is TurnError and error.kind == kind and error.repeat


def test_the_message_inside_an_error_is_shown() -> None:
    inner = '{"error": {"message": "the request is odd", "type": "invalid_request_error", "code": null}}'
    assert failure(inner).text == "the request is odd"
    assert failure('{"detail": "no such thing"}').text == "no such thing"
    assert failure('{"error": {"message": 5}} and more').text == '{"error": {"message": 5}} and more'


def test_the_texts_name_what_helps() -> None:
    assert "codex login" in str(failure("401", "unauthorized"))
    assert "hiboss agent set kai --model" in str(failure("no such model", "modelNotFound"))
    assert "npm install" in str(failures.no_program("codex"))
    assert "npm install" in str(failures.outdated("0.1.0", "0.166.0"))
    assert "codex login" in str(failures.not_logged_in())


@pytest.mark.parametrize(
    ("settings", "of_openai", "words"),
    [
        ({}, True, "codex login"),
        ({"api_key": "sk-1"}, True, "hiboss agent set kai --api-key @FILE"),
        ({"arguments": "-c 'model_providers.x={env_key=\"KEY_OF_X\"}'"}, False, "KEY_OF_X"),
        ({"arguments": "-c model_providers.x.env_key=KEY_OF_X", "api_key": "sk-1"}, False, "KEY_OF_X"),
        ({}, False, "env_key"),
    ],
)
def test_a_refused_account_is_told_which_key_it_was(
    settings: dict[str, Any], of_openai: bool, words: str
) -> None:
    login = failures.login(CodexSettings(**settings), "kai", of_openai=of_openai)
    error = {"message": "no", "codexErrorInfo": "unauthorized"}
    assert words in str(failures.of_turn(error, "kai", resumed=True, now=NOW, login=login))


def test_a_full_context_loses_the_session_and_a_new_one_fails() -> None:
    assert isinstance(failure("full", "contextWindowExceeded"), SessionLost)
    fresh = failure("full", "contextWindowExceeded", resumed=False)
    assert type(fresh) is TurnError and fresh.kind == "too_long"


def test_a_budget_of_codex_itself_is_not_tried_again() -> None:
    error = failure("spent", "sessionBudgetExceeded")
    assert isinstance(error, TurnError) and error.kind == "over_budget" and not error.repeat


@pytest.mark.parametrize("ahead", [timedelta(minutes=10), timedelta(hours=5), timedelta(hours=23)])
def test_a_named_time_of_day_says_when_to_try_again(ahead: timedelta) -> None:
    here = datetime.fromtimestamp(NOW / 1000, UTC).astimezone()
    error = failure(LIMIT.format((here + ahead).strftime("%-I:%M %p")), "usageLimitExceeded")
    assert isinstance(error, LaneError) and error.retry_after is not None
    assert ahead.total_seconds() - 60 < error.retry_after <= ahead.total_seconds()


def test_a_named_day_says_when_to_try_again() -> None:
    here = datetime.fromtimestamp(NOW / 1000, UTC).astimezone()
    then = here + timedelta(days=3)
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(then.day % 10 if then.day not in (11, 12, 13) else 0, "th")
    named = then.strftime(f"%b {then.day}{suffix}, %Y %-I:%M %p")
    error = failure(LIMIT.format(named), "usageLimitExceeded")
    assert isinstance(error, LaneError) and error.retry_after is not None
    assert 3 * 86_400 - 60 < error.retry_after <= 3 * 86_400


@pytest.mark.parametrize(
    ("span", "seconds"),
    [("3 days 4 hours 5 minutes", 273_900.0), ("20s", 20.0), ("1.5s", 1.5), ("250ms", 0.25), ("soon", None)],
)
def test_a_named_span_says_when_to_try_again(span: str, seconds: float | None) -> None:
    error = failure(f"Rate limit reached. Please try again in {span}.", "rateLimitExceeded")
    assert isinstance(error, LaneError) and error.retry_after == seconds


def test_no_time_is_read_from_an_error_that_is_about_something_else() -> None:
    error = failure("Missing environment variable: try again at 11:16 AM")
    assert isinstance(error, LaneError) and error.retry_after is None


@pytest.mark.parametrize(
    "said",
    [
        "no rollout found for thread id 01a1e3db-bfae-7823-bac7-e23daa0bd8b5",
        "invalid session id: invalid character",
        "thread not found: 01a1e3db",
        "failed to load rollout /x/y.jsonl: it is empty",
    ],
)
def test_a_thread_that_cannot_be_resumed_is_lost(said: str) -> None:
    assert isinstance(failures.of_thread(said, "01a1e3db"), SessionLost)
    new = failures.of_thread(said, None)
    assert isinstance(new, LaneError) and new.kind == "bad_arguments"


def exited(status: int, stderr: str, *, began: bool = False) -> LaneError | TurnError:
    return failures.of_exit(
        ProcessResult(status=status, stderr_tail=stderr, too_much_output=False), began=began
    )


def test_a_program_that_does_not_start_says_why() -> None:
    warning = "WARNING: proceeding, even though we could not create PATH aliases\n"
    wrong = exited(2, f"{warning}error: unexpected argument '--nonsense' found\n\nUsage: codex app-server")
    assert isinstance(wrong, LaneError) and wrong.kind == "bad_arguments" and "--nonsense" in wrong.text
    home = exited(
        1, f'{warning}Error: CODEX_HOME points to "/no", but that path does not exist\n\nStack backtrace:'
    )
    assert isinstance(home, LaneError) and home.kind == "not_logged_in" and "/no" in home.text


def test_a_program_that_ends_in_its_turn_fails_the_turn() -> None:
    for error in (exited(-9, ""), exited(0, ""), exited(1, "Error: a panic", began=True)):
        assert type(error) is TurnError and error.kind == "no_result"
    assert "signal 9" in exited(-9, "").text
