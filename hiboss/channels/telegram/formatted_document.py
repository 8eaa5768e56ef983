"""A formatted text as one string and the leaves of its tree: all parsers make it, all forms are made of it.

A leaf is a paragraph, a heading, a code block, a row of a table … Its path names the lists, quotations and so
on around it, from the outside in. All places are indexes into the one text: a cut is the same in all forms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

LeafKind = Literal["front", "text", "heading", "summary", "code", "row", "rule"]
ContainerKind = Literal["quote", "details", "list", "item", "table", "lines"]


class Style(NamedTuple):
    """How some words look; the names are those of the platform's entities."""

    kind: Literal["bold", "italic", "underline", "strikethrough", "spoiler", "code", "text_link"]
    url: str | None = None  # of a text_link


class Piece(NamedTuple):
    """Some words of the same look."""

    text: str
    styles: tuple[Style, ...] = ()  # the outermost first


class Run(NamedTuple):
    """Where some words of the same look are in the text."""

    start: int
    end: int
    styles: tuple[Style, ...]


class Cell(NamedTuple):
    """A cell of a table."""

    pieces: Sequence[Piece]
    align: str = ""  # left, center or right; empty: as usual


class Container(NamedTuple):
    """What holds leaves. `lines` shows nothing: its leaves are just lines of one block."""

    kind: ContainerKind
    number: int  # no other has it
    marker: str = ""  # of an item: what stands before its first line
    ordinal: int | None = None  # of an item: its number; None: the list has no numbers
    checked: bool | None = None  # of an item: whether its box is checked; None: it has none
    expandable: bool = False  # of a quotation


class Leaf(NamedTuple):
    """A part of the text that holds no other."""

    kind: LeafKind
    start: int  # of its line, with indentation and marker
    content: int  # where what it says begins
    end: int
    path: tuple[Container, ...]
    runs: tuple[Run, ...] = ()  # they cover the content; none in code
    level: int = 0  # of a heading: 1 to 6
    language: str = ""  # of code
    cells: tuple[Cell, ...] = ()  # of a row
    is_header: bool = False  # of a row
    is_code: bool = False  # shown as it is, in letters of one width: code, and the rows of an aligned table


@dataclass
class Document:
    """A formatted text. The leaves are in order, with nothing but white space between them."""

    text: str
    leaves: list[Leaf]
    begins: dict[int, int]  # where a container begins, with its marker, by its number
    # Where leaves begin, by how good a cut there is: between blocks; items or rows; after a heading.
    breaks: tuple[list[int], list[int], list[int]] = field(default_factory=lambda: ([], [], []))
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._starts = [leaf.start for leaf in self.leaves]
        for before, leaf in zip(self.leaves, self.leaves[1:], strict=False):
            if before.kind in ("front", "heading", "summary") or before.is_header:
                rank = 2
            else:
                rank = 1 if together(before.path, leaf.path) else 0
            self.breaks[rank].append(leaf.start)

    def leaf_at(self, place: int) -> Leaf:
        """Return the leaf that a place is in, or the one before it."""
        return self.leaves[max(0, bisect_right(self._starts, place) - 1)]

    def leaves_between(self, start: int, end: int) -> list[Leaf]:
        """Return the leaves that have some of their content, or their marker, there."""
        first = max(0, bisect_right(self._starts, start) - 1)
        found = self.leaves[first : bisect_right(self._starts, end - 1)]
        return [leaf for leaf in found if leaf.end > start]


def together(before: tuple[Container, ...], after: tuple[Container, ...]) -> bool:
    """Tell whether two leaves that follow each other are lines of one list or table, by their paths."""
    shared = None
    for one, other in zip(before, after, strict=False):
        if one.number != other.number:
            break
        shared = one
    return shared is not None and shared.kind in ("list", "item", "table", "lines")
