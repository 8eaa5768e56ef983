"""The provider with a stand-in of codex: settings, first steps, programs that do not behave, and what errors mean."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hiboss.agents.child_process import ProcessResult
from hiboss.agents.providers.codex import arguments, conversation, failures
from hiboss.agents.providers.codex.provider import Codex
from hiboss.agents.providers.codex.settings import CodexSettings
from hiboss.core.contracts.failures import LaneError, Refused, SessionLost, TurnError
from hiboss.core.contracts.provider import Answer
from hiboss.core.option_models import validate
from hiboss.testing.recorded_run import RecordedRun
from tests.agents.codex_recorded import FIRST, THREAD, WITH_TOOL, StandIn, error_line, recorded, turn_of
from tests.support.raising import raised
from tests.support.sweeps import sweep

WAITING = error_line(
    "Reconnecting... waiting for network",
    {"responseStreamDisconnected": {"httpStatusCode": None}},
    retried=True,
)


@pytest.fixture
def codex(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


def taken(
    codex: StandIn, run: RecordedRun | None = None, *, given: dict[str, Any] | None = None, **settings: Any
) -> Answer:
    """Take a turn and return its answer."""
    return asyncio.run((run or RecordedRun()).give(codex.make(**settings), codex.turn(**(given or {}))))


# --- settings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"model": ""},
        {"effort": "  "},
        {"autonomy": "total"},
        {"max_tokens": 0},
        {"program": "bin/codex"},
        {"program": "--codex"},
        {"arguments": "'unclosed"},
        {"arguments": "exec"},
        {"arguments": "--listen ws://0.0.0.0:1"},
        {"arguments": "-c x=1 -- more"},
        {"api_key": " "},
        {"max_cost": 1},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any]) -> None:
    raised(Refused, validate, Codex.Settings, settings, "codex")


@pytest.mark.parametrize(
    ("autonomy", "sandbox", "approvals"),
    [
        ("low", "read-only", "on-request"),
        ("medium", "workspace-write", "on-request"),
        ("high", "danger-full-access", "never"),
    ],
)
def test_autonomy_is_a_sandbox_and_when_it_asks(autonomy: Any, sandbox: str, approvals: str) -> None:
    told = arguments.thread(Codex.Settings(autonomy=autonomy), "/w", "")
    assert (told["sandbox"], told["approvalPolicy"]) == (sandbox, approvals)


def test_what_hiboss_needs_comes_after_the_arguments_of_the_boss() -> None:
    called = arguments.arguments(
        "/bin/codex", Codex.Settings(arguments="-c allow_login_shell=true -c 'x=\"a b\"'")
    )
    assert called[:6] == ["/bin/codex", "app-server", "-c", "allow_login_shell=true", "-c", 'x="a b"']
    assert called[6:8] == ["-c", "allow_login_shell=false"]


# --- the steps --------------------------------------------------------------------------


def test_a_turn_begins_with_its_instructions_its_text_and_its_effort(codex: StandIn) -> None:
    run = RecordedRun()
    answer = taken(codex, run, given={"instructions": "You are kai."}, model="gpt-5.5", effort="high")
    assert answer.text == "hello dear boss" and answer.cost is None and answer.note is None
    assert run.sessions == [THREAD] and len(run.pids) == 1
    (begun,) = codex.got("thread/start")
    assert (
        begun["params"]["developerInstructions"] == "You are kai." and begun["params"]["model"] == "gpt-5.5"
    )
    (turn,) = codex.got("turn/start")
    assert turn["params"]["input"] == [{"type": "text", "text": codex.turn().text}]
    assert turn["params"]["effort"] == "high" and turn["params"]["threadId"] == THREAD
    assert [one["method"] for one in codex.got()][:2] == ["initialize", "initialized"]
    assert "jsonrpc" not in begun


def test_who_is_not_logged_in_begins_no_thread(codex: StandIn) -> None:
    codex.plan["account/read"] = [{"result": {"account": None, "requiresOpenaiAuth": True}}]
    error = raised(LaneError, taken, codex)
    assert error.kind == "not_logged_in" and "codex login" in error.text
    assert not codex.got("thread/start")


def test_a_model_provider_without_a_login_needs_none(codex: StandIn) -> None:
    codex.plan["account/read"] = [{"result": {"account": None, "requiresOpenaiAuth": False}}]
    assert taken(codex).text == "hello dear boss"


def test_a_thread_that_cannot_be_copied_is_lost(codex: StandIn) -> None:
    codex.plan["thread/resume"] = [
        {"error": {"code": -32600, "message": f"{THREAD} already has an active writer"}}
    ]
    codex.plan["thread/fork"] = [{"error": {"code": -32600, "message": "Invalid request: unknown variant"}}]
    raised(SessionLost, taken, codex, says="open in another program", given={"session": THREAD})


@pytest.mark.parametrize("step", ["initialize", "thread/start", "turn/start"])
def test_an_answer_of_another_form_stops_the_lane(codex: StandIn, step: str) -> None:
    codex.plan[step] = [
        {"error": {"code": 1, "message": "what?"}} if step == "initialize" else {"result": {}}
    ]
    error = raised(LaneError, taken, codex)
    assert error.kind == "outdated" and "npm install" in error.text


def test_an_old_version_stops_the_lane(tmp_path: Path) -> None:
    codex = StandIn(tmp_path, version="0.99.1")
    error = raised(LaneError, taken, codex)
    assert error.kind == "outdated" and "0.99.1" in error.text
    finding = asyncio.run(codex.make().find(codex.turn().environment, str(codex.workspace)))
    assert finding is not None and "0.99.1" in finding.found and finding.help.endswith("@latest")
    assert "npm" not in finding.problem


def test_a_program_without_a_version_has_a_problem(tmp_path: Path) -> None:
    codex = StandIn(tmp_path, version="of my own")
    finding = asyncio.run(codex.make().find(codex.turn().environment, str(codex.workspace)))
    assert finding is not None and finding.problem == "it does not say its version"
    assert finding.help == f"{codex.program} --version"


def test_a_home_where_its_sandbox_does_not_work_with_bubblewrap_is_a_problem(codex: StandIn) -> None:
    (codex.directory / "bin").mkdir()
    (codex.directory / "bin" / "bwrap").symlink_to("/bin/true")
    boxed, unboxed = str(codex.directory / "bin"), "/nowhere"
    helps = 'CODEX_HOME="$HOME/.codex" hiboss daemon restart'
    cases = (
        ({"CODEX_HOME": "/tmp", "PATH": boxed}, "below /tmp", helps),
        ({"CODEX_HOME": "/dev", "PATH": boxed}, "below /dev", helps),
        ({"CODEX_HOME": "/usr/bin", "TMPDIR": "/usr", "PATH": boxed}, "below /usr", helps),
        ({"HOME": "/tmp/ada", "PATH": boxed}, "is /tmp/ada/.codex", ""),  # its usual home is no better
        ({"CODEX_HOME": "/usr", "PATH": boxed}, "", ""),
        ({"CODEX_HOME": "/tmp", "PATH": unboxed}, "", ""),
    )
    with sweep() as row:
        for environment, problem, help_ in cases:
            with row(environment):
                given = {"HOME": "/home/ada", **environment}
                finding = asyncio.run(codex.make(api_key="sk-1").find(given, str(codex.workspace)))
                assert finding is not None and finding.found.endswith("with the key of the agent")
                assert problem in finding.problem and bool(problem) == bool(finding.problem)
                assert finding.help == help_
    free = asyncio.run(codex.make(api_key="sk-1", autonomy="high").find(cases[0][0], str(codex.workspace)))
    assert free is not None and not free.problem


def test_a_missing_workspace_stops_the_lane(codex: StandIn) -> None:
    error = raised(LaneError, taken, codex, given={"workspace": str(codex.directory / "nowhere")})
    assert error.kind == "no_workspace" and not codex.got()
    error = raised(LaneError, taken, codex, given={"workspace": str(codex.program)})
    assert error.kind == "no_workspace" and error.text.endswith("is not a directory")


# --- programs that do not behave --------------------------------------------------------


def test_a_program_that_only_waits_for_the_network_is_ended(codex: StandIn) -> None:
    codex.plan["turn/start"] = [{"result": {"turn": {"id": turn_of(recorded(FIRST))}}}, WAITING, WAITING]
    assert raised(LaneError, taken, codex).kind == "unreachable"


def test_a_turn_that_did_something_waits_longer_for_the_network(codex: StandIn) -> None:
    turn = recorded(FIRST)
    waits = [WAITING] * (conversation.MOST_WAITS_LATER - 1)
    codex.plan["turn/start"] = [{"result": {"turn": {"id": turn_of(turn)}}}, *turn[:-1], *waits, turn[-1]]
    assert taken(codex).text == "hello dear boss"


def test_a_program_that_tries_again_and_again_is_ended(codex: StandIn) -> None:
    turn = recorded(FIRST)
    again = error_line(
        "Reconnecting... 1/5", {"responseTooManyFailedAttempts": {"httpStatusCode": 500}}, retried=True
    )
    codex.plan["turn/start"] = [
        {"result": {"turn": {"id": turn_of(turn)}}},
        *[again] * conversation.MOST_RETRIES,
    ]
    assert raised(LaneError, taken, codex).kind == "overloaded"


def test_a_request_that_nobody_can_answer_gets_an_error(codex: StandIn) -> None:
    turn = recorded(FIRST)
    asked = {"method": "attestation/generate", "id": 77, "params": {}}
    codex.plan["turn/start"] = [{"result": {"turn": {"id": turn_of(turn)}}}, asked]
    codex.plan["answer"] = turn  # it goes on when it has an answer, whatever it is
    assert taken(codex).text == "hello dear boss"
    (answer,) = [one for one in codex.got() if one.get("id") == 77]
    assert "attestation/generate" in answer["error"]["message"] and "result" not in answer


def test_a_program_that_stays_after_its_turn_is_ended_and_its_answer_counts(
    codex: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "END_SECONDS", 0.1)
    codex.plan["stays"] = True
    assert taken(codex).text == "hello dear boss"


async def test_words_that_the_program_refuses_are_not_taken(codex: StandIn) -> None:
    turn = recorded(WITH_TOOL)
    codex.plan["turn/start"] = [{"result": {"turn": {"id": turn_of(turn)}}}, *turn[:2]]
    codex.plan["turn/steer"] = [
        {"error": {"code": -32600, "message": "no active turn to steer"}},
        *turn[2:],
    ]
    provider, run = codex.make(), RecordedRun()
    task = asyncio.create_task(run.give(provider, codex.turn()))
    while not run.heard or not any(one.kind == "tool" for one in run.heard):
        await asyncio.sleep(0.01)
    assert not await provider.steer("too late")
    assert (await task).text == "steered"
    assert codex.got("turn/steer")[0]["params"]["expectedTurnId"] == turn_of(turn)


async def test_words_that_wait_when_the_program_ends_are_not_taken(codex: StandIn) -> None:
    turn = recorded(WITH_TOOL)
    codex.plan["turn/start"] = [{"result": {"turn": {"id": turn_of(turn)}}}, *turn[:2]]
    codex.plan["turn/steer"] = turn[2:]  # the turn ends, and nobody says a word about the words
    provider, run = codex.make(), RecordedRun()
    task = asyncio.create_task(run.give(provider, codex.turn()))
    while not any(one.kind == "tool" for one in run.heard):
        await asyncio.sleep(0.01)
    assert not await provider.steer("too late")
    assert (await task).text == "steered"


def test_a_turn_that_codex_stops_by_itself_fails(codex: StandIn) -> None:
    turn = recorded(FIRST)
    ended = {"threadId": THREAD, "turn": {"id": turn_of(turn), "status": "interrupted", "items": []}}
    stopped = {"method": "turn/completed", "params": ended}
    codex.plan["turn/start"] = [{"result": {"turn": {"id": turn_of(turn)}}}, *turn[:3], stopped]
    error = raised(TurnError, taken, codex)
    assert error.kind == "interrupted" and error.repeat


# --- errors, as they were recorded ----------------------------------------------------


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
    then = datetime.fromtimestamp(NOW / 1000, UTC).astimezone() + timedelta(days=3)
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(then.day % 10 if then.day not in (11, 12, 13) else 0, "th")
    error = failure(LIMIT.format(then.strftime(f"%b {then.day}{suffix}, %Y %-I:%M %p")), "usageLimitExceeded")
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
