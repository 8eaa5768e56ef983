"""HTML of a rich message as a tree: the tags the platform knows, each closed where it was opened."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from .entity_rules import Remark
from .refusals import Refusal

HEADINGS = tuple(f"h{size}" for size in range(1, 7))
STYLES = {
    **dict.fromkeys(("b", "strong"), "bold"),
    **dict.fromkeys(("i", "em"), "italic"),
    **dict.fromkeys(("u", "ins"), "underline"),
    **dict.fromkeys(("s", "strike", "del"), "strikethrough"),
    **dict.fromkeys(("tg-spoiler", "span"), "spoiler"),
    "code": "code",
    "mark": "marked",
    "sub": "subscript",
    "sup": "superscript",
}
INLINE = {*STYLES, "a", "br", "tg-emoji", "tg-time", "tg-math", "tg-reference", "tg-button", "input", "cite"}
MEDIA = ("img", "video", "audio")
BLOCKS = {
    *HEADINGS,
    *("p", "pre", "footer", "hr", "ul", "ol", "blockquote", "aside", "table", "details", "figure"),
    *("tg-map", "tg-collage", "tg-slideshow", "tg-math-block", "tg-thinking"),
    *MEDIA,
}
# Where alone a tag can stand.
ONLY_IN = {
    "li": ("ul", "ol"),
    "summary": ("details",),
    "tr": ("table",),
    "caption": ("table",),
    "td": ("tr",),
    "th": ("tr",),
    "figcaption": ("figure", "tg-collage", "tg-slideshow", "tg-map"),
    "cite": ("blockquote", "aside", "figcaption"),
    "input": ("li",),
}
_VOID = ("br", "hr", "img", "input", "tg-map")
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]*);")
_KNOWN_NAMES = {
    *("lt", "gt", "amp", "quot", "apos", "nbsp", "hellip"),
    *("mdash", "ndash", "lsquo", "rsquo", "ldquo", "rdquo"),
}


@dataclass(eq=False)
class Node:
    """A tag with what is in it."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def number(self, name: str, default: int = 0) -> int:
        """Return an attribute that is a whole number; what is none counts as the default."""
        value = self.attributes.get(name, "")
        return int(value) if re.fullmatch(r"-?\d{1,9}", value) else default


def wrong(remark: Remark, problem: str) -> Refusal:
    """Return the refusal of HTML that makes no sense, and tell why: the platform's own word is not known."""
    remark(f"the HTML of a rich message is wrong: {problem}")
    return Refusal(400, "Bad Request: RICH_MESSAGE_HTML_INVALID")  # a guess at the words


def parse_tree(source: str, remark: Remark) -> Node:
    """Return the tree of some HTML, or refuse it."""
    for name in _NAMED.findall(source):
        if name not in _KNOWN_NAMES:
            remark(f"&{name}; is shown as it is: the platform does not know it")
    parser = _TreeParser(remark)
    parser.feed(source)
    parser.close()
    if len(parser.open) > 1:
        raise wrong(remark, f"<{parser.open[-1].tag}> is not closed")
    return parser.open[0]


class _TreeParser(HTMLParser):
    def __init__(self, remark: Remark) -> None:
        super().__init__(convert_charrefs=True)
        self._remark = remark
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = self._add(tag, attrs)
        if tag not in _VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if self.open[-1].tag != tag:
            expected = f"</{self.open[-1].tag}>" if len(self.open) > 1 else "no end tag"
            raise wrong(self._remark, f"</{tag}> stands where {expected} is expected")
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        raise wrong(self._remark, "there is a comment")  # a guess: it is no tag that is documented

    def _add(self, tag: str, attrs: list[tuple[str, str | None]]) -> Node:
        attributes = {name: value or "" for name, value in attrs}
        if tag not in INLINE and tag not in BLOCKS and tag not in ONLY_IN:
            raise wrong(self._remark, f"<{tag}> is not known")
        if tag == "span" and attributes.get("class") != "tg-spoiler":
            raise wrong(self._remark, "<span> is known with the class tg-spoiler only")
        parents = ONLY_IN.get(tag)
        if parents and self.open[-1].tag not in parents:
            raise wrong(self._remark, f"<{tag}> stands outside of <{'> and <'.join(parents)}>")
        node = Node(tag, attributes)
        self.open[-1].children.append(node)
        return node
