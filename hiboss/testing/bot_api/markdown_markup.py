r"""parse_mode MarkdownV2, and the old Markdown: what is reserved must be escaped, what opens must close."""

from __future__ import annotations

from .refusals import bad_request
from .text_entities import Entity, units

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
_SPANS = {
    "*": ("bold", "Bold"),
    "_": ("italic", "Italic"),
    "__": ("underline", "Underline"),
    "~": ("strikethrough", "Strikethrough"),
    "||": ("spoiler", "Spoiler"),
    "[": ("text_link", "TextUrl"),
    "`": ("code", "Code"),
    "```": ("pre", "Pre"),
}


def parse_markdown_v2(source: str) -> tuple[str, list[Entity]]:
    """Return the plain text and its entities, or refuse."""
    return _MarkdownParser(source).parse()


class _MarkdownParser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._text = ""
        self._open: list[tuple[str, int, int]] = []  # sign, offset in the text, byte offset
        self._entities: list[Entity] = []
        self._quote: int | None = None  # where a block quotation began

    def parse(self) -> tuple[str, list[Entity]]:
        while self._at < len(self._source):
            self._step()
        if self._open:
            sign, _, place = self._open[-1]
            raise _unparseable(f"Can't find end of {_SPANS[sign][1]} entity at byte offset {place}")
        self._end_quote()
        return self._text, sorted(self._entities, key=lambda one: (one["offset"], -one["length"]))

    def _step(self) -> None:
        here = self._source[self._at]
        line_start = self._at == 0 or self._source[self._at - 1] == "\n"
        if line_start and here != ">":
            self._end_quote()
        if here == "\\" and self._at + 1 < len(self._source) and 0 < ord(self._source[self._at + 1]) <= 126:
            self._take(self._source[self._at + 1], 2)
        elif here == "`":
            self._code()
        elif line_start and here == ">":
            self._quote = units(self._text) if self._quote is None else self._quote
            self._at += 1
        elif here not in _RESERVED:
            self._take(here, 1)
        elif here == "]" and self._open and self._open[-1][0] == "[":
            self._link()
        else:
            self._span(here)

    def _take(self, text: str, length: int) -> None:
        self._text += text
        self._at += length

    def _span(self, here: str) -> None:
        double = self._source.startswith(here * 2, self._at)
        sign = here * 2 if double and here in "_|" else here
        if sign not in _SPANS:
            raise _unparseable(f"Character '{here}' is reserved and must be escaped with the preceding '\\'")
        if self._open and self._open[-1][0] == sign and sign != "[":
            self._close({})
        else:
            self._open.append((sign, units(self._text), len(self._source[: self._at].encode())))
        self._at += len(sign)

    def _code(self) -> None:
        sign = "```" if self._source.startswith("```", self._at) else "`"
        place = len(self._source[: self._at].encode())
        start = end = self._at + len(sign)
        while end < len(self._source) and not self._source.startswith(sign, end):
            end += 2 if self._source[end] == "\\" else 1
        if end >= len(self._source):
            raise _unparseable(f"Can't find end of {_SPANS[sign][1]} entity at byte offset {place}")
        inside = self._source[start:end].replace("\\`", "`").replace("\\\\", "\\")
        entity: Entity = {"type": _SPANS[sign][0], "offset": units(self._text)}
        first, newline, rest = inside.partition("\n")
        if sign == "```" and newline:
            inside = rest
            if first.strip():
                entity["language"] = first.strip()
        self._text += inside
        self._entities.append({**entity, "length": units(inside)})
        self._at = end + len(sign)

    def _link(self) -> None:
        self._at += 1
        if not self._source.startswith("(", self._at):
            self._close({"url": ""})
            return
        end = self._source.find(")", self._at)
        if end < 0:
            raise _unparseable(f"Can't find end of a URL at byte offset {len(self._source.encode())}")
        self._close({"url": self._source[self._at + 1 : end].replace("\\", "")})
        self._at = end + 1

    def _close(self, more: dict[str, str]) -> None:
        sign, offset, _ = self._open.pop()
        length = units(self._text) - offset
        if length and more.get("url", "-"):
            self._entities.append({"type": _SPANS[sign][0], "offset": offset, "length": length, **more})

    def _end_quote(self) -> None:
        if self._quote is not None:
            length = units(self._text.rstrip("\n")) - self._quote
            if length > 0:
                self._entities.append({"type": "blockquote", "offset": self._quote, "length": length})
            self._quote = None


def parse_old_markdown(source: str) -> tuple[str, list[Entity]]:
    """Return the plain text and its entities for parse_mode Markdown, which cannot nest."""
    text, at = "", 0
    entities: list[Entity] = []
    while at < len(source):
        here = source[at]
        if here == "\\" and at + 1 < len(source) and source[at + 1] in "_*`[":
            text, at = text + source[at + 1], at + 2
        elif here in "_*`[":
            sign = "```" if source.startswith("```", at) else here
            end = source.find("]" if here == "[" else sign, at + len(sign))
            if end < 0:
                place = len(source[:at].encode())
                raise _unparseable(f"Can't find end of the entity starting at byte offset {place}")
            inside = source[at + len(sign) : end]
            entity: Entity = {"type": _SPANS[sign][0], "offset": units(text), "length": units(inside)}
            text, at = text + inside, end + len(sign)
            if here == "[" and source.startswith("(", at) and (closing := source.find(")", at)) > 0:
                entity["url"], at = source[at + 1 : closing], closing + 1
            if inside and (here != "[" or entity.get("url")):
                entities.append(entity)
        else:
            text, at = text + here, at + 1
    return text, entities


def _unparseable(words: str) -> Exception:
    return bad_request(f"can't parse entities: {words}")
