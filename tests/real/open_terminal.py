"""A program that a person has open in a terminal: the real one, on a pseudo-terminal whose screen can be read."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import termios
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pyte

from tests.real.processes import processes_with
from tests.support.waits import wait_until

SECONDS = 60.0  # a limit for every wait: a defect, not a measure
LINES, COLUMNS = 50, 160
PAUSE = 0.3  # seconds between a text and Enter: both at once are read as a pasted text with a line end
FIRST_MOMENTS = 1.0
AGAIN = 10.0  # seconds until a key counts as not taken
KEYS = {"enter": "\r", "esc": "\x1b", "down": "\x1b[B", "ctrl-c": "\x03", "ctrl-u": "\x15"}


class OpenTerminal:
    """One terminal, and the program in it. All processes of the program have its `mark` in a variable."""

    MARK = "OPEN_TERMINAL"
    all: ClassVar[weakref.WeakSet[OpenTerminal]] = weakref.WeakSet()  # for the explanation of a failure
    prompt: str  # stands before the place where a person types
    # What a terminal answers to what the program asks at its start.
    answers: ClassVar[dict[bytes, bytes]] = {}

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.all.add(self)
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._terminal = -1  # our end of it
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._shown: str | None = None  # the text of the screen, if it is known
        self._lock = threading.Lock()

    def open_program(self, words: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        """Start the program in a session of its own, whose terminal this is: as in a window."""
        assert not self.runs, "it is open"
        self._terminal, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (LINES, COLUMNS))
        self._screen.reset()
        self._shown = None
        facts: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
        facts["preexec_fn"] = lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        try:
            self._process = subprocess.Popen(
                words,
                cwd=directory,
                env={**environment, self.MARK: self.mark},
                start_new_session=True,
                **facts,
            )
        finally:
            os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=(self._terminal,), daemon=True)
        self._reader.start()

    def _read(self, terminal: int) -> None:
        with suppress(OSError):  # Linux's word for: nobody has the other end of the terminal any more
            while part := os.read(terminal, 65_536):
                for answer in (answer for question, answer in self.answers.items() if question in part):
                    os.write(terminal, answer)
                with self._lock:
                    self._stream.feed(part)
                    self._shown = None

    def shut(self) -> None:
        """Close the terminal of a program that has ended."""
        assert not self.runs
        if self._reader is not None:
            self._reader.join(SECONDS)
            self._reader = None
            os.close(self._terminal)

    # --- the program -------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process on the terminal."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def wait_end(self, seconds: float = SECONDS) -> int:
        """Wait for its end, and return its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def left_behind(self) -> list[psutil.Process]:
        """Return the processes of this program that still live: itself, its tools, its hooks."""
        return processes_with(self.MARK, [self.mark])

    def end_all(self) -> None:
        """End all its processes at once, however it stands."""
        while left := self.left_behind():
            for one in left:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
            psutil.wait_procs(left, SECONDS)
        if self._process is not None:
            self.wait_end()
        self.shut()

    # --- its person --------------------------------------------------------------------

    def type(self, text: str) -> None:
        """Type a text, without Enter."""
        os.write(self._terminal, text.encode())

    def press(self, key: str) -> None:
        """Press a key, by name (KEYS) or as it is; what follows is no part of it."""
        self.type(KEYS.get(key, key))
        time.sleep(PAUSE)

    def enter(self, text: str) -> None:
        """Type a prompt and submit it, once the program has read the text."""
        self.type(text)
        self.until(lambda: text in self.screen().rpartition(self.prompt)[2], f"{text!r} in its prompt")
        time.sleep(PAUSE)
        self.press("enter")

    def decide(self, dialog: str, key: str) -> None:
        """Press a key in a dialog until it is gone: it takes none in its first moments.

        Never twice at once: a second Esc opens another dialog, in which Claude Code waits for its person.
        """
        self.wait_for(dialog)
        while dialog in self.screen():
            time.sleep(FIRST_MOMENTS)
            self.press(key)
            with suppress(AssertionError):
                wait_until(lambda: dialog not in self.screen(), AGAIN)

    def screen(self) -> str:
        """Return what stands on the screen, without the empty ends of lines."""
        with self._lock:
            if self._shown is None:  # to render it takes milliseconds, and many look at it
                self._shown = "\n".join(line.rstrip() for line in self._screen.display).rstrip()
            return self._shown

    def wait_for(self, text: str) -> str:
        """Wait until a text stands on the screen, and return all of it."""
        self.until(lambda: text in self.screen(), repr(text))
        return self.screen()

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until a condition holds, while the program runs."""
        try:
            wait_until(lambda: condition() or not self.runs, SECONDS)
            assert condition(), "it has ended"
        except AssertionError as error:
            raise AssertionError(f"no {what}: {error}\nThe screen:\n{self.screen()}") from None
