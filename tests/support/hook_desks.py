"""A terminal in which `hiboss hooks` runs, with settings of Claude Code and Codex of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.cli import Done, Shell


class Desk:
    """A terminal with settings of both programs of its own."""

    def __init__(self, directory: Path, shell: Shell) -> None:
        self.shell = shell
        self.home = directory / "person"
        self.claude = self.home / ".claude" / "settings.json"
        self.codex = self.home / ".codex" / "hooks.json"
        self.claude.parent.mkdir(parents=True)
        self.codex.parent.mkdir()

    def file(self, client: str) -> Path:
        return self.claude if client == "claude" else self.codex

    def __call__(self, *words: str, **env: str) -> Done:
        return self.shell("hooks", *words, env={"HOME": str(self.home), "PATH": "/usr/bin:/bin", **env})

    def done(self, *words: str, **env: str) -> dict[str, Any]:
        done = self(*words, "--json", **env)
        assert (done.rc, done.stderr) == (0, ""), done.stderr
        return done.json

    def status(self, client: str = "claude", **env: str) -> dict[str, Any]:
        (one,) = self.done("status", "--client", client, **env)["clients"]
        return one

    def install(self, client: str = "claude", *more: str, **env: str) -> dict[str, Any]:
        return self.done("install", "--client", client, *more, **env)

    def remove(self, client: str = "claude") -> dict[str, Any]:
        return self.done("remove", "--client", client)

    def backups(self, client: str = "claude") -> list[Path]:
        file = self.file(client)
        return sorted(file.parent.glob(f"{file.name}.hiboss-backup-*"))
