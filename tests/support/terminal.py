"""A command on terminals of a chosen width: standard output and standard error on one each."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import closing

from tests.support.cli import HIBOSS, SECONDS, Done, Shell


class Screen:
    """One end of a terminal, or of a pipe; collects what was written to the other."""

    def __init__(self, *, terminal: bool, columns: int) -> None:
        self.ours, self.theirs = pty.openpty() if terminal else os.pipe()
        self.written = b""
        if terminal:
            fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            settings = termios.tcgetattr(self.theirs)
            settings[1] &= ~termios.OPOST  # a newline stays a newline
            termios.tcsetattr(self.theirs, termios.TCSANOW, settings)

    def fileno(self) -> int:
        return self.ours

    def close(self) -> None:
        os.close(self.ours)

    def read(self) -> bool:
        """Take what is there; False at the end."""
        try:
            part = os.read(self.ours, 65_536)
        except OSError:  # Linux's word for: nobody has the other end of the terminal any more
            part = b""
        self.written += part
        return bool(part)

    @property
    def text(self) -> str:
        return self.written.decode()


def on_terminal(
    shell: Shell,
    *words: str,
    columns: int = 80,
    out: bool = True,
    err: bool = True,
    meanwhile: Callable[[Screen, Screen, int], None] | None = None,
    env: dict[str, str] | None = None,
    command: list[str] | None = None,
) -> Done:
    """Run a command; `meanwhile(out, err, pid)` is called whenever it has written something."""
    stdout, stderr = Screen(terminal=out, columns=columns), Screen(terminal=err, columns=columns)
    with closing(stdout), closing(stderr):
        process = subprocess.Popen(
            [*(command or [HIBOSS]), *words],
            stdin=subprocess.DEVNULL,
            stdout=stdout.theirs,
            stderr=stderr.theirs,
            env=shell.environment(**{"TERM": "xterm", **(env or {})}),
        )
        os.close(stdout.theirs)
        os.close(stderr.theirs)
        open_ = [stdout, stderr]
        try:
            while open_:
                ready = select.select(open_, [], [], SECONDS)[0]
                assert ready, "the command neither writes nor ends"
                open_ = [screen for screen in open_ if screen not in ready or screen.read()]
                if meanwhile is not None:
                    meanwhile(stdout, stderr, process.pid)
            process.wait(timeout=SECONDS)
        finally:
            process.kill()
            process.wait()
    return Done(rc=process.returncode, stdout=stdout.text, stderr=stderr.text)


# The command as it is, but for a person whose second is short: the bar comes at once.
HASTY = [
    sys.executable,
    "-c",
    "from hiboss.cli import output; output.BAR_DELAY = 0.0; from hiboss.cli.entry import main; main()",
]
