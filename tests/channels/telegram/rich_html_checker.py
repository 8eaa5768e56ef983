"""Reads the HTML of a rich message strictly, and says what people see: shares no code with the renderer."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"br", "hr", "input"}
INLINE = {"b", "i", "u", "s", "code", "a", "tg-spoiler"}
PARENTS = {
    "li": {"ul", "ol"},
    "tr": {"table"},
    "td": {"tr"},
    "th": {"tr"},
    "summary": {"details"},
    "input": {"li"},
}
HOLDERS = {"", "li", "blockquote", "details"}  # of blocks; "" is the message itself
BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "hr", "ul", "ol", "blockquote", "table", "details"}
TEXTS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "li", "td", "th", "summary"} | INLINE
ATTRIBUTES = {
    "a": {"href"},
    "code": {"class"},
    "ol": {"start"},
    "td": {"align"},
    "th": {"align"},
    "input": {"type", "checked"},
}


class RichReader(HTMLParser):
    """Fails at what is not allowed. `seen` is the text as people see it, `links` the addresses in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.seen = ""
        self.links: list[str] = []
        self.blocks = 0
        self.deepest = 0
        self._open = [""]
        self._numbers: list[int | None] = []
        self._source = html
        self.feed(html)
        self.close()
        assert self._open == [""], f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        inside = self._open[-1]
        assert set(given) <= ATTRIBUTES.get(tag, set()), (tag, attrs)
        if tag in PARENTS:
            assert inside in PARENTS[tag], (tag, self._open)
        elif tag in BLOCKS:
            assert inside in HOLDERS, (tag, self._open)
        else:
            assert tag in INLINE | {"br"} and inside in TEXTS, (tag, self._open)
        if tag in BLOCKS or tag in ("li", "tr"):
            self.blocks += 1
        self._show(tag, given)
        if tag not in VOID:
            self._open.append(tag)
            self.deepest = max(self.deepest, len(self._open) - 1)

    def _show(self, tag: str, given: dict[str, str | None]) -> None:
        if tag in ("ul", "ol"):
            self._numbers.append(int(given.get("start") or 1) if tag == "ol" else None)
        elif tag == "li":
            number = self._numbers[-1]
            self.seen += "\n• " if number is None else f"\n{number}. "
            if number is not None:
                self._numbers[-1] = number + 1
        elif tag == "input":
            assert given["type"] == "checkbox"
            if self.seen.endswith("• "):
                self.seen = self.seen[:-2]
            self.seen += "☑" if "checked" in given else "☐"
        elif tag == "hr":
            self.seen += "\n———\n"
        elif tag == "a":
            self.links.append(given["href"] or "")
        else:
            self.seen += " " if tag not in INLINE else ""

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, (tag, self._source)
        if tag in ("ul", "ol"):
            self._numbers.pop()

    def handle_data(self, data: str) -> None:
        assert self._open[-1] in TEXTS, (data, self._source)
        assert "\n" not in data or "pre" in self._open, "a line break in the source is none"
        self.seen += data


def words(seen: str) -> str:
    """Return what can be compared: without white space, what draws a table, and what says that something goes on."""
    return "".join(one for one in seen if not one.isspace() and one not in "|-+…")
