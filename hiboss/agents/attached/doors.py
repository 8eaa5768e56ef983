"""The doors of harnesses: how an idle session is told of mail when no hook of it waits."""

from __future__ import annotations

import asyncio
import os
from typing import NamedTuple

from . import claude_doors, codex_doors
from .open_session import OpenSession

WAITER_SECONDS = 4.0  # in which a waiter comes back, before another door is used


class Told(NamedTuple):
    """What became of telling a session."""

    held: bool = False  # the harness holds it back until a person allows it
    error: str = ""  # why it could not be told; empty: it was


def is_open(session: OpenSession) -> bool:
    """Tell whether an idle session can be told of mail now."""
    if session.has_waiter or session.client == "codex":
        return True
    path = str(session.details.get("socket") or "")
    waited = asyncio.get_running_loop().time() - max(session.waiter_left_at, session.idle_at)
    return bool(path) and waited > WAITER_SECONDS and os.path.exists(path)


async def tell(session: OpenSession, nudge: str) -> Told:
    """Tell a session by a door of its harness."""
    try:
        if session.client == "codex":
            await codex_doors.tell(session, nudge)
            return Told()
        return Told(held=await claude_doors.tell(session, nudge))
    except (OSError, TimeoutError, ValueError, codex_doors.Refused) as error:
        return Told(error=f"{type(error).__name__}: {error}"[:300])


def says_idle(session: OpenSession) -> bool:
    """Tell whether the harness itself says that it is idle. It reads a file of the harness."""
    try:
        if session.client == "codex":
            return codex_doors.says_idle(session)
        return claude_doors.says_idle(session)
    except (OSError, ValueError):
        return False
