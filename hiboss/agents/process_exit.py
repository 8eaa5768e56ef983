"""See at once that a process has ended, by a pidfd. Where there is none (macOS), nothing is seen here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable


def watch(pid: int, on_exit: Callable[[], None]) -> Callable[[], None]:
    """Call `on_exit` on the event loop when a process ends. Return what ends the watching."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):  # no pidfds here, or it has ended and was reaped
        return lambda: None
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
