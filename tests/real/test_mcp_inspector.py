"""The inspector of the Model Context Protocol lists and calls what hiboss serves, and has no complaint."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiboss.mcp.tools import TABLE
from tests.real.programs import Programs
from tests.support.cli import HIBOSS
from tests.support.parties import Party, boss
from tests.support.web_daemons import WebDaemon, web_daemon

SECONDS = 60.0
# What it says about itself on standard error, whoever the server is.
ABOUT_ITSELF = "[mcp-inspector]"


class Inspector:
    """The inspector on the command line, with one server, by one transport and era of the protocol."""

    def __init__(self, programs: Programs, directory: Path, target: list[str], era: str) -> None:
        self._command = [programs.inspector, "--cli", *target, "--protocol-era", era, "--format", "json"]
        self._environment = {
            "HOME": str(directory),
            "PATH": programs.path,
            "LANG": "C.UTF-8",
            "MCP_INSPECTOR_SECRET_STORE": "memory",
        }

    def run(self, *words: str) -> tuple[int, str, str]:
        """Return the exit status, what it printed, and its complaints."""
        done = subprocess.run(
            [*self._command, *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        complaints = [line for line in done.stderr.splitlines() if not line.startswith(ABOUT_ITSELF)]
        return done.returncode, done.stdout, "\n".join(complaints).strip()

    def ask(self, method: str, *words: str) -> Any:
        """Return the result of a method that works without a complaint."""
        status, out, complaints = self.run("--method", method, *words)
        assert (status, complaints) == (0, ""), (out, complaints)
        return json.loads(out)["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        found = self.ask("tools/call", *given)
        assert not found.get("isError"), found
        return found["structuredContent"]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDaemon]:
    with web_daemon(tmp_path_factory.mktemp("inspected")) as made:
        boss(made).call("agent.set", name="nex", mode="pull")
        yield made


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, daemon: WebDaemon, tmp_path: Path) -> list[str]:
    """The words that name the server: the entry that hiboss prints for clients, or the address."""
    if request.param == "http":
        return [f"{daemon.url}/mcp", "--header", f"Authorization: Bearer {daemon.token('nex')}"]
    environment = {**os.environ, "HOME": str(tmp_path), "HIBOSS_HOME": daemon.home.path}
    words = [HIBOSS, "mcp", "install", "--client", "json", "--agent", "nex"]
    entry = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    file = tmp_path / "mcp.json"
    file.write_text(entry)
    return ["--config", str(file), "--server", "hiboss"]


@pytest.fixture(params=["legacy", "modern"])
def inspector(
    request: pytest.FixtureRequest, programs: Programs, tmp_path: Path, target: list[str]
) -> Inspector:
    return Inspector(programs, tmp_path, target, request.param)


def test_it_lists_all_without_a_complaint(inspector: Inspector) -> None:
    tools = inspector.ask("tools/list", "--strict")["tools"]
    assert [one["name"] for one in tools] == list(TABLE)
    resources = inspector.ask("resources/list")["resources"]
    assert [one["uri"] for one in resources] == ["ui://chat/inbox", "ui://chat/head", "ui://agent/status"]
    [template] = inspector.ask("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "ui://chat/message/{id}"
    [prompt] = inspector.ask("prompts/list")["prompts"]
    assert prompt["name"] == "briefing"


def test_it_calls_tools_and_reads(inspector: Inspector, daemon: WebDaemon) -> None:
    ada, nex = boss(daemon), Party(daemon, "agent:nex", daemon.token("nex"))
    sent = inspector.call("send", to=["user:boss"], text="two herons")
    assert ada.get(sent["ids"][0])["text"] == "two herons"
    told = ada.tell(nex, text="three herons")
    assert told in [one["id"] for one in inspector.call("inbox")["envelopes"]]
    posted = inspector.call("chat_assistant_post", content="four herons")
    [read] = inspector.ask("resources/read", "--uri", "ui://chat/inbox")["contents"]
    newest = json.loads(read["text"])["messages"][-1]
    assert (newest["id"], newest["content"]) == (posted["id"], "four herons")
    [said] = inspector.ask("prompts/get", "--prompt-name", "briefing")["messages"]
    assert "You are agent:nex" in said["content"]["text"]


def test_it_shows_why_a_call_is_refused(inspector: Inspector) -> None:
    given = json.dumps({"to": ["agent:nobody"], "text": "hello"})
    words = ("--method", "tools/call", "--tool-name", "send", "--tool-args-json", given)
    status, out, complaints = inspector.run(*words)
    assert status != 0
    assert "unknown_recipient" in out, complaints


def test_without_a_token_it_is_told_so(programs: Programs, tmp_path: Path, daemon: WebDaemon) -> None:
    inspector = Inspector(programs, tmp_path, [f"{daemon.url}/mcp", "--stored-auth-only"], "legacy")
    status, _, complaints = inspector.run("--method", "tools/list")
    assert status != 0 and "no_token" in complaints
