"""The doors of Codex: the socket of its own daemon, else its queue; and the file of a thread.

A thread is only told while it is idle: a turn that is begun while it works cuts the text that it writes.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ... import __version__
from ...core.paths import SOCKET_PATH_LIMIT
from .open_session import OpenSession

SOCKET = os.path.join("app-server-control", "app-server-control.sock")  # in CODEX_HOME
SECONDS = 5.0
QUEUE_SECONDS = 20.0
TAIL_BYTES = 262_144  # of the file of a thread
# What the file of a thread says of its turns.
BEGUN, OVER = "task_started", ("task_complete", "turn_aborted")


class Refused(Exception):
    """Codex did not take it."""


async def tell(session: OpenSession, nudge: str) -> None:
    """Begin a turn in a thread: by the daemon of Codex if there is one, else by its queue."""
    path = os.path.join(_home(session), SOCKET)
    if os.path.exists(path):
        try:
            async with asyncio.timeout(SECONDS):
                with _short(path) as reachable:
                    return await _by_daemon(reachable, session.session, nudge)
        except (OSError, TimeoutError, EOFError):
            pass  # it was killed, and has left its socket
    await _by_queue(session, nudge)


@contextmanager
def _short(path: str) -> Iterator[str]:
    """Give a path for a socket whose own path is too long for the system: Codex reaches it all the same."""
    if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
        yield path
        return
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{directory}/{os.path.basename(path)}"
    finally:
        os.close(directory)


async def _by_daemon(path: str, thread: str, nudge: str) -> None:
    from websockets.asyncio.client import unix_connect
    from websockets.exceptions import WebSocketException

    try:
        async with unix_connect(path, "ws://localhost/", open_timeout=SECONDS) as connection:
            info = {"name": "hiboss", "title": "hiboss", "version": __version__}
            given = {"clientInfo": info, "capabilities": {"experimentalApi": True}}
            await _call(connection, 1, "initialize", given)
            await connection.send(json.dumps({"method": "initialized"}))
            found = await _call(connection, 2, "thread/read", {"threadId": thread})
            # One whose last turn failed says systemError, and takes a turn like an idle one.
            if found.get("thread", {}).get("status", {}).get("type") == "active":
                raise Refused("the thread works")
            words = [{"type": "text", "text": nudge}]
            mark = nudge.partition("]")[0].lstrip("[")
            await _call(
                connection,
                3,
                "turn/start",
                {"threadId": thread, "input": words, "clientUserMessageId": mark},
            )
    except WebSocketException as error:
        raise OSError(f"its daemon hung up: {error}") from error


async def _call(connection: Any, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Call a method of the app-server, and pass over what it tells meanwhile."""
    await connection.send(json.dumps({"id": number, "method": method, "params": params}))
    while True:
        answer = json.loads(await connection.recv())
        if answer.get("id") != number or "method" in answer:
            continue
        if "error" in answer:
            raise Refused(str(answer["error"].get("message"))[:200])
        result = answer.get("result")
        return result if isinstance(result, dict) else {}


async def _by_queue(session: OpenSession, nudge: str) -> None:
    program = os.readlink(f"/proc/{session.pid}/exe")
    process = await asyncio.create_subprocess_exec(
        program,
        *("queue", "--thread", session.session, "--message", nudge),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**_clean_environment(), "CODEX_HOME": _home(session)},
        cwd="/",
    )
    try:
        async with asyncio.timeout(QUEUE_SECONDS):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Refused(said.decode(errors="replace").strip()[-200:])


def _clean_environment() -> dict[str, str]:
    """Return the daemon's environment without what is hiboss's own."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HIBOSS_")}


def says_idle(session: OpenSession) -> bool:
    """Tell whether the last turn of a thread is over, by its file: no hook tells of an error of the API."""
    with open(str(session.details.get("transcript") or ""), "rb") as file:
        file.seek(max(0, os.path.getsize(file.name) - TAIL_BYTES))
        lines = file.read(TAIL_BYTES).splitlines()
    for line in reversed(lines):
        kind = _event(line)
        if kind == BEGUN:
            return False
        if kind in OVER:
            return True
    return False


def _event(line: bytes) -> str:
    if b'"event_msg"' not in line:
        return ""
    try:
        return str(json.loads(line)["payload"]["type"])
    except (ValueError, KeyError, TypeError):
        return ""


def _home(session: OpenSession) -> str:
    return str(session.details.get("codex_home") or "")
