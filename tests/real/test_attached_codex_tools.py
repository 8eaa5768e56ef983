"""The tools of the real Codex that is attached: their commands speak as the agent, and its dialogs reach the phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.model_server import ModelServer, Say
from tests.real.codex_desk import NAMES, WAYS, CodexDesk, open_desk, risky, shell
from tests.real.programs import Programs
from tests.support.cli import HIBOSS
from tests.support.waits import wait_until

SENDERS = """
SELECT a.kind || ':' || a.name AS sender FROM message m JOIN address a ON a.id = m.sender WHERE m.text = ?
"""
SANDBOXES = {
    "sandbox": 'sandbox_mode = "workspace-write"',
    "open": 'sandbox_mode = "danger-full-access"\napproval_policy = "never"',
}


def result_of(desk: CodexDesk, command: str) -> str:
    """Let Codex run a command for its person; return what the command wrote."""
    desk.server.script(shell(command), Say("It ran."))
    count = len(desk.server.turns)
    desk.codex.enter("run it")
    desk.server.wait_turns(count + 2)
    desk.wait_for_state("idle")
    return desk.server.turns[-1].tool_results[-1]


@pytest.fixture(params=WAYS, ids=NAMES)
def way(request: pytest.FixtureRequest) -> tuple[str, ...]:
    found: tuple[str, ...] = request.param
    return found


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_commands_of_its_tools_speak_as_the_agent_and_never_as_the_boss(
    tmp_path: Path, programs: Programs, server: ModelServer, way: tuple[str, ...], sandbox: str
) -> None:
    with open_desk(tmp_path, programs, server, way, config=SANDBOXES[sandbox]) as desk:
        said = result_of(desk, f"{HIBOSS} send boss 'all is green'")
        assert "exited with code 0" in said, said
        assert desk.office.rows(SENDERS, "all is green") == [{"sender": "agent:nex"}]
        kept = f"env -i PATH=$PATH HOME=$HOME HIBOSS_HOME={desk.office.daemon.home.path}"
        said = result_of(desk, f"{kept} {HIBOSS} send agent:nex 'I am the boss'")
        assert "exited with code 0" not in said, said
        assert desk.office.rows(SENDERS, "I am the boss") == []


# --- permissions ---------------------------------------------------------------------


@pytest.fixture
def asking(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    programs: Programs,
    server: ModelServer,
    way: tuple[str, ...],
) -> Iterator[CodexDesk]:
    with open_desk(tmp_path, programs, server, way, getattr(request, "param", None), asks=True) as desk:
        yield desk


@pytest.mark.parametrize(("button", "made"), [("allow", True), ("deny", False)])
def test_a_permission_is_asked_on_the_phone(
    asking: CodexDesk, server: ModelServer, button: str, made: bool
) -> None:
    server.script(risky("touch made"), Say("I tried it."))
    asking.codex.enter("make it")
    asking.presses(asking.question("touch made"), button)
    assert "Would you like to run" not in asking.codex.wait_for("I tried it.")
    assert (asking.codex.workspace / "made").exists() == made
    asking.wait_for_state("idle")


@pytest.mark.parametrize("asking", [{"api.attached_asks.CODEX_SECONDS": 1.0}], indirect=True, ids=["soon"])
def test_a_permission_that_nobody_answers_is_asked_in_the_terminal(
    asking: CodexDesk, server: ModelServer
) -> None:
    server.script(risky("touch made"), Say("I tried it."))
    asking.codex.enter("make it")
    # Whether its phone shows the question first is not waited for: on a busy machine it may be too late for that.
    wait_until(lambda: asking.office.rows("SELECT id FROM ask WHERE tool IS NOT NULL"))
    asking.codex.decide("Would you like to run", "y")
    asking.codex.wait_for("I tried it.")
    assert (asking.codex.workspace / "made").exists()
    asking.wait_for_state("idle")
    open_ones = "SELECT id FROM ask WHERE state = 'open'"
    wait_until(lambda: not asking.office.rows(open_ones))
