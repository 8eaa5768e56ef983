"""The real Codex with hiboss as its MCP server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hiboss.testing.model_server import ModelServer, Say, UseTool
from tests.real.codex_desk import CodexDesk, office_of
from tests.real.mcp_contract import DONE, McpContract
from tests.real.mcp_rigs import CodexRig, McpRig
from tests.real.programs import Programs
from tests.support.cli import HIBOSS
from tests.support.parties import agent

APPROVED = 'default_tools_approval_mode = "approve"'
SENDERS = """
SELECT a.kind || ':' || a.name AS sender FROM message m JOIN address a ON a.id = m.sender WHERE m.text = ?
"""


class TestCodex(McpContract):
    rig_class = CodexRig

    def allow(self, rig: McpRig) -> None:
        # `codex exec` has nobody to ask, and its model may be faster than the start of a server.
        assert isinstance(rig, CodexRig)
        rig.set(APPROVED, "required = true")

    @pytest.mark.parametrize("scope", ["user", "project"])
    def test_it_lists_the_server(self, rig: CodexRig, scope: str) -> None:
        if scope == "project":
            rig.hiboss("mcp", "remove", "--client", "codex")
            rig.install("--agent", "nex", "--scope", "project")
            # Codex takes the settings of a project that its person trusts.
            assert "hiboss" not in rig.run([rig.programs.codex, "mcp", "list"])
            with rig.config.open("a") as file:
                file.write(f'\nprojects."{rig.workspace}".trust_level = "trusted"\n')
        [server] = json.loads(rig.run([rig.programs.codex, "mcp", "list", "--json"]))
        assert (server["name"], server["enabled"]) == ("hiboss", True)
        assert server["transport"]["command"] == HIBOSS
        assert server["transport"]["args"] == ["mcp", "--or-as", "nex"]

    def test_a_change_of_the_agent_keeps_what_was_added(self, rig: CodexRig) -> None:
        agent(rig.daemon, "lin", profile=True)
        rig.install("--agent", "lin")
        assert APPROVED in rig.config.read_text()
        [sent] = rig.take(rig.use("send", to=["user:boss"], text="two herons"), DONE)
        assert rig.ada.get(sent["ids"][0])["from"] == "agent:lin"

    def test_without_approval_it_reads_and_does_not_send(self, rig: CodexRig) -> None:
        rig.hiboss("mcp", "remove", "--client", "codex")
        rig.install("--agent", "nex")
        told = rig.ada.tell(rig.nex, text="How is the build?")
        refused, shown = rig.take(
            rig.use("send", to=["user:boss"], text="two herons"), rig.use("inbox"), DONE
        )
        assert "requires approval" in refused
        assert [one["id"] for one in shown["envelopes"]] == [told]
        assert rig.ada.ids() == []


@pytest.fixture
def desk(tmp_path: Path, programs: Programs, server: ModelServer) -> Iterator[CodexDesk]:
    """An open session that hooks attach to nex; the entry of the MCP server names nobody."""
    with office_of(tmp_path) as office:
        made = CodexDesk(office, tmp_path / "desk", programs, server)
        made.hiboss("mcp", "install", "--client", "codex")
        office.boss.call("mcp.start")  # a busy machine needs seconds for that
        config = made.codex.home / "config.toml"
        table = "[mcp_servers.hiboss]\n"
        config.write_text(config.read_text().replace(table, f"{table}{APPROVED}\n"))
        made.codex.trust_all()
        made.pair()
        with made.codex:
            made.open()
            yield made


def test_in_an_attached_session_it_speaks_as_the_agent_of_the_session(
    desk: CodexDesk, server: ModelServer
) -> None:
    search = UseTool("tool_search", {"query": "hiboss mail"})
    send = UseTool("send", {"to": ["user:boss"], "text": "two herons"})
    server.when(lambda one: "send" not in one.tools, *[search] * 100)
    server.script(send, Say("sent it"))
    desk.codex.enter("tell the boss")
    desk.codex.wait_for("sent it")
    assert desk.office.rows(SENDERS, "two herons") == [{"sender": "agent:nex"}]
    desk.wait_answer("two herons")
