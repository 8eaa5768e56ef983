"""A conversation on a real terminal: `hiboss chat` on a pty, with pyte as what a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyte

from tests.support.cli import HIBOSS, SECONDS, Office, Shell

# An agent that says something at once, and answers when the file it was given is there.
GATED = """
import json, os, sys, time
last = sys.stdin.read().strip().splitlines()[-1][2:]
print(json.dumps({"hiboss": "tool", "name": "look", "text": "into the files"}), flush=True)
print(json.dumps({"hiboss": "delta", "text": "thinking aloud about " + last}), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
print(json.dumps({"hiboss": "final", "text": "answer to " + last}), flush=True)
"""


class Answering(pyte.Screen):
    """A screen that answers when it is asked where its cursor is, as terminals do."""

    answer: Callable[[str], None]

    def write_process_input(self, data: str) -> None:
        self.answer(data)


class Terminal:
    """What a person has before them: keys to press and a screen to look at."""

    def __init__(self, ours: int, process: subprocess.Popen[bytes], size: tuple[int, int]) -> None:
        self.process = process
        self.written = b""
        self._ours = ours
        self._screen = Answering(*size)
        self._screen.answer = self.press
        self._stream = pyte.ByteStream(self._screen)

    def answers_late(self) -> Callable[[], None]:
        """Hold back where the cursor is, as a slow connection does; return what lets the answers go."""
        held: list[str] = []
        self._screen.answer = held.append
        return lambda: self.press("".join(held))

    def press(self, keys: str) -> None:
        data = keys.encode()
        while data:
            data = data[os.write(self._ours, data) :]

    def enter(self, line: str, *seen: str) -> None:
        """Type a line, press Enter, and look until all of this is seen."""
        self.press(f"{line}\r")
        self.see(*seen)

    def type(self, text: str) -> None:
        """Type this without Enter, and look until it stands at the prompt."""
        self.press(text)
        self.see_last(f"> {text}")

    def paste(self, text: str) -> None:
        self.press(f"\x1b[200~{text}\x1b[201~")

    @property
    def lines(self) -> list[str]:
        """The screen, without what is empty at its end."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().split("\n")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def flat(self) -> str:
        """The screen as one line, whatever its width."""
        return " ".join(self.text.split())

    def until(self, condition: Callable[[], Any], what: str = "") -> None:
        """Look until something is so; a test fails here when it never is."""
        end = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < end, f"{what!r} never came:\n{self.text}"
            self._read()

    def ready(self) -> None:
        """Until one can type."""
        self.see("Talking with ")
        self.see_last(">")

    def see(self, *texts: str) -> None:
        for text in texts:
            self.until(lambda text=text: text in self.text, text)

    def see_last(self, line: str) -> None:
        """Until this is what stands at the prompt."""
        self.until(lambda: self.lines[-1] == line, line)

    def ended(self) -> int:
        self.until(lambda: self.process.poll() is not None, "the end")
        while self._read():
            pass
        assert self.process.returncode is not None
        return self.process.returncode

    def resize(self, columns: int, rows: int, *, wraps_again: bool = False) -> None:
        """Change the size of the window. Some terminals cut rows that are too long, others wrap them again."""
        kept = _wrapped_again(self._screen, columns)[-rows:] if wraps_again else None
        self._screen.resize(rows, columns)
        if kept is not None:
            _fill(self._screen, kept)
        _size(self._ours, columns, rows)
        self.process.send_signal(signal.SIGWINCH)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], 0.05)[0]:
            return False
        try:
            part = os.read(self._ours, 65_536)
        except OSError:  # nobody has the other end any more
            return False
        self.written += part
        self._stream.feed(part)
        return bool(part)


CURSOR = "\0"  # marks where the cursor is, while rows are wrapped again


def _wrapped_again(screen: pyte.Screen, columns: int) -> list[str]:
    """The rows down to the cursor in pieces of the new width, as VTE, kitty, iTerm2 and tmux do it."""
    rows = [row.rstrip() for row in screen.display[: screen.cursor.y + 1]]
    x = screen.cursor.x
    rows[-1] = rows[-1].ljust(x)
    pieces = [row[at : at + columns] for row in rows[:-1] for at in range(0, max(len(row), 1), columns)]
    last = rows[-1][:x] + CURSOR + rows[-1][x:]
    return pieces + [last[at : at + columns + 1] for at in range(0, max(len(last), 1), columns + 1)]


def _fill(screen: pyte.Screen, rows: list[str]) -> None:
    screen.erase_in_display(2)
    for y, row in enumerate(rows):
        if CURSOR in row:
            screen.cursor.y, screen.cursor.x = y, row.index(CURSOR)
        for x, letter in enumerate(row.replace(CURSOR, "")):
            screen.buffer[y][x] = screen.default_char._replace(data=letter)


def _size(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def talking(
    shell: Shell, *words: str, columns: int = 80, rows: int = 50, env: dict[str, str] | None = None
) -> Iterator[Terminal]:
    """`hiboss chat …`, until the end of the block."""
    ours, theirs = pty.openpty()
    _size(theirs, columns, rows)
    process = subprocess.Popen(
        [HIBOSS, "chat", *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=shell.environment(**{"TERM": "xterm-256color", **(env or {})}),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process, (columns, rows))
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@contextmanager
def chatting(shell: Shell, *words: str, **more: Any) -> Iterator[Terminal]:
    """The same, from when one can type."""
    with talking(shell, *words, **more) as terminal:
        terminal.ready()
        yield terminal


@contextmanager
def gated(office: Office, directory: Path, **fields: Any) -> Iterator[tuple[str, Path]]:
    """An agent that answers when its gate is made (`gate.touch()`); its name and the gate."""
    program, gate = directory / "gated.py", directory / "gate"
    program.write_text(GATED)
    command = shlex.join([sys.executable, "-S", str(program), str(gate)])
    try:
        yield office.agent(provider="command", settings={"command": command}, **fields), gate
    finally:
        gate.touch()  # nothing is left at work


def said(office: Office, name: str) -> list[dict[str, Any]]:
    """What the boss and an agent have said to each other."""
    whom = {"with": f"agent:{name}", "page_size": 100}
    return office.daemon.call("conversation.messages", token=office.token("boss"), **whom)["envelopes"]
