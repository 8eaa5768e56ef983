"""Telegram's rules for entities, written down again from its documentation: shares no code with the renderer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

STYLES = {"bold", "italic", "underline", "strikethrough", "spoiler"}
CODE = {"code", "pre"}
QUOTES = {"blockquote", "expandable_blockquote"}
MOST = 100


def entity_problems(text: str, entities: Sequence[dict[str, Any]]) -> list[str]:
    """Return what Telegram would refuse, ignore or change about these entities."""
    problems = [problem for one in entities for problem in _alone(text, one)]
    if len(entities) > MOST:
        problems.append(f"{len(entities)} entities")
    if [one["offset"] for one in entities] != sorted(one["offset"] for one in entities):
        problems.append("not in order")
    for one, other in combinations(entities, 2):
        problems += [f"{one} and {other}: {problem}" for problem in _together(one, other)]
    return problems


def covered(text: str, entity: dict[str, Any]) -> str:
    """Return the words that an entity is for; half a character fails."""
    data = text.encode("utf-16-le")
    return data[2 * entity["offset"] : 2 * (entity["offset"] + entity["length"])].decode("utf-16-le")


def _alone(text: str, one: dict[str, Any]) -> list[str]:
    kind = one["type"]
    extra = {"text_link": {"url"}, "pre": {"language"}}.get(kind, set())
    problems = []
    if kind not in STYLES | CODE | QUOTES | {"text_link"}:
        problems.append(f"unknown: {one}")
    if set(one) - {"type", "offset", "length"} - extra or (kind == "text_link" and not one.get("url")):
        problems.append(f"wrong fields: {one}")
    if kind == "text_link" and not one["url"].startswith(("http://", "https://", "tg://")):
        problems.append(f"wrong address: {one}")
    if one["offset"] < 0 or one["length"] <= 0:
        problems.append(f"empty: {one}")
    if 2 * (one["offset"] + one["length"]) > len(text.encode("utf-16-le")):
        return [*problems, f"beyond the text: {one}"]
    try:
        words = covered(text, one)
    except UnicodeDecodeError:
        return [*problems, f"inside a character: {one}"]
    if words != words.rstrip() or words[:1] == "\n":
        problems.append(f"white space around {words!r}: {one}")
    if kind not in CODE | QUOTES and words != words.lstrip():
        problems.append(f"white space before {words!r}: {one}")
    return problems


def _together(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    start, end = one["offset"], one["offset"] + one["length"]
    begin, stop = other["offset"], other["offset"] + other["length"]
    if end <= begin or stop <= start:
        return []
    if not ((start <= begin and stop <= end) or (begin <= start and end <= stop)):
        return ["they overlap in part"]
    kinds = {one["type"], other["type"]}
    if one["type"] == other["type"]:
        return ["one in another of the same kind"]
    if kinds <= QUOTES:
        return ["quotations in each other"]
    outer = one["type"] if start <= begin and stop <= end else other["type"]
    inner = other["type"] if outer == one["type"] else one["type"]
    if (start, end) == (begin, stop) and kinds & QUOTES:
        return []  # the quotation is the outer one
    if outer in QUOTES:
        return []
    if kinds & CODE:
        return ["code is not alone"]
    if kinds & STYLES and inner not in QUOTES:
        return []
    return ["they cannot be in each other"]
