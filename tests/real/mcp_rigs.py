"""A harness that has hiboss as an MCP server, put there by `hiboss mcp install`, in a HOME of its own."""

from __future__ import annotations

import json
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import psutil

from hiboss.testing.model_server import ModelServer, Request, UseTool
from hiboss.testing.running_daemon import RunningDaemon
from tests.real.processes import processes_with
from tests.real.programs import Programs
from tests.support.cli import HIBOSS
from tests.support.parties import Party, boss
from tests.support.waits import wait_until

SECONDS = 90.0  # a limit for every wait: a defect, not a measure
MOST_SEARCHES = 100  # a model that answers at once is faster than the start of a server
NOT_YET = "No matching deferred tools found"  # what Claude Code says of a search meanwhile
MARK = "MCP_RIG"  # names in the environment the processes of a rig


class McpRig(ABC):
    """One harness, and the daemon with agent nex, which fetches its mail itself."""

    client: ClassVar[str]  # as `hiboss mcp install --client` names it
    login: ClassVar[dict[str, str]] = {}  # variables that log it in

    def __init__(
        self, directory: Path, programs: Programs, server: ModelServer, daemon: RunningDaemon
    ) -> None:
        self.programs, self.server, self.daemon = programs, server, daemon
        self.home = directory / "person"
        self.workspace = directory / "workspace"
        for one in (self.home, self.workspace):
            one.mkdir()
        self.environment_more: dict[str, str] = {}
        self.ada = boss(daemon)
        self.nex = Party(daemon, "agent:nex", daemon.token("nex"))
        self.ada.call("agent.set", name="nex", mode="pull")

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command that takes one turn, with the prompt on standard input."""

    @abstractmethod
    def tool(self, name: str) -> str:
        """Return the name that the harness gives a tool of hiboss."""

    @abstractmethod
    def search(self) -> UseTool:
        """Return the step in which the model looks for the tools: harnesses do not give it all of them."""

    @abstractmethod
    def reads(self, uri: str) -> UseTool:
        """Return the step in which the model reads a resource."""

    @abstractmethod
    def answer(self, out: str) -> str:
        """Return what the model said at the end of a turn."""

    def use(self, name: str, *, hold: bool = False, **arguments: Any) -> UseTool:
        """Return the step in which the model calls a tool of hiboss."""
        return UseTool(self.tool(name), arguments, hold=hold)

    @abstractmethod
    def has_tools(self, request: Request) -> bool:
        """Tell whether the model has found the tools of hiboss."""

    def script(self, *steps: Any) -> None:
        """Let the model look for the tools until they are there, then take these steps."""
        self.server.when(lambda one: not self.has_tools(one), *[self.search()] * MOST_SEARCHES)
        self.server.script(*steps)

    def environment(self) -> dict[str, str]:
        """Return the environment of the harness. It does not name the home of hiboss: the entry does."""
        return {
            "HOME": str(self.home),
            "PATH": self.programs.path,
            "LANG": "C.UTF-8",
            MARK: str(self.home),
            **self.login,
            **self.environment_more,
        }

    def hiboss(self, *words: str) -> str:
        """Run a command as the person whose home it is."""
        environment = {**self.environment(), "HIBOSS_HOME": self.daemon.home.path}
        return self.run([HIBOSS, *words], environment)

    def run(self, words: Sequence[str], environment: dict[str, str] | None = None) -> str:
        """Run a command in the workspace, and return what it prints."""
        done = subprocess.run(
            words,
            env=environment or self.environment(),
            cwd=self.workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def install(self, *words: str) -> str:
        return self.hiboss("mcp", "install", "--client", self.client, *words)

    @contextmanager
    def turn(self, prompt: str = "do it") -> Iterator[Turn]:
        """Begin a turn of a new session; at the end of the block wait for its answer."""
        self.worker()  # it is there: a busy machine needs seconds for that
        process = subprocess.Popen(
            self.command(),
            env=self.environment(),
            cwd=self.workspace,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        made = Turn(self, process, len(self.server.turns))
        try:
            assert process.stdin is not None
            process.stdin.write(prompt)
            process.stdin.close()
            process.stdin = None
            yield made
            made.finish()
        finally:
            process.kill()
            process.wait()
            self.end()

    def take(self, *steps: Any) -> list[Any]:
        """Let the model take these steps in a session, and return the results of its tools."""
        self.script(*steps)
        with self.turn() as turn:
            pass
        return turn.results

    def worker(self) -> int:
        """Return the process of the MCP worker, which is started if none runs."""
        return int(self.ada.call("mcp.start")["pid"])

    def kill_worker(self) -> None:
        """End the MCP worker with kill -9."""
        worker = psutil.Process(self.worker())
        worker.send_signal(signal.SIGKILL)
        wait_until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)

    def end(self) -> None:
        """Wait until the processes of the harness are gone; end them if they do not go."""
        _, alive = psutil.wait_procs(processes_with(MARK, [str(self.home)]), timeout=SECONDS)
        for one in alive:
            one.kill()
        assert not alive, f"left behind: {alive}"


class Turn:
    """A turn under way."""

    def __init__(self, rig: McpRig, process: subprocess.Popen[str], before: int) -> None:
        self._rig, self._process, self._before = rig, process, before
        self.said = ""  # the answer
        self.complaints = ""

    @property
    def results(self) -> list[Any]:
        """What tools of hiboss have returned so far, JSON as objects. A search for tools returns no text."""
        turns = self._rig.server.turns[self._before :]
        found = turns[-1].tool_results if turns else []
        return [read_result(one) for one in found if one.strip() and not one.startswith(NOT_YET)]

    def held(self) -> None:
        """Wait until the model is about to call the tool that is held."""
        self._rig.server.wait_held(1, SECONDS)

    def finish(self) -> None:
        out, self.complaints = self._process.communicate(timeout=SECONDS)
        assert self._process.returncode == 0, out + self.complaints
        self.said = self._rig.answer(out)
        assert not self._rig.server.plan.common.left, out + self.complaints


def read_result(text: str) -> Any:
    """Return the JSON of a result, or the text if it is none. Codex puts lines before it."""
    last = text.rstrip().splitlines()[-1]
    try:
        return json.loads(last)
    except ValueError:
        return text


class ClaudeRig(McpRig):
    """`claude -p`. It speaks the new era of the protocol."""

    client = "claude"
    login: ClassVar = {
        "ANTHROPIC_API_KEY": "sk-ant-canary-mcp-7f3a",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",  # it begins when its servers are there
        "MCP_CONNECT_TIMEOUT_MS": "60000",
        "DISABLE_AUTOUPDATER": "1",
    }

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "ANTHROPIC_BASE_URL": self.server.anthropic_url}

    def command(self) -> list[str]:
        return [self.programs.claude, "-p", "--output-format", "json", "--allowedTools", "mcp__hiboss"]

    def tool(self, name: str) -> str:
        return f"mcp__hiboss__{name}"

    def search(self) -> UseTool:
        return UseTool("ToolSearch", {"query": "hiboss", "max_results": 20})

    def has_tools(self, request: Request) -> bool:
        return '"tool_reference"' in json.dumps(request.body["messages"])

    def reads(self, uri: str) -> UseTool:
        return UseTool("ReadMcpResourceTool", {"server": "hiboss", "uri": uri})

    def answer(self, out: str) -> str:
        found = json.loads(out)
        assert not found["is_error"] and not found["permission_denials"], out
        return str(found["result"])


class CodexRig(McpRig):
    """`codex exec`. It speaks the old era of the protocol."""

    client = "codex"

    def __init__(
        self, directory: Path, programs: Programs, server: ModelServer, daemon: RunningDaemon
    ) -> None:
        super().__init__(directory, programs, server, daemon)
        self.config = self.home / ".codex" / "config.toml"
        self.config.parent.mkdir()
        (self.config.parent / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-canary-7f3a"}))
        door = f'base_url = "{server.openai_url}", wire_api = "responses", requires_openai_auth = true'
        retries = "request_max_retries = 1, stream_max_retries = 1"
        self.config.write_text(
            'model = "gpt-5.5"\nmodel_provider = "x"\nanalytics.enabled = false\n'
            f'model_providers.x = {{ name = "x", {door}, {retries} }}\n'
        )

    def set(self, *lines: str) -> None:
        """Add lines to the entry, as a person does who wants more than `hiboss mcp install` writes."""
        table = "[mcp_servers.hiboss]\n"
        text = self.config.read_text()
        assert text.count(table) == 1
        self.config.write_text(text.replace(table, table + "".join(f"{one}\n" for one in lines)))

    def command(self) -> list[str]:
        return [self.programs.codex, "exec", "--json", "--skip-git-repo-check", "-"]

    def tool(self, name: str) -> str:
        return name  # in a namespace, which the model server adds

    def search(self) -> UseTool:
        return UseTool("tool_search", {"query": "hiboss mail chat", "limit": 20})

    def has_tools(self, request: Request) -> bool:
        return "send" in request.tools

    def reads(self, uri: str) -> UseTool:
        return UseTool("read_mcp_resource", {"server": "hiboss", "uri": uri})

    def answer(self, out: str) -> str:
        items = [json.loads(line).get("item") or {} for line in out.splitlines()]
        said = [one["text"] for one in items if one.get("type") == "agent_message"]
        return str(said[-1]) if said else ""


def open_asks(party: Party) -> list[dict[str, Any]]:
    return [one for one in party.call("ask.list")["asks"] if one["state"] == "open"]
