"""The rigs of two ACP agents: Claude Code and Codex behind the Agent Client Protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from hiboss.agents.providers.acp.provider import Acp
from hiboss.agents.providers.acp.settings import AcpSettings
from hiboss.testing.model_server import ModelServer, UseTool
from tests.real.harness_rig import HarnessRig
from tests.real.programs import Programs

NO_MODES = "whatever the agent wants to be allowed is asked, with low and medium autonomy alike"


class AcpRig(HarnessRig):
    """An agent that speaks the protocol."""

    name: ClassVar[str] = "acp"
    # The answer to a permission has no place for a reason.
    tells: ClassVar[frozenset[str]] = frozenset(("model", "usage", "context", "thinking"))

    def command(self) -> str:
        raise NotImplementedError

    def make(self, **settings: Any) -> Acp:
        return Acp(AcpSettings(**{"command": self.command(), **settings}))

    def missing(self) -> Acp:
        return self.make(command=str(self.directory / "nowhere" / "agent"))


class ClaudeAcpRig(AcpRig):
    """claude-agent-acp in a home of its own."""

    model: ClassVar[str] = "claude-sonnet-5-5"
    login: ClassVar[str] = "claude auth login"
    lacks: ClassVar[dict[str, str]] = {
        "a_file_is_written_without_a_question_with_medium_autonomy": NO_MODES,
    }

    def make(self, **settings: Any) -> Acp:
        if "model" in settings:  # it knows them by short names only
            settings["model"] = "sonnet"
        return super().make(**settings)

    def command(self) -> str:
        return self.programs.claude_acp

    def environment(self) -> dict[str, str]:
        home = self.directory / "home"
        home.mkdir(exist_ok=True)
        return {
            "HOME": str(home),
            "PATH": self.programs.path,
            "ANTHROPIC_BASE_URL": self.server.anthropic_url,
            "ANTHROPIC_API_KEY": self.key,
        }

    def shell(self, command: str) -> UseTool:
        return UseTool("Bash", {"command": command})

    def edit(self, path: str, text: str) -> UseTool:
        return UseTool("Write", {"file_path": path, "content": text})

    def question(self, text: str, *options: str) -> UseTool:
        given = [{"label": one, "description": f"the colour {one}"} for one in options]
        about = {"question": text, "header": "Choice", "options": given, "multiSelect": False}
        return UseTool("AskUserQuestion", {"questions": [about]})

    def logged_out(self) -> dict[str, str]:
        environment = self.environment()
        del environment["ANTHROPIC_API_KEY"]
        return environment


class CodexAcpRig(AcpRig):
    """codex-acp, logged in with the key of the model server."""

    model: ClassVar[str] = "gpt-5.5"
    login: ClassVar[str] = "codex login"
    lacks: ClassVar[dict[str, str]] = {}

    def __init__(self, directory: Path, programs: Programs, server: ModelServer) -> None:
        super().__init__(directory, programs, server)
        self.home = directory / "codex"
        self.home.mkdir()
        (self.home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": self.key}))
        self._configure(self.home)

    def _configure(self, home: Path) -> None:
        table = {"name": '"x"', "base_url": f'"{self.server.openai_url}"', "wire_api": '"responses"'}
        table |= {"requires_openai_auth": "true", "request_max_retries": "1", "stream_max_retries": "2"}
        lines = [f"{name} = {value}" for name, value in table.items()]
        known = [f'model = "{self.model}"', 'model_provider = "x"', "[model_providers.x]"]
        (home / "config.toml").write_text("\n".join([*known, *lines]) + "\n")

    def command(self) -> str:
        return self.programs.codex_acp

    def environment(self) -> dict[str, str]:
        return {"PATH": self.programs.path, "HOME": str(self.directory), "CODEX_HOME": str(self.home)}

    def shell(self, command: str) -> UseTool:
        return UseTool("exec_command", {"cmd": command})

    def risky(self, command: str) -> UseTool:
        more = {"sandbox_permissions": "require_escalated", "justification": "to see whether I may"}
        return UseTool("exec_command", {"cmd": command, **more})

    def edit(self, path: str, text: str) -> UseTool:
        added = "".join(f"+{line}\n" for line in text.splitlines())
        return UseTool("apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch")

    def question(self, text: str, *options: str) -> UseTool:
        choices = [{"label": one, "description": f"it is {one}"} for one in options]
        asked = {"id": "answer", "header": "Question", "question": text, "options": choices}
        return UseTool("request_user_input", {"questions": [asked]})

    def logged_out(self) -> dict[str, str]:
        empty = self.directory / "empty"
        empty.mkdir(exist_ok=True)
        self._configure(empty)
        return {**self.environment(), "CODEX_HOME": str(empty)}
