"""Telegram's rules for entities and rich HTML, written down again from its documentation: shares no code with the renderer."""

from __future__ import annotations

from collections.abc import Sequence
from html.parser import HTMLParser
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


VOID = {"br", "hr", "input"}
INLINE = {"b", "i", "u", "s", "code", "a", "tg-spoiler"}
PARENTS = {
    "li": {"ul", "ol"},
    "tr": {"table"},
    "td": {"tr"},
    "th": {"tr"},
    "summary": {"details"},
    "input": {"li"},
}
HOLDERS = {"", "li", "blockquote", "details"}  # of blocks; "" is the message itself
BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "hr", "ul", "ol", "blockquote", "table", "details"}
TEXTS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "li", "td", "th", "summary"} | INLINE
ATTRIBUTES = {
    "a": {"href"},
    "code": {"class"},
    "ol": {"start"},
    "td": {"align"},
    "th": {"align"},
    "input": {"type", "checked"},
}


class RichReader(HTMLParser):
    """Fails at what is not allowed. `seen` is the text as people see it, `links` the addresses in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = ""
        self.links: list[str] = []
        self.blocks = 0
        self.deepest = 0
        self._open = [""]
        self._numbers: list[int | None] = []
        self._source = html
        self.feed(html)
        self.close()
        assert self._open == [""], f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        inside = self._open[-1]
        assert set(given) <= ATTRIBUTES.get(tag, set()), (tag, attrs)
        if tag in PARENTS:
            assert inside in PARENTS[tag], (tag, self._open)
        elif tag in BLOCKS:
            assert inside in HOLDERS, (tag, self._open)
        else:
            assert tag in INLINE | {"br"} and inside in TEXTS, (tag, self._open)
        if tag in BLOCKS or tag in ("li", "tr"):
            self.blocks += 1
        self._show(tag, given)
        if tag not in VOID:
            self._open.append(tag)
            self.deepest = max(self.deepest, len(self._open) - 1)

    def _show(self, tag: str, given: dict[str, str | None]) -> None:
        if tag in ("ul", "ol"):
            self._numbers.append(int(given.get("start") or 1) if tag == "ol" else None)
        elif tag == "li":
            number = self._numbers[-1]
            self.seen += "\n• " if number is None else f"\n{number}. "
            if number is not None:
                self._numbers[-1] = number + 1
        elif tag == "input":
            assert given["type"] == "checkbox"
            if self.seen.endswith("• "):
                self.seen = self.seen[:-2]
            self.seen += "☑" if "checked" in given else "☐"
        elif tag == "hr":
            self.seen += "\n———\n"
        elif tag == "a":
            self.links.append(given["href"] or "")
        else:
            self.seen += " " if tag not in INLINE else ""

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, (tag, self._source)
        if tag in ("ul", "ol"):
            self._numbers.pop()

    def handle_data(self, data: str) -> None:
        assert self._open[-1] in TEXTS, (data, self._source)
        assert "\n" not in data or "pre" in self._open, "a line break in the source is none"
        self.seen += data


def words(seen: str) -> str:
    """Return what can be compared: without white space, what draws a table, and what says that something goes on."""
    return "".join(one for one in seen if not one.isspace() and one not in "|-+…")
