"""The doors of harnesses: how an idle session is told of mail when no hook of it waits."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ...core.settings import Settings
from .open_session import OpenSession

WAITER_SECONDS = 4.0  # in which a waiter comes back, before another door is used


class Told(NamedTuple):
    """What became of telling a session."""

    held: bool = False  # the harness holds it back until a person allows it
    error: str = ""  # why it could not be told; empty: it was


def is_open(session: OpenSession) -> bool:
    """Tell whether an idle session can be told of mail now."""
    return session.has_waiter


async def tell(session: OpenSession, nudge: str, settings: Settings) -> Told:
    """Tell a session by a door of its harness."""
    return Told(error="it has no door")


async def says_idle(session: OpenSession) -> bool:
    """Tell whether the harness itself says that it is idle."""
    return False
