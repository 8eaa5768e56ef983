"""Finds calls that block the event loop, by what they call and not by how long it takes."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def what_blocks() -> Iterator[list[str]]:
    """Yield a list of the blocking calls that the event loop's own thread makes in this block, and where.

    It notices sleeps, connections and look-ups of names that wait, and programs that are waited for; what
    runs in another thread may do all that. Reading and writing of local files is not noticed.
    """
    found: list[str] = []

    def noting(name: str, real: Callable[..., Any], blocks: Callable[..., bool]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if _in_loop() and blocks(*given, **named):
                found.append(f"{name} in {_caller()}")
            return real(*given, **named)

        return call

    always = lambda *given, **named: True  # noqa: E731
    watched: list[tuple[Any, str, Callable[..., bool]]] = [
        (time, "sleep", lambda seconds: bool(seconds > 0)),
        (socket.socket, "connect", lambda one, address: one.gettimeout() != 0),
        (socket, "getaddrinfo", always),
        (subprocess, "run", always),
        (subprocess.Popen, "wait", always),
    ]
    with ExitStack() as patches:
        for owner, name, blocks in watched:
            real = getattr(owner, name)
            patches.enter_context(patch.object(owner, name, noting(name, real, blocks)))
        yield found


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _caller() -> str:
    """Return the file and the line that made the call."""
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
