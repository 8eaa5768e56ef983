"""The rig of Codex: a model provider on the model server, and a CODEX_HOME of each test; and what it shares with ACP."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from hiboss.agents.providers.codex.provider import Codex
from hiboss.core.option_models import load
from hiboss.testing.model_server import ModelServer, UseTool
from tests.real.harness_rig import HarnessRig
from tests.real.programs import Programs

OUTSIDE = {"sandbox_permissions": "require_escalated", "justification": "It is outside of the sandbox."}


class CodexProgram(HarnessRig):
    """Codex, however it is started, logged in with the key of the model server."""

    model: ClassVar[str] = "gpt-5.5"
    login: ClassVar[str] = "codex login"

    def __init__(self, directory: Path, programs: Programs, server: ModelServer) -> None:
        super().__init__(directory, programs, server)
        self.home = self.new_home("codex")
        (self.home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": self.key}))

    def new_home(self, name: str) -> Path:
        """Return a CODEX_HOME in which nobody is logged in."""
        home = self.directory / name
        home.mkdir(exist_ok=True)
        return home

    def model_provider(self, **facts: str) -> dict[str, str]:
        """Return the fields of a model provider, as TOML; `facts` are more of them."""
        known = {"name": '"x"', "base_url": f'"{self.server.openai_url}"', "wire_api": '"responses"'}
        known |= {"requires_openai_auth": "true", "request_max_retries": "1", "stream_max_retries": "2"}
        return {**known, **facts}

    def environment(self) -> dict[str, str]:
        return {"PATH": self.programs.path, "HOME": str(self.directory), "CODEX_HOME": str(self.home)}

    def shell(self, command: str) -> UseTool:
        return UseTool("exec_command", {"cmd": command})

    def edit(self, path: str, text: str) -> UseTool:
        added = "".join(f"+{line}\n" for line in text.splitlines())
        return UseTool("apply_patch", f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch")

    def question(self, text: str, *options: str) -> UseTool:
        choices = [{"label": one, "description": f"it is {one}"} for one in options]
        asked = {"id": "answer", "header": "Question", "question": text, "options": choices}
        return UseTool("request_user_input", {"questions": [asked]})

    def logged_out(self) -> dict[str, str]:
        return {**self.environment(), "CODEX_HOME": str(self.new_home("empty"))}


class CodexRig(CodexProgram):
    """`codex app-server`, which the provider `codex` starts."""

    name: ClassVar[str] = "codex"

    def make(self, **settings: Any) -> Codex:
        if settings.get("autonomy") == "low":
            self._ask_first()
        known = {"program": self.programs.codex, "model": self.model, "arguments": self.arguments()}
        secrets = {"api_key": settings.pop("api_key")} if "api_key" in settings else {}
        return Codex(load(Codex.Settings, {**known, **settings}, secrets))

    def _ask_first(self) -> None:
        """Let the model do what a real one does in a read-only sandbox: it asks to run a command outside."""
        queue = self.server.plan.common
        for step in [queue.take() for _ in queue.left]:
            if isinstance(step, UseTool) and step.name == "exec_command" and isinstance(step.input, Mapping):
                step = replace(step, input={**step.input, **OUTSIDE})
            queue.add(*filter(None, [step]))

    def arguments(self, **facts: str) -> str:
        """Return arguments with a model provider; `facts` are more fields of it, as TOML."""
        table = ", ".join(f"{name} = {value}" for name, value in self.model_provider(**facts).items())
        return shlex.join(["-c", f"model_providers.x={{{table}}}", "-c", "model_provider=x"])

    def budget(self) -> dict[str, Any]:
        return {"max_tokens": 1_000}
