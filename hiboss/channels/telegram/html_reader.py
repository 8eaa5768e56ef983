"""Reads HTML into a document: the tags that Telegram knows, and the usual blocks; broken HTML too.

Unlike in a browser, lines stay lines, as in Telegram's own HTML; other white space is one space.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any, NamedTuple

from . import link_targets
from .document_builder import DocumentBuilder
from .formatted_document import Cell, Piece, Style

_STYLES = {
    **dict.fromkeys(("b", "strong"), Style("bold")),
    **dict.fromkeys(("i", "em"), Style("italic")),
    **dict.fromkeys(("u", "ins"), Style("underline")),
    **dict.fromkeys(("s", "strike", "del"), Style("strikethrough")),
    "tg-spoiler": Style("spoiler"),
    "code": Style("code"),
}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CONTAINERS = ("ul", "ol", "li", "blockquote", "details")
_BLOCKS = {
    *("p", "div", "section", "article", "header", "footer", "main", "figure", "figcaption", "body", "html"),
    *_HEADINGS,
    "summary",
}
_DROPPED = ("script", "style")
_DEEPEST = 16  # of containers; what is deeper has only its words
_MOST_STYLES = 16
# What begins no tag: the parser raises at some of it, and takes very long for the beginnings of many.
_NO_TAG = re.compile(r"<(?!/?[a-zA-Z][^<>]{0,4000}>)")
_DOCTYPE = re.compile(r"<!doctype\s[^<>]*>", re.IGNORECASE)
_SPACES = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n\s*\n\s*")
_LINE_ENDS = re.compile(r" ?\n ?")
_LANGUAGE = re.compile(r"(?:language|lang)-(\S+)")

Attributes = list[tuple[str, str | None]]


class _OpenStyle(NamedTuple):
    tag: str
    style: Style | None
    url: str  # of a link
    words: int  # so many pieces were there when it began


def read(source: str, builder: DocumentBuilder) -> None:
    """Add what a text in HTML says. Raises whatever the parser raises."""
    reader = _Reader(builder)
    reader.feed(_NO_TAG.sub("&lt;", _DOCTYPE.sub("", _without_comments(source))))
    reader.close()
    reader.finish()


def _without_comments(source: str) -> str:
    """Return HTML without its comments; one that does not end is text."""
    kept = []
    place = 0
    while (begin := source.find("<!--", place)) >= 0 and (end := source.find("-->", begin + 4)) >= 0:
        kept.append(source[place:begin])
        place = end + 3
    return "".join(kept) + source[place:]


class _Reader(HTMLParser):
    def __init__(self, builder: DocumentBuilder) -> None:
        super().__init__(convert_charrefs=True)
        self._builder = builder
        self._pieces: list[Piece] = []
        self._styles: list[_OpenStyle] = []
        self._open: list[str] = []  # tags of containers
        self._ordinals: list[int | None] = []  # of the next item of each open list
        self._kind: tuple[Any, int] = ("text", 0)
        self._code: list[str] | None = None  # of a <pre> that is open
        self._language = ""
        self._rows: list[list[Cell]] | None = None  # of a table that is open
        self._has_header = False
        self._dropped = ""  # the tag whose content is dropped

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _DROPPED:
            self._dropped = tag
        elif self._code is not None:
            self._start_in_code(tag, given)
        elif tag == "br":
            self._add("\n")
        elif tag == "img":
            self._start_link("img", given.get("src", ""))
            self._add(given.get("alt", ""))
            self._end_style("img")
        elif tag == "a":
            self._start_link("a", given.get("href", ""))
        elif tag in _STYLES or (tag == "span" and "tg-spoiler" in given.get("class", "").split()):
            self._start_style(_OpenStyle(tag, _STYLES.get(tag, Style("spoiler")), "", 0))
        else:
            self._start_block(tag, given)

    def handle_endtag(self, tag: str) -> None:
        if tag in _DROPPED:
            self._dropped = ""
        elif self._code is not None:
            if tag == "pre":
                self._end_code()
        elif tag == "a" or tag in _STYLES or tag == "span":
            self._end_style(tag)
        elif self._rows is not None:
            self._end_in_table(tag)
        elif tag in _CONTAINERS:
            self._leave(tag)
        elif tag in _BLOCKS:
            self._flush()

    def handle_data(self, data: str) -> None:
        if self._dropped:
            return
        if self._code is not None:
            self._code.append(data)
            return
        text = _LINE_ENDS.sub("\n", _EMPTY_LINES.sub("\n\n", _SPACES.sub(" ", data)))
        if not self._pieces or self._pieces[-1].text.endswith("\n"):
            text = text.lstrip()
        self._add(text)

    def finish(self) -> None:
        """End what is still open."""
        if self._code is not None:
            self._end_code()
        if self._rows is not None:
            self._end_table()
        self._flush()
        while self._open:
            self._leave(self._open[-1])

    def _start_in_code(self, tag: str, given: dict[str, str]) -> None:
        if tag == "br" and self._code is not None:
            self._code.append("\n")
        elif tag == "code" and (found := _LANGUAGE.search(given.get("class", ""))):
            self._language = found[1]

    def _start_block(self, tag: str, given: dict[str, str]) -> None:
        if self._rows is not None:
            self._start_in_table(tag, given)
        elif tag == "pre":
            self._flush()
            self._code, self._language = [], ""
        elif tag == "table":
            self._flush()
            self._rows, self._has_header = [], False
        elif tag == "hr":
            self._flush()
            self._builder.rule()
        elif tag in _CONTAINERS:
            self._enter(tag, given)
        elif tag in _BLOCKS:
            self._flush()
            in_details = bool(self._open) and self._open[-1] == "details"
            if tag in _HEADINGS:
                self._kind = ("heading", _HEADINGS[tag])
            elif tag == "summary" and in_details:
                self._kind = ("summary", 0)

    def _start_in_table(self, tag: str, given: dict[str, str]) -> None:
        rows = self._rows if self._rows is not None else []
        if tag in ("tr", "td", "th"):
            self._end_cell()
        if tag == "tr" or (tag in ("td", "th") and not rows):
            rows.append([])
        if tag in ("td", "th"):
            rows[-1].append(Cell([], given.get("align", "")))
            self._has_header |= tag == "th" and len(rows) == 1
        elif tag in _BLOCKS or tag in _CONTAINERS or tag == "hr":
            self._add(" ")

    def _end_in_table(self, tag: str) -> None:
        if tag == "table":
            self._end_table()
        elif tag in ("td", "th"):
            self._end_cell()
        elif tag in _BLOCKS:
            self._add(" ")

    def _enter(self, tag: str, given: dict[str, str]) -> None:
        self._flush()
        if tag == "li":
            self._begin_item(given)
        elif len(self._open) >= _DEEPEST:
            return
        elif tag in ("ul", "ol"):
            start = given.get("start", "1")
            number = int(start) if re.fullmatch(r"[0-9]{1,9}", start) else 1
            self._ordinals.append(number if tag == "ol" else None)
            self._builder.enter("list")
        elif tag == "blockquote":
            self._builder.enter("quote", expandable="expandable" in given)
        else:
            self._builder.enter("details")
        if tag != "li":
            self._open.append(tag)

    def _begin_item(self, given: dict[str, str]) -> None:
        lists = [place for place, tag in enumerate(self._open) if tag in ("ul", "ol")]
        if lists and "li" in self._open[lists[-1] :]:
            self._leave("li")
        if len(self._open) >= _DEEPEST:
            return
        if not lists or self._open[-1] not in ("ul", "ol"):
            self._enter("ul", {})
        if self._open[-1] not in ("ul", "ol"):
            return
        ordinal = self._ordinals[-1]
        if ordinal is not None:
            self._ordinals[-1] = ordinal + 1
        self._builder.enter("item", marker="• " if ordinal is None else f"{ordinal}. ", ordinal=ordinal)
        self._open.append("li")

    def _leave(self, tag: str) -> None:
        """End a container, and those that are open in it."""
        if tag not in self._open:
            return
        self._flush()
        while True:
            last = self._open.pop()
            self._builder.text([])  # an item without words has its marker all the same
            if last in ("ul", "ol"):
                self._ordinals.pop()
            self._builder.leave()
            if last == tag:
                return

    def _start_link(self, tag: str, url: str) -> None:
        address = None if any(one.url for one in self._styles) else link_targets.linked(url)
        style = None if address is None else Style("text_link", address)
        self._start_style(_OpenStyle(tag, style, url, len(self._pieces)))

    def _start_style(self, style: _OpenStyle) -> None:
        if len(self._styles) < _MOST_STYLES:
            self._styles.append(style)

    def _end_style(self, tag: str) -> None:
        for place in range(len(self._styles) - 1, -1, -1):
            if self._styles[place].tag == tag:
                ended = self._styles.pop(place)
                if ended.url:
                    self._end_link(ended)
                return

    def _end_link(self, link: _OpenStyle) -> None:
        words = self._pieces[link.words :]
        label = "".join(one.text for one in words)
        if link_targets.is_bare(link.url, label):
            self._pieces[link.words :] = [one._replace(styles=_without_link(one.styles)) for one in words]
        elif not label.strip() and link.style is not None:
            self._add(link.url)
        elif link.style is None and not any(one.url for one in self._styles):
            self._add(link_targets.shown(link.url, label))

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._rows is not None and not (self._rows and self._rows[-1]):
            if not text.strip():
                return
            self._start_in_table("td", {})
        self._pieces.append(Piece(text, tuple(dict.fromkeys(one.style for one in self._styles if one.style))))

    def _flush(self) -> None:
        """End a paragraph."""
        if self._pieces or self._kind[0] != "text":
            self._builder.text(self._pieces, *self._kind)
        self._new_words()
        self._kind = ("text", 0)

    def _new_words(self) -> None:
        self._pieces = []
        self._styles = [one._replace(words=0) for one in self._styles]

    def _end_code(self) -> None:
        self._builder.code("".join(self._code or ()).removeprefix("\n"), self._language)
        self._code = None

    def _end_cell(self) -> None:
        if self._rows and self._rows[-1]:
            last = self._rows[-1][-1]
            self._rows[-1][-1] = last._replace(pieces=[*last.pieces, *self._pieces])
        self._new_words()

    def _end_table(self) -> None:
        self._end_cell()
        rows, self._rows = self._rows or [], None
        self._builder.table(rows, has_header=self._has_header)


def _without_link(styles: tuple[Style, ...]) -> tuple[Style, ...]:
    return tuple(one for one in styles if one.kind != "text_link")
