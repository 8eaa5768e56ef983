"""An open session of Codex: the real program on a pseudo-terminal, as a person has it open.

Each one has a HOME, a CODEX_HOME and a workspace of its own, and thinks with the model server. A plain `codex`
runs its thread in a background server, the daemon of Codex; both are ended at the end, whatever happened.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

import psutil

from hiboss.testing.model_server import ModelServer, Request, Say
from tests.real.open_terminal import SECONDS, OpenTerminal
from tests.real.processes import words_of
from tests.real.programs import Programs

PACKAGES = "packages/app-server-daemon"
CURRENT = f"{PACKAGES}/current"  # a link to the release that runs
READY = "GPT-5.5 default"  # what stands below the prompt once the thread is there


def copy_packages(home: Path, other: Path) -> None:
    """Give another home what the first `codex` in a home installs there: its daemon, 370 MB, as links to the same files."""

    def copy_file(source: str, target: str) -> None:
        (os.link if os.path.getsize(source) > 1_000_000 else shutil.copy2)(source, target)

    shutil.copytree(home / PACKAGES, other / PACKAGES, symlinks=True, copy_function=copy_file)
    release = (home / CURRENT).readlink().name
    (other / CURRENT).unlink()
    (other / CURRENT).symlink_to(other / PACKAGES / "releases" / release)


class AppServer:
    """An app-server on standard input and output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._input, self._lines = process.stdin, map(json.loads, process.stdout)
        self.close = self._input.close
        self._numbers = itertools.count(1)

    def say(self, **line: Any) -> None:
        self._input.write(json.dumps(line).encode() + b"\n")
        self._input.flush()

    def wait_for(self, name: str, value: Any) -> Any:
        """Wait for a line with this value, and return it."""
        return next(one for one in self._lines if one.get(name) == value)

    def ask(self, method: str, **params: Any) -> Any:
        """Return the result of a request."""
        number = next(self._numbers)
        self.say(id=number, method=method, params=params)
        answer = self.wait_for("id", number)
        assert "result" in answer, answer
        return answer["result"]


class OpenCodex(OpenTerminal):
    """One CODEX_HOME with its workspace, and the program open in it. Use it as a context manager."""

    prompt = "›"
    # It waits some time for each of these.
    answers: ClassVar = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62c", b"\x1b[?u": b"\x1b[?0u"}

    def __init__(
        self,
        directory: Path,
        programs: Programs,
        server: ModelServer,
        *,
        config: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`config` is more TOML for the end of config.toml."""
        super().__init__(str(directory))
        self.programs = programs
        self.home = directory / "codex"
        self.workspace = directory / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        known = {"PATH": programs.path, "HOME": str(directory), "CODEX_HOME": str(self.home)}
        terminal = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.env = {**known, **terminal, self.MARK: self.mark, **(env or {})}
        (self.home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-canary-7f3a"}))
        (self.home / "config.toml").write_text(_config(server, self.workspace, config))
        server.when(_is_title, *[Say('{"title": "A title"}')] * 100)

    def another(self) -> OpenCodex:
        """Return another terminal in the same workspace, with the same CODEX_HOME."""
        made = copy(self)
        OpenTerminal.__init__(made, self.mark)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.end_all()
        if not self.programs.kept.exists() and (self.home / CURRENT).exists():
            copy_packages(self.home, self.programs.kept)

    @property
    def daemon_pid(self) -> int | None:
        """The process of the daemon, if one runs."""
        return next((one.pid for one in self.left_behind() if "--managed-daemon" in words_of(one)), None)

    @property
    def rollouts(self) -> list[Path]:
        """The files of all threads, the newest at the end."""
        found = self.home.glob("sessions/**/rollout-*.jsonl")
        return sorted(found, key=lambda one: one.stat().st_mtime)

    @property
    def thread_id(self) -> str:
        """The thread that was written last. There is none before the first prompt."""
        return self.rollouts[-1].stem[-36:]

    def trust_all(self) -> None:
        """Trust all hooks that stand in hooks.json now, as a person does in the dialog of Codex."""
        with self.app_server("tests") as server:
            found = server.ask("hooks/list", cwds=[str(self.workspace)])["data"][0]
            assert not found["errors"] and not found["warnings"], found
            state = {one["key"]: {"trusted_hash": one["currentHash"]} for one in found["hooks"]}
            edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
            server.ask("config/batchWrite", edits=[edit])

    @contextmanager
    def app_server(self, client: str) -> Iterator[AppServer]:
        """Start an app-server of its own for a client, as an editor does."""
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [self.programs.codex, "app-server"],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env=self.env,
            cwd=self.workspace,
        ) as process:
            made = AppServer(process)
            info = {"name": client, "version": "1"}
            made.ask("initialize", clientInfo=info, capabilities={"experimentalApi": True})
            made.say(method="initialized")
            yield made
            made.close()

    def start(self, *arguments: str) -> None:
        """Open the program, and wait until it takes words. Arguments are like --no-daemon, resume ID."""
        if self.programs.kept.exists() and not (self.home / CURRENT).exists():
            copy_packages(self.programs.kept, self.home)
        self.open_program([self.programs.codex, *arguments], self.workspace, self.env)
        self.wait_for(READY)

    def kill(self, pid: int | None = None) -> None:
        """Kill the program on the terminal, or another of its processes, and wait until it is gone."""
        with suppress(psutil.Error):  # it is gone, or a zombie of somebody else
            process = psutil.Process(self.pid if pid is None else pid)
            process.kill()
            process.wait(SECONDS)

    def close(self) -> None:
        """End the program as a person does, with Ctrl-C; if it does not end, kill it. The daemon stays."""
        for _ in range(3):
            if self.runs:
                self.press("ctrl-c")
                with suppress(subprocess.TimeoutExpired):
                    self.wait_end(2)
        if self.runs:
            self.kill()
            self.wait_end()
        self.shut()


def _config(server: ModelServer, workspace: Path, more: str) -> str:
    door = (
        f'name = "x", base_url = "{server.openai_url}", wire_api = "responses", requires_openai_auth = true'
    )
    return f"""
model = "gpt-5.5"
model_provider = "x"
check_for_update_on_startup = false
analytics.enabled = false
projects."{workspace}".trust_level = "trusted"
notice.model_migrations."gpt-5.5" = "gpt-6-sol"
tui.screen_reader_detection_done = true
tui.model_availability_nux."gpt-6.1-sol" = 4
model_providers.x = {{ {door}, request_max_retries = 1, stream_max_retries = 1 }}
{more}
"""


def _is_title(request: Request) -> bool:
    """Tell whether it asks for a title of the thread, in a hidden thread with a tool, beside the first turn."""
    return "format" in request.body.get("text", {})
