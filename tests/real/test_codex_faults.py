"""What errors of the real Codex become: the lane waits, the turn fails, or the session is lost."""

from __future__ import annotations

import re
import shlex

import pytest

from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError
from hiboss.testing.model_server import Cut, Fail, Say, StreamFail
from tests.real.codex_rig import CodexRig
from tests.real.harness_rig import Turn
from tests.real.processes import words_of

rig_class = CodexRig

LIMIT = "usage_limit_reached"


async def test_a_usage_limit_names_when_it_ends(rig: CodexRig) -> None:
    turn = rig.turn("hello")
    resets = turn.now // 1000 + 2 * 3600
    rig.server.script(Fail(429, LIMIT, facts={"plan_type": "plus", "resets_at": resets}))
    error = await Turn(rig, turn).fails(LaneError)
    assert error.kind == "usage_limit" and "usage limit" in error.text
    assert error.retry_after is not None and abs(error.retry_after - 2 * 3600) <= 120


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("insufficient_quota", "usage_limit"),
        ("rate_limit_exceeded", "rate_limited"),
        ("server_is_overloaded", "overloaded"),
        ("usage_not_included", "usage_limit"),
    ],
)
async def test_what_stops_the_lane_in_the_middle_of_a_stream(rig: CodexRig, code: str, kind: str) -> None:
    rig.server.script(StreamFail(code))
    assert (await Turn(rig, "hello").fails(LaneError)).kind == kind


async def test_an_unknown_model_stops_the_lane_and_names_the_command_that_helps(rig: CodexRig) -> None:
    rig.server.script(Fail(404, message="The model `gpt-9` does not exist or you do not have access to it."))
    error = await Turn(rig, "hello", model="gpt-9").fails(LaneError)
    assert error.kind == "no_model" and re.search(r"hiboss agent set \w+ --model", error.text)


async def test_a_full_thread_is_lost_and_a_new_one_that_is_too_long_is_not(rig: CodexRig) -> None:
    rig.server.script(StreamFail("context_length_exceeded"))
    new = Turn(rig, "hello")
    error = await new.fails(TurnError)
    assert not isinstance(error, SessionLost) and error.kind == "too_long"
    rig.server.script(StreamFail("context_length_exceeded"))
    await Turn(rig, rig.turn("again", session=new.session)).fails(SessionLost)


async def test_a_missing_variable_of_a_model_provider_stops_the_lane(rig: CodexRig) -> None:
    arguments = rig.arguments(requires_openai_auth="false", env_key='"KEY_OF_X"')
    error = await Turn(rig, "hello", arguments=arguments).fails(LaneError)
    assert error.kind == "not_logged_in" and "KEY_OF_X" in error.text


@pytest.mark.parametrize("arguments", ["--nonsense", "-c model_provider=nosuch", "-c approval_policy=nosuch"])
async def test_arguments_with_which_it_does_not_start_stop_the_lane(rig: CodexRig, arguments: str) -> None:
    error = await Turn(rig, "hello", arguments=arguments).fails(LaneError)
    assert error.kind == "bad_arguments" and ("nonsense" in error.text or "nosuch" in error.text)


async def test_a_broken_config_stops_the_lane_instead_of_working_by_other_rules(rig: CodexRig) -> None:
    (rig.home / "config.toml").write_text("model = [\n")
    error = await Turn(rig, "hello").fails(LaneError)
    assert error.kind == "bad_arguments" and "config.toml" in error.text
    assert not rig.server.turns


async def test_a_home_of_codex_that_does_not_exist_stops_the_lane(rig: CodexRig) -> None:
    nowhere = str(rig.directory / "no where")
    environment = {**rig.environment(), "CODEX_HOME": nowhere}
    error = await Turn(rig, rig.turn("hello", environment=environment)).fails(LaneError)
    assert error.kind == "not_logged_in" and nowhere in error.text
    finding = await rig.make().find(environment, str(rig.workspace))
    assert finding is not None and nowhere in finding.problem
    assert finding.help == f"mkdir -p {shlex.quote(nowhere)}"


async def test_the_key_of_an_agent_is_used_by_its_turn_alone(rig: CodexRig) -> None:
    before = (rig.home / "auth.json").read_bytes()
    rig.server.script(rig.shell("env"), Say("slow words", hold=True))
    turn = Turn(rig, "hello", api_key="sk-of-this-agent", autonomy="high")
    await turn.held()
    arguments = [words_of(one) for one in rig.left_behind()]
    rig.server.go_on()
    await turn.answer()
    assert {one.headers["authorization"] for one in rig.server.turns} == {"Bearer sk-of-this-agent"}
    assert arguments and "sk-of-this-agent" not in repr(arguments)
    assert "sk-of-this-agent" not in "".join(rig.server.turns[-1].tool_results)
    assert (rig.home / "auth.json").read_bytes() == before
    written = [
        one for one in rig.home.rglob("*") if one.is_file() and b"sk-of-this-agent" in one.read_bytes()
    ]
    assert not written


async def test_a_key_of_the_agent_that_is_refused_names_the_command_that_helps(rig: CodexRig) -> None:
    rig.server.key = "another"
    error = await Turn(rig, "hello", api_key="sk-canary-of-agent").fails(LaneError)
    assert error.kind == "refused" and "hiboss agent set nex --api-key @FILE" in error.text
    assert "codex login" not in error.text and "canary" not in error.text
    arguments = rig.arguments(requires_openai_auth="false", env_key='"KEY_OF_X"')
    environment = {**rig.environment(), "KEY_OF_X": "sk-canary-of-daemon"}
    turn = Turn(rig, rig.turn("hello", environment=environment), arguments=arguments)
    error = await turn.fails(LaneError)
    assert error.kind == "refused" and "KEY_OF_X" in error.text and "canary" not in error.text


@pytest.mark.parametrize("cut", ["by the network", "by words"])
async def test_a_call_that_was_cut_leaves_an_estimated_usage(rig: CodexRig, cut: str) -> None:
    by_words = cut == "by words"
    first = Say("some words", hold=True) if by_words else Cut("some wo", times=1)
    rig.server.script(first, Say("whole"))
    turn = Turn(rig, "hello")
    if by_words:
        await turn.until(lambda: turn.run.shown)
        assert await turn.provider.steer("one thing more")
    assert (await turn.answer()).text == "whole"
    assert not [one.usage for one in turn.run.heard if one.usage is not None][-1].exact


async def test_find_says_whether_somebody_is_logged_in_and_what_helps(rig: CodexRig) -> None:
    plain = rig.make(arguments="")
    found = await plain.find(rig.environment(), str(rig.workspace))
    assert found is not None and found.found.endswith(", logged in") and rig.programs.codex in found.found
    out = await plain.find(rig.logged_out(), str(rig.workspace))
    assert out is not None and out.problem and out.help == "codex login"
    keyed = await rig.make(arguments="", api_key="sk-1").find(rig.logged_out(), str(rig.workspace))
    assert keyed is not None and not keyed.problem
