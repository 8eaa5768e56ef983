"""Steps of the tests of what goes out: post a whole letter, and look at what the server has then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hiboss.core.contracts.adapter import Adapter, File, Letter, Posted
from tests.channels.telegram.telegram_rig import TelegramRig

STARTS = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8", "image/webp": b"RIFF", "image/gif": b"GIF8"}


async def post_all(adapter: Adapter, letter: Letter) -> list[Posted]:
    """Post all chunks of a letter, one after the other, as the daemon does."""
    found = []
    for number, chunk in enumerate(adapter.chunks(letter)):
        answer = await adapter.post(letter, number, chunk)
        found.append(answer if isinstance(answer, Posted) else Posted((answer,)))
    return found


def made_file(directory: Path, name: str, mime: str, size: int = 100, platform_id: str | None = None) -> File:
    """Write a file that looks as its type says, to the server at least."""
    path = directory / name
    path.write_bytes(STARTS.get(mime, b"data").ljust(size, b"x")[:size])
    return File(name, str(path), mime, size, platform_id)


def kinds_of(posts: list[Any]) -> list[str]:
    """Return what each post is: text, photo, document …"""
    return [next(iter(one.media), "text") for one in posts]


def posts(rig: TelegramRig) -> list[Any]:
    """Return what the bot has posted, in order."""
    return [one for one in rig.private.messages if one.sender is rig.bot]
