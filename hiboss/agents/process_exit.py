"""See at once that a process has ended, by a pidfd. Where there is none (macOS), nothing is seen here."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

LOST_STATUS = 255  # what asyncio takes for the status of a child that somebody else has reaped


def not_watched() -> None:
    """End the watching of a process that is not watched."""


def watch(pid: int, on_exit: Callable[[], None]) -> Callable[[], None]:
    """Call `on_exit` on the event loop when a process ends. Return what ends the watching.

    That is `not_watched` where it cannot be watched.
    """
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # no pidfds here, or it has ended and was reaped
        return not_watched
    loop = asyncio.get_running_loop()
    watching = True

    def stop() -> None:
        nonlocal watching
        if watching:
            watching = False
            loop.remove_reader(fd)
            os.close(fd)

    def ended() -> None:
        stop()
        on_exit()

    loop.add_reader(fd, ended)
    return stop


# --- programs that asyncio starts ----------------------------------------------------


@cache
def let_asyncio_use_pidfds() -> None:
    """Let asyncio see by pidfds that its programs end. From Python 3.12 on it does so itself."""
    if sys.version_info < (3, 12) and are_there():
        asyncio.set_child_watcher(_PidfdWatcher())


def are_there() -> bool:
    """Tell whether this machine has pidfds: Linux from 5.3 on."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


if sys.version_info < (3, 12):

    class _PidfdWatcher(asyncio.ThreadedChildWatcher):
        """As in Python 3.12: no thread for each program, and any event loop. That of 3.11 has only one loop.

        It reaps the programs that it was given, and no other process.
        """

        def add_child_handler(self, pid: int, callback: Callable[..., object], *args: Any) -> None:
            def ended() -> None:
                callback(pid, _reap(pid), *args)

            if watch(pid, ended) is not_watched:  # no file can be opened now
                super().add_child_handler(pid, callback, *args)


def _reap(pid: int) -> int:
    """Return the exit status of a child that has ended."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:  # somebody else has reaped it
        return LOST_STATUS
    return os.waitstatus_to_exitcode(status)
