"""Programs of the provider `acp`: those that are no agents, how one is found, and what the errors of real agents mean."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from typing import Any

import pytest

from hiboss.agents.providers.acp import known_agents, provider
from hiboss.agents.providers.acp.provider import Acp
from hiboss.agents.providers.acp.settings import AcpSettings
from hiboss.core.contracts.failures import LaneError, SessionLost, TurnError
from hiboss.core.contracts.provider import Finding
from hiboss.testing.provider_contract import SECONDS
from tests.agents.acp_rig import AGENT, AcpRig, chunk, ended, fails, fails_planned, take, take_planned
from tests.support.raising import raised

# --- programs that are no agents -----------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("cat", "does not speak the Agent Client Protocol"),
        ("false", r"ended \(exit status 1\) before it answered"),
        ("sh -c 'read x; echo usage: agent --acp >&2; exit 2'", "usage: agent --acp"),
    ],
)
def test_a_program_that_is_no_agent_stops_the_lane(rig: AcpRig, command: str, words: str) -> None:
    rig._command = command
    assert raised(LaneError, take, rig, says=words).kind == "bad_arguments"


def test_an_agent_of_another_version_of_the_protocol_is_refused(rig: AcpRig) -> None:
    rig.plan(initialize={"result": {"protocolVersion": 2}})
    assert raised(LaneError, take, rig, says="speaks version 2").kind == "outdated"


def test_a_missing_agent_that_is_known_comes_with_the_command_that_installs_it(rig: AcpRig) -> None:
    rig._command = "claude-agent-acp"
    caught = raised(
        LaneError,
        take,
        rig,
        says="npm install -g @agentclientprotocol/claude-agent-acp",
        environment={"PATH": "/nowhere", "HOME": "/nowhere"},
    )
    assert caught.kind == "no_program"


def test_a_missing_workspace_is_named(rig: AcpRig) -> None:
    assert raised(LaneError, take, rig, workspace=str(rig.directory / "gone")).kind == "no_workspace"


def test_an_agent_that_does_not_end_with_its_input_is_ended(rig: AcpRig) -> None:
    script = rig.directory / "deaf.py"
    shutil.copy(AGENT, script)
    script.write_text(
        script.read_text().replace("        sys.exit(0)\n", "        import time; time.sleep(1000)\n")
    )
    rig._command = f"{sys.executable} -I -S deaf.py plan.json"
    assert take_planned(rig, chunk("hello"))[0].text == "hello"


# --- find ------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for what an agent says as long as it takes; where it says nothing, a test sets the limit itself."""
    monkeypatch.setattr(provider, "FIND_SECONDS", SECONDS)


def found(rig: AcpRig, **facts: Any) -> Finding:
    async def story() -> Finding | None:
        async with asyncio.timeout(SECONDS):
            return await rig.make().find(
                **{"environment": rig.task().environment, "workspace": str(rig.directory), **facts}
            )

    finding = asyncio.run(story())
    assert finding is not None
    return finding


def test_an_agent_is_found_with_the_name_and_version_that_it_says(rig: AcpRig) -> None:
    rig.plan()
    assert found(rig) == Finding(found=f"scripted 1.2 ({sys.executable})")
    assert not rig.received("session/new") and rig.turns() == 0


@pytest.mark.parametrize("more", ["", " -i"])
def test_an_agent_behind_env_is_found_by_its_own_path(rig: AcpRig, more: str) -> None:
    rig._command = f"env{more} A_NAME=value {rig._command}"
    rig.plan()
    path = shutil.which("env") if more else sys.executable
    assert found(rig) == Finding(found=f"scripted 1.2 ({path})")


def test_what_is_no_agent_is_found_with_its_problem(rig: AcpRig) -> None:
    rig._command = "cat"
    problem = found(rig)
    assert "does not speak" in problem.problem and problem.help == "cat"
    rig._command = "gemini --acp"
    assert found(rig, environment={"PATH": "/nowhere", "HOME": "/nowhere"}) == Finding(
        problem="the program gemini was not found", help="npm install -g @google/gemini-cli"
    )


