"""What is special about Claude Code: its sessions, its account, its questions."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from hiboss.agents.providers.claude import saved_sessions
from hiboss.core import clock
from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError
from hiboss.core.contracts.provider import Choice
from hiboss.testing.model_server import Fail, Say, UseTool
from tests.real.claude_rig import ClaudeRig
from tests.real.harness_rig import Turn

rig_class = ClaudeRig

COLOURS = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "red", "description": "warm"}, {"label": "green", "description": "calm"}],
    "multiSelect": True,
}


# --- sessions ------------------------------------------------------------------------------


async def test_a_session_that_should_be_new_and_exists_is_resumed(rig: ClaudeRig) -> None:
    first = Turn(rig, "my bird is the heron")
    await first.answer()
    again = Turn(rig, rig.turn("which bird", session=first.session, session_is_new=True))
    await again.answer()
    assert again.run.sessions == [first.session]
    assert "heron" in "\n".join(rig.server.turns[-1].texts)


async def test_a_turn_without_a_session_begins_one_and_reports_it(rig: ClaudeRig) -> None:
    turn = Turn(rig, rig.turn("hello", session_is_new=False))
    turn.task.cancel()
    await turn.end()
    alone = Turn(rig, replace(rig.turn("hello"), session=None, session_is_new=False))
    await alone.answer()
    (session,) = alone.run.sessions
    assert saved_sessions.saved_bytes(rig.environment(), session)


async def test_a_session_that_is_open_elsewhere_goes_on_in_a_copy(rig: ClaudeRig) -> None:
    first = Turn(rig, "my bird is the heron")
    await first.answer()
    rig.server.script(Say("still at it", hold=True), Say("in the copy"))
    other = Turn(rig, rig.turn("think long", session=first.session))
    await other.until(lambda: other.run.shown)
    beside = Turn(rig, rig.turn("which bird", session=first.session))
    answer = await beside.answer()
    assert answer.text == "in the copy" and "is open in claude (pid" in (answer.note or "")
    assert beside.session != first.session and "heron" in "\n".join(rig.server.turns[-1].texts)
    rig.server.go_on()
    assert (await other.answer()).text == "still at it"
    await Turn(rig, rig.turn("in the first", session=first.session)).answer()
    assert "which bird" not in "\n".join(rig.server.turns[-1].texts)
    await Turn(rig, rig.turn("in the second", session=beside.session)).answer()
    assert "which bird" in "\n".join(rig.server.turns[-1].texts)


async def test_a_session_that_cannot_be_read_is_lost(rig: ClaudeRig) -> None:
    first = Turn(rig, "hello")
    await first.answer()
    (file,) = (rig.directory / "home").rglob(f"{first.session}.jsonl")
    file.unlink()
    file.mkdir()
    await Turn(rig, rig.turn("again", session=first.session)).fails(SessionLost)


async def test_a_session_that_cannot_be_saved_is_not_reported_and_said(rig: ClaudeRig) -> None:
    file = rig.directory / "file"
    file.touch()
    environment = {**rig.environment(), "CLAUDE_CONFIG_DIR": str(file / "config")}
    turn = Turn(rig, rig.turn("hello", environment=environment))
    answer = await turn.answer()
    assert answer.text and not turn.run.sessions
    assert "does not save its sessions" in (answer.note or "")
    assert str(file / "config") in (answer.note or "")


async def test_a_session_that_is_full_is_lost_and_a_new_one_that_is_too_long_fails(rig: ClaudeRig) -> None:
    full = Fail(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")
    first = Turn(rig, "hello")
    await first.answer()
    rig.server.when(lambda request: True, *[full] * 20)  # it compacts the session, and that fails too
    await Turn(rig, rig.turn("more", session=first.session)).fails(SessionLost)
    error = await Turn(rig, "much").fails(TurnError)
    assert error.kind == "too_long"
    rig.server.refused.clear()  # its last tries to shorten a session send empty messages


# --- what it is given ------------------------------------------------------------------------


async def test_long_instructions_arrive_whole_and_their_file_is_gone(rig: ClaudeRig) -> None:
    token_file = rig.directory / "run-tokens" / "mark"
    token_file.parent.mkdir()
    token_file.write_text("hba_x\n")
    instructions = "\n".join(f"{number}. ä€😀 Be kind to everybody." for number in range(6000))  # 200 kB
    rig.server.script(Say("slowly", hold=True))
    environment = {**rig.environment(), "HIBOSS_TOKEN_FILE": str(token_file)}
    turn = Turn(rig, rig.turn("hello", instructions=instructions, environment=environment))
    await turn.held()
    (file,) = [one for one in token_file.parent.iterdir() if one != token_file]
    assert file.stat().st_mode & 0o777 == 0o600
    rig.server.go_on()
    await turn.answer()
    assert instructions in rig.server.turns[-1].system
    assert list(token_file.parent.iterdir()) == [token_file]


async def test_the_key_of_the_agent_counts_before_those_of_the_daemon(rig: ClaudeRig) -> None:
    rig.server.key = "sk-ant-of-the-agent"
    environment = {**rig.environment(), "ANTHROPIC_AUTH_TOKEN": "another", "ANTHROPIC_API_KEY": "no"}
    turn = Turn(rig, rig.turn("hello", environment=environment), api_key="sk-ant-of-the-agent")
    assert (await turn.answer()).text


async def test_tools_that_come_due_after_the_turn_are_not_offered(rig: ClaudeRig) -> None:
    await Turn(rig, "hello").answer()
    offered = set(rig.server.turns[-1].tools)
    assert "Bash" in offered
    assert not offered & {"CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "Monitor"}


async def test_nothing_works_in_the_background(rig: ClaudeRig) -> None:
    """It would end with the turn: the model is not offered it, and a call that wants it is refused."""
    command = UseTool("Bash", {"command": "echo made > made.txt", "run_in_background": True})
    rig.server.script(command, Say("done"))
    assert (await Turn(rig, "make it", autonomy="high").answer()).text == "done"
    bash = rig.server.turns[0].tools["Bash"]
    assert "command" in bash["input_schema"]["properties"]
    assert "run_in_background" not in bash["input_schema"]["properties"]
    assert "unexpected parameter `run_in_background`" in rig.server.turns[-1].tool_results[-1]
    assert not (rig.workspace / "made.txt").exists() and len(rig.server.turns) == 2


async def test_each_command_begins_in_the_workspace(rig: ClaudeRig) -> None:
    (rig.workspace / "below").mkdir()
    rig.server.script(rig.shell("cd below && pwd"), rig.shell("pwd"), Say("done"))
    await Turn(rig, "look", autonomy="high").answer()
    assert rig.server.turns[-1].tool_results[-1].strip() == str(rig.workspace)


async def test_more_arguments_reach_the_program(rig: ClaudeRig) -> None:
    await Turn(rig, "hello", arguments="--disallowedTools WebFetch 'Bash'").answer()
    assert not {"WebFetch", "Bash", "CronCreate"} & set(rig.server.turns[-1].tools)
    error = await Turn(rig, "hello", arguments="--no-such-thing").fails(LaneError)
    assert error.kind == "bad_arguments" and "--arguments" in error.text


async def test_a_missing_workspace_stops_the_lane(rig: ClaudeRig) -> None:
    turn = Turn(rig, rig.turn("hello", workspace=str(rig.directory / "gone")))
    assert (await turn.fails(LaneError)).kind == "no_workspace"


# --- the account -----------------------------------------------------------------------------


def of_subscription(rig: ClaudeRig) -> dict[str, str]:
    return {**rig.logged_out(), "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-canary"}


async def test_a_usage_limit_says_until_when_and_waits(rig: ClaudeRig) -> None:
    resets_at = str(clock.now() // 1000 + 7200)
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": resets_at,
        "anthropic-ratelimit-unified-representative-claim": "five_hour",
    }
    rig.server.script(Fail(429, "rate_limit_error", "too much", headers=headers))
    turn = Turn(rig, rig.turn("hello", environment=of_subscription(rig)))
    error = await turn.fails(LaneError)
    assert error.kind == "usage_limit" and "limit" in error.text and "canary" not in error.text
    assert 6000 < error.retry_after <= 7200


async def test_an_account_without_credit_stops_the_lane(rig: ClaudeRig) -> None:
    why = "Your credit balance is too low to access the Anthropic API."
    rig.server.script(Fail(400, "invalid_request_error", why))
    assert (await Turn(rig, "hello").fails(LaneError)).kind == "usage_limit"


async def test_an_unknown_model_stops_the_lane(rig: ClaudeRig) -> None:
    rig.server.script(Fail(404, "not_found_error", "model: nosuch"))
    error = await Turn(rig, "hello", model="nosuch").fails(LaneError)
    assert error.kind == "no_model" and "hiboss agent set nex --model" in error.text


async def test_the_budget_is_that_of_one_run_and_not_of_the_session(rig: ClaudeRig) -> None:
    session, costs = None, []
    for _ in range(3):
        rig.server.script(rig.shell("echo one"), Say("done"))
        turn = Turn(rig, rig.turn("go on", session=session), autonomy="high", max_cost=0.0025)
        costs.append((await turn.answer()).cost)
        session = turn.session
    assert sum(filter(None, costs)) > 0.0025


async def test_the_login_is_found(rig: ClaudeRig) -> None:
    found = await rig.make().find(rig.environment(), str(rig.workspace))
    assert "logged in (ANTHROPIC_API_KEY)" in found.found and not found.problem
    found = await rig.make().find(rig.logged_out(), str(rig.workspace))
    assert (found.problem, found.help) == ("claude is not logged in", "claude auth login")
    found = await rig.make(api_key="sk-ant-x").find(rig.logged_out(), str(rig.workspace))
    assert "with the API key of the agent" in found.found and not found.problem


# --- questions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice("green", "and a little red", "user:boss"), ['"green"', "and a little red"]),
        (Choice("something else", "blue, please", "user:boss"), ['"blue, please"']),
        (Choice("something else", "", "user:boss"), ["None of these"]),
        (Choice("something else", "nobody answered in time"), ["Nobody answered", "Decide yourself"]),
    ],
)
async def test_an_answer_to_the_model_reaches_it_with_its_comment(
    rig: ClaudeRig, choice: Choice, words: list[str]
) -> None:
    rig.server.script(UseTool("AskUserQuestion", {"questions": [COLOURS]}), Say("I see"))
    turn = Turn(rig, "choose", [choice])
    assert (await turn.answer()).text == "I see"
    (question,) = turn.run.questions
    assert question.options == ("red", "green", "something else")
    assert "green: calm" in question.text and "comment" in question.text
    assert all(one in rig.server.turns[-1].tool_results[-1] for one in words)


async def test_several_questions_are_asked_at_once(rig: ClaudeRig) -> None:
    second = {**COLOURS, "question": "And the roof?", "multiSelect": False}
    rig.server.script(UseTool("AskUserQuestion", {"questions": [COLOURS, second]}), Say("I see"))
    turn = Turn(rig, "choose", ["red", "green"])
    await turn.answer()
    said = rig.server.turns[-1].tool_results[-1]
    assert '"Which colour?"="red"' in said and '"And the roof?"="green"' in said


async def test_what_is_outside_of_the_workspace_is_asked_for_with_medium_autonomy(rig: ClaudeRig) -> None:
    outside = rig.directory / "outside.txt"
    rig.server.script(rig.edit(str(outside), "a\nb\n"), Say("done"))
    turn = Turn(rig, "write it", ["allow"])
    await turn.answer()
    (question,) = turn.run.questions
    assert question.tool == "Write" and f"file_path: {outside}" in question.detail
    assert "a\nb\n" in question.detail and str(rig.workspace) in question.subject
    assert outside.read_text() == "a\nb\n"


async def test_a_rule_of_claude_allows_what_it_names_and_no_more(rig: ClaudeRig) -> None:
    rig.server.script(
        rig.shell("hiboss send kai 'please look'"),
        rig.shell('hiboss send kai "$(touch made.txt)"'),
        rig.shell("hiboss send kai x; touch made.txt"),
        Say("done"),
    )
    program = rig.directory / "bin" / "hiboss"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho sent\n")
    program.chmod(0o755)
    environment = rig.environment()
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    given = rig.turn("tell kai", environment=environment)
    turn = Turn(rig, given, autonomy="low", arguments='--allowedTools "Bash(hiboss send *)"')
    await turn.answer()
    assert rig.server.turns[-1].tool_results[0].strip() == "sent"
    assert len(turn.run.questions) == 2 and not (rig.workspace / "made.txt").exists()


@pytest.mark.parametrize("sandbox", [False, True])
async def test_root_has_high_autonomy_too_as_everybody(rig: ClaudeRig, sandbox: bool) -> None:
    """Claude Code itself refuses it to root, but in a sandbox."""
    environment = {**rig.environment(), **({"IS_SANDBOX": "1"} if sandbox else {})}
    outside = rig.directory / "outside.txt"
    rig.server.script(rig.edit(str(outside), "a\n"), Say("done"))
    turn = Turn(rig, rig.turn("write it", environment=environment), autonomy="high")
    answer = await turn.answer()
    assert outside.exists() and not turn.run.questions
    assert ("as root" in (answer.note or "")) == (os.geteuid() == 0 and not sandbox)
