"""Entities of a text: offsets in UTF-16 units, and those the platform finds by itself."""

from __future__ import annotations

import re
from typing import Any

Entity = dict[str, Any]

_FOUND = re.compile(
    r"(?P<url>https?://[^\s<>]+)"
    r"|(?P<email>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<bot_command>(?<![\w/<>@])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?(?![\w/]))"
    r"|(?P<mention>(?<!\w)@[A-Za-z0-9_]{3,32}(?!\w))"
    r"|(?P<hashtag>(?<!\w)#\w*[^\W\d]\w*)"
)
_NOT_INSIDE = {"code", "pre", "text_link", "url"}  # nothing is found inside these


def units(text: str) -> int:
    """Return the length in UTF-16 units, in which the platform counts: an emoji mostly has two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def part(text: str, entity: Entity) -> str:
    """Return the part of a text that an entity covers."""
    data = text.encode("utf-16-le", "surrogatepass")
    start = entity["offset"] * 2
    return data[start : start + entity["length"] * 2].decode("utf-16-le", "replace")


def found_entities(text: str, given: list[Entity] | None = None) -> list[Entity]:
    """Return the given entities and those found in the text: commands, @names, links, tags."""
    entities = list(given or [])
    taken = [one for one in entities if one["type"] in _NOT_INSIDE]
    for match in _FOUND.finditer(text):
        offset, length = units(text[: match.start()]), units(match.group())
        if not any(_overlap(one, offset, length) for one in taken):
            entities.append({"type": str(match.lastgroup), "offset": offset, "length": length})
    return sorted(entities, key=lambda one: (one["offset"], -one["length"]))


def stripped(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Remove white space around a text, as the platform does, and move the entities with it.

    What an entity covers at the beginning stays: the first line of a code block keeps its indentation.
    """
    first = min((one["offset"] for one in entities), default=units(text))
    lost = min(units(text) - units(text.lstrip()), first)
    kept = text[lost:].rstrip()  # white space has one unit each
    end = units(kept)
    moved = []
    for one in entities:
        start = one["offset"] - lost
        length = min(start + one["length"], end) - start
        if length > 0:
            moved.append({**one, "offset": start, "length": length})
    return kept, moved


def _overlap(entity: Entity, offset: int, length: int) -> bool:
    start: int = entity["offset"]
    return start < offset + length and offset < start + int(entity["length"])
