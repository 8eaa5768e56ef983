"""Lists for a person at a terminal: rows that fit its width, whatever letters are in them.

Imported only when a terminal is written to. Nothing here prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

GAP = "  "
LONGEST = 500  # of a text, only its beginning can be seen in a row

# What could steer a terminal or turn the order of its letters: control characters (C0, C1,
# DEL), the line and paragraph separators, bidi embeddings, overrides and isolates, halves of
# surrogate pairs, and the interlinear marks. Tab and newline are left to the caller.
_STEERS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb"
# An isolate that is closed on its own line, as rendering puts it around a right-to-left name,
# moves nothing outside it.
_STEERING = re.compile(f"(\u2068[^\n{_STEERS}]*\u2069)|[{_STEERS}]")
_NARROW = frozenset("–—‘’“”„…•→")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column and how it gives way when the terminal is narrow."""

    title: str
    least: int  # it is not made narrower than this while another can give way
    most: int = 1000  # what is above this gives way first
    leaves: int = 0  # the highest leaves first when even that is too wide; 0 never does


def tame(text: str) -> str:
    """The text with everything that could steer a terminal written out, as `\\x1b`."""
    if text.isascii() and text.isprintable():
        return text
    return _STEERING.sub(lambda found: found[1] or _written_out(ord(found[0])), text)


def _written_out(number: int) -> str:
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def flat(text: str) -> str:
    """The beginning of a text as one line."""
    return tame(" ".join(text[:LONGEST].split()))


def width(text: str) -> int:
    """How many cells of a terminal a tamed text takes."""
    if text.isascii() or all(letter < "\u0300" or letter in _NARROW for letter in text):
        return len(text)
    from wcwidth import wcswidth

    found: int = wcswidth(text)
    return found if found >= 0 else len(text)


def cut(text: str, cells: int) -> str:
    """The text, or as much of its beginning as fits with a `…` behind it."""
    if width(text) <= cells:
        return text
    kept, used = "", 0
    for letter in _letters(text):
        size = width(letter)
        if used + size > cells - 1:
            break
        kept, used = kept + letter, used + size
    return kept.rstrip() + "…" if cells > 0 else ""


def _letters(text: str) -> Iterable[str]:
    """What a person takes for one letter: an emoji of several code points is not cut in two."""
    if text.isascii():
        return text
    from wcwidth import iter_graphemes

    found: Iterable[str] = iter_graphemes(text)
    return found


def lines(columns: list[Column], rows: list[list[str]], cells: int) -> list[str]:
    """The titles and one line for each row; none is wider than `cells`."""
    kept = _kept(columns, rows, cells)
    texts = [[columns[i].title for i in kept], *([flat(row[i]) for i in kept] for row in rows)]
    sizes = _sizes([columns[i] for i in kept], texts, cells)
    return [cut(_line(row, sizes), cells) for row in texts]


def _kept(columns: list[Column], rows: list[list[str]], cells: int) -> list[int]:
    """Which columns say anything and find room."""
    kept = [i for i, column in enumerate(columns) if not column.leaves or any(row[i] for row in rows)]
    for i in sorted(kept, key=lambda i: -columns[i].leaves):
        if not columns[i].leaves or _total(columns[j].least for j in kept) <= cells:
            break
        kept.remove(i)
    return kept


def _sizes(columns: list[Column], texts: list[list[str]], cells: int) -> list[int]:
    """The width of each column: the widest gives way first."""
    sizes = [min(cells, max(map(width, texts_))) for texts_ in zip(*texts, strict=True)]
    if _total(sizes) > cells:
        sizes = [min(size, column.most) for size, column in zip(sizes, columns, strict=True)]
    while _total(sizes) > cells:
        spare = [max(0, size - column.least) and size for size, column in zip(sizes, columns, strict=True)]
        widest = spare.index(max(spare)) if any(spare) else sizes.index(max(sizes))
        if sizes[widest] <= 1:
            break
        sizes[widest] -= 1
    return sizes


def _total(sizes: Iterable[int]) -> int:
    found = list(sizes)
    return sum(found) + len(GAP) * (len(found) - 1)


def _line(texts: list[str], sizes: list[int]) -> str:
    cells = [cut(text, size) for text, size in zip(texts, sizes, strict=True)]
    padded = [cell + " " * (size - width(cell)) for cell, size in zip(cells, sizes, strict=True)]
    return GAP.join(padded).rstrip()
