"""Builds a document leaf by leaf, with what stands between the leaves and before items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from . import table_layout
from .formatted_document import (
    Cell,
    Container,
    ContainerKind,
    Document,
    Leaf,
    LeafKind,
    Piece,
    Run,
    Style,
    together,
)

BOLD = Style("bold")
RULE = "———"
_NO_SUMMARY = "Details"  # for details that have none
_CONTROLS = {code: " " for code in range(32) if code not in (9, 10)}
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")
_BREAK = re.compile(r"\n[ \t]*")


def clean(text: str) -> str:
    """Return a text with line feeds at the end of lines, and no other control character but the tab."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)


class DocumentBuilder:
    """Takes leaves in order. Between `enter` and `leave` they are in that container."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._leaves: list[Leaf] = []
        self._path: list[Container] = []
        self._begins: dict[int, int] = {}
        self._numbers = count()

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return len(self._leaves)

    def enter(self, kind: ContainerKind, **facts: Any) -> None:
        """Begin a container."""
        self._path.append(Container(kind, next(self._numbers), **facts))

    def leave(self) -> None:
        """End the container that was entered last."""
        self._path.pop()

    def front(self, text: str) -> None:
        """Add what stands before the body, without formatting; it ends its own line."""
        self._plain("front", text)

    def plain(self, text: str) -> None:
        """Add a text as it is."""
        self._plain("text", text)

    def text(self, pieces: Iterable[Piece], kind: LeafKind = "text", level: int = 0) -> None:
        """Add a paragraph, a heading or a summary, without white space around it; none without words."""
        pieces = _stripped(pieces)
        if kind != "text":
            pieces = [Piece(one.text, (BOLD, *one.styles)) for one in pieces]
        if not pieces and not self._marks_item():
            return
        start, content = self._begin(kind)
        indent = "\n" + " " * (content - start)
        runs = self._write_runs(Piece(_BREAK.sub(indent, one.text), one.styles) for one in pieces)
        self._end(Leaf(kind, start, content, self._length, tuple(self._path), runs, level))

    def code(self, text: str, language: str = "") -> None:
        """Add a code block; one without anything to see is left out."""
        text = clean(text).rstrip()
        if not text:
            return
        start, content = self._begin("code", is_code=True)
        self._write(text)
        known = language if _LANGUAGE.fullmatch(language) else ""
        path = tuple(self._path)
        self._end(Leaf("code", start, content, self._length, path, language=known, is_code=True))

    def rule(self) -> None:
        """Add a line between two parts."""
        start, content = self._begin("rule")
        run = self._write_runs([Piece(RULE)])
        self._end(Leaf("rule", start, content, self._length, tuple(self._path), run))

    def table(self, rows: Sequence[Sequence[Cell]], *, has_header: bool) -> None:
        """Add a table: aligned if it is narrow and has no links, since these cannot be in code."""
        rows = [[Cell(_one_line(cell.pieces), cell.align) for cell in row] for row in rows if row]
        if not any(piece.text for row in rows for cell in row for piece in cell.pieces):
            return
        lines = table_layout.aligned(rows, has_header=has_header)
        is_table = max(map(len, rows)) <= table_layout.MOST_COLUMNS
        self.enter("table" if is_table else "lines")
        for number, row in enumerate(rows):
            is_header = has_header and number == 0
            if lines is not None:
                start, content = self._begin("row", is_code=True)
                self._write(lines[number])
                runs: tuple[Run, ...] = ()
            else:
                start, content = self._begin("row")
                runs = self._write_runs(table_layout.joined(row, BOLD if is_header else None))
            place = (start, content, self._length, tuple(self._path))
            facts: dict[str, Any] = {
                "cells": tuple(row),
                "is_header": is_header,
                "is_code": lines is not None,
            }
            self._end(Leaf("row", *place, runs=runs, **facts))
        self.leave()

    def document(self) -> Document:
        """Return what was built."""
        return Document("".join(self._parts), self._leaves, self._begins)

    def _plain(self, kind: LeafKind, text: str) -> None:
        start, content = self._begin(kind)
        runs = self._write_runs([Piece(text)])
        self._end(Leaf(kind, start, content, self._length, tuple(self._path), runs))

    def _begin(self, kind: LeafKind, *, is_code: bool = False) -> tuple[int, int]:
        """Write what stands before a leaf; return where its line and its content begin."""
        self._begin_details(kind)
        self._write(self._separator(kind))
        start = self._length
        indent = marker = ""
        for one in self._path:
            if one.kind == "item" and one.number in self._begins:
                indent += " " * (len(one.marker) + 1)
            elif one.kind == "item":
                marker += one.marker
        if is_code:  # what is shown as it is begins a line
            indent, marker = (indent, marker.rstrip() + "\n") if marker else ("", "")
        self._write(indent + marker)
        for one in self._path:
            self._begins.setdefault(one.number, start + len(indent))
        return start, self._length

    def _begin_details(self, kind: LeafKind) -> None:
        """Give details a summary that begin without one."""
        for depth, one in enumerate(self._path, start=1):
            own = kind == "summary" and depth == len(self._path)
            if one.kind == "details" and one.number not in self._begins and not own:
                path, self._path = self._path, self._path[:depth]
                self.text([Piece(_NO_SUMMARY)], "summary")
                self._path = path

    def _separator(self, kind: LeafKind) -> str:
        if not self._leaves:
            return ""
        before = self._leaves[-1]
        if before.kind == "front":
            return "" if self._parts[-1].endswith("\n") or (kind == "text" and not self._path) else "\n"
        if before.kind == "summary" and before.path[-1] in self._path:
            return "\n"
        return "\n" if together(before.path, tuple(self._path)) else "\n\n"

    def _marks_item(self) -> bool:
        return any(one.kind == "item" and one.number not in self._begins for one in self._path)

    def _write_runs(self, pieces: Iterable[Piece]) -> tuple[Run, ...]:
        runs = []
        for one in pieces:
            start = self._length
            self._write(clean(one.text))
            runs.append(Run(start, self._length, one.styles))
        return tuple(runs)

    def _write(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)

    def _end(self, leaf: Leaf) -> None:
        self._leaves.append(leaf)


def _stripped(pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces without white space around all of them, and without empty ones."""
    kept = [one for one in pieces if one.text]
    while kept and not kept[0].text.strip():
        kept.pop(0)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[0] = kept[0]._replace(text=kept[0].text.lstrip())
        kept[-1] = kept[-1]._replace(text=kept[-1].text.rstrip())
    return kept


def _one_line(pieces: Iterable[Piece]) -> list[Piece]:
    return [one._replace(text=re.sub(r"\s+", " ", clean(one.text))) for one in _stripped(pieces)]
