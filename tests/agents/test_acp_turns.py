"""Turns of the provider `acp` with a scripted agent: sessions, output, usage, and odd agents."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from hiboss.agents.providers.acp import resumption
from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError
from hiboss.core.contracts.provider import Answer, Usage
from hiboss.testing.provider_contract import Turn, until
from tests.agents.acp_rig import AcpRig, chunk, ended, take, take_planned, told, tool, tool_update
from tests.support.raising import raised


def resumable(**more: Any) -> dict[str, Any]:
    """Return what an agent answers to `initialize` that has these capabilities."""
    info = {"name": "@scope/scripted", "version": "1.2"}
    return {"result": {"protocolVersion": 1, "agentInfo": info, "agentCapabilities": more}}


# --- sessions ------------------------------------------------------------------------


def test_nothing_but_the_prompt_itself_is_asked_for_and_no_files_or_terminals_are_offered(
    rig: AcpRig,
) -> None:
    take_planned(rig, chunk("hello"))
    [hello] = rig.received("initialize")
    assert hello["protocolVersion"] == 1
    assert hello["clientCapabilities"]["fs"] == {"readTextFile": False, "writeTextFile": False}
    assert hello["clientCapabilities"]["terminal"] is False
    assert rig.received("session/new") == [{"cwd": str(rig.directory), "mcpServers": []}]
    assert not rig.received("authenticate")


def test_a_session_is_resumed_without_a_replay_where_the_agent_can_do_that(rig: AcpRig) -> None:
    rig.plan(chunk("again"))
    answer, run = take(rig, session="s-7")
    assert (answer.text, run.sessions) == ("again", ["s-7"])
    assert [one["sessionId"] for one in rig.received("session/resume")] == ["s-7"]
    assert not rig.received("session/load") and not rig.received("session/new")


def test_the_replay_of_a_loaded_session_is_not_shown(rig: AcpRig) -> None:
    old = [
        chunk("an old answer")["update"],
        tool("an old tool")["update"],
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "an old thought"}},
    ]
    rig.plan(
        chunk("the new answer"),
        initialize=resumable(loadSession=True),
        session_load={"replay": old, "result": {}},
    )
    answer, run = take(rig, session="s-7")
    assert answer.text == run.shown == "the new answer"
    assert not told(run, "tool") and not told(run, "thinking") and run.sessions == ["s-7"]


def test_an_agent_that_cannot_resume_has_no_session_to_lose(rig: AcpRig) -> None:
    answer, run = take_planned(rig, chunk("hello"), initialize=resumable())
    assert (answer, run.sessions) == (Answer(text="hello"), [])
    raised(SessionLost, take, rig, says=r"scripted 1\.2 cannot resume sessions", session="s-of-another-agent")
    assert rig.turns() == 1


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32002, "message": "Resource not found"},
        {"code": -32603, "message": "Internal error", "data": {"details": "no rollout found for thread"}},
        {
            "code": -32603,
            "message": "Internal error: OpenCode service failure",
            "data": {"service": "session"},
        },
    ],
    ids=["claude", "codex", "opencode"],
)
def test_a_session_that_the_agent_does_not_know_is_lost(rig: AcpRig, error: dict[str, Any]) -> None:
    rig.plan(chunk("hello"), session_resume={"error": error})
    raised(SessionLost, take, rig, says="cannot resume it", session="s-7")
    assert rig.turns() == 0


def test_a_login_that_is_missing_loses_no_session(rig: AcpRig) -> None:
    rig.plan(session_resume={"error": {"code": -32000, "message": "Authentication required"}})
    assert raised(LaneError, take, rig, session="s-7").kind == "not_logged_in"


def test_an_agent_that_never_resumes_is_not_asked_for_ever(rig: AcpRig) -> None:
    """gemini 0.61 says it can load sessions, and fails each time: it must not be tried with every turn."""
    unknown = {"error": {"code": -32603, "message": "Internal error"}}
    methods = {"initialize": resumable(loadSession=True), "session_load": unknown}
    assert take_planned(rig, chunk("hello"), **methods)[1].sessions == ["s-new"]
    assert "not resumed" not in raised(SessionLost, take, rig, session="s-new").text
    assert take(rig)[1].sessions == ["s-new"]
    raised(
        SessionLost, take, rig, says="until hiboss restarts, its sessions are not resumed", session="s-new"
    )
    assert take(rig)[1].sessions == []


def test_one_success_forgets_the_failures_before(rig: AcpRig) -> None:
    for _ in range(resumption.MOST_FAILURES + 1):
        rig.plan(session_resume={"error": {"code": -32002, "message": "Resource not found"}})
        raised(SessionLost, take, rig, session="s-7")
        rig.plan(chunk("hello"))
        assert take(rig, session="s-8")[1].sessions == ["s-8"]


# --- instructions and the prompt -----------------------------------------------------


def test_instructions_begin_the_first_prompt_of_a_session_and_no_other(rig: AcpRig) -> None:
    rig.plan(chunk("hello"))
    take(rig, instructions="You are nex.", text="hi")
    take(rig, instructions="You are nex.", text="again", session="s-new")
    prompts = [[block["text"] for block in one["prompt"]] for one in rig.received("session/prompt")]
    assert prompts == [["You are nex.", "hi"], ["again"]]


def test_instructions_are_the_system_prompt_where_the_agent_takes_one(rig: AcpRig) -> None:
    capable = resumable(sessionCapabilities={"systemPrompt": {}, "resume": {}})
    rig.plan(chunk("hello"), initialize=capable)
    take(rig, instructions="You are nex.", text="hi")
    take(rig, instructions="You are nex.", text="again", session="s-new")
    content = {"mode": "append", "content": [{"type": "text", "text": "You are nex."}]}
    [new], [resumed] = rig.received("session/new"), rig.received("session/resume")
    assert new["systemPrompt"] == resumed["systemPrompt"] == content
    assert [len(one["prompt"]) for one in rig.received("session/prompt")] == [1, 1]


def test_a_turn_is_never_a_slash_command(rig: AcpRig) -> None:
    rig.plan(chunk("hello"))
    take(rig, text="/clear")
    assert rig.given() == "\n/clear"


# --- output --------------------------------------------------------------------------


def beside_a_tool(number: str | None) -> list[dict[str, Any]]:
    """Return a message during which a tool of this turn and one of another go on."""
    return [
        tool("a server"),
        chunk("It is ", number),
        tool_update(status="in_progress"),
        tool_update("of-another-turn", status="completed"),
        chunk("still ", number),
        tool("a server"),
        chunk("there.", number),
    ]


LOOKED = ("It is there.", "I will look.\n\nIt is there.")


@pytest.mark.parametrize(
    ("steps", "texts"),
    [
        ([chunk("I will ", "m1"), chunk("look.", "m1"), chunk("It is ", "m2"), chunk("there.", "m2")], LOOKED),
        ([chunk("I will look."), tool("ls"), chunk("It is "), chunk("there.")], LOOKED),
        (beside_a_tool("m1"), ("It is still there.",) * 2),
        (beside_a_tool(None), ("It is still there.",) * 2),
        ([chunk("It is ", "m1"), tool("ls"), chunk("there.", "m1")], ("It is there.",) * 2),
        ([chunk("It ", "m1"), chunk("is "), chunk("there.", "m1")], ("It is there.",) * 2),
    ],
    ids=["two messages", "separated by a tool", "beside a tool", "beside a tool, without an id",
         "a tool in the middle", "a piece without an id"],
)  # fmt: skip
def test_the_last_message_is_the_answer_and_all_are_shown(
    rig: AcpRig, steps: list[dict[str, Any]], texts: tuple[str, str]
) -> None:
    answer, run = take_planned(rig, *steps)
    assert (answer.text, run.shown) == texts


def test_an_error_that_follows_the_beginning_of_a_message_is_an_error(rig: AcpRig) -> None:
    """codex-acp gives it no id, and says that the turn failed."""
    meta = {"codex": {"threadStatus": {"type": "systemError"}}}
    failed = {"update": {"sessionUpdate": "session_info_update", "_meta": meta}}
    rig.plan(chunk("I will", "m1"), failed, chunk("unexpected status 401 Unauthorized"))
    caught = raised(LaneError, take, rig)
    assert caught.kind == "not_logged_in" and "I will" not in caught.text


def test_a_tool_is_shown_once_its_input_is_known_and_with_its_result(rig: AcpRig) -> None:
    def change(**more: Any) -> dict[str, Any]:
        return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", **more}}

    output = [{"type": "content", "content": {"type": "text", "text": "```console\na\nb\n```"}}]
    answer, run = take_planned(
        rig,
        tool("Terminal", "pending"),
        change(title="ls -l"),
        change(status="in_progress", title="ls -l"),
        change(status="completed", content=output),
        tool("Write note.txt", "pending", "t2"),
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t2", "status": "failed"}},
        {"update": {"sessionUpdate": "plan", "entries": []}},
        {"update": {"sessionUpdate": "of_a_later_version"}},
        chunk("done"),
    )
    assert answer.text == "done"
    assert told(run, "tool") == ["ls -l", "Write note.txt"] and told(run, "tool_result") == ["a b", "failed"]


def test_what_codex_prints_in_its_terminal_is_the_result_of_its_tool(rig: AcpRig) -> None:
    def printed(data: str, **more: Any) -> dict[str, Any]:
        meta = {"terminal_output_delta": {"data": data, "terminal_id": "t1"}}
        return {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "_meta": meta, **more}}

    assert told(
        take_planned(
            rig, tool("make"), printed("one\n"), printed("two\n", status="completed"), chunk("done")
        )[1],
        "tool_result",
    ) == ["one two"]


def test_thoughts_are_shown_and_no_part_of_the_answer(rig: AcpRig) -> None:
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
    answer, run = take_planned(rig, {"update": thought}, chunk("four"))
    assert (answer.text, run.shown, told(run, "thinking")) == ("four", "four", ["hm"])


def test_what_is_of_another_session_is_not_shown(rig: AcpRig) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "of a subagent"}}
    line = {"method": "session/update", "params": {"sessionId": "s-child", "update": update}}
    raw = base64.b64encode(json.dumps(line).encode() + b"\n").decode()
    assert take_planned(rig, {"raw": raw}, chunk("mine"))[0].text == "mine"


def test_garbage_between_the_lines_is_ignored(rig: AcpRig) -> None:
    lines = [b"a warning\n", b'{"half": \n', b"[1]\n", b"\xff\xfe\n", b'{"id": 99, "result": {}}\n', b"{}\n"]
    odd = b'{"method": "session/update", "params": [1]}\n{"method": "session/update", "params": {"update": 5}}\n'
    assert (
        take_planned(rig, {"raw": base64.b64encode(b"".join(lines) + odd).decode()}, chunk("still there"))[
            0
        ].text
        == "still there"
    )


# --- usage ---------------------------------------------------------------------------


def used(amount: float, tokens: int = 3100, currency: str = "USD") -> dict[str, Any]:
    cost = {"amount": amount, "currency": currency}
    return {"update": {"sessionUpdate": "usage_update", "used": tokens, "size": 200_000, "cost": cost}}


def test_tokens_count_with_those_of_the_cache_and_are_exact_at_the_end(rig: AcpRig) -> None:
    counted = {"inputTokens": 100, "cachedReadTokens": 3000, "cachedWriteTokens": 20, "outputTokens": 7}
    answer, run = take_planned(rig, used(0.25), chunk("hello"), ended(usage=counted))
    assert (answer.tokens_in, answer.tokens_out, answer.cost, answer.context) == (3120, 7, 0.25, 3100)
    usages = [one.usage for one in run.heard if one.usage is not None]
    assert usages == [Usage(cost=0.25, context=3100), Usage(3120, 7, 0.25, 3100, exact=True)]


def test_the_tokens_of_gemini_stand_elsewhere(rig: AcpRig) -> None:
    count = {"input_tokens": 3120, "output_tokens": 7}
    meta = {"quota": {"token_count": count, "model_usage": [{"model": "gemini-3", "token_count": count}]}}
    answer, run = take_planned(rig, chunk("hello"), ended(_meta=meta))
    assert (answer.tokens_in, answer.tokens_out, told(run, "model")) == (3120, 7, ["gemini-3"])


RESUMED = {"session": "s-7"}


@pytest.mark.parametrize(
    ("step", "before", "turn", "cost"),
    [
        (used(0.75), None, RESUMED | {"session_cost": 0.5}, 0.25),
        (used(0.75), None, RESUMED | {"session_cost": None}, None),
        (used(0.75), None, {"session_cost": None}, 0.75),
        (used(0.75), used(0.5), RESUMED | {"session_cost": 0.125}, 0.25),
        (used(0.25), None, RESUMED | {"session_cost": 0.5}, 0.25),
        (used(5.0, currency="credits"), None, {}, None),
    ],
    ids=["a difference", "unknown before", "a new one", "said by the agent", "counted anew", "no dollars"],
)
def test_the_cost_is_that_of_the_turn(
    rig: AcpRig, step: dict[str, Any], before: dict[str, Any] | None, turn: dict[str, Any], cost: float | None
) -> None:
    opened = {"replay": [before["update"]], "result": {}} if before else None
    rig.plan(chunk("hello"), step, **({"session_resume": opened} if opened else {}))
    assert take(rig, **turn)[0].cost == cost


def test_what_no_turn_can_have_cost_is_left_out(rig: AcpRig) -> None:
    huge = 10**400
    rig.plan(chunk("hello"), used(huge, huge), ended(usage={"inputTokens": huge, "outputTokens": huge}))
    for more in ({}, {"session": "s-7", "session_cost": 0.5}):
        answer, run = take(rig, **more)
        assert answer == Answer(text="hello", note=answer.note) and "was left out" in (answer.note or "")
        assert run.notes


# --- models --------------------------------------------------------------------------

BY_OPTION = {
    "sessionId": "s-new",
    "configOptions": [
        {"id": "mode", "category": "mode", "currentValue": "default"},
        {
            "id": "llm",
            "category": "model",
            "currentValue": "small",
            "options": [{"value": "small"}, {"value": "large"}],
        },
    ],
}
BY_METHOD = {
    "sessionId": "s-new",
    "models": {"currentModelId": "small", "availableModels": [{"modelId": "small"}, {"modelId": "large"}]},
}


@pytest.mark.parametrize(
    ("opened", "method", "value"),
    [
        (BY_OPTION, "session/set_config_option", {"configId": "llm", "value": "large"}),
        (BY_METHOD, "session/set_model", {"modelId": "large"}),
    ],
    ids=["option", "method"],
)
def test_a_model_is_chosen_as_the_agent_offers_it(
    rig: AcpRig, opened: dict[str, Any], method: str, value: dict[str, Any]
) -> None:
    assert told(take_planned(rig, chunk("hello"), session_new={"result": opened})[1], "model") == ["small"]
    rig.settings = {"model": "large"}
    assert told(take(rig)[1], "model") == ["large"]
    assert rig.received(method) == [{"sessionId": "s-new", **value}]
    rig.plan(chunk("hello"), session_new={"result": opened}, **{method.replace("/", "_"): NO_MODEL})
    assert raised(LaneError, take, rig, says=r"large .*; it has small, large").kind == "no_model"


NO_MODEL = {"error": {"code": -32602, "message": "unknown model"}}


def test_an_agent_without_a_choice_of_models_says_where_to_put_it(rig: AcpRig) -> None:
    rig.settings = {"model": "large"}
    rig.plan(chunk("hello"))
    caught = raised(LaneError, take, rig, says="give it as an argument in --command")
    assert (caught.kind, rig.turns()) == ("no_model", 0)


# --- how it ends -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("max_turn_requests", "max_turns"), ("cancelled", "cancelled"), ("max_tokens", "too_long"), ("refusal", "refusal")],
)  # fmt: skip
def test_a_turn_that_stops_without_an_answer_fails(rig: AcpRig, reason: str, kind: str) -> None:
    rig.plan({"result": {"stopReason": reason}})
    assert raised(TurnError, take, rig).kind == kind


@pytest.mark.parametrize(("reason", "note"), [("max_tokens", "cut off"), ("refusal", "refused")])
def test_what_was_said_before_a_limit_is_an_answer_with_a_note(rig: AcpRig, reason: str, note: str) -> None:
    answer, _ = take_planned(rig, chunk("so far"), {"result": {"stopReason": reason}})
    assert answer.text == "so far" and note in (answer.note or "")


def test_an_agent_that_ends_in_the_middle_fails_the_turn_with_its_last_words(rig: AcpRig) -> None:
    rig.plan(chunk("so "), {"exit": [3, "Segmentation fault, sort of"]})
    caught = raised(TurnError, take, rig, says=r"ended \(exit status 3\) before it answered: Segmentation")
    assert caught.kind == "no_result"


async def test_an_interrupt_before_the_prompt_gives_none(rig: AcpRig) -> None:
    rig.plan(chunk("hello"), initialize={"silent": True})
    turn = Turn(rig)
    await until(lambda: turn.pids)
    await turn.provider.interrupt()
    turn.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn.ends()
    assert rig.turns() == 0
