"""parse_mode HTML: the tags the platform knows, and its words about the others."""

from __future__ import annotations

import html
import re

from .refusals import bad_request
from .text_entities import Entity, units

_TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "span": "spoiler",
    "code": "code",
    "pre": "pre",
    "a": "text_link",
    "blockquote": "blockquote",
    "tg-emoji": "custom_emoji",
}
_ATTRIBUTE = re.compile(r"""([a-zA-Z0-9_:-]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>"']+))?""")
_REFERENCE = re.compile(r"&(lt|gt|amp|quot|#\d+|#x[0-9a-fA-F]+);?")


def parse_html(source: str) -> tuple[str, list[Entity]]:
    """Return the plain text and its entities, or refuse."""
    return _HtmlParser(source).parse()


class _HtmlParser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._text = ""
        self._open: list[tuple[str, int, dict[str, str]]] = []  # tag, offset, attributes
        self._entities: list[Entity] = []

    def parse(self) -> tuple[str, list[Entity]]:
        while self._at < len(self._source):
            sign = self._source[self._at]
            if sign == "<":
                self._read_tag()
            elif sign == "&" and (match := _REFERENCE.match(self._source, self._at)):
                self._text += html.unescape(match.group())
                self._at = match.end()
            else:
                self._text += sign
                self._at += 1
        if self._open:
            raise _unparseable(f'Can\'t find end tag corresponding to start tag "{self._open[-1][0]}"')
        return self._text, sorted(self._entities, key=lambda one: (one["offset"], -one["length"]))

    def _read_tag(self) -> None:
        start = self._at
        place = len(self._source[:start].encode())
        end = self._source.find(">", start)
        ends = self._source.startswith("</", start)
        if end < 0:
            raise _unparseable(f"Unclosed {'end' if ends else 'start'} tag at byte offset {place}")
        inside = self._source[start + 1 : end]
        self._at = end + 1
        if ends:
            self._close(inside[1:].strip().lower(), place)
            return
        name, _, rest = inside.partition(" ")
        name = name.strip().lower()
        attributes = {key.lower(): value.strip("\"'") for key, value in _ATTRIBUTE.findall(rest)}
        known = name in _TAGS and (name != "span" or attributes.get("class") == "tg-spoiler")
        if not known:
            raise _unparseable(f'Unsupported start tag "{name}" at byte offset {place}')
        self._open.append((name, units(self._text), attributes))

    def _close(self, name: str, place: int) -> None:
        if not self._open:
            raise _unparseable(f"Unexpected end tag at byte offset {place}")
        tag, offset, attributes = self._open.pop()
        if name and name != tag:
            raise _unparseable(
                f'Unmatched end tag at byte offset {place}, expected "</{tag}>", found "</{name}>"'
            )
        entity: Entity = {"type": _TAGS[tag], "offset": offset, "length": units(self._text) - offset}
        if tag == "a":
            entity["url"] = html.unescape(attributes.get("href", ""))
            if not entity["url"]:
                return  # a link without an address is plain text
        if tag == "blockquote" and "expandable" in attributes:
            entity["type"] = "expandable_blockquote"
        if tag == "tg-emoji":
            entity["custom_emoji_id"] = attributes.get("emoji-id", "")
        if tag == "code" and attributes.get("class", "").startswith("language-"):
            entity["language"] = attributes["class"].removeprefix("language-")
        self._keep(entity)

    def _keep(self, entity: Entity) -> None:
        if not entity["length"]:
            return
        inner = self._entities[-1] if self._entities else None
        if entity["type"] == "pre" and inner and inner["type"] == "code" and "language" in inner:
            self._entities[-1] = {**entity, "language": inner["language"]}
            return
        self._entities.append(entity)


def _unparseable(words: str) -> Exception:
    return bad_request(f"can't parse entities: {words}")
