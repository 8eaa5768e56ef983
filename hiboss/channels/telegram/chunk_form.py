"""The chunks of a letter: what one call of the Bot API posts, and the text in which hiboss stores it.

A chunk has up to three forms that say the same, so that one that a server refuses can go as the next: a rich
message, a text with entities, a plain text. All of them fit into one post, so nothing is ever cut anew.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

MOST_UNITS = 4096  # of a text
CAPTION_UNITS = 1024  # of a text with files
_MARK = "\x1f"  # begins what is more than a plain text; no text that is rendered has it

Entity = dict[str, Any]  # a MessageEntity of the Bot API, with offset and length in UTF-16 units


class Chunk(NamedTuple):
    """What one call posts."""

    text: str = ""  # without markup
    entities: tuple[Entity, ...] = ()
    rich: str | None = None  # the same as HTML of a rich message; None: entities can say all of it
    files: tuple[int, ...] = ()  # numbers of files of the letter: one, or an album; the text is their caption
    problem: str | None = None  # why a file is not posted that the text names; the sender is told
    buttons: bool = False  # those of the letter are under this one


def encode(chunk: Chunk) -> str:
    """Return a chunk as it is stored: a plain text as it is."""
    if chunk == Chunk(chunk.text) and not chunk.text.startswith(_MARK):
        return chunk.text
    facts = {name: value for name, value in chunk._asdict().items() if value}
    return _MARK + json.dumps(facts, ensure_ascii=False, separators=(",", ":"))


def decode(stored: str) -> Chunk:
    """Return the chunk that is stored so."""
    if not stored.startswith(_MARK):
        return Chunk(stored)
    facts = json.loads(stored[len(_MARK) :])
    for name in ("entities", "files"):
        facts[name] = tuple(facts.get(name, ()))
    return Chunk(**facts)


def units(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text) + sum(one > "\uffff" for one in text)
