"""The provider `claude` with the real Claude Code, against the scripted model server."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from hiboss.agents.providers.claude.provider import Claude
from hiboss.agents.providers.claude.settings import ClaudeSettings
from hiboss.testing.model_server import Say, UseTool
from tests.real.harness_contract import HarnessContract
from tests.real.harness_rig import HarnessRig, Turn


class ClaudeRig(HarnessRig):
    """Claude Code in a home of its own."""

    name: ClassVar[str] = "claude"
    model: ClassVar[str] = "claude-sonnet-5"
    login: ClassVar[str] = "claude auth login"

    def make(self, **settings: Any) -> Claude:
        return Claude(ClaudeSettings(**{"program": self.programs.claude, **settings}))

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

    def budget(self) -> dict[str, Any]:
        return {"max_cost": 0.0005}


class TestClaude(HarnessContract):
    rig_class = ClaudeRig

    def test_an_empty_answer_is_no_failure(self, rig: HarnessRig) -> None:
        """Claude Code asks the model once more for something to show."""

        async def story() -> None:
            rig.server.script(rig.shell("echo done > done.txt"), Say(""), Say(""))
            assert (await Turn(rig, "do it quietly", autonomy="high").answer()).text == ""
            assert (rig.workspace / "done.txt").exists()

        asyncio.run(story())
