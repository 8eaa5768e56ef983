"""Markdown of a rich message, as HTML: enough of it for tests. The platform reads it by rules of its own."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

from .entity_rules import Remark

_FENCE = re.compile(r"(`{3,}|~{3,})\s*([\w+-]*)")
_ITEM = re.compile(r"(\s*)(?:[-*+]|(\d+)[.)])\s+(.*)")
_BOX = re.compile(r"\[([ xX])\]\s+")
_RULE = re.compile(r"\s*([-*_])(?:\s*\1){2,}\s*")
_SPANS = (
    (re.compile(r"(\*\*|__)(.+?)\1"), "b"),
    (re.compile(r"(?<![\w*_])([*_])(?!\s)(.+?)\1(?!\w)"), "i"),
    (re.compile(r"(~~)(.+?)\1"), "s"),
    (re.compile(r"(==)(.+?)\1"), "mark"),
    (re.compile(r"(\|\|)(.+?)\1"), "tg-spoiler"),
)


def markdown_to_html(source: str, remark: Remark) -> str:
    """Return the HTML of some Markdown; HTML in it stays."""
    return "".join(_blocks(source.replace("\r\n", "\n").split("\n"), remark))


def _blocks(lines: list[str], remark: Remark) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if fence:
            end = at + 1
            while end < len(lines) and not lines[end].startswith(fence.group(1)):
                end += 1
            code = "\n".join(lines[at + 1 : end])
            if "\t" in code:
                remark("a tab in code is shown as one space")  # seen on the platform
            language = f' class="language-{fence.group(2)}"' if fence.group(2) else ""
            yield f"<pre><code{language}>{html.escape(code.replace(chr(9), ' '), quote=False)}</code></pre>"
            at = end + 1
            continue
        taken, block = _block(lines, at)
        yield block
        at += taken


def _block(lines: list[str], at: int) -> tuple[int, str]:
    line = lines[at]
    if not line.strip():
        return 1, ""
    if heading := re.match(r"(#{1,6})\s*(.+)", line):  # seen: no space is needed
        size = len(heading.group(1))
        return 1, f"<h{size}>{_inline(heading.group(2))}</h{size}>"
    if _RULE.fullmatch(line):
        return 1, "<hr/>"
    if "|" in line and at + 1 < len(lines) and re.fullmatch(r"[\s|:-]*-[\s|:-]*", lines[at + 1]):
        rows = _while(lines, at, lambda one: "|" in one)
        cells = "".join(_row(row, "td") for row in rows[2:])
        return len(rows), f"<table>{_row(rows[0], 'th')}{cells}</table>"
    if line.startswith(">"):
        quoted = _while(lines, at, lambda one: one.startswith(">"))
        return len(quoted), f"<blockquote>{_text([one.lstrip('> ') for one in quoted])}</blockquote>"
    if _ITEM.fullmatch(line):
        items = _while(lines, at, lambda one: _ITEM.fullmatch(one) is not None)
        return len(items), _list(items)
    if line.lstrip().startswith("<"):
        return 1, line
    text = _while(lines, at, lambda one: bool(one.strip()) and not _begins_block(one))
    return max(1, len(text)), f"<p>{_text(text or [line])}</p>"


def _while(lines: list[str], at: int, goes_on: Callable[[str], bool]) -> list[str]:
    end = at
    while end < len(lines) and goes_on(lines[end]):
        end += 1
    return lines[at:end]


def _begins_block(line: str) -> bool:
    return bool(_FENCE.match(line) or _ITEM.fullmatch(line) or line.startswith(("#", ">", "<")))


def _list(items: list[str]) -> str:
    """Return a list; items with more space before them are a list in the last item."""
    parts: list[tuple[str, list[str]]] = []
    depth = len(items[0]) - len(items[0].lstrip())
    for line in items:
        found = _ITEM.fullmatch(line)
        assert found is not None
        if len(found.group(1)) > depth and parts:
            parts[-1][1].append(line)
            continue
        text = found.group(3)
        box = _BOX.match(text)
        mark = "" if box is None else f'<input type="checkbox"{" checked" if box.group(1) != " " else ""}>'
        parts.append((mark + _inline(text[box.end() if box else 0 :]), []))
    tag = "ol" if _ITEM.fullmatch(items[0]).group(2) else "ul"  # type: ignore[union-attr]
    inside = "".join(f"<li>{text}{_list(inner) if inner else ''}</li>" for text, inner in parts)
    return f"<{tag}>{inside}</{tag}>"


def _row(line: str, tag: str) -> str:
    cells = re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))
    inside = "".join(f"<{tag}>{_inline(one.strip().replace(chr(92) + '|', '|'))}</{tag}>" for one in cells)
    return f"<tr>{inside}</tr>"


def _text(lines: list[str]) -> str:
    """Return lines of one paragraph: two spaces at the end of a line break it."""
    joined = "".join(f"{_inline(one.rstrip())}{'<br>' if one.endswith('  ') else ' '}" for one in lines)
    return joined.removesuffix("<br>").rstrip()


def _inline(text: str) -> str:
    pieces = re.split(r"(`[^`]+`|\[[^\]]*\]\([^)\s]*\)|<[^<>]+>)", text)
    return "".join(_piece(piece, bool(number % 2)) for number, piece in enumerate(pieces))


def _piece(text: str, special: bool) -> str:
    if special and text.startswith("`"):
        return f"<code>{html.escape(text.strip('`'), quote=False)}</code>"
    if special and text.startswith("["):
        words, _, url = text[1:-1].partition("](")
        return f'<a href="{html.escape(url)}">{_inline(words)}</a>'
    if special:
        return text
    text = html.escape(html.unescape(text), quote=False)
    for pattern, tag in _SPANS:
        text = pattern.sub(rf"<{tag}>\2</{tag}>", text)
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)
