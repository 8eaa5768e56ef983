"""Tables for a terminal: rows that fit its width, whatever letters are in them.

Imported only when a terminal is written to. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .text_layout import LONGEST, cut, flat, width

GAP = "  "


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column, and how it shrinks when the terminal is narrow."""

    title: str
    least: int  # not made narrower than this while another column can shrink
    most: int = 1000  # what is wider than this shrinks first
    leaves: int = 0  # the highest is left out first when the rest is still too wide; 0 never is


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a table; `whole` when its last column shows all of its text."""

    text: str
    whole: bool


def fit(columns: list[Column], rows: list[list[str]], cells: int) -> list[Line]:
    """The titles, and one line for each row; none is wider than `cells`."""
    kept = _kept(columns, rows, cells)
    texts = [[columns[i].title for i in kept], *([flat(row[i]) for i in kept] for row in rows)]
    sizes = _sizes([columns[i] for i in kept], texts, cells)
    lasts = [columns[-1].title, *(row[-1] for row in rows)]
    last_is_kept = kept[-1] == len(columns) - 1
    return [
        Line(
            text=(shown := cut(line := _line(row, sizes), cells)),
            whole=last_is_kept and shown == line and width(row[-1]) <= sizes[-1] and len(last) <= LONGEST,
        )
        for row, last in zip(texts, lasts, strict=True)
    ]


def _kept(columns: list[Column], rows: list[list[str]], cells: int) -> list[int]:
    """The columns that have something to show and for which there is room."""
    kept = [i for i, column in enumerate(columns) if not column.leaves or any(row[i] for row in rows)]
    for i in sorted(kept, key=lambda i: -columns[i].leaves):
        if not columns[i].leaves or _total(columns[j].least for j in kept) <= cells:
            break
        kept.remove(i)
    return kept


def _sizes(columns: list[Column], texts: list[list[str]], cells: int) -> list[int]:
    """The width of each column: the widest shrinks first."""
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
