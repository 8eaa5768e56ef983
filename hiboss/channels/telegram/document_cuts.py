"""Where a document is cut into posts: between blocks, items and rows, lines, sentences, words, or letters.

A cut is a place in the text, so all forms of a post are cut there. The best one in the second half of what
fits into a post wins.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .chunk_form import units
from .entity_form import Span
from .formatted_document import Document, Leaf

_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_SPACE = re.compile(r"\s*")
_SENTENCE = re.compile(r"[.!?…][\"')\]»”]*(?=\s)|[。！？]")


class Part(NamedTuple):
    """What of a document is in one post."""

    start: int
    end: int
    header: Leaf | None  # of a table that began in an earlier post: it stands before the rows again
    spans: Sequence[Span]  # the entities of the document that are there


def parts(
    document: Document, spans: Sequence[Span], most_units: int, most_entities: int, room: int = 0
) -> Iterator[Part]:
    """Yield the posts of a document. White space between them is in none, but for the indentation of code.

    `room`: units that stay free in each but the first.
    """
    text, end = document.text, len(document.text.rstrip())
    headers = _Headers(document)
    following, around = 0, list[Span]()
    start = _visible(document, 0)
    while start < end:
        header = headers.above(start, most_units)
        fits = _fitting(text, start, most_units - units(header_text(document, header)))
        while following < len(spans) and spans[following].start < start:
            around.append(spans[following])
            following += 1
        around = [one for one in around if one.end > start]
        beyond = following + most_entities - len(around)
        if beyond < len(spans):
            fits = max(start + 1, min(fits, spans[beyond].start))
        stop = end if fits >= end else _best_cut(document, start, fits)
        there = [*around, *(one for one in spans[following:beyond] if one.start < stop)]
        stripped = start + len(text[start:stop].rstrip())
        if stripped > start:
            yield Part(start, stripped, header, there)
            most_units, room = most_units - room, 0
        start = _visible(document, stop)


class _Headers:
    """The headers of tables that are aligned."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._of_table = {
            leaf.path[-1].number: leaf for leaf in document.leaves if leaf.is_header and leaf.is_code
        }

    def above(self, start: int, most_units: int) -> Leaf | None:
        """Return the header to repeat before a row that begins a post, if it is short and both fit."""
        leaf = self._document.leaf_at(start)
        if leaf.kind != "row" or leaf.is_header or start != leaf.content:
            return None
        header = self._of_table.get(leaf.path[-1].number)
        if header is None:
            return None
        above = units(header_text(self._document, header))
        row = units(self._document.text[leaf.content : leaf.end])
        return header if above <= most_units // 4 and above + row <= most_units else None


def header_text(document: Document, header: Leaf | None) -> str:
    """Return what is put before the rows of a table: its header, and the end of the line."""
    return "" if header is None else document.text[header.content : header.end] + "\n"


def _visible(document: Document, start: int) -> int:
    """Return where a post begins: after white space, but with the indentation of code."""
    blank = _BLANK_LINES.match(document.text, start)
    place = blank.end() if blank else start
    leaf = document.leaf_at(place) if document.leaves else None
    if leaf is not None and leaf.is_code and leaf.content <= place < leaf.end:
        return place
    found = _space_end(document.text, place)
    # An accent can stand on a space: they are one letter.
    return found if found == start or _is_between(document.text, start, found) else found - 1


def _space_end(text: str, place: int) -> int:
    space = _SPACE.match(text, place)
    return space.end() if space else place


def _fitting(text: str, start: int, room: int) -> int:
    """Return where a part ends that begins there and has at most so many units."""
    end = min(len(text), start + room)
    part = text[start:end]
    if part.isascii() or max(part, default="") <= "\uffff":
        return end
    for number, one in enumerate(part):
        room -= 2 if one > "\uffff" else 1
        if room < 0:
            return start + number
    return end


def _best_cut(document: Document, start: int, fits: int) -> int:
    """Return where to end a part: at most at `fits`, but for white space, which is in no part."""
    text = document.text
    floor = start + (fits - start) // 2
    reach = _space_end(text, fits)
    leaf = document.leaf_at(fits)
    blocks, lines, headings = (_last(one, floor, reach) for one in document.breaks)
    if blocks or lines:
        return blocks or lines
    if headings == leaf.start and leaf.is_code and units(text[leaf.start : leaf.end]) <= fits - start:
        return headings  # code stays whole if it can
    floor = max(floor, leaf.content)
    for mark in ("\n\n", "\n"):
        if (found := text.rfind(mark, floor, reach)) > start:
            return found + len(mark)
    return (
        _cut_in_line(text, start, floor, fits, reach, is_code=leaf.is_code)
        or headings
        or _letter(text, start, fits)
    )


def _last(places: list[int], floor: int, reach: int) -> int:
    """Return the last of these places in the second half of a post; 0 if none is there."""
    found = bisect_right(places, reach)
    return places[found - 1] if found and places[found - 1] > floor else 0


def _cut_in_line(text: str, start: int, floor: int, fits: int, reach: int, *, is_code: bool) -> int:
    """Return the end of a sentence or a word; 0 if there is none."""
    if not is_code:
        ends = [found.end() for found in _SENTENCE.finditer(text, floor, reach)]
        for end in reversed(ends):
            if start < end <= fits and _is_between(text, start, end):
                return end
    for end in range(min(fits + 1, reach), floor, -1):
        if text[end - 1].isspace() and _is_between(text, start, end):
            return end
    return 0


def _letter(text: str, start: int, fits: int) -> int:
    """Return the end of a letter as people see it. One that is longer than a post is cut somewhere."""
    if _is_between(text, start, fits):
        return fits
    found = _letter_start(text, start, fits)
    return found if found > start else fits


def _is_between(text: str, start: int, place: int) -> bool:
    """Tell whether a cut is between two letters, of a text that begins with one at `start`."""
    if place >= len(text) or text[place - 1 : place + 1].isascii():
        return True
    return _letter_start(text, start, place) == place


def _letter_start(text: str, start: int, place: int) -> int:
    from wcwidth import grapheme_boundary_before

    return start + grapheme_boundary_before(text[start : place + 1], place + 1 - start)
