"""Programs for the provider `acp`: those that are no agents, those that do not end, and how one is found."""

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import Any

import pytest

from hiboss.agents.providers.acp import known_agents
from hiboss.agents.providers.acp.provider import Acp
from hiboss.agents.providers.acp.settings import AcpSettings
from hiboss.core.contracts.failures import LaneError
from hiboss.core.contracts.provider import Finding
from hiboss.testing.provider_contract import SECONDS
from tests.agents.acp_rig import AGENT, AcpRig, chunk, take, take_planned
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
    caught = raised(LaneError, take, rig, says=words)
    assert caught.kind == "bad_arguments"


def test_an_agent_of_another_version_of_the_protocol_is_refused(rig: AcpRig) -> None:
    rig.plan(initialize={"result": {"protocolVersion": 2}})
    caught = raised(LaneError, take, rig, says="speaks version 2")
    assert caught.kind == "outdated"


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
    caught = raised(LaneError, take, rig, workspace=str(rig.directory / "gone"))
    assert caught.kind == "no_workspace"


def test_an_agent_that_does_not_end_with_its_input_is_ended(rig: AcpRig) -> None:
    script = rig.directory / "deaf.py"
    shutil.copy(AGENT, script)
    script.write_text(
        script.read_text().replace("        sys.exit(0)\n", "        import time; time.sleep(1000)\n")
    )
    rig._command = f"{sys.executable} -I -S deaf.py plan.json"
    assert take_planned(rig, chunk("hello"))[0].text == "hello"


# --- find ------------------------------------------------------------------------------


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
    away = found(rig, environment={"PATH": "/nowhere", "HOME": "/nowhere"})
    assert away == Finding(
        problem="the program gemini was not found", help="npm install -g @google/gemini-cli"
    )


def test_an_agent_that_stays_silent_is_not_waited_for(rig: AcpRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiboss.agents.providers.acp.provider.FIND_SECONDS", 0.2)
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
