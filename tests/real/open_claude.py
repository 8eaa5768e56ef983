"""An open session of the real Claude Code: the program a person has on the screen, in a pseudo-terminal.

with OpenClaude(tmp_path, programs, server) as claude:
    claude.enter("hello")
    claude.wait_for("You said: hello")

Its home, its settings and its workspace are its own. A later one in the same directory can `--resume` it.
"""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from hiboss.testing.model_server import ModelServer
from tests.real.open_terminal import OpenTerminal
from tests.real.programs import Programs


class OpenClaude(OpenTerminal):
    """One interactive session. As a context manager it starts, and leaves no process behind."""

    key = "sk-ant-canary-open-claude-7f3a"
    prompt = "❯"

    def __init__(
        self,
        directory: Path,
        programs: Programs,
        server: ModelServer,
        *,
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        """`settings` are those of the user (settings.json); None leaves what is there."""
        super().__init__(uuid.uuid4().hex)
        self.home = directory / "home"
        self.config = directory / "config"
        self.workspace = directory / "workspace"
        self.arguments = list(arguments)
        self._programs, self._server = programs, server
        self._more = dict(environment or {})
        for one in (self.home, self.config, self.workspace):
            one.mkdir(parents=True, exist_ok=True)
        self._seed()
        if settings is not None:
            (self.config / "settings.json").write_text(json.dumps(settings))

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the program."""
        return {
            "HOME": str(self.home),
            "PATH": self._programs.path,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "ANTHROPIC_BASE_URL": self._server.anthropic_url,
            "ANTHROPIC_API_KEY": self.key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "DISABLE_AUTOUPDATER": "1",
            **self._more,
        }

    def start(self) -> None:
        """Start it, and wait until it takes a prompt and other sessions can see it."""
        self.open_program([self._programs.claude, *self.arguments], self.workspace, self.environment())
        self.wait_for(self.prompt)
        self.until(lambda: self.record_path().exists(), "record of the session")

    def kill(self) -> None:
        """End it with kill -9."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait_end()

    def close(self) -> None:
        """End it as a person does."""
        self.enter("/exit")
        self.wait_end()

    def end(self) -> None:
        """End all its processes at once, however it stands."""
        self.end_all()
        if self._process is not None and (inbox := self.record().get("messagingSocketPath")):
            Path(inbox).unlink(missing_ok=True)  # outside of the directory, and left behind by a kill

    def record_path(self) -> Path:
        """The file in which the program describes itself to others."""
        return self.config / "sessions" / f"{self.pid}.json"

    def record(self) -> dict[str, Any]:
        """Return the record, empty if there is none or it is being written."""
        try:
            return dict(json.loads(self.record_path().read_text()))
        except (OSError, ValueError):
            return {}

    def status(self) -> str:
        """Return idle, busy or waiting, as the program tells it; empty if it does not."""
        return str(self.record().get("status", ""))

    def wait_status(self, status: str) -> None:
        """Wait until the program tells this status."""
        self.until(lambda: self.status() == status, f"status {status}")

    @property
    def session_id(self) -> str:
        """The session that is open now; /clear begins another."""
        self.until(lambda: self.record().get("sessionId"), "session id")
        return str(self.record()["sessionId"])

    def transcript(self, session: str | None = None) -> list[dict[str, Any]]:
        """Return the lines of the record of a session, empty if it has none yet."""
        found = list(self.config.glob(f"projects/*/{session or self.session_id}.jsonl"))
        return [json.loads(line) for line in found[0].read_text().splitlines()] if found else []

    def _seed(self) -> None:
        """Answer beforehand what Claude Code asks somebody who starts it for the first time."""
        path = self.config / ".claude.json"
        trust = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        asked = ("hasCompletedOnboarding", "bypassPermissionsModeAccepted")
        known: dict[str, Any] = {**dict.fromkeys(asked, True), "theme": "dark"}
        known["customApiKeyResponses"] = {"approved": [self.key[-20:]], "rejected": []}
        known["projects"] = {str(self.workspace.resolve()): trust}
        if not path.exists():
            path.write_text(json.dumps(known))
