"""The real Claude Code with hiboss as its MCP server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.mcp.tools import TABLE
from hiboss.testing.model_server import ModelServer, Say, UseTool
from tests.real.attached_desk import ALLOWED, Desk, open_office, opened
from tests.real.mcp_contract import DONE, McpContract
from tests.real.mcp_rigs import ClaudeRig, McpRig
from tests.real.programs import Programs
from tests.support.cli import HIBOSS

SENDERS = """
SELECT a.kind || ':' || a.name AS sender FROM message m JOIN address a ON a.id = m.sender WHERE m.text = ?
"""


class TestClaude(McpContract):
    rig_class = ClaudeRig

    @pytest.mark.parametrize("scope", ["user", "project"])
    def test_it_lists_the_server(self, rig: McpRig, scope: str) -> None:
        if scope == "project":
            rig.hiboss("mcp", "remove", "--client", "claude")
            rig.install("--agent", "nex", "--scope", "project")
        shown = rig.run([rig.programs.claude, "mcp", "list"])
        assert f"hiboss: {HIBOSS} mcp --or-as nex - " in shown
        # Claude Code asks its person before it starts what a project brings.
        assert ("✔ Connected" if scope == "user" else "Pending approval") in shown

    def test_without_its_search_the_model_has_the_schemas(self, rig: McpRig) -> None:
        rig.environment_more["ENABLE_TOOL_SEARCH"] = "false"
        rig.server.script(DONE)
        with rig.turn():
            pass
        tools = rig.server.turns[-1].tools
        for name, tool in TABLE.items():
            assert tools[rig.tool(name)]["input_schema"]["properties"] == tool.schema["properties"], name

    def test_the_briefing_is_a_command(self, rig: McpRig) -> None:
        rig.server.script(DONE)
        with rig.turn("/mcp__hiboss__briefing"):
            pass
        assert "You are agent:nex" in rig.server.turns[-1].everything


@pytest.fixture
def desk(tmp_path: Path, programs: Programs, server: ModelServer) -> Iterator[Desk]:
    """An open session that hooks attach to nex; the entry of the MCP server names nobody."""
    rules = {"permissions": {"allow": [*ALLOWED["permissions"]["allow"], "mcp__hiboss"]}}
    with open_office(tmp_path) as office:
        made = Desk(office, tmp_path, programs, server, settings=rules)
        made.hiboss("mcp", "install", "--client", "claude")
        office.boss.call("mcp.start")  # a busy machine needs seconds for that
        with opened(made):
            yield made


def test_in_an_attached_session_it_speaks_as_the_agent_of_the_session(
    desk: Desk, server: ModelServer
) -> None:
    send = UseTool("mcp__hiboss__send", {"to": ["user:boss"], "text": "two herons"})
    search = UseTool("ToolSearch", {"query": "hiboss"})
    server.script(search, send, Say("sent it"))
    desk.claude.enter("tell the boss")
    desk.claude.wait_for("sent it")
    assert desk.office.rows(SENDERS, "two herons") == [{"sender": "agent:nex"}]
    desk.wait_answer("two herons")
