"""See at once that a process has ended, by a pidfd. Without one (macOS) only our own programs are seen."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress


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


def watch_child(child: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
    """Call `on_exit` on the event loop when a program that was started here is reaped; reap no other process.

    A thread waits for it where there is no pidfd; also for a program that has ended while another process
    traces it (strace, gdb): it can be reaped only when that one lets it go, and the event loop must go on.
    """
    loop = asyncio.get_running_loop()

    def wait_in_thread() -> None:
        threading.Thread(target=_wait, args=(child, loop, on_exit), daemon=True).start()

    def ended() -> None:
        if child.poll() is None:
            wait_in_thread()
        else:
            on_exit()

    if watch(child.pid, ended) is not_watched:
        wait_in_thread()


def _wait(
    child: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, on_exit: Callable[[], None]
) -> None:
    child.wait()
    with suppress(RuntimeError):  # the event loop has ended meanwhile
        loop.call_soon_threadsafe(on_exit)
