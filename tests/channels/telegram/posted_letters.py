"""Steps of the tests of what goes out: post a whole letter, look at what the server has then, put chunks together again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hiboss.channels.telegram.chunk_form import Chunk
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


def places(whole: str, chunks: Sequence[Chunk], name: str = "") -> list[tuple[int, int]]:
    """Return where each chunk is in the text; fails unless they are all of it, but for white space between them.

    If a chunk begins with the two first lines of a table that was cut, they are there a second time: a header,
    and a line of - and + under it. `name`: the line with which each chunk begins.
    """
    found = []
    place = 0
    for chunk in chunks:
        text = chunk.text
        if name and found:
            assert text.startswith(f"{name}\n"), f"no name before: {text[:80]!r}"
            text = text.removeprefix(f"{name}\n")
        start = _start(whole, place, text)
        if start is None:
            first, under, text = text.split("\n", 2)
            assert under and not under.strip("-+"), (
                f"not in the text: {chunk.text[:80]!r} after {whole[:place][-80:]!r}"
            )
            assert f"{first}\n{under}" in whole[:place], f"no header before: {first!r}"
            assert chunk.entities[0]["type"] in ("pre", "blockquote", "expandable_blockquote")
            start = _start(whole, place, text)
            assert start is not None, f"not in the text: {text[:80]!r} after {whole[:place][-80:]!r}"
        found.append((start, start + len(text)))
        place = start + len(text)
    assert not whole[place:].strip(), f"lost: {whole[place:][:80]!r}"
    return found


def _start(whole: str, place: int, text: str) -> int | None:
    """Return where a text goes on after white space."""
    while True:
        if whole.startswith(text, place):
            return place
        if place >= len(whole) or not whole[place].isspace():
            return None
        place += 1
