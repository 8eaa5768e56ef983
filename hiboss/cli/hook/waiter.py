"""The waiter of an open session: it ends with status 2 and a nudge when there is mail, which wakes the session.

One for each process of a harness, by a lock. It waits in a call of the daemon, so it needs no CPU; while the
daemon is away it tries again now and then. It ends when its harness has ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket as _socket
import sys
import time
from typing import IO, Any, NamedTuple

from . import events, harness

WAKES = 2  # the exit status that wakes a session
LOOK_SECONDS = 20.0  # between two looks whether the harness is still there
FIRST_SECONDS = 10.0  # for the start hook, which runs at the same time, to attach the session
AWAY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0)  # between two tries while the daemon is away


class Heard(NamedTuple):
    """What came of one wait."""

    nudge: str = ""  # what wakes the session
    ends: bool = False  # it must not wait any more
    answered: bool = False  # the daemon was there


AWAY = Heard()


def wait(hook: events.Hook) -> int:
    """Wait for mail until the harness ends. Return 2 after the nudge is printed, else 0."""
    process = harness.process(hook.client)
    if process is None:
        return 0
    lock = _lock(hook, process.pid)
    if lock is None:
        return 0
    tries = 0
    began = time.monotonic()
    while _lives(process):
        if hook.token is None and time.monotonic() - began > FIRST_SECONDS:
            return 0
        heard = _wait_once(hook, process) if hook.token else AWAY
        if heard.nudge:
            sys.stderr.write(heard.nudge + "\n")
            return WAKES
        if heard.ends:
            return 0
        if heard.answered:
            tries = 0
        time.sleep(AWAY_SECONDS[min(tries, len(AWAY_SECONDS) - 1)])
        tries += 1
    return 0


def _wait_once(hook: events.Hook, process: harness.Process) -> Heard:
    """Wait in one call of the daemon."""
    request = {"jsonrpc": "2.0", "id": 1, "method": "attached.wait", "params": {"token": hook.token}}
    with _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM) as connection:
        try:
            connection.connect(hook.home.socket)
            connection.sendall(json.dumps(request).encode() + b"\n")
            line = _read_line(connection, process)
            answer = json.loads(line) if line else {}
        except (OSError, ValueError):
            return AWAY
    return _heard(answer)


def _heard(answer: dict[str, Any]) -> Heard:
    if "result" in answer:
        nudge = answer["result"].get("nudge")
        return Heard(nudge=nudge or "", ends=nudge is None, answered=True)
    code = ((answer.get("error") or {}).get("data") or {}).get("code")
    if code in ("not_attached", "bad_token"):  # the next hook attaches it again, and arms another waiter
        return Heard(ends=True, answered=True)
    return Heard(answered=bool(answer))


def _read_line(connection: _socket.socket, process: harness.Process) -> bytes:
    """Read an answer. Look now and then whether the harness is still there; nothing if it is not."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    poll.register(1, 0)  # its other end is the harness: it hangs up when that is killed
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        ready = dict(poll.poll(LOOK_SECONDS * 1000))
        if 1 in ready or (not ready and not _lives(process)):
            return b""
        part = connection.recv(65_536) if ready else b" "
        if not part:
            return b""
        parts.append(part)
    return b"".join(parts)


def _lives(process: harness.Process) -> bool:
    stat = harness.stat_of(process.pid)
    return stat is not None and stat.started == process.started


def _lock(hook: events.Hook, pid: int) -> IO[bytes] | None:
    """Return the lock of the waiters of a harness; None if another one waits."""
    directory = os.path.join(hook.home.path, "sessions")
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        file = open(os.path.join(directory, f"waiter-{pid}.lock"), "wb")  # noqa: SIM115 - it lives as long as we
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return None
    return file
