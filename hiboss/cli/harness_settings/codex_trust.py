"""Ask Codex whether the person has trusted our hooks, through `codex app-server`. Trust is never written here.

The server speaks JSON-RPC, one message in a line, on its standard input and output.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ... import __version__
from .harness import Harness, kind_of

TRUSTED, NOT_TRUSTED, UNKNOWN = "trusted", "not trusted", "unknown"
SECONDS = 10.0
GRACE = 2.0  # seconds
_TRUSTING = ("trusted", "managed")  # managed: an administrator has set it up
_CLIENT = {"name": "hiboss", "title": "hiboss", "version": __version__}
_REQUESTS: tuple[dict[str, Any], ...] = (
    {"id": 1, "method": "initialize", "params": {"clientInfo": _CLIENT}},
    {"method": "initialized"},
    {"id": 2, "method": "hooks/list", "params": {}},
)


@dataclass(frozen=True, kw_only=True)
class Trust:
    """What Codex says about our hooks."""

    state: str
    why: str | None = None


def ask(harness: Harness, settings: str, seconds: float = SECONDS) -> Trust:
    """Return whether all our hooks in this settings file will run."""
    program = shutil.which("codex")
    if program is None:
        return Trust(state=UNKNOWN, why="the program codex is not on the PATH")
    environment = {**os.environ, harness.variable: os.path.dirname(settings)}
    try:
        answer = _ask([program, "app-server"], environment, time.monotonic() + seconds)
    except TimeoutError:
        return Trust(state=UNKNOWN, why=f"codex did not answer within {seconds:g} seconds")
    except (OSError, ValueError) as error:
        return Trust(state=UNKNOWN, why=f"codex did not answer: {error}")
    return _judged([one for one in _listed(answer) if _is_ours(one, harness, settings)])


def _judged(ours: list[dict[str, Any]]) -> Trust:
    if not ours:
        return Trust(state=UNKNOWN, why="codex does not list the hooks of hiboss")
    waiting = [str(one.get("eventName")) for one in ours if one.get("trustStatus") not in _TRUSTING]
    if waiting:
        return Trust(state=NOT_TRUSTED, why=f"not reviewed: {', '.join(waiting)}")
    disabled = [str(one.get("eventName")) for one in ours if one.get("enabled") is False]
    if disabled:
        return Trust(state=NOT_TRUSTED, why=f"switched off in codex: {', '.join(disabled)}")
    return Trust(state=TRUSTED)


def _listed(answer: Any) -> Iterator[dict[str, Any]]:
    """Yield each hook of an answer, which lists them for each directory."""
    result = answer.get("result") if isinstance(answer, dict) else None
    places = result.get("data") if isinstance(result, dict) else None
    for place in places if isinstance(places, list) else []:
        yield from (one for one in place.get("hooks", []) if isinstance(one, dict))


def _is_ours(hook: dict[str, Any], harness: Harness, settings: str) -> bool:
    source = os.path.realpath(str(hook.get("sourcePath")))
    return source == os.path.realpath(settings) and kind_of(hook, harness.name) is not None


def _ask(command: list[str], environment: dict[str, str], end: float) -> Any:
    """Return the answer to the last request. Raises TimeoutError, OSError, or ValueError for a strange one."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # codex is a script that starts the program: both must end
    )
    with process:
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("".join(json.dumps(one) + "\n" for one in _REQUESTS).encode())
            process.stdin.flush()
            return _answer(process.stdout.fileno(), end)
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and its children; a moment is given to close its databases."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(GRACE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _answer(stream: int, end: float) -> Any:
    received = b""
    while True:
        if not select.select([stream], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError
        part = os.read(stream, 1 << 16)
        if not part:
            raise ValueError("it ended")
        *lines, received = (received + part).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if isinstance(message, dict) and message.get("id") == 2:
                if "error" in message:
                    raise ValueError(f"it refused hooks/list: {message['error']}")
                return message
