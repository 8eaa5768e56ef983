"""The rigs of two ACP agents: Claude Code and Codex behind the Agent Client Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from hiboss.agents.providers.acp.provider import Acp
from hiboss.agents.providers.acp.settings import AcpSettings
from hiboss.testing.model_server import UseTool
from tests.real.claude_rig import ClaudeProgram
from tests.real.codex_rig import OUTSIDE, CodexProgram
from tests.real.harness_rig import HarnessRig


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


class ClaudeAcpRig(AcpRig, ClaudeProgram):
    """claude-agent-acp in a home of its own."""

    model: ClassVar[str] = "claude-sonnet-5-5"
    # Whatever the agent wants to be allowed is asked, with low and medium autonomy alike.
    asks_to_write: ClassVar[bool] = True

    def make(self, **settings: Any) -> Acp:
        if "model" in settings:  # it knows them by short names only
            settings["model"] = "sonnet"
        return super().make(**settings)

    def command(self) -> str:
        return self.programs.claude_acp


class CodexAcpRig(AcpRig, CodexProgram):
    """codex-acp, logged in with the key of the model server."""

    def new_home(self, name: str) -> Path:
        home = super().new_home(name)
        known = [f'model = "{self.model}"', 'model_provider = "x"', "[model_providers.x]"]
        lines = [f"{name} = {value}" for name, value in self.model_provider().items()]
        (home / "config.toml").write_text("\n".join([*known, *lines]) + "\n")
        return home

    def command(self) -> str:
        return self.programs.codex_acp

    def risky(self, command: str) -> UseTool:
        return UseTool("exec_command", {"cmd": command, **OUTSIDE})
