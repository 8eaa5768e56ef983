"""The rig of Codex: a model provider on the model server, and a CODEX_HOME of each test."""

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


class CodexRig(HarnessRig):
    """Codex, logged in with the key of the model server."""

    name: ClassVar[str] = "codex"
    model: ClassVar[str] = "gpt-5.5"
    login: ClassVar[str] = "codex login"

    def __init__(self, directory: Path, programs: Programs, server: ModelServer) -> None:
        super().__init__(directory, programs, server)
        self.home = directory / "codex"
        self.home.mkdir()
        (self.home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": self.key}))

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
        known = {"name": '"x"', "base_url": f'"{self.server.openai_url}"', "wire_api": '"responses"'}
        known |= {"requires_openai_auth": "true", "request_max_retries": "1", "stream_max_retries": "2"}
        table = ", ".join(f"{name} = {value}" for name, value in {**known, **facts}.items())
        return shlex.join(["-c", f"model_providers.x={{{table}}}", "-c", "model_provider=x"])

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
        empty = self.directory / "empty"
        empty.mkdir(exist_ok=True)
        return {**self.environment(), "CODEX_HOME": str(empty)}

    def budget(self) -> dict[str, Any]:
        return {"max_tokens": 1_000}