def test_an_agent_that_stays_silent_is_not_waited_for(rig: AcpRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "FIND_SECONDS", 0.2)
    rig.plan(initialize={"silent": True})
    assert "does not answer" in found(rig).problem


@pytest.mark.parametrize(
    ("command", "value", "kept"),
    [
        ("/opt/bin/claude-agent-acp", "yes", None),
        ("npx -y @agentclientprotocol/claude-agent-acp", "0", None),
        ("claude-agent-acp", "1", "1"),
        ("gemini --acp", "yes", "yes"),
    ],
)
def test_claude_gets_no_sandbox_that_it_would_refuse(command: str, value: str, kept: str | None) -> None:
    given = {"IS_SANDBOX": value, "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "0"}
    found = known_agents.environment(given, command.split(), "medium")
    assert found.get("IS_SANDBOX") == kept and found["CLAUDE_CODE_DISABLE_FILE_MENTIONS"] == "1"


def test_it_declares_what_the_agent_can_do_as_far_as_that_is_known() -> None:
    assert Acp.capabilities == {"session", "interrupt", "ask", "cost"}
    for command, has in {
        "codex-acp": False,
        "gemini --acp": False,
        "npx -y @x/codex-acp@2.6.0": False,
        "opencode acp": True,
        "mine": True,
    }.items():
        assert ("cost" in Acp(AcpSettings(command=command)).capabilities) == has


# --- errors ---------------------------------------------------------------------------


INTERNAL = -32603


def claude(text: str, kind: str) -> dict[str, Any]:
    return {"code": INTERNAL, "message": f"Internal error: {text}", "data": {"errorKind": kind}}


LANE = [
    (claude("API Error: Request rejected (429) · Rate limit error", "rate_limit"), "rate_limited"),
    (claude("API Error: Request rejected (429) · You've hit your usage limit", "rate_limit"), "usage_limit"),
    (claude("API Error: Repeated 529 Overloaded errors. The API is at capacity", "overloaded"), "overloaded"),
    (claude("API Error: 500 Api error. This is a server-side issue", "server_error"), "overloaded"),
    (claude("API Error: Connection dropped (ECONNRESET).", "server_error"), "unreachable"),
    (claude("API Error: Connection refused — a firewall (ECONNREFUSED)", "server_error"), "unreachable"),
    (claude("There's an issue with the selected model (opus).", "model_not_found"), "no_model"),
    (claude("Credit balance is too low", "billing_error"), "usage_limit"),
    ({"code": 401, "message": '{"error":{"code":401,"message":"API key not valid"}}'}, "not_logged_in"),
    ({"code": 403, "message": "no"}, "refused"),
    ({"code": 429, "message": "no"}, "rate_limited"),
    ({"code": 503, "message": "no"}, "overloaded"),
    ({"code": INTERNAL, "message": "got status: 429 Too Many Requests"}, "rate_limited"),
    ({"code": INTERNAL, "message": "fetch failed"}, "unreachable"),
]
EXITED = "Internal error: Claude Code process exited with code 1."
TURN = [
    (claude("API Error: 400 scripted 400", "unknown"), "rejected"),
    (claude("Request too large (max 32MB).", "invalid_request"), "rejected"),
    (claude("prompt is too long: 300000 tokens", "unknown"), "too_long"),
    ({"code": INTERNAL, "message": "Internal error: scripted", "data": {"errorName": "APIError"}}, "failed"),
    ({"code": 400, "message": "no"}, "rejected"),
    ({"code": "nonsense", "message": 5, "data": [1]}, "failed"),
    ("nonsense", "failed"),
]


@pytest.mark.parametrize(("error", "kind"), LANE, ids=[f"{kind}-{n}" for n, (_, kind) in enumerate(LANE)])
def test_an_error_that_stops_every_turn_stops_the_lane(rig: AcpRig, error: Any, kind: str) -> None:
    found = fails_planned(rig, {"error": error})
    assert isinstance(found, LaneError) and found.kind == kind, found.text
    assert "Internal error" not in found.text


@pytest.mark.parametrize(
    ("stderr", "kind", "helps"),
    [
        ("", "no_start", "claude doctor"),
        (" stderr: Error: Cannot find module", "no_start", "claude doctor"),
        (
            " stderr: --dangerously-skip-permissions cannot be used with root/sudo privileges",
            "bad_arguments",
            "IS_SANDBOX=1",
        ),
    ],
)
def test_a_claude_behind_the_agent_that_does_not_start_stops_the_lane(
    rig: AcpRig, stderr: str, kind: str, helps: str
) -> None:
    found = fails_planned(rig, {"error": {"code": INTERNAL, "message": EXITED + stderr}})
    assert isinstance(found, LaneError) and (found.kind, helps in found.text) == (kind, True), found.text
    assert (
        fails_planned(rig, session_new={"error": {"code": INTERNAL, "message": EXITED + stderr}}).kind == kind
    )


def test_a_claude_behind_the_agent_that_dies_while_it_works_fails_the_turn_alone(rig: AcpRig) -> None:
    error = {"error": {"code": INTERNAL, "message": EXITED}}
    assert (found := fails_planned(rig, chunk("so far"), error)).kind == "no_result" and isinstance(
        found, TurnError
    )
    assert isinstance(
        fails_planned(
            rig, {"error": {"code": INTERNAL, "message": f"{EXITED} stderr: No conversation found"}}
        ),
        TurnError,
    )


@pytest.mark.parametrize(("error", "kind"), TURN, ids=[f"{kind}-{n}" for n, (_, kind) in enumerate(TURN)])
def test_an_error_of_this_turn_fails_it_alone(rig: AcpRig, error: Any, kind: str) -> None:
    found = fails_planned(rig, {"error": error})
    assert isinstance(found, TurnError) and found.kind == kind, found.text


def test_the_message_inside_an_error_of_gemini_is_shown(rig: AcpRig) -> None:
    inner = json.dumps({"error": {"code": 400, "message": "the request is odd"}})
    assert (
        fails_planned(
            rig, {"error": {"code": 400, "message": json.dumps({"error": {"message": inner}})}}
        ).text
        == "scripted 1.2: the request is odd"
    )


# --- logins --------------------------------------------------------------------------

NO_LOGIN = {"error": {"code": -32000, "message": "Authentication required"}}


def test_who_is_not_logged_in_reads_what_the_agent_offers(rig: AcpRig) -> None:
    methods = [{"id": "oauth", "name": "Log in with a browser"}, {"id": "own-api-key", "name": "Key"}]
    hello = {"result": {"protocolVersion": 1, "authMethods": methods}}
    found = fails_planned(rig, initialize=hello, session_new=NO_LOGIN)
    assert found.kind == "not_logged_in" and "it offers: Log in with a browser, Key" in found.text
    assert not rig.received("authenticate"), "there is no key, and nobody at a browser"


def test_the_agent_logs_in_with_a_key_of_the_environment_if_it_asks_for_a_login(rig: AcpRig) -> None:
    methods = [{"id": "oauth"}, {"id": "own-api-key"}, {"id": "terminal-api-key", "type": "terminal"}]
    rig.plan(initialize={"result": {"protocolVersion": 1, "authMethods": methods}}, session_new=NO_LOGIN)
    assert fails(rig, environment={**rig.task().environment, "SOME_API_KEY": "k"}).kind == "not_logged_in"
    assert rig.received("authenticate") == [{"methodId": "own-api-key"}]
    assert len(rig.received("session/new")) == 2


@pytest.mark.parametrize(
    ("name", "login"), [("@x/claude-agent-acp", "claude auth login"), ("codex-acp", "codex login")]
)
def test_the_login_of_a_known_agent_is_named(rig: AcpRig, name: str, login: str) -> None:
    info = {"name": name, "version": "2"}
    assert (
        f"log in: {login}"
        in fails_planned(
            rig, initialize={"result": {"protocolVersion": 1, "agentInfo": info}}, session_new=NO_LOGIN
        ).text
    )


# --- errors that come as text ----------------------------------------------------------


def status(kind: str) -> dict[str, Any]:
    meta = {"codex": {"threadStatus": {"type": kind}}}
    return {"update": {"sessionUpdate": "session_info_update", "_meta": meta}}


AS_TEXT = [
    ("exceeded retry limit, last status: 429 Too Many Requests", LaneError, "rate_limited"),
    ("unexpected status 403 Forbidden: no", LaneError, "refused"),
    ("Selected model is at capacity. Please try a different model.", LaneError, "overloaded"),
    ("We’re currently experiencing high demand, which may cause errors.", LaneError, "overloaded"),
    ("stream disconnected before completion: Transport error", LaneError, "unreachable"),
    ("Missing environment variable: `KEY`.", LaneError, "not_logged_in"),
    ('{"error": {"message": "scripted 400", "type": "invalid_request_error"}}', TurnError, "rejected"),
    ("something that codex never said before", TurnError, "rejected"),
]


@pytest.mark.parametrize(("text", "error", "kind"), AS_TEXT)
def test_an_error_that_codex_gives_as_an_answer_is_one(
    rig: AcpRig, text: str, error: type[Exception], kind: str
) -> None:
    found = fails_planned(
        rig, chunk("so far", "m1"), status("systemError"), chunk(f"{text}\n\n"), ended(usage=None)
    )
    assert isinstance(found, error) and found.kind == kind, found.text
    assert "{" not in found.text


def test_an_error_as_an_answer_is_known_by_its_beginning_if_nothing_was_used(rig: AcpRig) -> None:
    assert fails_planned(rig, chunk("API Error: 529 Overloaded"), ended(usage=None)).kind == "overloaded"


@pytest.mark.parametrize(
    "steps",
    [
        [chunk("API Error: 529 is what you asked about"), ended(usage={"inputTokens": 5, "outputTokens": 1})],
        [chunk("API Error: 529 is what you asked about"), ended()],
        [chunk("You asked about API Error: 529"), ended(usage=None)],
        [chunk("API Error: 529. " + "And much more. " * 200), ended(usage=None)],
        [status("idle"), chunk("a word of codex"), ended(usage=None)],
        [
            status("systemError"),
            chunk("of the model", "m1"),
            ended(usage={"inputTokens": 5, "outputTokens": 1}),
        ],
    ],
    ids=["used", "usage unknown", "other words", "long", "no failure", "by the model"],
)
def test_an_answer_about_errors_is_an_answer(rig: AcpRig, steps: list[dict[str, Any]]) -> None:
    assert take_planned(rig, *steps)[0].text


def test_a_session_that_is_full_is_lost_and_a_turn_that_is_too_long_fails(rig: AcpRig) -> None:
    full = "Codex ran out of room in the model's context window. Start a new thread."
    rig.plan(status("systemError"), chunk(full), ended(usage={"inputTokens": 0, "outputTokens": 0}))
    assert isinstance(fails(rig, session="s-7"), SessionLost)
    alone = fails(rig)
    assert not isinstance(alone, SessionLost) and alone.kind == "too_long"


def test_codex_does_not_wait_for_the_network_for_ever(rig: AcpRig) -> None:
    error = {
        "message": "Reconnecting... waiting for network",
        "additionalDetails": "Connection failed",
        "willRetry": True,
    }
    waiting = {"update": {"sessionUpdate": "session_info_update", "_meta": {"codex": {"error": error}}}}
    assert take_planned(rig, waiting, waiting, chunk("back again"))[0].text == "back again"
    found = fails_planned(rig, waiting, waiting, waiting, {"hang": True})
    assert isinstance(found, LaneError) and found.kind == "unreachable" and "Connection failed" in found.text
