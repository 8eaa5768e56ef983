"""An open session of the real Claude Code: the program a person has on the screen, in a pseudo-terminal.

with OpenClaude(tmp_path, programs, server) as claude:
    claude.enter("hello")
    claude.wait_for("You said: hello")

Its home, its settings and its workspace are its own. A later one in the same directory can `--resume` it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
import pyte

from hiboss.testing.model_server import ModelServer
from tests.real.programs import Programs

SECONDS = 60.0  # a limit for every wait: a defect, not a measure
COLUMNS, LINES = 160, 50
KEYS = {"enter": "\r", "esc": "\x1b", "up": "\x1b[A", "down": "\x1b[B", "ctrl-o": "\x0f", "ctrl-u": "\x15"}
READY = "❯"  # stands before the place where a prompt is typed
PAUSE = 0.3  # seconds between a text and Enter: both at once are read as a pasted text with a line end
MARK = "OPEN_CLAUDE_RIG"  # names in the environment the processes of a rig


class OpenClaude:
    """One interactive session. As a context manager it starts, and leaves no process behind."""

    key = "sk-ant-canary-open-claude-7f3a"

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
        self.home = directory / "home"
        self.config = directory / "config"
        self.workspace = directory / "workspace"
        self.arguments = list(arguments)
        self._programs, self._server = programs, server
        self._mark = uuid.uuid4().hex
        self._more = dict(environment or {})
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
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
            MARK: self._mark,
            **self._more,
        }

    def start(self) -> None:
        """Start it, and wait until it takes a prompt and other sessions can see it."""
        self._terminal, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (LINES, COLUMNS))
        facts: dict[str, Any] = {"cwd": self.workspace, "env": self.environment(), "start_new_session": True}
        facts |= dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        facts["preexec_fn"] = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        try:
            # A session of its own, whose terminal this is: as in a window.
            self._process = subprocess.Popen([self._programs.claude, *self.arguments], **facts)
        finally:
            os.close(theirs)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.wait_for(READY)
        self.until(lambda: self.record_path().exists(), "a record of the session")

    @property
    def pid(self) -> int:
        """The process of Claude Code itself."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal, and wait for its end."""
        os.kill(self.pid, number)
        self.wait_end()

    def close(self) -> None:
        """End it as a person does."""
        self.enter("/exit")
        self.wait_end()

    def wait_end(self) -> int:
        """Wait for its end, and return its exit code."""
        assert self._process is not None
        return self._process.wait(SECONDS)

    def left_behind(self) -> list[psutil.Process]:
        """Return the processes of this session that still live: itself, its tools, its hooks."""
        return [one for one in psutil.process_iter() if _environment_of(one).get(MARK) == self._mark]

    def end(self) -> None:
        """End all its processes at once, however it stands."""
        while left := self.left_behind():
            for one in left:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            if self._process is not None:
                self._process.wait(SECONDS)
        if self._process is not None and (inbox := self.record().get("messagingSocketPath")):
            Path(inbox).unlink(missing_ok=True)  # outside of the directory, and left behind by a kill
        if self._reader is not None:
            self._reader.join(SECONDS)
            self._reader = None
            os.close(self._terminal)

    def type(self, text: str) -> None:
        """Type a text, without Enter."""
        os.write(self._terminal, text.encode())

    def press(self, *keys: str) -> None:
        """Press keys, by name (KEYS) or as they are."""
        for key in keys:
            self.type(KEYS.get(key, key))
            time.sleep(PAUSE)

    def enter(self, text: str) -> None:
        """Type a prompt and submit it."""
        self.type(text)
        time.sleep(PAUSE)
        self.press("enter")

    def screen(self) -> str:
        """Return what stands on the screen, without the empty ends of lines."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def wait_for(self, text: str, seconds: float = SECONDS) -> None:
        """Wait until a text stands on the screen."""
        self.until(lambda: text in self.screen(), repr(text), seconds)

    def until(self, condition: Callable[[], Any], what: str, seconds: float = SECONDS) -> None:
        """Wait until a condition holds, while the program runs."""
        end = time.monotonic() + seconds
        while not condition():
            assert self.runs or condition(), f"no {what}: it has ended. The screen:\n{self.screen()}"
            assert time.monotonic() < end, f"no {what} in {seconds} s. The screen:\n{self.screen()}"
            time.sleep(0.02)

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

    def _read(self) -> None:
        with suppress(OSError):  # Linux's word for: nobody has the other end of the terminal any more
            while part := os.read(self._terminal, 65_536):
                with self._lock:
                    self._stream.feed(part)


def _environment_of(process: psutil.Process) -> dict[str, str]:
    try:
        return {} if process.status() == psutil.STATUS_ZOMBIE else process.environ()
    except psutil.Error:
        return {}  # it ended just now, or belongs to somebody else
