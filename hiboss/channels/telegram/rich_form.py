"""A part of a document as the HTML of a rich message (Bot API 10.1), if it has a list, a table or details.

What is known of the format, from the documentation of the Bot API and reports of its users: a line break in
the source is a space, only <br> is a new line, but <pre> is kept as it is; of the named characters only a few
are known, so just four are used; a checkbox is <input type="checkbox"> at the beginning of an item; 32,768
characters, 500 blocks, 16 levels and 20 columns at most. Links in a table with one row get lost. Not known:
what a server says of an item or a cell without words. If it refuses, the post goes with entities.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter

from .document_cuts import Part
from .formatted_document import Container, Document, Leaf, Piece, Style

MOST_CHARACTERS = 32768
_MOST_BLOCKS = 500
_MOST_LEVELS = 16
_TAGS = {
    "bold": "b",
    "italic": "i",
    "underline": "u",
    "strikethrough": "s",
    "spoiler": "tg-spoiler",
    "code": "code",
}
_RICH = ("list", "table", "details")
_ELSEWHERE = "…"  # the summary of details that began in an earlier post
_start_of, _end_of = attrgetter("start"), attrgetter("end")
_NEW_LINE = re.compile(r"[^\S\n]*\n[^\S\n]*")


def rich(document: Document, part: Part, name: str = "") -> str | None:
    """Return the HTML of a part; None if entities can say all of it, or it is too much for a rich message.

    `name`: a line before it.
    """
    leaves = document.leaves_between(part.start, part.end)
    if not any(one.kind in _RICH for leaf in leaves for one in leaf.path):
        return None
    writer = _Writer(document, part, name)
    for leaf in leaves:
        writer.write(leaf)
    return writer.result()


class _Writer:
    def __init__(self, document: Document, part: Part, name: str) -> None:
        self._document = document
        self._part = part
        self._html: list[str] = [f"<p>{_escaped(name)}</p>"] if name else []
        self._open: list[tuple[Container, str]] = []  # with the tag that ends it
        self._blocks = len(self._html)
        self._levels = 0
        self._is_rich = False
        self._is_cut_badly = False

    def write(self, leaf: Leaf) -> None:
        """Add a leaf, or what of it is in the part."""
        start, end = max(leaf.content, self._part.start), min(leaf.end, self._part.end)
        self._is_cut_badly |= self._is_marker_cut(leaf)
        whole_row = leaf.kind == "row" and (start, end) == (leaf.content, leaf.end)
        self._go_to(leaf, self._path(leaf, whole_row=whole_row))
        self._blocks += 1
        if whole_row and leaf.path[-1].kind == "table":
            self._html.append(self._row(leaf))
        elif leaf.is_code:
            self._html.append(_pre(self._document.text[start:end], leaf.language))
        elif leaf.kind == "rule":
            self._html.append("<hr>")
        else:
            self._html.append(self._text(leaf, start, end))

    def result(self) -> str | None:
        """Return the HTML, if it is worth it and not too much."""
        self._close(0)
        html = "".join(self._html)
        too_much = len(html) > MOST_CHARACTERS or self._blocks > _MOST_BLOCKS or self._levels > _MOST_LEVELS
        return html if self._is_rich and not too_much and not self._is_cut_badly else None

    def _is_marker_cut(self, leaf: Leaf) -> bool:
        """Tell whether the part has only some of what stands before a leaf: HTML has all of it or nothing."""
        text, part = self._document.text, self._part
        if part.start >= leaf.content:
            return False
        before, marker = text[leaf.start : part.start], text[leaf.start : leaf.content].rstrip()
        return bool(before.strip()) or part.end < leaf.start + len(marker)

    def _path(self, leaf: Leaf, *, whole_row: bool) -> list[Container]:
        """Return the containers around a leaf that are shown: not items that began in an earlier post."""
        path = []
        for one, inner in zip(leaf.path, (*leaf.path[1:], None), strict=False):
            is_item = inner is not None and inner.kind == "item" and not self._is_elsewhere(inner)
            shown = {
                "lines": False,
                "table": whole_row,
                "list": is_item,
                "item": not self._is_elsewhere(one),
            }
            if shown.get(one.kind, True):
                path.append(one)
        return path

    def _is_elsewhere(self, one: Container) -> bool:
        return self._document.begins[one.number] < self._part.start

    def _go_to(self, leaf: Leaf, path: list[Container]) -> None:
        """Close and open containers until those around the leaf are open."""
        kept = 0
        while kept < min(len(path), len(self._open)) and self._open[kept][0] == path[kept]:
            kept += 1
        self._close(kept)
        for number, one in enumerate(path[kept:], start=kept + 1):
            self._enter(one, leaf, path[number] if number < len(path) else None)
        self._levels = max(self._levels, len(path) + 1)

    def _enter(self, one: Container, leaf: Leaf, inner: Container | None) -> None:
        self._blocks += 1
        self._is_rich |= one.kind in _RICH
        tag = {"quote": "blockquote", "item": "li"}.get(one.kind, one.kind)
        begin = f"<{tag}>"
        if one.kind == "list":
            ordinal = inner.ordinal if inner is not None else None
            tag = "ul" if ordinal is None else "ol"
            begin = "<ol>" if ordinal == 1 else "<ul>" if ordinal is None else f'<ol start="{ordinal}">'
        elif one.kind == "item" and one.checked is not None:
            begin += f'<input type="checkbox"{" checked" if one.checked else ""}>'
        elif one.kind == "details" and not (leaf.kind == "summary" and leaf.path[-1] == one):
            begin += f"<summary>{_ELSEWHERE}</summary>"
        elif one.kind == "table" and self._part.header is not None:
            header = self._part.header
            begin += self._row(header) if header.path[-1] == one else ""
        self._html.append(begin)
        self._open.append((one, f"</{tag}>"))

    def _close(self, kept: int) -> None:
        while len(self._open) > kept:
            self._html.append(self._open.pop()[1])

    def _row(self, leaf: Leaf) -> str:
        tag = "th" if leaf.is_header else "td"
        cells = []
        for cell in leaf.cells:
            align = f' align="{cell.align}"' if cell.align in ("left", "center", "right") else ""
            cells.append(f"<{tag}{align}>{self._words(cell.pieces)}</{tag}>")
        return f"<tr>{''.join(cells)}</tr>"

    def _text(self, leaf: Leaf, start: int, end: int) -> str:
        text = self._document.text
        end = start + len(text[start:end].rstrip())
        first, last = bisect_right(leaf.runs, start, key=_end_of), bisect_left(leaf.runs, end, key=_start_of)
        pieces = [
            Piece(text[max(run.start, start) : min(run.end, end)], run.styles)
            for run in leaf.runs[first:last]
        ]
        if leaf.kind in ("heading", "summary"):  # bold anyway
            pieces = [Piece(one.text, tuple(s for s in one.styles if s.kind != "bold")) for one in pieces]
        words = self._words(pieces)
        if leaf.kind == "summary":
            return f"<summary>{words}</summary>"
        if leaf.kind == "heading":
            return f"<h{leaf.level}>{words}</h{leaf.level}>"
        begins_item = (
            bool(self._open) and self._open[-1][0].kind == "item" and self._html[-1].startswith("<li>")
        )
        return words if begins_item or not words else f"<p>{words}</p>"

    def _words(self, pieces: Iterable[Piece]) -> str:
        found = []
        for one in pieces:
            styles = tuple(dict.fromkeys(one.styles)) if one.text.strip() else ()
            self._levels = max(self._levels, len(self._open) + 1 + len(styles))
            words = _NEW_LINE.sub("<br>", _escaped(one.text))
            for style in reversed(styles):
                words = _styled(words, style)
            found.append(words)
        return "".join(found)


def _styled(words: str, style: Style) -> str:
    if style.kind == "text_link":
        return f'<a href="{_escaped(style.url or "")}">{words}</a>'
    tag = _TAGS[style.kind]
    return f"<{tag}>{words}</{tag}>"


def _pre(code: str, language: str) -> str:
    inner = _escaped(code)
    return (
        f'<pre><code class="language-{_escaped(language)}">{inner}</code></pre>'
        if language
        else f"<pre>{inner}</pre>"
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
