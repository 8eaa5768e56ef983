"""Reads Markdown (CommonMark with tables, strikethrough, task lists and details) into a document.

HTML in it is text, but for <details>.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from . import link_targets
from .document_builder import DocumentBuilder
from .formatted_document import Cell, Piece, Style
from .markdown_rules import add_rules

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_DEEPEST = 20  # of blocks: the parser drops what is deeper, and each level makes brackets slower
_STYLES = {"strong": Style("bold"), "em": Style("italic"), "s": Style("strikethrough")}
_CODE = Style("code")
_TASK = re.compile(r"\[([ xX])\](?:\s+|$)")
_ALIGN = re.compile(r"text-align:\s*(\w+)")


class TooDeep(Exception):
    """The text is nested so deeply that the parser would drop some of it."""


def read(source: str, builder: DocumentBuilder) -> None:
    """Add what a text in Markdown says. Raises TooDeep, or whatever the parser raises."""
    tokens = _parser().parse(source, {})
    if any(one.nesting == 1 and one.level >= _DEEPEST - 1 for one in tokens):
        raise TooDeep
    _Reader(tokens, builder).read()


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    parser.enable(["table", "strikethrough"])
    # Every link is read as one: link_targets decides what becomes of it.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    add_rules(parser)
    return parser


class _Reader:
    def __init__(self, tokens: Sequence[Token], builder: DocumentBuilder) -> None:
        self._tokens = tokens
        self._builder = builder
        self._ordinals: list[int | None] = []  # of the next item of each open list
        self._rows: list[list[Cell]] = []
        self._kind: tuple[Any, int] = ("text", 0)  # of the next text, and the level of a heading
        self._cut = 0  # so many characters of the next text were read already

    def read(self) -> None:
        for place, token in enumerate(self._tokens):
            read = getattr(self, f"_{token.type}", None)
            if read is not None:
                read(place, token)

    def _inline(self, place: int, token: Token) -> None:
        before = self._tokens[place - 1]
        if before.type in ("td_open", "th_open"):
            align = _ALIGN.search(str(before.attrs.get("style", "")))
            self._rows[-1].append(Cell(list(_pieces(token)), align[1] if align else ""))
            return
        pieces = list(_pieces(token))
        if self._cut and pieces:
            pieces[0] = pieces[0]._replace(text=pieces[0].text[self._cut :])
        self._builder.text(pieces, *self._kind)
        self._cut = 0
        self._kind = ("text", 0)

    def _heading_open(self, place: int, token: Token) -> None:
        self._kind = ("heading", int(token.tag[1:]))

    def _fence(self, place: int, token: Token) -> None:
        words = token.info.split()
        self._builder.code(token.content, words[0] if words else "")

    def _code_block(self, place: int, token: Token) -> None:
        self._builder.code(token.content)

    def _hr(self, place: int, token: Token) -> None:
        self._builder.rule()

    def _blockquote_open(self, place: int, token: Token) -> None:
        self._builder.enter("quote")

    def _details_open(self, place: int, token: Token) -> None:
        self._builder.enter("details")
        self._kind = ("summary", 0)

    def _bullet_list_open(self, place: int, token: Token) -> None:
        self._builder.enter("list")
        self._ordinals.append(None)

    def _ordered_list_open(self, place: int, token: Token) -> None:
        self._builder.enter("list")
        self._ordinals.append(int(token.attrs.get("start", 1)))

    def _list_item_open(self, place: int, token: Token) -> None:
        ordinal = self._ordinals[-1]
        marker = "• " if ordinal is None else f"{ordinal}. "
        checked = None
        following = self._tokens[place + 1 : place + 3]
        is_text = [one.type for one in following] == ["paragraph_open", "inline"]
        if is_text and (task := _TASK.match(_plain(following[1]))):
            checked = task[1] != " "
            box = "☑ " if checked else "☐ "
            marker = box if ordinal is None else marker + box
            self._cut = task.end()
        if ordinal is not None:
            self._ordinals[-1] = ordinal + 1
        self._builder.enter("item", marker=marker, ordinal=ordinal, checked=checked)

    def _list_item_close(self, place: int, token: Token) -> None:
        self._builder.text([])  # an item without words has its marker all the same
        self._builder.leave()

    def _bullet_list_close(self, place: int, token: Token) -> None:
        self._ordinals.pop()
        self._builder.leave()

    _ordered_list_close = _bullet_list_close

    def _blockquote_close(self, place: int, token: Token) -> None:
        self._builder.leave()

    _details_close = _blockquote_close

    def _table_open(self, place: int, token: Token) -> None:
        self._rows = []

    def _tr_open(self, place: int, token: Token) -> None:
        self._rows.append([])

    def _table_close(self, place: int, token: Token) -> None:
        self._builder.table(self._rows, has_header=True)


def _plain(token: Token) -> str:
    """Return the words at the beginning of a paragraph that have no formatting."""
    first = token.children[0] if token.children else None
    return first.content if first is not None and first.type == "text" else ""


def _pieces(token: Token) -> Iterator[Piece]:
    """Yield the words of a paragraph with their styles."""
    styles: list[Style] = []
    links: list[tuple[str, list[Piece]]] = []  # those that are open: there is one at most, but for pictures
    for child in token.children or ():
        found: list[Piece] = []
        if child.type == "link_open":
            links.append((str(child.attrs.get("href", "")), []))
        elif child.type == "link_close" and links:
            found = list(_link(*links.pop(), has_link=bool(links)))
        elif child.type == "image":
            source = str(child.attrs.get("src", ""))
            label = "".join(one.content for one in child.children or ()) or source
            found = list(_link(source, [Piece(label, tuple(styles))], has_link=bool(links)))
        elif child.nesting and child.tag in _STYLES:
            if child.nesting == 1:
                styles.append(_STYLES[child.tag])
            elif styles:
                styles.pop()
        else:
            text = "\n" if child.type in ("softbreak", "hardbreak") else child.content
            found = [Piece(text, (*styles, _CODE) if child.type == "code_inline" else tuple(styles))]
        if links:
            links[-1][1].extend(found)
        else:
            yield from found


def _link(url: str, words: list[Piece], *, has_link: bool) -> Iterator[Piece]:
    """Yield the words of a link, linked or with the address behind them."""
    label = "".join(one.text for one in words)
    address = link_targets.linked(url)
    if has_link or link_targets.is_bare(url, label):
        yield from words
    elif address is not None:
        style = Style("text_link", address)
        yield from (Piece(one.text, (style, *one.styles)) for one in words if label.strip())
        if not label.strip():
            yield Piece(url)
    else:
        yield from words
        if more := link_targets.shown(url, label):
            yield Piece(more)
