"""An open session of Codex: the real program on a pseudo-terminal, as a person has it open.

Each one has a HOME, a CODEX_HOME and a workspace of its own, and thinks with the model server. A plain `codex`
runs its thread in a background server, the daemon of Codex; both are ended at the end, whatever happened.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any, Self

import psutil
import pyte

from hiboss.testing.model_server import ModelServer, Request, Say
from tests.real.programs import Programs

SECONDS = 60.0  # a limit for every wait: a defect, not a measure
ROWS, COLUMNS = 50, 140
KEYS = {"enter": "\r", "esc": "\x1b", "tab": "\t", "up": "\x1b[A", "down": "\x1b[B", "ctrl-c": "\x03"}
READY = "GPT-5.5 default"  # what stands below the prompt once the thread is there
# What a terminal answers. The program asks at its start, and waits some time for each answer.
ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62c", b"\x1b[?u": b"\x1b[?0u"}
MARK = "OPEN_CODEX"  # a variable of all its processes, by which they are found


class OpenCodex:
    """One CODEX_HOME with its workspace, and the program open in it. Use it as a context manager."""

    def __init__(
        self,
        directory: Path,
        programs: Programs,
        server: ModelServer,
        *,
        hooks: Mapping[str, Any] | None = None,
        config: str = "",
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`hooks` is what stands below "hooks" in hooks.json; `config` is more TOML for the end of config.toml."""
        self.directory = directory
        self.programs = programs
        self.home = directory / "codex"
        self.workspace = directory / "workspace"
        self.home.mkdir()
        self.workspace.mkdir()
        known = {"PATH": programs.path, "HOME": str(directory), "CODEX_HOME": str(self.home)}
        terminal = {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.env = {**known, **terminal, MARK: str(directory), **(env or {})}
        (self.home / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-canary-7f3a"}))
        (self.home / "config.toml").write_text(_config(server, self.workspace, config))
        if hooks:
            self.trust(hooks)
        server.when(_is_title, *[Say('{"title": "A title"}')] * 100)
        self._clear()

    def _clear(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal = -1  # our end of it
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()

    def another(self) -> OpenCodex:
        """Return another terminal in the same workspace, with the same CODEX_HOME."""
        made = copy(self)
        made._clear()
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for one in self._left():
            _kill(one)

    @property
    def socket(self) -> Path:
        """The control socket of the daemon."""
        return self.home / "app-server-control" / "app-server-control.sock"

    @property
    def pid(self) -> int:
        """The process of the program on the terminal: npm's `codex` becomes it. The daemon is its child."""
        assert self._process is not None
        return self._process.pid

    @property
    def daemon_pid(self) -> int | None:
        """The process of the daemon, if one runs."""
        return next((one.pid for one in self._left() if "--managed-daemon" in one.cmdline()), None)

    @property
    def rollouts(self) -> list[Path]:
        """The files of all threads, the newest at the end."""
        found = self.home.glob("sessions/**/rollout-*.jsonl")
        return sorted(found, key=lambda one: one.stat().st_mtime)

    @property
    def thread_id(self) -> str:
        """The thread that was written last. There is none before the first prompt."""
        return self.rollouts[-1].stem[-36:]

    def trust(self, hooks: Mapping[str, Any]) -> None:
        """Write hooks.json, and trust all that stands in it, as a person does in the dialog of Codex."""
        (self.home / "hooks.json").write_text(json.dumps({"hooks": hooks}))
        self.trust_all()

    def trust_all(self) -> None:
        """Trust all hooks that stand in hooks.json now."""
        found = self.ask_server("hooks/list", {"cwds": [str(self.workspace)]})["data"][0]
        assert not found["errors"] and not found["warnings"], found
        state = {one["key"]: {"trusted_hash": one["currentHash"]} for one in found["hooks"]}
        edit = {"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}
        self.ask_server("config/batchWrite", {"edits": [edit]})

    def ask_server(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return the result of one request to an app-server of its own, on standard input and output."""
        hello = {"clientInfo": {"name": "tests", "version": "1"}, "capabilities": {"experimentalApi": True}}
        command, pipe = [self.programs.codex, "app-server"], subprocess.PIPE
        with subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=self.env
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            asked = [{"id": 1, "method": "initialize", "params": hello}, {"method": "initialized"}]
            for one in [*asked, {"id": 2, "method": method, "params": params}]:
                process.stdin.write(json.dumps(one).encode() + b"\n")
            process.stdin.flush()
            answer = next(one for one in map(json.loads, process.stdout) if one.get("id") == 2)
            process.stdin.close()
        assert "result" in answer, answer
        return answer["result"]

    def start(self, *arguments: str, ready: str = READY) -> None:
        """Open the program, and wait until it takes words. Arguments are like --no-daemon, resume ID."""
        assert self._process is None, "it is open"
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._screen.reset()
        self._process = subprocess.Popen(
            [self.programs.codex, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.workspace,
            env=self.env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=(self._terminal,))
        self._reader.start()
        if ready:
            self.wait_for(ready)

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type a text, and submit it."""
        os.write(self._terminal, text.encode())
        if enter:
            time.sleep(0.3)  # an Enter that comes with the text counts as a line break of pasted text
            self.press("enter")

    def press(self, key: str) -> None:
        """Press a key: one of KEYS, or a letter."""
        os.write(self._terminal, KEYS.get(key, key).encode())

    def screen(self) -> str:
        """Return what stands on the screen now."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display).strip()

    def wait_for(self, text: str, seconds: float = SECONDS) -> str:
        """Wait until a text stands on the screen, and return all of it."""
        self.until(lambda: text in self.screen(), seconds, text)
        return self.screen()

    def until(self, condition: Callable[[], Any], seconds: float = SECONDS, what: str = "it") -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"{what} did not come:\n{self.screen()}"
            time.sleep(0.02)

    def kill(self, pid: int | None = None) -> None:
        """Kill the program on the terminal, or another of its processes, and wait until it is gone."""
        _kill(psutil.Process(self.pid if pid is None else pid))

    def close(self) -> None:
        """End the program as a person does, with Ctrl-C; after some time, kill it. The daemon stays."""
        if self._process is None:
            return
        for _ in range(3):
            if self._process.poll() is None:
                self.press("ctrl-c")
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(2)
        self._process.kill()
        self._process.wait()
        self._reader.join()
        os.close(self._terminal)
        self._process = None

    def _read(self, terminal: int) -> None:
        while True:
            try:
                part = os.read(terminal, 65_536)
                for question, answer in ANSWERS.items():
                    if question in part:
                        os.write(terminal, answer)
            except OSError:  # Linux's word for: nobody has the other end any more
                return
            with self._lock:
                self._stream.feed(part)

    def _left(self) -> list[psutil.Process]:
        return [one for one in psutil.process_iter() if _is_of(one, self.directory)]


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


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.Error):  # it is gone, or a zombie of somebody else
        process.kill()
        process.wait(5)


def _is_of(process: psutil.Process, directory: Path) -> bool:
    with suppress(psutil.Error):  # it ended just now
        return process.environ().get(MARK) == str(directory)
    return False
