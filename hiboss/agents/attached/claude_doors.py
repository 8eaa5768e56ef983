"""The doors of Claude Code: the socket of a session, and the file in which it says what it does.

The socket is the second way, where no waiter is armed. It takes lines of JSON, and answers only when it holds
a message back (in the mode bypassPermissions, until a person allows it). It drops what comes too fast.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import uuid
from typing import Any

from .open_session import OpenSession

HELD_SECONDS = 1.5  # in which the harness says that it holds a message back
MOST_BYTES = 1 << 20


def says_idle(session: OpenSession) -> bool:
    """Tell whether Claude Code says that it is idle. It says so up to a second late."""
    found = _read(os.path.join(_sessions(session), f"{session.pid}.json"))
    return found.get("status") == "idle"


async def tell(session: OpenSession, nudge: str) -> bool:
    """Write a message into a session. Return whether the harness holds it back."""
    path = str(session.details.get("socket") or "")
    number = str(uuid.uuid4())
    own = os.path.join(os.path.dirname(path), f"{os.getpid()}.sock")
    held = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            said = _parsed(line)
            if said.get("orig_msg_id") == number and said.get("status") == "held":
                held.set()
        writer.close()

    _unlink(own)
    server = await asyncio.start_unix_server(listen, own)
    try:
        os.chmod(own, 0o600)
        message = {"type": "user", "message": {"role": "user", "content": nudge}}
        await _write(path, [_proof(session, path), {**message, "from": f"uds:{own}", "msg_id": number}])
        try:
            async with asyncio.timeout(HELD_SECONDS):
                await held.wait()
        except TimeoutError:
            pass
    finally:
        server.close()
        _unlink(own)
    return held.is_set()


async def _write(path: str, lines: list[dict[str, Any]]) -> None:
    async with asyncio.timeout(5.0):
        _, writer = await asyncio.open_unix_connection(path)
        try:
            writer.write(b"".join(json.dumps(one).encode() + b"\n" for one in lines))
            await writer.drain()
        finally:
            writer.close()


def _proof(session: OpenSession, path: str) -> dict[str, Any]:
    """Return the line that proves who writes, with the key that the harness keeps for its own user."""
    name = f"{session.pid}.{hashlib.sha256(path.encode()).hexdigest()}.key"
    return {"type": "auth", "token": _read(os.path.join(_sessions(session), name)).get("peerToken", "")}


def _sessions(session: OpenSession) -> str:
    return os.path.join(str(session.details.get("config") or ""), "sessions")


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return _parsed(file.read(MOST_BYTES))
    except OSError:
        return {}


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
