"""The `hiboss` command in a process of its own, forked where it is loaded already."""

from __future__ import annotations

import os
import select
import time

from tests.support.forked_programs import COMMAND, DAEMON, Forked, address

ROOM = 60_000  # bytes of standard input that fit into a pipe


def call(
    words: list[str], stdin: bytes, cwd: str, env: dict[str, str], seconds: float
) -> tuple[int, bytes, bytes]:
    """Run the command; return its status and what it wrote to standard output and standard error."""
    end = time.monotonic() + seconds
    pipes = [os.pipe() for _ in range(3)]
    os.write(pipes[0][1], stdin)
    os.close(pipes[0][1])
    theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
    asked = {"words": words, "cwd": cwd, "env": env, "daemons": address(DAEMON)}
    command = Forked(address(COMMAND), asked, theirs)
    for stream in theirs:
        os.close(stream)
    out, err = pipes[1][0], pipes[2][0]
    try:
        written = _read({out: b"", err: b""}, end)
    finally:
        os.close(out)
        os.close(err)
    if written is None:
        command.kill()
        raise AssertionError(f"{' '.join(words)} did not end")
    return command.wait(), written[out], written[err]


def _read(written: dict[int, bytes], end: float) -> dict[int, bytes] | None:
    """Read until all streams have ended; None: not in time."""
    streams = list(written)
    while streams:
        ready = select.select(streams, [], [], max(0, end - time.monotonic()))[0]
        if not ready:
            return None
        for one in ready:
            part = os.read(one, 65_536)
            written[one] += part
            if not part:
                streams.remove(one)
    return written
