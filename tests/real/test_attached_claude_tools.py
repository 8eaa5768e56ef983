"""Commands that the real Claude Code runs with its Bash tool, while it is open as agent:nex: who speaks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hiboss.testing.model_server import ModelServer, Say
from tests.real.attached_desk import Desk
from tests.support.cli import HIBOSS

_SENT = """
SELECT a.kind || ':' || a.name AS sender, m.run FROM message m JOIN address a ON a.id = m.sender WHERE m.text = ?
"""


def test_a_command_of_a_tool_speaks_as_the_agent(desk: Desk, server: ModelServer) -> None:
    server.script(desk.tool("hiboss send boss 'two herons'"), Say("sent it"))
    desk.claude.enter("tell the boss")
    desk.claude.wait_for("sent it")
    assert desk.office.rows(_SENT, "two herons") == [{"sender": "agent:nex", "run": None}]
    desk.wait_answer("two herons")


@pytest.mark.parametrize("stripped", ["HIBOSS_AGENT", "CLAUDE_CODE_SESSION_ID"])
def test_one_variable_is_enough_to_speak_as_the_agent(desk: Desk, server: ModelServer, stripped: str) -> None:
    server.script(desk.tool(f"env -u {stripped} hiboss send boss 'two herons'"), Say("sent it"))
    desk.claude.enter("tell the boss")
    desk.claude.wait_for("sent it")
    assert desk.office.rows(_SENT, "two herons") == [{"sender": "agent:nex", "run": None}]


def test_a_command_in_a_turn_with_mail_belongs_to_that_run(desk: Desk) -> None:
    question = "How is the build?"
    desk.answers(question, desk.tool("hiboss send boss 'two herons'"))
    desk.server.script(Say("NO_REPLY"))
    envelope = desk.asks(question)
    desk.wait_receipt(envelope, "done")
    [run] = desk.runs()
    assert desk.office.rows(_SENT, "two herons") == [{"sender": "agent:nex", "run": run["id"]}]
    desk.wait_answer("two herons")
    assert desk.count("NO_REPLY") == 0


def test_a_session_that_reads_its_mail_itself_has_seen_it(desk: Desk) -> None:
    question = "How is the build?"
    desk.answers(question, desk.tool("hiboss inbox; hiboss read e1 e2 e3 e4 || true"), Say("All is green."))
    desk.server.script(Say("All is green."))
    envelope = desk.asks(question)
    desk.wait_answer("All is green.")
    desk.check_done(envelope)


_NAMES = "env | grep -E '^(HIBOSS|CLAUDE|AI_AGENT|ANTHROPIC)' | cut -d= -f1 | sed 's/^/-u /' | tr '\\n' ' '"


@pytest.mark.parametrize("how", ["all", "named", "shell"])
def test_with_all_variables_stripped_it_is_refused_and_nothing_is_sent(
    desk: Desk, server: ModelServer, how: str
) -> None:
    kept = f"HOME=$HOME PATH=$PATH HIBOSS_HOME={desk.office.daemon.home.path}"
    send = f"{HIBOSS} send nex 'the boss says yes'"
    command = {
        "all": f"env -i {kept} {send}",
        "named": f"env $({_NAMES}) {kept} {send}",
        "shell": f'env -i {kept} bash -c "bash -c \\"{send}; true\\"; true"',
    }[how]
    server.script(desk.tool(f"{command}; echo status $?"), Say("tried it"))
    desk.claude.enter("be the boss")
    desk.claude.wait_for("tried it")
    said = server.turns[-1].tool_results[-1]
    assert "agent_not_named" in said, said
    assert desk.office.rows(_SENT, "the boss says yes") == []


def test_claude_in_a_tool_is_not_attached_and_does_not_hang(desk: Desk, server: ModelServer) -> None:
    server.when(lambda one: one.last_user == "nested question", Say("nested answer"))
    server.script(desk.tool("claude -p 'nested question' < /dev/null"), Say("asked it"))
    desk.claude.enter("ask another one")
    desk.claude.wait_for("asked it")
    assert "nested answer" in server.turns[-1].tool_results[-1]
    desk.wait_idle()
    assert len(desk.attached()) == 1
    assert [one["name"] for one in desk.office.boss.call("agent.list")["agents"]] == ["nex"]
    desk.says("How is the build?", "All is green.")
    desk.check_done(desk.asks("How is the build?"))
    assert desk.count("nested") == 0


def test_the_token_of_a_session_is_the_persons_own_file_and_ends_with_it(desk: Desk) -> None:
    place = Path(desk.office.daemon.home.path, "sessions")
    [file] = [one for one in place.glob("claude-*") if desk.claude.session_id in one.name]
    assert os.stat(file).st_mode & 0o777 == 0o600
    desk.claude.close()
    desk.wait_idle(0)
    assert not file.exists()
    assert desk.office.rows("SELECT id FROM token WHERE attached IS NOT NULL AND revoked_at IS NULL") == []
