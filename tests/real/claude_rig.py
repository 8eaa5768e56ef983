"""The rig of Claude Code, in a home of each test; and what it shares with Claude Code behind ACP."""

from __future__ import annotations

from typing import Any, ClassVar

from hiboss.agents.providers.claude.provider import Claude
from hiboss.agents.providers.claude.settings import ClaudeSettings
from hiboss.testing.model_server import UseTool
from tests.real.harness_rig import HarnessRig


class ClaudeProgram(HarnessRig):
    """Claude Code, however it is started."""

    login: ClassVar[str] = "claude auth login"

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


class ClaudeRig(ClaudeProgram):
    """`claude -p`, which the provider `claude` starts."""

    name: ClassVar[str] = "claude"
    model: ClassVar[str] = "claude-sonnet-5"

    def make(self, **settings: Any) -> Claude:
        return Claude(ClaudeSettings(**{"program": self.programs.claude, **settings}))

    def budget(self) -> dict[str, Any]:
        return {"max_cost": 0.0005}
