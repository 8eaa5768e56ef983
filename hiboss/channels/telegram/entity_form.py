"""The entities of a document, by the rules of the Bot API for those that are inside each other.

Two of them never overlap in part; code and pre hold no other and are in none but a quotation; a link holds
only bold, italic, underline, strikethrough and spoiler; a quotation is in no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .chunk_form import Entity
from .formatted_document import Document, Leaf, Run, Style

_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")


class Span(NamedTuple):
    """Where an entity is in the text of the document."""

    start: int
    end: int
    kind: str
    value: str | None = None  # the address of a link, the language of code

    @property
    def is_block(self) -> bool:
        """Whether it is of whole lines: white space at its beginning is kept."""
        return self.kind in ("pre", "blockquote", "expandable_blockquote")


def spans(document: Document) -> list[Span]:
    """Return the entities of all of a document, in order, those that hold others before them."""
    found = [*_quotes(document.leaves), *_code(document.leaves)]
    for leaf in document.leaves:
        found += _styled(leaf.runs)
    return sorted(found, key=lambda one: (one.start, -one.end, not one.is_block))


def entities(found: Iterable[Span], text: str, start: int, end: int, shift: int) -> list[Entity]:
    """Return the entities of a part of a document, from `start` to `end`, whose text this is.

    `shift` characters were put before it; the blocks that begin it begin with them.
    """
    places = _unit_places(text)
    kept = []
    for one in found:
        first = max(one.start, start)
        begin = 0 if first == start and one.is_block else first - start + shift
        begin, stop = _trimmed(text, begin, min(one.end, end) - start + shift, is_block=one.is_block)
        if begin >= stop:
            continue
        entity: Entity = {"type": one.kind, "offset": places[begin], "length": places[stop] - places[begin]}
        if one.value:
            entity["language" if one.kind == "pre" else "url"] = one.value
        kept.append(entity)
    return sorted(kept, key=lambda one: (one["offset"], -one["length"]))


def _quotes(leaves: Sequence[Leaf]) -> Iterator[Span]:
    """Yield the outermost quotations, and what is in details but for its summary."""
    number, kind, start, end = -1, "", 0, 0
    for leaf in leaves:
        around = [one for one in leaf.path if one.kind in ("quote", "details")]
        if leaf.kind == "summary" and around[-1:] == list(leaf.path[-1:]):
            around.pop()
        if around and around[0].number == number:
            end = leaf.end
            continue
        if number >= 0:
            yield Span(start, end, kind)
        number, start, end = around[0].number if around else -1, leaf.start, leaf.end
        folds = bool(around) and (around[0].kind == "details" or around[0].expandable)
        kind = "expandable_blockquote" if folds else "blockquote"
    if number >= 0:
        yield Span(start, end, kind)


def _code(leaves: Sequence[Leaf]) -> Iterator[Span]:
    """Yield code blocks and aligned tables."""
    table, start, end = -1, 0, 0
    for leaf in leaves:
        is_row = leaf.kind == "row" and leaf.is_code
        if is_row and leaf.path[-1].number == table:
            end = leaf.end
            continue
        if table >= 0:
            yield Span(start, end, "pre")
        table, start, end = leaf.path[-1].number if is_row else -1, leaf.content, leaf.end
        if leaf.kind == "code":
            yield Span(leaf.content, leaf.end, "pre", leaf.language)
    if table >= 0:
        yield Span(start, end, "pre")


def _styled(runs: Iterable[Run]) -> Iterator[Span]:
    """Yield what styles become; where one ends, those that began in it end too, and begin again."""
    begun: list[tuple[Style, int]] = []
    last = 0
    for run in runs:
        wanted = _possible(run.styles)
        kept = 0
        while kept < len(begun) and begun[kept][0] in wanted:
            kept += 1
        yield from (Span(start, last, style.kind, style.url) for style, start in begun[kept:])
        del begun[kept:]
        there = [style for style, _ in begun]
        begun += [(style, run.start) for style in wanted if style not in there]
        last = run.end
    yield from (Span(start, last, style.kind, style.url) for style, start in begun)


def _possible(styles: tuple[Style, ...]) -> list[Style]:
    """Return the styles that can be together. Of a link and code the link stays: people press it."""
    by_kind: dict[str, Style] = {}
    for one in styles:
        by_kind.setdefault(one.kind, one)
    if "code" in by_kind and "text_link" not in by_kind:
        return [by_kind["code"]]
    by_kind.pop("code", None)
    return list(by_kind.values())


def _trimmed(text: str, start: int, end: int, *, is_block: bool) -> tuple[int, int]:
    """Return a part of a text without white space around it; a block keeps its first indentation."""
    part = text[start:end].rstrip()
    if is_block:
        blank = _BLANK_LINES.match(part)
        return start + (blank.end() if blank else 0), start + len(part)
    return start + len(part) - len(part.lstrip()), start + len(part)


def _unit_places(text: str) -> Sequence[int]:
    """Return the place in UTF-16 units of each character, and of the end."""
    if text.isascii() or max(text) <= "\uffff":
        return range(len(text) + 1)
    places = [0]
    for one in text:
        places.append(places[-1] + (2 if one > "\uffff" else 1))
    return places
