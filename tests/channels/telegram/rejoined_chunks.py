"""Puts chunks together again: where each of them is in the whole text."""

from __future__ import annotations

from collections.abc import Sequence

from hiboss.channels.telegram.chunk_form import Chunk


def places(whole: str, chunks: Sequence[Chunk]) -> list[tuple[int, int]]:
    """Return where each chunk is in the text; fails unless they are all of it, but for white space between them.

    If a chunk begins with the two first lines of a table that was cut, they are there a second time: a header,
    and a line of - and + under it.
    """
    found = []
    place = 0
    for chunk in chunks:
        start = _start(whole, place, chunk.text)
        text = chunk.text
        if start is None:
            first, under, text = chunk.text.split("\n", 2)
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
